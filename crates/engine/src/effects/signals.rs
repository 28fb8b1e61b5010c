//! Signals: dispositions, masks, stacks, waiting for them. Frames are not written by a call.

use super::row::Part::{Fixed, IfAny, Whole};
use super::row::Row;
use base::system_call::number as n;
use std::mem::size_of;

/// `struct sigaction` as the kernel has it: handler, flags, restorer, mask.
const ACTION: u64 = 32;
const MASK: u64 = 8;

pub const ROWS: &[(u64, Row)] = &[
    (n::rt_sigprocmask, Row::Writes(&[Fixed(2, MASK)])),
    (n::rt_sigaction, Row::Writes(&[Fixed(2, ACTION)])),
    (n::rt_sigpending, Row::Writes(&[Whole(0, 1)])),
    (n::rt_sigtimedwait, Row::Writes(&[IfAny(1, size_of::<libc::siginfo_t>() as u64)])),
    (n::sigaltstack, Row::Writes(&[Fixed(1, size_of::<libc::stack_t>() as u64)])),
];

pub const NOTHING: &[u64] = &[
    n::rt_sigreturn,
    n::rt_sigsuspend,
    n::rt_sigqueueinfo,
    n::rt_tgsigqueueinfo,
    n::kill,
    n::tkill,
    n::tgkill,
    n::pause,
    n::signalfd,
    n::signalfd4,
    n::pidfd_send_signal,
];
