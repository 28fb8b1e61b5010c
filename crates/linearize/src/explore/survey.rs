//! Runs operations one after the other, a few of them in every order, and tells what is odd even
//! without concurrency: an operation that can never end, one that may do different things in the
//! same state, one that does not do what its object should.

use super::history::{Cell, shown, value_text};
use super::machine::{Machine, Memory, Numbers, World};
use super::meaning::{Object, suggested};
use super::monitor::{Call, effects_alone};
use crate::model::{LocalKind, Meaning, Program, Type};
use serde::Serialize;
use std::collections::HashMap;

/// Sequences of up to this many operations are looked at,
const LONGEST: usize = 6;
/// as long as there are no more states than this.
const MOST_STATES: usize = 1_500;

/// Something that is odd about an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Oddity {
    /// It did not end in any state that was reached.
    NeverEnds {
        /// The operation, or one role of it.
        operation: String,
    },
    /// It did not end in any state between operations, only while another was under way.
    NeverEndsAlone {
        /// The operation.
        operation: String,
    },
    /// From some state on it can never end, whatever others do one after the other.
    Stuck {
        /// The call.
        call: String,
        /// What ran before.
        after: Vec<String>,
        /// The state then.
        state: Vec<Cell>,
    },
    /// In some state it cannot end before another operation has run.
    Waits {
        /// The call.
        call: String,
        /// What ran before.
        after: Vec<String>,
        /// The state then.
        state: Vec<Cell>,
    },
    /// It may do different things in one state.
    Varies {
        /// The call.
        call: String,
        /// What ran before.
        after: Vec<String>,
        /// What it may return.
        results: Vec<String>,
    },
    /// It does not do what the object does that its name or the specification suggests.
    Disagrees {
        /// The object.
        object: String,
        /// Whether the specification names it.
        stated: bool,
        /// The call.
        call: String,
        /// What ran before.
        after: Vec<String>,
        /// What it returned.
        returned: String,
        /// What the object would have returned.
        expected: String,
    },
}

/// What was seen when operations ran one after the other.
#[derive(Clone, Debug)]
pub struct Survey {
    /// What is odd.
    pub oddities: Vec<Oddity>,
    /// All sequences of up to this many operations were looked at.
    pub operations: usize,
    /// Which operations, by number, ended.
    pub ended: Vec<bool>,
}

impl Survey {
    /// Whether the operations did what the stated object does.
    #[must_use]
    pub fn agrees(&self) -> bool {
        !self.oddities.iter().any(|odd| matches!(odd, Oddity::Disagrees { stated: true, .. }))
    }

    /// Adds the roles that ended neither here nor in a search, and tells apart the operations that
    /// ended only in the search.
    pub fn note_roles(&mut self, program: &Program, ended: &[bool]) {
        for odd in &mut self.oddities {
            if let Oddity::NeverEnds { operation } = odd {
                let mut roles = program.operations.iter().zip(ended);
                if roles.any(|(role, &ended)| ended && role.name == *operation) {
                    *odd = Oddity::NeverEndsAlone { operation: std::mem::take(operation) };
                }
            }
        }
        for (number, operation) in program.operations.iter().enumerate() {
            let known = |name: &str| {
                self.oddities
                    .iter()
                    .any(|odd| matches!(odd, Oddity::NeverEnds { operation } if operation == name))
            };
            if !self.ended[number] && !ended[number] && !known(&operation.name) {
                self.oddities.push(Oddity::NeverEnds { operation: operation.title() });
            }
        }
    }
}

/// A state between operations, and how it was reached.
struct Stop {
    machine: Machine,
    object: Option<Machine>,
    from: usize,
    call: Option<Call>,
    depth: usize,
    /// Where it leads.
    next: Vec<usize>,
    /// The calls, by number, that cannot end here.
    blocked: Vec<usize>,
    looked_at: bool,
}

/// Runs the operations one after the other.
#[must_use]
pub fn survey(program: &Program, values: i64, memory: Memory) -> Survey {
    let world = World::new(program, Numbers::narrow(program, values), memory);
    let meaning = program.meaning.or_else(|| suggested(program));
    let mut walk = Walk {
        world: &world,
        object: meaning.map(|meaning| (meaning, Object::new(&world, meaning))),
        stops: Vec::new(),
        known: HashMap::new(),
        calls: Vec::new(),
        oddities: Vec::new(),
        ended: vec![false; program.operations.len()],
    };
    let object = walk.object.as_ref().map(|(_, object)| object.start());
    walk.stop(Machine::start(program), object, 0, None, 0);
    let operations = walk.run();
    walk.stuck();
    Survey { oddities: walk.oddities, operations, ended: walk.ended }
}

struct Walk<'w> {
    world: &'w World<'w>,
    object: Option<(Meaning, Object)>,
    stops: Vec<Stop>,
    known: HashMap<(Machine, Option<Machine>), usize>,
    calls: Vec<Call>,
    oddities: Vec<Oddity>,
    ended: Vec<bool>,
}

