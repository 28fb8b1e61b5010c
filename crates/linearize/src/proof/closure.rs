//! The check of Algorithm 6 for one prefix x: its closure, and whether the next sub-operation of x
//! can be moved left past every element of it.

use super::context::Context;
use super::footprint::Footprint;
use super::handover::{Rest, hands_over};
use super::local_facts::LocalFacts;
use super::pairs::{
    Part, aliases, ends_early, ends_in_another_role, ends_late, goes_on_in_another_role, run,
    swaps, swaps_in_some_role,
};
use super::pending::Removable;
use super::{Ending, Obstacle, Prefix, prefixes};
use crate::model::{Local, Operation, Program};
use crate::symbolic::claims::Claims;
use crate::symbolic::path::{Path, Stop, walk};
use crate::symbolic::run::Runner;
use crate::symbolic::store::{Mode, Store, sizes};
use std::cell::RefCell;

/// Looks for obstacles to the proof.
pub struct Prover<'p> {
    pub(super) program: &'p Program,
    pub(super) claims: &'p Claims,
    pub(super) no_claims: Claims,
    pub(super) ending: Ending,
    pub(super) prefixes: Vec<Prefix>,
    footprints: Vec<Footprint>,
    pub(super) local_facts: Vec<LocalFacts>,
    removable: Removable,
}

/// A case in which a prefix directly follows x and cannot be moved before it.
struct Stuck {
    follower: usize,
    context: Context,
    /// The aliases of the case if the next sub-operation of x cannot be moved past the follower.
    blocked: Option<Vec<String>>,
}

/// Where an instance of x begins: at its first sub-operation, or standing in a context.
enum Start<'c> {
    Before,
    In(&'c Context),
}

impl<'p> Prover<'p> {
    /// A prover that believes `claims`.
    #[must_use]
    pub fn new(program: &'p Program, claims: &'p Claims, ending: Ending) -> Self {
        let prefixes = prefixes(program);
        let footprints = prefixes.iter().map(|&prefix| Footprint::of(program, prefix)).collect();
        let no_claims = Claims { effort: claims.effort.clone(), ..Claims::default() };
        let local_facts: Vec<_> = program.operations.iter().map(LocalFacts::of).collect();
        let removable = Removable::default();
        Self { program, claims, no_claims, ending, prefixes, footprints, local_facts, removable }
    }

    /// Whether two operations belong to one thread, so that neither runs while the other does.
    pub(super) fn same_thread(&self, one: usize, other: usize) -> bool {
        let thread = |operation: usize| self.program.operations[operation].thread;
        thread(one).is_some() && thread(one) == thread(other)
    }

    /// How many first sub-operations of an operation can be left out of a history in which it never
    /// ends.
    pub(super) fn removable(&self, operation: usize) -> usize {
        self.removable.of(self.program, &self.no_claims, &self.local_facts, operation)
    }

    /// What stops the proof at the proper prefix `x`, if anything does.
    #[must_use]
    pub fn obstacle(&self, x: Prefix) -> Option<Obstacle> {
        let obstacle = |between: usize, directly: bool, case: Vec<String>| {
            let between = self.prefixes[between];
            Some(Obstacle { prefix: x, between, directly, case, pending: false })
        };
        let mut stuck = Vec::new();
        let mut followers = vec![false; self.prefixes.len()];
        for (follower, follows) in followers.iter_mut().enumerate() {
            if self.same_thread(x.operation, self.prefixes[follower].operation) {
                continue;
            }
            match self.first_cases(x, follower) {
                Some(cases) => {
                    *follows = !cases.is_empty();
                    stuck.extend(cases);
                }
                None => return obstacle(follower, true, vec!["too many cases".to_owned()]),
            }
        }
        if stuck.is_empty() {
            return None;
        }
        let everything = self.others(x);
        if let Some(obstacle) = self.unfinished(x, &stuck) {
            return Some(obstacle);
        }
        let mut contexts: Vec<Context> = Vec::new();
        for case in stuck {
            if let Some(aliases) = case.blocked {
                if !self.is_doomed(x, &case.context) {
                    return obstacle(case.follower, true, aliases);
                }
            } else if !contexts.contains(&case.context) {
                contexts.push(case.context);
            }
        }
        // If all prefixes together are no obstacle, neither is the closure; to find the closure
        // itself is more work.
        self.blocked_in_any(x, &contexts, &everything)?;
        let closure = self.close(x, followers, &contexts, &everything);
        let (between, aliases) = self.blocked_in_any(x, &contexts, &closure)?;
        obstacle(between, false, aliases)
    }

