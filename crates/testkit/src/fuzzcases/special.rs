//! What single instructions need beyond operands: values that make them do something other than
//! fault, and the few bytes of their results that have no one right answer.

use super::builder::{InstructionBuilder, RAX, RBP, RCX, RDX, RSP};
use super::layout::{CASE_BASES, SCRATCH, SCRATCH_SIZE};
use super::operands::memory_size;
use iced_x86::{Code, Instruction, Mnemonic, OpKind, Register};

/// Values that must be there before operands are drawn.
pub fn before(builder: &mut InstructionBuilder, code: Code) -> Option<()> {
    let mnemonic = code.mnemonic();
    if code.is_stack_instruction() {
        let stack = builder.choose_stack();
        builder.fix(RSP, stack)?;
    }
    match mnemonic {
        Mnemonic::Leave | Mnemonic::Enter => {
            let frame = builder.choose_stack();
            builder.fix(RBP, frame)
        }
        Mnemonic::Loop | Mnemonic::Loope | Mnemonic::Loopne => fix_counter(builder),
        Mnemonic::Jcxz | Mnemonic::Jecxz | Mnemonic::Jrcxz => fix_counter(builder),
        Mnemonic::Clzero => {
            let spot = builder.choose_spot(64, false);
            builder.fix(RAX, spot)
        }
        _ if takes_component_mask(mnemonic) => {
            let components = builder.random.below(8);
            builder.fix(RAX, components)?;
            builder.fix(RDX, 0)
        }
        Mnemonic::Div | Mnemonic::Idiv if builder.random.chance(2, 3) => {
            let value = builder.random.below(1000);
            builder.fix(RAX, value)?;
            let high = builder.random.pick(&[0, 0, 1]);
            builder.fix(RDX, high)
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

fn fix_counter(builder: &mut InstructionBuilder) -> Option<()> {
    let any = builder.random.word();
    let count = builder.random.pick(&[0, 1, 2, 1 << 32, 1 << 32 | 1, u64::MAX, any]);
    builder.fix(RCX, count)
}

/// What depends on the operands that were drawn. `spot` is where the memory operand lies.
pub fn after(builder: &mut InstructionBuilder, instruction: &mut Instruction) -> Option<()> {
    set_prefixes(builder, instruction)?;
    match instruction.mnemonic() {
        Mnemonic::Cmpxchg | Mnemonic::Cmpxchg8b | Mnemonic::Cmpxchg16b => {
            meet(builder, instruction)
        }
        Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc => {
            bound_bit_offset(builder, instruction)?;
        }
        Mnemonic::Popf | Mnemonic::Popfd | Mnemonic::Popfq => patch_flags(builder),
        Mnemonic::Enter if builder.random.chance(7, 8) => {
            instruction.set_immediate16(8 * builder.random.below(64) as u16);
        }
        Mnemonic::Ldmxcsr | Mnemonic::Vldmxcsr if builder.random.chance(7, 8) => {
            let value = builder.random.below(0x1_0000) as u32;
            builder.patch(builder.spot, &value.to_le_bytes());
        }
        Mnemonic::Fxrstor | Mnemonic::Fxrstor64 if builder.random.chance(7, 8) => {
            let value = builder.random.below(0x1_0000) as u32;
            builder.patch(builder.spot.wrapping_add(24), &value.to_le_bytes());
        }
        Mnemonic::Xrstor | Mnemonic::Xrstor64 if builder.random.chance(7, 8) => patch_area(builder),
        Mnemonic::Fxsave | Mnemonic::Fxsave64 => builder.mask(builder.spot.wrapping_add(6), 18),
        Mnemonic::Fnstenv | Mnemonic::Fnsave => mask_environment(builder, instruction),
        Mnemonic::Wrfsbase | Mnemonic::Wrgsbase | Mnemonic::Rdfsbase | Mnemonic::Rdgsbase => {
            builder.flags |= CASE_BASES;
            fix_base(builder, instruction)?;
        }
        mnemonic if saves_extended_state(mnemonic) => {
            builder.mask(builder.spot.wrapping_add(6), 18)
        }
        _ => {}
    }
    Some(())
}

/// LOCK and REP, where the form allows them.
fn set_prefixes(builder: &mut InstructionBuilder, instruction: &mut Instruction) -> Option<()> {
    let form = instruction.code().op_code();
    let to_memory = form.op_count() > 0 && instruction.op0_kind() == OpKind::Memory;
    if form.can_use_lock_prefix() && to_memory {
        instruction.set_has_lock_prefix(builder.random.chance(1, 3));
    }
    if !instruction.is_string_instruction() || builder.random.chance(1, 3) {
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
    if compares && builder.random.chance(1, 2) {
        instruction.set_has_repne_prefix(true);
    } else if form.can_use_rep_prefix() {
        instruction.set_has_rep_prefix(true);
    }
    let count = builder.random.below(40);
    builder.fix_pointer(RCX, count)?;
    if compares && builder.random.chance(2, 3) {
        // Memory that compares equal for a while, so that the instruction repeats.
        let fill = builder.random.pick(&[0u8, 0xff, 0x41]);
        builder.fix(RAX, u64::from_le_bytes([fill; 8]))?;
        let run = 512 + builder.random.below(SCRATCH_SIZE - 512);
        builder.patch(SCRATCH, &vec![fill; run as usize]);
        let odd = SCRATCH + builder.random.below(SCRATCH_SIZE);
        builder.patch(odd, &[fill ^ 1]);
    }
    Some(())
}

/// Makes a compare-and-exchange find what it compares with, half of the time.
fn meet(builder: &mut InstructionBuilder, instruction: &Instruction) {
    if builder.random.chance(1, 2) || instruction.op0_kind() != OpKind::Memory {
        return;
    }
    let low = builder.random.biased();
    let high = builder.random.biased();
    let wide = instruction.mnemonic() == Mnemonic::Cmpxchg16b;
    let half = memory_size(instruction) / 2;
    // Registers an address was made of stay as they are: the comparison then simply fails.
    if builder.fix(RAX, low).is_none() || builder.fix(RDX, high).is_none() {
        return;
    }
    builder.patch(builder.spot, &low.to_le_bytes());
    if instruction.mnemonic() != Mnemonic::Cmpxchg {
        let high = if wide { high.to_le_bytes().to_vec() } else { high.to_le_bytes()[..4].into() };
        builder.patch(builder.spot.wrapping_add(half), &high);
    }
}

/// Keeps a bit string's offset within a page or so of its base, or sends it to unmapped memory;
/// anything between could hit the runtime itself.
fn bound_bit_offset(builder: &mut InstructionBuilder, instruction: &Instruction) -> Option<()> {
    if instruction.op0_kind() != OpKind::Memory || instruction.op1_kind() != OpKind::Register {
        return Some(());
    }
    let number = instruction.op1_register().number();
    if builder.fixed[number].is_some() {
        return instruction.op1_register().is_gpr16().then_some(());
    }
    let near = builder.random.below(0x1_0000) as i64 - 0x8000;
    let offset = if builder.random.chance(1, 16) { 0x3800_0000 } else { near };
    builder.fix(number, offset as u64)
}

/// What POPF takes: arithmetic flags, DF, ID, now and then AC; never TF or NT.
fn patch_flags(builder: &mut InstructionBuilder) {
    let mut flags = builder.random.word() & 0x0020_0cd5;
    if builder.random.chance(1, 8) {
        flags |= 0x4_0000;
    }
    if let Some(stack) = builder.fixed[RSP] {
        builder.patch(stack, &flags.to_le_bytes());
    }
}

/// An XSAVE area that XRSTOR accepts.
fn patch_area(builder: &mut InstructionBuilder) {
    let mut header = [0u8; 64];
    header[0] = builder.random.below(8) as u8;
    builder.patch(builder.spot.wrapping_add(24), &0x1f80u32.to_le_bytes());
    builder.patch(builder.spot.wrapping_add(512), &header);
}

/// The x87 pointers in an environment of 14 or 28 bytes.
fn mask_environment(builder: &mut InstructionBuilder, instruction: &Instruction) {
    let size = memory_size(instruction);
    let short = size == 14 || size == 94;
    let (from, length) = if short { (6, 8) } else { (12, 16) };
    builder.mask(builder.spot.wrapping_add(from), length);
}

/// A base that is canonical and leads nowhere harmful; the runtime sets it back.
fn fix_base(builder: &mut InstructionBuilder, instruction: &Instruction) -> Option<()> {
    if !matches!(instruction.mnemonic(), Mnemonic::Wrfsbase | Mnemonic::Wrgsbase) {
        return Some(());
    }
    let register = instruction.op0_register();
    let bits = if register.size() == 8 && register != Register::None { 46 } else { 32 };
    let base = builder.random.word() & ((1 << bits) - 1);
    builder.fix(register.number(), base)
}
