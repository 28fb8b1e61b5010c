//! What the small languages of Whydunit share: spans, a lexer, diagnostics that point at the text,
//! and an indenting printer.
//!
//! A language brings its own grammar and meaning; this crate knows neither. Its parts:
//! - [`span`]: a range of bytes of one source text, and the text's lines;
//! - [`lexer`]: words, numbers, strings and the symbols that a language lists;
//! - [`cursor`]: a parser's view of the tokens, with recovery;
//! - [`diagnostic`]: errors collected, sorted, and rendered with line, column and caret;
//! - [`printer`]: indented output for printing a syntax tree back.
#![forbid(unsafe_code)]

pub mod cursor;
pub mod diagnostic;
pub mod lexer;
pub mod printer;
pub mod span;

pub use cursor::Cursor;
pub use diagnostic::{Diagnostic, Diagnostics};
pub use lexer::{Language, Token, TokenKind, lex};
pub use printer::Printer;
pub use span::{Position, Source, Span};
