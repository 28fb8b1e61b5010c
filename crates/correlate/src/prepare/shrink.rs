//! Shorter text for the parser: without what the pass at hand does not need.
//!
//! A parser spends as much on a blank as on a letter, and prepared text is full of blanks:
//! indentation, comments, directives. Only lines have to stay true; columns are never used.

use super::lexical::{blank, quoted_end};
use std::ops::Range;

/// What a pass wants of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// What other functions can see. Bodies of functions and initial values are left out, and lines
    /// do not stay.
    Declarations,
    /// What functions do. Initial values at file scope are left out: tables of devices and
    /// callbacks, often the larger part of a driver.
    Functions,
}

/// Leaves out of prepared text what is not wanted.
pub fn shrink(text: &mut Vec<u8>, wanted: Wanted) {
    for span in unwanted(text, wanted) {
        blank(&mut text[span]);
    }
    squeeze(text, wanted == Wanted::Functions);
}

/// The insides of the braces that hold nothing of interest. A brace that starts a line closes all
/// that are open, whatever the count says: that is how people find their way in code with
/// unbalanced braces, too. What is never closed stays.
fn unwanted(text: &[u8], wanted: Wanted) -> Vec<Range<usize>> {
    let mut spans: Vec<Range<usize>> = Vec::new();
    let mut open: Vec<Option<usize>> = Vec::new();
    let (mut at, mut before) = (0, b' ');
    while let Some(&byte) = text.get(at) {
        match byte {
            b'{' => {
                let is_unwanted = match wanted {
                    Wanted::Declarations => matches!(before, b')' | b'='),
                    Wanted::Functions => before == b'=' && open.is_empty(),
                };
                open.push(is_unwanted.then_some(at + 1));
            }
            b'}' => {
                let starts_line = at > 0 && text[at - 1] == b'\n';
                let closed = if starts_line { 0 } else { open.len().saturating_sub(1) };
                // The outermost of those closed holds the others.
                if let Some(start) = open.drain(closed..).flatten().next() {
                    let outside = spans.partition_point(|span| span.end < start);
                    spans.truncate(outside);
                    spans.push(start..at);
                }
            }
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            before = byte;
        }
        at = if matches!(byte, b'"' | b'\'') { quoted_end(text, at) } else { at + 1 };
    }
    spans
}

/// Puts one blank in the place of many, and none at the ends of a line.
fn squeeze(text: &mut Vec<u8>, keep_lines: bool) {
    let is_blank = |byte: u8| byte.is_ascii_whitespace() && !(keep_lines && byte == b'\n');
    let (mut length, mut before) = (0, b'\n');
    for at in 0..text.len() {
        let byte = text[at];
        if is_blank(byte) {
            if !before.is_ascii_whitespace() {
                text[length] = b' ';
                length += 1;
                before = b' ';
            }
            continue;
        }
        if byte == b'\n' && before == b' ' {
            length -= 1;
        }
        text[length] = byte;
        length += 1;
        before = byte;
    }
    text.truncate(length);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rows: &[(&str, &str)], wanted: Wanted) {
        for (input, expected) in rows {
            let mut text = input.as_bytes().to_vec();
            shrink(&mut text, wanted);
            assert_eq!(String::from_utf8_lossy(&text), *expected, "for {input:?}");
        }
    }

    #[test]
    fn bodies_go_and_declarations_stay() {
        check(
            &[
                ("int f(void) { if (x) { y; } } int z;", "int f(void) { } int z;"),
                (
                    "int a[] = { 1, {2} };\n\nstruct s { int b; };",
                    "int a[] = { }; struct s { int b; };",
                ),
                ("f(c) { '}'; \"}\"; }", "f(c) { }"),
                ("f(void)\n{ {\n}\nint z;", "f(void) { } int z;"),
                ("f(void) { {", "f(void) { {"),
                ("f(void) { if (x) { y; } struct", "f(void) { if (x) { } struct"),
                ("class c { f() { x; } int y; };", "class c { f() { } int y; };"),
            ],
            Wanted::Declarations,
        );
    }

    #[test]
    fn lines_and_functions_stay() {
        check(
            &[
                ("  int\tx ;  \n\n   y;\n", "int x ;\n\ny;\n"),
                ("int a[] = {\n 1,\n {2} };\nf() { x; }", "int a[] = {\n\n};\nf() { x; }"),
                ("f() { struct s x = { y }; }", "f() { struct s x = { y }; }"),
                ("f() { { if\n}\nint a[] = { 1 };", "f() { { if\n}\nint a[] = { };"),
            ],
            Wanted::Functions,
        );
    }

    #[test]
    fn what_is_never_closed_costs_no_more() {
        // Looking for each closing brace anew would take 10^12 steps.
        let mut text = "f(){".repeat(1_000_000).into_bytes();
        shrink(&mut text, Wanted::Declarations);
        assert_eq!(text.len(), 4_000_000);
    }
}
