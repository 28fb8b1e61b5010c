//! Fields that a node's maker alone reads: the flag that a waiting thread spins on, the link to its
//! successor in a queue lock. Others write them, through references to the node, but nobody else ever
//! looks. When the operation that made the node has ended, what they hold is of no account.

use crate::model::{Condition, Expression, LocalKind, Operation, Place, Program, Statement};

type Visit<'v> = &'v mut dyn FnMut(&Place, usize);

/// The fields that only makers read.
#[derive(Clone, Debug, Default)]
pub struct Owned {
    fields: Vec<usize>,
    /// By operation: the locals that hold a node which the operation has made, and nothing else ever.
    makers: Vec<Vec<usize>>,
}

impl Owned {
    /// Those of a specification, as far as the believed invariants do not speak of them.
    #[must_use]
    pub fn of(program: &Program, believed: &[usize]) -> Self {
        let makers: Vec<_> = program.operations.iter().map(made).collect();
        let mut shown = vec![false; program.fields.len()];
        for (operation, own) in program.operations.iter().zip(&makers) {
            each_read(operation, &mut |base, field| {
                shown[field] |= !matches!(base, Place::Local(local) if own.contains(local));
            });
        }
        for &invariant in believed {
            let invariant = &program.invariants[invariant];
            for condition in invariant.given.iter().chain(&invariant.then) {
                in_condition(condition, &mut |_, field| shown[field] = true);
            }
        }
        let fields = (0..shown.len()).filter(|&field| !shown[field]).collect();
        Self { fields, makers }
    }

    /// The fields.
    #[must_use]
    pub fn fields(&self) -> &[usize] {
        &self.fields
    }

    /// The locals of an operation that hold nodes which it has made.
    #[must_use]
    pub fn makers(&self, operation: usize) -> &[usize] {
        self.makers.get(operation).map_or(&[], Vec::as_slice)
    }
}

/// The locals that are assigned once, by an allocation, before anything mentions them.
fn made(operation: &Operation) -> Vec<usize> {
    let mut assigned = vec![0; operation.locals.len()];
    let mut early = vec![false; operation.locals.len()];
    let mut allocated = vec![false; operation.locals.len()];
    for step in &operation.steps {
        for local in super::mentions::mentioned_in_conditions(step) {
            early[local] |= !allocated[local];
        }
        for statement in &step.body {
            match statement {
                Statement::Malloc { local, .. } => {
                    assigned[*local] += 1;
                    allocated[*local] = true;
                }
                Statement::Assign(target, _) => {
                    if let Place::Local(local) = target {
                        assigned[*local] += 2;
                    }
                    for local in super::mentions::mentioned_in(statement) {
                        early[local] |= !allocated[local];
                    }
                }
                Statement::Free(_) | Statement::Fence => {}
            }
        }
    }
    let fits = |local: &usize| {
        let declared = operation.locals[*local].kind == LocalKind::Declared;
        declared && allocated[*local] && assigned[*local] == 1 && !early[*local]
    };
    (0..operation.locals.len()).filter(fits).collect()
}

/// Calls `visit` with every field that an operation reads, and the place it is read from.
fn each_read(operation: &Operation, visit: Visit<'_>) {
    for step in &operation.steps {
        step.conditions.iter().for_each(|condition| in_condition(condition, visit));
        for statement in &step.body {
            match statement {
                Statement::Assign(target, value) => {
                    in_expression(value, visit);
                    match target {
                        Place::Field(base, _) => in_place(base, visit),
                        other => in_place(other, visit),
                    }
                }
                Statement::Free(place) => in_place(place, visit),
                Statement::Malloc { .. } | Statement::Fence => {}
            }
        }
    }
}

fn in_condition(condition: &Condition, visit: Visit<'_>) {
    in_expression(&condition.left, visit);
    in_expression(&condition.right, visit);
}

fn in_expression(expression: &Expression, visit: Visit<'_>) {
    expression.places().into_iter().for_each(|place| in_place(place, visit));
}

fn in_place(place: &Place, visit: Visit<'_>) {
    match place {
        Place::Local(_) | Place::Global(_) => {}
        Place::Element(_, index) => in_expression(index, visit),
        Place::Field(base, field) => {
            visit(base, *field);
            in_place(base, visit);
        }
    }
}
