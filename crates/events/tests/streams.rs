//! What is written to a stream is read again, and bytes that nobody has written are refused: a decoder
//! never panics, never reads past the end, and always comes to one.

use contracts::{Deed, Touched};
use events::count::Counter;
use events::decode::{Bases, Decoder, Record};
use events::record::list::{self, Buffer, BufferList};
use events::record::{Entry, FIRST_EXIT, Kind, Touch};
use events::shape::{Access, Exit, Instruction, Segment, Shape, Source};
use events::suspicion::{Access as Accessed, Memory, Suspicion, Use};
use events::{Consumer, Event};
use proptest::collection::vec;
use proptest::prelude::*;

fn suspicion() -> impl Strategy<Value = Suspicion> {
    let access = any::<(u64, u32, bool)>().prop_map(|(address, size, write)| Accessed {
        address,
        size,
        write,
    });
    let memory = prop_oneof![Just(Memory::Freed), Just(Memory::Beside), Just(Memory::Tail)];
    prop_oneof![
        (access.clone(), any::<u8>())
            .prop_map(|(access, bits)| Suspicion::Painted { access, bits }),
        (access, memory).prop_map(|(access, memory)| Suspicion::OutsideBlocks { access, memory }),
        any::<(u64, bool)>()
            .prop_map(|(argument, recounted)| Suspicion::InvalidCall { argument, recounted }),
        any::<(u64, u64)>()
            .prop_map(|(pointer, address)| Suspicion::OutOfObject { pointer, address }),
        any::<u64>().prop_map(|slot| Suspicion::Returned { slot }),
        Just(Suspicion::Unwritten(Use::Compared)),
        any::<u64>().prop_map(|address| Suspicion::Unwritten(Use::Handed(address))),
        Just(Suspicion::Unwritten(Use::Decisive)),
    ]
}

fn entry() -> impl Strategy<Value = Entry> {
    prop_oneof![
        any::<(u32, u64, u64)>()
            .prop_map(|(thread, fs, gs)| Entry::Thread { thread, bases: Bases { fs, gs } }),
        any::<(u64, [u64; 6], i64)>().prop_map(|(number, arguments, answer)| Entry::Syscall {
            number,
            arguments,
            answer
        }),
        Just(Entry::Flush),
        any::<(u64, u32)>().prop_map(|(pc, made)| Entry::Cut { pc, made }),
        (any::<(u64, u64)>(), suspicion()).prop_map(|((pc, time), suspicion)| Entry::Suspect {
            pc,
            time,
            suspicion
        }),
        any::<(u64, u64, u64, [u64; 6])>().prop_map(|(function, back, stack, arguments)| {
            Entry::Enter { function, back, stack, arguments }
        }),
        any::<(u64, u64, u64)>().prop_map(|(pc, stack, value)| Entry::Back { pc, stack, value }),
        any::<u32>().prop_map(Entry::Plan),
        any::<u32>().prop_map(Entry::Fork),
        any::<(u64, u64, u64)>().prop_map(|(pc, stack, frame)| Entry::Handler { pc, stack, frame }),
        (any::<(u64, u8, u64, u64)>(), prop::sample::select(Deed::ALL.to_vec())).prop_map(
            |((function, argument, address, length), deed)| {
                let touched = Touched { argument, deed, address, length };
                Entry::Touch(Touch { function, touched })
            }
        ),
    ]
}

/// What the stream says of an entry, as a consumer of records sees it.
fn expected(entry: Entry) -> Option<String> {
    let single = |event: Event| Some(format!("{event:?}"));
    match entry {
        Entry::Thread { thread, bases } => Some(format!("{thread} {bases:?}")),
        Entry::Syscall { number, arguments, answer } => {
            Some(format!("{number} {arguments:?} {answer}"))
        }
        Entry::Cut { pc, made } => Some(format!("{pc} {made}")),
        Entry::Suspect { pc, time, suspicion } => single(Event::Suspect { pc, time, suspicion }),
        Entry::Enter { function, back, stack, arguments } => {
            single(Event::Enter { function, back, stack, arguments })
        }
        Entry::Plan(number) => single(Event::Plan(number)),
        Entry::Fork(process) => single(Event::Fork(Some(process).filter(|process| *process != 0))),
        Entry::Handler { pc, stack, frame } => single(Event::Handler { pc, stack, frame }),
        Entry::Touch(touch) => single(Event::Touch(touch)),
        // Nothing was entered, so nothing returns.
        Entry::Back { .. } | Entry::Flush => None,
    }
}

fn shown(record: &Record<'_, '_>) -> String {
    match record {
        Record::Thread(thread, bases) => format!("{thread} {bases:?}"),
        Record::Syscall(number, arguments, answer) => format!("{number} {arguments:?} {answer}"),
        Record::Cut(pc, made) => format!("{pc} {made}"),
        Record::Single(event) => format!("{event:?}"),
        Record::Path(_) | Record::Accesses(_) | Record::Buffers(_) | Record::Probe(..) => {
            "a list".to_owned()
        }
    }
}

