//! What a prefix can touch at most. Prefixes that touch nothing in common commute in every state,
//! which settles most pairs without looking at any. What a prefix does to nodes that it has made
//! and shown to no one does not count.

use super::Prefix;
use super::pending::Writes;
use crate::model::{Condition, Expression, Local, LocalKind, Place, Program, Statement, Type};

/// Cells by kind: shared variables and arrays first, then fields, then kinds of nodes.
#[derive(Clone, Debug, Default)]
pub struct Footprint {
    reads: Vec<bool>,
    writes: Vec<bool>,
}

impl Footprint {
    /// What a prefix can touch.
    #[must_use]
    pub fn of(program: &Program, prefix: Prefix) -> Self {
        let cells = program.globals.len() + program.fields.len() + program.structs.len();
        let mut footprint = Self { reads: vec![false; cells], writes: vec![false; cells] };
        let operation = &program.operations[prefix.operation];
        for (local, kind) in operation.locals.iter().map(|local| (local.ty, local.kind)) {
            // A guessed reference may be any node that others publish.
            if let (Type::Ref(ty), LocalKind::Declared | LocalKind::Parameter) = (local, kind) {
                footprint.reads[nodes(program, ty)] = true;
            }
        }
        let mut own = Own { locals: vec![false; operation.locals.len()], pending: Vec::new() };
        for step in &operation.steps[..prefix.length] {
            step.conditions.iter().for_each(|condition| footprint.condition(program, condition));
            for statement in &step.body {
                footprint.statement(program, statement, &mut own, &operation.locals);
            }
        }
        footprint
    }

    /// Whether the two can be swapped for no other reason than that they never meet.
    #[must_use]
    pub fn misses(&self, other: &Self) -> bool {
        let clash = |writes: &[bool], touched: &[bool]| {
            writes.iter().zip(touched).any(|(&write, &touch)| write && touch)
        };
        !clash(&self.writes, &other.reads)
            && !clash(&self.writes, &other.writes)
            && !clash(&other.writes, &self.reads)
    }

    /// Whether it may change a shared cell or make a node.
    #[must_use]
    pub fn writes_anything(&self) -> bool {
        self.writes.iter().any(|&write| write)
    }

    fn condition(&mut self, program: &Program, condition: &Condition) {
        self.expression(program, &condition.left);
        self.expression(program, &condition.right);
    }

    fn statement(
        &mut self,
        program: &Program,
        statement: &Statement,
        own: &mut Own,
        locals: &[Local],
    ) {
        match statement {
            Statement::Malloc { local, ty, .. } => {
                own.locals[*local] = true;
                own.pending.push(nodes(program, *ty));
            }
            Statement::Free(_) | Statement::Fence => {}
            Statement::Assign(target, value) => {
                self.expression(program, value);
                let cell = self.target(program, target);
                match target {
                    Place::Local(local) => own.locals[*local] = own.holds(value),
                    Place::Field(base, _) if own.is_own(base) => own.pending.extend(cell),
                    _ => {
                        cell.into_iter().for_each(|cell| self.writes[cell] = true);
                        if program.type_of(target, locals) != Type::Int {
                            // This may show everything that was made so far.
                            own.pending.drain(..).for_each(|cell| self.writes[cell] = true);
                            own.locals.fill(false);
                        }
                    }
                }
            }
        }
    }

    /// Notes what is read to find the target; gives the cell that is written.
    fn target(&mut self, program: &Program, target: &Place) -> Option<usize> {
        match target {
            Place::Local(_) => None,
            Place::Global(global) => Some(*global),
            Place::Element(array, index) => {
                self.expression(program, index);
                Some(*array)
            }
            Place::Field(base, field) => {
                self.place(program, base);
                Some(program.globals.len() + field)
            }
        }
    }

    fn expression(&mut self, program: &Program, expression: &Expression) {
        expression.places().into_iter().for_each(|place| self.place(program, place));
    }

    fn place(&mut self, program: &Program, place: &Place) {
        match place {
            Place::Local(_) => {}
            Place::Global(global) => self.reads[*global] = true,
            Place::Element(array, index) => {
                self.reads[*array] = true;
                self.expression(program, index);
            }
            Place::Field(base, field) => {
                self.reads[program.globals.len() + field] = true;
                self.place(program, base);
            }
        }
    }
}

/// What each sub-operation of an operation writes that others can see.
#[must_use]
pub fn writing_steps(program: &Program, operation: usize) -> Vec<Writes> {
    let operation = &program.operations[operation];
    let mut own = Own { locals: vec![false; operation.locals.len()], pending: Vec::new() };
    let cells = program.globals.len() + program.fields.len() + program.structs.len();
    let writes = operation.steps.iter().map(|step| {
        let mut found = Writes::Nothing;
        for statement in &step.body {
            let shows = match statement {
                Statement::Assign(Place::Local(_), _) => Writes::Nothing,
                Statement::Assign(Place::Field(base, _), _) if own.is_own(base) => Writes::Nothing,
                Statement::Assign(target, _)
                    if program.type_of(target, &operation.locals) == Type::Int =>
                {
                    Writes::Numbers
                }
                Statement::Assign(..) => Writes::References,
                _ => Writes::Nothing,
            };
            found = found.max(shows);
            let mut scratch = Footprint { reads: vec![false; cells], writes: vec![false; cells] };
            scratch.statement(program, statement, &mut own, &operation.locals);
        }
        found
    });
    writes.collect()
}

/// What a prefix has made and shown to no one yet.
struct Own {
    /// Locals that hold such a node.
    locals: Vec<bool>,
    /// Cells written on the way; they count once a node is shown.
    pending: Vec<usize>,
}

impl Own {
    fn is_own(&self, place: &Place) -> bool {
        matches!(place, Place::Local(local) if self.locals[*local])
    }

    fn holds(&self, value: &Expression) -> bool {
        matches!(value, Expression::Place(place, _) if self.is_own(place))
    }
}

fn nodes(program: &Program, ty: usize) -> usize {
    program.globals.len() + program.fields.len() + ty
}
