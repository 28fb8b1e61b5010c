//! Walks the interleavings of a few operations, depth first, so that a counterexample shows before
//! all states have been seen.
//!
//! Several *courses* are followed side by side: histories in which operations are interrupted once,
//! twice, or as often as they like, or in which one operation is interrupted by others that are not,
//! with few or many different arguments. Each course goes from one
//! operation to two, three and so on; the one that has cost least so far goes on next, until a
//! counterexample is found or the bound is used up. Most counterexamples need few interruptions,
//! and some need many operations.
//!
//! States that were seen are not visited again; of an operation that has returned only what it
//! left in memory and in the ways to explain the history ([`super::monitor`]) is kept. A
//! sub-operation that touches nothing shared runs together with its neighbour: its place in the
//! interleaving cannot matter, and an operation begins as late and ends as early as it can, which
//! is the hardest history to explain.

use super::fingerprint::fingerprint;
use super::history::{self, Event, History};
use super::kinds::Kind;
use super::machine::{Buffer, Locals, Machine, Memory, Numbers, World};
use super::monitor::{Call, Monitor, Open, Ways, results};
use crate::model::{LocalKind, Program};
use std::collections::HashSet;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// How far to look.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// The most operations in one history.
    pub operations: usize,
    /// Arguments are 1, 2 … up to this, and further ones where that is affordable.
    pub values: i64,
    /// The most states to visit in all.
    pub states: usize,
    /// The most time.
    pub time: Duration,
    /// The most memory, in bytes, estimated.
    pub bytes: usize,
    /// How memory behaves.
    pub memory: Memory,
}

impl Default for Bound {
    fn default() -> Self {
        Self {
            operations: 12,
            values: 2,
            states: 4_000_000,
            time: Duration::from_secs(10),
            bytes: 1 << 30,
            memory: Memory::default(),
        }
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
    /// How many different returns of operations were judged.
    pub histories: usize,
    /// Which operations, by number, ended in some history.
    pub ended: Vec<bool>,
}

/// When an operation may be interrupted that could go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interruptions {
    /// Always.
    Any,
    /// So often in the history.
    AtMost(usize),
    /// As often as it likes, but it is the only one in the history.
    OfOne,
}

/// Histories of one kind.
#[derive(Clone, Copy)]
struct Course {
    interruptions: Interruptions,
    /// Whether arguments are many.
    wide: bool,
    /// How many operations come next.
    operations: usize,
    /// How many states the last number of operations had.
    last: usize,
    /// How many states it has cost so far.
    spent: usize,
    open: bool,
}

/// The kinds of histories, the most promising first. Those without interruptions show something only
/// where there is an object that the operations are held against.
const COURSES: [(Interruptions, bool); 7] = [
    (Interruptions::Any, true),
    (Interruptions::AtMost(0), false),
    (Interruptions::AtMost(1), false),
    (Interruptions::AtMost(2), false),
    (Interruptions::OfOne, false),
    (Interruptions::Any, false),
    (Interruptions::AtMost(2), true),
];

/// Looks for a history that no sequential order explains.
#[must_use]
pub fn search(program: &Program, bound: Bound) -> Searched {
    let mut searched = Searched {
        counterexample: None,
        operations: 0,
        states: 0,
        histories: 0,
        ended: vec![false; program.operations.len()],
    };
    let until = Instant::now() + bound.time;
    let worlds = [Numbers::narrow, Numbers::wide]
        .map(|numbers| World::new(program, numbers(program, bound.values), bound.memory));
    let mut monitors = worlds.each_ref().map(Monitor::new);
    let mut courses = COURSES.map(|(interruptions, wide)| Course {
        interruptions,
        wide,
        operations: 1,
        last: 0,
        spent: 0,
        open: interruptions != Interruptions::AtMost(0) || program.meaning.is_some(),
    });
    while let Some(course) = courses.iter_mut().filter(|one| one.open).min_by_key(|one| one.spent) {
        let (monitor, ways) = &mut monitors[usize::from(course.wide)];
        let world = &worlds[usize::from(course.wide)];
        let others = searched.states;
        let limits =
            Limits { states: bound.states.saturating_sub(others), until, bytes: bound.bytes };
        let mut search = Search::new(world, monitor, course, limits);
        let found = search.run(*ways);
        course.spent += search.visits.len();
        searched.states += search.visits.len();
        for (known, now) in searched.ended.iter_mut().zip(&search.ended) {
            *known |= now;
        }
        match found {
            Found::Counterexample(at, choice) => {
                let events = search.events(*ways, at, choice);
                searched.counterexample = Some(history::tell(program, &events));
                break;
            }
            Found::Nothing => {
                if course.interruptions == Interruptions::Any && course.wide {
                    searched.operations = course.operations;
                }
                // With one more operation nothing more can happen.
                let exhausted = search.visits.len() == course.last && course.operations > 1;
                course.last = search.visits.len();
                course.operations += 1;
                course.open = course.operations <= bound.operations && !exhausted;
                if exhausted && course.interruptions == Interruptions::Any && course.wide {
                    searched.operations = bound.operations;
                    break;
                }
            }
            Found::TooMuch => course.open = false,
        }
    }
    searched.histories = monitors.iter().map(|(monitor, _)| monitor.asked()).sum();
    searched
}