/// A shape whose parts fit together, as the engine sends them; without string instructions, whose
/// repetitions are as many as their counters say.
fn shape() -> impl Strategy<Value = Shape> {
    let instruction = (any::<u64>(), 1..=15u8, 0..6u8).prop_map(|(pc, length, kind)| Instruction {
        pc,
        length,
        kind,
        ..Instruction::default()
    });
    let source = prop_oneof![
        any::<u64>().prop_map(Source::Constant),
        (0..40u16, any::<i64>()).prop_map(|(field, offset)| Source::Field { field, offset }),
        Just(Source::Explicit),
    ];
    let segment = prop_oneof![Just(Segment::Flat), Just(Segment::Fs), Just(Segment::Gs)];
    let access =
        (0..8u16, any::<bool>(), segment, 0..100u16, source, proptest::option::of(0..40u16))
            .prop_map(|(index, write, segment, size, source, value)| Access {
                index,
                write,
                segment,
                from_source: false,
                narrow: false,
                size,
                source,
                value,
            });
    let exit = (0..=8u16, 0..40u16, any::<bool>()).prop_map(|(executed, fields, taken)| Exit {
        executed,
        fields,
        taken,
    });
    (0..3u32, vec((instruction, 0..40u16), 1..8), vec(access, 0..8), vec(exit, 0..5)).prop_map(
        |(skipped, code, mut accesses, mut exits)| {
            let (instructions, fields_before): (Vec<_>, Vec<_>) = code.into_iter().unzip();
            let count = instructions.len() as u16;
            accesses.iter_mut().for_each(|access| access.index %= count);
            accesses.sort_by_key(|access| access.index);
            exits.iter_mut().for_each(|exit| exit.executed = exit.executed.min(count));
            let first_exit = FIRST_EXIT + skipped;
            Shape { first_exit, instructions, accesses, exits, fields_before }
        },
    )
}

/// Records of all kinds, one after the other.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let bytes = vec(any::<u8>(), 0..400);
    let record = prop_oneof![
        entry().prop_map(|entry| entry.bytes()),
        shape().prop_map(|shape| list::define(&shape)),
        (0..8u32, 0..9u16, bytes.clone()).prop_map(|(exit, executed, stored)| list::partial(
            FIRST_EXIT + exit,
            executed,
            &stored,
            &[]
        )),
        (0..8u32, bytes.clone()).prop_map(|(exit, fields)| [
            &(FIRST_EXIT + exit).to_le_bytes()[..],
            &fields
        ]
        .concat()),
        vec(any::<(bool, u64, u32)>(), 0..5).prop_map(|accesses| list::accesses(&accesses)),
        (any::<u64>(), any::<u32>(), vec(any::<u64>(), 0..32))
            .prop_map(|(pc, registers, values)| list::probe(pc, registers, &values)),
        (any::<(u64, bool, Option<u64>)>(), bytes.clone()).prop_map(
            |((address, write, absent), bytes)| {
                let (length, bytes) = (bytes.len() as u64, Some(bytes.as_slice()));
                let mut list = BufferList::default();
                list.add(&Buffer { address, length, write, bytes, absent });
                list.finish()
            }
        ),
        bytes,
    ];
    vec(record, 0..12).prop_map(|records| records.concat())
}

/// All that can be made of a stream without expanding repetitions.
fn decode(bytes: &[u8]) {
    let (mut decoder, mut lists) = (Decoder::default(), Vec::new());
    let done = decoder.records(bytes, |record| match record {
        Record::Accesses(list) => {
            let _ = events::decode::read_accesses(list, &mut lists);
        }
        Record::Buffers(buffers) => buffers.for_each(drop),
        _ => {}
    });
    let mut counter = Counter::default();
    counter.records(bytes);
    counter.total();
    assert!(done.is_ok() || counter.broken, "what one refuses the other has read");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn an_entry_is_read_as_it_was_written(entry in entry()) {
        let bytes = entry.bytes();
        let kind = u32::from_le_bytes(bytes[..4].try_into().expect("four bytes"));
        let mut cursor = events::record::Cursor::new(&bytes[4..]);
        let kind = Kind::of(kind).expect("a kind");
        prop_assert_eq!(Entry::read(kind, &mut cursor), Some(entry));
        prop_assert!(cursor.is_empty());
        for length in 0..bytes.len() - 4 {
            let mut cut = events::record::Cursor::new(&bytes[4..4 + length]);
            prop_assert_eq!(Entry::read(kind, &mut cut), None);
        }
    }

    #[test]
    fn consumers_are_told_every_entry_in_order(entries in vec(entry(), 0..20)) {
        let bytes: Vec<u8> = entries.iter().flat_map(Entry::bytes).collect();
        let entered = entries.iter().any(|entry| matches!(entry, Entry::Enter { .. }));
        let mut told = Vec::new();
        let done = Decoder::default().records(&bytes, |record| told.push(shown(&record)));
        prop_assert_eq!(done, Ok(()));
        let expected: Vec<String> = entries.into_iter().filter_map(expected).collect();
        if !entered {
            prop_assert_eq!(told, expected);
        }
    }

    #[test]
    fn a_shape_is_read_as_it_was_written(shape in shape()) {
        let bytes = list::define(&shape);
        let mut cursor = events::record::Cursor::new(&bytes[4..]);
        prop_assert_eq!(list::read_shape(&mut cursor), Some(shape));
        prop_assert!(cursor.is_empty());
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(bytes in vec(any::<u8>(), 0..400)) {
        decode(&bytes);
    }

    #[test]
    fn records_in_any_order_are_decoded_or_refused(bytes in stream(), cut in any::<prop::sample::Index>()) {
        decode(&bytes);
        let _ = Decoder::default().events(&bytes, |_| {});
        decode(&bytes[..cut.index(bytes.len() + 1)]);
    }

    #[test]
    fn damaged_records_are_decoded_or_refused(
        bytes in stream(),
        at in any::<prop::sample::Index>(),
        bit in 0..8u8,
    ) {
        let mut bytes = bytes;
        if !bytes.is_empty() {
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
        }
        decode(&bytes);
    }
}
