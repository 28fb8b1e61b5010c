//! What most instructions do to general registers, flags and memory, in one line of the cache.
//!
//! A [`Meaning`] says everything and is spread over several allocations. Who goes back and keeps no
//! edges asks the same of most instructions again and again: which parts are taken out of the set
//! of what is wanted, and which come in. [`Brief`]s of an instruction stand side by side and answer
//! just that. Instructions that need more (vectors, several reads, parts copied to another place of
//! a register) have none.

use crate::semantics::{Flow, Meaning, Parts, Side, Span, Uses};

/// Parts of general registers, flags and single things; no vectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Narrow {
    /// The general registers.
    pub general: u64,
    /// Flags and single things.
    pub single: u16,
}

impl Narrow {
    /// The same set, if it has no vectors.
    fn of(parts: &Parts) -> Option<Self> {
        let [general, 0, 0, single] = parts.0 else { return None };
        Some(Self { general, single: u16::try_from(single).ok()? })
    }
}

/// Bytes of a memory operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes {
    /// Which operand.
    pub slot: u8,
    /// How many, at most 64; 0 if there is no operand.
    pub count: u8,
    /// First byte.
    pub from: u16,
}

impl Bytes {
    const NONE: Self = Self { slot: 0, count: 0, from: 0 };

    fn of(span: &Span) -> Option<Self> {
        let Side::Memory(slot) = span.side else { return None };
        let count = u8::try_from(span.bytes).ok().filter(|count| *count <= 64)?;
        Some(Self { slot, count, from: span.from })
    }

    /// All of them, as bits.
    #[must_use]
    pub fn all(self) -> u64 {
        u64::MAX >> (64 - u32::from(self.count.clamp(1, 64)))
    }
}

/// How a definition hangs on what it is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Everything on everything.
    Made,
    /// A register on another, part by part: how far up the parts of the two stand.
    Moved(u8, u8),
    /// A register on memory, byte by byte.
    Loaded(u8),
    /// Memory on a register, byte by byte.
    Stored(u8),
}

/// Reads of one instruction, at most.
pub const MOST_READS: usize = 2;

/// One definition of an instruction.
#[derive(Clone, Copy, Debug)]
pub struct Brief {
    /// Register parts that are defined.
    pub defines: Narrow,
    /// Register parts whose value goes in; unless it is copied.
    pub uses: Narrow,
    /// Flags that choose between values.
    pub conditions: u16,
    /// How.
    pub way: Way,
    /// Memory that is defined.
    pub write: Bytes,
    /// Registers that form its address.
    pub write_address: u64,
    /// Memory that goes in.
    pub read: Bytes,
    /// Registers that form its address.
    pub read_address: u64,
}

/// The definitions of an instruction in brief, if they are simple enough.
#[must_use]
pub fn of(meaning: &Meaning) -> Option<Vec<Brief>> {
    let briefs = meaning.flows.iter().map(|flow| brief(meaning, flow));
    let briefs: Vec<Brief> = briefs.collect::<Option<_>>()?;
    let reads = briefs.iter().filter(|brief| brief.read.count > 0).count();
    (reads <= MOST_READS).then_some(briefs)
}

fn brief(meaning: &Meaning, flow: &Flow) -> Option<Brief> {
    let none = Narrow::default();
    let address = |bytes: Bytes| -> Option<u64> {
        let operand = meaning.memory.get(usize::from(bytes.slot))?;
        Some(Narrow::of(&operand.address).filter(|parts| parts.single == 0)?.general)
    };
    let mut brief = Brief {
        defines: none,
        uses: none,
        conditions: 0,
        way: Way::Made,
        write: Bytes::NONE,
        write_address: 0,
        read: Bytes::NONE,
        read_address: 0,
    };
    match flow {
        Flow::Make { parts, write, uses, .. } => {
            let Uses { values, conditions, reads } = uses;
            brief.defines = Narrow::of(parts)?;
            brief.uses = Narrow::of(values)?;
            brief.conditions = Narrow::of(conditions).filter(|parts| parts.general == 0)?.single;
            if let Some(write) = write {
                brief.write = Bytes::of(write)?;
                brief.write_address = address(brief.write)?;
            }
            match &reads[..] {
                [] => {}
                [read] => {
                    brief.read = Bytes::of(read)?;
                    brief.read_address = address(brief.read)?;
                }
                _ => return None,
            }
        }
        Flow::Copy { to, from } => {
            if let Side::General(_) = to.side {
                brief.defines = Narrow::of(&to.parts())?;
            }
            brief.way = match (to.side, from.side) {
                (Side::General(to), Side::General(from)) => Way::Moved(shift(to), shift(from)),
                (Side::General(to), Side::Memory(_)) => Way::Loaded(shift(to)),
                (Side::Memory(_), Side::General(from)) => Way::Stored(shift(from)),
                _ => return None,
            };
            for (span, bytes) in [(to, &mut brief.write), (from, &mut brief.read)] {
                match span.side {
                    Side::Memory(_) => *bytes = Bytes::of(span)?,
                    // Of a register only what begins with it is copied bit by bit.
                    _ if span.from > 0 || is_pointer(span) => return None,
                    _ => {}
                }
            }
            if brief.write.count > 0 {
                brief.write_address = address(brief.write)?;
            }
            if brief.read.count > 0 {
                brief.read_address = address(brief.read)?;
            }
            (to.bytes == from.bytes).then_some(())?;
        }
    }
    Some(brief)
}

/// How far up the parts of a general register stand in a set.
fn shift(number: u8) -> u8 {
    number * 4
}

/// Whether a span is of the stack pointer, which has no parts.
fn is_pointer(span: &Span) -> bool {
    span.parts().is_empty()
}
