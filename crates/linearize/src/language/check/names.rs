//! Messages about names: what is unknown, and what was probably meant.

use crate::language::ast::{Name, Path};
use spec::Diagnostic;

/// An error for a name that is not among `known`, with the nearest one suggested.
pub fn unknown<'a>(what: &str, name: &Name, known: impl Iterator<Item = &'a str>) -> Diagnostic {
    let nearest = known
        .map(|known| (distance(&name.text, known), known))
        .filter(|&(far, known)| far <= known.len().max(name.text.len()) / 3 + 1)
        .min();
    let message = format!("unknown {what} `{}`", name.text);
    let diagnostic = Diagnostic::new(name.span, message, format!("expected a known {what}"));
    match nearest {
        Some((_, nearest)) => diagnostic.help(format!("did you mean `{nearest}`?")),
        None => diagnostic,
    }
}

/// A path as it was written, without its index.
pub fn path(path: &Path) -> String {
    let fields: String = path.fields.iter().map(|field| format!(".{}", field.text)).collect();
    path.root.text.clone() + &fields
}

/// How many letters must be changed, added or dropped. Long names are cut: they are garbage.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().take(40).collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, from) in left.chars().take(40).enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, to) in right.iter().enumerate() {
            let change = diagonal + usize::from(from != *to);
            diagonal = row[column + 1];
            row[column + 1] = change.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_edits() {
        for (left, right, edits) in
            [("", "", 0), ("abc", "abd", 1), ("tail", "tial", 2), ("", "ab", 2)]
        {
            assert_eq!(distance(left, right), edits, "{left} {right}");
        }
    }
}
