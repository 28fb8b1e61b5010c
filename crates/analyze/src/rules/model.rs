//! A rule after its names and types are checked and its definitions are put in: what evaluation,
//! screening and the plan of observations work on.

pub use super::language::ast::{Operator, Quantifier, Relation};

/// A checked rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Its name, with hyphens: the kind of its findings.
    pub name: String,
    /// What a finding is called.
    pub title: String,
    /// Where it is checked.
    pub point: Point,
    /// What is wrong there.
    pub condition: Condition,
    /// The variables of the rule; the detection point's come first.
    pub variables: Vec<Variable>,
    /// The pointers whose chains lead to the cause.
    pub locators: Vec<Slot>,
    /// The rule as text, on one line.
    pub text: String,
}

/// A number of a variable.
pub type Slot = usize;

/// A variable of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// As it was written; `_` for a wildcard.
    pub name: String,
    /// What it stands for.
    pub kind: Type,
}

/// What a term stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A pointer: an address, and the block it was made from.
    Pointer,
    /// A block's identity.
    Block,
    /// A whole number: sizes, values, indexes, descriptors.
    Number,
    /// A timestamp.
    Time,
    /// A function's name.
    Function,
    /// Where a value came from.
    Origin,
}

impl Type {
    /// As messages call it.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Pointer => "a pointer",
            Self::Block => "a block",
            Self::Number => "a number",
            Self::Time => "a time",
            Self::Function => "a function",
            Self::Origin => "an origin",
        }
    }
}

/// Where a rule is checked. The slots of the variables are 0, 1, … in the order written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Point {
    /// Memory is about to be read or written through a pointer.
    Deref {
        /// At reads.
        read: bool,
        /// At writes.
        write: bool,
    },
    /// A block is about to be freed.
    Free,
    /// A block is about to be allocated.
    Malloc,
    /// A function is about to be called.
    Call(String),
    /// A function is about to return.
    Return(String),
    /// The program is about to end.
    Exit,
    /// A system call is about to use a descriptor.
    Use,
    /// A descriptor is about to be closed.
    Close,
}

/// The kinds of events in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// `(k, write, pointer, value, origin)`
    Write,
    /// `(k, malloc, size, block)`
    Malloc,
    /// `(k, free, pointer, block)`
    Free,
    /// `(k, call, function, argument)`
    Call,
    /// `(k, ret, function, value)`
    Return,
    /// `(k, open, descriptor)`
    Open,
    /// `(k, close, descriptor)`
    Close,
}

impl EventKind {
    /// Every kind with its word and the types of its arguments.
    pub const ALL: [(Self, &'static str, &'static [Type]); 7] = [
        (Self::Write, "write", &[Type::Pointer, Type::Number, Type::Origin]),
        (Self::Malloc, "malloc", &[Type::Number, Type::Block]),
        (Self::Free, "free", &[Type::Pointer, Type::Block]),
        (Self::Call, "call", &[Type::Function, Type::Number]),
        (Self::Return, "ret", &[Type::Function, Type::Number]),
        (Self::Open, "open", &[Type::Number]),
        (Self::Close, "close", &[Type::Number]),
    ];

    /// The argument that an index over events of this kind is kept by.
    #[must_use]
    pub fn key_argument(self) -> usize {
        match self {
            Self::Malloc | Self::Free => 1,
            Self::Write | Self::Call | Self::Return | Self::Open | Self::Close => 0,
        }
    }
}

/// The sets that quantifiers range over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Set {
    /// Blocks that are allocated.
    Heap,
    /// Heap blocks that were freed.
    Freed,
    /// Pointers that the program holds.
    Pointers,
    /// Open descriptors.
    Descriptors,
}

