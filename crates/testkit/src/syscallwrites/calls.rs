//! What the oracle must know of calls: how to print them, and which of them give a process new memory
//! or company in its own.

use super::{Call, Memory};
use base::system_call::{self, number as n};
use nix::libc;

/// A call as text.
pub fn show(call: &Call) -> String {
    system_call::show(call.number, call.arguments, &mut |_, _| None)
}

/// A call that has no row; of those that multiplex, with the request.
pub fn name(call: &Call) -> String {
    let name = system_call::name(call.number).unwrap_or("an unknown call");
    match call.number {
        n::ioctl | n::fcntl => format!("{name} {:#x}", call.arguments[1] as u32),
        n::prctl | n::arch_prctl | n::keyctl => format!("{name} {:#x}", call.arguments[0] as u32),
        _ => name.to_owned(),
    }
}

/// Whether a child goes on in the caller's memory beside it.
pub fn shares_memory(call: &Call, event: i32) -> bool {
    match call.number {
        n::clone => {
            let flags = call.arguments[0] as i32;
            flags & libc::CLONE_VM != 0 && flags & libc::CLONE_VFORK == 0
        }
        // Its flags are in memory; a child of its own memory comes with another event.
        n::clone3 => event == libc::PTRACE_EVENT_CLONE,
        _ => false,
    }
}

/// Whether memory after a call has nothing to do with memory before: it was replaced, or a child has
/// run in it while the caller waited.
pub fn replaces_memory(call: &Call, memory: &Memory) -> bool {
    let flags = match call.number {
        n::execve | n::execveat | n::vfork => return true,
        n::clone => call.arguments[0],
        n::clone3 => {
            let mut flags = [0; 8];
            if !memory.read(call.arguments[0], &mut flags) {
                return true;
            }
            u64::from_le_bytes(flags)
        }
        _ => return false,
    };
    flags & u64::from(libc::CLONE_VM.cast_unsigned()) != 0
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
