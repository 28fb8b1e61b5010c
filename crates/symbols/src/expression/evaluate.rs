//! What an expression means at a moment.

use super::parser::parse;
use super::{Binary, Expression, SyntaxError, TypeName, Unary};
use crate::members::Scalar;
use crate::registers::Register;
use crate::scene::{Level, Scene};
use crate::suggest::{hint, near};
use crate::types::{Shape, TypeRef};
use crate::value::{Held, Home, Lost, Piece, Value};
use base::Address;
use std::fmt;

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueError {
    /// It cannot be read.
    Syntax(SyntaxError),
    /// No variable has that name here.
    UnknownName {
        /// The name.
        name: String,
        /// Names like it.
        near: Vec<String>,
    },
    /// The record has no such member.
    UnknownMember {
        /// The member.
        name: String,
        /// The type of the record.
        of: String,
        /// Members like it.
        near: Vec<String>,
    },
    /// No type has that name.
    UnknownType {
        /// The name.
        name: String,
        /// Names like it.
        near: Vec<String>,
    },
    /// The operation does not fit the operand's type.
    Unfit {
        /// What was to be done, such as "take an element of".
        operation: &'static str,
        /// The operand.
        operand: String,
        /// Its type.
        of: String,
    },
    /// The operand is not in memory, so it has no address.
    NoAddress {
        /// The operand.
        operand: String,
        /// The register it is in instead, if it is in one.
        register: Option<Register>,
    },
    /// The bits of an operand are not to be had.
    Lost {
        /// The operand.
        operand: String,
        /// Why.
        why: Lost,
    },
    /// A division by zero, or a shift by too much.
    Undefined(String),
}

impl fmt::Display for ValueError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(error) => error.fmt(out),
            Self::UnknownName { name, near } => {
                write!(out, "there is no variable '{name}' here{}", hint(near))
            }
            Self::UnknownMember { name, of, near } => {
                write!(out, "'{of}' has no member '{name}'{}", hint(near))
            }
            Self::UnknownType { name, near } => {
                write!(out, "there is no type '{name}'{}", hint(near))
            }
            Self::Unfit { operation, operand, of } => {
                write!(out, "cannot {operation} '{operand}', which is of type '{of}'")
            }
            Self::NoAddress { operand, register: Some(register) } => {
                write!(out, "'{operand}' is in a register, not in memory; ask for ${register}")
            }
            Self::NoAddress { operand, register: None } => {
                write!(out, "'{operand}' is not in memory and has no address")
            }
            Self::Lost { operand, why } => write!(out, "'{operand}' is not to be had: {why}"),
            Self::Undefined(what) => out.write_str(what),
        }
    }
}

impl std::error::Error for ValueError {}

impl Scene<'_> {
    /// The value of an expression as seen from a call. What it names may still be optimised out:
    /// the value says so.
    pub fn evaluate(&self, level: Level, text: &str) -> Result<Value, ValueError> {
        let expression = parse(text).map_err(ValueError::Syntax)?;
        self.value(level, &expression)
    }

    /// The value of a parsed expression.
    pub fn value(&self, level: Level, expression: &Expression) -> Result<Value, ValueError> {
        Evaluator { scene: self, level }.value(expression)
    }

    /// The type called `name`, and its module.
    pub fn find_type(&self, level: Level, name: &TypeName) -> Result<(usize, TypeRef), ValueError> {
        let home = self.here(level).map_or(0, |(module, _)| module);
        let base = self.base_type(home, &name.name)?;
        let (module, mut ty) = base;
        for _ in 0..name.pointers {
            ty = ty.pointer();
        }
        Ok((module, ty))
    }

    fn base_type(&self, home: usize, name: &str) -> Result<(usize, TypeRef), ValueError> {
        if name == "void" {
            return Ok((home, TypeRef::Void));
        }
        let spelled = spelling(name);
        let others = (0..self.program.modules().len()).filter(|other| *other != home);
        let modules = std::iter::once(home).chain(others);
        let declared = |module: usize| {
            let names = self.debug(module)?.names();
            let found =
                names.types_named(name).next().or_else(|| names.types_named(&spelled).next());
            Some((module, TypeRef::Entry(found?)))
        };
        if let Some(found) = modules.clone().find_map(declared) {
            return Ok(found);
        }
        if let Some(known) = built_in(&spelled) {
            return Ok((home, known));
        }
        let known: Vec<&str> = modules
            .filter_map(|module| Some(self.debug(module)?.names()))
            .flat_map(|names| names.types.values().flatten().map(|(name, _)| &**name))
            .collect();
        Err(ValueError::UnknownType { name: name.into(), near: near(name, known) })
    }
}