    /// All prefixes that may come between x and its next sub-operation.
    fn others(&self, x: Prefix) -> Vec<bool> {
        let apart = |prefix: &Prefix| !self.same_thread(x.operation, prefix.operation);
        self.prefixes.iter().map(apart).collect()
    }

    /// If the operation of x may stop at x for ever: in each case in which something follows that
    /// depends on x, the operation must be able to go on to its end, whatever comes between. Then
    /// the history with that end explains the one without. Where nothing depends on x, it can be
    /// moved to the end of the history and left out; and so it can, together with them, if only
    /// operations depend on it that do not end either.
    ///
    /// This is asked of a whole history, from which what never ends and can be left out is gone.
    fn unfinished(&self, x: Prefix, stuck: &[Stuck]) -> Option<Obstacle> {
        if self.ending == Ending::Assumed || x.length <= self.removable(x.operation) {
            return None;
        }
        let mut others = self.others(x);
        for (stays, prefix) in others.iter_mut().zip(&self.prefixes) {
            let gone = prefix.length <= self.removable(prefix.operation);
            *stays &= prefix.is_complete(self.program) || !gone;
        }
        let stuck: Vec<&Stuck> = stuck.iter().filter(|case| others[case.follower]).collect();
        let contexts: Vec<Context> = stuck.iter().map(|case| case.context.clone()).collect();
        let common = Context::common(&contexts)?;
        if self.goes_to_its_end(x, common, &others) {
            return None;
        }
        let fails = |case: &&&Stuck| !self.goes_to_its_end(x, case.context.clone(), &others);
        let case = stuck.iter().find(fails)?;
        let mut followers = vec![false; self.prefixes.len()];
        stuck.iter().for_each(|case| followers[case.follower] = true);
        let closure = self.close(x, followers, &contexts, &others);
        let complete =
            |(at, &inside): (usize, &bool)| inside && self.prefixes[at].is_complete(self.program);
        if !closure.iter().enumerate().any(complete) {
            return None;
        }
        Some(Obstacle {
            prefix: x,
            between: self.prefixes[case.follower],
            directly: false,
            case: Vec::new(),
            pending: true,
        })
    }

    fn goes_to_its_end(&self, x: Prefix, mut context: Context, others: &[bool]) -> bool {
        self.stabilize(&mut context, others);
        let operations = [x.operation];
        let roles = self.roles_that_begin_alike(x);
        let mut ends = true;
        let walked = walk(self.program, self.claims, |path| {
            let mut runner = Runner::new(self.program, &operations);
            let mut store = Store::start(path, &sizes(self.program, &operations));
            context.enter(path, &mut runner, &mut store)?;
            ends = false;
            for &role in &roles {
                if self.ends_as(path, &store, x, role)? {
                    ends = true;
                    break;
                }
            }
            if !ends {
                path.use_claims()?;
            }
            Ok(ends)
        });
        ends && walked.is_ok()
    }

    /// Whether an operation that stands at x can go on as `role` does, to its end.
    fn ends_as(
        &self,
        path: &mut Path<'_>,
        standing: &Store,
        x: Prefix,
        role: usize,
    ) -> Result<bool, Stop> {
        let operations = [role];
        let mut runner = Runner::new(self.program, &operations);
        let mut store = standing.clone();
        store.locals[0].resize(self.program.operations[role].locals.len(), None);
        let rest = Part { instance: 0, steps: x.length..self.program.operations[role].steps.len() };
        match run(path, &mut runner, &mut store, &[rest], Mode::Must) {
            Err(Stop::Impossible) => Ok(false),
            other => other.map(|()| true),
        }
    }

