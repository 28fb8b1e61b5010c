//! Signals: dispositions, masks, stacks, waiting for them. Frames are not written by a call.

use crate::row::Part::{Fixed, IfAny, Whole};
use crate::row::Row;
use std::mem::size_of;

/// `struct sigaction` as the kernel has it: handler, flags, restorer, mask.
const ACTION: u64 = 32;
const MASK: u64 = 8;
/// As much of `siginfo_t` as there is in any kind of signal.
const INFO: u64 = 48;
const STACK: u64 = size_of::<libc::stack_t>() as u64;

system_calls! {
    14 rt_sigprocmask(Number, Input(MASK), Output, Size), writes Row::writes(&[Fixed(2, MASK)]);
    13 rt_sigaction(Signal, Input(ACTION), Output, Size), writes Row::writes(&[Fixed(2, ACTION)]);
    127 rt_sigpending(Output, Size), writes Row::writes(&[Whole(0, 1)]);
    128 rt_sigtimedwait(Input(MASK), Output, Input(16), Size),
        writes Row::writes(&[IfAny(1, size_of::<libc::siginfo_t>() as u64)]);
    131 sigaltstack(Input(STACK), Output),
        writes Row::writes(&[Fixed(1, STACK)]);

    // Calls that write nothing into the memory of the caller.
    15 rt_sigreturn();
    130 rt_sigsuspend(Input(MASK), Size);
    129 rt_sigqueueinfo(Pid, Signal, Input(INFO));
    297 rt_tgsigqueueinfo(Pid, Pid, Signal, Input(INFO));
    62 kill(Pid, Signal);
    200 tkill(Pid, Signal);
    234 tgkill(Pid, Pid, Signal);
    34 pause();
    282 signalfd(Fd, Input(MASK), Size);
    289 signalfd4(Fd, Input(MASK), Size, Flags);
    424 pidfd_send_signal(Fd, Signal, Input(INFO), Flags);
}
