//! Pairs of prefixes: can the second follow the first, and can the two be swapped?
//!
//! Both questions are answered in each case of aliasing by itself, from the meaning of the
//! sub-operations; these are the ordering and reversibility tables that the reference asks of its
//! user.

use super::Prefix;
use crate::model::{LocalKind, Program, Type};
use crate::symbolic::claims::{Claims, Effort};
use crate::symbolic::mentions::mentioned;
use crate::symbolic::path::{Path, Stop, walk};
use crate::symbolic::run::{Guesses, Runner};
use crate::symbolic::solver::{Literal, Term, Value};
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
/// to what `reached` is: the same memory, the same results of what has ended, and the same locals
/// of what goes on, as far as they are still used.
pub fn swaps(
    path: &mut Path<'_>,
    runner: &mut Runner<'_>,
    start: &Store,
    other_order: &[Part],
    reached: &Store,
) -> Result<bool, Stop> {
    let same = attempt(path, runner, start, other_order, reached, &[])?;
    if !same {
        // Only a state that the invariants allow counts.
        path.use_claims()?;
    }
    Ok(same)
}

/// Like [`swaps`], but a complete operation may also be explained by another of its roles, or by
/// the same one with other guesses: callers cannot tell them apart.
pub fn swaps_in_some_role(
    path: &mut Path<'_>,
    runner: &mut Runner<'_>,
    start: &Store,
    other_order: &[Part],
    reached: &Store,
) -> Result<bool, Stop> {
    if swaps(path, runner, start, other_order, reached)? {
        return Ok(true);
    }
    let complete =
        other_order.iter().find(|part| part.instance > 0 && is_whole(path, runner, part));
    if let Some(part) = complete {
        let roles = RoleRun {
            runner,
            start,
            parts: other_order,
            reached,
            instance: part.instance,
            also: None,
        };
        if roles.any(path)? {
            return Ok(true);
        }
    }
    path.use_claims()?;
    Ok(false)
}

/// Whether instance 0, which has just ended and wrote nothing shared before its last
/// sub-operation, can as well run as a whole after `before_it`, in any of its roles.
pub fn ends_late(
    path: &mut Path<'_>,
    runner: &Runner<'_>,
    start: &Store,
    before_it: &Part,
    reached: &Store,
) -> Result<bool, Stop> {
    let steps = path.program.operations[runner.operations[0]].steps.len();
    let parts = [before_it.clone(), Part::first(0, steps)];
    let roles = RoleRun { runner, start, parts: &parts, reached, instance: 0, also: None };
    if roles.any(path)? {
        return Ok(true);
    }
    path.use_claims()?;
    Ok(false)
}

/// Whether instance 0, which ran as a whole, did what another of its roles does.
pub fn runs_as_another(
    path: &mut Path<'_>,
    runner: &Runner<'_>,
    start: &Store,
    reached: &Store,
) -> Result<bool, Stop> {
    let steps = path.program.operations[runner.operations[0]].steps.len();
    let parts = [Part::first(0, steps)];
    let roles = RoleRun { runner, start, parts: &parts, reached, instance: 0, also: None };
    if roles.any_but_its_own(path)? {
        return Ok(true);
    }
    path.use_claims()?;
    Ok(false)
}

/// Whether instance 0, which has just ended, can as well run as a whole, in any of its roles.
pub fn runs_whole(
    path: &mut Path<'_>,
    runner: &Runner<'_>,
    start: &Store,
    reached: &Store,
) -> Result<bool, Stop> {
    let steps = path.program.operations[runner.operations[0]].steps.len();
    let parts = [Part::first(0, steps)];
    RoleRun { runner, start, parts: &parts, reached, instance: 0, also: None }.any(path)
}

/// Whether instance 0, which has just ended, can as well run as a whole before `after_it`, in any
/// of its roles; what came after it, if complete, may then have another role too.
pub fn ends_early(
    path: &mut Path<'_>,
    runner: &Runner<'_>,
    start: &Store,
    after_it: &Part,
    reached: &Store,
) -> Result<bool, Stop> {
    let steps = path.program.operations[runner.operations[0]].steps.len();
    let parts = [Part::first(0, steps), after_it.clone()];
    let also = is_whole(path, runner, after_it).then_some(after_it.instance);
    let roles = RoleRun { runner, start, parts: &parts, reached, instance: 0, also };
    if roles.any(path)? {
        return Ok(true);
    }
    path.use_claims()?;
    Ok(false)
}