    /// All roles of an operation.
    fn roles_of(&self, operation: usize) -> Vec<usize> {
        let name = &self.program.operations[operation].name;
        let same = |role: &usize| self.program.operations[*role].name == *name;
        (0..self.program.operations.len()).filter(same).collect()
    }

    /// The roles of an operation whose first sub-operations are those of x: until they part, the
    /// operation may still be any of them.
    fn roles_that_begin_alike(&self, x: Prefix) -> Vec<usize> {
        let own = &self.program.operations[x.operation];
        let alike = |role: &usize| {
            let other = &self.program.operations[*role];
            let begins = other.name == own.name
                && other.steps.len() > x.length
                && own
                    .steps
                    .iter()
                    .zip(&other.steps)
                    .take(x.length)
                    .all(|(a, b)| a.does_the_same(b));
            let mut locals = own.locals.iter().zip(&other.locals);
            let same = locals.all(|(a, b)| a.name == b.name && a.ty == b.ty && a.kind == b.kind);
            begins && same && own.locals.len() <= other.locals.len() + 1
        };
        let mut roles = vec![x.operation];
        roles.extend(
            (0..self.program.operations.len()).filter(|&role| role != x.operation && alike(&role)),
        );
        roles
    }

    /// The roles of an operation that do what it does before and after its next sub-operation, on
    /// the same locals: whichever of them it takes now, it goes on alike.
    fn roles_that_differ_in_the_next_step(&self, x: Prefix) -> Vec<usize> {
        let own = &self.program.operations[x.operation];
        let same_besides = |other: &Operation| {
            let mut steps = own.steps.iter().zip(&other.steps).enumerate();
            own.steps.len() == other.steps.len()
                && steps.all(|(at, (mine, theirs))| at == x.length || mine.does_the_same(theirs))
        };
        let alike = |role: &usize| {
            let other = &self.program.operations[*role];
            let named = |local: &Local| (local.name.clone(), local.ty, local.kind);
            *role != x.operation
                && other.name == own.name
                && other.thread == own.thread
                && other.locals.iter().map(named).eq(own.locals.iter().map(named))
                && same_besides(other)
        };
        (0..self.program.operations.len()).filter(alike).collect()
    }

    /// Looks at what all contexts have in common first: it mostly suffices, and is one instead of
    /// many.
    fn blocked_in_any(
        &self,
        x: Prefix,
        contexts: &[Context],
        closure: &[bool],
    ) -> Option<(usize, Vec<String>)> {
        if contexts.len() > 1 {
            let common = Context::common(contexts)?;
            self.blocked_in(x, common, closure)?;
        }
        contexts.iter().find_map(|context| self.blocked_in(x, context.clone(), closure))
    }

    /// The cases in which a prefix directly follows x and cannot be moved before it; `None` if
    /// there are too many to tell.
    fn first_cases(&self, x: Prefix, follower: usize) -> Option<Vec<Stuck>> {
        let y = self.prefixes[follower];
        if self.footprint(x).misses(&self.footprints[follower]) {
            return Some(Vec::new());
        }
        let operations = [x.operation, y.operation];
        let (left, right) = (Part::first(0, x.length), Part::first(1, y.length));
        let next = Part { instance: 0, steps: x.length..x.length + 1 };
        let may_end_late = self.may_end_late(x);
        let ends = x.length + 1 == self.program.operations[x.operation].steps.len();
        let detours = self.roles_that_differ_in_the_next_step(x);
        let names = self.roles_of(x.operation);
        let found: RefCell<Vec<Stuck>> = RefCell::default();
        let walked = walk(self.program, self.claims, |path| {
            let mut runner = Runner::new(self.program, &operations);
            let start = Store::start(path, &sizes(self.program, &operations));
            let mut store = start.clone();
            run(path, &mut runner, &mut store, &[left.clone(), right.clone()], Mode::Assume)?;
            path.use_claims()?;
            if swaps(path, &mut runner, &start, &[right.clone(), left.clone()], &store)? {
                return Ok(true);
            }
            let mut context = Context::take(path, &store, 0, x.operation);
            context.busy.extend(self.occupies(y));
            let index = found.borrow().iter().position(|known| known.context == context);
            let index = index.unwrap_or_else(|| {
                found.borrow_mut().push(Stuck { follower, context, blocked: None });
                found.borrow().len() - 1
            });
            run(path, &mut runner, &mut store, std::slice::from_ref(&next), Mode::Assume)?;
            path.use_claims()?;
            let moved = [left.clone(), next.clone(), right.clone()];
            let explained = swaps_in_some_role(path, &mut runner, &start, &moved, &store)?
                || (may_end_late && ends_late(path, &runner, &start, &right, &store)?)
                || (ends && ends_early(path, &runner, &start, &right, &store)?)
                || (ends && self.hands_over(path, &runner, &start, (0, &names), y, &store)?)
                || goes_on_in_another_role(
                    path,
                    &runner,
                    &start,
                    (0..x.length + 1, &detours),
                    &right,
                    &store,
                )?
                || self.never_goes_on(path, &store, y);
            if !explained {
                let aliases = aliases(path, &runner, &store);
                found.borrow_mut()[index].blocked.get_or_insert(aliases);
            }
            Ok(true)
        });
        walked.is_ok().then(|| found.into_inner())
    }

