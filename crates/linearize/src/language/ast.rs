//! The syntax tree: what was written, with names still unresolved. Every name keeps its span, so
//! that errors of meaning can point at it.

use spec::Span;

/// A name and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The name.
    pub text: String,
    /// Where it stands.
    pub span: Span,
}

/// A whole specification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spec {
    /// `struct` declarations.
    pub structs: Vec<Struct>,
    /// Shared variables.
    pub globals: Vec<Declaration>,
    /// The initial state, as statements.
    pub init: Option<Init>,
    /// Stated invariants.
    pub invariants: Vec<Invariant>,
    /// Operations.
    pub operations: Vec<Operation>,
    /// The object that the operations should be, one after the other.
    pub meaning: Option<Meant>,
}

/// `abstract NAME;` or `abstract { … }`
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meant {
    /// An object that is known by its name.
    Named(Name),
    /// An object that is written as a specification of its own, and where the word stands.
    Written(Span, Box<Spec>),
}

/// `struct NAME { … };`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Struct {
    /// Its name.
    pub name: Name,
    /// Its fields.
    pub fields: Vec<Declaration>,
}

/// `TYPE NAME` or `TYPE NAME[]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// `int` or a struct's name.
    pub ty: Name,
    /// The name declared.
    pub name: Name,
    /// Whether `[]` follows.
    pub array: bool,
}

/// `init` with its locals and statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Init {
    /// Where the word stands.
    pub span: Span,
    /// Local variables.
    pub locals: Vec<Declaration>,
    /// What it does.
    pub body: Vec<Statement>,
}

/// `invariant (TYPE VAR, …) GIVEN => THEN;`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invariant {
    /// The whole clause.
    pub span: Span,
    /// What it speaks of: any nodes, any numbers.
    pub variables: Vec<Declaration>,
    /// When these hold,
    pub given: Vec<Condition>,
    /// these hold too.
    pub then: Vec<Condition>,
}

/// An operation, or one role (path through the code) of it: `NAME/ROLE(PARAMETERS)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its name.
    pub name: Name,
    /// Its role.
    pub role: Option<Name>,
    /// Its arguments.
    pub parameters: Vec<Declaration>,
    /// Its local variables.
    pub locals: Vec<Declaration>,
    /// Its sub-operations, in program order.
    pub steps: Vec<Step>,
    /// Whether `internal` stands before it.
    pub internal: bool,
    /// The thread after `on`.
    pub thread: Option<Name>,
}

/// Which thread executes a sub-operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// `1`: the invoking thread.
    Own,
    /// `*`: any thread.
    Any,
}

/// An atomic sub-operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Which thread executes it.
    pub mark: Mark,
    /// Its precondition.
    pub conditions: Vec<Condition>,
    /// What it does.
    pub body: Vec<Statement>,
    /// Whether `loop` stands before it: it happens any number of times.
    pub repeats: bool,
    /// The whole sub-operation.
    pub span: Span,
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Relation {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
}

impl Relation {
    /// As it is written.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
        }
    }

    /// The relation that holds exactly when this one does not.
    #[must_use]
    pub fn negated(self) -> Self {
        match self {
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::Less => Self::GreaterEqual,
            Self::LessEqual => Self::Greater,
            Self::Greater => Self::LessEqual,
            Self::GreaterEqual => Self::Less,
        }
    }

    /// Whether it holds between two numbers.
    #[must_use]
    pub fn holds(self, left: i64, right: i64) -> bool {
        match self {
            Self::Equal => left == right,
            Self::NotEqual => left != right,
            Self::Less => left < right,
            Self::LessEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterEqual => left >= right,
        }
    }
}

/// `LEFT RELATION RIGHT`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Left side.
    pub left: Value,
    /// The comparison.
    pub relation: Relation,
    /// Right side.
    pub right: Value,
}

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// `VAR = malloc TYPE;`
    Malloc {
        /// Where the reference goes.
        target: Name,
        /// What is allocated.
        ty: Name,
    },
    /// `free VAR;`
    Free(Name),
    /// `PATH = VALUE;`
    Assign(Path, Value),
    /// `READ PATH;`
    Read(Path),
    /// `return VALUE;`
    Return(Value),
    /// `fence;`
    Fence(Span),
}

/// A variable, an element of an array, or a field reached from one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The variable.
    pub root: Name,
    /// The index, for an array.
    pub index: Option<Box<Value>>,
    /// The fields to follow.
    pub fields: Vec<Name>,
    /// The whole path.
    pub span: Span,
}

/// The right side of an assignment or comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// What it is.
    pub kind: ValueKind,
    /// Where it stands.
    pub span: Span,
}

/// The kinds of [`Value`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// `ID`: a number that identifies the operation instance.
    Id,
    /// `NULL`
    Null,
    /// A number.
    Number(i64),
    /// What a path holds, plus a number.
    Path(Path, i64),
    /// Two values added.
    Sum(Box<Value>, Box<Value>),
    /// The second value taken from the first.
    Difference(Box<Value>, Box<Value>),
    /// The rest of a value when divided by a number.
    Modulo(Box<Value>, i64),
}
