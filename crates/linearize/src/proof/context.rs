//! What is known about an operation that stands still: its locals, and relations between them and
//! the shared state.
//!
//! A context is taken from a case in which the operation has just run and something that depends
//! on it has followed. It is then weakened until every element of the closure preserves it.

use crate::language::ast::Relation;
use crate::model::{Condition, Expression, LocalKind, Operation, Place, Program, Type};
use crate::symbolic::mentions::{mentioned, note_locals};
use crate::symbolic::path::{Path, Stop};
use crate::symbolic::run::Runner;
use crate::symbolic::solver::{Literal, NULL, Term, Value, ZERO};
use crate::symbolic::store::{Mode, Store, require};

/// What is known about one local variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holding {
    /// Nothing yet: it is guessed when it is first read.
    Unbound,
    /// Something that every thread could reach.
    Public,
    /// Something.
    Unknown,
    /// The unpublished node that this local (the first of those that hold it) refers to.
    Private(usize),
}

/// What is known about an operation that stands still.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// The operation.
    pub operation: usize,
    /// What its locals hold.
    pub locals: Vec<Holding>,
    /// Relations that hold in the shared state.
    pub literals: Vec<Condition>,
    /// Threads on which an operation has begun and not ended, so that they run no other.
    pub busy: Vec<usize>,
}

impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        let key = |condition: &Self| {
            (condition.relation, condition.left.clone(), condition.right.clone())
        };
        key(self) == key(other)
    }
}

impl Eq for Condition {}

impl Context {
    /// What the facts of a path say about an instance in the state of `store`.
    pub fn take(path: &mut Path<'_>, store: &Store, instance: usize, operation: usize) -> Self {
        let locals = holdings(path, store, instance);
        let vocabulary = vocabulary(path.program, operation, &locals);
        let values: Vec<_> = vocabulary
            .iter()
            .map(|(expression, _)| quiet_value(path, store, instance, expression))
            .collect();
        let mut literals = Vec::new();
        for later in 0..vocabulary.len() {
            for earlier in 0..later {
                if let (Some(left), Some(right)) = (values[earlier], values[later])
                    && vocabulary[earlier].1 == vocabulary[later].1
                {
                    let sides = (&vocabulary[earlier].0, &vocabulary[later].0);
                    literals.extend(strongest(path, sides, left, right, vocabulary[later].1));
                }
            }
        }
        Self { operation, locals, literals, busy: Vec::new() }
    }

    /// What several contexts of one operation have in common; `None` if there are none.
    #[must_use]
    pub fn common(contexts: &[Self]) -> Option<Self> {
        let mut common = contexts.first()?.clone();
        for context in &contexts[1..] {
            common.literals.retain(|literal| context.literals.contains(literal));
            common.busy.retain(|thread| context.busy.contains(thread));
            for (mine, theirs) in common.locals.iter_mut().zip(&context.locals) {
                if mine != theirs {
                    *mine = Holding::Unknown;
                }
            }
        }
        Some(common)
    }

    /// Makes `store` a state that fits the context, with instance 0 standing in it.
    pub fn enter(
        &self,
        path: &mut Path<'_>,
        runner: &mut Runner<'_>,
        store: &mut Store,
    ) -> Result<(), Stop> {
        let program = path.program;
        for (local, holding) in self.locals.iter().enumerate() {
            let ty = program.operations[self.operation].locals[local].ty;
            let term = match holding {
                Holding::Unbound => continue,
                Holding::Private(first) => Term::Private(0, *first),
                Holding::Public | Holding::Unknown => Term::Local(0, local),
            };
            let public = *holding == Holding::Public;
            let value = Value::of(path.solver.intern(term, ty, public));
            store.locals[0][local] = Some(value);
            runner.guesses[0][local] = Some(value);
        }
        for literal in &self.literals {
            let literal = runner.literal(path, store, 0, literal, Mode::Assume)?;
            require(path, literal, Mode::Assume)?;
        }
        path.use_claims()
    }

