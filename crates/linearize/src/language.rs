//! The specification language: operations as sequences of atomic sub-operations.
//!
//! Text becomes tokens ([`lexer`]), a tree ([`ast`], [`parser`]), and after names and types are
//! checked ([`check`]; [`loops`] become paths) a [`crate::model::Program`]. [`printer`] prints a tree back.

pub mod ast;
pub mod check;
pub mod lexer;
pub mod loops;
pub mod parser;
pub mod printer;

use crate::model::Program;
use spec::{Diagnostics, Source};

/// Reads a specification; all errors of the text come together.
pub fn read(source: &Source) -> Result<Program, Diagnostics> {
    let mut errors = Diagnostics::default();
    let tree = parser::parse(source, &mut errors);
    if errors.len() > spec::diagnostic::SHOWN {
        // Garbage: what its pieces would mean is of no use to anyone.
        return Err(errors);
    }
    let program = check::check(&tree, source, &mut errors);
    if errors.is_empty() { Ok(program) } else { Err(errors) }
}
