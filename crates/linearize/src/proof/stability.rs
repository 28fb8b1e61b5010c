//! What is known of an operation that stands still, and stays true whatever runs beside it: in a
//! rearranged history, where prefixes run one after the other, and in a history as it is, where single
//! sub-operations do.

use super::closure::Prover;
use super::context::Context;
use super::pairs::{Part, run};
use super::{Ending, Prefix};
use crate::symbolic::path::{Path, Stop, walk};
use crate::symbolic::run::Runner;
use crate::symbolic::store::{Mode, Store, sizes};

impl<'p> Prover<'p> {
    /// The thread that a prefix keeps from running anything else.
    pub(super) fn occupies(&self, y: Prefix) -> Option<usize> {
        let thread = self.program.operations[y.operation].thread;
        thread.filter(|_| !y.is_complete(self.program))
    }

    pub(super) fn is_busy(&self, context: &Context, y: Prefix) -> bool {
        let thread = self.program.operations[y.operation].thread;
        thread.is_some_and(|thread| context.busy.contains(&thread))
    }

    /// What is known of x however many elements of the closure have run, by the threads that are busy
    /// then. States in which x can never end and need not be explained do not count.
    pub(super) fn family(&self, x: Prefix, context: Context, closure: &[bool]) -> Vec<Context> {
        let mut family = vec![context];
        let mut at = 0;
        let mut quiet = 0;
        while quiet < family.len() {
            let changed = self.spread(x, &mut family, at, closure);
            quiet = if changed { 0 } else { quiet + 1 };
            at = (at + 1) % family.len();
        }
        family
    }

    /// Runs every element of the closure from one of the family; whether that weakened any.
    fn spread(&self, x: Prefix, family: &mut Vec<Context>, from: usize, closure: &[bool]) -> bool {
        let mut changed = false;
        for (at, _) in closure.iter().enumerate().filter(|(_, inside)| **inside) {
            let y = self.prefixes[at];
            if self.is_busy(&family[from], y) {
                continue;
            }
            let mut busy = family[from].busy.clone();
            busy.extend(self.occupies(y));
            busy.sort_unstable();
            let known = family.iter().position(|one| one.busy == busy);
            let to = known.unwrap_or_else(|| {
                family.push(Context { busy, ..family[from].clone() });
                family.len() - 1
            });
            let weaker = self.weakened(&family[from], y, family[to].clone(), Some(x));
            changed |= weaker != family[to] || known.is_none();
            family[to] = weaker;
        }
        changed
    }

    /// Drops from the context what an element of the closure does not preserve.
    pub(super) fn stabilize(&self, context: &mut Context, closure: &[bool]) {
        let mut changed = true;
        while changed {
            changed = false;
            for (at, _) in closure.iter().enumerate().filter(|(_, inside)| **inside) {
                changed |= self.weaken_by(context, self.prefixes[at]);
            }
        }
    }

    fn weaken_by(&self, context: &mut Context, prefix: Prefix) -> bool {
        let weaker = self.weakened(context, prefix, context.clone(), None);
        let changed = weaker != *context;
        *context = weaker;
        changed
    }

    /// What of `weaker` holds after `prefix` has run from `context`. With `unless`, states do not count
    /// in which that one can never end and need not be explained.
    fn weakened(
        &self,
        context: &Context,
        prefix: Prefix,
        mut weaker: Context,
        unless: Option<Prefix>,
    ) -> Context {
        let part = Part::first(1, prefix.length);
        let walked = self.walk_in(context, prefix, |path, runner, start| {
            let mut store = start.clone();
            run(path, runner, &mut store, std::slice::from_ref(&part), Mode::Assume)?;
            path.use_claims()?;
            let mut less = weaker.clone();
            less.weaken(path, runner, &mut store)?;
            if less != weaker && !unless.is_some_and(|x| self.ends_never(path, &store, x)) {
                weaker = less;
            }
            Ok(true)
        });
        if !walked {
            weaker.literals.clear();
        }
        weaker
    }

    /// Whether instance 0, which stands at x, can never end and need not be explained.
    pub(super) fn ends_never(&self, path: &mut Path<'_>, store: &Store, x: Prefix) -> bool {
        let context = Context::take(path, store, 0, x.operation);
        self.is_doomed(x, &context)
    }

