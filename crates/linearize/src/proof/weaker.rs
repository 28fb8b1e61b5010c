//! Checks that an operation makes for its own good, and that a proof is easier without.
//!
//! An operation that looks again at what it has read does less than one that does not look: all its
//! histories are histories of the operation without the check. So if those are linearizable, and the
//! operation without the check still does nothing alone that the original could not do alone, in
//! some role, then the original is linearizable too.

use super::pairs::{Part, run, runs_as_another};
use crate::model::{LocalKind, Operation, Place, Program, Statement, Step};
use crate::symbolic::claims::Claims;
use crate::symbolic::path::walk;
use crate::symbolic::run::Runner;
use crate::symbolic::store::{Mode, Store, sizes};

/// The specification without the checks that make no difference to operations that run alone;
/// `None` if there are none.
#[must_use]
pub fn without_checks(program: &Program, claims: &Claims) -> Option<Program> {
    let mut weaker = program.clone();
    let mut dropped = false;
    for number in 0..program.operations.len() {
        let mut step = 0;
        while step + 1 < weaker.operations[number].steps.len() {
            let operation = &weaker.operations[number];
            if is_check(operation, &operation.steps[step]) {
                let mut shorter = operation.clone();
                shorter.steps.remove(step);
                if does_nothing_new(program, claims, &shorter) {
                    weaker.operations[number] = shorter;
                    dropped = true;
                    continue;
                }
            }
            step += 1;
        }
        dropped |= drop_conditions(program, claims, &mut weaker.operations[number]);
    }
    dropped.then_some(weaker)
}

/// Drops single conditions of checks; whether there were any to drop.
fn drop_conditions(program: &Program, claims: &Claims, operation: &mut Operation) -> bool {
    let mut dropped = false;
    for step in 0..operation.steps.len().saturating_sub(1) {
        let mut at = 0;
        while at < operation.steps[step].conditions.len() {
            if is_check(operation, &operation.steps[step])
                && operation.steps[step].conditions.len() > 1
            {
                let mut shorter = operation.clone();
                shorter.steps[step].conditions.remove(at);
                if does_nothing_new(program, claims, &shorter) {
                    *operation = shorter;
                    dropped = true;
                    continue;
                }
            }
            at += 1;
        }
    }
    dropped
}

/// Whether a sub-operation only looks.
fn is_check(operation: &Operation, step: &Step) -> bool {
    let hidden = |statement: &Statement| {
        matches!(statement, Statement::Assign(Place::Local(local), _)
            if operation.locals[*local].kind == LocalKind::Seen)
    };
    !step.conditions.is_empty() && step.body.iter().all(hidden)
}

/// Whether all that the operation can do alone, one of its roles in the specification can do.
fn does_nothing_new(program: &Program, claims: &Claims, operation: &Operation) -> bool {
    let mut both = program.clone();
    both.operations.push(operation.clone());
    let number = program.operations.len();
    let operations = [number];
    let whole = Part::first(0, operation.steps.len());
    let mut same = true;
    let walked = walk(&both, claims, |path| {
        let mut runner = Runner::new(&both, &operations);
        let start = Store::start(path, &sizes(&both, &operations));
        let mut store = start.clone();
        run(path, &mut runner, &mut store, std::slice::from_ref(&whole), Mode::Assume)?;
        path.use_claims()?;
        same = runs_as_another(path, &runner, &start, &store)?;
        Ok(same)
    });
    same && walked.is_ok()
}
