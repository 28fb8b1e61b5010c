//! Dynamic slices: everything that a value was made from, going back from a moment.
//!
//! A [`Question`] names what is wanted at a moment; [`Question::answer`] goes back through a
//! [`Trace`] once, keeping the set of register parts and bytes whose definition is still wanted,
//! and gives a [`Slice`]. The set is exact, so the slice is: nothing is merged or guessed but for
//! the conventions of [`crate::semantics`].
//!
//! Edges are kept apart by [`Kind`], and hold the two executions that they connect. They are kept
//! for the executions nearest to the question, up to a limit; beyond it executions are only
//! counted, so that a slice of a hundred million executions costs no memory.
//!
//! [`Question::forward`] goes the other way: everything that was made from a value.
//!
//! Parts: [`question`] (what can be asked), [`ending`] (what to ask about an end), [`explain`] (why a
//! program ended), [`recursion`] (one that does not end), [`graph`] (the answer), [`members`] (the answer as a set), [`view`] (the answer as
//! source); `walk` (going back), `forward`, and what both use: `at` (one execution), `instances`
//! (which one it is), `frames` (calls, control, saved registers), `wanters` (who wants what), `strings`
//! (repeated moves), `constants` (what nobody can write to),
//! `bookkeepers` (code with lists of its own), `omitted` (what did not happen).

mod at;
mod bookkeepers;
mod constants;
pub mod ending;
pub mod explain;
mod forward;
mod frames;
pub mod graph;
mod instances;
pub mod members;
mod omitted;
pub mod question;
pub mod recursion;
mod strings;
pub mod view;
mod walk;
mod wanters;

pub use bookkeepers::is_bookkeeper;
pub use constants::constants;
pub use graph::{Because, Edge, Kind, Node, Slice, What};
pub use members::Members;
pub use question::{Follow, Question, Wants};
pub use view::{Statement, View};
