//! What most instructions do to general registers, flags and memory, in one line of the cache.
//!
//! A [`Meaning`] says everything and is spread over several allocations. Who goes back and keeps no
//! edges asks the same of most instructions again and again: which parts are taken out of the set
//! of what is wanted, and which come in. [`Definition`]s of an instruction stand side by side and answer
//! just that. Instructions that need more (vectors, several reads, parts copied to another place of
//! a register) have none.

use crate::semantics::{Flow, Form, Meaning, Parts, Side, Span, Uses};

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
pub struct Definition {
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
    /// Whether it may be an entry of a table.
    pub entry: bool,
}

impl Definition {
    /// Nothing from nothing.
    const NOTHING: Self = Self {
        defines: Narrow { general: 0, single: 0 },
        uses: Narrow { general: 0, single: 0 },
        conditions: 0,
        way: Way::Made,
        write: Bytes::NONE,
        write_address: 0,
        read: Bytes::NONE,
        read_address: 0,
        entry: false,
    };
}

/// The definitions of an instruction in compact form, if they are simple enough. A branch that defines
/// nothing has what it looks at instead.
#[must_use]
pub fn of(meaning: &Meaning) -> Option<Vec<Definition>> {
    if matches!(meaning.form, Form::Branch(_) | Form::Jump(_) | Form::IndirectJump) {
        let nothing = Uses::default();
        let decides = meaning.decides.as_ref().unwrap_or(&nothing);
        let definition = made(meaning, &Parts::NONE, None, decides)?;
        return meaning.flows.is_empty().then(|| vec![definition]);
    }
    let compact = meaning.flows.iter().map(|flow| match flow {
        Flow::Make { parts, write, uses, .. } => made(meaning, parts, write.as_ref(), uses),
        Flow::Copy { to, from } => copied(meaning, to, from),
    });
    let compact: Vec<Definition> = compact.collect::<Option<_>>()?;
    let reads = compact.iter().filter(|definition| definition.read.count > 0).count();
    (reads <= MOST_READS).then_some(compact)
}

fn made(meaning: &Meaning, parts: &Parts, write: Option<&Span>, uses: &Uses) -> Option<Definition> {
    let (write, write_address) = operand(meaning, write)?;
    let read = match &uses.reads[..] {
        [] => None,
        [read] => Some(read),
        _ => return None,
    };
    let entry = is_entry(meaning, read);
    let (read, read_address) = operand(meaning, read)?;
    Some(Definition {
        defines: Narrow::of(parts)?,
        uses: Narrow::of(&uses.values)?,
        conditions: Narrow::of(&uses.conditions).filter(|parts| parts.general == 0)?.single,
        write,
        write_address,
        read,
        read_address,
        entry,
        ..Definition::NOTHING
    })
}

fn copied(meaning: &Meaning, to: &Span, from: &Span) -> Option<Definition> {
    // Of a register only what begins with it is copied part by part; the stack pointer has none.
    let simple = |span: &Span| match span.side {
        Side::General(_) => span.from == 0 && !span.parts().is_empty(),
        Side::Memory(_) => true,
        Side::Vector(_) => false,
    };
    if !simple(to) || !simple(from) || to.bytes != from.bytes {
        return None;
    }
    let way = match (to.side, from.side) {
        (Side::General(to), Side::General(from)) => Way::Moved(shift(to), shift(from)),
        (Side::General(to), Side::Memory(_)) => Way::Loaded(shift(to)),
        (Side::Memory(_), Side::General(from)) => Way::Stored(shift(from)),
        _ => return None,
    };
    let in_memory = |span: &&Span| matches!(span.side, Side::Memory(_));
    let (write, write_address) = operand(meaning, Some(to).filter(in_memory))?;
    let entry = is_entry(meaning, Some(from).filter(in_memory));
    let (read, read_address) = operand(meaning, Some(from).filter(in_memory))?;
    let defines = Narrow::of(&to.parts())?;
    Some(Definition {
        defines,
        way,
        write,
        write_address,
        read,
        read_address,
        entry,
        ..Definition::NOTHING
    })
}

/// A memory operand, if there is one, and the general registers that form its address.
fn operand(meaning: &Meaning, span: Option<&Span>) -> Option<(Bytes, u64)> {
    let Some(span) = span else { return Some((Bytes::NONE, 0)) };
    let bytes = Bytes::of(span)?;
    let operand = meaning.memory.get(usize::from(bytes.slot))?;
    let address = Narrow::of(&operand.address).filter(|parts| parts.single == 0)?;
    Some((bytes, address.general))
}

/// Whether a memory operand may be an entry of a table.
fn is_entry(meaning: &Meaning, span: Option<&Span>) -> bool {
    let operand = span.and_then(|span| match span.side {
        Side::Memory(slot) => meaning.memory.get(usize::from(slot)),
        _ => None,
    });
    operand.is_some_and(|operand| operand.entry)
}

/// How far up the parts of a general register stand in a set.
fn shift(number: u8) -> u8 {
    number * 4
}
