//! Operations that never end. By the definition of Herlihy and Wing a history with such operations
//! is linearizable if the others are explained when each of them is either given an end or left out.
//!
//! One that only read can be left out. One that wrote can be left out if each of its writes can be
//! moved behind everything that follows it, to the end of the history: taking a lock, for example.
//! Whether a write can is asked of histories as they are, one sub-operation of another operation at
//! a time, so that no invariant is needed.

use super::footprint::writing_steps;
use super::local_facts::LocalFacts;
use super::pairs::{Part, run, swaps};
use crate::model::Program;
use crate::symbolic::claims::Claims;
use crate::symbolic::path::walk;
use crate::symbolic::run::Runner;
use crate::symbolic::store::{Mode, Store, sizes};
use std::cell::RefCell;
use std::collections::HashMap;

/// Which first sub-operations of operations can be left out; computed when asked.
#[derive(Default)]
pub struct Removable {
    known: RefCell<HashMap<usize, usize>>,
}

impl Removable {
    /// How many first sub-operations of an operation can be left out if it never ends.
    pub fn of(
        &self,
        program: &Program,
        claims: &Claims,
        local_facts: &[LocalFacts],
        operation: usize,
    ) -> usize {
        if let Some(&known) = self.known.borrow().get(&operation) {
            return known;
        }
        let writes = writing_steps(program, operation);
        let stays = |step: &usize| match writes[*step] {
            Writes::Nothing => false,
            Writes::Numbers => !moves_to_the_end(program, claims, local_facts, operation, *step),
            Writes::References => true,
        };
        let found = (0..writes.len()).find(stays).unwrap_or(writes.len());
        self.known.borrow_mut().insert(operation, found);
        found
    }
}

/// What a sub-operation writes that others can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Writes {
    /// Nothing.
    Nothing,
    /// Numbers: what others can reach stays the same.
    Numbers,
    /// References, which may show others what they could not reach.
    References,
}

/// Whether a sub-operation can be moved right past every other one of every other operation.
fn moves_to_the_end(
    program: &Program,
    claims: &Claims,
    local_facts: &[LocalFacts],
    operation: usize,
    step: usize,
) -> bool {
    let thread = program.operations[operation].thread;
    program.operations.iter().enumerate().all(|(other, follower)| {
        let same = thread.is_some() && thread == follower.thread;
        same || (0..follower.steps.len())
            .all(|next| moves_past(program, claims, local_facts, (operation, step), (other, next)))
    })
}

fn moves_past(
    program: &Program,
    claims: &Claims,
    local_facts: &[LocalFacts],
    (operation, step): (usize, usize),
    (other, next): (usize, usize),
) -> bool {
    let operations = [operation, other];
    let first = Part { instance: 0, steps: step..step + 1 };
    let second = Part { instance: 1, steps: next..next + 1 };
    let mut moves = true;
    let walked = walk(program, claims, |path| {
        path.solver.all_have_run = true;
        let mut runner = Runner::new(program, &operations);
        let mut start = Store::start(path, &sizes(program, &operations));
        local_facts[operation].enter(path, program, &mut start, 0, (operation, step));
        local_facts[other].enter(path, program, &mut start, 1, (other, next));
        let mut store = start.clone();
        run(path, &mut runner, &mut store, &[first.clone(), second.clone()], Mode::Assume)?;
        moves = swaps(path, &mut runner, &start, &[second.clone(), first.clone()], &store)?;
        Ok(moves)
    });
    moves && walked.is_ok()
}
