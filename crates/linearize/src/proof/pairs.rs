//! Pairs of prefixes: can the second follow the first, and can the two be swapped?
//!
//! Both questions are answered in each case of aliasing by itself, from the meaning of the
//! sub-operations; these are the ordering and reversibility tables that the reference asks of its
//! user.

use super::Prefix;
use crate::model::{LocalKind, Program, Type};
use crate::symbolic::claims::Claims;
use crate::symbolic::path::{Path, Stop, walk};
use crate::symbolic::run::Runner;
use crate::symbolic::solver::Literal;
use crate::symbolic::store::{Mode, Store, sizes};
use std::ops::Range;

/// A part of an instance's sub-operations, run without interruption.
#[derive(Clone, Debug)]
pub struct Part {
    /// The instance.
    pub instance: usize,
    /// Which of its sub-operations.
    pub steps: Range<usize>,
}

impl Part {
    /// The first sub-operations of an instance.
    #[must_use]
    pub fn first(instance: usize, length: usize) -> Self {
        Self { instance, steps: 0..length }
    }
}

/// Runs parts one after the other.
pub fn run(
    path: &mut Path<'_>,
    runner: &mut Runner<'_>,
    store: &mut Store,
    parts: &[Part],
    mode: Mode,
) -> Result<(), Stop> {
    for part in parts {
        runner.steps(path, store, part.instance, part.steps.clone(), mode)?;
    }
    Ok(())
}

/// Whether the parts in another order are possible from `start` wherever the path stands, and lead
/// to the same state as `reached`.
pub fn swaps(
    path: &mut Path<'_>,
    runner: &mut Runner<'_>,
    start: &Store,
    other_order: &[Part],
    reached: &Store,
) -> Result<bool, Stop> {
    let mut store = start.clone();
    let same = match run(path, runner, &mut store, other_order, Mode::Must) {
        Ok(()) => reached.same(&store, path),
        Err(stop) => Err(stop),
    };
    match same {
        Err(Stop::Impossible) | Ok(false) => {
            // Only a state that the invariants allow counts.
            path.use_claims()?;
            Ok(false)
        }
        other => other,
    }
}

/// One case in which a prefix can follow another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Which references and numbers of the two are the same.
    pub same: Vec<String>,
    /// Whether the two can be swapped.
    pub reversible: bool,
}

/// A pair of prefixes and the cases in which the second can follow the first.
#[derive(Clone, Debug)]
pub struct Pair {
    /// Runs first.
    pub first: Prefix,
    /// Runs second.
    pub second: Prefix,
    /// No case: the second cannot follow. `None`: too many cases to tell.
    pub cases: Option<Vec<Case>>,
}

/// Derives a pair, for showing it.
#[must_use]
pub fn derive(program: &Program, claims: &Claims, first: Prefix, second: Prefix) -> Pair {
    let operations = [first.operation, second.operation];
    let (left, right) = (Part::first(0, first.length), Part::first(1, second.length));
    let mut cases: Vec<Case> = Vec::new();
    let walked = walk(program, claims, |path| {
        let mut runner = Runner::new(program, &operations);
        let start = Store::start(path, &sizes(program, &operations));
        let mut store = start.clone();
        run(path, &mut runner, &mut store, &[left.clone(), right.clone()], Mode::Assume)?;
        path.use_claims()?;
        let other_order = [right.clone(), left.clone()];
        let reversible = !first.is_complete(program)
            && swaps(path, &mut runner, &start, &other_order, &store)?;
        let case = Case { same: aliases(path, &runner, &store), reversible };
        if !cases.contains(&case) {
            cases.push(case);
        }
        Ok(true)
    });
    Pair { first, second, cases: walked.is_ok().then_some(cases) }
}

/// Which locals of two different instances are known to hold the same.
#[must_use]
pub fn aliases(path: &Path<'_>, runner: &Runner<'_>, store: &Store) -> Vec<String> {
    let mut found = Vec::new();
    let named = |instance: usize| {
        let operation = &path.program.operations[runner.operations[instance]];
        let locals = operation.locals.iter().enumerate();
        locals.filter_map(move |(number, local)| {
            let plain = matches!(local.kind, LocalKind::Declared | LocalKind::Parameter);
            let value = store.locals[instance][number].filter(|_| plain)?;
            Some((format!("{}.{}", operation.title(), local.name), local.ty, value))
        })
    };
    for second in 1..runner.operations.len() {
        for first in 0..second {
            for (left_name, left_type, left) in named(first) {
                for (right_name, right_type, right) in named(second) {
                    let comparable = left_type == right_type;
                    if comparable && path.solver.known(Literal::equal(left, right)) == Some(true) {
                        found.push(format!("{left_name} == {right_name}"));
                    } else if comparable
                        && left_type != Type::Int
                        && path.solver.known(Literal::equal(left, right)).is_none()
                    {
                        // Open: this case covers both.
                    }
                }
            }
        }
    }
    found
}
