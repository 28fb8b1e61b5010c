//! Signal frames, as the kernel lays them out on the guest's stack, and the way back from them.

use super::handler::ORDER;
use super::{Action, Mask, SignalInfo};
use crate::runner::cpu::{Registers, VECTOR_MASK};
use crate::runner::thread::{Thread, VECTOR_USED, VectorState};

const UCONTEXT: u64 = 8;
const SIGINFO: u64 = UCONTEXT + 304;
const FRAME: u64 = SIGINFO + 128;
const RED_ZONE: u64 = 128;
const FP_BYTES: u64 = VECTOR_USED as u64 + 4;
const MAGIC1: u32 = 0x4650_5853;
const MAGIC2: u32 = 0x4650_5845;
const CLEARED_FLAGS: u64 = 0x100 | 0x400 | 0x1_0000; // TF, DF, RF
const RESTORED_FLAGS: u64 = 0x50dd5; // what a frame may set: AC, OF, DF, TF, SF, ZF, AF, PF, CF

/// The guest's stack cannot take the frame.
#[derive(Debug, PartialEq, Eq)]
pub struct NoStack;

/// Checks whether the guest can be written to or read from; the engine's own safety net.
pub trait GuestMemory {
    /// Copies bytes into the guest.
    fn write(&self, address: u64, bytes: &[u8]) -> bool;
    /// Copies bytes out of the guest.
    fn read(&self, address: u64, bytes: &mut [u8]) -> bool;
}

/// Pushes a frame for a handler and makes the thread run it.
pub fn push(
    registers: &mut Registers,
    thread: &mut Thread,
    action: &Action,
    info: &SignalInfo,
    memory: &impl GuestMemory,
) -> Result<(), NoStack> {
    let on_stack = on_signal_stack(thread, registers.general[4]);
    let mut stack = registers.general[4] - RED_ZONE;
    if action.has(libc::SA_ONSTACK) && !on_stack && thread.signals.stack.1 & libc::SS_DISABLE == 0 {
        stack = thread.signals.stack.0 + thread.signals.stack.2;
    }
    let fpstate = (stack - FP_BYTES) & !63;
    let frame = ((fpstate - FRAME) & !15) - 8;

    let mut bytes = [0u8; FRAME as usize];
    let mut put = |at: u64, value: u64| {
        bytes[at as usize..at as usize + 8].copy_from_slice(&value.to_le_bytes());
    };
    put(0, action.restorer);
    put(UCONTEXT, 7); // UC_FP_XSTATE, UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS
    let (base, mut flags, size) = thread.signals.stack;
    if on_stack {
        flags |= libc::SS_ONSTACK;
    }
    put(UCONTEXT + 16, base);
    put(UCONTEXT + 24, flags as u32 as u64);
    put(UCONTEXT + 32, size);
    for (register, place) in ORDER.iter().enumerate() {
        put(UCONTEXT + 40 + 8 * *place as u64, registers.general[register]);
    }
    put(UCONTEXT + 40 + 128, registers.pc);
    put(UCONTEXT + 40 + 136, registers.flags);
    put(UCONTEXT + 40 + 144, 0x002b_0000_0000_0033); // CS, GS, FS, SS
    put(UCONTEXT + 40 + 152, info.trap.1);
    put(UCONTEXT + 40 + 160, info.trap.0);
    put(UCONTEXT + 40 + 168, thread.signals.mask.0);
    put(UCONTEXT + 40 + 176, info.cr2);
    put(UCONTEXT + 40 + 184, fpstate);
    put(UCONTEXT + 296, thread.signals.mask.0);
    bytes[SIGINFO as usize..].copy_from_slice(&info.raw);

    if !memory.write(fpstate, &fp_image(&thread.vector)) || !memory.write(frame, &bytes) {
        return Err(NoStack);
    }
    registers.general[4] = frame;
    registers.general[7] = info.number() as u64;
    registers.general[6] = frame + SIGINFO;
    registers.general[2] = frame + UCONTEXT;
    registers.general[0] = 0;
    registers.pc = action.handler;
    registers.flags &= !CLEARED_FLAGS;
    *thread.vector = VectorState::initial();
    if thread.signals.stack.1 & SS_AUTODISARM != 0 {
        thread.signals.stack = (0, libc::SS_DISABLE, 0);
    }
    Ok(())
}

