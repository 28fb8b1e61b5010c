//! Where in a source text: spans of bytes, and the lines and columns a reader counts in.

use std::ops::Range;

/// A half-open range of bytes of one source text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// First byte past the end.
    pub end: usize,
}

impl Span {
    /// The span from `start` up to `end`.
    #[must_use]
    pub fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// The smallest span that covers both.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// The span as a range, for slicing.
    #[must_use]
    pub fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

/// A line and a column, both from 1; the column counts characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// A named source text with its lines found once.
#[derive(Clone, Debug)]
pub struct Source {
    name: String,
    text: String,
    line_starts: Vec<usize>,
}

impl Source {
    /// Takes a text and the name that messages give it.
    #[must_use]
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let newlines = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let line_starts = std::iter::once(0).chain(newlines.map(|(at, _)| at + 1)).collect();
        Self { name: name.into(), text, line_starts }
    }

    /// The name that messages give the text.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text of a span; empty if the span is not one of this text.
    #[must_use]
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or_default()
    }

    /// The line and column of a byte; a byte past the end is the end.
    #[must_use]
    pub fn position(&self, byte: usize) -> Position {
        let byte = byte.min(self.text.len());
        let line = self.line_starts.partition_point(|&start| start <= byte);
        let start = self.line_starts[line - 1];
        let before = self.text.as_bytes()[start..byte].iter();
        // Continuation bytes of UTF-8 do not begin a character.
        let column = 1 + before.filter(|&&byte| byte & 0xc0 != 0x80).count();
        Position { line, column }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let source = Source::new("t", "ab\ncä d\n");
        let cases = [
            (0, (1, 1)),
            (2, (1, 3)),
            (3, (2, 1)),
            (6, (2, 3)),
            (8, (2, 5)),
            (9, (3, 1)),
            (99, (3, 1)),
        ];
        for (byte, (line, column)) in cases {
            assert_eq!(source.position(byte), Position { line, column }, "byte {byte}");
        }
    }

    #[test]
    fn a_span_of_another_text_slices_to_nothing() {
        assert_eq!(Source::new("t", "abc").slice(Span::new(2, 9)), "");
    }
}
