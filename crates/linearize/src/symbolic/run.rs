//! Executes sub-operations on a store.
//!
//! A local variable that is read before it is written is *guessed*: it holds whatever lets the
//! operation go on. If the precondition says what it equals, that is it; otherwise it is anything
//! that others can reach. When the same sub-operations run again in another order, each guess must
//! come out the same, so guesses are kept.

use super::path::{Path, Stop};
use super::solver::{Literal, Term, Value, ZERO};
use super::store::{Mode, Store, require};
use crate::language::ast::Relation;
use crate::model::{Condition, Expression, Place, Program, Statement, Step, Type};

/// What every instance guessed: by instance, by local variable.
pub type Guesses = Vec<Vec<Option<Value>>>;

/// Runs sub-operations of instances on one path.
pub struct Runner<'r> {
    /// The operation of each instance.
    pub operations: &'r [usize],
    /// What was guessed so far; kept from one order to the other.
    pub guesses: Guesses,
    /// If set, nothing new is guessed; the local that lacks a value is noted here.
    pub wanted: Option<Option<usize>>,
}

impl<'r> Runner<'r> {
    /// A runner for instances of these operations, with nothing guessed.
    #[must_use]
    pub fn new(program: &Program, operations: &'r [usize]) -> Self {
        let sizes = super::store::sizes(program, operations);
        let guesses = sizes.into_iter().map(|size| vec![None; size]).collect();
        Self { operations, guesses, wanted: None }
    }

    /// Runs the sub-operations `steps` of an instance, one after the other.
    pub fn steps(
        &mut self,
        path: &mut Path<'_>,
        store: &mut Store,
        instance: usize,
        steps: std::ops::Range<usize>,
        mode: Mode,
    ) -> Result<(), Stop> {
        let program = path.program;
        for step in &program.operations[self.operations[instance]].steps[steps] {
            self.step(path, store, instance, step, mode)?;
        }
        Ok(())
    }

    fn step(
        &mut self,
        path: &mut Path<'_>,
        store: &mut Store,
        instance: usize,
        step: &Step,
        mode: Mode,
    ) -> Result<(), Stop> {
        self.bind(path, store, instance, &step.conditions, mode)?;
        for condition in &step.conditions {
            let literal = self.literal(path, store, instance, condition, mode)?;
            require(path, literal, mode)?;
        }
        for statement in &step.body {
            self.statement(path, store, instance, statement, mode)?;
        }
        Ok(())
    }

    /// Binds the locals that the precondition determines: `x == e` where `e` is known.
    fn bind(
        &mut self,
        path: &mut Path<'_>,
        store: &mut Store,
        instance: usize,
        conditions: &[Condition],
        mode: Mode,
    ) -> Result<(), Stop> {
        let mut progress = true;
        while progress {
            progress = false;
            for condition in conditions {
                let bound = |local: usize| store.locals[instance][local].is_some();
                if let Some((local, from, less)) = binding(condition, &bound) {
                    let known = self.guesses[instance][local];
                    let value = match known {
                        Some(value) => value,
                        None => {
                            let value = self.value(path, store, instance, from, mode)?;
                            Value { offset: value.offset - less, ..value }
                        }
                    };
                    self.guesses[instance][local] = Some(value);
                    store.locals[instance][local] = Some(value);
                    progress = true;
                }
            }
        }
        Ok(())
    }

    fn statement(
        &mut self,
        path: &mut Path<'_>,
        store: &mut Store,
        instance: usize,
        statement: &Statement,
        mode: Mode,
    ) -> Result<(), Stop> {
        match statement {
            Statement::Malloc { local, ty, site } => {
                let node = path.solver.intern(Term::Fresh(instance, *site), Type::Ref(*ty), false);
                store.allocated.push(node);
                store.locals[instance][*local] = Some(Value::of(node));
            }
            Statement::Assign(target, from) => {
                let value = self.value(path, store, instance, from, mode)?;
                self.assign(path, store, instance, target, value, mode)?;
            }
            // Without reuse and store buffers these do nothing.
            Statement::Free(_) | Statement::Fence => {}
        }
        Ok(())
    }

    fn assign(
        &mut self,
        path: &mut Path<'_>,
        store: &mut Store,
        instance: usize,
        target: &Place,
        value: Value,
        mode: Mode,
    ) -> Result<(), Stop> {
        match target {
            Place::Local(local) => store.locals[instance][*local] = Some(value),
            Place::Global(global) => store.write_global(path, *global, value),
            Place::Element(array, index) => {
                let index = self.value(path, store, instance, index, mode)?;
                store.write_element(path, *array, index, value);
            }
            Place::Field(base, field) => {
                let node = self.place(path, store, instance, base, mode)?;
                store.follow(path, node, mode)?;
                store.write_field(path, node, *field, value);
            }
        }
        Ok(())
    }