    /// Drops what the facts no longer say in the state of `store`. What depends on something open
    /// is looked at case by case.
    pub fn weaken(
        &mut self,
        path: &mut Path<'_>,
        runner: &mut Runner<'_>,
        store: &mut Store,
    ) -> Result<(), Stop> {
        let mut kept = 0;
        while kept < self.literals.len() {
            if self.still_holds(kept, path, runner, store)? {
                kept += 1;
            } else {
                let lost = self.literals.remove(kept);
                let weaker = weaker(path.program, self.operation, &lost).iter();
                let fresh = weaker.map(|&relation| Condition { relation, ..lost.clone() });
                // Where the lost one held, these did too; where it fails, they are looked at next.
                self.literals.extend(fresh);
                self.literals.extend(plainly(&lost));
            }
        }
        Ok(())
    }

    fn still_holds(
        &self,
        number: usize,
        path: &mut Path<'_>,
        runner: &mut Runner<'_>,
        store: &mut Store,
    ) -> Result<bool, Stop> {
        let literal = &self.literals[number];
        let values = (
            quiet_value(path, store, 0, &literal.left),
            quiet_value(path, store, 0, &literal.right),
        );
        if let (Some(left), Some(right)) = values {
            return Ok(path.entails(Literal { left, relation: literal.relation, right }));
        }
        match runner.literal(path, store, 0, literal, Mode::Must) {
            Ok(literal) => path.decide(literal),
            Err(Stop::Impossible) => Ok(false),
            Err(stop) => Err(stop),
        }
    }

    /// The same context with locals that later sub-operations may assign no longer unbound.
    #[must_use]
    pub fn after(&self, program: &Program, steps: std::ops::Range<usize>) -> Self {
        let mut context = self.clone();
        for step in &program.operations[self.operation].steps[steps] {
            for local in assigned(step) {
                context.locals[local] = Holding::Unknown;
            }
            for local in mentioned(step) {
                if context.locals[local] == Holding::Unbound {
                    context.locals[local] = Holding::Unknown;
                }
            }
        }
        context
    }
}

/// What an exact difference says about the order of the two.
fn plainly(literal: &Condition) -> Option<Condition> {
    match (&literal.relation, &literal.right) {
        (Relation::Equal, Expression::Place(place, more)) if *more != 0 => {
            let relation = if *more > 0 { Relation::Greater } else { Relation::Less };
            let right = Expression::Place(place.clone(), 0);
            Some(Condition { left: literal.left.clone(), relation, right })
        }
        _ => None,
    }
}

/// What may still hold when a literal no longer does.
fn weaker(program: &Program, operation: usize, literal: &Condition) -> &'static [Relation] {
    let locals = &program.operations[operation].locals;
    let is_int = match &literal.left {
        Expression::Place(place, _) => program.type_of(place, locals) == Type::Int,
        Expression::Null => false,
        _ => true,
    };
    match literal.relation {
        Relation::Equal if is_int => &[Relation::LessEqual, Relation::GreaterEqual],
        Relation::Less => &[Relation::LessEqual, Relation::NotEqual],
        Relation::Greater => &[Relation::GreaterEqual, Relation::NotEqual],
        _ => &[],
    }
}

/// The locals that a sub-operation assigns.
fn assigned(step: &crate::model::Step) -> impl Iterator<Item = usize> + '_ {
    use crate::model::Statement;
    step.body.iter().filter_map(|statement| match statement {
        Statement::Malloc { local, .. } | Statement::Assign(Place::Local(local), _) => Some(*local),
        Statement::Assign(..) | Statement::Free(_) | Statement::Fence => None,
    })
}

