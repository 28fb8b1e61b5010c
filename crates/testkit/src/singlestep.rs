//! A reference for what a single-threaded program executes: ptrace steps it one instruction at a
//! time, and a [`Step`] tells what each instruction read, wrote and where it went.
//!
//! What counts as what, and so what the engine must agree with:
//! - A **REP string instruction** is one step and one instruction, however often it repeats; its
//!   accesses are those of all repetitions in order. Without a repetition it has none.
//! - **Accesses** of an instruction are its reads, then its writes (of a repetition: per
//!   repetition). A read-modify-write is both, also where the write is conditional (CMPXCHG).
//!   Gathers and masked moves list their enabled elements one by one. The XSAVE family is one
//!   access that covers the components up to AVX that EDX:EAX asks for; what AVX-512 adds is not
//!   looked at, nor are the masks of EVEX instructions. What the kernel reads and writes for a
//!   system call is not listed, and prefetches and cache hints access nothing.
//! - A step is **completed** unless the instruction raised a signal instead. Such a step lists
//!   only the accesses of repetitions (or elements of a gather) that came before, and is counted as
//!   no instruction.
//! - A **tick** is every completed `ret` and every completed indirect jump or call, and every
//!   taken direct jump, branch or call whose target is not above its own address.
//!
//! Not followed: threads and children (they run on unobserved), stops by job control (ignored),
//! real-time signals (an error). A program stepped while it blocks SIGTRAP, as in a
//! handler of it, finds SIGTRAP unblocked and its handler gone.
//!
//! Parts: `step` (the types), `launch` (starting a program under ptrace), `process` (a stopped
//! one), `decode` (instructions and the shape of their accesses), `accesses` (addresses),
//! `session` (the loop), `substitute` (answers that a test gives in the machine's
//! place), `frame` (signal frames of a lesser processor).

mod accesses;
mod decode;
mod frame;
mod launch;
mod process;
mod session;
mod step;
mod substitute;

pub(crate) use launch::launch;
pub(crate) use process::Process;
pub use process::Registers;
pub use session::{Ending, Session};
pub use step::{Access, AccessKind, Counts, Flow, Step, SystemCall};
pub use substitute::Verdict;

use std::ops::Range;

/// When a session starts to report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// With the first instruction of the program.
    AtOnce,
    /// After the program has stopped itself with SIGSTOP, with the first instruction outside
    /// these addresses.
    AfterStop(Range<u64>),
}

/// Where `whydunit` itself is linked, which `AfterStop` leaves out.
pub const RUNNER: Range<u64> = 0x7000_0000..0x8000_0000;