/// The name that compilers give a basic type of C: `unsigned long` is `long unsigned int`.
fn spelling(name: &str) -> String {
    let words: Vec<&str> = name.split_whitespace().collect();
    let count = |word: &str| words.iter().filter(|found| **found == word).count();
    let known = ["unsigned", "signed", "long", "short", "int", "char"];
    if words.is_empty() || !words.iter().all(|word| known.contains(word)) {
        return name.into();
    }
    let unsigned = count("unsigned") > 0;
    if count("char") > 0 {
        let sign = if unsigned {
            "unsigned "
        } else if count("signed") > 0 {
            "signed "
        } else {
            ""
        };
        return format!("{sign}char");
    }
    let size = match (count("long"), count("short")) {
        (0, 0) => "",
        (0, _) => "short ",
        (1, _) => "long ",
        _ => "long long ",
    };
    format!("{size}{}int", if unsigned { "unsigned " } else { "" })
}

fn built_in(name: &str) -> Option<TypeRef> {
    let (size, signed) = match name {
        "char" | "signed char" | "i8" | "int8_t" => (1, true),
        "unsigned char" | "u8" | "uint8_t" | "bool" | "_Bool" => (1, false),
        "short int" | "i16" | "int16_t" => (2, true),
        "short unsigned int" | "u16" | "uint16_t" => (2, false),
        "int" | "i32" | "int32_t" => (4, true),
        "unsigned int" | "u32" | "uint32_t" => (4, false),
        "long int" | "long long int" | "i64" | "isize" | "int64_t" | "ssize_t" => (8, true),
        "long unsigned int"
        | "long long unsigned int"
        | "u64"
        | "usize"
        | "uint64_t"
        | "size_t"
        | "uintptr_t" => (8, false),
        "float" | "f32" => return Some(TypeRef::Float(4)),
        "double" | "f64" => return Some(TypeRef::Float(8)),
        _ => return None,
    };
    Some(TypeRef::Integer { size, signed })
}

struct Evaluator<'s, 'a> {
    scene: &'s Scene<'a>,
    level: Level,
}

impl Evaluator<'_, '_> {
    fn value(&self, expression: &Expression) -> Result<Value, ValueError> {
        match expression {
            Expression::Name(name) => self.name(name),
            Expression::Number(number) => Ok(self.integer(*number)),
            Expression::Float(number) => {
                Ok(self.made(TypeRef::Float(8), number.to_le_bytes().to_vec()))
            }
            Expression::Register(register) => Ok(self.register(*register)),
            Expression::Memory(address, size) => self.memory(address, size),
            Expression::Unary(operator, operand) => self.unary(*operator, operand),
            Expression::Binary(operator, left, right) => self.binary(*operator, left, right),
            Expression::Member(record, name) => self.member(record, name),
            Expression::Index(array, index) => {
                let value = self.value(array)?;
                let index = self.whole(index)?;
                let found = self.scene.element(&value, index).map_err(|why| lost(array, why))?;
                found.ok_or_else(|| self.unfit("take an element of", array, &value))
            }
            Expression::Cast(name, operand) => self.cast(name, operand),
            Expression::SizeOf(operand) => {
                let value = self.value(operand)?;
                let size = self.scene.size_of(value.module, &value.ty);
                let size = size.ok_or_else(|| self.unfit("take the size of", operand, &value))?;
                Ok(self.made(TypeRef::WORD, size.to_le_bytes().to_vec()))
            }
        }
    }

    fn home(&self) -> usize {
        self.scene.here(self.level).map_or(0, |(module, _)| module)
    }

    fn made(&self, ty: TypeRef, bytes: Vec<u8>) -> Value {
        Value { module: self.home(), ty, held: Held::constant(bytes) }
    }

    /// A whole number in the narrowest of the two widest types that holds it.
    fn integer(&self, number: i128) -> Value {
        let signed = i64::try_from(number).is_ok();
        let ty = if signed { TypeRef::LONG } else { TypeRef::WORD };
        self.made(ty, (number as u64).to_le_bytes().to_vec())
    }