fn holdings(path: &Path<'_>, store: &Store, instance: usize) -> Vec<Holding> {
    let locals = &store.locals[instance];
    let root = |value: Value| path.solver.root(value.term);
    let mut holdings = Vec::new();
    for value in locals {
        holdings.push(match *value {
            None => Holding::Unbound,
            Some(value) if path.solver.is_int(value.term) => Holding::Unknown,
            Some(value) => match path.solver.term(root(value)) {
                Term::Fresh(..) if store.published.contains(&root(value)) => Holding::Public,
                Term::Fresh(..) => {
                    let same = |other: &Option<Value>| {
                        other.is_some_and(|other| {
                            !path.solver.is_int(other.term) && root(other) == root(value)
                        })
                    };
                    Holding::Private(locals.iter().position(same).unwrap_or(holdings.len()))
                }
                _ if path.solver.class_is_public(root(value)) => Holding::Public,
                _ => Holding::Unknown,
            },
        });
    }
    holdings
}

/// The expressions that a context may relate, with their types.
fn vocabulary(program: &Program, operation: usize, locals: &[Holding]) -> Vec<(Expression, Type)> {
    let mut places: Vec<(Place, Type)> = Vec::new();
    let mut indices = vec![Expression::Id];
    for (number, local) in program.operations[operation].locals.iter().enumerate() {
        let named = matches!(local.kind, LocalKind::Parameter | LocalKind::Declared);
        if named && locals[number] != Holding::Unbound {
            places.push((Place::Local(number), local.ty));
            if local.ty == Type::Int {
                indices.push(Expression::Place(Place::Local(number), 0));
            }
        }
    }
    let scalars = program.globals.iter().enumerate().filter(|(_, global)| !global.array);
    places.extend(scalars.map(|(number, global)| (Place::Global(number), global.ty)));
    for (array, global) in program.globals.iter().enumerate().filter(|(_, global)| global.array) {
        let element = |index: &Expression| Place::Element(array, Box::new(index.clone()));
        places.extend(indices.iter().map(|index| (element(index), global.ty)));
    }
    for (place, ty) in places.clone() {
        if let Type::Ref(structure) = ty {
            for &field in &program.structs[structure].fields {
                let inner = Place::Field(Box::new(place.clone()), field);
                places.push((inner, program.fields[field].ty));
            }
        }
    }
    let mut all: Vec<_> =
        places.into_iter().map(|(place, ty)| (Expression::Place(place, 0), ty)).collect();
    all.extend(computed(&program.operations[operation], locals));
    all.extend(program.numbers().into_iter().map(|number| (Expression::Number(number), Type::Int)));
    all.push((Expression::Id, Type::Int));
    all.extend((0..program.structs.len()).map(|ty| (Expression::Null, Type::Ref(ty))));
    all
}

/// What the preconditions of an operation compute from what its locals hold already.
fn computed(operation: &Operation, locals: &[Holding]) -> Vec<(Expression, Type)> {
    let mut found: Vec<(Expression, Type)> = Vec::new();
    for condition in operation.steps.iter().flat_map(|step| &step.conditions) {
        for side in [&condition.left, &condition.right] {
            let plain = matches!(side, Expression::Place(..)) || side.places().is_empty();
            let mut mentioned = Vec::new();
            note_locals(side, &mut mentioned);
            let bound = mentioned.iter().all(|&local| locals[local] != Holding::Unbound);
            if !plain && bound && !found.iter().any(|(known, _)| known == side) {
                found.push((side.clone(), Type::Int));
            }
        }
    }
    found
}

/// How far apart numbers may be for a context to say how far.
const FARTHEST: i64 = 4;

