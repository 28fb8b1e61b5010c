//! Colour and width of text. Who has a terminal says what it wants; for everybody else text is plain.

/// Columns that lines are fitted to where nobody is looking.
const COLUMNS: usize = 100;
/// A terminal that is narrower than this is scrolled sideways.
const NARROWEST: usize = 60;

/// Whether and how text is marked, and how wide it may be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Style {
    colour: bool,
    /// Columns of a line.
    pub columns: usize,
}

impl Style {
    /// Text as it is.
    pub const PLAIN: Self = Self { colour: false, columns: COLUMNS };

    /// For a terminal with so many columns.
    #[must_use]
    pub fn of_terminal(colour: bool, columns: Option<usize>) -> Self {
        let columns = columns.filter(|columns| *columns > 0);
        Self { colour, columns: columns.map_or(COLUMNS, |columns| columns.max(NARROWEST)) }
    }

    /// Whether anything is marked.
    #[must_use]
    pub fn is_coloured(self) -> bool {
        self.colour
    }

    /// What a reader should see first.
    #[must_use]
    pub fn strong(self, text: &str) -> String {
        self.marked("1", text)
    }

    /// What went wrong.
    #[must_use]
    pub fn alarm(self, text: &str) -> String {
        self.marked("1;31", text)
    }

    /// What is there for completeness.
    #[must_use]
    pub fn faint(self, text: &str) -> String {
        self.marked("2", text)
    }

    /// Text in a colour, by the number that terminals know it by.
    #[must_use]
    pub fn marked(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::Style;

    #[test]
    fn plain_text_stays_plain() {
        assert_eq!(Style::PLAIN.alarm("x"), "x");
        assert_eq!(Style { colour: true, ..Style::PLAIN }.strong("x"), "\x1b[1mx\x1b[0m");
    }
}
