//! The refutation: real interleavings of a few operations on a real heap, each history checked
//! exactly.
//!
//! [`machine`] executes sub-operations, [`search`] walks the interleavings, [`explain`] asks
//! whether some sequential order of the same operations, run one after the other, gives the same
//! results; [`history`] is what is reported when there is none.

pub mod explain;
pub mod history;
pub mod machine;
pub mod search;
