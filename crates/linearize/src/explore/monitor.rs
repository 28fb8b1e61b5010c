//! Follows a history while it happens, and knows all the ways to explain it so far.
//!
//! A *way* is a state that the operations could have led to one after the other, and which of those
//! that have not returned yet took effect in it, with what result. When an operation returns, a way
//! remains if the operation took effect in it with that result, or can do so now, perhaps after
//! others that have not returned. A history is linearizable as long as a way remains: operations
//! that never return may have taken effect or not, as Herlihy and Wing define it.
//!
//! What operations do one after the other is the specification itself, or the object that it
//! names.

use super::machine::{Locals, Machine, World};
use super::meaning::Object;
use crate::model::{LocalKind, Operation};
use std::collections::{HashMap, HashSet};

/// What a caller asked: the operation's name, as the number of its first role, and its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// The number of the first role of that name.
    pub group: usize,
    /// The arguments.
    pub arguments: Vec<i64>,
}

/// An operation that has begun and whose return was not seen: its number and its call.
pub type Open = (usize, usize);

/// The effect of an operation run at once: its results and the state it leaves.
pub type Effects = Vec<(Vec<i64>, usize)>;

/// One way to explain what was seen.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Way {
    /// The state, by number.
    state: usize,
    /// Which operations took effect that have not returned yet, and their results.
    done: Vec<(usize, Vec<i64>)>,
}

/// The number of a set of ways.
pub type Ways = usize;

/// More ways than this are not followed; whatever happens then counts as explained.
const MOST_WAYS: usize = 20_000;

/// The set of ways that explains everything: too many to follow.
const ANYTHING: Ways = usize::MAX;

/// State, instance, call and hints.
type EffectKey = (usize, usize, usize, Vec<i64>);

/// A set of ways, who has not returned, who returns and with what, and hints.
type Question = (Ways, Vec<Open>, usize, Vec<i64>, Vec<i64>);

/// Knows the ways to explain histories of one world.
pub struct Monitor<'w> {
    world: &'w World<'w>,
    object: Option<Object>,
    states: Vec<Machine>,
    known_states: HashMap<Machine, usize>,
    calls: Vec<Call>,
    known_calls: HashMap<Call, usize>,
    effects: HashMap<EffectKey, Effects>,
    sets: Vec<Vec<Way>>,
    known_sets: HashMap<Vec<Way>, Ways>,
    answers: HashMap<Question, Option<Ways>>,
    followed: usize,
    /// Whether nodes are forgotten that nothing leads to.
    collects: bool,
}

impl<'w> Monitor<'w> {
    /// A monitor for histories from the initial state, and the ways to explain the empty one.
    #[must_use]
    pub fn new(world: &'w World<'w>) -> (Self, Ways) {
        let mut monitor = Self {
            world,
            object: Object::of(world),
            states: Vec::new(),
            known_states: HashMap::new(),
            calls: Vec::new(),
            known_calls: HashMap::new(),
            effects: HashMap::new(),
            sets: Vec::new(),
            known_sets: HashMap::new(),
            answers: HashMap::new(),
            followed: 0,
            collects: false,
        };
        let start = match &monitor.object {
            Some(object) => object.start(),
            None => Machine::start(world.program),
        };
        let state = monitor.state(start);
        let ways = monitor.set(vec![Way { state, done: Vec::new() }]);
        (monitor, ways)
    }

    /// The same, for long histories in which callers never have a node in their hands: one that nothing leads
    /// to is gone for good.
    #[must_use]
    pub fn without_garbage(self) -> Self {
        Self { collects: true, ..self }
    }

    /// Whether these are too many ways to follow.
    #[must_use]
    pub fn gave_up(ways: Ways) -> bool {
        ways == ANYTHING
    }