impl Walk<'_> {
    fn stop(
        &mut self,
        machine: Machine,
        object: Option<Machine>,
        from: usize,
        call: Option<Call>,
        depth: usize,
    ) -> usize {
        let key = (machine, object);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let number = self.stops.len();
        self.stops.push(Stop {
            machine: key.0.clone(),
            object: key.1.clone(),
            from,
            call,
            depth,
            next: Vec::new(),
            blocked: Vec::new(),
            looked_at: false,
        });
        self.known.insert(key, number);
        number
    }

    /// Goes breadth first; gives the length up to which all sequences were looked at.
    fn run(&mut self) -> usize {
        let mut at = 0;
        while at < self.stops.len() {
            if self.stops[at].depth == LONGEST {
                return LONGEST;
            }
            if self.stops.len() > MOST_STATES {
                return self.stops[at].depth;
            }
            self.look_at(at);
            at += 1;
        }
        LONGEST
    }

    fn look_at(&mut self, at: usize) {
        self.stops[at].looked_at = true;
        let machine = self.stops[at].machine.clone();
        let depth = self.stops[at].depth;
        for call in self.calls_in(&machine) {
            let effects = effects_alone(self.world, &machine, depth + 1, &call);
            self.note_ended(&machine, depth + 1, &call);
            if effects.is_empty() {
                let number = self.call(&call);
                self.stops[at].blocked.push(number);
            }
            self.varies(at, &call, &effects);
            let expected = self.expected(at, &call);
            for (results, machine) in effects {
                let object = match &expected {
                    None => None,
                    Some(expected) => {
                        let fits = expected.iter().find(|(answer, _)| *answer == results);
                        if fits.is_none() {
                            self.disagrees(at, &call, &results, expected);
                            continue;
                        }
                        fits.map(|(_, object)| object.clone())
                    }
                };
                let next = self.stop(machine, object, at, Some(call.clone()), depth + 1);
                self.stops[at].next.push(next);
            }
        }
    }

    /// All calls with all arguments.
    fn calls_in(&self, machine: &Machine) -> Vec<Call> {
        let operations = &self.world.program.operations;
        let mut calls = Vec::new();
        for (group, operation) in operations.iter().enumerate() {
            if operations[..group].iter().any(|other| other.name == operation.name) {
                continue;
            }
            let mut all: Vec<Vec<i64>> = vec![Vec::new()];
            for local in operation.locals_of(LocalKind::Parameter) {
                let values = self.world.guesses(machine, &operation.locals[local]);
                let longer = all.iter().flat_map(|given| {
                    values.iter().map(move |&value| [given.clone(), vec![value]].concat())
                });
                all = longer.collect();
            }
            calls.extend(all.into_iter().map(|arguments| Call { group, arguments }));
        }
        calls
    }

    fn call(&mut self, call: &Call) -> usize {
        let known = self.calls.iter().position(|one| one == call);
        known.unwrap_or_else(|| {
            self.calls.push(call.clone());
            self.calls.len() - 1
        })
    }

    fn note_ended(&mut self, machine: &Machine, instance: usize, call: &Call) {
        let operations = &self.world.program.operations;
        let name = &operations[call.group].name;
        for (number, role) in operations.iter().enumerate() {
            if role.name == *name && !self.ended[number] {
                let mut locals = vec![None; role.locals.len()];
                for (local, &argument) in locals.iter_mut().zip(&call.arguments) {
                    *local = Some(argument);
                }
                let runs = self.world.run_alone(number, instance, machine.clone(), locals);
                self.ended[number] = !runs.is_empty();
            }
        }
    }

    /// What the object would do; `None` if there is none, or if it does not know the operation.
    fn expected(&self, at: usize, call: &Call) -> Option<Vec<(Vec<i64>, Machine)>> {
        let (_, object) = self.object.as_ref()?;
        let state = self.stops[at].object.as_ref()?;
        if self.world.program.operations[call.group].internal {
            // No caller sees it: the object stays as it is.
            return Some(vec![(Vec::new(), state.clone())]);
        }
        let mut effects = object.effects(state, call);
        effects.retain(|(_, state)| object.is_settled(state));
        Some(effects)
    }

    fn varies(&mut self, at: usize, call: &Call, effects: &[(Vec<i64>, Machine)]) {
        let name = &self.world.program.operations[call.group].name;
        let begins = |call: &str| call.split('(').next() == Some(name.as_str());
        let known = |odd: &Oddity| matches!(odd, Oddity::Varies { call, .. } if begins(call));
        let internal = self.world.program.operations[call.group].internal;
        if effects.len() < 2 || internal || self.oddities.iter().any(known) {
            return;
        }
        let mut results: Vec<String> =
            effects.iter().map(|(results, _)| self.results(call, results)).collect();
        results.sort();
        results.dedup();
        if results.len() < 2 {
            return;
        }
        let (call, after) = (self.call_text(call), self.path(at));
        self.oddities.push(Oddity::Varies { call, after, results });
    }

    fn disagrees(
        &mut self,
        at: usize,
        call: &Call,
        results: &[i64],
        expected: &[(Vec<i64>, Machine)],
    ) {
        let Some((meaning, _)) = self.object else { return };
        if self.oddities.iter().any(|odd| matches!(odd, Oddity::Disagrees { .. })) {
            return;
        }
        let returned = self.results(call, results);
        let expected = expected
            .first()
            .map_or("no answer yet".to_owned(), |(answer, _)| self.results(call, answer));
        self.oddities.push(Oddity::Disagrees {
            object: name_of(meaning).to_owned(),
            stated: self.world.program.meaning.is_some(),
            call: self.call_text(call),
            after: self.path(at),
            returned,
            expected,
        });
    }

    /// Which calls can never end, and which have to wait.
    fn stuck(&mut self) {
        let operations = &self.world.program.operations;
        let groups: Vec<usize> = (0..operations.len())
            .filter(|&at| !operations[..at].iter().any(|one| one.name == operations[at].name))
            .filter(|&at| !operations[at].internal)
            .collect();
        for group in groups {
            let name = operations[group].name.clone();
            let roles = operations.iter().zip(&self.ended).filter(|(one, _)| one.name == name);
            if roles.into_iter().all(|(_, &ended)| !ended) {
                self.oddities.push(Oddity::NeverEnds { operation: name });
                continue;
            }
            let calls: Vec<usize> =
                (0..self.calls.len()).filter(|&at| self.calls[at].group == group).collect();
            let first = |found: &dyn Fn(usize, usize) -> bool| {
                let stops = 0..self.stops.len();
                stops
                    .flat_map(|stop| calls.iter().map(move |&call| (stop, call)))
                    .find(|&(stop, call)| found(stop, call))
            };
            let blocked = |stop: usize, call: usize| self.stops[stop].blocked.contains(&call);
            let forever =
                |stop: usize, call: usize| blocked(stop, call) && self.is_for_ever(stop, call);
            let odd = if let Some((stop, call)) = first(&forever) {
                let (call, after, state) = self.described(stop, call);
                Oddity::Stuck { call, after, state }
            } else if let Some((stop, call)) = first(&blocked) {
                let (call, after, state) = self.described(stop, call);
                Oddity::Waits { call, after, state }
            } else {
                continue;
            };
            self.oddities.push(odd);
        }
    }

    /// Whether no state that can be reached from here lets the call end. Only said if all of them
    /// were looked at.
    fn is_for_ever(&self, stop: usize, call: usize) -> bool {
        let mut seen = vec![stop];
        let mut at = 0;
        while at < seen.len() {
            let here = &self.stops[seen[at]];
            if !here.looked_at || !here.blocked.contains(&call) {
                return false;
            }
            for &next in &here.next {
                if !seen.contains(&next) {
                    seen.push(next);
                }
            }
            at += 1;
        }
        true
    }

    fn described(&self, stop: usize, call: usize) -> (String, Vec<String>, Vec<Cell>) {
        let state = shown(self.world.program, &self.stops[stop].machine);
        (self.call_text(&self.calls[call]), self.path(stop), state)
    }

    fn call_text(&self, call: &Call) -> String {
        let operation = &self.world.program.operations[call.group];
        let types =
            operation.locals_of(LocalKind::Parameter).map(|local| operation.locals[local].ty);
        let given: Vec<String> =
            types.zip(&call.arguments).map(|(ty, &value)| value_text(ty, value)).collect();
        format!("{}({})", operation.name, given.join(", "))
    }

    fn results(&self, call: &Call, results: &[i64]) -> String {
        let operation = &self.world.program.operations[call.group];
        let mut types = operation.locals_of(LocalKind::Result).map(|one| operation.locals[one].ty);
        let all: Vec<String> = results
            .iter()
            .map(|&value| value_text(types.next().unwrap_or(Type::Int), value))
            .collect();
        if all.is_empty() { "nothing".to_owned() } else { all.join(", ") }
    }

    fn path(&self, mut at: usize) -> Vec<String> {
        let mut calls = Vec::new();
        while let Some(call) = &self.stops[at].call {
            calls.push(self.call_text(call));
            at = self.stops[at].from;
        }
        calls.reverse();
        calls
    }
}

/// What an object is called.
#[must_use]
pub fn name_of(meaning: Meaning) -> &'static str {
    match meaning {
        Meaning::Queue => "queue",
        Meaning::Stack => "stack",
        Meaning::Set => "set",
        Meaning::Map => "map",
        Meaning::Counter => "counter",
        Meaning::Register => "register",
        Meaning::Written => "abstract object",
    }
}
