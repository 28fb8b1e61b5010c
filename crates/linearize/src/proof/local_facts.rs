//! An operation that stands before one of its sub-operations, of which nothing is known but which
//! of its locals hold nodes that no one else can reach, and which only ever held nodes that anyone
//! can. This speaks of histories as they are, not rearranged.

use crate::model::{Expression, Operation, Place, Program, Statement, Type};
use crate::symbolic::path::Path;
use crate::symbolic::solver::{Term, Value};
use crate::symbolic::store::Store;

/// What is known of an operation's locals wherever it stands.
#[derive(Clone, Debug)]
pub struct LocalFacts {
    /// By sub-operation, by local: holds a node before it that no one else can reach.
    own: Vec<Vec<bool>>,
    /// By local: never held anything but what every thread could reach.
    public: Vec<bool>,
}

impl LocalFacts {
    /// What is known of an operation.
    #[must_use]
    pub fn of(operation: &Operation) -> Self {
        Self { own: own(operation), public: public(operation) }
    }

    /// Binds all locals of an instance that stands before `step`.
    pub fn enter(
        &self,
        path: &mut Path<'_>,
        program: &Program,
        store: &mut Store,
        instance: usize,
        (operation, step): (usize, usize),
    ) {
        for (local, declared) in program.operations[operation].locals.iter().enumerate() {
            let ty = declared.ty;
            let own = ty != Type::Int && self.own[step][local];
            let term = if own {
                path.solver.intern(Term::Private(instance, local), ty, false)
            } else {
                path.solver.intern(Term::Local(instance, local), ty, self.public[local])
            };
            store.locals[instance][local] = Some(Value::of(term));
        }
    }
}

fn own(operation: &Operation) -> Vec<Vec<bool>> {
    let mut own = vec![false; operation.locals.len()];
    let mut all = Vec::new();
    for step in &operation.steps {
        all.push(own.clone());
        for statement in &step.body {
            match statement {
                Statement::Malloc { local, .. } => own[*local] = true,
                Statement::Assign(target, value) => {
                    if let Expression::Place(Place::Local(from), _) = value {
                        // Another name for it, or a place where it can be found.
                        own[*from] = false;
                    }
                    if let Place::Local(to) = target {
                        own[*to] = false;
                    }
                }
                Statement::Free(_) | Statement::Fence => {}
            }
        }
        for condition in &step.conditions {
            for side in [&condition.left, &condition.right] {
                if let Expression::Place(Place::Local(from), _) = side {
                    // A guess may be bound to it.
                    own[*from] = false;
                }
            }
        }
    }
    all
}

fn public(operation: &Operation) -> Vec<bool> {
    let mut public = vec![true; operation.locals.len()];
    let mut changed = true;
    while changed {
        let before = public.clone();
        let from = |public: &[bool], value: &Expression| {
            value.places().into_iter().all(|place| root(place).is_none_or(|local| public[local]))
        };
        for step in &operation.steps {
            for statement in &step.body {
                match statement {
                    Statement::Malloc { local, .. } => public[*local] = false,
                    Statement::Assign(Place::Local(local), value) => {
                        public[*local] &= from(&public, value);
                    }
                    _ => {}
                }
            }
            for condition in &step.conditions {
                for (side, other) in
                    [(&condition.left, &condition.right), (&condition.right, &condition.left)]
                {
                    if let Expression::Place(Place::Local(local), _) = side {
                        public[*local] &= from(&public, other);
                    }
                }
            }
        }
        changed = public != before;
    }
    public
}

/// The local that a place begins with.
fn root(mut place: &Place) -> Option<usize> {
    while let Place::Field(base, _) = place {
        place = base;
    }
    match place {
        Place::Local(local) => Some(*local),
        _ => None,
    }
}
