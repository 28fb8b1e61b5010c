//! Instructions that move bytes unchanged.

use super::builder::MeaningBuilder;
use super::meaning::{Flow, Span, Uses};
use super::parts::{self, Parts};
use iced_x86::{Mnemonic, OpKind, Register};

/// Flows of an instruction that copies, if it does.
pub(super) fn flows(builder: &MeaningBuilder<'_>) -> Option<Vec<Flow>> {
    use Mnemonic as M;
    let instruction = builder.instruction;
    match instruction.mnemonic() {
        M::Mov | M::Movzx | M::Movnti => moved(builder, 0, 1),
        M::Movsx | M::Movsxd => extended(builder),
        M::Push | M::Pop => stack(builder),
        M::Leave => leave(builder),
        M::Xchg => exchanged(builder),
        M::Movsb | M::Movsw | M::Movsq => string(builder),
        M::Movsd if instruction.is_string_instruction() => string(builder),
        M::Stosb | M::Stosw | M::Stosd | M::Stosq => string(builder),
        M::Lodsb | M::Lodsw | M::Lodsd | M::Lodsq => string(builder),
        M::And | M::Or if builder.same_registers(0, 1) => unchanged(builder),
        _ if instruction.is_jcc_short_or_near() => Some(Vec::new()),
        mnemonic if is_cmov(mnemonic) => conditional(builder),
        _ => None,
    }
}

fn is_cmov(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Cmova
            | M::Cmovae
            | M::Cmovb
            | M::Cmovbe
            | M::Cmove
            | M::Cmovg
            | M::Cmovge
            | M::Cmovl
            | M::Cmovle
            | M::Cmovne
            | M::Cmovno
            | M::Cmovnp
            | M::Cmovns
            | M::Cmovo
            | M::Cmovp
            | M::Cmovs
    )
}

/// The span of an operand: a general register, or the one memory slot of that direction.
fn operand(builder: &MeaningBuilder<'_>, index: u32, write: bool) -> Option<Span> {
    if let Some(register) = builder.register(index) {
        let (number, from, bytes) = parts::general(register)?;
        return Some(Span::general(number, from, bytes));
    }
    if builder.instruction.op_kind(index) != OpKind::Memory {
        return None;
    }
    if write { builder.writes().first().copied() } else { builder.reads().first().copied() }
}

/// The rest of a general register of which only the low bytes were copied.
fn above(builder: &MeaningBuilder<'_>, to: Register, copied: u16) -> Parts {
    let Some((number, from, bytes)) = parts::general(to) else { return Parts::NONE };
    let own = match u16::from(bytes).checked_sub(copied) {
        Some(rest) if rest > 0 => Parts::general(number, from + copied as u8, rest as u8),
        _ => Parts::NONE,
    };
    own | builder.zeroed_by(to)
}

fn with_constant(mut flows: Vec<Flow>, zero: Parts) -> Vec<Flow> {
    if !zero.is_empty() {
        flows.push(Flow::constant(zero));
    }
    flows
}

/// A plain move, with zeros above if the source is shorter.
fn moved(builder: &MeaningBuilder<'_>, to: u32, from: u32) -> Option<Vec<Flow>> {
    let target = operand(builder, to, true)?;
    let immediate = |kind| {
        use OpKind as K;
        matches!(
            kind,
            K::Immediate8
                | K::Immediate16
                | K::Immediate32
                | K::Immediate64
                | K::Immediate8to16
                | K::Immediate8to32
                | K::Immediate8to64
                | K::Immediate32to64
        )
    };
    if immediate(builder.instruction.op_kind(from)) {
        return Some(builder.general());
    }
    let source = operand(builder, from, false)?;
    let bytes = target.bytes.min(source.bytes);
    let flows = vec![Flow::Copy { to: Span { bytes, ..target }, from: Span { bytes, ..source } }];
    let zero = builder.register(to).map_or(Parts::NONE, |register| above(builder, register, bytes));
    Some(with_constant(flows, zero))
}

