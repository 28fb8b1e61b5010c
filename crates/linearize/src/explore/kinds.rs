//! What kind of access a sub-operation is: none to anything shared, a plain one, or an atomic
//! instruction that waits until the stores before it are in memory.

use crate::model::{Condition, Expression, LocalKind, Operation, Place, Statement, Step, Type};
use crate::symbolic::mentions::mentioned;
use crate::symbolic::run::binding;

/// The kind of a sub-operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It uses plain locals, and nodes that are still the operation's own.
    Quiet,
    /// It only reads what is shared, or only writes one cell.
    Plain,
    /// It reads and writes, or writes several cells, at once, or is a fence: on a processor with
    /// store buffers this is a locked instruction.
    Locked,
}

/// The kinds of an operation's sub-operations.
#[must_use]
pub fn kinds(operation: &Operation, reuse: bool) -> Vec<Kind> {
    let mut known = LocalFacts {
        operation,
        reuse,
        own: vec![false; operation.locals.len()],
        bound: operation.locals.iter().map(|local| local.ty == Type::Int).collect(),
        reads: 0,
        writes: 0,
    };
    operation.steps.iter().map(|step| known.kind(step)).collect()
}

/// What is known of an operation's locals before a sub-operation, in every run.
struct LocalFacts<'o> {
    operation: &'o Operation,
    /// Whether nodes that are freed may be used again.
    reuse: bool,
    /// Holds a node that no one else can reach.
    own: Vec<bool>,
    /// Is not guessed any more. What a guessed reference may be depends on the shared state.
    bound: Vec<bool>,
    /// Accesses to what is shared, of one sub-operation.
    reads: usize,
    writes: usize,
}

impl LocalFacts<'_> {
    fn kind(&mut self, step: &Step) -> Kind {
        (self.reads, self.writes) = (0, 0);
        let mut fence = false;
        for Condition { left, right, .. } in &step.conditions {
            self.value(left);
            self.value(right);
        }
        for statement in &step.body {
            match statement {
                Statement::Malloc { local, .. } => {
                    self.own[*local] = true;
                    self.bound[*local] = true;
                }
                Statement::Assign(target, value) => self.assign(target, value),
                Statement::Free(place) if self.reuse => {
                    self.place(place);
                    // From here on others may get it.
                    self.reads += 1;
                }
                Statement::Free(_) => {}
                Statement::Fence => fence = true,
            }
        }
        match (self.reads, self.writes) {
            _ if fence => Kind::Locked,
            (0, 0) => Kind::Quiet,
            (_, 0) | (0, 1) => Kind::Plain,
            _ => Kind::Locked,
        }
    }

    fn assign(&mut self, target: &Place, value: &Expression) {
        self.value(value);
        if let Expression::Place(Place::Local(from), _) = value {
            // A node that is stored may be seen from then on.
            self.own[*from] = false;
        }
        match target {
            Place::Local(to) => {
                self.own[*to] = false;
                self.bound[*to] = true;
            }
            Place::Field(base, _) if self.is_own(base) => {}
            Place::Field(base, _) => {
                self.place(base);
                self.writes += 1;
            }
            Place::Element(_, index) => {
                self.value(index);
                self.writes += 1;
            }
            Place::Global(_) => self.writes += 1,
        }
    }

    fn is_own(&self, place: &Place) -> bool {
        matches!(place, Place::Local(local) if self.own[*local])
    }

    fn value(&mut self, expression: &Expression) {
        expression.places().into_iter().for_each(|place| self.place(place));
    }

    fn place(&mut self, place: &Place) {
        match place {
            Place::Local(local) => {
                let bound = self.bound[*local] || self.operation.locals[*local].ty == Type::Int;
                self.bound[*local] = true;
                self.reads += usize::from(!bound);
            }
            Place::Field(base, _) if self.is_own(base) => {}
            Place::Field(base, _) => {
                self.place(base);
                self.reads += 1;
            }
            Place::Element(_, index) => {
                self.value(index);
                self.reads += 1;
            }
            Place::Global(_) => self.reads += 1,
        }
    }
}

/// Whether an operation may read a number before anything determines it.
#[must_use]
pub fn has_free_numbers(operation: &Operation) -> bool {
    let declared = |local: usize| operation.locals[local].kind == LocalKind::Declared;
    let mut bound: Vec<bool> = (0..operation.locals.len()).map(|local| !declared(local)).collect();
    for step in &operation.steps {
        let mut progress = true;
        while progress {
            progress = false;
            for condition in &step.conditions {
                if let Some((local, ..)) = binding(condition, &|local: usize| bound[local]) {
                    bound[local] = true;
                    progress = true;
                }
            }
        }
        // Targets that are plain locals are written, not read.
        let targets: Vec<usize> = step
            .body
            .iter()
            .filter_map(|statement| match statement {
                Statement::Assign(Place::Local(local), _) => Some(*local),
                Statement::Malloc { local, .. } => Some(*local),
                _ => None,
            })
            .collect();
        let free = |&local: &usize| !bound[local] && operation.locals[local].ty == Type::Int;
        if mentioned(step).iter().filter(|local| !targets.contains(local)).any(free) {
            return true;
        }
        // Read and written by one sub-operation: read first, to be on the safe side.
        let twice =
            |target: &usize| mentioned(step).iter().filter(|one| *one == target).count() > 1;
        if targets.iter().filter(|target| twice(target)).any(free) {
            return true;
        }
        mentioned(step).into_iter().chain(targets).for_each(|local| bound[local] = true);
    }
    false
}
