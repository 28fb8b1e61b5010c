//! What a value was made from. An [`Execution`] is a process of a case as a trace that can be asked;
//! [`query`] is a question in words, [`asking`] finds what its moments and values mean, [`windows`] keeps only as much of a run as memory
//! has room for, [`replayed`] looks at the process itself, [`tail_windows`] looks at the end alone, [`recursion`] explains full stacks, [`instructions`] lists
//! an answer instruction by instruction, [`save`] makes a recording of it, [`without`] measures what
//! each source of precision is worth.

pub mod ablation;
pub mod asking;
pub mod execution;
pub mod instructions;
pub mod query;
pub mod recursion;
pub mod replayed;
pub mod save;
pub mod tail_windows;
pub mod windows;

pub use analyze::slice::{Follow, Statement, View};
pub use execution::Execution;
pub use query::Query;
