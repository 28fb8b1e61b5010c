//! What is said of a specification: a proof if there is one, else a search for a counterexample,
//! and what is odd about the specification either way.

use crate::explore::kinds::{Kind, kinds};
use crate::explore::search::{Bound, Searched, search};
use crate::explore::survey::{Oddity, survey};
use crate::model::{Operation, Program, Statement};
use crate::proof::invariants::{Refused, believe};
use crate::proof::{Ending, Obstacle, find};
use crate::symbolic::claims::Effort;
use std::time::{Duration, Instant};

/// What is said of a specification.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// Stated invariants that do not hold and were not used.
    pub refused: Vec<Refused>,
    /// Proved, refuted or neither.
    pub verdict: Verdict,
    /// What is odd about the operations, each by itself.
    pub oddities: Vec<Oddity>,
    /// What the verdict takes for granted.
    pub assumptions: Vec<Assumption>,
}

/// Proved, refuted or neither.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Every history, of any length and number of threads, is linearizable.
    Proved,
    /// A history that no sequential order explains.
    Refuted {
        /// The history, and how far the search went.
        searched: Searched,
        /// Whether every history in which all operations end is linearizable.
        if_all_end: bool,
    },
    /// Neither a proof nor a counterexample within the bound.
    NotProved {
        /// Where the proof stopped; at least one, unless there was none to begin with.
        obstacles: Vec<Obstacle>,
        /// How far the search went.
        searched: Searched,
        /// Whether every history in which all operations end is linearizable.
        if_all_end: bool,
    },
}

/// What a proof takes for granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assumption {
    /// What the operations do one after the other is right by definition.
    SequentialMeaning,
    /// What they do one after the other was compared with an object for sequences of up to this
    /// many operations.
    ComparedWithObject(usize),
    /// Sub-operations happen one after the other.
    SequentialConsistency,
    /// Stores wait in buffers, and none is still there when its operation reads on or ends.
    StoreBuffersDoNotShow,
    /// Nodes are not used again while a reference to them exists.
    NoReuse,
    /// Loops end after at most so many rounds.
    Rounds(usize),
}

/// Why there can be no proof, whatever the operations do.
fn is_out_of_reach(program: &Program, bound: Bound) -> bool {
    let allocates = |operation: &Operation| {
        let mut statements = operation.steps.iter().flat_map(|step| &step.body);
        statements.any(|statement| matches!(statement, Statement::Free(_)))
    };
    let reused = bound.memory.reuse && program.operations.iter().any(allocates);
    let delayed = bound.memory.buffers && program.operations.iter().any(shows_buffers);
    reused || delayed || program.rounds.is_some()
}

/// Whether a store of the operation may still be in a buffer when it reads something shared or
/// ends. If not, store buffers change nothing: the store happens when it leaves the buffer.
fn shows_buffers(operation: &Operation) -> bool {
    let mut waiting = false;
    for (step, kind) in operation.steps.iter().zip(kinds(operation, false)) {
        let stores = writes_shared(step);
        match kind {
            Kind::Locked => waiting = false,
            Kind::Plain if stores => waiting = true,
            Kind::Plain if waiting => return true,
            Kind::Plain | Kind::Quiet => {}
        }
    }
    waiting
}

fn writes_shared(step: &crate::model::Step) -> bool {
    step.body.iter().any(|statement| {
        matches!(statement, Statement::Assign(target, _)
            if !matches!(target, crate::model::Place::Local(_)))
    })
}

/// How far a specification is run before a proof is looked for: most counterexamples are found at
/// once, and what is proved has been seen to run.
const REHEARSAL: (usize, usize, Duration) = (4, 10_000, Duration::from_secs(1));

/// Judges a specification: a short search, a proof if there is one, else a long search for a
/// counterexample.
#[must_use]
pub fn judge(program: &Program, bound: Bound) -> Judgement {
    let (_, refused) = believe(program, &Effort::until(Instant::now() + bound.time));
    let mut seen = survey(program, bound.values, bound.memory);
    let (operations, states, time) = REHEARSAL;
    let short = Bound {
        operations: operations.min(bound.operations),
        states: states.min(bound.states),
        time: time.min(bound.time),
        ..bound
    };
    let reachable = !is_out_of_reach(program, bound);
    let mut searched = search(program, short);
    let mut obstacles = Vec::new();
    let mut proved = false;
    if searched.counterexample.is_none() {
        if reachable {
            obstacles = find(program, Ending::Open, &Effort::until(Instant::now() + bound.time));
            proved = obstacles.is_empty() && seen.agrees();
        }
        if !proved {
            searched = search(program, bound);
        }
    }
    if program.rounds.is_none() {
        // A number of rounds that never comes up is nothing odd.
        seen.note_roles(program, &searched.ended);
    }
    let if_all_end = || {
        let effort = Effort::until(Instant::now() + bound.time);
        reachable && seen.agrees() && find(program, Ending::Assumed, &effort).is_empty()
    };
    let verdict = match &searched.counterexample {
        Some(history) => {
            // A history in which all operations end refutes that, too.
            let if_all_end = history.calls.iter().any(|call| call.pending) && if_all_end();
            Verdict::Refuted { if_all_end, searched }
        }
        None if proved => Verdict::Proved,
        None => Verdict::NotProved { if_all_end: if_all_end(), obstacles, searched },
    };
    let assumptions = assumptions(program, bound, seen.operations);
    Judgement { refused, verdict, oddities: seen.oddities, assumptions }
}

fn assumptions(program: &Program, bound: Bound, compared: usize) -> Vec<Assumption> {
    let meaning = match program.meaning {
        None => Assumption::SequentialMeaning,
        Some(_) => Assumption::ComparedWithObject(compared),
    };
    let order = if bound.memory.buffers {
        Assumption::StoreBuffersDoNotShow
    } else {
        Assumption::SequentialConsistency
    };
    let mut all = vec![meaning, order];
    if !program.structs.is_empty() && !bound.memory.reuse {
        all.push(Assumption::NoReuse);
    }
    all.extend(program.rounds.map(Assumption::Rounds));
    all
}
