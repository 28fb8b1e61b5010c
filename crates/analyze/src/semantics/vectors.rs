//! Vector instructions by lane: moves, scalars that leave the rest of the register alone, and
//! packed arithmetic whose lanes do not meet.

use super::builder::MeaningBuilder;
use super::meaning::{Flow, Side, Span, Uses};
use super::parts::{self, Parts};
use iced_x86::{Mnemonic, OpKind, Register};

/// Flows of a vector instruction that the general rule is too coarse for.
pub(super) fn flows(builder: &MeaningBuilder<'_>) -> Option<Vec<Flow>> {
    use Mnemonic as M;
    match builder.instruction.mnemonic() {
        M::Movaps
        | M::Movapd
        | M::Movups
        | M::Movupd
        | M::Movdqa
        | M::Movdqu
        | M::Lddqu
        | M::Movntdq
        | M::Movntps
        | M::Movntpd
        | M::Movntdqa
        | M::Vmovaps
        | M::Vmovapd
        | M::Vmovups
        | M::Vmovupd
        | M::Vmovdqa
        | M::Vmovdqu
        | M::Vlddqu
        | M::Vmovntdq
        | M::Vmovntps
        | M::Vmovntpd
        | M::Vmovntdqa
        | M::Movd
        | M::Movq
        | M::Vmovd
        | M::Vmovq => whole(builder),
        M::Movss | M::Vmovss => low(builder, 4),
        M::Movsd | M::Vmovsd => low(builder, 8),
        M::Movlps | M::Movlpd | M::Vmovlps | M::Vmovlpd => half(builder, 0),
        M::Movhps | M::Movhpd | M::Vmovhps | M::Vmovhpd => half(builder, 8),
        M::Movlhps | M::Vmovlhps | M::Punpcklqdq | M::Vpunpcklqdq | M::Unpcklpd | M::Vunpcklpd => {
            pair(builder, 0, 0)
        }
        M::Movhlps | M::Vmovhlps => pair(builder, 8, 8).map(swapped_halves),
        M::Punpckhqdq | M::Vpunpckhqdq | M::Unpckhpd | M::Vunpckhpd => pair(builder, 8, 8),
        M::Pshufd => shuffled(builder),
        M::Vinserti128 | M::Vinsertf128 => inserted(builder),
        M::Vextracti128 | M::Vextractf128 => extracted(builder),
        M::Pinsrd | M::Pinsrq => element_in(builder),
        M::Pextrd | M::Pextrq => element_out(builder),
        mnemonic if is_scalar(mnemonic) => scalar(builder),
        mnemonic => by_lane(builder, lane_bytes(mnemonic)?),
    }
}

/// A register as a span of `bytes` from `from`.
fn span(register: Register, from: u8, bytes: u8) -> Option<Span> {
    match (parts::general(register), parts::vector(register)) {
        (Some((number, ..)), _) => Some(Span::general(number, from, bytes)),
        (_, Some((number, _))) => Some(Span::vector(number, from, bytes)),
        _ => None,
    }
}

/// Part of operand `index`, which is a register or memory.
fn operand(
    builder: &MeaningBuilder<'_>,
    index: u32,
    write: bool,
    from: u8,
    bytes: u8,
) -> Option<Span> {
    if let Some(register) = builder.register(index) {
        return span(register, from, bytes);
    }
    (builder.instruction.op_kind(index) == OpKind::Memory).then_some(())?;
    let slots = if write { builder.writes() } else { builder.reads() };
    // Memory holds just what is moved, whatever half of the register it goes to.
    slots.first().map(|slot| Span { from: 0, bytes: slot.bytes.min(bytes.into()), ..*slot })
}

fn copy(to: Span, from: Span) -> Flow {
    let bytes = to.bytes.min(from.bytes);
    Flow::Copy { to: Span { bytes, ..to }, from: Span { bytes, ..from } }
}

/// Everything of the target that is above `bytes` and becomes zero.
fn zeros_above(builder: &MeaningBuilder<'_>, to: Register, bytes: u8) -> Option<Flow> {
    let zero = match (parts::general(to), parts::vector(to)) {
        (Some((number, _, _)), _) if bytes < 8 => Parts::general(number, bytes, 8 - bytes),
        (_, Some((number, size))) => {
            let end = if builder.is_vex() { 32 } else { size };
            Parts::vector(number, bytes, end.saturating_sub(bytes))
        }
        _ => Parts::NONE,
    };
    (!zero.is_empty()).then(|| Flow::constant(zero))
}

