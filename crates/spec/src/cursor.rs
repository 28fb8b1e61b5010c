//! A parser's view of the tokens: look ahead, take, expect, recover.
//!
//! Expectations that fail become one diagnostic at the place; the parser then skips to a place it
//! knows ([`Cursor::recover`]) and goes on, so that every error of a file is found.

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::lexer::{Token, TokenKind};
use crate::span::Span;

/// The tokens of a text and how far a parser has come.
pub struct Cursor<'a> {
    tokens: &'a [Token],
    at: usize,
    errors: &'a mut Diagnostics,
}

/// A construct could not be parsed; its error is already collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed;

/// What a parsing step gives.
pub type Parsed<T> = Result<T, Failed>;

impl<'a> Cursor<'a> {
    /// Stands at the first token. `tokens` must end with [`TokenKind::End`], as those of
    /// [`crate::lexer::lex`] do.
    #[must_use]
    pub fn new(tokens: &'a [Token], errors: &'a mut Diagnostics) -> Self {
        Self { tokens, at: 0, errors }
    }

    /// The token `ahead` places on; the end repeats for ever.
    #[must_use]
    pub fn peek(&self, ahead: usize) -> &'a TokenKind {
        &self.tokens[(self.at + ahead).min(self.tokens.len() - 1)].kind
    }

    /// The span of the next token.
    #[must_use]
    pub fn span(&self) -> Span {
        self.tokens[self.at].span
    }

    /// The span of the token before; the first token's if there is none.
    #[must_use]
    pub fn last_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    /// How many tokens were taken: grows whenever the parser makes progress.
    #[must_use]
    pub fn progress(&self) -> usize {
        self.at
    }

    /// Whether all is read.
    #[must_use]
    pub fn at_end(&self) -> bool {
        *self.peek(0) == TokenKind::End
    }

    /// Takes the next token, whatever it is; the end stays.
    pub fn skip(&mut self) {
        if !self.at_end() {
            self.at += 1;
        }
    }

    /// Whether the token `ahead` places on is this symbol.
    #[must_use]
    pub fn is_symbol(&self, ahead: usize, symbol: &str) -> bool {
        matches!(self.peek(ahead), TokenKind::Symbol(found) if *found == symbol)
    }

    /// Whether the token `ahead` places on is this word.
    #[must_use]
    pub fn is_word(&self, ahead: usize, word: &str) -> bool {
        matches!(self.peek(ahead), TokenKind::Word(found) if found == word)
    }

    /// Takes the symbol if it is next.
    pub fn eat_symbol(&mut self, symbol: &str) -> bool {
        let found = self.is_symbol(0, symbol);
        if found {
            self.skip();
        }
        found
    }

    /// Takes the word if it is next.
    pub fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(0, word);
        if found {
            self.skip();
        }
        found
    }

    /// Takes the symbol or reports that it was expected. `purpose` says why, as in
    /// "to end the statement".
    pub fn expect_symbol(&mut self, symbol: &str, purpose: &str) -> Parsed<Span> {
        let span = self.span();
        if self.eat_symbol(symbol) {
            return Ok(span);
        }
        Err(self.fail(&format!("`{symbol}` {purpose}")))
    }

    /// Takes a word or reports that `what` was expected.
    pub fn expect_word(&mut self, what: &str) -> Parsed<(String, Span)> {
        let span = self.span();
        if let TokenKind::Word(word) = self.peek(0) {
            self.skip();
            return Ok((word.clone(), span));
        }
        Err(self.fail(what))
    }

    /// Reports that `expected` should stand where the next token is.
    pub fn fail(&mut self, expected: &str) -> Failed {
        let found = self.peek(0).describe();
        // At the end there is nothing to point at; the last token is the better place.
        let span = if self.at_end() {
            Span::new(self.last_span().end, self.last_span().end)
        } else {
            self.span()
        };
        let message = format!("expected {expected}, found {found}");
        self.errors.push(Diagnostic::new(span, message, format!("expected {expected}")));
        Failed
    }

    /// Reports an error of the grammar that is not about the next token.
    pub fn error(&mut self, diagnostic: Diagnostic) {
        self.errors.push(diagnostic);
    }

    /// How many errors there are so far: tells whether a part was in order.
    #[must_use]
    pub fn errors(&self) -> usize {
        self.errors.len()
    }

    /// Skips tokens until one where `is_anchor` holds, or the end.
    pub fn recover(&mut self, is_anchor: impl Fn(&Self) -> bool) {
        while !self.at_end() && !is_anchor(self) {
            self.skip();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::{Language, lex};
    use crate::span::Source;

    const LANGUAGE: Language = Language { symbols: &[";"], hash_comments: false };

    #[test]
    fn a_failed_expectation_says_what_was_found_and_recovery_goes_on_behind_it() {
        let mut errors = Diagnostics::default();
        let tokens = lex(&Source::new("t", "a 1 ; b"), &LANGUAGE, &mut errors);
        let mut cursor = Cursor::new(&tokens, &mut errors);
        assert!(cursor.eat_word("a"));
        assert_eq!(cursor.expect_symbol(";", "to end it"), Err(Failed));
        cursor.recover(|cursor| cursor.is_symbol(0, ";"));
        assert!(cursor.eat_symbol(";"));
        assert_eq!(cursor.expect_word("a name").map(|(word, _)| word), Ok("b".to_owned()));
        assert_eq!(cursor.expect_word("a name"), Err(Failed));
        let messages: Vec<_> = errors.sorted().iter().map(|e| e.message.clone()).collect();
        let first = "expected `;` to end it, found `1`";
        assert_eq!(messages, [first, "expected a name, found the end of the file"]);
    }
}