    fn footprint(&self, prefix: Prefix) -> &Footprint {
        let at = self.prefixes.iter().position(|&known| known == prefix).unwrap_or_default();
        &self.footprints[at]
    }

    /// Whether the next sub-operation of x is its last, and nothing before it changed anything
    /// shared: the operation may then as well run as a whole at its end.
    fn may_end_late(&self, x: Prefix) -> bool {
        let last = x.length + 1 == self.program.operations[x.operation].steps.len();
        last && !self.footprint(x).writes_anything()
    }

    /// The closure: what directly follows x and cannot be moved before it, and whatever cannot be
    /// moved before an element of the closure.
    /// Only prefixes that are `allowed` come into it.
    fn close(
        &self,
        x: Prefix,
        mut closure: Vec<bool>,
        contexts: &[Context],
        allowed: &[bool],
    ) -> Vec<bool> {
        let complete = |at: usize| self.prefixes[at].is_complete(self.program);
        let (whole, parts): (Vec<usize>, Vec<usize>) =
            (0..self.prefixes.len()).partition(|&at| complete(at));
        let mut work: Vec<usize> = (0..closure.len()).filter(|&at| closure[at]).collect();
        // Complete operations first: nothing is ever moved before one, because the order of
        // operations that do not overlap is kept, so behind one everything belongs.
        while !whole.iter().any(|&at| closure[at]) {
            let Some(element) = work.pop() else { return closure };
            for &candidate in whole.iter().chain(&parts) {
                if !closure[candidate]
                    && allowed[candidate]
                    && self.depends(x, contexts, element, candidate)
                {
                    closure[candidate] = true;
                    work.push(candidate);
                    if complete(candidate) {
                        break;
                    }
                }
            }
        }
        allowed.to_vec()
    }

    /// Whether there may be a state after x in which `later` cannot be moved before `earlier`.
    fn depends(&self, x: Prefix, contexts: &[Context], earlier: usize, later: usize) -> bool {
        if self.footprints[earlier].misses(&self.footprints[later]) {
            return false;
        }
        let starts = std::iter::once(Start::Before).chain(contexts.iter().map(Start::In));
        starts.into_iter().any(|start| self.depends_from(x, &start, earlier, later))
    }

    fn depends_from(&self, x: Prefix, from: &Start<'_>, earlier: usize, later: usize) -> bool {
        let (first, second) = (self.prefixes[earlier], self.prefixes[later]);
        let operations = [x.operation, first.operation, second.operation];
        let (one, two) = (Part::first(1, first.length), Part::first(2, second.length));
        let mut depends = false;
        let walked = walk(self.program, self.claims, |path| {
            let mut runner = Runner::new(self.program, &operations);
            let mut start = Store::start(path, &sizes(self.program, &operations));
            match from {
                Start::Before => {
                    let x = Part::first(0, x.length);
                    run(path, &mut runner, &mut start, &[x], Mode::Assume)?;
                }
                // Weakened later; as it is now it may be too strong, so nothing of it is used
                // but where the locals point.
                Start::In(context) => {
                    let bare = Context { literals: Vec::new(), ..(*context).clone() };
                    bare.enter(path, &mut runner, &mut start)?;
                }
            }
            let mut store = start.clone();
            run(path, &mut runner, &mut store, &[one.clone(), two.clone()], Mode::Assume)?;
            path.use_claims()?;
            depends = !swaps(path, &mut runner, &start, &[two.clone(), one.clone()], &store)?;
            Ok(!depends)
        });
        depends || walked.is_err()
    }