    fn name(&self, name: &str) -> Result<Value, ValueError> {
        if let Some(found) = self.scene.variable_named(self.level, name) {
            return Ok(found);
        }
        // In a method, members need no `this`.
        for receiver in ["this", "self"] {
            let local = self.scene.locals(self.level).into_iter().find(|v| v.name == receiver);
            if let Some(local) = local {
                let object = self.scene.value_of(&local);
                if let Ok(Some(member)) = self.scene.member(&object, name) {
                    return Ok(member);
                }
            }
        }
        let near = self.scene.near_names(self.level, name);
        Err(ValueError::UnknownName { name: name.into(), near })
    }

    fn register(&self, register: Register) -> Value {
        let ty = if register.is_vector() { TypeRef::WORD.array(2) } else { TypeRef::WORD };
        let home = Home::Register { register, frame: self.level.frame };
        let piece = Piece { bits: register.size() * 8, home, skip: 0 };
        Value { module: self.home(), ty, held: Held::Pieces(vec![piece]) }
    }

    fn memory(&self, address: &Expression, size: &Expression) -> Result<Value, ValueError> {
        let address = self.whole(address)? as u64;
        let size = self.whole(size)?;
        let ty = match size {
            1 | 2 | 4 | 8 => TypeRef::Integer { size: size as u64, signed: false },
            _ => match u64::try_from(size) {
                Ok(size) => TypeRef::BYTE.array(size),
                Err(_) => {
                    return Err(ValueError::Undefined(format!("{size} is not a size in bytes")));
                }
            },
        };
        Ok(Value { module: self.home(), ty, held: Held::Memory(Address(address)) })
    }

    fn member(&self, record: &Expression, name: &str) -> Result<Value, ValueError> {
        let value = self.value(record)?;
        let found = self.scene.member(&value, name).map_err(|why| lost(record, why))?;
        if let Some(found) = found {
            return Ok(found);
        }
        let through = self.scene.through_pointers(&value).map_err(|why| lost(record, why))?;
        let members = self.scene.member_names(&through);
        if members.is_empty() {
            return Err(self.unfit("take a member of", record, &value));
        }
        let near = near(name, members.iter().map(String::as_str));
        let of = self.scene.type_name(through.module, &through.ty);
        Err(ValueError::UnknownMember { name: name.into(), of, near })
    }

    fn unary(&self, operator: Unary, operand: &Expression) -> Result<Value, ValueError> {
        let value = self.value(operand)?;
        match operator {
            Unary::Dereference => {
                let found = self.scene.dereference(&value).map_err(|why| lost(operand, why))?;
                found.ok_or_else(|| self.unfit("follow", operand, &value))
            }
            Unary::AddressOf => self.address_of(operand, &value),
            Unary::Not => {
                let truth = self.truth(operand, &value)?;
                Ok(self.truth_value(!truth))
            }
            Unary::Minus => match self.scalar(operand, &value)? {
                Scalar::Integer(number) => Ok(self.integer(wrap(number.wrapping_neg()))),
                Scalar::Float(number) => Ok(self.float(-number)),
            },
            Unary::Complement => match self.scalar(operand, &value)? {
                Scalar::Integer(number) => Ok(self.integer(wrap(!number))),
                Scalar::Float(_) => Err(self.unfit("complement", operand, &value)),
            },
        }
    }

    fn address_of(&self, operand: &Expression, value: &Value) -> Result<Value, ValueError> {
        let Some(address) = value.held.address() else {
            if let Some(why) = value.held.why_lost() {
                return Err(lost(operand, why.clone()));
            }
            let register = match &value.held {
                Held::Pieces(pieces) => pieces.iter().find_map(|piece| match piece.home {
                    Home::Register { register, .. } => Some(register),
                    _ => None,
                }),
                Held::Memory(_) => None,
            };
            return Err(ValueError::NoAddress { operand: operand.to_string(), register });
        };
        let held = Held::constant(address.0.to_le_bytes().to_vec());
        Ok(Value { module: value.module, ty: value.ty.clone().pointer(), held })
    }

