//! The statements of an explanation as a reader sees them: each with the values of what stands in it.
//!
//! What a statement reads is shown as it was before it, what it assigns as it was behind it. The expressions
//! are those of its line of source: members and elements as they are written there, so that a reader who
//! looks at the line finds them.

use crate::sight::{self, Sight};
use crate::slicing::Execution;
use analyze::slice::view::Statement;
use base::Position;
use serde::Serialize;
use symbols::Level;

/// Expressions shown of one statement.
const MOST_VALUES: usize = 4;

/// Values in a statement: (expression, value).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Values(pub Vec<(String, String)>);

/// The values of statements, in their order. `moments` says when each was executed, `source` has its line.
pub fn values(
    execution: &Execution,
    sight: &mut Sight<'_>,
    statements: &[Statement],
    source: &dyn Fn(&Statement) -> Option<String>,
) -> Vec<Values> {
    statements
        .iter()
        .map(|statement| {
            let found = source(statement).map(|line| expressions(&line)).unwrap_or_default();
            // What cannot be looked at has no values; the statement is shown all the same.
            of_statement(execution, sight, statement, &found).unwrap_or_default()
        })
        .collect()
}

fn of_statement(
    execution: &Execution,
    sight: &mut Sight<'_>,
    statement: &Statement,
    found: &[Expression],
) -> Option<Values> {
    let position = statement.position?;
    let mut values = shown(sight, statement, position, found.iter().filter(|one| !one.assigned));
    if found.iter().any(|one| one.assigned) {
        let after = execution.trace.position(base::StepCount(statement.moment + 1));
        let assigned = after
            .map(|after| shown(sight, statement, after, found.iter().filter(|one| one.assigned)));
        values.splice(0..0, assigned.unwrap_or_default());
    }
    values.truncate(MOST_VALUES);
    Some(Values(values))
}

fn shown<'e>(
    sight: &mut Sight<'_>,
    statement: &Statement,
    position: Position,
    expressions: impl Iterator<Item = &'e Expression>,
) -> Vec<(String, String)> {
    let Ok(Some(standing)) = sight.at(position) else { return Vec::new() };
    let look = |scene: &symbols::Scene<'_>| {
        let level = sight::level_at(scene, &statement.place)?;
        let value = |one: &Expression| nearest(scene, level, &one.text);
        Some(expressions.filter_map(value).collect())
    };
    sight.look(&standing, look).ok().flatten().unwrap_or_default()
}

/// The value of an expression or, if it leads nowhere, of what it leads through: of `p->next->name` that of
/// `p->next`.
fn nearest(scene: &symbols::Scene<'_>, level: Level, text: &str) -> Option<(String, String)> {
    let mut text = text;
    loop {
        if let Some(value) = sight::value(scene, level, text) {
            return Some((text.to_owned(), value));
        }
        text = text[..text.rfind(['.', '-', '['])?].trim_end();
    }
}

/// An expression in a line of source.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Expression {
    text: String,
    assigned: bool,
}

/// Words that are no variables in C, C++ or Rust.
const KEYWORDS: [&str; 48] = [
    "if", "else", "while", "for", "do", "return", "break", "continue", "switch", "case", "default",
    "goto", "sizeof", "static", "const", "struct", "union", "enum", "typedef", "unsigned",
    "signed", "int", "char", "long", "short", "void", "float", "double", "bool", "auto", "let",
    "mut", "fn", "pub", "match", "in", "ref", "as", "use", "impl", "new", "delete", "throw", "try",
    "catch", "NULL", "true", "false",
];

/// The variables, members and elements in a line of source, in their order, each once.
fn expressions(line: &str) -> Vec<Expression> {
    let code = without_text(line);
    let bytes = code.as_bytes();
    let mut found: Vec<Expression> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let starts = bytes[at].is_ascii_alphabetic() || bytes[at] == b'_';
        if !starts {
            // A number, and whatever letters stand in it, is no name.
            if bytes[at].is_ascii_digit() {
                at += word(&bytes[at..]).max(1);
            } else {
                at += 1;
            }
            continue;
        }
        let length = chain(&bytes[at..]);
        let text = &code[at..at + length];
        let rest = code[at + length..].trim_start();
        let first = &text[..word(text.as_bytes())];
        let called =
            rest.starts_with(['(', '!']) && !rest.starts_with("!=") || rest.starts_with("::");
        let typed = rest.starts_with(|next: char| next.is_alphabetic() || next == '_')
            && !rest.starts_with("in ")
            && !rest.starts_with("as ");
        if length > 0 && !called && !typed && !KEYWORDS.contains(&first) {
            let assigned = is_assigned(rest);
            match found.iter_mut().find(|known| known.text == text) {
                Some(known) => known.assigned |= assigned,
                None => found.push(Expression { text: text.to_owned(), assigned }),
            }
        }
        at += length.max(word(&bytes[at..])).max(1);
    }
    found
}

