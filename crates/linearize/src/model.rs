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
    /// How many rounds of loops are looked at, if there are loops: each number of rounds is a role.
    pub rounds: Option<usize>,
    /// Threads that operations are bound to.
    pub threads: Vec<String>,
    /// What the operations should mean one after the other, if it is said.
    pub meaning: Option<Meaning>,
    /// That object, if it is written as a specification of its own.
    pub object: Option<Box<Program>>,
}

/// A sequential object that callers know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// First in, first out.
    Queue,
    /// Last in, first out.
    Stack,
    /// Keys that are in or not.
    Set,
    /// Keys with values.
    Map,
    /// A number that is counted up and down.
    Counter,
    /// A cell that is written and read.
    Register,
    /// What [`Program::object`] says.
    Written,
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
    /// Whether it is a step of the system that no caller sees.
    pub internal: bool,
    /// The thread that alone runs it, as an index of [`Program::threads`].
    pub thread: Option<usize>,
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

impl Step {
    /// Whether both do the same, whoever executes them. Their text does not tell: a proof may have
    /// left out a condition of one.
    #[must_use]
    pub fn does_the_same(&self, other: &Self) -> bool {
        self.mark == other.mark && self.conditions == other.conditions && self.body == other.body
    }
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
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// An assignment. `READ` needs no other form: it assigns to a hidden local.
    Assign(Place, Expression),
    /// A node is given back. That does something only where nodes are used again.
    Free(Place),
    /// All stores of the operation so far are in memory. That matters only where there are store
    /// buffers.
    Fence,
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
    /// Two numbers added.
    Sum(Box<Expression>, Box<Expression>),
    /// The second number taken from the first.
    Difference(Box<Expression>, Box<Expression>),
    /// What is left when a number is divided by a positive one; never negative.
    Modulo(Box<Expression>, i64),
}

impl Expression {
    /// The places that it reads, those inside indices not counted.
    #[must_use]
    pub fn places(&self) -> Vec<&Place> {
        match self {
            Self::Number(_) | Self::Null | Self::Id => Vec::new(),
            Self::Place(place, _) => vec![place],
            Self::Modulo(inner, _) => inner.places(),
            Self::Sum(left, right) | Self::Difference(left, right) => {
                let mut places = left.places();
                places.extend(right.places());
                places
            }
        }
    }

    /// Calls `visit` with every number that it names, offsets and divisors included.
    pub fn each_number(&self, visit: &mut impl FnMut(i64)) {
        match self {
            Self::Number(number) => visit(*number),
            Self::Null | Self::Id => {}
            Self::Place(place, offset) => {
                visit(*offset);
                place.each_number(visit);
            }
            Self::Modulo(inner, divisor) => {
                visit(*divisor);
                inner.each_number(visit);
            }
            Self::Sum(left, right) | Self::Difference(left, right) => {
                left.each_number(visit);
                right.each_number(visit);
            }
        }
    }
}

impl Place {
    fn each_number(&self, visit: &mut impl FnMut(i64)) {
        match self {
            Self::Local(_) | Self::Global(_) => {}
            Self::Element(_, index) => index.each_number(visit),
            Self::Field(base, _) => base.each_number(visit),
        }
    }
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