    fn binary(
        &self,
        operator: Binary,
        left: &Expression,
        right: &Expression,
    ) -> Result<Value, ValueError> {
        let first = self.value(left)?;
        if matches!(operator, Binary::And | Binary::Or) {
            let truth = self.truth(left, &first)?;
            if truth == (operator == Binary::Or) {
                return Ok(self.truth_value(truth));
            }
            let second = self.value(right)?;
            return Ok(self.truth_value(self.truth(right, &second)?));
        }
        let second = self.value(right)?;
        if let Some(moved) = self.pointer_arithmetic(operator, (left, &first), (right, &second))? {
            return Ok(moved);
        }
        match (self.scalar(left, &first)?, self.scalar(right, &second)?) {
            (Scalar::Integer(a), Scalar::Integer(b)) => self.integers(operator, a, b),
            (a, b) => match floats(operator, as_float(a), as_float(b)) {
                Some(Scalar::Float(number)) => Ok(self.float(number)),
                Some(Scalar::Integer(truth)) => Ok(self.truth_value(truth != 0)),
                None => Err(self.unfit("take bits of", left, &first)),
            },
        }
    }

    fn integers(&self, operator: Binary, a: i128, b: i128) -> Result<Value, ValueError> {
        let undefined = |what: &str| ValueError::Undefined(what.into());
        let shift = || {
            u32::try_from(b).ok().filter(|bits| *bits < 64).ok_or_else(|| {
                undefined("a shift by 64 or more, or by a negative number, has no meaning")
            })
        };
        let number = match operator {
            Binary::Add => a + b,
            Binary::Subtract => a - b,
            Binary::Multiply => a.wrapping_mul(b),
            Binary::Divide | Binary::Remainder if b == 0 => {
                return Err(undefined("a division by zero has no value"));
            }
            Binary::Divide => a / b,
            Binary::Remainder => a % b,
            Binary::BitOr => a | b,
            Binary::BitXor => a ^ b,
            Binary::BitAnd => a & b,
            Binary::ShiftLeft => a << shift()?,
            Binary::ShiftRight => a >> shift()?,
            Binary::Equal => return Ok(self.truth_value(a == b)),
            Binary::NotEqual => return Ok(self.truth_value(a != b)),
            Binary::Less => return Ok(self.truth_value(a < b)),
            Binary::LessEqual => return Ok(self.truth_value(a <= b)),
            Binary::Greater => return Ok(self.truth_value(a > b)),
            Binary::GreaterEqual => return Ok(self.truth_value(a >= b)),
            Binary::Or | Binary::And => return Ok(self.truth_value(a != 0 || b != 0)),
        };
        Ok(self.integer(wrap(number)))
    }

    /// `p + 1` moves by a whole element, `p - q` counts them.
    fn pointer_arithmetic(
        &self,
        operator: Binary,
        (left, first): (&Expression, &Value),
        (right, second): (&Expression, &Value),
    ) -> Result<Option<Value>, ValueError> {
        if !matches!(operator, Binary::Add | Binary::Subtract) {
            return Ok(None);
        }
        let (a, b) = (self.element_of(first), self.element_of(second));
        let (element, pointer, other, sign) = match (a, b) {
            (Some(element), Some(_)) if operator == Binary::Subtract => {
                let size = self.scene.size_of(first.module, &element).unwrap_or(1).max(1);
                let (a, b) = (self.number(left, first)?, self.number(right, second)?);
                return Ok(Some(self.integer((a - b) / i128::from(size))));
            }
            (Some(element), None) => {
                let sign = if operator == Binary::Subtract { -1 } else { 1 };
                (element, (left, first), (right, second), sign)
            }
            (None, Some(element)) if operator == Binary::Add => {
                (element, (right, second), (left, first), 1)
            }
            _ => return Ok(None),
        };
        let size = i128::from(self.scene.size_of(pointer.1.module, &element).unwrap_or(1));
        let start = self.number(pointer.0, pointer.1)?;
        let by = self.number(other.0, other.1)?;
        let address = start.wrapping_add(by.wrapping_mul(sign * size)) as u64;
        let held = Held::constant(address.to_le_bytes().to_vec());
        Ok(Some(Value { module: pointer.1.module, ty: element.pointer(), held }))
    }

    /// What a pointer points to or an array holds.
    fn element_of(&self, value: &Value) -> Option<TypeRef> {
        match &self.scene.plain(value).1.shape {
            Shape::Pointer { to } => Some(to.clone()),
            Shape::Array { element, counts } if counts.len() == 1 => Some(element.clone()),
            _ => None,
        }
    }

