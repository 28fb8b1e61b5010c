//! The stated invariants: what they say about a state, and whether they may be believed.
//!
//! A claim speaks of all nodes that threads can reach and of all numbers. [`Claims::apply`] draws
//! what it says about the nodes of a path. [`preserved`] checks that a run of an operation's first
//! sub-operations, from a state where all claims hold, leads to a state where this one does.

use super::owned::Owned;
use super::path::{Path, Stop, walk};
use super::run::{Runner, guess_one};
use super::solver::{Conflict, Literal, NULL, Solver, Term, TermId, Value, ZERO};
use super::store::{Mode, Store, require, sizes};
use crate::language::ast::Relation;
use crate::model::{Condition, Expression, Invariant, Place, Program, Statement, Step, Type};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

/// What may be spent on a proof. Copies draw on the same account, so that no specification keeps the
/// proof busy for ever; once it is used up, every further question counts as not decided.
#[derive(Clone, Debug)]
pub struct Effort {
    left: Rc<Cell<usize>>,
    until: Option<Instant>,
}

impl Default for Effort {
    fn default() -> Self {
        Self::questions(MOST_QUESTIONS)
    }
}

/// Cases looked at, and conclusions tried in them.
const MOST_QUESTIONS: usize = 8_000_000;

impl Effort {
    /// As many questions, however long they take.
    #[must_use]
    pub fn questions(questions: usize) -> Self {
        Self { left: Rc::new(Cell::new(questions)), until: None }
    }

    /// Until then.
    #[must_use]
    pub fn until(instant: Instant) -> Self {
        Self { until: Some(instant), ..Self::default() }
    }

    /// Whether another question may be asked; it is then paid for.
    #[must_use]
    pub fn spend(&self) -> bool {
        let left = self.left.get();
        let late = || self.until.is_some_and(|until| Instant::now() >= until);
        if left == 0 || late() {
            return false;
        }
        self.left.set(left - 1);
        true
    }

    /// Whether all is used up.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.left.get() == 0 || self.until.is_some_and(|until| Instant::now() >= until)
    }
}

/// The claims that are believed.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    /// Which of [`Program::invariants`].
    pub believed: Vec<usize>,
    /// Fields that only the maker of a node reads, and of which no believed claim speaks.
    pub owned: Owned,
    /// What may still be spent on looking at them.
    pub effort: Effort,
}

impl Claims {
    /// Draws what the claims say about the terms that code touched.
    pub fn apply(&self, program: &Program, solver: &mut Solver) -> Result<(), Conflict> {
        // Drawing conclusions is the dear part of a question, so it counts as one.
        let _ = self.effort.spend();
        solver.touching = false;
        let result = self.saturate(program, solver);
        solver.touching = true;
        result
    }

    fn saturate(&self, program: &Program, solver: &mut Solver) -> Result<(), Conflict> {
        solver.close()?;
        loop {
            let before = solver.version();
            for &number in &self.believed {
                let invariant = &program.invariants[number];
                let candidates: Vec<_> = (0..invariant.variables.len())
                    .map(|variable| speaking(solver, invariant, variable))
                    .collect();
                each_tuple(&candidates, |tuple| instance(program, solver, invariant, tuple))?;
            }
            if solver.version() == before {
                return Ok(());
            }
        }
    }
}

/// The candidates for which the premise of a claim speaks of cells that have a term.
fn speaking(solver: &Solver, invariant: &Invariant, variable: usize) -> Vec<Value> {
    let sides = invariant.given.iter().flat_map(|given| [&given.left, &given.right]);
    let fields: Vec<usize> = sides
        .filter_map(|side| match side {
            Expression::Place(Place::Field(base, field), _) => {
                matches!(**base, Place::Local(of) if of == variable).then_some(*field)
            }
            _ => None,
        })
        .collect();
    let has_all =
        |value: &Value| fields.iter().all(|&field| solver.find_field(field, value.term).is_some());
    let mut found = candidates(solver, invariant.variables[variable].ty);
    found.retain(has_all);
    found
}