/// Whether instance 0, which stood after `begun` sub-operations and has just ended, can as well go
/// on as one of `roles`, which begin alike, before `after_it`; what came after it, if complete, may
/// then have another role too.
pub fn ends_in_another_role(
    path: &mut Path<'_>,
    runner: &Runner<'_>,
    start: &Store,
    (begun, roles): (usize, &[usize]),
    after_it: &Part,
    reached: &Store,
) -> Result<bool, Stop> {
    let program = path.program;
    let own = runner.operations[0];
    for &role in roles {
        let mut operations = runner.operations.to_vec();
        operations[0] = role;
        let mut start = start.clone();
        start.locals[0].resize(program.operations[role].locals.len(), None);
        let mut guesses = runner.guesses.clone();
        guesses[0].resize(program.operations[role].locals.len(), None);
        let rest = Part { instance: 0, steps: begun..program.operations[role].steps.len() };
        let parts = [rest, after_it.clone()];
        let mut runner = Runner { operations: &operations, guesses, wanted: None };
        if attempt(path, &mut runner, &start, &parts, reached, &[(0, own)])? {
            return Ok(true);
        }
        if is_whole(path, &runner, after_it) {
            let (start, parts, runner) = (&start, &parts, &runner);
            let instance = after_it.instance;
            let other = RoleRun { runner, start, parts, reached, instance, also: None };
            if other.any_beside(path, (0, own))? {
                return Ok(true);
            }
        }
    }
    path.use_claims()?;
    Ok(false)
}

/// Whether instance 0 can as well run `steps` as one of `roles` does, before `after_it`. The roles do
/// the same before and after these sub-operations, so that it goes on as if nothing had happened.
pub fn goes_on_in_another_role(
    path: &mut Path<'_>,
    runner: &Runner<'_>,
    start: &Store,
    (steps, roles): (Range<usize>, &[usize]),
    after_it: &Part,
    reached: &Store,
) -> Result<bool, Stop> {
    let own = runner.operations[0];
    for &role in roles {
        let mut operations = runner.operations.to_vec();
        operations[0] = role;
        let parts = [Part { instance: 0, steps: steps.clone() }, after_it.clone()];
        let guesses = runner.guesses.clone();
        let mut runner = Runner { operations: &operations, guesses, wanted: None };
        if attempt(path, &mut runner, start, &parts, reached, &[(0, own)])? {
            return Ok(true);
        }
    }
    path.use_claims()?;
    Ok(false)
}

fn is_whole(path: &Path<'_>, runner: &Runner<'_>, part: &Part) -> bool {
    let steps = path.program.operations[runner.operations[part.instance]].steps.len();
    part.steps == (0..steps)
}

/// Runs the other order and compares. `replaced` are instances that run in another role, with
/// the operation of their role in `reached`.
fn attempt(
    path: &mut Path<'_>,
    runner: &mut Runner<'_>,
    start: &Store,
    other_order: &[Part],
    reached: &Store,
    replaced: &[(usize, usize)],
) -> Result<bool, Stop> {
    let mut store = start.clone();
    match run(path, runner, &mut store, other_order, Mode::Must) {
        Err(Stop::Impossible) => return Ok(false),
        other => other?,
    }
    for (instance, &operation) in runner.operations.iter().enumerate() {
        let done = done(path.program, runner, other_order, instance);
        let other = replaced.iter().find(|(at, _)| *at == instance);
        let before = other.map_or(operation, |&(_, before)| before);
        let mine = used(path.program, before, done, &reached.locals[instance]);
        let theirs = used(path.program, operation, done, &store.locals[instance]);
        if !same_locals(path, &mine, &theirs)? {
            return Ok(false);
        }
    }
    let mut before = runner.operations.to_vec();
    replaced.iter().for_each(|&(instance, operation)| before[instance] = operation);
    let dead = dead_cells(path, runner, other_order, &before, (reached, &store));
    match reached.same_memory(&store, path, &dead) {
        Err(Stop::Impossible) => Ok(false),
        other => other,
    }
}

/// How many sub-operations of an instance have run after the parts: 0 if it only stands by, more
/// than any role has if it has ended.
fn done(program: &Program, runner: &Runner<'_>, parts: &[Part], instance: usize) -> usize {
    let mine = parts.iter().filter(|part| part.instance == instance);
    let done = mine.map(|part| part.steps.end).max().unwrap_or(0);
    let ended = done == program.operations[runner.operations[instance]].steps.len();
    if ended { usize::MAX } else { done }
}

