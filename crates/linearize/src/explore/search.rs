//! Walks the interleavings of a few operations: of one operation first, then of two, and so on,
//! depth first, so that a counterexample shows before all states have been seen. For each number of
//! operations that has many, the histories in which an operation is interrupted once or twice come
//! first: most counterexamples are among them.
//!
//! States that were seen are not visited again. A sub-operation that touches nothing shared runs
//! together with its neighbour: its place in the interleaving cannot matter, and an operation
//! begins as late and ends as early as it can, which is the hardest history to explain.

use super::explain::{Call, Explainer, arguments, results};
use super::history::{self, Event, History};
use super::machine::{Actor, Locals, Machine, Numbers};
use crate::model::{Expression, Operation, Place, Program, Statement, Step, Type};
use std::collections::HashSet;
use std::rc::Rc;

/// How far to look.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// The most operations in one history.
    pub operations: usize,
    /// Arguments are 1, 2 … up to this.
    pub values: i64,
    /// The most states to visit for one number of operations.
    pub states: usize,
}

impl Default for Bound {
    fn default() -> Self {
        Self { operations: 4, values: 2, states: 100_000 }
    }
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct Searched {
    /// A history that no sequential order explains.
    pub counterexample: Option<History>,
    /// All histories of up to this many operations were looked at.
    pub operations: usize,
    /// How many states were visited in all.
    pub states: usize,
    /// How many different histories, as callers see them, were checked.
    pub histories: usize,
}

/// If all histories of one operation less had fewer states than this, those of one more are few
/// enough to look at in full at once.
const QUICK: usize = 1_000;

/// Looks for a history that no sequential order explains.
#[must_use]
pub fn search(program: &Program, bound: Bound) -> Searched {
    let mut searched = Searched { counterexample: None, operations: 0, states: 0, histories: 0 };
    let numbers = Numbers::of(program, bound.values);
    let mut explainer = Explainer::new(program, &numbers);
    let mut in_full = 0;
    for operations in 1..=bound.operations {
        let few: &[Option<usize>] =
            if in_full < QUICK { &[None] } else { &[Some(1), Some(2), None] };
        for &interruptions in few {
            let mut search = Search::new(program, bound, operations, interruptions);
            let found = search.run(&mut explainer);
            searched.states += search.visits.len();
            match found {
                Found::Counterexample(at) => {
                    let events = search.events(at);
                    searched.histories = explainer.asked();
                    searched.counterexample = Some(history::tell(program, &events));
                    return searched;
                }
                Found::Nothing if interruptions.is_none() => {
                    searched.operations = operations;
                    in_full = search.visits.len();
                }
                Found::Nothing | Found::TooMuch => {}
            }
        }
        searched.histories = explainer.asked();
        if searched.operations < operations {
            return searched;
        }
    }
    searched
}

enum Found {
    Counterexample(usize),
    Nothing,
    TooMuch,
}

/// An operation on its way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Instance {
    /// Which operation.
    pub operation: usize,
    /// How many of its sub-operations have run.
    pub done: usize,
    /// Its locals.
    pub locals: Locals,
    /// The instances that had ended when it began, as bits.
    pub after: u64,
}

/// A state of an interleaving.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    machine: Rc<Machine>,
    instances: Vec<Rc<Instance>>,
    /// Who ran last, and how many interruptions are still allowed; not looked at without a limit.
    running: usize,
    left: usize,
}

/// How a state was reached: from which other, and the sub-operations that led here.
struct Visit {
    from: usize,
    events: Vec<Event>,
}

struct Search<'p> {
    program: &'p Program,
    bound: Bound,
    operations: usize,
    numbers: Numbers,
    /// Which sub-operations touch nothing shared.
    quiet: Vec<Vec<bool>>,
    visits: Vec<Visit>,
    /// How often an operation may be interrupted that could go on.
    interruptions: Option<usize>,
}

impl<'p> Search<'p> {
    fn new(
        program: &'p Program,
        bound: Bound,
        operations: usize,
        interruptions: Option<usize>,
    ) -> Self {
        let numbers = Numbers::of(program, bound.values);
        let quiet = program.operations.iter().map(quiet_steps).collect();
        let visits = Vec::new();
        Self { program, bound, operations, numbers, quiet, visits, interruptions }
    }

    fn run(&mut self, explainer: &mut Explainer<'_>) -> Found {
        let left = self.interruptions.unwrap_or(0);
        let machine = Rc::new(Machine::start(self.program));
        let start = State { machine, instances: Vec::new(), running: 0, left };
        let mut seen = HashSet::from([start.clone()]);
        let mut work = vec![(0, start)];
        self.visits.push(Visit { from: 0, events: Vec::new() });
        while let Some((from, state)) = work.pop() {
            if self.is_unexplained(&state, explainer) {
                return Found::Counterexample(from);
            }
            for (next, events) in self.successors(&state) {
                if seen.contains(&next) {
                    continue;
                }
                if self.visits.len() >= self.bound.states {
                    return Found::TooMuch;
                }
                seen.insert(next.clone());
                self.visits.push(Visit { from, events });
                work.push((self.visits.len() - 1, next));
            }
        }
        Found::Nothing
    }

    fn has_ended(&self, instance: &Instance) -> bool {
        instance.done == self.program.operations[instance.operation].steps.len()
    }

    fn is_unexplained(&self, state: &State, explainer: &mut Explainer<'_>) -> bool {
        let all = state.instances.len() == self.operations;
        if !all || !state.instances.iter().all(|instance| self.has_ended(instance)) {
            return false;
        }
        let calls: Vec<Call> = state.instances.iter().map(|one| self.call(one)).collect();
        !explainer.explains(&calls)
    }