/// Values that a variable of a claim may stand for.
fn candidates(solver: &Solver, ty: Type) -> Vec<Value> {
    let touched = (0..solver.len()).filter(|&id| solver.is_touched(id));
    if ty == Type::Int {
        let indices = touched.clone().filter_map(|id| match solver.term(id) {
            Term::Element(_, term, offset) => Some(Value { term, offset }),
            _ => None,
        });
        let mut values: Vec<Value> = indices.collect();
        values.extend(touched.filter(|&id| solver.is_int(id)).map(Value::of));
        values.dedup();
        return values;
    }
    let mut roots: Vec<TermId> = touched
        .filter(|&id| solver.type_of(id) == ty)
        .map(|id| solver.root(id))
        .filter(|&root| root != NULL && solver.class_is_public(root))
        .collect();
    roots.sort_unstable();
    roots.dedup();
    roots.into_iter().map(Value::of).collect()
}

/// Calls `visit` with every choice of one candidate each.
fn each_tuple(
    candidates: &[Vec<Value>],
    mut visit: impl FnMut(&[Value]) -> Result<(), Conflict>,
) -> Result<(), Conflict> {
    if candidates.iter().any(Vec::is_empty) {
        return Ok(());
    }
    let mut at = vec![0; candidates.len()];
    loop {
        let tuple: Vec<_> = at.iter().zip(candidates).map(|(&at, from)| from[at]).collect();
        visit(&tuple)?;
        let Some(position) =
            (0..at.len()).rev().find(|&place| at[place] + 1 < candidates[place].len())
        else {
            return Ok(());
        };
        at[position] += 1;
        at[position + 1..].fill(0);
    }
}

/// Draws what one instance of a claim says: unit propagation on "not given, or then". Where the
/// premise speaks of a cell that has no term, nothing is known of it and nothing needs to be.
fn instance(
    program: &Program,
    solver: &mut Solver,
    invariant: &Invariant,
    tuple: &[Value],
) -> Result<(), Conflict> {
    let mut open = None;
    for (value, variable) in tuple.iter().zip(&invariant.variables) {
        if variable.ty != Type::Int && !note(solver, exists(*value), &mut open) {
            return Ok(());
        }
    }
    for condition in &invariant.given {
        let mut start = Start { program, solver, tuple, reads: Vec::new(), create: false };
        let Some(literal) = start.literal(condition) else { return Ok(()) };
        let reads = start.reads;
        let holds = |literal: Literal| note(solver, literal, &mut open);
        if !reads.into_iter().map(exists).chain([literal]).all(holds) {
            return Ok(());
        }
    }
    for condition in &invariant.then {
        let create = open.is_none();
        let mut start = Start { program, solver, tuple, reads: Vec::new(), create };
        let Some(literal) = start.literal(condition) else { continue };
        let reads = start.reads;
        for conclusion in reads.into_iter().map(exists).chain([literal]) {
            match open {
                None => solver.assume(conclusion)?,
                Some(Open::One(given)) if solver.known(conclusion) == Some(false) => {
                    return solver.assume(given.negated());
                }
                Some(_) => {}
            }
        }
    }
    Ok(())
}

/// What of the premise is still open.
#[derive(Clone, Copy)]
enum Open {
    One(Literal),
    Several,
}

/// Notes a premise; `false` if it is known to fail, so that the claim says nothing.
fn note(solver: &Solver, literal: Literal, open: &mut Option<Open>) -> bool {
    match solver.known(literal) {
        Some(known) => known,
        None => {
            *open = Some(match open {
                None => Open::One(literal),
                Some(_) => Open::Several,
            });
            true
        }
    }
}

fn exists(node: Value) -> Literal {
    Literal { left: node, relation: Relation::NotEqual, right: Value::of(NULL) }
}

/// Values in the state at the start, for one choice of what a claim speaks of.
struct Start<'s> {
    program: &'s Program,
    solver: &'s mut Solver,
    tuple: &'s [Value],
    /// The nodes looked into.
    reads: Vec<Value>,
    /// Whether cells that have no term get one.
    create: bool,
}

