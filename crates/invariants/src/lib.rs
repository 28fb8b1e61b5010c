//! What a program does in ordinary runs, learned as **invariants**, and where another run left it.
//!
//! Two kinds are learned at once. **Value invariants** (after DIDUCE): at a *point*, which is an instruction
//! that reads or writes a heap block or a static object, a call, or the entry of a function, every value has
//! had the bits that the first one had, but for those that have been seen to vary. **Definition-use
//! invariants** (after DefUse): a read uses what certain writes have written (DSet), always of its own
//! thread or always of another (LR), or always the same that the thread's read before it used (Follower).
//! To these come kinds of pointers, small sets of values, intervals, code that never ran, and values that
//! were always read before they were overwritten.
//!
//! - [`value`]: the hypotheses about what a point has seen, how one gives way, and what that costs in
//!   confidence. A value that is an address is told by its [`value::Kind`], as addresses say nothing.
//! - [`uses`]: what is known of a read and of a write; pruning and confidence of what breaks it.
//! - [`model`]: all of it, over many runs. Instructions are named by function, line within the function and
//!   rank within the line ([`model::Site`]), so a model serves a rebuilt program. [`file`] is how it is kept.
//! - [`memory`]: the last writer of every byte, who has read it since, and whose block it is.
//! - [`learner`]: one run: reads, writes, calls and what they break. It is told what happens and knows
//!   nothing of streams. [`stream`] tells it, from the records of a replay.
//! - [`anomaly`]: what is found, ranked.
//!
//! A run is learned from in two parts. Values are relaxed as they come, which is what makes the first
//! violation the only one; who reads what from whom is kept apart until the run is over, as whether an
//! invariant of a read held is a property of a whole run, and a violation counts how often it happened.
//! A run that is checked is not added to its model.
//!
//! This crate knows no engine, no recording and no debug information: whoever drives it says which code and
//! data are the program's own ([`layout`]) and what instructions are called ([`learner::Names`]).

#![forbid(unsafe_code)]

pub mod anomaly;
pub mod file;
pub mod heap;
pub mod layout;
pub mod learner;
pub mod memory;
pub mod model;
pub mod stream;
pub mod uses;
pub mod value;

pub use anomaly::Anomaly;
pub use layout::Layout;
pub use learner::{Learner, Mode};
pub use model::Model;
