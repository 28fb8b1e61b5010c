//! Which stated invariants may be believed: those that hold at first and that every sub-operation
//! preserves, given that all the others hold. The rest are refused, with the reason.

use super::{Prefix, prefixes};
use crate::explore::machine::Machine;
use crate::model::Program;
use crate::symbolic::claims::{Claims, preserved};
use std::time::Instant;

/// A stated invariant that is not believed.
#[derive(Clone, Debug)]
pub struct Refused {
    /// Which of [`Program::invariants`].
    pub invariant: usize,
    /// The prefix after whose last sub-operation it may fail; `None` if it fails at first.
    pub broken_by: Option<Prefix>,
}

/// Finds the invariants that hold together.
#[must_use]
pub fn believe(program: &Program, until: Option<Instant>) -> (Claims, Vec<Refused>) {
    let start = Machine::start(program);
    let mut refused = Vec::new();
    let mut claims = Claims { until, ..Claims::default() };
    for (number, invariant) in program.invariants.iter().enumerate() {
        if start.satisfies(program, invariant) {
            claims.believed.push(number);
        } else {
            refused.push(Refused { invariant: number, broken_by: None });
        }
    }
    // Refusing one may leave another without support, so this goes on until all stand.
    while let Some((invariant, prefix)) = first_broken(program, &claims) {
        claims.believed.retain(|&believed| believed != invariant);
        refused.push(Refused { invariant, broken_by: Some(prefix) });
    }
    (claims, refused)
}

fn first_broken(program: &Program, claims: &Claims) -> Option<(usize, Prefix)> {
    let prefixes = prefixes(program);
    let broken = |invariant: usize| {
        let clause = &program.invariants[invariant];
        let breaks =
            |prefix: &&Prefix| !preserved(program, claims, clause, prefix.operation, prefix.length);
        prefixes.iter().find(breaks).map(|prefix| (invariant, *prefix))
    };
    claims.believed.iter().find_map(|&invariant| broken(invariant))
}
