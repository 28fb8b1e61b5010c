//! A lexer for small languages: words, numbers, strings, and the symbols that a language lists.
//!
//! Blanks and comments (`// …`, `# …` where the language says so, `/* … */`) are skipped. Nothing
//! fails hard: what cannot be a token becomes an error and lexing goes on.

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::span::{Source, Span};

/// What a language's tokens look like.
#[derive(Clone, Copy, Debug)]
pub struct Language {
    /// The symbols, longest first where one begins another.
    pub symbols: &'static [&'static str],
    /// Whether `#` begins a comment that ends with the line.
    pub hash_comments: bool,
}

/// The kind of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A name or keyword: a letter or `_`, then letters, digits and `_`.
    Word(String),
    /// A whole number in decimal.
    Number(i64),
    /// A text in double quotes, with `\"`, `\\`, `\n` and `\t`.
    Text(String),
    /// One of the language's symbols.
    Symbol(&'static str),
    /// The end of the text.
    End,
}

impl TokenKind {
    /// The token as messages call it.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Word(word) => format!("`{word}`"),
            Self::Number(number) => format!("`{number}`"),
            Self::Text(_) => "a text".to_owned(),
            Self::Symbol(symbol) => format!("`{symbol}`"),
            Self::End => "the end of the file".to_owned(),
        }
    }
}

/// A token and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Where it is.
    pub span: Span,
}

/// The tokens of a text, ending with [`TokenKind::End`]; errors go to `errors`.
#[must_use]
pub fn lex(source: &Source, language: &Language, errors: &mut Diagnostics) -> Vec<Token> {
    let mut lexer = Lexer { text: source.text(), at: 0, language, errors };
    let mut tokens = Vec::new();
    while let Some(token) = lexer.next() {
        tokens.push(token);
    }
    let end = source.text().len();
    tokens.push(Token { kind: TokenKind::End, span: Span::new(end, end) });
    tokens
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    language: &'a Language,
    errors: &'a mut Diagnostics,
}

impl Lexer<'_> {
    fn next(&mut self) -> Option<Token> {
        loop {
            self.skip_blanks();
            let first = self.rest().chars().next()?;
            let start = self.at;
            let kind = match first {
                'a'..='z' | 'A'..='Z' | '_' => Some(self.word()),
                '0'..='9' => self.number(),
                '"' => self.quoted(),
                _ => self.symbol(),
            };
            match kind {
                Some(kind) => return Some(Token { kind, span: Span::new(start, self.at) }),
                None if self.at == start => self.garbage(),
                None => {}
            }
        }
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start().len();
            let line =
                rest.starts_with("//") || (self.language.hash_comments && rest.starts_with('#'));
            if blank > 0 {
                self.at += blank;
            } else if line {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                self.block_comment();
            } else {
                return;
            }
        }
    }

    fn block_comment(&mut self) {
        let start = self.at;
        if let Some(length) = self.rest()[2..].find("*/") {
            self.at += length + 4;
        } else {
            self.at = self.text.len();
            let message = "a comment is never closed";
            self.error(Span::new(start, start + 2), message, "expected a `*/` after this");
        }
    }

    fn word(&mut self) -> TokenKind {
        TokenKind::Word(self.take(|c| c.is_ascii_alphanumeric() || c == '_'))
    }

    fn number(&mut self) -> Option<TokenKind> {
        let start = self.at;
        let digits = self.take(|c| c.is_ascii_alphanumeric() || c == '_');
        let number = digits.parse().ok();
        if number.is_none() {
            let span = Span::new(start, self.at);
            self.error(span, "not a number", "expected decimal digits that fit 64 bits");
        }
        number.map(TokenKind::Number)
    }

    fn quoted(&mut self) -> Option<TokenKind> {
        let start = self.at;
        let mut value = String::new();
        let mut characters = self.text[start + 1..].char_indices();
        while let Some((offset, character)) = characters.next() {
            match character {
                '"' => {
                    self.at = start + 1 + offset + 1;
                    return Some(TokenKind::Text(value));
                }
                '\n' => break,
                '\\' => value.push(match characters.next() {
                    Some((_, 'n')) => '\n',
                    Some((_, 't')) => '\t',
                    Some((_, other)) => other,
                    None => break,
                }),
                other => value.push(other),
            }
        }
        self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        let span = Span::new(start, start + 1);
        self.error(span, "a text is never closed", "expected a closing `\"` on this line");
        None
    }

    fn symbol(&mut self) -> Option<TokenKind> {
        let symbol =
            *self.language.symbols.iter().find(|symbol| self.rest().starts_with(**symbol))?;
        self.at += symbol.len();
        Some(TokenKind::Symbol(symbol))
    }

    /// Skips a run of characters that begin no token, as one error.
    fn garbage(&mut self) {
        let start = self.at;
        for character in self.text[start..].chars() {
            let begins = character.is_ascii_alphanumeric()
                || character.is_whitespace()
                || matches!(character, '_' | '"')
                || self.language.symbols.iter().any(|symbol| self.rest().starts_with(symbol));
            if begins && self.at > start {
                break;
            }
            self.at += character.len_utf8();
        }
        let span = Span::new(start, self.at);
        self.error(span, "these characters mean nothing here", "expected a name, number or symbol");
    }

    fn take(&mut self, belongs: impl Fn(char) -> bool) -> String {
        let rest = self.rest();
        let length = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        let taken = rest[..length].to_owned();
        self.at += length;
        taken
    }

    fn error(&mut self, span: Span, message: &str, label: &str) {
        self.errors.push(Diagnostic::new(span, message, label));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LANGUAGE: Language = Language { symbols: &["<=", "<", "="], hash_comments: true };

    fn kinds(text: &str) -> (Vec<TokenKind>, usize) {
        let mut errors = Diagnostics::default();
        let tokens = lex(&Source::new("t", text), &LANGUAGE, &mut errors);
        (tokens.into_iter().map(|token| token.kind).collect(), errors.len())
    }

    #[test]
    fn the_longest_symbol_wins_and_comments_vanish() {
        use TokenKind::{End, Number, Symbol, Word};
        let (found, errors) = kinds("a<=12 // x\n# y\n/* z */ < b");
        let word = |text: &str| Word(text.to_owned());
        assert_eq!(found, [word("a"), Symbol("<="), Number(12), Symbol("<"), word("b"), End]);
        assert_eq!(errors, 0);
    }

    #[test]
    fn texts_know_their_escapes() {
        assert_eq!(kinds(r#""a\"\n\\""#).0[0], TokenKind::Text("a\"\n\\".to_owned()));
    }

    #[test]
    fn every_fault_is_reported_and_lexing_goes_on() {
        for (text, faults) in [("a $$ b", 1), ("1x 2", 1), ("\"a\nb", 1), ("/* a", 1), ("@ a @", 2)]
        {
            let (found, errors) = kinds(text);
            assert_eq!(errors, faults, "{text}");
            assert_eq!(found.last(), Some(&TokenKind::End));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_covered_by_tokens_in_order(text in "\\PC*") {
            let mut errors = Diagnostics::default();
            let tokens = lex(&Source::new("t", text.clone()), &LANGUAGE, &mut errors);
            let mut at = 0;
            for token in &tokens {
                prop_assert!(token.span.start >= at && token.span.end <= text.len());
                at = token.span.end;
            }
        }
    }
}
