//! The syntax tree of a rule file: what was written, names still unresolved, spans kept.

use spec::Span;

/// A name and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The name.
    pub text: String,
    /// Where it stands.
    pub span: Span,
}

/// A whole rule file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct File {
    /// `define`s, in order.
    pub defines: Vec<Define>,
    /// Rules, in order.
    pub rules: Vec<Rule>,
}

/// `define NAME(PARAMETERS) = CONDITION`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Define {
    /// Its name.
    pub name: Name,
    /// Its parameters.
    pub parameters: Vec<Name>,
    /// What it stands for.
    pub body: Expression,
}

/// `[NAME] "TITLE" detect <PARTS; POINT>: CONDITION : LOCATORS`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name.
    pub name: Name,
    /// What a finding of it is called.
    pub title: Option<String>,
    /// The parts of the machine's state that the condition speaks of.
    pub parts: Vec<Name>,
    /// Where it is checked.
    pub point: Point,
    /// What is wrong there.
    pub condition: Expression,
    /// The pointers whose propagation leads to the root cause.
    pub locators: Vec<Name>,
}

/// A detection point: a word and what it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// `free`, `deref`, `call` …
    pub word: Name,
    /// The names behind it; `_` is one too.
    pub names: Vec<Name>,
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Every relation with its symbol.
    pub const ALL: [(Self, &'static str); 6] = [
        (Self::Equal, "=="),
        (Self::NotEqual, "!="),
        (Self::LessEqual, "<="),
        (Self::GreaterEqual, ">="),
        (Self::Less, "<"),
        (Self::Greater, ">"),
    ];

    /// As it is written.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        Self::ALL.iter().find(|(relation, _)| *relation == self).map_or("", |(_, symbol)| symbol)
    }

    /// Whether it holds between two numbers.
    #[must_use]
    pub fn holds(self, left: i128, right: i128) -> bool {
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

/// An arithmetic operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `&`
    And,
}

impl Operator {
    /// As it is written.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::And => "&",
        }
    }
}

/// `exists` or `forall`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    /// At least one.
    Exists,
    /// Every one.
    ForAll,
}

/// A condition or a term, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    /// What it is.
    pub kind: ExpressionKind,
    /// Where it stands.
    pub span: Span,
}

/// The kinds of [`Expression`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpressionKind {
    /// `A || B || …`
    Or(Vec<Expression>),
    /// `A && B && …`
    And(Vec<Expression>),
    /// `!A`
    Not(Box<Expression>),
    /// `A == B`
    Compare(Box<Expression>, Relation, Box<Expression>),
    /// `A + B`
    Arithmetic(Box<Expression>, Operator, Box<Expression>),
    /// `exists X in SET such that (…)`
    Quantified(Quantifier, Pattern, Name, Option<Box<Expression>>),
    /// `FindLast(k, call, f, _)`
    FindLast(EventPattern),
    /// `NAME(A, B)`
    Apply(Name, Vec<Expression>),
    /// A variable or `_`.
    Variable(String),
    /// A whole number.
    Number(i64),
    /// `NULL`
    Null,
}

/// What a quantifier ranges over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// One variable.
    Variable(Name),
    /// `event(…)`
    Event(EventPattern),
}

/// `(TIME, KIND, ARGUMENTS…)`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPattern {
    /// The timestamp's variable, or `_`.
    pub time: Name,
    /// `malloc`, `free`, `write` …
    pub kind: Name,
    /// Variables, names of functions, or `_`.
    pub arguments: Vec<Name>,
}