enum Found {
    /// At which visit, and which of its successors.
    Counterexample(usize, usize),
    Nothing,
    TooMuch,
}

/// When to stop.
#[derive(Clone, Copy)]
struct Limits {
    states: usize,
    until: Instant,
    bytes: usize,
}

/// An operation on its way, or one that left something behind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Instance {
    /// Its number, from 1, in the order in which they begin.
    pub number: usize,
    /// Which operation.
    pub operation: usize,
    /// How many of its sub-operations have run.
    pub done: usize,
    /// Its locals.
    pub locals: Locals,
    /// Stores that are not in memory yet.
    pub buffer: Buffer,
    /// Its call, as the monitor numbers it.
    call: usize,
}

/// A state of an interleaving.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    machine: Rc<Machine>,
    live: Vec<Rc<Instance>>,
    begun: usize,
    /// The ways to explain what was seen; `None` if there is none.
    ways: Option<Ways>,
    /// Who ran last and has not ended; 0 if that does not matter.
    running: usize,
    /// How many interruptions are still allowed, or the only operation that may be interrupted, 0 if it is
    /// not known yet; not looked at without a limit.
    left: usize,
}

impl State {
    /// Whether the operation that ran last may be interrupted.
    fn may_interrupt(&self, interruptions: Interruptions) -> bool {
        match interruptions {
            Interruptions::Any => true,
            Interruptions::AtMost(_) => self.left > 0,
            Interruptions::OfOne => self.left == 0 || self.left == self.running,
        }
    }

    /// Notes that it is.
    fn interrupt(&mut self, interruptions: Interruptions) {
        match interruptions {
            Interruptions::Any => {}
            Interruptions::AtMost(_) => self.left -= 1,
            Interruptions::OfOne => self.left = self.running,
        }
    }
}

/// How a state was reached: from which visit, and as which of its successors.
struct Visit {
    from: u32,
    choice: u32,
}

/// About how many bytes a visited state takes: the visit and its fingerprint.
const BYTES_PER_STATE: usize = 56;

/// To follow this many ways to explain a history takes about as long as to visit a state.
const WAYS_PER_STATE: usize = 64;

struct Search<'w, 's> {
    world: &'w World<'w>,
    monitor: &'s mut Monitor<'w>,
    operations: usize,
    interruptions: Interruptions,
    limits: Limits,
    visits: Vec<Visit>,
    ended: Vec<bool>,
}

type Successors = Vec<(State, Vec<Event>)>;

impl<'w, 's> Search<'w, 's> {
    fn new(
        world: &'w World<'w>,
        monitor: &'s mut Monitor<'w>,
        course: &Course,
        limits: Limits,
    ) -> Self {
        Self {
            world,
            monitor,
            operations: course.operations,
            interruptions: course.interruptions,
            limits,
            visits: Vec::new(),
            ended: vec![false; world.program.operations.len()],
        }
    }

    fn start(&self, ways: Ways) -> State {
        let machine = Rc::new(Machine::start(self.world.program));
        let left = if let Interruptions::AtMost(most) = self.interruptions { most } else { 0 };
        State { machine, live: Vec::new(), begun: 0, ways: Some(ways), running: 0, left }
    }

    fn run(&mut self, ways: Ways) -> Found {
        let start = self.start(ways);
        let mut seen = HashSet::from([fingerprint(&start)]);
        let mut work = vec![(0, start)];
        self.visits.push(Visit { from: 0, choice: 0 });
        while let Some((from, state)) = work.pop() {
            for (choice, (next, _)) in self.successors(&state).into_iter().enumerate() {
                if next.ways.is_none() {
                    if self.world.has_free_numbers && !self.is_confirmed(ways, from, choice) {
                        continue;
                    }
                    return Found::Counterexample(from, choice);
                }
                if !seen.insert(fingerprint(&next)) {
                    continue;
                }
                if self.is_too_much() {
                    return Found::TooMuch;
                }
                self.visits.push(Visit { from: small(from), choice: small(choice) });
                work.push((self.visits.len() - 1, next));
            }
        }
        Found::Nothing
    }

