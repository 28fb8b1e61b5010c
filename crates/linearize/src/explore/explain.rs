//! The exact check of one history: is there a sequential order of the same operations, keeping the
//! order of those that do not overlap, that gives the same results?
//!
//! Sequential behaviour is that of the specification itself, run one operation after the other. A
//! role is a path through the code, not part of what a caller sees, so any role of the same
//! operation may explain what was seen.

use super::machine::{Actor, Locals, Machine, Numbers};
use crate::model::{LocalKind, Operation, Program};
use std::collections::HashMap;

/// What a caller sees of an operation, and what ended before it began.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// The operation's name, as the number of its first role.
    pub group: usize,
    /// Arguments; `None` where the operation never looked.
    pub arguments: Vec<Option<i64>>,
    /// What it returned.
    pub results: Vec<i64>,
    /// The calls that had ended when this one began, as bits.
    pub after: u64,
}

/// The effect of an operation run at once: its results and the state it leaves.
type Effects = Vec<(Vec<i64>, usize)>;

/// State, instance, operation and arguments.
type EffectKey = (usize, usize, usize, Vec<Option<i64>>);

/// Answers whether histories can be explained, and remembers what it learned on the way.
pub struct Explainer<'p> {
    program: &'p Program,
    numbers: &'p Numbers,
    states: Vec<Machine>,
    known_states: HashMap<Machine, usize>,
    effects: HashMap<EffectKey, Effects>,
    answers: HashMap<Vec<Call>, bool>,
}

impl<'p> Explainer<'p> {
    /// An explainer for histories from the initial state.
    #[must_use]
    pub fn new(program: &'p Program, numbers: &'p Numbers) -> Self {
        let mut explainer = Self {
            program,
            numbers,
            states: Vec::new(),
            known_states: HashMap::new(),
            effects: HashMap::new(),
            answers: HashMap::new(),
        };
        explainer.state(Machine::start(program));
        explainer
    }

    /// How many different histories were asked about.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.answers.len()
    }

    fn state(&mut self, machine: Machine) -> usize {
        if let Some(&known) = self.known_states.get(&machine) {
            return known;
        }
        let number = self.states.len();
        self.states.push(machine.clone());
        self.known_states.insert(machine, number);
        number
    }

    /// Whether some sequential order explains the calls. Call n is instance n + 1.
    pub fn explains(&mut self, calls: &[Call]) -> bool {
        if let Some(&answer) = self.answers.get(calls) {
            return answer;
        }
        let answer = self.continues(calls, 0, 0);
        self.answers.insert(calls.to_vec(), answer);
        answer
    }

    fn continues(&mut self, calls: &[Call], done: u64, state: usize) -> bool {
        if done.count_ones() as usize == calls.len() {
            return true;
        }
        for (number, call) in calls.iter().enumerate() {
            let bit = 1 << number;
            if done & bit != 0 || call.after & !done != 0 {
                continue;
            }
            for (results, next) in self.effects(state, number + 1, call) {
                if results == call.results && self.continues(calls, done | bit, next) {
                    return true;
                }
            }
        }
        false
    }

    /// What a call can do when it runs alone in a state, in any role.
    pub fn effects(&mut self, state: usize, instance: usize, call: &Call) -> Effects {
        let key = (state, instance, call.group, call.arguments.clone());
        if let Some(known) = self.effects.get(&key) {
            return known.clone();
        }
        let name = &self.program.operations[call.group].name;
        let roles = self.program.operations.iter().filter(|role| role.name == *name);
        let mut effects = Vec::new();
        for role in roles {
            let mut locals: Locals = vec![None; role.locals.len()];
            locals[..call.arguments.len()].clone_from_slice(&call.arguments);
            let machine = self.states[state].clone();
            for (machine, locals) in
                run_alone(self.program, role, instance, machine, locals, self.numbers)
            {
                let effect = (results(role, &locals), self.state(machine));
                if !effects.contains(&effect) {
                    effects.push(effect);
                }
            }
        }
        self.effects.insert(key, effects.clone());
        effects
    }
}

/// All ways in which an operation can run from beginning to end without interruption.
#[must_use]
pub fn run_alone(
    program: &Program,
    operation: &Operation,
    instance: usize,
    machine: Machine,
    locals: Locals,
    numbers: &Numbers,
) -> Vec<(Machine, Locals)> {
    let mut states = vec![(machine, locals)];
    for step in &operation.steps {
        let next = states.iter().flat_map(|(machine, locals)| {
            machine.outcomes(program, step, &operation.locals, Actor { instance }, locals, numbers)
        });
        states = next.collect();
    }
    states
}

/// What an operation that has ended returned.
#[must_use]
pub fn results(operation: &Operation, locals: &Locals) -> Vec<i64> {
    operation.locals_of(LocalKind::Result).map(|local| locals[local].unwrap_or(0)).collect()
}

/// The arguments of an operation, as far as it looked at them.
#[must_use]
pub fn arguments(operation: &Operation, locals: &Locals) -> Vec<Option<i64>> {
    operation.locals_of(LocalKind::Parameter).map(|local| locals[local]).collect()
}