impl Start<'_> {
    fn literal(&mut self, condition: &Condition) -> Option<Literal> {
        let left = self.value(&condition.left)?;
        let right = self.value(&condition.right)?;
        Some(Literal { left, relation: condition.relation, right })
    }

    fn value(&mut self, expression: &Expression) -> Option<Value> {
        Some(match expression {
            Expression::Number(number) => Value { term: ZERO, offset: *number },
            Expression::Null | Expression::Id => Value::of(NULL),
            Expression::Place(place, offset) => {
                let value = self.place(place)?;
                Value { offset: value.offset + offset, ..value }
            }
            Expression::Sum(left, right) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                self.solver.sum(left, right)
            }
            Expression::Difference(left, right) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                self.solver.difference(left, right)
            }
            Expression::Modulo(inner, divisor) => {
                let inner = self.value(inner)?;
                self.solver.modulo(inner, *divisor)
            }
        })
    }

    fn place(&mut self, place: &Place) -> Option<Value> {
        match place {
            Place::Local(variable) => Some(self.tuple[*variable]),
            Place::Global(global) => {
                let ty = self.program.globals[*global].ty;
                Some(Value::of(self.solver.intern(Term::Global(*global), ty, true)))
            }
            Place::Element(array, index) => {
                let index = self.value(index)?;
                let term = Term::Element(*array, index.term, index.offset);
                if !self.create {
                    return self.solver.find(term).map(Value::of);
                }
                let ty = self.program.globals[*array].ty;
                Some(Value::of(self.solver.intern(term, ty, true)))
            }
            Place::Field(base, field) => {
                let node = self.place(base)?;
                self.reads.push(node);
                if !self.create {
                    return self.solver.find_field(*field, node.term).map(Value::of);
                }
                let ty = self.program.fields[*field].ty;
                Some(Value::of(self.solver.field(*field, node.term, ty)))
            }
        }
    }
}

/// Whether the first `steps` sub-operations of an operation, run at once in a state where `claims`
/// hold, lead to states where the invariant holds.
#[must_use]
pub fn preserved(
    program: &Program,
    claims: &Claims,
    invariant: &Invariant,
    operation: usize,
    steps: usize,
) -> bool {
    if !concerns(program, &program.operations[operation].steps[..steps], invariant) {
        return true;
    }
    let operations = [operation];
    let mut holds = true;
    let walked = walk(program, claims, |path| {
        let mut store = Store::start(path, &sizes(program, &operations));
        Runner::new(program, &operations).steps(path, &mut store, 0, 0..steps, Mode::Assume)?;
        path.use_claims()?;
        holds = match holds_in(path, &store, invariant) {
            Err(Stop::Impossible) => false,
            other => {
                other?;
                true
            }
        };
        Ok(holds)
    });
    holds && walked.is_ok()
}

/// Whether the sub-operations can touch what the invariant speaks of.
fn concerns(program: &Program, steps: &[Step], invariant: &Invariant) -> bool {
    let mut cells = Vec::new();
    for condition in invariant.given.iter().chain(&invariant.then) {
        for side in [&condition.left, &condition.right] {
            note_cells(side, &mut cells);
        }
    }
    steps.iter().flat_map(|step| &step.body).any(|statement| match statement {
        Statement::Malloc { ty, .. } => {
            // A new node comes under the claim once it is published.
            let speaks = |ty: &Type| invariant.variables.iter().any(|variable| variable.ty == *ty);
            speaks(&Type::Ref(*ty))
                || program.structs[*ty]
                    .fields
                    .iter()
                    .any(|&field| cells.contains(&Touched::Field(field)))
        }
        Statement::Assign(Place::Local(_), _) | Statement::Free(_) | Statement::Fence => false,
        Statement::Assign(Place::Global(global) | Place::Element(global, _), _) => {
            cells.contains(&Touched::Global(*global))
        }
        Statement::Assign(Place::Field(_, field), _) => cells.contains(&Touched::Field(*field)),
    })
}