    fn is_too_much(&self) -> bool {
        let states = self.visits.len();
        let bytes = || states * BYTES_PER_STATE + self.monitor.bytes();
        let late = || Instant::now() >= self.limits.until;
        states + self.monitor.followed() / WAYS_PER_STATE >= self.limits.states
            || late()
            || (states.is_multiple_of(256) && bytes() > self.limits.bytes)
    }

    fn has_ended(&self, instance: &Instance) -> bool {
        instance.done == self.world.program.operations[instance.operation].steps.len()
    }

    fn successors(&mut self, state: &State) -> Successors {
        let mut found = Vec::new();
        let running = state.live.iter().position(|one| one.number == state.running);
        let running = running.filter(|&at| !self.has_ended(&state.live[at]));
        let goes_on = running.filter(|_| self.interruptions != Interruptions::Any);
        if let Some(at) = goes_on {
            self.advance(state.clone(), at, &mut found);
        }
        let interrupts = !found.is_empty();
        self.flushes(state, &mut found);
        if interrupts && !state.may_interrupt(self.interruptions) {
            return found;
        }
        let mut from = state.clone();
        if interrupts {
            from.interrupt(self.interruptions);
        }
        for at in 0..state.live.len() {
            if goes_on != Some(at) && !self.has_ended(&state.live[at]) {
                self.advance(from.clone(), at, &mut found);
            }
        }
        // Without interruptions operations run one after the other, and none is left standing.
        let waits = self.interruptions == Interruptions::AtMost(0)
            && state.live.iter().any(|one| !self.has_ended(one));
        if state.begun < self.operations && !waits {
            self.begin(&from, &mut found);
        }
        found
    }

    /// Oldest stores of buffers reach memory.
    fn flushes(&self, state: &State, found: &mut Successors) {
        for (at, instance) in state.live.iter().enumerate() {
            let flushed = self.world.flush(&state.machine, &instance.buffer);
            let Some((machine, buffer)) = flushed else { continue };
            let mut next = state.clone();
            next.machine = Rc::new(machine);
            let after = Rc::new(Instance { buffer, ..(**instance).clone() });
            let event = Event::flush(instance, &next.machine, &after);
            next.live[at] = after;
            self.settle(&mut next);
            found.push((next, vec![event]));
        }
    }

    /// Forgets operations that have returned and left nothing behind.
    fn settle(&self, state: &mut State) {
        let operations = &self.world.program.operations;
        state.live.retain(|one| {
            let ended = one.done == operations[one.operation].steps.len();
            !ended || operations[one.operation].internal || !one.buffer.is_empty()
        });
    }

    fn begin(&mut self, state: &State, found: &mut Successors) {
        for operation in 0..self.world.program.operations.len() {
            if self.is_busy(state, operation) {
                continue;
            }
            for locals in self.invocations(&state.machine, operation) {
                let given = self.world.program.operations[operation]
                    .locals_of(LocalKind::Parameter)
                    .filter_map(|local| locals[local]);
                let call = Call { group: self.group(operation), arguments: given.collect() };
                let call = self.monitor.call(call);
                let mut next = state.clone();
                next.begun += 1;
                let (number, buffer) = (next.begun, Buffer::new());
                next.live.push(Rc::new(Instance {
                    number,
                    operation,
                    done: 0,
                    locals,
                    buffer,
                    call,
                }));
                self.advance(next, state.live.len(), found);
            }
        }
    }

    /// Whether the thread that the operation belongs to runs something else.
    fn is_busy(&self, state: &State, operation: usize) -> bool {
        let operations = &self.world.program.operations;
        let Some(thread) = operations[operation].thread else { return false };
        let mine = |one: &Rc<Instance>| operations[one.operation].thread == Some(thread);
        state.live.iter().any(|one| mine(one) && (!self.has_ended(one) || !one.buffer.is_empty()))
    }

    fn group(&self, operation: usize) -> usize {
        let operations = &self.world.program.operations;
        let same = |other: &crate::model::Operation| other.name == operations[operation].name;
        operations.iter().position(same).unwrap_or(operation)
    }

    /// The locals of an operation that begins, for every choice of arguments.
    fn invocations(&self, machine: &Machine, operation: usize) -> Vec<Locals> {
        let declared = &self.world.program.operations[operation].locals;
        let mut all: Vec<Locals> = vec![vec![None; declared.len()]];
        for (at, local) in declared.iter().enumerate() {
            if local.kind == LocalKind::Parameter {
                let values = self.world.guesses(machine, local);
                let longer = all.iter().flat_map(|locals| {
                    values.iter().map(move |&value| {
                        let mut locals = locals.clone();
                        locals[at] = Some(value);
                        locals
                    })
                });
                all = longer.collect();
            }
        }
        all
    }