/// Moves of all there is: vectors, or 4 and 8 bytes with zeros above.
fn whole(builder: &MeaningBuilder<'_>) -> Option<Vec<Flow>> {
    use Mnemonic as M;
    let any_mmx = (0..2).filter_map(|index| builder.register(index)).any(Register::is_mm);
    if any_mmx {
        return None;
    }
    let bytes = match builder.instruction.mnemonic() {
        M::Movd | M::Vmovd | M::Movq | M::Vmovq => {
            let general = (0..2).filter_map(|index| builder.register(index));
            let size = general.filter(|register| register.is_gpr()).map(Register::size).next();
            let memory = builder.memory.first().map(|operand| usize::from(operand.bytes));
            size.or(memory).unwrap_or(8) as u8
        }
        _ => (0..2).filter_map(|index| builder.register(index)).next()?.size() as u8,
    };
    let flow = copy(operand(builder, 0, true, 0, bytes)?, operand(builder, 1, false, 0, bytes)?);
    let zero = builder.register(0).and_then(|to| zeros_above(builder, to, bytes));
    Some(std::iter::once(flow).chain(zero).collect())
}

/// MOVSS and MOVSD: a load clears the rest, a move between registers keeps it.
fn low(builder: &MeaningBuilder<'_>, bytes: u8) -> Option<Vec<Flow>> {
    let last = builder.instruction.op_count() - 1;
    let flow = copy(operand(builder, 0, true, 0, bytes)?, operand(builder, last, false, 0, bytes)?);
    let mut flows = vec![flow];
    if let Some(to) = builder.register(0) {
        if builder.register(last).is_none() {
            flows.extend(zeros_above(builder, to, bytes));
        } else if last == 2 {
            let rest = 16 - bytes;
            flows.push(copy(span(to, bytes, rest)?, operand(builder, 1, false, bytes, rest)?));
            flows.extend(zeros_above(builder, to, 16));
        }
    }
    Some(flows)
}

/// MOVLPS, MOVHPS and their like: eight bytes of memory to or from one half.
fn half(builder: &MeaningBuilder<'_>, at: u8) -> Option<Vec<Flow>> {
    let last = builder.instruction.op_count() - 1;
    if builder.register(0).is_none() {
        return Some(vec![copy(
            operand(builder, 0, true, 0, 8)?,
            operand(builder, last, false, at, 8)?,
        )]);
    }
    let to = builder.register(0)?;
    let mut flows = vec![copy(span(to, at, 8)?, operand(builder, last, false, 0, 8)?)];
    if last == 2 {
        flows.push(copy(span(to, 8 - at, 8)?, operand(builder, 1, false, 8 - at, 8)?));
        flows.extend(zeros_above(builder, to, 16));
    }
    Some(flows)
}

/// The low half from eight bytes of one operand, the high half from eight of the other.
fn pair(builder: &MeaningBuilder<'_>, first: u8, second: u8) -> Option<Vec<Flow>> {
    let to = builder.register(0).filter(|register| register.is_xmm())?;
    let last = builder.instruction.op_count() - 1;
    let left = if last == 2 { 1 } else { 0 };
    let from = operand(builder, last, false, second, 8)?;
    let from = match from.side {
        Side::Memory(_) => Span { from: second.into(), ..from },
        _ => from,
    };
    let mut flows = vec![copy(span(to, 8, 8)?, from)];
    if first != 0 || last == 2 {
        flows.push(copy(span(to, 0, 8)?, operand(builder, left, false, first, 8)?));
    }
    if builder.is_vex() {
        flows.extend(zeros_above(builder, to, 16));
    }
    Some(flows)
}

/// MOVHLPS: the low half from the second operand, the high half stays (or comes from the first).
fn swapped_halves(flows: Vec<Flow>) -> Vec<Flow> {
    let turn = |span: Span| Span { from: 8 - span.from, ..span };
    flows
        .into_iter()
        .filter_map(|flow| match flow {
            Flow::Copy { to, from } => {
                let to = turn(to);
                // The high half onto itself is no definition.
                (to != from).then_some(Flow::Copy { to, from })
            }
            other => Some(other),
        })
        .collect()
}

