//! The memory on a path: what was written, over what was there at first.
//!
//! Writes are kept in order. Reading a cell looks at them from the last to the first and asks at
//! each whether it is the same cell; only then do two references get compared.

use super::path::{Path, Stop};
use super::solver::{Literal, NULL, Term, TermId, Value, ZERO};
use crate::language::ast::Relation;
use crate::model::{Program, Type};

/// What is done about a condition that the facts leave open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It is a fact: the sub-operation did happen.
    Assume,
    /// It must hold: where it may fail, the sub-operation is impossible.
    Must,
}

/// Memory and the local variables of the instances that run.
#[derive(Clone, Debug)]
pub struct Store {
    /// Shared variables.
    pub globals: Vec<Value>,
    /// Writes to fields: field, node, value.
    pub fields: Vec<(usize, Value, Value)>,
    /// Writes to array elements: array, index, value.
    pub elements: Vec<(usize, Value, Value)>,
    /// Nodes allocated on the way.
    pub allocated: Vec<TermId>,
    /// Those of them that others can reach.
    pub published: Vec<TermId>,
    /// Local variables by instance; `None` is not bound yet.
    pub locals: Vec<Vec<Option<Value>>>,
}

impl Store {
    /// The state at the start: everything is unknown. `sizes` are the numbers of local variables
    /// of the instances.
    pub fn start(path: &mut Path<'_>, sizes: &[usize]) -> Self {
        let types: Vec<_> = path.program.globals.iter().map(|global| global.ty).collect();
        let terms = types.into_iter().enumerate();
        let globals =
            terms.map(|(at, ty)| Value::of(path.solver.intern(Term::Global(at), ty, true)));
        Self {
            globals: globals.collect(),
            fields: Vec::new(),
            elements: Vec::new(),
            allocated: Vec::new(),
            published: Vec::new(),
            locals: sizes.iter().map(|&size| vec![None; size]).collect(),
        }
    }

    /// What a field of `node` holds.
    pub fn read_field(
        &self,
        path: &mut Path<'_>,
        node: Value,
        field: usize,
        mode: Mode,
    ) -> Result<Value, Stop> {
        self.follow(path, node, mode)?;
        for &(written, at, value) in self.fields.iter().rev() {
            if written == field && path.decide(Literal::equal(at, node))? {
                return Ok(value);
            }
        }
        Ok(initial_field(path, node, field))
    }

    /// What an element of an array holds.
    pub fn read_element(
        &self,
        path: &mut Path<'_>,
        array: usize,
        index: Value,
    ) -> Result<Value, Stop> {
        for &(written, at, value) in self.elements.iter().rev() {
            if written == array && path.decide(Literal::equal(at, index))? {
                return Ok(value);
            }
        }
        Ok(initial_element(path, array, index))
    }

    /// Makes sure that there is a node to look into.
    pub fn follow(&self, path: &mut Path<'_>, node: Value, mode: Mode) -> Result<(), Stop> {
        let fresh = matches!(path.solver.term(path.solver.root(node.term)), Term::Fresh(..));
        if fresh && !self.allocated.contains(&path.solver.root(node.term)) {
            // The other order: what it would look into is not there yet.
            return Err(if mode == Mode::Must { Stop::Impossible } else { Stop::Infeasible });
        }
        let there = Literal { left: node, relation: Relation::NotEqual, right: Value::of(NULL) };
        require(path, there, mode)
    }

    /// Writes a field of `node`, which was followed before.
    pub fn write_field(&mut self, path: &Path<'_>, node: Value, field: usize, value: Value) {
        self.fields.push((field, node, value));
        if !self.is_private(path, node.term) {
            self.publish(path, value);
        }
    }

    /// Writes an element of an array.
    pub fn write_element(&mut self, path: &Path<'_>, array: usize, index: Value, value: Value) {
        self.elements.push((array, index, value));
        self.publish(path, value);
    }

    /// Writes a shared variable.
    pub fn write_global(&mut self, path: &Path<'_>, global: usize, value: Value) {
        self.globals[global] = value;
        self.publish(path, value);
    }

