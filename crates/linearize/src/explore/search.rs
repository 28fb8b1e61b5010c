//! Walks the interleavings of a few operations, shortest histories first.
//!
//! States that were seen are not visited again. A sub-operation that touches nothing shared runs
//! together with its neighbour: its place in the interleaving cannot matter, and an operation
//! begins as late and ends as early as it can, which is the hardest history to explain.

use super::explain::{Call, Explainer, arguments, results};
use super::history::{self, Event, History};
use super::machine::{Actor, Locals, Machine, Numbers};
use crate::model::{Expression, Operation, Place, Program, Statement, Step, Type};
use std::collections::{HashSet, VecDeque};

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
        Self { operations: 4, values: 2, states: 200_000 }
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

/// Looks for a history that no sequential order explains.
#[must_use]
pub fn search(program: &Program, bound: Bound) -> Searched {
    let mut searched = Searched { counterexample: None, operations: 0, states: 0, histories: 0 };
    for operations in 1..=bound.operations {
        let mut search = Search::new(program, bound, operations);
        let numbers = search.numbers.clone();
        let mut explainer = Explainer::new(program, &numbers);
        let found = search.run(&mut explainer);
        searched.states += search.visits.len();
        searched.histories += search.checked.len();
        match found {
            Found::Counterexample(at) => {
                let events = search.events(at);
                searched.counterexample = Some(history::tell(program, &events));
                return searched;
            }
            Found::Nothing => searched.operations = operations,
            Found::TooMuch => return searched,
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
    machine: Machine,
    instances: Vec<Instance>,
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
    checked: HashSet<Vec<Call>>,
}

impl<'p> Search<'p> {
    fn new(program: &'p Program, bound: Bound, operations: usize) -> Self {
        let numbers = Numbers::of(program, bound.values);
        let quiet = program.operations.iter().map(quiet_steps).collect();
        let visits = Vec::new();
        Self { program, bound, operations, numbers, quiet, visits, checked: HashSet::new() }
    }

    fn run(&mut self, explainer: &mut Explainer<'_>) -> Found {
        let start = State { machine: Machine::start(self.program), instances: Vec::new() };
        let mut seen = HashSet::from([start.clone()]);
        let mut queue = VecDeque::from([(0, start)]);
        self.visits.push(Visit { from: 0, events: Vec::new() });
        while let Some((from, state)) = queue.pop_front() {
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
                queue.push_back((self.visits.len() - 1, next));
            }
        }
        Found::Nothing
    }

    fn has_ended(&self, instance: &Instance) -> bool {
        instance.done == self.program.operations[instance.operation].steps.len()
    }

    fn is_unexplained(&mut self, state: &State, explainer: &mut Explainer<'_>) -> bool {
        let all = state.instances.len() == self.operations;
        if !all || !state.instances.iter().all(|instance| self.has_ended(instance)) {
            return false;
        }
        let calls: Vec<Call> = state.instances.iter().map(|one| self.call(one)).collect();
        let unexplained = !explainer.explains(&calls);
        self.checked.insert(calls);
        unexplained
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
        for number in 0..state.instances.len() {
            if !self.has_ended(&state.instances[number]) {
                self.advance(state.clone(), number, &mut found);
            }
        }
        if state.instances.len() < self.operations {
            let ended = (0..state.instances.len())
                .filter(|&number| self.has_ended(&state.instances[number]))
                .fold(0, |bits, number| bits | 1 << number);
            for operation in 0..self.program.operations.len() {
                let locals = vec![None; self.program.operations[operation].locals.len()];
                let mut next = state.clone();
                next.instances.push(Instance { operation, done: 0, locals, after: ended });
                self.advance(next, state.instances.len(), &mut found);
            }
        }
        found
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
            instances[number].done += 1;
            instances[number].locals = locals;
            State { machine, instances }
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
