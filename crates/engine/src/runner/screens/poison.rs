//! The **poison** screen: whether it matters what memory holds that nobody has written.
//!
//! A process is replayed with other contents in the blocks that allocators hand out and in the frames that
//! functions make ([`POISON`](events::plan::POISON)). A program that depends on nothing but what was written
//! does the same as before, whatever it copies about; so whatever it does differently is a suspicion: another
//! system call, another number of ticks, a fault. That takes as long as a replay, as nothing is followed
//! through registers and memory; values carry their mark themselves. Where the outcome would be the same by
//! chance, as in most comparisons with a constant, the mark itself is looked for: in what translated code
//! compares and in what is handed to the kernel.

mod arrange;
mod inline;
mod look;

pub use arrange::Poison;
