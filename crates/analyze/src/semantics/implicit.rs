//! Instructions whose operands are not all written down, or whose results hang on some of their
//! operands only.

use super::builder::MeaningBuilder;
use super::meaning::{Flow, How, Span, Uses};
use super::parts::{self, Parts};
use iced_x86::{Instruction, Mnemonic, Register};

/// Registers that are read (or written) without being operands, where an address could hide that
/// they are values too.
pub(super) fn registers(instruction: &Instruction, write: bool) -> &'static [Register] {
    use Mnemonic as M;
    use Register as R;
    let one_operand = instruction.op_count() == 1;
    let bytes = || {
        instruction.op0_kind() == iced_x86::OpKind::Register
            && instruction.op0_register().size() == 1
            || instruction.memory_size().size() == 1
    };
    match instruction.mnemonic() {
        M::Mul | M::Imul if one_operand => match (write, bytes()) {
            (false, true) => &[R::AL],
            (true, true) => &[R::AX],
            (false, false) => &[R::RAX],
            (true, false) => &[R::RAX, R::RDX],
        },
        M::Div | M::Idiv if bytes() => &[R::AX],
        M::Div | M::Idiv => &[R::RAX, R::RDX],
        _ => &[],
    }
}

/// Flows of an instruction that the general rule is too coarse for.
pub(super) fn flows(builder: &MeaningBuilder<'_>) -> Option<Vec<Flow>> {
    use Mnemonic as M;
    match builder.instruction.mnemonic() {
        M::Lea => lea(builder),
        M::Call => Some(builder.writes().into_iter().map(constant_write).collect()),
        M::Ret | M::Jmp => Some(Vec::new()),
        M::Syscall => {
            Some(vec![Flow::constant(Parts::of(Register::RCX) | Parts::of(Register::R11))])
        }
        M::Cbw | M::Cwde | M::Cdqe | M::Cwd | M::Cdq | M::Cqo => Some(widen(builder)),
        M::Xadd => Some(exchange_add(builder)),
        M::Cmpxchg => Some(compare_exchange(builder)),
        _ => None,
    }
}

fn constant_write(write: Span) -> Flow {
    Flow::Make { parts: Parts::NONE, write: Some(write), uses: Uses::default(), how: How::Combined }
}

/// The registers of the address are values here, and nothing is read.
fn lea(builder: &MeaningBuilder<'_>) -> Option<Vec<Flow>> {
    let instruction = builder.instruction;
    let to = builder.register(0)?;
    let of = |register| if register == Register::None { Parts::NONE } else { Parts::of(register) };
    let values = of(instruction.memory_base()) | of(instruction.memory_index());
    let zeroed = builder.zeroed_by(to);
    let parts = Parts::of(to).without(&zeroed);
    let made = Flow::Make { parts, write: None, uses: Uses::values(values), how: How::Offset };
    let zero = (!zeroed.is_empty()).then(|| Flow::constant(zeroed));
    Some(std::iter::once(made).chain(zero).collect())
}

/// Sign extensions within the accumulator: only the top byte of the narrow value goes in.
fn widen(builder: &MeaningBuilder<'_>) -> Vec<Flow> {
    use Mnemonic as M;
    let (target, top) = match builder.instruction.mnemonic() {
        M::Cbw => (Parts::general(0, 1, 1), 0),
        M::Cwde => (Parts::general(0, 2, 2), 1),
        M::Cdqe => (Parts::general(0, 4, 4), 3),
        M::Cwd => (Parts::general(2, 0, 2), 1),
        M::Cdq => (Parts::general(2, 0, 4), 3),
        _ => (Parts::general(2, 0, 8), 7),
    };
    let uses = Uses::values(Parts::general(0, top, 1));
    let mut flows = vec![Flow::combined(target, uses)];
    match builder.instruction.mnemonic() {
        M::Cwde => flows.push(Flow::constant(Parts::general(0, 4, 4))),
        M::Cdq => flows.push(Flow::constant(Parts::general(2, 4, 4))),
        _ => {}
    }
    flows
}

/// XADD: the register takes the old value of the target, which takes the sum.
fn exchange_add(builder: &MeaningBuilder<'_>) -> Vec<Flow> {
    let uses = Uses { values: builder.values(), reads: builder.reads(), ..Uses::default() };
    let (flags, _) = builder.flags();
    let target = builder.register(0).map_or(Parts::NONE, Parts::of);
    let write = builder.writes().first().copied();
    let zeroed = (0..2)
        .filter_map(|operand| builder.register(operand))
        .fold(Parts::NONE, |all, register| all | builder.zeroed_by(register));
    let mut flows =
        vec![Flow::Make { parts: target | flags, write, uses: uses.clone(), how: How::Offset }];
    if let Some((number, from, bytes)) = builder.register(1).and_then(parts::general) {
        let to = Span::general(number, from, bytes);
        let old = match builder.register(0).and_then(parts::general) {
            Some((number, from, bytes)) => Some(Span::general(number, from, bytes)),
            None => builder.reads().first().copied(),
        };
        match old {
            Some(from) if to.parts() != target => flows.push(Flow::Copy { to, from }),
            _ => {}
        }
    }
    if !zeroed.is_empty() {
        flows.push(Flow::constant(zeroed));
    }
    flows
}

/// CMPXCHG: the comparison chooses which value target and accumulator have afterwards.
fn compare_exchange(builder: &MeaningBuilder<'_>) -> Vec<Flow> {
    let bytes = builder.register(1).map_or(8, |register| register.size() as u8);
    let accumulator = Parts::general(0, 0, bytes);
    let target = builder.register(0).map_or(Parts::NONE, Parts::of);
    let source = builder.register(1).map_or(Parts::NONE, Parts::of);
    let reads = builder.reads();
    let (flags, _) = builder.flags();
    let compared = Uses { values: accumulator | target, reads: reads.clone(), ..Uses::default() };
    let mut flows = vec![Flow::combined(flags, compared)];
    let stored = Uses { values: source | target, conditions: accumulator, reads: reads.clone() };
    let write = builder.writes().first().copied();
    let aliased = target.meets(&accumulator);
    let parts = target.without(&accumulator);
    flows.push(Flow::Make { parts, write, uses: stored, how: How::Combined });
    let mut values = accumulator | target;
    if aliased {
        values |= source;
    }
    let loaded = Uses { values, reads, ..Uses::default() };
    flows.push(Flow::combined(accumulator, loaded));
    flows
}
