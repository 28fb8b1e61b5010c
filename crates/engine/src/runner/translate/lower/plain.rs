//! Instructions that run as they are, or nearly so.

use super::{ExitKind, Lower, SLOT_SCRATCH};
use crate::runner::cpu;
use crate::runner::cpu::reg::{RAX, RBP, RBX, RCX, RDI, RDX, RSI, RSP};
use crate::runner::translate::emit::Condition;
use crate::runner::translate::facts::{Set, number};
use crate::runner::translate::superblock::Guest;
use iced_x86::Code;

impl Lower<'_> {
    /// Control never goes on behind a trap. But INT3 is reported there, which must still be inside
    /// the translation; and the number of its first exit is the name of a superblock in events.
    pub(super) fn trap(&mut self) {
        self.plain();
        let next = self.guest().instruction.next_ip();
        self.stop(ExitKind::Direct(next));
    }

    /// An instruction that runs as it is, but for an operand relative to the program counter.
    pub(super) fn plain(&mut self) {
        let guest = self.guest();
        if guest.is_pc_relative() {
            self.pc_relative();
        } else if is_xsave(guest) {
            self.masked_xsave();
        } else if let Code::Popfq | Code::Popfw = guest.instruction.code() {
            self.pop_flags();
        } else if guest.instruction.is_invalid() {
            self.emit.raw(&[0x0f, 0x0b]);
        } else {
            let (bytes, length) = (guest.bytes, guest.instruction.len());
            self.emit.raw(&bytes[..length]);
        }
    }

    /// With the trap flag the guest would step through our code: then the engine pops. The flags
    /// are about to be overwritten, and the test reads what POPF reads, so it faults where POPF
    /// would.
    pub(super) fn pop_flags(&mut self) {
        let (bytes, length) = (self.guest().bytes, self.guest().instruction.len());
        let pc = self.guest().pc();
        if self.guest().instruction.code() == Code::Popfw {
            self.emit.raw(&[0x66, 0xf7, 0x04, 0x24, 0x00, 0x01]); // test word ptr [rsp], 0x100
        } else {
            self.emit.raw(&[0x48, 0xf7, 0x04, 0x24, 0x00, 0x01, 0, 0]); // test qword ptr …
        }
        let hole = self.emit.branch_hole(Condition::NOT_EQUAL);
        self.leave(hole, ExitKind::Emulate(pc), false, false);
        self.emit.raw(&bytes[..length]);
    }

    /// The cache is far from the guest's code: the address goes through a register.
    pub(super) fn pc_relative(&mut self) {
        let guest = self.guest();
        let address = guest.instruction.ip_rel_memory_address();
        let loaded = whole_load(guest);
        if guest.instruction.mnemonic() == iced_x86::Mnemonic::Lea
            && let Some(register) = loaded
        {
            let wide = guest.instruction.op0_register().is_gpr64();
            let value = if wide { address } else { address & 0xffff_ffff };
            self.emit.load_constant(register, value);
            return;
        }
        let scratch = loaded
            .filter(|register| matches!(*register, RAX | RCX | RDX | RBX | RSI | RDI))
            .unwrap_or_else(|| free_low_register(self.taken_registers(guest.facts.uses)));
        let rewritten = with_base(guest, scratch);
        let overwritten = Some(scratch) == loaded;
        self.spill(scratch, SLOT_SCRATCH);
        self.emit.load_constant(scratch, address);
        self.emit.raw(&rewritten);
        if overwritten {
            self.spills = self.spills.without(scratch);
        } else {
            self.unspill(scratch, SLOT_SCRATCH);
        }
    }

    /// The guest believes in x87, SSE and AVX only; other state must not be stored over what it
    /// has behind its save area.
    pub(super) fn masked_xsave(&mut self) {
        let guest = self.guest();
        let (bytes, length) = (guest.bytes, guest.instruction.len());
        self.spill(RAX, SLOT_SCRATCH);
        // movzx eax, al; and eax, 7 would touch flags: two bits of arithmetic by LEA-free means.
        self.emit.raw(&[0x0f, 0xb6, 0xc0]);
        self.emit.raw(&[0x0f, 0xb6, 0x80]);
        let table = XSAVE_MASKS.as_ptr() as u64;
        self.emit.raw(&(table as u32).to_le_bytes());
        self.emit.raw(&bytes[..length]);
        self.unspill(RAX, SLOT_SCRATCH);
    }
}

/// `XSAVE_MASKS[low byte of eax]` is what the guest may have of it.
static XSAVE_MASKS: [u8; 256] = {
    let mut masks = [0; 256];
    let mut index = 0;
    while index < 256 {
        masks[index] = index as u8 & cpu::VECTOR_MASK as u8;
        index += 1;
    }
    masks
};

fn is_xsave(guest: &Guest) -> bool {
    use iced_x86::Mnemonic as M;
    matches!(
        guest.instruction.mnemonic(),
        M::Xsave
            | M::Xsave64
            | M::Xsavec
            | M::Xsavec64
            | M::Xsaveopt
            | M::Xsaveopt64
            | M::Xrstor
            | M::Xrstor64
    )
}

/// The general register that the instruction does nothing but load, if it is such a one.
fn whole_load(guest: &Guest) -> Option<u8> {
    use iced_x86::Mnemonic as M;
    let instruction = &guest.instruction;
    let loads = matches!(instruction.mnemonic(), M::Mov | M::Lea | M::Movzx | M::Movsx | M::Movsxd);
    let register = instruction.op0_register();
    let whole = register.is_gpr32() || register.is_gpr64();
    if loads && whole { number(register) } else { None }
}

/// A register below r8 that the instruction does not use.
fn free_low_register(uses: Set) -> u8 {
    [RAX, RSI, RDI, RDX, RCX, RBX]
        .into_iter()
        .find(|register| !uses.has(*register))
        .expect("no instruction with a memory operand uses six registers more")
}

/// The instruction with `[scratch]` in place of its operand relative to the program counter.
/// `scratch` is below r8 and neither rsp nor rbp, so neither SIB nor displacement is needed.
fn with_base(guest: &Guest, scratch: u8) -> Vec<u8> {
    debug_assert!(scratch < 8 && scratch != RSP && scratch != RBP);
    let bytes = guest.bytes();
    let modrm = displacement_offset(guest) - 1;
    let mut out = Vec::with_capacity(15);
    out.extend_from_slice(&bytes[..modrm]);
    clear_base_extension(&mut out);
    out.push(bytes[modrm] & 0x38 | scratch);
    out.extend_from_slice(&bytes[modrm + 5..]);
    out
}

fn displacement_offset(guest: &Guest) -> usize {
    // The displacement is the last field but for immediates.
    let mut decoder =
        iced_x86::Decoder::with_ip(64, guest.bytes(), guest.pc(), iced_x86::DecoderOptions::NONE);
    let instruction = decoder.decode();
    decoder.get_constant_offsets(&instruction).displacement_offset()
}

/// Clears the bit that would make the base register r8 or above, in REX or VEX.
fn clear_base_extension(prefixes: &mut [u8]) {
    let Some(first) = prefixes.iter().position(|byte| {
        !matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3)
    }) else {
        return;
    };
    match prefixes[first] {
        0x40..=0x4f => prefixes[first] &= !1,
        0xc4 if prefixes.len() > first + 1 => prefixes[first + 1] |= 0x20,
        _ => {}
    }
}
