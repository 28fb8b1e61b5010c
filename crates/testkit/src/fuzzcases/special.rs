//! What single instructions need beyond operands: values that make them do something other than
//! fault, and the few bytes of their results that have no one right answer.

use super::draft::{Draft, RAX, RBP, RCX, RDX, RSP};
use super::layout::{CASE_BASES, SCRATCH, SCRATCH_SIZE};
use super::operands::memory_size;
use iced_x86::{Code, Instruction, Mnemonic, OpKind, Register};

/// Values that must be there before operands are drawn.
pub fn before(draft: &mut Draft, code: Code) -> Option<()> {
    let mnemonic = code.mnemonic();
    if code.is_stack_instruction() {
        let stack = draft.choose_stack();
        draft.fix(RSP, stack)?;
    }
    match mnemonic {
        Mnemonic::Leave | Mnemonic::Enter => {
            let frame = draft.choose_stack();
            draft.fix(RBP, frame)
        }
        Mnemonic::Loop | Mnemonic::Loope | Mnemonic::Loopne => fix_counter(draft),
        Mnemonic::Jcxz | Mnemonic::Jecxz | Mnemonic::Jrcxz => fix_counter(draft),
        Mnemonic::Clzero => {
            let spot = draft.choose_spot(64, false);
            draft.fix(RAX, spot)
        }
        _ if takes_component_mask(mnemonic) => {
            let components = draft.random.below(8);
            draft.fix(RAX, components)?;
            draft.fix(RDX, 0)
        }
        Mnemonic::Div | Mnemonic::Idiv if draft.random.chance(2, 3) => {
            let value = draft.random.below(1000);
            draft.fix(RAX, value)?;
            let high = draft.random.pick(&[0, 0, 1]);
            draft.fix(RDX, high)
        }
        _ => Some(()),
    }
}

/// Whether EDX:EAX says which components of the extended state are meant.
fn takes_component_mask(mnemonic: Mnemonic) -> bool {
    saves_extended_state(mnemonic) || matches!(mnemonic, Mnemonic::Xrstor | Mnemonic::Xrstor64)
}

fn saves_extended_state(mnemonic: Mnemonic) -> bool {
    matches!(
        mnemonic,
        Mnemonic::Xsave
            | Mnemonic::Xsave64
            | Mnemonic::Xsavec
            | Mnemonic::Xsavec64
            | Mnemonic::Xsaveopt
            | Mnemonic::Xsaveopt64
    )
}

fn fix_counter(draft: &mut Draft) -> Option<()> {
    let any = draft.random.word();
    let count = draft.random.pick(&[0, 1, 2, 1 << 32, 1 << 32 | 1, u64::MAX, any]);
    draft.fix(RCX, count)
}

/// What depends on the operands that were drawn. `spot` is where the memory operand lies.
pub fn after(draft: &mut Draft, instruction: &mut Instruction) -> Option<()> {
    set_prefixes(draft, instruction)?;
    match instruction.mnemonic() {
        Mnemonic::Cmpxchg | Mnemonic::Cmpxchg8b | Mnemonic::Cmpxchg16b => meet(draft, instruction),
        Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc => {
            bound_bit_offset(draft, instruction)?;
        }
        Mnemonic::Popf | Mnemonic::Popfd | Mnemonic::Popfq => patch_flags(draft),
        Mnemonic::Enter if draft.random.chance(7, 8) => {
            instruction.set_immediate16(8 * draft.random.below(64) as u16);
        }
        Mnemonic::Ldmxcsr | Mnemonic::Vldmxcsr if draft.random.chance(7, 8) => {
            let value = draft.random.below(0x1_0000) as u32;
            draft.patch(draft.spot, &value.to_le_bytes());
        }
        Mnemonic::Fxrstor | Mnemonic::Fxrstor64 if draft.random.chance(7, 8) => {
            let value = draft.random.below(0x1_0000) as u32;
            draft.patch(draft.spot.wrapping_add(24), &value.to_le_bytes());
        }
        Mnemonic::Xrstor | Mnemonic::Xrstor64 if draft.random.chance(7, 8) => patch_area(draft),
        Mnemonic::Fxsave | Mnemonic::Fxsave64 => draft.mask(draft.spot.wrapping_add(6), 18),
        Mnemonic::Fnstenv | Mnemonic::Fnsave => mask_environment(draft, instruction),
        Mnemonic::Wrfsbase | Mnemonic::Wrgsbase | Mnemonic::Rdfsbase | Mnemonic::Rdgsbase => {
            draft.flags |= CASE_BASES;
            fix_base(draft, instruction)?;
        }
        mnemonic if saves_extended_state(mnemonic) => draft.mask(draft.spot.wrapping_add(6), 18),
        _ => {}
    }
    Some(())
}

