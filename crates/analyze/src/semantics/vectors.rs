//! Vector instructions by lane: moves, scalars that leave the rest of the register alone, and
//! packed arithmetic whose lanes do not meet.

use super::draft::Draft;
use super::meaning::{Flow, Side, Span, Uses};
use super::parts::{self, Parts};
use iced_x86::{Mnemonic, OpKind, Register};

/// Flows of a vector instruction that the general rule is too coarse for.
pub(super) fn flows(draft: &Draft<'_>) -> Option<Vec<Flow>> {
    use Mnemonic as M;
    match draft.instruction.mnemonic() {
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
        | M::Vmovq => whole(draft),
        M::Movss | M::Vmovss => low(draft, 4),
        M::Movsd | M::Vmovsd => low(draft, 8),
        M::Movlps | M::Movlpd | M::Vmovlps | M::Vmovlpd => half(draft, 0),
        M::Movhps | M::Movhpd | M::Vmovhps | M::Vmovhpd => half(draft, 8),
        M::Movlhps | M::Vmovlhps | M::Punpcklqdq | M::Vpunpcklqdq | M::Unpcklpd | M::Vunpcklpd => {
            pair(draft, 0, 0)
        }
        M::Movhlps | M::Vmovhlps => pair(draft, 8, 8).map(swapped_halves),
        M::Punpckhqdq | M::Vpunpckhqdq | M::Unpckhpd | M::Vunpckhpd => pair(draft, 8, 8),
        M::Pshufd => shuffled(draft),
        M::Vinserti128 | M::Vinsertf128 => inserted(draft),
        M::Vextracti128 | M::Vextractf128 => extracted(draft),
        M::Pinsrd | M::Pinsrq => element_in(draft),
        M::Pextrd | M::Pextrq => element_out(draft),
        mnemonic if is_scalar(mnemonic) => scalar(draft),
        mnemonic => by_lane(draft, lane_bytes(mnemonic)?),
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
fn operand(draft: &Draft<'_>, index: u32, write: bool, from: u8, bytes: u8) -> Option<Span> {
    if let Some(register) = draft.register(index) {
        return span(register, from, bytes);
    }
    (draft.instruction.op_kind(index) == OpKind::Memory).then_some(())?;
    let slots = if write { draft.writes() } else { draft.reads() };
    // Memory holds just what is moved, whatever half of the register it goes to.
    slots.first().map(|slot| Span { from: 0, bytes: slot.bytes.min(bytes.into()), ..*slot })
}

fn copy(to: Span, from: Span) -> Flow {
    let bytes = to.bytes.min(from.bytes);
    Flow::Copy { to: Span { bytes, ..to }, from: Span { bytes, ..from } }
}

/// Everything of the target that is above `bytes` and becomes zero.
fn zeros_above(draft: &Draft<'_>, to: Register, bytes: u8) -> Option<Flow> {
    let zero = match (parts::general(to), parts::vector(to)) {
        (Some((number, _, _)), _) if bytes < 8 => Parts::general(number, bytes, 8 - bytes),
        (_, Some((number, size))) => {
            let end = if draft.is_vex() { 32 } else { size };
            Parts::vector(number, bytes, end.saturating_sub(bytes))
        }
        _ => Parts::NONE,
    };
    (!zero.is_empty()).then(|| Flow::constant(zero))
}

/// Moves of all there is: vectors, or 4 and 8 bytes with zeros above.
fn whole(draft: &Draft<'_>) -> Option<Vec<Flow>> {
    use Mnemonic as M;
    let any_mmx = (0..2).filter_map(|index| draft.register(index)).any(Register::is_mm);
    if any_mmx {
        return None;
    }
    let bytes = match draft.instruction.mnemonic() {
        M::Movd | M::Vmovd | M::Movq | M::Vmovq => {
            let general = (0..2).filter_map(|index| draft.register(index));
            let size = general.filter(|register| register.is_gpr()).map(Register::size).next();
            let memory = draft.memory.first().map(|operand| usize::from(operand.bytes));
            size.or(memory).unwrap_or(8) as u8
        }
        _ => (0..2).filter_map(|index| draft.register(index)).next()?.size() as u8,
    };
    let flow = copy(operand(draft, 0, true, 0, bytes)?, operand(draft, 1, false, 0, bytes)?);
    let zero = draft.register(0).and_then(|to| zeros_above(draft, to, bytes));
    Some(std::iter::once(flow).chain(zero).collect())
}

/// MOVSS and MOVSD: a load clears the rest, a move between registers keeps it.
fn low(draft: &Draft<'_>, bytes: u8) -> Option<Vec<Flow>> {
    let last = draft.instruction.op_count() - 1;
    let flow = copy(operand(draft, 0, true, 0, bytes)?, operand(draft, last, false, 0, bytes)?);
    let mut flows = vec![flow];
    if let Some(to) = draft.register(0) {
        if draft.register(last).is_none() {
            flows.extend(zeros_above(draft, to, bytes));
        } else if last == 2 {
            let rest = 16 - bytes;
            flows.push(copy(span(to, bytes, rest)?, operand(draft, 1, false, bytes, rest)?));
            flows.extend(zeros_above(draft, to, 16));
        }
    }
    Some(flows)
}

/// MOVLPS, MOVHPS and their like: eight bytes of memory to or from one half.
fn half(draft: &Draft<'_>, at: u8) -> Option<Vec<Flow>> {
    let last = draft.instruction.op_count() - 1;
    if draft.register(0).is_none() {
        return Some(vec![copy(
            operand(draft, 0, true, 0, 8)?,
            operand(draft, last, false, at, 8)?,
        )]);
    }
    let to = draft.register(0)?;
    let mut flows = vec![copy(span(to, at, 8)?, operand(draft, last, false, 0, 8)?)];
    if last == 2 {
        flows.push(copy(span(to, 8 - at, 8)?, operand(draft, 1, false, 8 - at, 8)?));
        flows.extend(zeros_above(draft, to, 16));
    }
    Some(flows)
}

/// The low half from eight bytes of one operand, the high half from eight of the other.
fn pair(draft: &Draft<'_>, first: u8, second: u8) -> Option<Vec<Flow>> {
    let to = draft.register(0).filter(|register| register.is_xmm())?;
    let last = draft.instruction.op_count() - 1;
    let left = if last == 2 { 1 } else { 0 };
    let from = operand(draft, last, false, second, 8)?;
    let from = match from.side {
        Side::Memory(_) => Span { from: second.into(), ..from },
        _ => from,
    };
    let mut flows = vec![copy(span(to, 8, 8)?, from)];
    if first != 0 || last == 2 {
        flows.push(copy(span(to, 0, 8)?, operand(draft, left, false, first, 8)?));
    }
    if draft.is_vex() {
        flows.extend(zeros_above(draft, to, 16));
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

fn shuffled(draft: &Draft<'_>) -> Option<Vec<Flow>> {
    let to = draft.register(0)?;
    let order = draft.instruction.immediate8();
    let memory = draft.register(1).is_none();
    (0..4u8)
        .map(|lane| {
            let from = (order >> (2 * lane) & 3) * 4;
            let source = match memory {
                true => Span { from: from.into(), bytes: 4, ..*draft.reads().first()? },
                false => operand(draft, 1, false, from, 4)?,
            };
            Some(copy(span(to, lane * 4, 4)?, source))
        })
        .collect()
}

fn inserted(draft: &Draft<'_>) -> Option<Vec<Flow>> {
    let to = draft.register(0)?;
    let at = (draft.instruction.immediate8() & 1) * 16;
    Some(vec![
        copy(span(to, at, 16)?, operand(draft, 2, false, 0, 16)?),
        copy(span(to, 16 - at, 16)?, operand(draft, 1, false, 16 - at, 16)?),
    ])
}

fn extracted(draft: &Draft<'_>) -> Option<Vec<Flow>> {
    let at = (draft.instruction.immediate8() & 1) * 16;
    let flow = copy(operand(draft, 0, true, 0, 16)?, operand(draft, 1, false, at, 16)?);
    let zero = draft.register(0).and_then(|to| zeros_above(draft, to, 16));
    Some(std::iter::once(flow).chain(zero).collect())
}

fn element_bytes(draft: &Draft<'_>) -> u8 {
    let eight = [Mnemonic::Pinsrq, Mnemonic::Pextrq].contains(&draft.instruction.mnemonic());
    if eight { 8 } else { 4 }
}

fn element_in(draft: &Draft<'_>) -> Option<Vec<Flow>> {
    let bytes = element_bytes(draft);
    let at = draft.instruction.immediate8() & (16 / bytes - 1);
    let to = span(draft.register(0)?, at * bytes, bytes)?;
    Some(vec![copy(to, operand(draft, 1, false, 0, bytes)?)])
}

fn element_out(draft: &Draft<'_>) -> Option<Vec<Flow>> {
    let bytes = element_bytes(draft);
    let at = draft.instruction.immediate8() & (16 / bytes - 1);
    let from = span(draft.register(1)?, at * bytes, bytes)?;
    let flow = copy(operand(draft, 0, true, 0, bytes)?, from);
    let zero = draft.register(0).and_then(|to| zeros_above(draft, to, bytes));
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
fn scalar(draft: &Draft<'_>) -> Option<Vec<Flow>> {
    let name = name(draft.instruction.mnemonic());
    let instruction = draft.instruction;
    let last_register = (0..instruction.op_count())
        .rev()
        .find(|index| !is_immediate(instruction.op_kind(*index)))?;
    let three = last_register == 2;
    let fused = name.contains("fmadd") || name.contains("fmsub") || name.contains("fnm");
    let converts = name.contains("cvt");
    let mut values = Parts::NONE;
    for index in 0..=last_register {
        let Some(register) = draft.register(index) else { continue };
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
    let uses = Uses { values, reads: draft.reads(), ..Uses::default() };
    let (flags, constant) = draft.flags();
    let mut flows = Vec::new();
    let compares = name.contains("comi");
    let to = draft.register(0)?;
    match (parts::general(to), parts::vector(to)) {
        _ if compares => flows.push(Flow::combined(flags, uses)),
        (Some((number, _, bytes)), _) => {
            flows.push(Flow::combined(Parts::general(number, 0, bytes), uses));
            flows.extend(zeros_above(draft, to, bytes));
        }
        (_, Some((number, _))) => {
            let bytes = scalar_bytes(&name, true);
            flows.push(Flow::combined(Parts::vector(number, 0, bytes), uses));
            if three && !fused {
                let rest = 16 - bytes;
                flows.push(copy(span(to, bytes, rest)?, operand(draft, 1, false, bytes, rest)?));
            }
            if draft.is_vex() {
                flows.extend(zeros_above(draft, to, 16));
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
fn by_lane(draft: &Draft<'_>, width: u8) -> Option<Vec<Flow>> {
    let to = draft.register(0)?;
    let (number, size) = parts::vector(to)?;
    let sources: &[u32] = if draft.instruction.op_count() == 3 { &[1, 2] } else { &[0, 1] };
    if draft.same_registers(sources[0], sources[1]) {
        // Zero idioms, and AND or OR with itself; rare enough for the general rule.
        return None;
    }
    let mut flows = Vec::new();
    for from in (0..size).step_by(width.into()) {
        let mut uses = Uses::default();
        for index in sources {
            match draft.register(*index) {
                Some(register) => uses.values |= span(register, from, width)?.parts(),
                None => {
                    let slot = *draft.reads().first()?;
                    uses.reads.push(Span { from: from.into(), bytes: width.into(), ..slot });
                }
            }
        }
        flows.push(Flow::combined(Parts::vector(number, from, width), uses));
    }
    if draft.is_vex() {
        flows.extend(zeros_above(draft, to, size));
    }
    Some(flows)
}
