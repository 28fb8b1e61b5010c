//! What the oracle must know of calls: how to print them, and which of them give a process new memory
//! or company in its own.

use super::{Call, Memory};
use nix::libc;
use syscalls::number as n;

/// A call as text.
pub fn show(call: &Call) -> String {
    syscalls::show(call.number, call.arguments, &mut |_, _| None)
}

/// A call that has no row; of those that multiplex, with the request.
pub fn name(call: &Call) -> String {
    let name = syscalls::name(call.number).unwrap_or("an unknown call");
    match call.number {
        n::ioctl | n::fcntl => format!("{name} {:#x}", call.arguments[1] as u32),
        n::prctl | n::arch_prctl | n::keyctl => format!("{name} {:#x}", call.arguments[0] as u32),
        _ => name.to_owned(),
    }
}

/// With whom a new child shares memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Company {
    /// With nobody, or with a parent that waits until it no longer does.
    Nobody,
    /// With the threads of its process.
    Threads,
    /// With another process.
    Process,
}

/// With whom the child of this call shares memory.
pub fn company(call: &Call, memory: &Memory) -> Company {
    let has = |flag: i32| flags(call, memory) & u64::from(flag.cast_unsigned()) != 0;
    if !has(libc::CLONE_VM) || has(libc::CLONE_VFORK) {
        Company::Nobody
    } else if has(libc::CLONE_THREAD) {
        Company::Threads
    } else {
        Company::Process
    }
}

/// Whether memory after a call has nothing to do with memory before: it was replaced, or a child has
/// run in it while the caller waited.
pub fn replaces_memory(call: &Call, memory: &Memory) -> bool {
    let is_exec = matches!(call.number, n::execve | n::execveat);
    is_exec || flags(call, memory) & u64::from(libc::CLONE_VM.cast_unsigned()) != 0
}

/// The flags by which a call starts a child; 0 if it starts none.
fn flags(call: &Call, memory: &Memory) -> u64 {
    match call.number {
        n::clone => call.arguments[0],
        n::vfork => u64::from((libc::CLONE_VM | libc::CLONE_VFORK).cast_unsigned()),
        n::clone3 => {
            let mut flags = [0; 8];
            if memory.read(call.arguments[0], &mut flags) { u64::from_le_bytes(flags) } else { 0 }
        }
        _ => 0,
    }
}

/// Where a call has put other pages.
pub fn remapped(call: &Call, answer: i64) -> Option<(u64, u64)> {
    let [first, second, third, ..] = call.arguments;
    match call.number {
        n::mmap => Some((answer.cast_unsigned(), second.next_multiple_of(0x1000))),
        n::mremap => Some((answer.cast_unsigned(), third.next_multiple_of(0x1000))),
        n::madvise => Some((first, second.next_multiple_of(0x1000))),
        _ => None,
    }
}