    /// How many different returns were judged.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.answers.len()
    }

    /// How many ways were followed to judge them.
    #[must_use]
    pub fn followed(&self) -> usize {
        self.followed
    }

    /// About how many bytes are used.
    #[must_use]
    pub fn bytes(&self) -> usize {
        600 * self.states.len() + 200 * (self.effects.len() + self.answers.len() + self.sets.len())
    }

    /// The number of a call.
    pub fn call(&mut self, call: Call) -> usize {
        if let Some(&known) = self.known_calls.get(&call) {
            return known;
        }
        self.calls.push(call.clone());
        self.known_calls.insert(call, self.calls.len() - 1);
        self.calls.len() - 1
    }

    fn state(&mut self, machine: Machine) -> usize {
        if let Some(&known) = self.known_states.get(&machine) {
            return known;
        }
        self.states.push(machine.clone());
        self.known_states.insert(machine, self.states.len() - 1);
        self.states.len() - 1
    }

    fn set(&mut self, mut ways: Vec<Way>) -> Ways {
        ways.sort_unstable();
        ways.dedup();
        if let Some(&known) = self.known_sets.get(&ways) {
            return known;
        }
        self.sets.push(ways.clone());
        self.known_sets.insert(ways, self.sets.len() - 1);
        self.sets.len() - 1
    }

    /// Instance `number`, one of `open`, returns `results`: the ways that remain, if any do. A number
    /// that nothing determines is also tried as one of `hints`.
    pub fn returns(
        &mut self,
        ways: Ways,
        open: &[Open],
        number: usize,
        results: &[i64],
        hints: &[i64],
    ) -> Option<Ways> {
        if ways == ANYTHING {
            return Some(ANYTHING);
        }
        let question = (ways, open.to_vec(), number, results.to_vec(), hints.to_vec());
        if let Some(&known) = self.answers.get(&question) {
            return known;
        }
        let mut remaining = Vec::new();
        let mut seen: Vec<Way> = self.sets[ways].clone();
        let mut known: HashSet<Way> = seen.iter().cloned().collect();
        let mut at = 0;
        while at < seen.len() && seen.len() < MOST_WAYS {
            let way = seen[at].clone();
            at += 1;
            let returned = way.done.binary_search_by_key(&number, |done| done.0);
            if let Ok(place) = returned {
                if way.done[place].1 != results {
                    continue;
                }
                if self.is_settled(way.state) {
                    let mut left = way;
                    left.done.remove(place);
                    remaining.push(left);
                    continue;
                }
            }
            for next in self.further(&way, open, hints) {
                if known.insert(next.clone()) {
                    seen.push(next);
                }
            }
        }
        self.followed += at;
        let answer = if at < seen.len() {
            Some(ANYTHING)
        } else {
            (!remaining.is_empty()).then(|| self.set(remaining))
        };
        self.answers.insert(question, answer);
        answer
    }

    fn is_settled(&self, state: usize) -> bool {
        self.object.as_ref().is_none_or(|object| object.is_settled(&self.states[state]))
    }

    /// The ways in which one more operation took effect.
    fn further(&mut self, way: &Way, open: &[Open], hints: &[i64]) -> Vec<Way> {
        let mut found = Vec::new();
        for &(number, call) in open {
            let Err(place) = way.done.binary_search_by_key(&number, |done| done.0) else {
                continue;
            };
            for (results, state) in self.effects(way.state, number, call, hints) {
                let mut done = way.done.clone();
                done.insert(place, (number, results));
                found.push(Way { state, done });
            }
        }
        found
    }

    /// What a call can do when it runs alone in a state, in any role.
    fn effects(&mut self, state: usize, instance: usize, call: usize, hints: &[i64]) -> Effects {
        let key = (state, instance, call, hints.to_vec());
        if let Some(known) = self.effects.get(&key) {
            return known.clone();
        }
        let asked = self.calls[call].clone();
        let found = match &self.object {
            Some(object) => object.effects(&self.states[state], &asked),
            None if hints.is_empty() => {
                effects_alone(self.world, &self.states[state], instance, &asked)
            }
            None => {
                let world = self.world.with_hints(hints);
                effects_alone(&world, &self.states[state], instance, &asked)
            }
        };
        let mut effects = Effects::new();
        for (results, mut machine) in found {
            // The state of an object is not one of this specification.
            if self.collects && self.object.is_none() {
                machine.forget_unreachable(self.world.program);
            }
            let effect = (results, self.state(machine));
            if !effects.contains(&effect) {
                effects.push(effect);
            }
        }
        self.effects.insert(key, effects.clone());
        effects
    }
}

/// What a call does when it runs alone, in any role: its results and the state it leaves.
#[must_use]
pub fn effects_alone(
    world: &World<'_>,
    machine: &Machine,
    instance: usize,
    call: &Call,
) -> Vec<(Vec<i64>, Machine)> {
    let operations = &world.program.operations;
    let name = &operations[call.group].name;
    let mut effects = Vec::new();
    for (number, role) in operations.iter().enumerate().filter(|(_, role)| role.name == *name) {
        let mut locals: Locals = vec![None; role.locals.len()];
        for (local, &argument) in locals.iter_mut().zip(&call.arguments) {
            *local = Some(argument);
        }
        for (machine, locals) in world.run_alone(number, instance, machine.clone(), locals) {
            let effect = (results(role, &locals), machine);
            if !effects.contains(&effect) {
                effects.push(effect);
            }
        }
    }
    effects
}

/// What an operation that has ended returned.
#[must_use]
pub fn results(operation: &Operation, locals: &Locals) -> Vec<i64> {
    operation.locals_of(LocalKind::Result).map(|local| locals[local].unwrap_or(0)).collect()
}

/// The arguments of an operation.
#[must_use]
pub fn arguments(operation: &Operation, locals: &Locals) -> Vec<Option<i64>> {
    operation.locals_of(LocalKind::Parameter).map(|local| locals[local]).collect()
}
