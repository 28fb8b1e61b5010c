//! What a prefix can touch at most. Prefixes that touch nothing in common commute in every state,
//! which settles most pairs without looking at any.

use super::Prefix;
use crate::model::{Condition, Expression, LocalKind, Place, Program, Statement, Type};

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
        for step in &operation.steps[..prefix.length] {
            step.conditions.iter().for_each(|condition| footprint.condition(program, condition));
            step.body.iter().for_each(|statement| footprint.statement(program, statement));
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

    fn statement(&mut self, program: &Program, statement: &Statement) {
        match statement {
            Statement::Malloc { ty, .. } => self.writes[nodes(program, *ty)] = true,
            Statement::Assign(target, value) => {
                self.expression(program, value);
                match target {
                    Place::Local(_) => {}
                    Place::Global(global) => self.writes[*global] = true,
                    Place::Element(array, index) => {
                        self.writes[*array] = true;
                        self.expression(program, index);
                    }
                    Place::Field(base, field) => {
                        self.writes[program.globals.len() + field] = true;
                        self.place(program, base);
                    }
                }
            }
        }
    }

    fn expression(&mut self, program: &Program, expression: &Expression) {
        if let Expression::Place(place, _) = expression {
            self.place(program, place);
        }
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

fn nodes(program: &Program, ty: usize) -> usize {
    program.globals.len() + program.fields.len() + ty
}
