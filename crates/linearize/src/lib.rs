//! Proves or refutes that a concurrent data structure, written as sequences of atomic
//! sub-operations, is linearizable.
//!
//! [`language`] reads a specification into a [`model`]; [`proof`] looks for a proof over all
//! states, sizes and numbers of threads, on the partly known states of [`symbolic`]; [`explore`]
//! looks for a counterexample among real interleavings. [`judge`] puts them together. [`observed`] judges
//! a history that was seen in a running program.
//!
//! The crate does no I/O and prints nothing.
#![forbid(unsafe_code)]

pub mod explore;
pub mod judgement;
pub mod language;
pub mod model;
pub mod observed;
pub mod proof;
pub mod symbolic;

pub use judgement::{Assumption, Judgement, Verdict, judge};
