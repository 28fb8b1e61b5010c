//! Proves or refutes that a concurrent data structure, written as sequences of atomic
//! sub-operations, is linearizable.
//!
//! [`language`] reads a specification into a [`model`]; [`proof`] looks for a proof over all
//! states, sizes and numbers of threads, on the partly known states of [`symbolic`]; [`explore`]
//! looks for a counterexample among real interleavings. [`judge`] puts them together.
//!
//! The crate does no I/O and prints nothing.
#![forbid(unsafe_code)]

pub mod explore;
pub mod language;
pub mod model;
pub mod proof;
pub mod symbolic;

use explore::search::{Bound, Searched, search};
use model::Program;
use proof::invariants::{Refused, believe};
use proof::{Obstacle, prove};

/// What is said of a specification.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// Stated invariants that do not hold and were not used.
    pub refused: Vec<Refused>,
    /// Proved, refuted or neither.
    pub verdict: Verdict,
}

/// Proved, refuted or neither.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Every history, of any length and number of threads, is linearizable.
    Proved,
    /// A history that no sequential order explains.
    Refuted(Searched),
    /// Neither a proof nor a counterexample within the bound.
    NotProved {
        /// Where the proof stopped; at least one.
        obstacles: Vec<Obstacle>,
        /// How far the search went.
        searched: Searched,
    },
}

/// Judges a specification: a proof if there is one, else a search for a counterexample.
#[must_use]
pub fn judge(program: &Program, bound: Bound) -> Judgement {
    let (claims, refused) = believe(program);
    let obstacles = prove(program, &claims);
    if obstacles.is_empty() {
        return Judgement { refused, verdict: Verdict::Proved };
    }
    let searched = search(program, bound);
    let verdict = if searched.counterexample.is_some() {
        Verdict::Refuted(searched)
    } else {
        Verdict::NotProved { obstacles, searched }
    };
    Judgement { refused, verdict }
}