fn is_assigned(rest: &str) -> bool {
    let compound = ["+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "++", "--"];
    compound.iter().any(|sign| rest.starts_with(sign))
        || rest.starts_with('=') && !rest.starts_with("==") && !rest.starts_with("=>")
}

/// Length of a name.
fn word(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count()
}

/// Length of a name with the members and elements behind it; a method that is called is not part of it.
fn chain(bytes: &[u8]) -> usize {
    let mut end = word(bytes);
    loop {
        let rest = &bytes[end..];
        let link = match rest {
            [b'-', b'>', ..] => 2,
            [b'.', next, ..] if *next != b'.' => 1,
            [b'[', ..] => match closing(rest) {
                Some(length) => {
                    end += length;
                    continue;
                }
                None => return end,
            },
            _ => return end,
        };
        let name = word(&rest[link..]);
        if name == 0 || rest[link + name..].first() == Some(&b'(') {
            return end;
        }
        end += link + name;
    }
}

/// Length of an index in brackets that calls nothing and changes nothing.
fn closing(bytes: &[u8]) -> Option<usize> {
    let mut depth = 0;
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' if depth == 1 => return Some(at + 1),
            b']' => depth -= 1,
            b'(' | b'=' | b';' => return None,
            b'+' | b'-' if bytes.get(at + 1) == Some(byte) => return None,
            _ => {}
        }
    }
    None
}

/// A line without what stands in quotes and comments.
fn without_text(line: &str) -> String {
    let mut out = String::new();
    let (mut quote, mut escaped) = (None, false);
    let mut rest = line.chars().peekable();
    while let Some(letter) = rest.next() {
        match quote {
            Some(end) => {
                if !escaped && letter == end {
                    quote = None;
                }
                escaped = !escaped && letter == '\\';
                out.push(' ');
            }
            None if letter == '"' => {
                quote = Some('"');
                out.push(' ');
            }
            // A lifetime of Rust has no second quote close by.
            None if letter == '\'' && is_character(rest.clone()) => {
                quote = Some('\'');
                out.push(' ');
            }
            None if letter == '/' && matches!(rest.peek(), Some('/' | '*')) => break,
            None if letter.is_ascii() => out.push(letter),
            None => out.push(' '),
        }
    }
    out
}

fn is_character(mut rest: impl Iterator<Item = char>) -> bool {
    match rest.next() {
        Some('\\') => true,
        Some(_) => rest.next() == Some('\''),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, reads: &[&str], assigned: &[&str]) {
        let found = expressions(line);
        let named = |wanted: bool| -> Vec<&str> {
            let those = found.iter().filter(|one| one.assigned == wanted);
            those.map(|one| one.text.as_str()).collect()
        };
        assert_eq!((named(false), named(true)), (reads.to_vec(), assigned.to_vec()), "{line}");
    }

    #[test]
    fn the_variables_of_a_line_are_found() {
        check("if (m > n) die(\"too many\");", &["m", "n"], &[]);
        check(
            "total += items[i].qty * price->unit; // sum",
            &["items[i].qty", "price->unit"],
            &["total"],
        );
        check("while (l) { s+=l->v; l=l->next; }", &["l->v", "l->next"], &["l", "s"]);
        check("return find(map, key).unwrap()", &["map", "key"], &[]);
        check("if key.len() > 3 && c != 'x' {", &["key", "c"], &[]);
        check("int x = 0x1f + a[f(1)];", &["a"], &["x"]);
        check("for (i = 0; i <= n; i++)", &["n"], &["i"]);
        check("let y: &'a str = x;", &["y", "x"], &["str"]);
    }
}
