//! What a call is about, for replay: which calls it must make again, or repeat in its own books, and
//! which it only answers from the log.

use base::system_call::number as n;

/// What a system call is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// It changes what is mapped, or what mapped pages hold.
    AddressSpace,
    /// It changes dispositions, the mask, or the signal stack, or leaves a handler.
    SignalState,
    /// It starts, ends or replaces a thread or process, or says what its end does.
    Task,
    /// It changes the base of FS or GS, or a segment.
    Segment,
    /// Anything else: the answer and the bytes written are all there is to it.
    Other,
}

const ARCH_SET_GS: u64 = 0x1001;
const ARCH_SET_FS: u64 = 0x1002;
const ARCH_MAP_VDSO: std::ops::RangeInclusive<u64> = 0x2001..=0x2003;

/// What a call is about.
#[must_use]
pub fn kind(number: u64, arguments: [u64; 6]) -> Kind {
    match number {
        n::mmap
        | n::munmap
        | n::mprotect
        | n::pkey_mprotect
        | n::mremap
        | n::brk
        | n::shmat
        | n::shmdt
        | n::remap_file_pages
        | n::map_shadow_stack
        | n::mseal
        | n::io_setup
        | n::io_destroy => Kind::AddressSpace,
        n::madvise if changes_contents(arguments[2] as i32) => Kind::AddressSpace,
        n::arch_prctl if ARCH_MAP_VDSO.contains(&arguments[0]) => Kind::AddressSpace,

        n::rt_sigaction
        | n::rt_sigprocmask
        | n::rt_sigreturn
        | n::rt_sigsuspend
        | n::sigaltstack => Kind::SignalState,

        n::clone
        | n::clone3
        | n::fork
        | n::vfork
        | n::execve
        | n::execveat
        | n::exit
        | n::exit_group
        | n::set_tid_address
        | n::set_robust_list
        | n::rseq => Kind::Task,

        n::arch_prctl if matches!(arguments[0], ARCH_SET_FS | ARCH_SET_GS) => Kind::Segment,
        n::modify_ldt | n::set_thread_area => Kind::Segment,

        _ => Kind::Other,
    }
}

/// Advice that throws contents away, or says what a child finds.
fn changes_contents(advice: i32) -> bool {
    const DONTNEED_LOCKED: i32 = 24;
    const GUARD_INSTALL: i32 = 102;
    const GUARD_REMOVE: i32 = 103;
    matches!(
        advice,
        libc::MADV_DONTNEED
            | libc::MADV_FREE
            | libc::MADV_REMOVE
            | libc::MADV_DONTFORK
            | libc::MADV_DOFORK
            | libc::MADV_WIPEONFORK
            | libc::MADV_KEEPONFORK
            | DONTNEED_LOCKED
            | GUARD_INSTALL
            | GUARD_REMOVE
    )
}