    fn call(&self, instance: &Instance) -> Call {
        let operation = &self.program.operations[instance.operation];
        let same = |other: &Operation| other.name == operation.name;
        Call {
            group: self.program.operations.iter().position(same).unwrap_or(instance.operation),
            arguments: arguments(operation, &instance.locals),
            results: results(operation, &instance.locals),
            after: instance.after,
        }
    }

    fn successors(&self, state: &State) -> Vec<(State, Vec<Event>)> {
        let mut found = Vec::new();
        let running = state.instances.get(state.running).filter(|one| !self.has_ended(one));
        let goes_on = running.is_some() && self.interruptions.is_some();
        if goes_on {
            self.advance(state.clone(), state.running, &mut found);
        }
        let interrupts = !found.is_empty();
        if interrupts && state.left == 0 {
            return found;
        }
        let mut from = state.clone();
        from.left -= usize::from(interrupts);
        for number in 0..state.instances.len() {
            let skip = goes_on && number == state.running;
            if !skip && !self.has_ended(&state.instances[number]) {
                self.advance(from.clone(), number, &mut found);
            }
        }
        if state.instances.len() < self.operations {
            self.begin(&from, &mut found);
        }
        found
    }

    fn begin(&self, state: &State, found: &mut Vec<(State, Vec<Event>)>) {
        let ended = (0..state.instances.len())
            .filter(|&number| self.has_ended(&state.instances[number]))
            .fold(0, |bits, number| bits | 1 << number);
        for operation in 0..self.program.operations.len() {
            let locals = vec![None; self.program.operations[operation].locals.len()];
            let mut next = state.clone();
            next.instances.push(Rc::new(Instance { operation, done: 0, locals, after: ended }));
            self.advance(next, state.instances.len(), found);
        }
    }

    /// Runs an instance's next sub-operation, with the quiet ones around it.
    fn advance(&self, state: State, number: usize, found: &mut Vec<(State, Vec<Event>)>) {
        let mut work = vec![(state, Vec::new(), false)];
        while let Some((state, events, loud)) = work.pop() {
            let instance = &state.instances[number];
            let ended = self.has_ended(instance);
            let quiet = !ended && self.quiet[instance.operation][instance.done];
            if ended || (loud && !quiet) {
                found.push((state, events));
                continue;
            }
            for next in self.step(&state, number) {
                let mut events = events.clone();
                events.push(Event::new(number, instance, &next.machine, &next.instances[number]));
                work.push((next, events, loud || !quiet));
            }
        }
    }

    fn step(&self, state: &State, number: usize) -> Vec<State> {
        let instance = &state.instances[number];
        let operation = &self.program.operations[instance.operation];
        let step = &operation.steps[instance.done];
        let actor = Actor { instance: number + 1 };
        let outcomes = state.machine.outcomes(
            self.program,
            step,
            &operation.locals,
            actor,
            &instance.locals,
            &self.numbers,
        );
        let after = outcomes.into_iter().map(|(machine, locals)| {
            let mut instances = state.instances.clone();
            let (operation, done, after) = (instance.operation, instance.done + 1, instance.after);
            instances[number] = Rc::new(Instance { operation, done, locals, after });
            let machine = Rc::new(machine);
            let running = if self.interruptions.is_some() { number } else { 0 };
            State { machine, instances, running, left: state.left }
        });
        after.collect()
    }

    fn events(&self, mut at: usize) -> Vec<Event> {
        let mut parts = Vec::new();
        while at != 0 {
            parts.push(&self.visits[at].events);
            at = self.visits[at].from;
        }
        parts.into_iter().rev().flatten().cloned().collect()
    }
}

/// Which sub-operations touch nothing shared: they use plain locals, and nodes that are still the
/// operation's own.
fn quiet_steps(operation: &Operation) -> Vec<bool> {
    let mut known = Known {
        operation,
        own: vec![false; operation.locals.len()],
        bound: operation.locals.iter().map(|local| local.ty == Type::Int).collect(),
    };
    operation.steps.iter().map(|step| known.is_quiet(step)).collect()
}

/// What is known of an operation's locals before a sub-operation, in every run.
struct Known<'o> {
    operation: &'o Operation,
    /// Holds a node that no one else can reach.
    own: Vec<bool>,
    /// Is not guessed any more. What a guessed reference may be depends on the shared state.
    bound: Vec<bool>,
}

impl Known<'_> {
    fn is_quiet(&mut self, step: &Step) -> bool {
        let conditions = step.conditions.iter();
        let mut quiet = conditions.fold(true, |quiet, condition| {
            // Both sides are looked at: what they mention is bound from here on.
            self.value(&condition.left) & self.value(&condition.right) & quiet
        });
        for statement in &step.body {
            match statement {
                Statement::Malloc { local, .. } => {
                    self.own[*local] = true;
                    self.bound[*local] = true;
                }
                Statement::Assign(target, value) => {
                    quiet &= self.value(value);
                    if let Expression::Place(Place::Local(from), _) = value {
                        // A node that is stored may be seen from then on.
                        self.own[*from] = false;
                    }
                    if let Place::Local(to) = target {
                        self.own[*to] = false;
                        self.bound[*to] = true;
                    } else {
                        quiet &= self.place(target);
                    }
                }
            }
        }
        quiet
    }

    fn value(&mut self, expression: &Expression) -> bool {
        match expression {
            Expression::Place(place, _) => self.place(place),
            _ => true,
        }
    }

    fn place(&mut self, place: &Place) -> bool {
        match place {
            Place::Local(local) => {
                let bound = self.bound[*local] || self.operation.locals[*local].ty == Type::Int;
                self.bound[*local] = true;
                bound
            }
            Place::Field(base, _) => matches!(&**base, Place::Local(local) if self.own[*local]),
            Place::Global(_) | Place::Element(..) => false,
        }
    }
}