    fn is_private(&self, path: &Path<'_>, node: TermId) -> bool {
        let root = path.solver.root(node);
        match path.solver.term(root) {
            Term::Fresh(..) => !self.published.contains(&root),
            Term::Private(..) => true,
            _ => false,
        }
    }

    /// Others can reach `value` now, and all it leads to.
    fn publish(&mut self, path: &Path<'_>, value: Value) {
        let mut work = vec![value];
        while let Some(value) = work.pop() {
            if path.solver.is_int(value.term) {
                continue;
            }
            let root = path.solver.root(value.term);
            let fresh = matches!(path.solver.term(root), Term::Fresh(..));
            if fresh && !self.published.contains(&root) {
                self.published.push(root);
                let inside = self.fields.iter();
                work.extend(
                    inside.filter(|(_, at, _)| path.solver.root(at.term) == root).map(|w| w.2),
                );
            }
        }
    }
}

/// What a field of `node` held at the start; a new node holds zeros and NULLs.
fn initial_field(path: &mut Path<'_>, node: Value, field: usize) -> Value {
    let ty = path.program.fields[field].ty;
    let root = path.solver.root(node.term);
    if matches!(path.solver.term(root), Term::Fresh(..)) {
        return default_of(ty);
    }
    Value::of(path.solver.field(field, node.term, ty))
}

fn initial_element(path: &mut Path<'_>, array: usize, index: Value) -> Value {
    let ty = path.program.globals[array].ty;
    let term = Term::Element(array, index.term, index.offset);
    Value::of(path.solver.intern(term, ty, true))
}

/// The value of memory that was never written.
#[must_use]
pub fn default_of(ty: Type) -> Value {
    Value::of(if ty == Type::Int { ZERO } else { NULL })
}

/// Makes a condition hold, by assuming it or by insisting on it.
pub fn require(path: &mut Path<'_>, literal: Literal, mode: Mode) -> Result<(), Stop> {
    match mode {
        Mode::Assume => Ok(path.solver.assume(literal)?),
        Mode::Must if path.decide(literal)? => Ok(()),
        Mode::Must => {
            path.use_claims()?;
            Err(Stop::Impossible)
        }
    }
}

impl Store {
    /// Whether the two memories, reached from one start, are equal in every shared cell but those of
    /// `dead`, fields of nodes that nobody reads any more.
    pub fn same_memory(
        &self,
        other: &Self,
        path: &mut Path<'_>,
        dead: &[(usize, Value)],
    ) -> Result<bool, Stop> {
        for (&mine, &theirs) in self.globals.iter().zip(&other.globals) {
            if !path.decide(Literal::equal(mine, theirs))? {
                return Ok(false);
            }
        }
        Ok(self.same_fields(other, path, dead)? && self.same_elements(other, path)?)
    }

    fn same_fields(
        &self,
        other: &Self,
        path: &mut Path<'_>,
        dead: &[(usize, Value)],
    ) -> Result<bool, Stop> {
        for &(field, node, _) in self.fields.iter().chain(&other.fields) {
            if is_dead(path, (field, node), dead)? {
                continue;
            }
            let mine = self.read_field(path, node, field, Mode::Assume)?;
            let theirs = other.read_field(path, node, field, Mode::Assume)?;
            if !path.decide(Literal::equal(mine, theirs))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn same_elements(&self, other: &Self, path: &mut Path<'_>) -> Result<bool, Stop> {
        for &(array, index, _) in self.elements.iter().chain(&other.elements) {
            let mine = self.read_element(path, array, index)?;
            let theirs = other.read_element(path, array, index)?;
            if !path.decide(Literal::equal(mine, theirs))? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn is_dead(
    path: &mut Path<'_>,
    (field, node): (usize, Value),
    dead: &[(usize, Value)],
) -> Result<bool, Stop> {
    for &(_, other) in dead.iter().filter(|cell| cell.0 == field) {
        if path.decide(Literal::equal(node, other))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The numbers of local variables of some operations, for [`Store::start`].
#[must_use]
pub fn sizes(program: &Program, operations: &[usize]) -> Vec<usize> {
    operations.iter().map(|&operation| program.operations[operation].locals.len()).collect()
}
