//! The proof: Algorithm 6 of the reference, on tables that are derived, case by case.
//!
//! A history is rearranged step by step into a sequence of *prefixes*: first parts of operations,
//! each run without interruption. When the next sub-operation n of an operation comes, whose
//! prefix x stands further left, everything between them that can be moved before x is moved there
//! ([`pairs`]); what remains depends on x, directly or through others: the closure of x. The proof
//! succeeds if n can be moved left past every element of the closure, in every case
//! ([`closure`]). Moving means: in every state in which the one order is possible, the other is
//! possible too and leads to the same state.
//!
//! Two things are more precise than in the reference, and nothing is asked of the user for them:
//! - pairs are judged in each case of aliasing by itself, so no operation is split by hand;
//! - what x has established and the closure preserves is known when n is moved ([`context`]); and
//!   a case in which the operation of x can never end is no case, because only histories in which
//!   all operations end are judged.
//!
//! A complete operation is never moved past what follows it, so the order of operations that do
//! not overlap is kept.

pub mod closure;
pub mod context;
pub mod folded;
pub mod footprint;
pub mod handover;
pub mod invariants;
pub mod local_facts;
pub mod pairs;
pub mod pending;
pub mod stability;
pub mod weaker;

use crate::model::Program;
use crate::symbolic::claims::{Claims, Effort};
use closure::Prover;
use invariants::{believe, with_guessed};

/// The first sub-operations of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Which operation.
    pub operation: usize,
    /// How many of its sub-operations; at least one.
    pub length: usize,
}

impl Prefix {
    /// Whether it is the whole operation.
    #[must_use]
    pub fn is_complete(self, program: &Program) -> bool {
        self.length == program.operations[self.operation].steps.len()
    }

    /// The letters of its sub-operations.
    #[must_use]
    pub fn letters(self, program: &Program) -> String {
        let steps = &program.operations[self.operation].steps[..self.length];
        steps.iter().map(|step| step.label.as_str()).collect()
    }
}

/// All prefixes of all operations.
#[must_use]
pub fn prefixes(program: &Program) -> Vec<Prefix> {
    let lengths = program.operations.iter().map(|operation| operation.steps.len()).enumerate();
    lengths
        .flat_map(|(operation, steps)| (1..=steps).map(move |length| Prefix { operation, length }))
        .collect()
}

/// Where the proof stopped: `next` of the operation of `prefix` cannot be moved past `between`.
#[derive(Clone, Debug)]
pub struct Obstacle {
    /// The prefix x.
    pub prefix: Prefix,
    /// What came between x and its next sub-operation.
    pub between: Prefix,
    /// Whether others of the closure may stand between the two.
    pub directly: bool,
    /// The case: which references are the same.
    pub case: Vec<String>,
    /// Whether the trouble is not the next sub-operation but that it may never come: what `prefix`
    /// has done can then neither be completed nor left out.
    pub pending: bool,
}

/// Which histories are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All: operations may stop for ever anywhere.
    Open,
    /// Those in which every operation ends.
    Assumed,
}

/// Looks for a proof with the claims that are believed; gives the obstacles if there are any.
/// A question that comes when the effort is spent counts as not decided, so no obstacle is a proof.
#[must_use]
pub fn prove(program: &Program, claims: &Claims, ending: Ending) -> Vec<Obstacle> {
    let prover = Prover::new(program, claims, ending);
    let proper = prefixes(program).into_iter().filter(|prefix| !prefix.is_complete(program));
    proper.filter_map(|prefix| prover.obstacle(prefix)).collect()
}

/// Looks for a proof with the stated invariants, and if there is none, with simple ones that are
/// thought up, and without checks that make no difference alone. Gives the obstacles of the first
/// attempt if all fail.
#[must_use]
pub fn find(program: &Program, ending: Ending, effort: &Effort) -> Vec<Obstacle> {
    let (claims, _) = believe(program, effort);
    let obstacles = prove(program, &claims, ending);
    if obstacles.is_empty() || believed_proves(&with_guessed(program), ending, effort) {
        return Vec::new();
    }
    if let Some(weaker) = weaker::without_checks(program, &claims)
        && (believed_proves(&weaker, ending, effort)
            || believed_proves(&with_guessed(&weaker), ending, effort))
    {
        return Vec::new();
    }
    if let Some(folded) = folded::folded(program, effort)
        && (believed_proves(&folded, ending, effort)
            || believed_proves(&with_guessed(&folded), ending, effort))
    {
        return Vec::new();
    }
    obstacles
}

fn believed_proves(program: &Program, ending: Ending, effort: &Effort) -> bool {
    let (claims, _) = believe(program, effort);
    prove(program, &claims, ending).is_empty()
}