/// The fields of nodes that nobody reads any more, because the operations that made the nodes have ended,
/// in both orders. `before` are the roles of the instances in the first order.
pub fn dead_cells(
    path: &Path<'_>,
    runner: &Runner<'_>,
    parts: &[Part],
    before: &[usize],
    (reached, store): (&Store, &Store),
) -> Vec<(usize, Value)> {
    let owned = path.owned();
    let mut found = Vec::new();
    if owned.fields().is_empty() {
        return found;
    }
    for (instance, &operation) in runner.operations.iter().enumerate() {
        if done(path.program, runner, parts, instance) != usize::MAX {
            continue;
        }
        let made = |store: &Store, operation: usize| -> Vec<Value> {
            let makers = owned.makers(operation).iter();
            makers
                .filter_map(|&local| store.locals[instance].get(local).copied().flatten())
                .collect()
        };
        let theirs = made(store, operation);
        for node in made(reached, before[instance]) {
            if theirs.contains(&node) {
                found.extend(owned.fields().iter().map(|&field| (field, node)));
            }
        }
    }
    found
}

/// The locals that matter from here on: results, and those that later sub-operations mention.
pub fn used(
    program: &Program,
    operation: usize,
    done: usize,
    locals: &[Option<Value>],
) -> Vec<Option<Value>> {
    let operation = &program.operations[operation];
    let later = operation.steps.get(done..).unwrap_or_default();
    let mentioned: Vec<usize> = later.iter().flat_map(mentioned).collect();
    let matters = |local: &usize| {
        operation.locals[*local].kind == LocalKind::Result || mentioned.contains(local)
    };
    (0..locals.len()).filter(matters).map(|local| locals[local]).collect()
}

/// Whether two lists of locals hold the same.
pub fn same_locals(
    path: &mut Path<'_>,
    mine: &[Option<Value>],
    theirs: &[Option<Value>],
) -> Result<bool, Stop> {
    if mine.len() != theirs.len() {
        return Ok(false);
    }
    for pair in mine.iter().zip(theirs) {
        let equal = match pair {
            (Some(mine), Some(theirs)) => {
                comparable(path, *mine, *theirs) && path.decide(Literal::equal(*mine, *theirs))?
            }
            (None, None) => true,
            _ => false,
        };
        if !equal {
            return Ok(false);
        }
    }
    Ok(true)
}

fn comparable(path: &Path<'_>, mine: Value, theirs: Value) -> bool {
    path.solver.is_int(mine.term) == path.solver.is_int(theirs.term)
}

/// How many locals of another role are tried with values at hand.
const MOST_GUESSES: usize = 2;

/// A run in which one instance, complete, may have another role.
struct RoleRun<'r> {
    runner: &'r Runner<'r>,
    start: &'r Store,
    parts: &'r [Part],
    reached: &'r Store,
    instance: usize,
    /// Another instance, complete too, that may then also have another role.
    also: Option<usize>,
}

