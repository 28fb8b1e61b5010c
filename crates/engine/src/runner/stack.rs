//! Stacks of the runner's kernel threads, and how to start code on them.
//!
//! Each is one aligned block, so that a signal handler finds out whose it is from its own stack
//! pointer alone, with no thread-local storage:
//!
//! ```text
//! base ── pointer to what is shared of the thread
//!      ── stack of the signal handler
//!      ── stack of the dispatcher
//! base + SIZE
//! ```

use super::thread::SharedState;
use crate::layout;
use crate::sys;
use std::arch::global_asm;

/// Size and alignment of a block.
pub const SIZE: u64 = 1 << 20;
const HANDLER_SIZE: u64 = 256 << 10;
const HANDLER_OFFSET: u64 = 4096;

/// A block for one kernel thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StackBlock(u64);

impl StackBlock {
    /// The block with a number, mapped and empty.
    pub fn map(number: u64) -> Result<Self, i32> {
        let base = layout::STACKS.start + number * SIZE;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: the range is reserved for this block and the number is not in use.
        unsafe { sys::map_fixed(base, SIZE, protection, flags, -1, 0)? };
        Ok(Self(base))
    }

    /// Notes whose stack this is.
    pub fn set_owner(self, thread: *const SharedState) {
        // SAFETY: the first word of a mapped block.
        unsafe { *(self.0 as *mut *const SharedState) = thread };
    }

    /// First address behind the dispatcher's stack.
    pub fn top(self) -> u64 {
        self.0 + SIZE - 64
    }

    /// Tells the kernel where signal handlers of the calling thread run.
    pub fn use_for_signals(self) {
        let stack = libc::stack_t {
            ss_sp: (self.0 + HANDLER_OFFSET) as *mut _,
            ss_flags: 0,
            ss_size: HANDLER_SIZE as usize,
        };
        // SAFETY: the range belongs to the block and lives as long as the thread.
        unsafe { sys::syscall!(libc::SYS_sigaltstack, &raw const stack, 0) };
    }
}

/// Whose stack the caller runs on.
pub fn owner() -> *const SharedState {
    let here: u64;
    // SAFETY: reads a register.
    unsafe { std::arch::asm!("mov {}, rsp", out(reg) here) };
    let base = here & !(SIZE - 1);
    // SAFETY: the runner only executes Rust code on its blocks, once they are in use.
    unsafe { *(base as *const *const SharedState) }
}

unsafe extern "C" {
    fn whydunit_call_on(stack: u64, function: extern "C" fn(u64) -> !, argument: u64) -> !;
    fn whydunit_clone(
        flags: u64,
        stack: u64,
        function: extern "C" fn(u64) -> !,
        argument: u64,
        child_tid: u64,
    ) -> i64;
}

/// Leaves the current stack for good.
pub fn continue_on(block: StackBlock, function: extern "C" fn(u64) -> !, argument: u64) -> ! {
    // SAFETY: the block's stack is free, and nothing returns to the old one.
    unsafe { whydunit_call_on(block.top(), function, argument) }
}

/// Starts a kernel thread (or process, by `flags`) that runs `function` on the block.
///
/// # Safety
/// The block must be free, and `argument` what `function` expects. `child_tid` must stay valid if
/// the flags let the kernel write there.
pub unsafe fn clone_on(
    block: StackBlock,
    flags: u64,
    function: extern "C" fn(u64) -> !,
    argument: u64,
    child_tid: u64,
) -> i64 {
    // SAFETY: the caller's promise.
    unsafe { whydunit_clone(flags, block.top(), function, argument, child_tid) }
}

global_asm!(
    r#"
    .text
    .globl whydunit_call_on
whydunit_call_on:                       // rdi: stack, rsi: function, rdx: argument
    mov rsp, rdi
    mov rdi, rdx
    xor ebp, ebp
    call rsi
    ud2

    .globl whydunit_clone
whydunit_clone:                         // flags, stack, function, argument, child tid
    push rbx
    push r12
    mov rbx, rdx                        // the kernel keeps these two for the child
    mov r12, rcx
    mov r10, r8
    xor edx, edx
    xor r8d, r8d
    mov eax, 56
    syscall
    test rax, rax
    jnz 2f
    xor ebp, ebp                        // in the child, on the new stack
    mov rdi, r12
    call rbx
    ud2
2:
    pop r12
    pop rbx
    ret
    "#
);