fn shuffled(builder: &MeaningBuilder<'_>) -> Option<Vec<Flow>> {
    let to = builder.register(0)?;
    let order = builder.instruction.immediate8();
    let memory = builder.register(1).is_none();
    (0..4u8)
        .map(|lane| {
            let from = (order >> (2 * lane) & 3) * 4;
            let source = match memory {
                true => Span { from: from.into(), bytes: 4, ..*builder.reads().first()? },
                false => operand(builder, 1, false, from, 4)?,
            };
            Some(copy(span(to, lane * 4, 4)?, source))
        })
        .collect()
}

fn inserted(builder: &MeaningBuilder<'_>) -> Option<Vec<Flow>> {
    let to = builder.register(0)?;
    let at = (builder.instruction.immediate8() & 1) * 16;
    Some(vec![
        copy(span(to, at, 16)?, operand(builder, 2, false, 0, 16)?),
        copy(span(to, 16 - at, 16)?, operand(builder, 1, false, 16 - at, 16)?),
    ])
}

fn extracted(builder: &MeaningBuilder<'_>) -> Option<Vec<Flow>> {
    let at = (builder.instruction.immediate8() & 1) * 16;
    let flow = copy(operand(builder, 0, true, 0, 16)?, operand(builder, 1, false, at, 16)?);
    let zero = builder.register(0).and_then(|to| zeros_above(builder, to, 16));
    Some(std::iter::once(flow).chain(zero).collect())
}

fn element_bytes(builder: &MeaningBuilder<'_>) -> u8 {
    let eight = [Mnemonic::Pinsrq, Mnemonic::Pextrq].contains(&builder.instruction.mnemonic());
    if eight { 8 } else { 4 }
}

fn element_in(builder: &MeaningBuilder<'_>) -> Option<Vec<Flow>> {
    let bytes = element_bytes(builder);
    let at = builder.instruction.immediate8() & (16 / bytes - 1);
    let to = span(builder.register(0)?, at * bytes, bytes)?;
    Some(vec![copy(to, operand(builder, 1, false, 0, bytes)?)])
}

fn element_out(builder: &MeaningBuilder<'_>) -> Option<Vec<Flow>> {
    let bytes = element_bytes(builder);
    let at = builder.instruction.immediate8() & (16 / bytes - 1);
    let from = span(builder.register(1)?, at * bytes, bytes)?;
    let flow = copy(operand(builder, 0, true, 0, bytes)?, from);
    let zero = builder.register(0).and_then(|to| zeros_above(builder, to, bytes));
    Some(std::iter::once(flow).chain(zero).collect())
}

fn name(mnemonic: Mnemonic) -> String {
    format!("{mnemonic:?}").to_ascii_lowercase()
}

/// Scalar floating point: `…ss` and `…sd`, and conversions from and to integers.
fn is_scalar(mnemonic: Mnemonic) -> bool {
    let name = name(mnemonic);
    let base = name.strip_prefix('v').unwrap_or(&name);
    let arithmetic = ["add", "sub", "mul", "div", "sqrt", "min", "max", "cmp", "round", "rcp"];
    let more = ["rsqrt", "comi", "ucomi", "cvt", "fmadd", "fmsub", "fnmadd", "fnmsub"];
    let known = arithmetic.iter().chain(&more).any(|start| base.starts_with(start));
    let integer = ["cvtss2si", "cvtsd2si", "cvttss2si", "cvttsd2si"].contains(&base);
    known && (base.ends_with("ss") || base.ends_with("sd") || integer)
}

/// Bytes that a scalar instruction takes of a vector register: as its name says.
fn scalar_bytes(name: &str, target: bool) -> u8 {
    let single = |text: &str| text.ends_with("ss") || text.ends_with("si2ss");
    let width = match name.strip_prefix('v').unwrap_or(name).split_once('2') {
        Some((_, to)) if target => single(to),
        Some((from, _)) => single(from),
        None => single(name),
    };
    if width { 4 } else { 8 }
}

