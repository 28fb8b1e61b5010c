//! What the operations should do one after the other, where that is said: an object that callers
//! know, such as a queue, or another specification.
//!
//! What such objects answer differs from library to library (what a `Pop` gives when there is
//! nothing, what an `Increment` returns), so that is taken from the specification itself: from what
//! the operation answers in the initial state.

use super::machine::{Machine, Memory, Numbers, World};
use super::monitor::{Call, effects_alone};
use crate::model::{LocalKind, Meaning, Operation, Program};
use std::collections::BTreeMap;

/// What an operation is to the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    /// Something comes in.
    Put,
    /// Something goes out.
    Take,
    /// Something is looked at.
    Look,
    /// A value is replaced if it is the expected one.
    Swap,
}

/// A sequential object. Its state is kept in the shared variables of a machine.
#[derive(Clone, Debug)]
pub struct Object {
    meaning: Meaning,
    /// By operation; `None` for one that the object does not know.
    verbs: Vec<Option<OperationFacts>>,
    /// What the object does, if that is written out.
    written: Option<Written>,
}

/// An object that is written as a specification.
#[derive(Clone, Debug)]
struct Written {
    object: Program,
    numbers: Numbers,
    memory: Memory,
    /// By operation of the specification: the first role of the object's operation of that name.
    groups: Vec<Option<usize>>,
}

impl Written {
    fn of(world: &World<'_>) -> Option<Self> {
        let object = world.program.object.as_deref()?.clone();
        let group = |operation: &Operation| {
            object.operations.iter().position(|other| other.name == operation.name)
        };
        let groups = world.program.operations.iter().map(group).collect();
        let mut numbers = world.numbers.clone();
        numbers.others.extend(object.numbers());
        let memory = Memory { buffers: false, reuse: false };
        Some(Self { object, numbers, memory, groups })
    }

    fn effects(&self, state: &Machine, call: &Call) -> Vec<(Vec<i64>, Machine)> {
        let Some(group) = self.groups[call.group] else { return Vec::new() };
        let world = World::new(&self.object, self.numbers.clone(), self.memory);
        let call = Call { group, arguments: call.arguments.clone() };
        // No instance is known by its identity here, so any number does.
        effects_alone(&world, state, 1, &call)
    }
}

/// What is known of an operation.
#[derive(Clone, Debug)]
struct OperationFacts {
    /// What it is to the object.
    verb: Verb,
    /// How many results it has.
    results: usize,
    /// What it answers in the initial state, with arguments of 1.
    first: Option<Vec<i64>>,
}

/// The verb of a name, for an object.
fn verb(meaning: Meaning, name: &str) -> Option<Verb> {
    let name = name.to_lowercase();
    let is = |names: &[&str]| names.contains(&name.as_str());
    let (put, take, look): (&[&str], &[&str], &[&str]) = match meaning {
        Meaning::Queue => (
            &["enqueue", "enq", "put", "offer", "push", "add", "send"],
            &["dequeue", "deq", "take", "poll", "pop", "get", "remove", "receive"],
            &[],
        ),
        Meaning::Stack => (&["push", "put", "add"], &["pop", "take", "get", "remove"], &[]),
        Meaning::Set => (
            &["add", "insert", "put"],
            &["remove", "delete", "take"],
            &["contains", "has", "find", "member", "lookup"],
        ),
        Meaning::Map => (
            &["put", "set", "insert", "update", "add"],
            &["remove", "delete"],
            &["get", "find", "lookup", "read"],
        ),
        Meaning::Counter => (
            &["increment", "inc", "add", "up", "getandincrement", "incrementandget"],
            &["decrement", "dec", "down"],
            &["get", "read", "value", "load"],
        ),
        // Its operations have the names that they have.
        Meaning::Written => (&[], &[], &[]),
        Meaning::Register => (&["write", "set", "store", "put"], &[], &["read", "get", "load"]),
    };
    if is(put) {
        Some(Verb::Put)
    } else if is(take) {
        Some(Verb::Take)
    } else if is(look) {
        Some(Verb::Look)
    } else if meaning == Meaning::Register && is(&["cas", "compareandswap", "compareandset"]) {
        Some(Verb::Swap)
    } else {
        None
    }
}

/// The object whose names all operations have, if there is exactly one way to read them.
#[must_use]
pub fn suggested(program: &Program) -> Option<Meaning> {
    let all = |meaning| {
        let mut visible = program.operations.iter().filter(|operation| !operation.internal);
        visible.all(|operation| verb(meaning, &operation.name).is_some())
    };
    let named = |names: &[&str]| {
        let mut lower = program.operations.iter().map(|one| one.name.to_lowercase());
        lower.any(|name| names.contains(&name.as_str()))
    };
    if all(Meaning::Queue) && named(&["enqueue", "enq"]) && named(&["dequeue", "deq"]) {
        Some(Meaning::Queue)
    } else if all(Meaning::Stack) && named(&["push"]) && named(&["pop"]) {
        Some(Meaning::Stack)
    } else {
        None
    }
}

