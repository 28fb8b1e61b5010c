//! States that are known only in part, and what follows from what is known.
//!
//! The proof quantifies over all states of a data structure of any size. A sequence of
//! sub-operations touches only a few cells, so a state is a set of *terms* for what those cells
//! held at first, and *facts* about the terms (equal, different, less). When the outcome depends
//! on something unknown, such as whether two references are the same node, both ways are followed:
//! those are the cases in which operations can interact.
//!
//! - [`solver`]: terms and facts; finds contradictions in equalities, orders and congruence;
//! - [`path`]: one way through all decisions, and the walk over all ways;
//! - [`store`]: the memory: what was written, over what was there at first;
//! - [`run`]: executes sub-operations on a store;
//! - [`mentions`] and [`owned`]: what the text alone tells about locals and fields;
//! - [`claims`]: uses and checks the stated invariants.
//!
//! Everything errs to one side: a contradiction that is not found only adds states that cannot
//! happen, which makes pairs orderable and not reversible.

pub mod claims;
pub mod mentions;
pub mod owned;
pub mod path;
pub mod run;
pub mod solver;
pub mod store;