    fn cast(&self, name: &TypeName, operand: &Expression) -> Result<Value, ValueError> {
        let value = self.value(operand)?;
        let (module, ty) = self.scene.find_type(self.level, name)?;
        let (_, _, found) = self.scene.stripped(module, &ty);
        let size = self.scene.size_of(module, &ty);
        let bytes = match (&found.shape, size) {
            // The same bytes seen as another record or array.
            (Shape::Record(_) | Shape::Array { .. }, Some(size)) => {
                let held = value.held.part(0, size.saturating_mul(8));
                return Ok(Value { module, ty, held });
            }
            (Shape::Float, Some(4)) => {
                (as_float(self.scalar(operand, &value)?) as f32).to_le_bytes().to_vec()
            }
            (Shape::Float, Some(8)) => {
                as_float(self.scalar(operand, &value)?).to_le_bytes().to_vec()
            }
            (Shape::Boolean, _) => vec![u8::from(self.truth(operand, &value)?)],
            (
                Shape::Integer { .. }
                | Shape::Character { .. }
                | Shape::Pointer { .. }
                | Shape::Reference { .. }
                | Shape::Enumeration { .. },
                Some(size @ 1..=16),
            ) => {
                let number = match self.scalar(operand, &value)? {
                    Scalar::Integer(number) => number,
                    Scalar::Float(number) => number as i128,
                };
                number.to_le_bytes()[..size as usize].to_vec()
            }
            _ => return Err(self.unfit("convert to that type", operand, &value)),
        };
        Ok(Value { module, ty, held: Held::constant(bytes) })
    }

    fn float(&self, number: f64) -> Value {
        self.made(TypeRef::Float(8), number.to_le_bytes().to_vec())
    }

    fn truth_value(&self, truth: bool) -> Value {
        self.made(TypeRef::INT, i32::from(truth).to_le_bytes().to_vec())
    }

    fn truth(&self, operand: &Expression, value: &Value) -> Result<bool, ValueError> {
        Ok(match self.scalar(operand, value)? {
            Scalar::Integer(number) => number != 0,
            Scalar::Float(number) => number != 0.0,
        })
    }

    fn scalar(&self, operand: &Expression, value: &Value) -> Result<Scalar, ValueError> {
        let found = self.scene.scalar(value).map_err(|why| lost(operand, why))?;
        found.ok_or_else(|| self.unfit("calculate with", operand, value))
    }

    fn number(&self, operand: &Expression, value: &Value) -> Result<i128, ValueError> {
        match self.scalar(operand, value)? {
            Scalar::Integer(number) => Ok(number),
            Scalar::Float(_) => Err(self.unfit("count with", operand, value)),
        }
    }

    fn whole(&self, expression: &Expression) -> Result<i128, ValueError> {
        let value = self.value(expression)?;
        self.number(expression, &value)
    }

    fn unfit(&self, operation: &'static str, operand: &Expression, value: &Value) -> ValueError {
        let of = self.scene.type_name(value.module, &value.ty);
        ValueError::Unfit { operation, operand: operand.to_string(), of }
    }
}

fn lost(operand: &Expression, why: Lost) -> ValueError {
    ValueError::Lost { operand: operand.to_string(), why }
}

/// Keeps a result in 64 bits, with or without a sign, as the processor would.
fn wrap(number: i128) -> i128 {
    if number < i128::from(i64::MIN) || number > i128::from(u64::MAX) {
        i128::from(number as i64)
    } else {
        number
    }
}

fn as_float(scalar: Scalar) -> f64 {
    match scalar {
        Scalar::Integer(number) => number as f64,
        Scalar::Float(number) => number,
    }
}

fn floats(operator: Binary, a: f64, b: f64) -> Option<Scalar> {
    let truth = |truth: bool| Some(Scalar::Integer(truth.into()));
    match operator {
        Binary::Add => Some(Scalar::Float(a + b)),
        Binary::Subtract => Some(Scalar::Float(a - b)),
        Binary::Multiply => Some(Scalar::Float(a * b)),
        Binary::Divide => Some(Scalar::Float(a / b)),
        Binary::Equal => truth(a == b),
        Binary::NotEqual => truth(a != b),
        Binary::Less => truth(a < b),
        Binary::LessEqual => truth(a <= b),
        Binary::Greater => truth(a > b),
        Binary::GreaterEqual => truth(a >= b),
        _ => None,
    }
}
