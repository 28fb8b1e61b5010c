//! A checked specification: names are numbers, types fit. Everything after the checker works on
//! this and never fails for a reason of the text.

pub use crate::language::ast::Mark;
use crate::language::ast::Relation;
use spec::Span;

/// A whole specification.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Struct types.
    pub structs: Vec<Struct>,
    /// The fields of all structs.
    pub fields: Vec<Field>,
    /// Shared variables.
    pub globals: Vec<Global>,
    /// The initial state: a sequence that runs once on a state of zeros and NULLs.
    pub init: Code,
    /// Stated invariants; believed only after they are checked.
    pub invariants: Vec<Invariant>,
    /// Operations, one entry a role.
    pub operations: Vec<Operation>,
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A whole number.
    Int,
    /// A reference to a struct, or NULL.
    Ref(usize),
}

/// A struct type.
#[derive(Clone, Debug)]
pub struct Struct {
    /// Its name.
    pub name: String,
    /// Its fields, as indices of [`Program::fields`].
    pub fields: Vec<usize>,
}

/// A field of a struct.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub ty: Type,
    /// Which struct it belongs to.
    pub owner: usize,
}

/// A shared variable or array.
#[derive(Clone, Debug)]
pub struct Global {
    /// Its name.
    pub name: String,
    /// What it, or each element, holds.
    pub ty: Type,
    /// Whether it is an array, without bounds, of zeros or NULLs at first.
    pub array: bool,
}

/// Local variables and the statements of a straight piece of code.
#[derive(Clone, Debug, Default)]
pub struct Code {
    /// Local variables.
    pub locals: Vec<Local>,
    /// Statements.
    pub body: Vec<Statement>,
}

/// A local variable.
#[derive(Clone, Debug)]
pub struct Local {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub ty: Type,
    /// How it comes into being.
    pub kind: LocalKind,
}

/// How a local variable comes into being.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalKind {
    /// An argument.
    Parameter,
    /// Declared; if it is read before it is written, it holds whatever lets the operation go on.
    Declared,
    /// What a `READ` saw.
    Seen,
    /// What a `return` gave.
    Result,
}

/// An operation, or one role of it.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Its name, shared by all its roles.
    pub name: String,
    /// Its role, if it has several.
    pub role: Option<String>,
    /// Arguments first, then locals, then what `READ` and `return` leave.
    pub locals: Vec<Local>,
    /// Sub-operations in program order; at least one.
    pub steps: Vec<Step>,
}

impl Operation {
    /// Name and role as written.
    #[must_use]
    pub fn title(&self) -> String {
        match &self.role {
            Some(role) => format!("{}/{role}", self.name),
            None => self.name.clone(),
        }
    }

    /// The local variables of a kind.
    pub fn locals_of(&self, kind: LocalKind) -> impl Iterator<Item = usize> + '_ {
        (0..self.locals.len()).filter(move |&local| self.locals[local].kind == kind)
    }
}

/// An atomic sub-operation.
#[derive(Clone, Debug)]
pub struct Step {
    /// A letter for tables and timelines, unique in the specification.
    pub label: String,
    /// Which thread executes it.
    pub mark: Mark,
    /// Its precondition.
    pub conditions: Vec<Condition>,
    /// What it does.
    pub body: Vec<Statement>,
    /// The text of it, on one line.
    pub text: String,
    /// Where it is written.
    pub span: Span,
}

/// A comparison of two values of one type.
#[derive(Clone, Debug)]
pub struct Condition {
    /// Left side.
    pub left: Expression,
    /// The comparison.
    pub relation: Relation,
    /// Right side.
    pub right: Expression,
}

/// A statement.
#[derive(Clone, Debug)]
pub enum Statement {
    /// A new node, all zeros and NULLs, into a local variable. `site` numbers the allocations of
    /// an operation.
    Malloc {
        /// The local variable.
        local: usize,
        /// The struct allocated.
        ty: usize,
        /// Which allocation of the operation this is.
        site: usize,
    },
    /// An assignment. `free` and `READ` need no other form: the first does nothing to the state
    /// (memory is not used again), the second assigns to a hidden local.
    Assign(Place, Expression),
}

/// Something that can be assigned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A local variable.
    Local(usize),
    /// A shared variable.
    Global(usize),
    /// An element of a shared array.
    Element(usize, Box<Expression>),
    /// A field of the node that a place refers to.
    Field(Box<Place>, usize),
}

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expression {
    /// A number.
    Number(i64),
    /// No node.
    Null,
    /// The identity of the operation instance.
    Id,
    /// What a place holds, plus a number.
    Place(Place, i64),
}

/// A claim about all nodes and numbers: when `given` holds, so does `then`.
#[derive(Clone, Debug)]
pub struct Invariant {
    /// What it speaks of. In its conditions, `Place::Local(n)` is the n-th of these.
    pub variables: Vec<Local>,
    /// When all of these hold,
    pub given: Vec<Condition>,
    /// all of these do.
    pub then: Vec<Condition>,
    /// The text of it, on one line.
    pub text: String,
    /// Where it is written.
    pub span: Span,
}

impl Program {
    /// The type of a place in code with these locals.
    #[must_use]
    pub fn type_of(&self, place: &Place, locals: &[Local]) -> Type {
        match place {
            Place::Local(local) => locals[*local].ty,
            Place::Global(global) | Place::Element(global, _) => self.globals[*global].ty,
            Place::Field(_, field) => self.fields[*field].ty,
        }
    }

    /// Every number that the specification mentions, sorted, with 0 always among them.
    #[must_use]
    pub fn numbers(&self) -> Vec<i64> {
        let mut numbers = vec![0];
        let mut note = |expression: &Expression| {
            if let Expression::Number(number) = expression {
                numbers.push(*number);
            }
        };
        let steps = self.operations.iter().flat_map(|operation| &operation.steps);
        let mut bodies: Vec<&Statement> = self.init.body.iter().collect();
        let mut conditions: Vec<&Condition> = Vec::new();
        for step in steps {
            bodies.extend(&step.body);
            conditions.extend(&step.conditions);
        }
        for statement in bodies {
            if let Statement::Assign(_, value) = statement {
                note(value);
            }
        }
        for condition in conditions {
            note(&condition.left);
            note(&condition.right);
        }
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }
}
