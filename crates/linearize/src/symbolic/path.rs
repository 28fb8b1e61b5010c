//! One way through all decisions, and the walk over all ways.
//!
//! Code that runs on a [`Path`] is written straight on, as if everything were known. Where it asks
//! something that the facts leave open, the path takes one answer, notes it as a fact, and the
//! walk later runs the same code again with the other answer. So the leaves of the walk are the
//! cases, each with the facts that make it one.

use super::claims::Claims;
use super::owned::Owned;
use super::solver::{Conflict, Literal, Solver};
use crate::model::Program;

/// Why code on a path does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// No state is like this.
    Infeasible,
    /// A sub-operation that had to be possible is not, in some state of this case.
    Impossible,
}

impl From<Conflict> for Stop {
    fn from(_: Conflict) -> Self {
        Self::Infeasible
    }
}

/// More cases than this are not looked at; the question then counts as not decided.
pub const MOST_CASES: usize = 20_000;

/// There were more cases than [`MOST_CASES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

/// One way through all decisions.
pub struct Path<'p> {
    /// The specification.
    pub program: &'p Program,
    /// What is known.
    pub solver: Solver,
    claims: &'p Claims,
    claims_seen: u64,
    decisions: Vec<(usize, usize)>,
    next: usize,
}

impl<'p> Path<'p> {
    /// Chooses one of `options`; the walk comes back for the others.
    pub fn choose(&mut self, options: usize) -> usize {
        if self.next == self.decisions.len() {
            self.decisions.push((0, options));
        }
        self.next += 1;
        self.decisions[self.next - 1].0
    }

    /// Whether the literal holds in this case; if that is open, it becomes two cases.
    pub fn decide(&mut self, literal: Literal) -> Result<bool, Stop> {
        if let Some(known) = self.solver.known(literal) {
            return Ok(known);
        }
        self.use_claims()?;
        if let Some(known) = self.solver.known(literal) {
            return Ok(known);
        }
        let holds = self.choose(2) == 0;
        self.solver.assume(if holds { literal } else { literal.negated() })?;
        Ok(holds)
    }

    /// Fields that only the maker of a node reads.
    #[must_use]
    pub fn owned(&self) -> &'p Owned {
        &self.claims.owned
    }

    /// Draws all that the invariants say about the state at the start.
    pub fn use_claims(&mut self) -> Result<(), Stop> {
        if self.claims_seen != self.solver.version() {
            self.claims.apply(self.program, &mut self.solver)?;
            self.claims_seen = self.solver.version();
        }
        Ok(())
    }

    /// Whether the facts make the literal true: its opposite contradicts them.
    #[must_use]
    pub fn entails(&self, literal: Literal) -> bool {
        if let Some(known) = self.solver.known(literal) {
            return known;
        }
        if !self.claims.effort.spend() {
            return false;
        }
        let mut solver = self.solver.clone();
        let contradiction = solver.assume(literal.negated()).is_err();
        contradiction || self.claims.apply(self.program, &mut solver).is_err()
    }

    /// The decisions taken, for telling cases apart.
    #[must_use]
    pub fn decisions(&self) -> usize {
        self.next
    }

    fn restart(&mut self) -> bool {
        while let Some((chosen, options)) = self.decisions.pop() {
            if chosen + 1 < options {
                self.decisions.push((chosen + 1, options));
                self.solver = Solver::default();
                self.claims_seen = u64::MAX;
                self.next = 0;
                return true;
            }
        }
        false
    }
}

/// Runs `visit` on every case until it breaks the walk by returning `false`. A visit that stops as
/// infeasible is no case.
pub fn walk<'p>(
    program: &'p Program,
    claims: &'p Claims,
    mut visit: impl FnMut(&mut Path<'p>) -> Result<bool, Stop>,
) -> Result<(), TooMany> {
    let solver = Solver::default();
    let mut path =
        Path { program, solver, claims, claims_seen: u64::MAX, decisions: Vec::new(), next: 0 };
    for _ in 0..MOST_CASES {
        if !claims.effort.spend() {
            break;
        }
        match visit(&mut path) {
            Ok(true) | Err(_) => {}
            Ok(false) => return Ok(()),
        }
        if !path.restart() {
            return Ok(());
        }
    }
    Err(TooMany)
}