#[derive(PartialEq, Eq)]
enum Touched {
    Global(usize),
    Field(usize),
}

fn note_cells(expression: &Expression, cells: &mut Vec<Touched>) {
    expression.places().into_iter().for_each(|place| note_place(place, cells));
}

fn note_place(place: &Place, cells: &mut Vec<Touched>) {
    let mut place = place;
    loop {
        match place {
            Place::Local(_) => return,
            Place::Global(global) => return cells.push(Touched::Global(*global)),
            Place::Element(array, index) => {
                cells.push(Touched::Global(*array));
                return note_cells(index, cells);
            }
            Place::Field(base, field) => {
                cells.push(Touched::Field(*field));
                place = base;
            }
        }
    }
}

/// The number of the pretended instance whose locals are the variables of an invariant.
const SPEAKER: usize = usize::MAX;

/// Insists on the invariant, for any nodes and numbers, in the state of `store`.
fn holds_in(path: &mut Path<'_>, store: &Store, invariant: &Invariant) -> Result<(), Stop> {
    let mut tuple = Vec::new();
    for (number, variable) in invariant.variables.iter().enumerate() {
        let value = guess_one(path, store, Term::Local(SPEAKER, number), variable.ty);
        if variable.ty != Type::Int {
            require(path, exists(value), Mode::Assume)?;
        }
        tuple.push(value);
    }
    for condition in &invariant.given {
        let literal = end_literal(path, store, condition, &tuple, Mode::Assume)?;
        require(path, literal, Mode::Assume)?;
    }
    path.use_claims()?;
    for condition in &invariant.then {
        let literal = end_literal(path, store, condition, &tuple, Mode::Must)?;
        require(path, literal, Mode::Must)?;
    }
    Ok(())
}

fn end_literal(
    path: &mut Path<'_>,
    store: &Store,
    condition: &Condition,
    tuple: &[Value],
    mode: Mode,
) -> Result<Literal, Stop> {
    let left = end_value(path, store, &condition.left, tuple, mode)?;
    let right = end_value(path, store, &condition.right, tuple, mode)?;
    Ok(Literal { left, relation: condition.relation, right })
}

fn end_value(
    path: &mut Path<'_>,
    store: &Store,
    expression: &Expression,
    tuple: &[Value],
    mode: Mode,
) -> Result<Value, Stop> {
    Ok(match expression {
        Expression::Number(number) => Value { term: ZERO, offset: *number },
        Expression::Null | Expression::Id => Value::of(NULL),
        Expression::Place(place, offset) => {
            let value = end_place(path, store, place, tuple, mode)?;
            Value { offset: value.offset + offset, ..value }
        }
        Expression::Sum(left, right) => {
            let left = end_value(path, store, left, tuple, mode)?;
            let right = end_value(path, store, right, tuple, mode)?;
            path.solver.sum(left, right)
        }
        Expression::Difference(left, right) => {
            let left = end_value(path, store, left, tuple, mode)?;
            let right = end_value(path, store, right, tuple, mode)?;
            path.solver.difference(left, right)
        }
        Expression::Modulo(inner, divisor) => {
            let inner = end_value(path, store, inner, tuple, mode)?;
            path.solver.modulo(inner, *divisor)
        }
    })
}

fn end_place(
    path: &mut Path<'_>,
    store: &Store,
    place: &Place,
    tuple: &[Value],
    mode: Mode,
) -> Result<Value, Stop> {
    match place {
        Place::Local(variable) => Ok(tuple[*variable]),
        Place::Global(global) => Ok(store.globals[*global]),
        Place::Element(array, index) => {
            let index = end_value(path, store, index, tuple, mode)?;
            store.read_element(path, *array, index)
        }
        Place::Field(base, field) => {
            let node = end_place(path, store, base, tuple, mode)?;
            store.read_field(path, node, *field, mode)
        }
    }
}
