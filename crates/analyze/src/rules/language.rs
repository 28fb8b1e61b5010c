//! The rule language: `<detection point; bug condition; locator>` over an abstract machine.
//!
//! Text becomes tokens ([`lexer`]), a tree ([`ast`], [`parser`]), and after names and types are
//! checked and definitions put in ([`check`]) rules of [`super::model`]. [`printer`] prints a tree.

pub mod ast;
pub mod check;
pub mod lexer;
pub mod parser;
pub mod printer;

use super::model::Rule;
use spec::{Diagnostics, Source};

/// Reads a rule file; all errors of the text come together.
pub fn read(source: &Source) -> Result<Vec<Rule>, Diagnostics> {
    let mut errors = Diagnostics::default();
    let tree = parser::parse(source, &mut errors);
    if errors.len() > spec::diagnostic::SHOWN {
        // Garbage: what its pieces would mean is of no use to anyone.
        return Err(errors);
    }
    let rules = check::check(&tree, &mut errors);
    if errors.is_empty() { Ok(rules) } else { Err(errors) }
}