impl RoleRun<'_> {
    /// Whether some role does what was done, with the same arguments and results.
    fn any(&self, path: &mut Path<'_>) -> Result<bool, Stop> {
        let program = path.program;
        let own = self.runner.operations[self.instance];
        for (role, operation) in program.operations.iter().enumerate() {
            if operation.name == program.operations[own].name && self.role(path, role)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn any_but_its_own(&self, path: &mut Path<'_>) -> Result<bool, Stop> {
        let program = path.program;
        let own = self.runner.operations[self.instance];
        for (role, operation) in program.operations.iter().enumerate() {
            let other = role != own && operation.name == program.operations[own].name;
            if other && self.role(path, role)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn role(&self, path: &mut Path<'_>, role: usize) -> Result<bool, Stop> {
        let operation = &path.program.operations[role];
        let mut operations = self.runner.operations.to_vec();
        operations[self.instance] = role;
        let whole = Part::first(self.instance, operation.steps.len());
        let own = |part: &Part| part.instance == self.instance;
        let parts =
            self.parts.iter().map(|part| if own(part) { whole.clone() } else { part.clone() });
        let mut start = self.start.clone();
        start.locals[self.instance] = vec![None; operation.locals.len()];
        let mut guesses = self.runner.guesses.clone();
        guesses[self.instance] = vec![None; operation.locals.len()];
        for local in operation.locals_of(LocalKind::Parameter) {
            guesses[self.instance][local] = Some(self.argument(path, local));
        }
        let parts: Vec<Part> = parts.collect();
        if self.tries(path, &operations, &parts, &start, guesses.clone(), MOST_GUESSES)? {
            return Ok(true);
        }
        let Some(instance) = self.also else { return Ok(false) };
        let runner = Runner { operations: &operations, guesses, wanted: None };
        let also = None;
        let parts = &parts;
        let other = RoleRun { runner: &runner, start: &start, parts, instance, also, ..*self };
        other.any_beside(path, (self.instance, self.runner.operations[self.instance]))
    }

    /// What the caller gave: what the instance saw of it, or anything if it never looked. Another
    /// role must then do for whatever it was.
    fn argument(&self, path: &mut Path<'_>, local: usize) -> Value {
        let own = &path.program.operations[self.runner.operations[self.instance]];
        let ty = own.locals[local].ty;
        self.reached.locals[self.instance][local].unwrap_or_else(|| {
            Value::of(path.solver.intern(Term::Local(self.instance, local), ty, true))
        })
    }

    /// Like [`RoleRun::any`], beside an instance that already has another role.
    fn any_beside(&self, path: &mut Path<'_>, beside: (usize, usize)) -> Result<bool, Stop> {
        let program = path.program;
        let own = self.runner.operations[self.instance];
        for (role, operation) in program.operations.iter().enumerate() {
            if operation.name != program.operations[own].name {
                continue;
            }
            let mut operations = self.runner.operations.to_vec();
            operations[self.instance] = role;
            let whole = Part::first(self.instance, operation.steps.len());
            let mine = |part: &Part| part.instance == self.instance;
            let parts = self.parts.iter();
            let parts: Vec<Part> =
                parts.map(|part| if mine(part) { whole.clone() } else { part.clone() }).collect();
            let mut start = self.start.clone();
            start.locals[self.instance] = vec![None; operation.locals.len()];
            let mut guesses = self.runner.guesses.clone();
            guesses[self.instance] = vec![None; operation.locals.len()];
            for local in operation.locals_of(LocalKind::Parameter) {
                guesses[self.instance][local] = Some(self.argument(path, local));
            }
            let mut runner = Runner { operations: &operations, guesses, wanted: Some(None) };
            let replaced = [beside, (self.instance, own)];
            if attempt(path, &mut runner, &start, &parts, self.reached, &replaced)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Tries values at hand for what the role has to guess.
    fn tries(
        &self,
        path: &mut Path<'_>,
        operations: &[usize],
        parts: &[Part],
        start: &Store,
        guesses: Guesses,
        left: usize,
    ) -> Result<bool, Stop> {
        let mut runner = Runner { operations, guesses: guesses.clone(), wanted: Some(None) };
        let replaced = [(self.instance, self.runner.operations[self.instance])];
        if attempt(path, &mut runner, start, parts, self.reached, &replaced)? {
            return Ok(true);
        }
        let Some(Some(local)) = runner.wanted else { return Ok(false) };
        if left == 0 || guesses[self.instance][local].is_some() {
            return Ok(false);
        }
        let ty = path.program.operations[operations[self.instance]].locals[local].ty;
        for value in self.at_hand(path, ty) {
            let mut more = guesses.clone();
            more[self.instance][local] = Some(value);
            if self.tries(path, operations, parts, start, more, left - 1)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Values of the type, in locals and shared variables, that every thread could hold.
    fn at_hand(&self, path: &Path<'_>, ty: Type) -> Vec<Value> {
        let shared = self.start.globals.iter().copied();
        let locals = self.reached.locals.iter().flatten().flatten().copied();
        let mut found: Vec<Value> = Vec::new();
        for value in locals.chain(shared) {
            let public =
                ty == Type::Int || path.solver.class_is_public(path.solver.root(value.term));
            if public && path.solver.type_of(value.term) == ty && !found.contains(&value) {
                found.push(value);
            }
        }
        found
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
        let reversible =
            !first.is_complete(program) && swaps(path, &mut runner, &start, &other_order, &store)?;
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
        let twin = runner.operations[..instance].contains(&runner.operations[instance]);
        let prime = if twin { "'" } else { "" };
        let locals = operation.locals.iter().enumerate();
        locals.filter_map(move |(number, local)| {
            let plain = matches!(local.kind, LocalKind::Declared | LocalKind::Parameter);
            let value = store.locals[instance][number].filter(|_| plain)?;
            Some((format!("{}{prime}.{}", operation.title(), local.name), local.ty, value))
        })
    };
    for second in 1..runner.operations.len() {
        for first in 0..second {
            for (left_name, left_type, left) in named(first) {
                for (right_name, right_type, right) in named(second) {
                    let comparable = left_type == right_type;
                    if comparable && path.solver.known(Literal::equal(left, right)) == Some(true) {
                        found.push(format!("{left_name} == {right_name}"));
                    }
                }
            }
        }
    }
    found
}

/// Every pair of prefixes, with what its invariants allow to be assumed.
#[must_use]
pub fn all_pairs(program: &Program) -> Vec<Pair> {
    let (claims, _) = super::invariants::believe(program, &Effort::default());
    let prefixes = super::prefixes(program);
    let both =
        prefixes.iter().flat_map(|&first| prefixes.iter().map(move |&second| (first, second)));
    both.map(|(first, second)| derive(program, &claims, first, second)).collect()
}
