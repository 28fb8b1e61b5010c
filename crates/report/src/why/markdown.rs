//! The same as Markdown, for a bug report: the sentence as its title, the rest as it stands on a terminal, and
//! what was run.

use super::text;
use crate::style::Style;
use investigate::Diagnosis;

/// A section of a bug report.
pub fn render(diagnosis: &Diagnosis, command: &str, further: &str) -> String {
    let told = text(diagnosis, further, Style::PLAIN);
    let (title, rest) = told.split_once('\n').unwrap_or((&told, ""));
    // A fence that is longer than any in what it holds.
    let longest = rest.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!(
        "### {}\n\n- command: `{}`\n- class: `{}`\n- fingerprint: `{}`\n\n{fence}text\n{}\n{fence}\n",
        title.replace('`', "'"),
        command.replace('`', "'"),
        diagnosis.class.name(),
        diagnosis.fingerprint(),
        rest.trim_end(),
    )
}
