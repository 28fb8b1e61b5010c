//! Findings that the user has accepted, one by one and with a reason: a comment in the source, or a
//! line of a file.

use crate::Analysis;
use crate::violations::Violation;
use std::fmt;

/// A line of a suppression file: `FILE FUNCTION VARIABLE REASON`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    file: String,
    function: String,
    variable: String,
    /// Why.
    pub reason: String,
}

/// A line of a suppression file that lacks a part.
#[derive(Debug, PartialEq, Eq)]
pub struct BadSuppression {
    line: usize,
}

impl fmt::Display for BadSuppression {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "line {}: needs FILE FUNCTION VARIABLE REASON", self.line)
    }
}

impl std::error::Error for BadSuppression {}

/// Reads a suppression file.
pub fn read(text: &str) -> Result<Vec<Accepted>, BadSuppression> {
    let lines = text.lines().enumerate();
    let meant = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    meant
        .map(|(index, line)| {
            let mut words = line.splitn(4, char::is_whitespace).map(|it| it.trim().to_string());
            let mut word = || words.next().filter(|word| !word.is_empty());
            let accepted = (|| {
                Some(Accepted {
                    file: word()?,
                    function: word()?,
                    variable: word()?,
                    reason: word()?,
                })
            })();
            accepted.ok_or(BadSuppression { line: index + 1 })
        })
        .collect()
}

impl Analysis {
    /// Drops the violations that a comment or a file entry accepts; returns how many.
    pub fn suppress(&mut self, accepted: &[Accepted]) -> usize {
        let before = self.violations.len();
        let violations = std::mem::take(&mut self.violations);
        self.violations = violations
            .into_iter()
            .filter(|it| !self.is_commented(it) && !self.is_listed(it, accepted))
            .collect();
        before - self.violations.len()
    }

    /// A comment counts on the line of the write or on the line above it.
    fn is_commented(&self, violation: &Violation) -> bool {
        let file = self.tree.functions[violation.function as usize].file;
        let missing = self.graph.shown(&self.tree, violation.missing);
        self.tree.suppressions.iter().any(|(in_file, comment)| {
            let is_near = |line: u32| comment.line == line || comment.line + 1 == line;
            *in_file == file
                && comment.variable == missing
                && violation.broken.iter().any(|(_, line)| is_near(*line))
        })
    }

    fn is_listed(&self, violation: &Violation, accepted: &[Accepted]) -> bool {
        accepted.iter().any(|it| {
            it.file == self.path_of(violation.function)
                && it.function == self.function_name(violation.function)
                && it.variable == self.graph.shown(&self.tree, violation.missing)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suppression_needs_a_reason() {
        let text = "# accepted\n\na.c f S::len counted by the caller\n";
        let read = read(text).expect("well formed");
        assert_eq!(read[0].reason, "counted by the caller");
        assert_eq!(super::read("a.c f S::len"), Err(BadSuppression { line: 1 }));
    }
}
