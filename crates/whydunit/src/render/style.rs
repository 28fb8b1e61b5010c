//! Colour, where a person is looking: on a terminal, unless `NO_COLOR` is set.

use std::io::IsTerminal;

/// Whether and how text is marked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Style {
    colour: bool,
}

impl Style {
    /// Text as it is.
    pub const PLAIN: Self = Self { colour: false };

    /// For what goes to `stream`.
    pub fn of(stream: &impl IsTerminal) -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { colour: stream.is_terminal() && !refused }
    }

    /// What a reader should see first.
    pub fn strong(self, text: &str) -> String {
        self.marked("1", text)
    }

    /// What went wrong.
    pub fn alarm(self, text: &str) -> String {
        self.marked("1;31", text)
    }

    /// What is there for completeness.
    pub fn faint(self, text: &str) -> String {
        self.marked("2", text)
    }

    fn marked(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::Style;

    #[test]
    fn plain_text_stays_plain() {
        assert_eq!(Style::PLAIN.alarm("x"), "x");
        assert_eq!(Style { colour: true }.strong("x"), "\x1b[1mx\x1b[0m");
    }
}