/// What is known between two values, at its strongest.
fn strongest(
    path: &Path<'_>,
    (left_side, right_side): (&Expression, &Expression),
    left: Value,
    right: Value,
    ty: Type,
) -> Option<Condition> {
    let ordered = [
        Relation::Equal,
        Relation::Less,
        Relation::Greater,
        Relation::NotEqual,
        Relation::LessEqual,
        Relation::GreaterEqual,
    ];
    let plain = [Relation::Equal, Relation::NotEqual];
    let relations: &[Relation] = if ty == Type::Int { &ordered } else { &plain };
    let constant = |side: &Expression| side.places().is_empty();
    if constant(left_side) && constant(right_side) {
        return None;
    }
    let holds = |relation| path.solver.known(Literal { left, relation, right }) == Some(true);
    if let (Expression::Place(..), Expression::Place(place, _)) = (left_side, right_side)
        && let Some(more) = path.solver.exact_difference(left, right)
        && more != 0
        && more.abs() <= FARTHEST
    {
        let right = Expression::Place(place.clone(), more);
        return Some(Condition { left: left_side.clone(), relation: Relation::Equal, right });
    }
    let relation = relations.iter().copied().find(|&relation| holds(relation))?;
    Some(Condition { left: left_side.clone(), relation, right: right_side.clone() })
}

/// The value of an expression of an instance, if it does not depend on anything open.
fn quiet_value(
    path: &mut Path<'_>,
    store: &Store,
    instance: usize,
    expression: &Expression,
) -> Option<Value> {
    let mut quiet = |expression: &Expression| quiet_value(path, store, instance, expression);
    match expression {
        Expression::Number(number) => Some(Value { term: ZERO, offset: *number }),
        Expression::Null => Some(Value::of(NULL)),
        Expression::Id => Some(Value::of(path.solver.intern(Term::Id(instance), Type::Int, false))),
        Expression::Place(place, offset) => {
            let value = quiet_place(path, store, instance, place)?;
            Some(Value { offset: value.offset + offset, ..value })
        }
        Expression::Sum(left, right) => {
            let (left, right) = (quiet(left)?, quiet(right)?);
            Some(path.solver.sum(left, right))
        }
        Expression::Difference(left, right) => {
            let (left, right) = (quiet(left)?, quiet(right)?);
            Some(path.solver.difference(left, right))
        }
        Expression::Modulo(inner, divisor) => {
            let inner = quiet(inner)?;
            Some(path.solver.modulo(inner, *divisor))
        }
    }
}

fn quiet_place(
    path: &mut Path<'_>,
    store: &Store,
    instance: usize,
    place: &Place,
) -> Option<Value> {
    match place {
        Place::Local(local) => store.locals[instance][*local],
        Place::Global(global) => Some(store.globals[*global]),
        Place::Element(array, index) => {
            let index = quiet_value(path, store, instance, index)?;
            let writes = store.elements.iter().rev().filter(|write| write.0 == *array);
            let cells: Vec<_> = writes.map(|write| (write.1, write.2)).collect();
            match quiet_lookup(path, &cells, index)? {
                Some(value) => Some(value),
                None => store.read_element(path, *array, index).ok(),
            }
        }
        Place::Field(base, field) => {
            let node = quiet_place(path, store, instance, base)?;
            let there =
                Literal { left: node, relation: Relation::NotEqual, right: Value::of(NULL) };
            if !path.entails(there) {
                return None;
            }
            let writes = store.fields.iter().rev().filter(|write| write.0 == *field);
            let cells: Vec<_> = writes.map(|write| (write.1, write.2)).collect();
            match quiet_lookup(path, &cells, node)? {
                Some(value) => Some(value),
                None => store.read_field(path, node, *field, Mode::Assume).ok(),
            }
        }
    }
}

/// The newest write to a cell: `None` if that is open, `Some(None)` if there is none.
fn quiet_lookup(
    path: &mut Path<'_>,
    writes: &[(Value, Value)],
    cell: Value,
) -> Option<Option<Value>> {
    for &(at, value) in writes {
        let equal = Literal::equal(at, cell);
        if path.entails(equal) {
            // As a fact, so that reading it again asks nothing.
            path.solver.assume(equal).ok()?;
            return Some(Some(value));
        }
        if !path.entails(equal.negated()) {
            return None;
        }
        path.solver.assume(equal.negated()).ok()?;
    }
    Some(None)
}