/// The operations that the object does not know.
#[must_use]
pub fn unknown(program: &Program, meaning: Meaning) -> Vec<String> {
    let visible = program.operations.iter().filter(|operation| !operation.internal);
    let strange = visible.filter(|operation| verb(meaning, &operation.name).is_none());
    let mut names: Vec<String> = strange.map(|operation| operation.name.clone()).collect();
    names.dedup();
    names
}

impl Object {
    /// The object that a world's specification names, if it names one.
    #[must_use]
    pub fn of(world: &World<'_>) -> Option<Self> {
        world.program.meaning.map(|meaning| Self::new(world, meaning))
    }

    /// An object whose answers are learned from the initial state.
    #[must_use]
    pub fn new(world: &World<'_>, meaning: Meaning) -> Self {
        let start = Machine::start(world.program);
        let learn = |(group, operation): (usize, &Operation)| {
            let verb = verb(meaning, &operation.name)?;
            let count = operation.locals_of(LocalKind::Parameter).count();
            let call = Call { group, arguments: vec![1; count] };
            let answers = effects_alone(world, &start, 1, &call);
            let first = answers.into_iter().next().map(|(results, _)| results);
            let results = operation.locals_of(LocalKind::Result).count();
            Some(OperationFacts { verb, results, first })
        };
        let verbs = world.program.operations.iter().enumerate().map(learn).collect();
        Self { meaning, verbs, written: Written::of(world) }
    }

    /// The object before anything happened.
    #[must_use]
    pub fn start(&self) -> Machine {
        if let Some(written) = &self.written {
            return Machine::start(&written.object);
        }
        let looked = self.verbs.iter().flatten().find(|known| known.verb == Verb::Look);
        let answer = looked.and_then(|known| known.first.as_ref()?.first().copied());
        let globals = match self.meaning {
            Meaning::Counter | Meaning::Register => vec![answer.unwrap_or(0)],
            _ => Vec::new(),
        };
        Machine { globals, arrays: vec![BTreeMap::new()], nodes: Vec::new(), freed: Vec::new() }
    }

    /// Whether operations may return in a state of the object: a written one says with its
    /// invariants when they may not, because one of a pair has happened and the other not yet.
    #[must_use]
    pub fn is_settled(&self, state: &Machine) -> bool {
        self.written.as_ref().is_none_or(|Written { object, .. }| {
            object.invariants.iter().all(|invariant| state.satisfies(object, invariant))
        })
    }

    /// What a call does in a state of the object.
    #[must_use]
    pub fn effects(&self, state: &Machine, call: &Call) -> Vec<(Vec<i64>, Machine)> {
        if let Some(written) = &self.written {
            return written.effects(state, call);
        }
        let Some(OperationFacts { verb, results, first }) = &self.verbs[call.group] else {
            return Vec::new();
        };
        let argument = |at: usize| call.arguments.get(at).copied().unwrap_or(0);
        let mut next = state.clone();
        let first = first.clone();
        let answer = match (self.meaning, verb) {
            (Meaning::Queue | Meaning::Stack, Verb::Put) => {
                next.globals.push(argument(0));
                first.or(Some(Vec::new()))
            }
            (Meaning::Queue | Meaning::Stack, _) => {
                let item = if self.meaning == Meaning::Stack {
                    next.globals.pop()
                } else if next.globals.is_empty() {
                    None
                } else {
                    Some(next.globals.remove(0))
                };
                item.map(|item| vec![item]).or(first)
            }
            (Meaning::Set, verb) => {
                let present = next.arrays[0].contains_key(&argument(0));
                match verb {
                    Verb::Put => next.arrays[0].insert(argument(0), 1),
                    Verb::Take => next.arrays[0].remove(&argument(0)),
                    _ => None,
                };
                Some(vec![i64::from(present == (*verb != Verb::Put))])
            }
            (Meaning::Map, verb) => {
                let held = next.arrays[0].get(&argument(0)).copied();
                match verb {
                    Verb::Put => next.arrays[0].insert(argument(0), argument(1)),
                    Verb::Take => next.arrays[0].remove(&argument(0)),
                    _ => None,
                };
                held.map(|held| vec![held]).or(first)
            }
            (Meaning::Counter, verb) => {
                let now = next.globals[0];
                let by = call.arguments.first().copied().unwrap_or(1);
                next.globals[0] += match verb {
                    Verb::Put => by,
                    Verb::Take => -by,
                    _ => 0,
                };
                let start = self.start().globals[0];
                first.map(|first| first.iter().map(|value| value - start + now).collect())
            }
            (Meaning::Register, Verb::Put) => {
                next.globals[0] = argument(0);
                first.or(Some(Vec::new()))
            }
            (Meaning::Register, Verb::Swap) => {
                let fits = next.globals[0] == argument(0);
                if fits {
                    next.globals[0] = argument(1);
                }
                Some(vec![i64::from(fits)])
            }
            (Meaning::Register, _) => Some(vec![next.globals[0]]),
            (Meaning::Written, _) => None,
        };
        // An operation that returns nothing shows nothing.
        let shown = answer.map(|answer| if *results == 0 { Vec::new() } else { answer });
        shown.map(|answer| vec![(answer, next)]).unwrap_or_default()
    }
}