    /// Runs an instance's next sub-operation, with the quiet ones around it.
    fn advance(&mut self, state: State, at: usize, found: &mut Successors) {
        let mut work = vec![(state, Vec::new(), false)];
        while let Some((mut state, events, loud)) = work.pop() {
            let instance = Rc::clone(&state.live[at]);
            let ended = self.has_ended(&instance);
            let quiet =
                !ended && self.world.kinds[instance.operation][instance.done] == Kind::Quiet;
            if ended {
                self.end(&mut state, &instance);
                found.push((state, events));
                continue;
            }
            if loud && !quiet {
                found.push((state, events));
                continue;
            }
            let nexts = self.step(&state, at);
            if nexts.is_empty() && loud {
                // What others can see has happened; it then stands for ever.
                found.push((state, events));
                continue;
            }
            for next in nexts {
                let mut events = events.clone();
                events.push(Event::new(&instance, &next.machine, &next.live[at]));
                work.push((next, events, loud || !quiet));
            }
        }
    }

    /// An operation returns.
    fn end(&mut self, state: &mut State, instance: &Instance) {
        let operation = &self.world.program.operations[instance.operation];
        self.ended[instance.operation] = true;
        if state.running == instance.number {
            state.running = 0;
        }
        let open: Vec<Open> = state
            .live
            .iter()
            .filter(|one| {
                let other = &self.world.program.operations[one.operation];
                one.number == instance.number || other.internal || !self.has_ended(one)
            })
            .map(|one| (one.number, one.call))
            .collect();
        if let Some(ways) = state.ways
            && !operation.internal
        {
            let results = results(operation, &instance.locals);
            let hints = self.hints(state);
            state.ways = self.monitor.returns(ways, &open, instance.number, &results, &hints);
        }
        self.settle(state);
    }

    /// Where numbers may come up that nothing determines, an operation that had not returned yet
    /// may have been taken to come up with others than it then did. Now that all are known, the
    /// history is followed once more.
    fn is_confirmed(&mut self, ways: Ways, at: usize, choice: usize) -> bool {
        let events = self.events(ways, at, choice);
        let all = events.iter().filter_map(Event::ran);
        let mut hints: Vec<i64> =
            all.flat_map(|one| one.locals.iter().flatten().copied()).collect();
        hints.sort_unstable();
        hints.dedup();
        let mut open: Vec<Open> = Vec::new();
        let mut ways = ways;
        for instance in events.iter().filter_map(Event::ran) {
            if !open.iter().any(|&(number, _)| number == instance.number) {
                open.push((instance.number, instance.call));
            }
            let operation = &self.world.program.operations[instance.operation];
            if self.has_ended(instance) && !operation.internal {
                let results = results(operation, &instance.locals);
                match self.monitor.returns(ways, &open, instance.number, &results, &hints) {
                    Some(left) => ways = left,
                    None => return true,
                }
                open.retain(|&(number, _)| number != instance.number);
            }
        }
        false
    }

    /// The numbers that operations hold, if they may have come up with any.
    fn hints(&self, state: &State) -> Vec<i64> {
        if !self.world.has_free_numbers {
            return Vec::new();
        }
        let mut all: Vec<i64> =
            state.live.iter().flat_map(|one| one.locals.iter().flatten().copied()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    fn step(&self, state: &State, at: usize) -> Vec<State> {
        let instance = &state.live[at];
        let outcomes = self.world.outcomes(
            &state.machine,
            (instance.operation, instance.done),
            instance.number,
            &instance.locals,
            Some(&instance.buffer),
        );
        let after = outcomes.into_iter().map(|outcome| {
            let mut next = state.clone();
            next.live[at] = Rc::new(Instance {
                done: instance.done + 1,
                locals: outcome.locals,
                buffer: outcome.buffer,
                ..(**instance).clone()
            });
            next.machine = Rc::new(outcome.machine);
            let limited = self.interruptions != Interruptions::Any;
            next.running = if limited { instance.number } else { 0 };
            next
        });
        after.collect()
    }

    /// What led to a successor of a visit: the way there is gone again.
    fn events(&mut self, ways: Ways, at: usize, choice: usize) -> Vec<Event> {
        let mut choices = vec![choice];
        let mut visit = at;
        while visit != 0 {
            choices.push(self.visits[visit].choice as usize);
            visit = self.visits[visit].from as usize;
        }
        let mut state = self.start(ways);
        let mut all = Vec::new();
        for choice in choices.into_iter().rev() {
            let Some((next, events)) = self.successors(&state).into_iter().nth(choice) else {
                break;
            };
            all.extend(events);
            state = next;
        }
        all
    }
}

/// Visits are counted in 32 bits; the bound on states is below that.
fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