/// LOCK and REP, where the form allows them.
fn set_prefixes(draft: &mut Draft, instruction: &mut Instruction) -> Option<()> {
    let form = instruction.code().op_code();
    let to_memory = form.op_count() > 0 && instruction.op0_kind() == OpKind::Memory;
    if form.can_use_lock_prefix() && to_memory {
        instruction.set_has_lock_prefix(draft.random.chance(1, 3));
    }
    if !instruction.is_string_instruction() || draft.random.chance(1, 3) {
        return Some(());
    }
    let compares = matches!(
        instruction.mnemonic(),
        Mnemonic::Cmpsb
            | Mnemonic::Cmpsw
            | Mnemonic::Cmpsd
            | Mnemonic::Cmpsq
            | Mnemonic::Scasb
            | Mnemonic::Scasw
            | Mnemonic::Scasd
            | Mnemonic::Scasq
    );
    if compares && draft.random.chance(1, 2) {
        instruction.set_has_repne_prefix(true);
    } else if form.can_use_rep_prefix() {
        instruction.set_has_rep_prefix(true);
    }
    let count = draft.random.below(40);
    draft.fix_pointer(RCX, count)?;
    if compares && draft.random.chance(2, 3) {
        // Memory that compares equal for a while, so that the instruction repeats.
        let fill = draft.random.pick(&[0u8, 0xff, 0x41]);
        draft.fix(RAX, u64::from_le_bytes([fill; 8]))?;
        let run = 512 + draft.random.below(SCRATCH_SIZE - 512);
        draft.patch(SCRATCH, &vec![fill; run as usize]);
        let odd = SCRATCH + draft.random.below(SCRATCH_SIZE);
        draft.patch(odd, &[fill ^ 1]);
    }
    Some(())
}

/// Makes a compare-and-exchange find what it compares with, half of the time.
fn meet(draft: &mut Draft, instruction: &Instruction) {
    if draft.random.chance(1, 2) || instruction.op0_kind() != OpKind::Memory {
        return;
    }
    let low = draft.random.biased();
    let high = draft.random.biased();
    let wide = instruction.mnemonic() == Mnemonic::Cmpxchg16b;
    let half = memory_size(instruction) / 2;
    // Registers an address was made of stay as they are: the comparison then simply fails.
    if draft.fix(RAX, low).is_none() || draft.fix(RDX, high).is_none() {
        return;
    }
    draft.patch(draft.spot, &low.to_le_bytes());
    if instruction.mnemonic() != Mnemonic::Cmpxchg {
        let high = if wide { high.to_le_bytes().to_vec() } else { high.to_le_bytes()[..4].into() };
        draft.patch(draft.spot.wrapping_add(half), &high);
    }
}

/// Keeps a bit string's offset within a page or so of its base, or sends it to unmapped memory;
/// anything between could hit the runtime itself.
fn bound_bit_offset(draft: &mut Draft, instruction: &Instruction) -> Option<()> {
    if instruction.op0_kind() != OpKind::Memory || instruction.op1_kind() != OpKind::Register {
        return Some(());
    }
    let number = instruction.op1_register().number();
    if draft.fixed[number].is_some() {
        return instruction.op1_register().is_gpr16().then_some(());
    }
    let near = draft.random.below(0x1_0000) as i64 - 0x8000;
    let offset = if draft.random.chance(1, 16) { 0x3800_0000 } else { near };
    draft.fix(number, offset as u64)
}

/// What POPF takes: arithmetic flags, DF, ID, now and then AC; never TF or NT.
fn patch_flags(draft: &mut Draft) {
    let mut flags = draft.random.word() & 0x0020_0cd5;
    if draft.random.chance(1, 8) {
        flags |= 0x4_0000;
    }
    if let Some(stack) = draft.fixed[RSP] {
        draft.patch(stack, &flags.to_le_bytes());
    }
}

/// An XSAVE area that XRSTOR accepts.
fn patch_area(draft: &mut Draft) {
    let mut header = [0u8; 64];
    header[0] = draft.random.below(8) as u8;
    draft.patch(draft.spot.wrapping_add(24), &0x1f80u32.to_le_bytes());
    draft.patch(draft.spot.wrapping_add(512), &header);
}

/// The x87 pointers in an environment of 14 or 28 bytes.
fn mask_environment(draft: &mut Draft, instruction: &Instruction) {
    let size = memory_size(instruction);
    let short = size == 14 || size == 94;
    let (from, length) = if short { (6, 8) } else { (12, 16) };
    draft.mask(draft.spot.wrapping_add(from), length);
}

/// A base that is canonical and leads nowhere harmful; the runtime sets it back.
fn fix_base(draft: &mut Draft, instruction: &Instruction) -> Option<()> {
    if !matches!(instruction.mnemonic(), Mnemonic::Wrfsbase | Mnemonic::Wrgsbase) {
        return Some(());
    }
    let register = instruction.op0_register();
    let bits = if register.size() == 8 && register != Register::None { 46 } else { 32 };
    let base = draft.random.word() & ((1 << bits) - 1);
    draft.fix(register.number(), base)
}