impl Set {
    /// Every set with its word and the type of its elements.
    pub const ALL: [(Self, &'static str, Type); 4] = [
        (Self::Heap, "Heap", Type::Block),
        (Self::Freed, "Freed", Type::Block),
        (Self::Pointers, "Pointers", Type::Pointer),
        (Self::Descriptors, "Descriptors", Type::Number),
    ];
}

/// What [`Function::Region`] says.
pub use crate::model::blocks::{
    REGION_ABSENT, REGION_GLOBAL, REGION_HEAP, REGION_LEFT, REGION_SCOPE, REGION_STACK,
};

/// The functions of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    /// The block that a pointer was made from.
    Bid,
    /// How far into its block a pointer points.
    Idx,
    /// The first address of a block.
    Begin,
    /// The first address past a block.
    End,
    /// The bytes of a block.
    Size,
    /// When a block was allocated.
    Time,
    /// The whole of a block's contents: equal for equal contents.
    Block,
    /// What a pointer points to, or the first word of a block.
    Value,
    /// The bytes that the access at this detection point touches.
    Width,
    /// The number of the family (malloc, new, new[] …) that a block belongs to.
    Family,
    /// The family of the function that frees at this detection point.
    Releaser,
    /// What kind of block: one of the `REGION_*` numbers.
    Region,
}

impl Function {
    /// Every function: word, what it takes (none: nothing), what it gives.
    pub const ALL: [(Self, &'static str, Takes, Type); 12] = [
        (Self::Bid, "Bid", Takes::Pointer, Type::Block),
        (Self::Idx, "Idx", Takes::Pointer, Type::Number),
        (Self::Begin, "Begin", Takes::PointerOrBlock, Type::Pointer),
        (Self::End, "End", Takes::PointerOrBlock, Type::Pointer),
        (Self::Size, "Size", Takes::PointerOrBlock, Type::Number),
        (Self::Time, "Time", Takes::PointerOrBlock, Type::Time),
        (Self::Block, "Block", Takes::PointerOrBlock, Type::Number),
        (Self::Value, "Value", Takes::PointerOrBlock, Type::Number),
        (Self::Width, "Width", Takes::Pointer, Type::Number),
        (Self::Family, "Family", Takes::PointerOrBlock, Type::Number),
        (Self::Releaser, "Releaser", Takes::Pointer, Type::Number),
        (Self::Region, "Region", Takes::PointerOrBlock, Type::Number),
    ];
}

/// What a function takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// A pointer.
    Pointer,
    /// A pointer or a block.
    PointerOrBlock,
}

/// A term.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// A variable.
    Variable(Slot),
    /// A number.
    Number(i64),
    /// `NULL`
    Null,
    /// A function's name.
    Name(String),
    /// A function of the language.
    Apply(Function, Box<Term>),
    /// Arithmetic.
    Arithmetic(Box<Term>, Operator, Box<Term>),
}

/// An argument of an event pattern.
#[derive(Clone, Debug, PartialEq)]
pub enum Match {
    /// Anything.
    Any,
    /// A variable: compared if it has a value, else given one.
    Variable(Slot),
    /// A term that has a value.
    Term(Term),
}

/// Events `(time, kind, arguments)`.
#[derive(Clone, Debug, PartialEq)]
pub struct EventMatch {
    /// The timestamp.
    pub time: Match,
    /// The kind.
    pub kind: EventKind,
    /// The arguments.
    pub arguments: Vec<Match>,
    /// What the key argument must equal, where that is known before any event is looked at: the
    /// index answers instead of a search.
    pub key: Option<Term>,
}

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// At least one holds.
    Or(Vec<Condition>),
    /// All hold, looked at in order.
    And(Vec<Condition>),
    /// It does not hold.
    Not(Box<Condition>),
    /// A comparison. With a term that stands for nothing it does not hold.
    Compare(Term, Relation, Term),
    /// Over the elements of a set; with a term, over pointers into that block alone.
    OverSet(Quantifier, Slot, Set, Option<Term>, Box<Condition>),
    /// Over the events of the trace, oldest first.
    OverTrace(Quantifier, EventMatch, Box<Condition>),
    /// The newest event that matches.
    FindLast(EventMatch),
}