    /// A condition over the present values.
    pub fn literal(
        &mut self,
        path: &mut Path<'_>,
        store: &mut Store,
        instance: usize,
        condition: &Condition,
        mode: Mode,
    ) -> Result<Literal, Stop> {
        let left = self.value(path, store, instance, &condition.left, mode)?;
        let right = self.value(path, store, instance, &condition.right, mode)?;
        Ok(Literal { left, relation: condition.relation, right })
    }

    fn value(
        &mut self,
        path: &mut Path<'_>,
        store: &mut Store,
        instance: usize,
        expression: &Expression,
        mode: Mode,
    ) -> Result<Value, Stop> {
        Ok(match expression {
            Expression::Number(number) => Value { term: ZERO, offset: *number },
            Expression::Null => Value::of(super::solver::NULL),
            Expression::Id => Value::of(path.solver.intern(Term::Id(instance), Type::Int, false)),
            Expression::Place(place, offset) => {
                let value = self.place(path, store, instance, place, mode)?;
                Value { offset: value.offset + offset, ..value }
            }
            Expression::Sum(left, right) => {
                let left = self.value(path, store, instance, left, mode)?;
                let right = self.value(path, store, instance, right, mode)?;
                path.solver.sum(left, right)
            }
            Expression::Difference(left, right) => {
                let left = self.value(path, store, instance, left, mode)?;
                let right = self.value(path, store, instance, right, mode)?;
                path.solver.difference(left, right)
            }
            Expression::Modulo(inner, divisor) => {
                let inner = self.value(path, store, instance, inner, mode)?;
                path.solver.modulo(inner, *divisor)
            }
        })
    }

    fn place(
        &mut self,
        path: &mut Path<'_>,
        store: &mut Store,
        instance: usize,
        place: &Place,
        mode: Mode,
    ) -> Result<Value, Stop> {
        match place {
            Place::Local(local) => Ok(match store.locals[instance][*local] {
                Some(value) => value,
                None => self.guess(path, store, instance, *local)?,
            }),
            Place::Global(global) => Ok(store.globals[*global]),
            Place::Element(array, index) => {
                let index = self.value(path, store, instance, index, mode)?;
                store.read_element(path, *array, index)
            }
            Place::Field(base, field) => {
                let node = self.place(path, store, instance, base, mode)?;
                store.read_field(path, node, *field, mode)
            }
        }
    }

    /// Anything that others can reach: something of the start, or a node published since.
    fn guess(
        &mut self,
        path: &mut Path<'_>,
        store: &mut Store,
        instance: usize,
        local: usize,
    ) -> Result<Value, Stop> {
        if self.wanted.is_some() && self.guesses[instance][local].is_none() {
            self.wanted = Some(Some(local));
            return Err(Stop::Impossible);
        }
        let value = self.guesses[instance][local].unwrap_or_else(|| {
            let ty = path.program.operations[self.operations[instance]].locals[local].ty;
            guess_one(path, store, Term::Local(instance, local), ty)
        });
        self.guesses[instance][local] = Some(value);
        store.locals[instance][local] = Some(value);
        Ok(value)
    }
}

/// A value of the type that every thread could hold: the unknown `term`, or a new public node.
pub fn guess_one(path: &mut Path<'_>, store: &Store, term: Term, ty: Type) -> Value {
    let published = store.published.iter().copied();
    let fitting: Vec<_> = published.filter(|&node| path.solver.type_of(node) == ty).collect();
    let chosen = if fitting.is_empty() { 0 } else { path.choose(fitting.len() + 1) };
    match chosen {
        0 => Value::of(path.solver.intern(term, ty, true)),
        other => Value::of(fitting[other - 1]),
    }
}

/// If the condition determines a local that is not bound: the local, what it equals, and what is
/// to be subtracted from that.
pub fn binding<'c>(
    condition: &'c Condition,
    bound: &impl Fn(usize) -> bool,
) -> Option<(usize, &'c Expression, i64)> {
    if condition.relation != Relation::Equal {
        return None;
    }
    let free = |expression: &Expression| match expression {
        Expression::Place(Place::Local(local), offset) if !bound(*local) => Some((*local, *offset)),
        _ => None,
    };
    let (left, right) = (&condition.left, &condition.right);
    match (free(left), free(right)) {
        (Some((local, less)), None) if is_bound(right, bound) => Some((local, right, less)),
        (None, Some((local, less))) if is_bound(left, bound) => Some((local, left, less)),
        _ => None,
    }
}

/// Whether an expression reads only bound locals.
fn is_bound(expression: &Expression, bound: &impl Fn(usize) -> bool) -> bool {
    expression.places().into_iter().all(|place| is_bound_place(place, bound))
}

fn is_bound_place(mut place: &Place, bound: &impl Fn(usize) -> bool) -> bool {
    loop {
        match place {
            Place::Local(local) => return bound(*local),
            Place::Global(_) => return true,
            Place::Element(_, index) => return is_bound(index, bound),
            Place::Field(base, _) => place = base,
        }
    }
}
