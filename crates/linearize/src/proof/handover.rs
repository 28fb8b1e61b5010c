//! Operations that wait for each other: who ends hands something over to one that stands by, as a
//! queue lock does. Both can then be seen in other roles: the first as if nobody had waited, the
//! second as if it had come later and had not had to wait.

use super::Prefix;
use super::pairs::{Part, dead_cells, run, same_locals, used};
use crate::model::{Local, LocalKind, Operation, Program, Step};
use crate::symbolic::mentions::{mentioned, mentioned_in_conditions};
use crate::symbolic::path::{Path, Stop};
use crate::symbolic::run::Runner;
use crate::symbolic::solver::{Term, Value};
use crate::symbolic::store::{Mode, Store};

/// A prefix of another role that an operation may as well stand at.
struct Stand {
    prefix: Prefix,
    /// Locals that its own conditions asked about and the other's do not.
    dropped: Vec<usize>,
}

/// What becomes of an operation that stands by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// It may go on.
    Open,
    /// Its next sub-operation can never happen, so it stands there for ever.
    Never,
}

/// Whether instance 0, which stood after `begun` sub-operations and has just ended, can as well go on
/// as one of `roles` before instance 1, which stands at `y`, if that one stands in another role, too.
pub fn hands_over(
    path: &mut Path<'_>,
    runner: &Runner<'_>,
    start: &Store,
    (begun, roles): (usize, &[usize]),
    (y, rest): (Prefix, Rest),
    reached: &Store,
) -> Result<bool, Stop> {
    for stand in stands(path.program, y, rest) {
        if stand.dropped.iter().any(|&local| reached.locals[1][local].is_none()) {
            continue;
        }
        for &role in roles {
            let stand = stand.prefix;
            let change = Change { runner, start, begun, role, stand, rest, reached };
            if change.explains(path)? {
                return Ok(true);
            }
        }
    }
    path.use_claims()?;
    Ok(false)
}

/// The prefixes of other roles from which an operation can go on as it can from `y`.
fn stands(program: &Program, y: Prefix, ending: Rest) -> Vec<Stand> {
    let own = &program.operations[y.operation];
    let rest = &own.steps[y.length..];
    let mut found = Vec::new();
    if rest.is_empty() {
        return found;
    }
    for (number, other) in program.operations.iter().enumerate() {
        if number == y.operation || !declares_the_same(own, other) {
            continue;
        }
        for length in 1..other.steps.len() {
            let prefix = Prefix { operation: number, length };
            match ending {
                // Who stands for ever may stand anywhere.
                Rest::Never => found.push(Stand { prefix, dropped: Vec::new() }),
                Rest::Open => found.extend(
                    allows(&other.steps[length..], rest).map(|dropped| Stand { prefix, dropped }),
                ),
            }
        }
    }
    found
}

fn declares_the_same(one: &Operation, other: &Operation) -> bool {
    let declared = |local: &Local| (local.name.clone(), local.ty, local.kind);
    one.name == other.name
        && one.thread == other.thread
        && one.locals.iter().map(declared).eq(other.locals.iter().map(declared))
}

/// Whether whoever executes `wide` can do all that `narrow` does: it has the same sub-operations, with
/// fewer conditions, or without those that only check something. Gives the locals of what it lacks.
fn allows(wide: &[Step], narrow: &[Step]) -> Option<Vec<usize>> {
    let (step, rest) = match narrow.split_first() {
        None => return wide.is_empty().then(Vec::new),
        Some(split) => split,
    };
    if let Some((first, others)) = wide.split_first()
        && first.mark == step.mark
        && first.body == step.body
        && first.conditions.iter().all(|condition| step.conditions.contains(condition))
        && let Some(mut dropped) = allows(others, rest)
    {
        if first.conditions.len() < step.conditions.len() {
            dropped.extend(mentioned_in_conditions(step));
        }
        return Some(dropped);
    }
    if step.body.is_empty() && !rest.is_empty() {
        let mut dropped = allows(wide, rest)?;
        dropped.extend(mentioned_in_conditions(step));
        return Some(dropped);
    }
    None
}

/// One way in which both may have other roles.
struct Change<'c> {
    runner: &'c Runner<'c>,
    start: &'c Store,
    begun: usize,
    role: usize,
    stand: Prefix,
    rest: Rest,
    reached: &'c Store,
}

impl Change<'_> {
    /// Whether that is possible and leads to the same.
    fn explains(&self, path: &mut Path<'_>) -> Result<bool, Stop> {
        let program = path.program;
        let operations = [self.role, self.stand.operation];
        let parts = [
            Part { instance: 0, steps: self.begun..program.operations[self.role].steps.len() },
            Part::first(1, self.stand.length),
        ];
        let mut runner = self.runner(path, &operations);
        let mut store = self.start.clone();
        store.locals[0].resize(program.operations[self.role].locals.len(), None);
        match run(path, &mut runner, &mut store, &parts, Mode::Must) {
            Err(Stop::Impossible) => return Ok(false),
            other => other?,
        }
        if !self.same_results(path, &store)? || !self.same_standing(path, &store)? {
            return Ok(false);
        }
        let dead =
            dead_cells(path, &runner, &parts, self.runner.operations, (self.reached, &store));
        match self.reached.same_memory(&store, path, &dead) {
            Err(Stop::Impossible) => Ok(false),
            other => other,
        }
    }

    /// A runner that guesses nothing anew.
    fn runner<'o>(&self, path: &mut Path<'_>, operations: &'o [usize]) -> Runner<'o> {
        let program = path.program;
        let mut guesses = self.runner.guesses.clone();
        guesses[0].resize(program.operations[self.role].locals.len(), None);
        if self.begun == 0 && self.role != self.runner.operations[0] {
            guesses[0].fill(None);
            self.give_arguments(path, 0, &mut guesses[0]);
        }
        guesses[1].fill(None);
        self.give_arguments(path, 1, &mut guesses[1]);
        Runner { operations, guesses, wanted: Some(None) }
    }

    fn give_arguments(&self, path: &mut Path<'_>, instance: usize, guesses: &mut [Option<Value>]) {
        let own = &path.program.operations[self.runner.operations[instance]];
        for local in own.locals_of(LocalKind::Parameter) {
            let ty = own.locals[local].ty;
            let given = self.reached.locals[instance][local].unwrap_or_else(|| {
                Value::of(path.solver.intern(Term::Local(instance, local), ty, true))
            });
            guesses[local] = Some(given);
        }
    }

    fn same_results(&self, path: &mut Path<'_>, store: &Store) -> Result<bool, Stop> {
        let (program, own) = (path.program, self.runner.operations[0]);
        let mine = used(program, own, usize::MAX, &self.reached.locals[0]);
        let theirs = used(program, self.role, usize::MAX, &store.locals[0]);
        same_locals(path, &mine, &theirs)
    }

    /// Whether the locals that instance 1 needs in its other role are what they are in its own.
    fn same_standing(&self, path: &mut Path<'_>, store: &Store) -> Result<bool, Stop> {
        if self.rest == Rest::Never {
            return Ok(true);
        }
        let other = &path.program.operations[self.stand.operation];
        let mut needed: Vec<usize> = other.locals_of(LocalKind::Result).collect();
        needed.extend(other.steps[self.stand.length..].iter().flat_map(mentioned));
        let of = |store: &Store| needed.iter().map(|&local| store.locals[1][local]).collect();
        let (mine, theirs): (Vec<_>, Vec<_>) = (of(self.reached), of(store));
        same_locals(path, &mine, &theirs)
    }
}
