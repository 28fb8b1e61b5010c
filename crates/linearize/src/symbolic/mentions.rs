//! Which local variables the parts of a specification mention.

use crate::model::{Expression, Place, Statement, Step};

/// The locals that a sub-operation mentions in its precondition or body.
#[must_use]
pub fn mentioned(step: &Step) -> Vec<usize> {
    let mut locals = mentioned_in_conditions(step);
    step.body.iter().for_each(|statement| locals.extend(mentioned_in(statement)));
    locals
}

/// The locals that a precondition mentions.
#[must_use]
pub fn mentioned_in_conditions(step: &Step) -> Vec<usize> {
    let mut locals = Vec::new();
    for condition in &step.conditions {
        note_locals(&condition.left, &mut locals);
        note_locals(&condition.right, &mut locals);
    }
    locals
}

/// The locals that an assignment mentions.
#[must_use]
pub fn mentioned_in(statement: &Statement) -> Vec<usize> {
    let mut locals = Vec::new();
    if let Statement::Assign(place, value) = statement {
        note_locals(value, &mut locals);
        note_place(place, &mut locals);
    }
    locals
}

/// Adds the locals that an expression mentions.
pub fn note_locals(expression: &Expression, locals: &mut Vec<usize>) {
    expression.places().into_iter().for_each(|place| note_place(place, locals));
}

fn note_place(mut place: &Place, locals: &mut Vec<usize>) {
    while let Place::Field(base, _) = place {
        place = base;
    }
    match place {
        Place::Local(local) => locals.push(*local),
        Place::Element(_, index) => note_locals(index, locals),
        Place::Global(_) | Place::Field(..) => {}
    }
}
