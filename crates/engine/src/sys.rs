//! Raw system calls of the runner.
//!
//! The runner never goes through libc for these: libc keeps `errno` in thread-local storage and
//! the runner's kernel threads share one such block (docs/internals/engine.md).

use crate::layout;
use std::arch::asm;

/// What the kernel answers: a value, or a negated error number.
pub type Answer = i64;

/// Makes a system call.
///
/// # Safety
/// The call must be one whose effects on memory and descriptors the caller has accounted for.
#[inline]
pub unsafe fn call(number: i64, arguments: [u64; 6]) -> Answer {
    let answer: i64;
    // SAFETY: the register assignment is the kernel's calling convention; what the call does is
    // the caller's promise.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => answer,
            in("rdi") arguments[0],
            in("rsi") arguments[1],
            in("rdx") arguments[2],
            in("r10") arguments[3],
            in("r8") arguments[4],
            in("r9") arguments[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    answer
}

/// A system call with fewer than six arguments; the rest are zero.
macro_rules! syscall {
    ($number:expr $(, $argument:expr)* $(,)?) => {{
        let given = [$($argument as u64),*];
        let mut arguments = [0u64; 6];
        arguments[..given.len()].copy_from_slice(&given);
        $crate::sys::call($number as i64, arguments)
    }};
}
pub(crate) use syscall;

/// Ends the process at once.
pub fn exit_group(code: i32) -> ! {
    loop {
        // SAFETY: ends the process; nothing is left to be unsound.
        unsafe { syscall!(libc::SYS_exit_group, code) };
    }
}

/// Writes all of `bytes` to a descriptor, as far as it goes.
pub fn write_all(descriptor: i32, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: the kernel only reads the slice.
        let written = unsafe { syscall!(libc::SYS_write, descriptor, bytes.as_ptr(), bytes.len()) };
        if written <= 0 {
            if written == -i64::from(libc::EINTR) {
                continue;
            }
            return;
        }
        bytes = &bytes[written as usize..];
    }
}

/// Maps memory exactly where it is asked for; an error number if that fails.
///
/// # Safety
/// `[address, address + length)` must hold nothing that is still in use.
pub unsafe fn map_fixed(
    address: u64,
    length: u64,
    protection: i32,
    flags: i32,
    descriptor: i32,
    offset: u64,
) -> Result<(), i32> {
    // SAFETY: the caller owns the range.
    let answer = unsafe {
        syscall!(
            libc::SYS_mmap,
            address,
            length,
            protection,
            flags | libc::MAP_FIXED,
            descriptor as i64,
            offset
        )
    };
    if answer < 0 && answer > -4096 { Err(-answer as i32) } else { Ok(()) }
}

/// Copies a descriptor to a number out of the guest's way; an error number if there is none. A
/// low limit on descriptors is lifted meanwhile, as far as the process may.
pub fn duplicate_high(descriptor: i32, close_on_exec: bool) -> Answer {
    let command = if close_on_exec { libc::F_DUPFD_CLOEXEC } else { libc::F_DUPFD };
    let copy = || {
        // SAFETY: copies a descriptor; touches no memory.
        unsafe { syscall!(libc::SYS_fcntl, descriptor, command, layout::DESCRIPTORS) }
    };
    let answer = copy();
    if answer != -i64::from(libc::EINVAL) && answer != -i64::from(libc::EMFILE) {
        return answer;
    }
    with_lifted_limit(copy)
}

/// Does something that needs descriptors above the soft limit.
pub fn with_lifted_limit<T>(work: impl FnOnce() -> T) -> T {
    let mut limit = [0u64; 2];
    // SAFETY: the kernel reads or writes two words.
    unsafe {
        syscall!(libc::SYS_getrlimit, libc::RLIMIT_NOFILE, limit.as_mut_ptr());
        let lifted = [limit[1]; 2];
        syscall!(libc::SYS_setrlimit, libc::RLIMIT_NOFILE, lifted.as_ptr());
    }
    let answer = work();
    // SAFETY: as above.
    unsafe { syscall!(libc::SYS_setrlimit, libc::RLIMIT_NOFILE, limit.as_ptr()) };
    answer
}

/// The kernel thread that is calling.
pub fn gettid() -> i32 {
    // SAFETY: no memory is touched.
    unsafe { syscall!(libc::SYS_gettid) as i32 }
}

/// The process that is calling.
pub fn getpid() -> i32 {
    // SAFETY: no memory is touched.
    unsafe { syscall!(libc::SYS_getpid) as i32 }
}

/// The process that started this one.
pub fn getppid() -> i32 {
    // SAFETY: no memory is touched.
    unsafe { syscall!(libc::SYS_getppid) as i32 }
}