/// Only the low element is read and written; a third operand supplies the rest.
fn scalar(builder: &MeaningBuilder<'_>) -> Option<Vec<Flow>> {
    let name = name(builder.instruction.mnemonic());
    let instruction = builder.instruction;
    let last_register = (0..instruction.op_count())
        .rev()
        .find(|index| !is_immediate(instruction.op_kind(*index)))?;
    let three = last_register == 2;
    let fused = name.contains("fmadd") || name.contains("fmsub") || name.contains("fnm");
    let converts = name.contains("cvt");
    let mut values = Parts::NONE;
    for index in 0..=last_register {
        let Some(register) = builder.register(index) else { continue };
        let is_target = index == 0 && (three && !fused || converts || name.contains("sqrt"));
        let is_target = is_target || index == 0 && name.contains("round");
        if is_target || three && converts && index == 1 {
            continue;
        }
        values |= match parts::vector(register) {
            Some((number, _)) => Parts::vector(number, 0, scalar_bytes(&name, false)),
            None => Parts::of(register),
        };
    }
    let uses = Uses { values, reads: builder.reads(), ..Uses::default() };
    let (flags, constant) = builder.flags();
    let mut flows = Vec::new();
    let compares = name.contains("comi");
    let to = builder.register(0)?;
    match (parts::general(to), parts::vector(to)) {
        _ if compares => flows.push(Flow::combined(flags, uses)),
        (Some((number, _, bytes)), _) => {
            flows.push(Flow::combined(Parts::general(number, 0, bytes), uses));
            flows.extend(zeros_above(builder, to, bytes));
        }
        (_, Some((number, _))) => {
            let bytes = scalar_bytes(&name, true);
            flows.push(Flow::combined(Parts::vector(number, 0, bytes), uses));
            if three && !fused {
                let rest = 16 - bytes;
                flows.push(copy(span(to, bytes, rest)?, operand(builder, 1, false, bytes, rest)?));
            }
            if builder.is_vex() {
                flows.extend(zeros_above(builder, to, 16));
            }
        }
        _ => return None,
    }
    if !constant.is_empty() {
        flows.push(Flow::constant(constant));
    }
    flows.retain(|flow| !matches!(flow, Flow::Copy { to, from } if to == from));
    Some(flows)
}

fn is_immediate(kind: OpKind) -> bool {
    !matches!(kind, OpKind::Register | OpKind::Memory)
}

/// How wide the lanes of a packed instruction are that works lane by lane.
fn lane_bytes(mnemonic: Mnemonic) -> Option<u8> {
    let name = name(mnemonic);
    let base = name.strip_prefix('v').unwrap_or(&name);
    let four = [
        "paddb", "paddw", "paddd", "psubb", "psubw", "psubd", "pmullw", "pmulld", "pand", "pandn",
        "por", "pxor", "pcmpeqb", "pcmpeqw", "pcmpeqd", "pcmpgtb", "pcmpgtw", "pcmpgtd", "pminub",
        "pminud", "pminsd", "pminsw", "pmaxub", "pmaxud", "pmaxsd", "pmaxsw", "pavgb", "pavgw",
        "addps", "subps", "mulps", "divps", "minps", "maxps", "andps", "andnps", "orps", "xorps",
        "andpd", "andnpd", "orpd", "xorpd",
    ];
    let eight = [
        "paddq", "psubq", "pcmpeqq", "pcmpgtq", "addpd", "subpd", "mulpd", "divpd", "minpd",
        "maxpd",
    ];
    if four.contains(&base) {
        Some(4)
    } else if eight.contains(&base) {
        Some(8)
    } else {
        None
    }
}

/// Each lane of the target from the same lane of the operands.
fn by_lane(builder: &MeaningBuilder<'_>, width: u8) -> Option<Vec<Flow>> {
    let to = builder.register(0)?;
    let (number, size) = parts::vector(to)?;
    let sources: &[u32] = if builder.instruction.op_count() == 3 { &[1, 2] } else { &[0, 1] };
    if builder.same_registers(sources[0], sources[1]) {
        // Zero idioms, and AND or OR with itself; rare enough for the general rule.
        return None;
    }
    let mut flows = Vec::new();
    for from in (0..size).step_by(width.into()) {
        let mut uses = Uses::default();
        for index in sources {
            match builder.register(*index) {
                Some(register) => uses.values |= span(register, from, width)?.parts(),
                None => {
                    let slot = *builder.reads().first()?;
                    uses.reads.push(Span { from: from.into(), bytes: width.into(), ..slot });
                }
            }
        }
        flows.push(Flow::combined(Parts::vector(number, from, width), uses));
    }
    if builder.is_vex() {
        flows.extend(zeros_above(builder, to, size));
    }
    Some(flows)
}