/// The alternate stack is forgotten while a handler runs on it.
pub const SS_AUTODISARM: i32 = 1 << 31;

/// Whether the thread runs on its alternate signal stack.
pub fn on_signal_stack(thread: &Thread, stack: u64) -> bool {
    let (base, flags, size) = thread.signals.stack;
    flags & (libc::SS_DISABLE | SS_AUTODISARM) == 0 && stack > base && stack - base <= size
}

/// The state of `sigaltstack` that the guest sees.
pub fn signal_stack_flags(thread: &Thread, stack: u64) -> i32 {
    let flags = thread.signals.stack.1;
    if on_signal_stack(thread, stack) { flags | libc::SS_ONSTACK } else { flags }
}

fn fp_image(vector: &VectorState) -> [u8; FP_BYTES as usize] {
    let mut image = [0; FP_BYTES as usize];
    image[..VECTOR_USED].copy_from_slice(&vector.0[..VECTOR_USED]);
    image[464..468].copy_from_slice(&MAGIC1.to_le_bytes());
    image[468..472].copy_from_slice(&(FP_BYTES as u32).to_le_bytes());
    image[472..480].copy_from_slice(&VECTOR_MASK.to_le_bytes());
    image[480..484].copy_from_slice(&(VECTOR_USED as u32).to_le_bytes());
    image[VECTOR_USED..].copy_from_slice(&MAGIC2.to_le_bytes());
    image
}

/// `rt_sigreturn`: the thread goes on where the frame on its stack says.
pub fn pop(
    registers: &mut Registers,
    thread: &mut Thread,
    memory: &impl GuestMemory,
) -> Result<(), NoStack> {
    let frame = registers.general[4] - 8;
    let mut bytes = [0u8; SIGINFO as usize];
    if !memory.read(frame, &mut bytes) {
        return Err(NoStack);
    }
    let get = |at: u64| {
        u64::from_le_bytes(bytes[at as usize..at as usize + 8].try_into().expect("eight bytes"))
    };
    for (register, place) in ORDER.iter().enumerate() {
        registers.general[register] = get(UCONTEXT + 40 + 8 * *place as u64);
    }
    registers.pc = get(UCONTEXT + 40 + 128);
    let kept = registers.flags & !RESTORED_FLAGS;
    registers.flags = kept | get(UCONTEXT + 40 + 136) & RESTORED_FLAGS;
    thread.signals.mask = Mask(get(UCONTEXT + 296)).without_unblockable();
    let (base, flags, size) = (get(UCONTEXT + 16), get(UCONTEXT + 24) as i32, get(UCONTEXT + 32));
    thread.signals.stack = (base, flags & !libc::SS_ONSTACK, size);
    restore_vector(get(UCONTEXT + 40 + 184), thread, memory)
}

fn restore_vector(
    fpstate: u64,
    thread: &mut Thread,
    memory: &impl GuestMemory,
) -> Result<(), NoStack> {
    if fpstate == 0 {
        *thread.vector = VectorState::initial();
        return Ok(());
    }
    let mut image = [0; VECTOR_USED];
    if !memory.read(fpstate, &mut image) {
        return Err(NoStack);
    }
    let extended = image[464..468] == MAGIC1.to_le_bytes();
    image[464..512].fill(0);
    thread.vector.0[..VECTOR_USED].copy_from_slice(&image);
    if !extended {
        // Legacy FXSAVE image: x87 and SSE only.
        thread.vector.0[512..VECTOR_USED].fill(0);
        thread.vector.0[512] = 3;
    }
    thread.vector.sanitize();
    Ok(())
}