/// A move with sign extension: above the copy, everything hangs on its top byte.
fn extended(builder: &MeaningBuilder<'_>) -> Option<Vec<Flow>> {
    let target = operand(builder, 0, true)?;
    let source = operand(builder, 1, false)?;
    let bytes = target.bytes.min(source.bytes);
    let low = Flow::Copy { to: Span { bytes, ..target }, from: Span { bytes, ..source } };
    let top = Span { from: source.from + bytes - 1, bytes: 1, ..source };
    let register = builder.register(0)?;
    let zero = builder.zeroed_by(register);
    let sign =
        above(builder, register, bytes).without(&zero).without(&Span { bytes, ..target }.parts());
    let mut flows = vec![low];
    if !sign.is_empty() {
        let mut uses = Uses::values(top.parts());
        if builder.register(1).is_none() {
            uses.reads.push(top);
        }
        flows.push(Flow::combined(sign, uses));
    }
    Some(with_constant(flows, zero))
}

fn stack(builder: &MeaningBuilder<'_>) -> Option<Vec<Flow>> {
    let pushes = builder.instruction.mnemonic() == Mnemonic::Push;
    let (to, from) = if pushes {
        let from = operand(builder, 0, false);
        (builder.writes().first().copied()?, from)
    } else {
        (operand(builder, 0, true)?, builder.reads().first().copied())
    };
    // A constant or a segment register.
    let Some(from) = from else { return Some(builder.general()) };
    let bytes = to.bytes.min(from.bytes);
    Some(vec![Flow::Copy { to: Span { bytes, ..to }, from: Span { bytes, ..from } }])
}

fn leave(builder: &MeaningBuilder<'_>) -> Option<Vec<Flow>> {
    let from = builder.reads().first().copied()?;
    Some(vec![Flow::Copy { to: Span::general(5, 0, 8), from }])
}

fn exchanged(builder: &MeaningBuilder<'_>) -> Option<Vec<Flow>> {
    let mut flows = Vec::new();
    let mut zero = Parts::NONE;
    for (to, from) in [(0, 1), (1, 0)] {
        let (target, source) = (operand(builder, to, true)?, operand(builder, from, false)?);
        zero |= builder.register(to).map_or(Parts::NONE, |register| builder.zeroed_by(register));
        flows.push(Flow::Copy { to: target, from: source });
    }
    if builder.same_registers(0, 1) {
        flows.truncate(1);
    }
    Some(with_constant(flows, zero))
}

/// A string instruction that is not repeated. The pointers move by constants.
fn string(builder: &MeaningBuilder<'_>) -> Option<Vec<Flow>> {
    use Mnemonic as M;
    let bytes = builder.instruction.memory_size().size() as u8;
    let accumulator = Span::general(0, 0, bytes);
    let (read, write) = (builder.reads().first().copied(), builder.writes().first().copied());
    let pointer = |number| {
        let parts = Parts::general(number, 0, 8);
        Flow::combined(parts, Uses::values(parts))
    };
    let mut flows = Vec::new();
    match builder.instruction.mnemonic() {
        M::Stosb | M::Stosw | M::Stosd | M::Stosq => {
            flows.push(Flow::Copy { to: write?, from: accumulator });
            flows.push(pointer(7));
        }
        M::Lodsb | M::Lodsw | M::Lodsd | M::Lodsq => {
            flows.push(Flow::Copy { to: accumulator, from: read? });
            if bytes == 4 {
                flows.push(Flow::constant(Parts::general(0, 4, 4)));
            }
            flows.push(pointer(6));
        }
        _ => {
            flows.push(Flow::Copy { to: write?, from: read? });
            flows.extend([pointer(6), pointer(7)]);
        }
    }
    Some(flows)
}

/// AND or OR of a register with itself: it stays as it is, the flags tell of it.
fn unchanged(builder: &MeaningBuilder<'_>) -> Option<Vec<Flow>> {
    let register = builder.register(0)?;
    let (made, constant) = builder.flags();
    let flags = Flow::combined(made, Uses::values(Parts::of(register)));
    Some(with_constant(vec![flags], constant | builder.zeroed_by(register)))
}

/// CMOV: either value, chosen by flags.
fn conditional(builder: &MeaningBuilder<'_>) -> Option<Vec<Flow>> {
    let to = builder.register(0)?;
    let conditions = Parts::flags(builder.instruction.rflags_read());
    let values = Parts::of(to) | builder.register(1).map_or(Parts::NONE, Parts::of);
    let uses = Uses { values, conditions, reads: builder.reads() };
    Some(with_constant(vec![Flow::combined(Parts::of(to), uses)], builder.zeroed_by(to)))
}
