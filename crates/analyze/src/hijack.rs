//! Control that went where the program did not send it: a return that does not go to its call because
//! something was stored over the return address, a caller that goes on with a frame pointer stored over, a
//! `longjmp` through a buffer that was changed since `setjmp`, a jump through a pointer that leads nowhere.
//! Each is told with the **write** that did it.
//!
//! **Asks for** a plan with values of accesses and the ranges that the kernel wrote ([`plan`]).
//! **Consumes** the stream of one process. **Answers** [`Hijack`]s in the order of the run.
//!
//! What programs do on purpose gives none. A frame is known by where its return address stands
//! ([`CallStack`]): coroutines, `longjmp` and exceptions leave frames behind or return where no call was
//! seen, and neither is judged. A return that differs from its call is judged only if a store was seen to
//! the very place since; a call that is made only to be redirected (a retpoline) returns at once. What
//! only names tell (the unwinder stores the address of a landing pad, deoptimisation that of a stub) is
//! left to whoever knows names.

mod follow;
pub mod report;

pub use follow::{Jumps, Transfers};

use crate::rules::machine::chains::Stamp;
use events::Plan;
use events::plan::{Execution, Observe, Syscalls};

/// A store over what control depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The instruction.
    pub pc: u64,
    /// The calls that it was made in, innermost first.
    pub callers: Vec<u64>,
    /// Where it wrote.
    pub address: u64,
    /// How many bytes.
    pub size: u64,
    /// What, as far as that was told.
    pub value: Option<u64>,
    /// Whether the kernel wrote, in a system call.
    pub by_kernel: bool,
    /// When.
    pub stamp: Stamp,
}

/// What was overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overwritten {
    /// A return address.
    Return {
        /// Where its call would have come back to.
        expected: u64,
        /// Where it went.
        target: u64,
    },
    /// A frame pointer that a function had saved.
    FramePointer,
    /// A buffer of `setjmp`.
    JumpBuffer,
    /// A pointer to code.
    Pointer {
        /// Where it led.
        target: u64,
    },
}

/// Control that went astray.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hijack {
    /// What led it there.
    pub what: Overwritten,
    /// Where that stood in memory.
    pub place: u64,
    /// The instruction that left the program's way.
    pub pc: u64,
    /// The calls that it was made in, innermost first.
    pub callers: Vec<u64>,
    /// The write that did it.
    pub write: Write,
}

/// What has to be observed.
#[must_use]
pub fn plan() -> Plan {
    let observe = Observe {
        execution: Execution::Values,
        syscalls: Syscalls::Ranges,
        forks: true,
        ..Observe::default()
    };
    Plan { observe, ..Plan::default() }
}
