//! Prints a syntax tree back as text: lines at an indentation.

/// Text that grows line by line at the current indentation.
#[derive(Clone, Debug, Default)]
pub struct Printer {
    text: String,
    depth: usize,
}

impl Printer {
    /// Adds one line, indented; an empty one is left without blanks.
    pub fn line(&mut self, line: impl AsRef<str>) {
        let line = line.as_ref();
        if !line.is_empty() {
            self.text.push_str(&"    ".repeat(self.depth));
            self.text.push_str(line);
        }
        self.text.push('\n');
    }

    /// Prints what `inner` prints one step further in.
    pub fn indented(&mut self, inner: impl FnOnce(&mut Self)) {
        self.depth += 1;
        inner(self);
        self.depth -= 1;
    }

    /// The text so far.
    #[must_use]
    pub fn finish(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_indented_and_empty_ones_are_empty() {
        let mut printer = Printer::default();
        printer.line("a");
        printer.indented(|inner| {
            inner.line("b");
            inner.line("");
        });
        printer.line("c");
        assert_eq!(printer.finish(), "a\n    b\n\nc\n");
    }
}
