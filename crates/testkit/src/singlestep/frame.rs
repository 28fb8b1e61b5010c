//! Signal frames as a processor with x87, SSE and AVX alone has them.
//!
//! The kernel makes room in a frame for all vector state that the processor has; a guest that is
//! not shown AVX-512 finds its handlers' stack elsewhere. Told to, a session moves each frame to
//! where it would be then.

use super::process::{Process, Registers};
use nix::errno::Errno;
use nix::sys::ptrace;

/// Return address, `ucontext`, `siginfo`.
const FRAME: usize = 8 + 304 + 128;
const UCONTEXT: usize = 8;
const SIGINFO: usize = UCONTEXT + 304;
/// Start, flags and size of the alternate stack.
const STACK: usize = UCONTEXT + 16;
const SAVED_RSP: usize = UCONTEXT + 40 + 15 * 8;
const FPSTATE: usize = UCONTEXT + 40 + 23 * 8;
const RED_ZONE: u64 = 128;

/// x87, SSE, header and the upper halves of ymm; a magic number follows.
const VECTORS: usize = 832;
const EXTENDED: usize = VECTORS + MAGIC2.len();
const MASK: u64 = 7;
const MAGIC2: [u8; 4] = 0x4650_5845_u32.to_le_bytes();
/// What the kernel notes in the legacy area: two sizes and the components.
const EXTENDED_SIZE: usize = 468;
const COMPONENTS: usize = 472;
const STATE_SIZE: usize = 480;
const PRESENT: usize = 512;

/// Moves the frame of the handler that was just entered.
pub fn shrink(process: &Process, regs: &mut Registers) -> Result<(), Errno> {
    let (mut frame, mut state) = ([0; FRAME], [0; EXTENDED]);
    process.read(&[(regs.rsp, FRAME)], &mut frame);
    let old_state = word(&frame, FPSTATE);
    process.read(&[(old_state, VECTORS)], &mut state[..VECTORS]);
    let kernels_size = u64::from(half(&state, EXTENDED_SIZE));
    let top = top(&frame, old_state, kernels_size);
    let new_state = (top - EXTENDED as u64) & !63;
    let new_frame = ((new_state - FRAME as u64) & !15) - 8;

    state[EXTENDED_SIZE..EXTENDED_SIZE + 4].copy_from_slice(&(EXTENDED as u32).to_le_bytes());
    put(&mut state, COMPONENTS, MASK);
    state[STATE_SIZE..STATE_SIZE + 4].copy_from_slice(&(VECTORS as u32).to_le_bytes());
    let present = word(&state, PRESENT) & MASK;
    put(&mut state, PRESENT, present);
    state[VECTORS..].copy_from_slice(&MAGIC2);
    put(&mut frame, FPSTATE, new_state);
    process.write(new_state, &state)?;
    process.write(new_frame, &frame)?;
    regs.rsp = new_frame;
    regs.rsi = new_frame + SIGINFO as u64;
    regs.rdx = new_frame + UCONTEXT as u64;
    ptrace::setregs(process.pid, *regs)
}

/// Where the kernel began: below the red zone, or at the top of the alternate stack.
fn top(frame: &[u8], state: u64, size: u64) -> u64 {
    let below = word(frame, SAVED_RSP).wrapping_sub(RED_ZONE);
    if below.wrapping_sub(size) & !63 == state {
        below
    } else {
        word(frame, STACK).wrapping_add(word(frame, STACK + 16))
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|byte| bytes[at + byte]))
}

fn half(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[at + byte]))
}

fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}