    /// Whether an operation that stands in this context can never end, whatever others do, and
    /// need not be explained: because only operations that end are, or because nothing it can have
    /// done matters to others, so that it can be left out.
    ///
    /// This speaks of the history as it is, not rearranged: the others go on one sub-operation at
    /// a time, from wherever they are, so nothing is known of their locals and no claim is used.
    pub(super) fn is_doomed(&self, x: Prefix, context: &Context) -> bool {
        self.stops_at(x, context).is_some_and(|step| {
            self.ending == Ending::Assumed || step <= self.removable(x.operation)
        })
    }

    /// The first sub-operation that can never happen once an operation stands in this context.
    pub(super) fn stops_at(&self, x: Prefix, context: &Context) -> Option<usize> {
        let steps = self.program.operations[x.operation].steps.len();
        let mut context = context.clone();
        loop {
            let before = context.clone();
            self.weaken_by_steps(&mut context);
            for step in x.length..steps {
                self.weaken_by_own(&mut context, x, step);
            }
            if context == before {
                break;
            }
        }
        (x.length..steps).find(|&step| !self.can_run(&context, x, step))
    }

    /// Drops from the context what a single sub-operation of another operation does not preserve.
    pub(super) fn stabilize_by_steps(&self, context: &mut Context) {
        loop {
            let before = context.clone();
            self.weaken_by_steps(context);
            if *context == before {
                return;
            }
        }
    }

    fn weaken_by_steps(&self, context: &mut Context) {
        for (operation, other) in self.program.operations.iter().enumerate() {
            if self.same_thread(context.operation, operation) {
                continue;
            }
            for step in 0..other.steps.len() {
                self.weaken_by_step(context, operation, step);
            }
        }
    }

    fn weaken_by_step(&self, context: &mut Context, operation: usize, step: usize) {
        let mut weaker = context.clone();
        let operations = [context.operation, operation];
        let part = Part { instance: 1, steps: step..step + 1 };
        let walked = walk(self.program, &self.no_claims, |path| {
            path.solver.all_have_run = true;
            let mut runner = Runner::new(self.program, &operations);
            let mut store = Store::start(path, &sizes(self.program, &operations));
            context.enter(path, &mut runner, &mut store)?;
            self.local_facts[operation].enter(path, self.program, &mut store, 1, (operation, step));
            run(path, &mut runner, &mut store, std::slice::from_ref(&part), Mode::Assume)?;
            weaker.weaken(path, &mut runner, &mut store)?;
            Ok(true)
        });
        if walked.is_err() {
            weaker.literals.clear();
        }
        *context = weaker;
    }

    fn weaken_by_own(&self, context: &mut Context, x: Prefix, step: usize) {
        let standing = context.after(self.program, x.length..step);
        let mut weaker = context.clone();
        let walked = self.walk_own(&standing, step, |path, runner, store| {
            weaker.weaken(path, runner, store)?;
            Ok(true)
        });
        if !walked {
            weaker.literals.clear();
        }
        *context = weaker;
    }

    fn can_run(&self, context: &Context, x: Prefix, step: usize) -> bool {
        let standing = context.after(self.program, x.length..step);
        let mut possible = false;
        let walked = self.walk_own(&standing, step, |_, _, _| {
            possible = true;
            Ok(false)
        });
        possible || !walked
    }

    fn walk_own(
        &self,
        context: &Context,
        step: usize,
        mut visit: impl FnMut(&mut Path<'_>, &mut Runner<'_>, &mut Store) -> Result<bool, Stop>,
    ) -> bool {
        let operations = [context.operation];
        walk(self.program, &self.no_claims, |path| {
            path.solver.all_have_run = true;
            let mut runner = Runner::new(self.program, &operations);
            let mut store = Store::start(path, &sizes(self.program, &operations));
            context.enter(path, &mut runner, &mut store)?;
            let part = Part { instance: 0, steps: step..step + 1 };
            run(path, &mut runner, &mut store, &[part], Mode::Assume)?;
            visit(path, &mut runner, &mut store)
        })
        .is_ok()
    }

    /// Walks the cases of a context with an instance of `other` beside it; `false` if too many.
    pub(super) fn walk_in(
        &self,
        context: &Context,
        other: Prefix,
        mut visit: impl FnMut(&mut Path<'p>, &mut Runner<'_>, &Store) -> Result<bool, Stop>,
    ) -> bool {
        let operations = [context.operation, other.operation];
        walk(self.program, self.claims, |path| {
            let mut runner = Runner::new(self.program, &operations);
            let mut start = Store::start(path, &sizes(self.program, &operations));
            context.enter(path, &mut runner, &mut start)?;
            visit(path, &mut runner, &start)
        })
        .is_ok()
    }
}