    /// Weakens a context until the closure preserves it, then looks for an element of the closure
    /// that the next sub-operation of x cannot be moved past.
    fn blocked_in(
        &self,
        x: Prefix,
        taken: Context,
        closure: &[bool],
    ) -> Option<(usize, Vec<String>)> {
        let family = self.family(x, taken.clone(), closure);
        let may_end_late = self.may_end_late(x);
        let ends = x.length + 1 == self.program.operations[x.operation].steps.len();
        let roles = self.roles_that_begin_alike(x);
        let detours = self.roles_that_differ_in_the_next_step(x);
        let next = Part { instance: 0, steps: x.length..x.length + 1 };
        let elements = closure.iter().enumerate().filter(|(_, inside)| **inside);
        let pairs = elements.flat_map(|(between, _)| family.iter().map(move |one| (between, one)));
        for (between, context) in pairs {
            let y = self.prefixes[between];
            if self.is_busy(context, y) {
                continue;
            }
            let part = Part::first(1, y.length);
            let mut blocked = None;
            let walked = self.walk_in(context, y, |path, runner, start| {
                let mut store = start.clone();
                run(path, runner, &mut store, &[part.clone(), next.clone()], Mode::Assume)?;
                path.use_claims()?;
                let moved = [next.clone(), part.clone()];
                let explained = swaps_in_some_role(path, runner, start, &moved, &store)?
                    || (may_end_late && ends_late(path, runner, start, &part, &store)?)
                    || (ends
                        && ends_in_another_role(
                            path,
                            runner,
                            start,
                            (x.length, &roles),
                            &part,
                            &store,
                        )?)
                    || (ends
                        && self.hands_over(path, runner, start, (x.length, &roles), y, &store)?)
                    || goes_on_in_another_role(
                        path,
                        runner,
                        start,
                        (x.length..x.length + 1, &detours),
                        &part,
                        &store,
                    )?
                    || self.never_goes_on(path, &store, y);
                if !explained {
                    blocked = Some(aliases(path, runner, &store));
                }
                Ok(blocked.is_none())
            });
            if !walked {
                blocked = Some(vec!["too many cases".to_owned()]);
            }
            if let Some(aliases) = blocked {
                // If the operation can never end, there is nothing to explain.
                return (!self.is_doomed(x, &taken)).then_some((between, aliases));
            }
        }
        None
    }

    /// Whether instance 1, which stands at the proper prefix y, can never end and need not be
    /// explained: then what comes between is no obstacle, because it is not there.
    fn never_goes_on(&self, path: &mut Path<'_>, store: &Store, y: Prefix) -> bool {
        if y.is_complete(self.program) {
            return false;
        }
        let context = Context::take(path, store, 1, y.operation);
        self.is_doomed(y, &context)
    }

    /// Whether x, which ends, can go on before y if both have other roles.
    fn hands_over(
        &self,
        path: &mut Path<'_>,
        runner: &Runner<'_>,
        start: &Store,
        ends_as: (usize, &[usize]),
        y: Prefix,
        store: &Store,
    ) -> Result<bool, Stop> {
        if y.is_complete(self.program) || self.roles_of(y.operation).len() == 1 {
            return Ok(false);
        }
        if hands_over(path, runner, start, ends_as, (y, Rest::Open), store)? {
            return Ok(true);
        }
        let context = Context::take(path, store, 1, y.operation);
        Ok(self.stops_at(y, &context) == Some(y.length)
            && hands_over(path, runner, start, ends_as, (y, Rest::Never), store)?)
    }
}
