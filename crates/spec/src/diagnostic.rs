//! Errors that point at the text: collected all together, shown in the order of the text, with
//! line, column, caret and a sentence that says what was expected.

use crate::span::{Source, Span};
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use std::fmt::Write as _;

/// How many errors are shown in full; a file of garbage has more than anyone reads.
pub const SHOWN: usize = 100;

/// How much of a long line is shown on either side of the place.
const CONTEXT: usize = 120;

/// One error of a source text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// What is wrong, as one line without a full stop.
    pub message: String,
    /// Where.
    pub span: Span,
    /// What stands under the caret: what was expected there, or why it is wrong.
    pub label: String,
    /// What to write instead, if that is known.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error at `span`; `label` is shown under the caret.
    #[must_use]
    pub fn new(span: Span, message: impl Into<String>, label: impl Into<String>) -> Self {
        Self { message: message.into(), span, label: label.into(), help: None }
    }

    /// The same error with advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// The errors of one source text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// Adds an error.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.0.push(diagnostic);
    }

    /// Adds all errors of another collection.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many errors there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The errors in the order of the text.
    #[must_use]
    pub fn sorted(&self) -> Vec<&Diagnostic> {
        let mut all: Vec<_> = self.0.iter().collect();
        all.sort_by_key(|diagnostic| diagnostic.span);
        all
    }

    /// The errors as text for a reader, at most [`SHOWN`] of them and a count of the rest.
    #[must_use]
    pub fn render(&self, source: &Source, colour: bool) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let mut out = String::new();
        for diagnostic in self.sorted().into_iter().take(SHOWN) {
            out.push_str(&render_one(&renderer, diagnostic, source));
            out.push_str("\n\n");
        }
        if self.len() > SHOWN {
            let _ = writeln!(out, "… and {} more errors", self.len() - SHOWN);
        }
        out
    }
}

/// Renders one error. Only the neighbourhood of the place is handed to the renderer, so that a
/// line of a megabyte costs no more than a short one.
fn render_one(renderer: &Renderer, diagnostic: &Diagnostic, source: &Source) -> String {
    let text = source.text();
    let start = boundary(text, diagnostic.span.start.min(text.len()));
    let end = boundary(text, diagnostic.span.end.clamp(start, text.len()));
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let from = line_start.max(boundary(text, start.saturating_sub(CONTEXT)));
    let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let to = line_end.min(boundary(text, start + CONTEXT)).max(start);
    let end = end.min(to).max(start);
    let position = source.position(start);
    let shown = &text[from..to];
    let at = start - from..(end - from).max(start - from);
    let snippet = Snippet::source(shown)
        .line_start(position.line)
        .annotation(AnnotationKind::Primary.span(at).label(diagnostic.label.as_str()));
    let mut group = Level::ERROR.primary_title(diagnostic.message.as_str()).element(snippet);
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    let place = format!("{}:{}:{}: ", source.name(), position.line, position.column);
    place + &renderer.render(&[group])
}

/// The nearest character boundary at or before `byte`.
fn boundary(text: &str, byte: usize) -> usize {
    let mut byte = byte.min(text.len());
    while !text.is_char_boundary(byte) {
        byte -= 1;
    }
    byte
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(text: &str, span: Span) -> String {
        let mut diagnostics = Diagnostics::default();
        diagnostics.push(Diagnostic::new(span, "wrong", "here").help("write it right"));
        diagnostics.render(&Source::new("t.lin", text), false)
    }

    #[test]
    fn an_error_shows_line_column_caret_and_advice() {
        let shown = render("one\ntwo x\n", Span::new(8, 9));
        for part in ["t.lin:2:5: ", "error: wrong", "two x", "^ here", "write it right"] {
            assert!(shown.contains(part), "{part:?} is missing from\n{shown}");
        }
    }

    #[test]
    fn a_very_long_line_is_cut() {
        let text = "x".repeat(1 << 20);
        assert!(render(&text, Span::new(500_000, 500_003)).len() < 1000);
    }

    #[test]
    fn the_end_of_the_text_and_spans_outside_it_can_be_pointed_at() {
        for span in [Span::new(3, 3), Span::new(3, 9), Span::new(50, 60)] {
            assert!(render("abc", span).contains("wrong"));
        }
        assert!(render("", Span::new(0, 0)).contains("wrong"));
    }

    #[test]
    fn errors_come_in_the_order_of_the_text_and_the_rest_are_counted() {
        let mut diagnostics = Diagnostics::default();
        for at in (0..SHOWN + 5).rev() {
            diagnostics.push(Diagnostic::new(Span::new(at, at + 1), format!("e{at}"), ""));
        }
        let text = "y".repeat(SHOWN + 5);
        let shown = diagnostics.render(&Source::new("t", text), false);
        assert!(shown.find("e0\n") < shown.find("e1\n"));
        assert!(shown.ends_with("… and 5 more errors\n"));
    }
}
