//! The system calls that make processes and programs.

use recording::log::ThreadData;

const CLONE: u64 = 56;
const FORK: u64 = 57;
const VFORK: u64 = 58;
const CLONE3: u64 = 435;
/// The flag of `clone` that makes a thread.
const THREAD: u64 = 0x1_0000;
/// `execve` and `execveat`.
pub const EXECS: [u64; 2] = [59, 322];

/// Whether a thread that is about to make a system call makes a process with it.
pub fn forks(thread: &ThreadData, word: impl Fn(u64) -> Option<u64>) -> bool {
    let first = thread.general[7];
    match thread.general[0] {
        FORK | VFORK => true,
        CLONE => first & THREAD == 0,
        CLONE3 => word(first).is_some_and(|flags| flags & THREAD == 0),
        _ => false,
    }
}
