//! A reference for what system calls write: ptrace stops a program at every system call, copies its
//! writable memory before and after, and finds each byte that changed. A [`Table`] that claims to know
//! what calls write must have listed it.
//!
//! What is compared:
//! - Writable private memory, all of it, before and after a call. Bytes that the kernel wrote without
//!   changing them cannot be seen; programs that fill their buffers with a pattern first make up for
//!   that (`tests/programs/syscalls`).
//! - Only calls of processes with one thread, as others would write meanwhile. A child that `vfork`
//!   made is one too, while its parent waits for it.
//! - Where the kernel had to change mappings, what is mapped anew is not compared.
//! - Large programs are sampled: each call earns an allowance of copying, and is compared when there is
//!   enough of it. Rows that were seen rarely are always compared.
//!
//! The other direction, ranges in which nothing changed, is only counted; but a range of a call that
//! succeeded must lie in memory that the program may write.
//!
//! Parts: `snapshot` (copies and their difference), `tracer` (the ptrace loop), `calls` (what it must
//! know of them), `tally` (what was seen).

mod calls;
mod snapshot;
mod tally;
mod tracer;

pub use tally::{RowTally, Tally};
pub use tracer::{Memory, trace};

/// A system call about to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its number.
    pub number: u64,
    /// Its arguments.
    pub arguments: [u64; 6],
}

/// Something that claims to know what system calls write.
pub trait Table {
    /// What it keeps between the two sides of a call.
    type Before;

    /// Looks at memory before the call.
    fn before(&self, call: &Call, memory: &Memory) -> Self::Before;

    /// The ranges that the call wrote, as address and length; `None` if that is not known.
    fn written(
        &self,
        call: &Call,
        answer: i64,
        before: &Self::Before,
        memory: &Memory,
    ) -> Option<Vec<(u64, u64)>>;

    /// The name of the row that a call falls under, if it is a row that says something.
    fn row(&self, call: &Call) -> Option<String>;
}
