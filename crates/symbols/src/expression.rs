//! The small language of **values**: C-like paths over the program's own names.
//!
//! `p->next->key`, `a[3].b`, `*p`, `&x`, `(struct node *)p`, `space::global`, `function::static`,
//! `$rax`, `[0x7ffe1000,8]`, and arithmetic and comparisons on them. The language only reads. The
//! lexer, the parser and the tree live here; [`evaluate`] gives trees a meaning in a scene.

pub mod evaluate;
pub mod lexer;
pub mod parser;

use crate::registers::Register;
use std::fmt;

/// An expression.
#[derive(Clone, PartialEq, Debug)]
pub enum Expression {
    /// A variable, with `::` between scopes.
    Name(String),
    /// A number that fits 64 bits either way.
    Number(i128),
    /// A number with a point.
    Float(f64),
    /// A register of the frame.
    Register(Register),
    /// So many bytes of memory at an address.
    Memory(Box<Expression>, Box<Expression>),
    /// An operator before its operand.
    Unary(Unary, Box<Expression>),
    /// An operator between its operands.
    Binary(Binary, Box<Expression>, Box<Expression>),
    /// A member, through as many pointers as it takes.
    Member(Box<Expression>, String),
    /// An element.
    Index(Box<Expression>, Box<Expression>),
    /// The same bits, or the same number, as another type.
    Cast(TypeName, Box<Expression>),
    /// The size of a value's type in bytes.
    SizeOf(Box<Expression>),
}

/// A type as written in a cast.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypeName {
    /// The words without `struct`, `const` and the like: `unsigned int`, `space::thing<int>`.
    pub name: String,
    /// How many `*` follow.
    pub pointers: usize,
}

/// An operator before its operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unary {
    /// `*p`
    Dereference,
    /// `&x`
    AddressOf,
    /// `-x`
    Minus,
    /// `!x`
    Not,
    /// `~x`
    Complement,
}

impl Unary {
    /// How it is written.
    #[must_use]
    pub fn sign(self) -> char {
        match self {
            Self::Dereference => '*',
            Self::AddressOf => '&',
            Self::Minus => '-',
            Self::Not => '!',
            Self::Complement => '~',
        }
    }
}

/// An operator between its operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the table below says how each is written")]
pub enum Binary {
    Or,
    And,
    BitOr,
    BitXor,
    BitAnd,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Binary {
    /// Every operator with its sign and how tightly it binds, as in C.
    pub const ALL: [(Self, &'static str, u8); 18] = [
        (Self::Or, "||", 1),
        (Self::And, "&&", 2),
        (Self::BitOr, "|", 3),
        (Self::BitXor, "^", 4),
        (Self::BitAnd, "&", 5),
        (Self::Equal, "==", 6),
        (Self::NotEqual, "!=", 6),
        (Self::Less, "<", 7),
        (Self::LessEqual, "<=", 7),
        (Self::Greater, ">", 7),
        (Self::GreaterEqual, ">=", 7),
        (Self::ShiftLeft, "<<", 8),
        (Self::ShiftRight, ">>", 8),
        (Self::Add, "+", 9),
        (Self::Subtract, "-", 9),
        (Self::Multiply, "*", 10),
        (Self::Divide, "/", 10),
        (Self::Remainder, "%", 10),
    ];

    fn row(self) -> (&'static str, u8) {
        let row = Self::ALL.iter().find(|(operator, ..)| *operator == self);
        row.map_or(("", 0), |(_, sign, strength)| (*sign, *strength))
    }
}

/// Why an expression could not be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SyntaxError {
    /// Where in the text, in bytes.
    pub at: usize,
    /// What is wrong there.
    pub message: String,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} (at character {})", self.message, self.at + 1)
    }
}

impl std::error::Error for SyntaxError {}

impl fmt::Display for TypeName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.name)?;
        if self.pointers > 0 {
            write!(out, " {}", "*".repeat(self.pointers))?;
        }
        Ok(())
    }
}

/// Strength of a prefix operator, above all between-operators.
const PREFIX: u8 = 11;
/// Strength of what follows an operand.
const POSTFIX: u8 = 12;

impl fmt::Display for Expression {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.print(out, 0)
    }
}

impl Expression {
    fn strength(&self) -> u8 {
        match self {
            Self::Unary(..) | Self::Cast(..) => PREFIX,
            // A sign or a point of theirs must not run into what follows.
            Self::Number(_) | Self::Float(_) => PREFIX,
            Self::Binary(operator, ..) => operator.row().1,
            _ => POSTFIX,
        }
    }

    fn print(&self, out: &mut fmt::Formatter<'_>, around: u8) -> fmt::Result {
        let open = self.strength() < around;
        if open {
            out.write_str("(")?;
        }
        match self {
            Self::Name(name) => out.write_str(name)?,
            Self::Number(number) => write!(out, "{number}")?,
            Self::Float(number) => write!(out, "{number:?}")?,
            Self::Register(register) => write!(out, "${register}")?,
            Self::Memory(address, size) => {
                out.write_str("[")?;
                address.print(out, 0)?;
                out.write_str(",")?;
                size.print(out, 0)?;
                out.write_str("]")?;
            }
            Self::Unary(operator, operand) => {
                write!(out, "{}", operator.sign())?;
                // `--x` and `&&x` would be read as other operators.
                let doubled = match &**operand {
                    Self::Unary(inner, _) => inner == operator,
                    Self::Number(number) => *operator == Unary::Minus && *number < 0,
                    _ => false,
                };
                operand.print(out, if doubled { POSTFIX } else { PREFIX })?;
            }
            Self::Binary(operator, left, right) => {
                let (sign, strength) = operator.row();
                left.print(out, strength)?;
                write!(out, " {sign} ")?;
                right.print(out, strength + 1)?;
            }
            Self::Member(record, name) => {
                record.print(out, POSTFIX)?;
                write!(out, ".{name}")?;
            }
            Self::Index(array, index) => {
                array.print(out, POSTFIX)?;
                out.write_str("[")?;
                index.print(out, 0)?;
                out.write_str("]")?;
            }
            Self::Cast(name, operand) => {
                write!(out, "({name})")?;
                // A sign after the bracket would make it an operator between operands.
                let sign = matches!(**operand, Self::Unary(..) | Self::Number(i128::MIN..0));
                operand.print(out, if sign { POSTFIX } else { PREFIX })?;
            }
            Self::SizeOf(operand) => {
                out.write_str("sizeof(")?;
                operand.print(out, 0)?;
                out.write_str(")")?;
            }
        }
        if open { out.write_str(")") } else { Ok(()) }
    }
}
