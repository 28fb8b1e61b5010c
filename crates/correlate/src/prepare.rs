//! Makes source text palatable to a grammar that knows no preprocessor, without moving a byte.
//!
//! A tree need not build here, so nothing can be preprocessed. Instead everything that a C grammar
//! stumbles over is overwritten with blanks of the same length: comments, directives, alternatives
//! of a conditional that are not whole statements, attribute macros. Lines and columns stay true.
//!
//! The same scan reports what the directives said: macro definitions, includes, and suppressions.

use crate::sources::Language;
use rustc_hash::FxHashMap;

/// What to do with an identifier wherever it stands in code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rewrite {
    /// An attribute: blank the word, and the parenthesis after it if there is one.
    Blank,
    /// A macro call that opens a declaration: put these words in its place.
    Open(&'static str),
}

/// Identifiers to rewrite.
pub type Rewrites = FxHashMap<Box<str>, Rewrite>;

/// A `#define`, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Define {
    /// The name.
    pub name: String,
    /// Parameter names, or none if it takes no argument list.
    pub parameters: Option<Vec<String>>,
    /// The replacement, comments and line ends removed.
    pub body: String,
    /// Line of the directive, from 1.
    pub line: u32,
}

/// A comment that silences one finding: `whydunit:ignore(Type::field) REASON`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suppression {
    /// Line of the comment, from 1.
    pub line: u32,
    /// The variable whose missing access is accepted.
    pub variable: String,
    /// Why; never empty.
    pub reason: String,
}

/// The text ready for the parser, and what the directives and comments said.
#[derive(Debug, Default)]
pub struct Prepared {
    /// As long as the original, line for line.
    pub text: Vec<u8>,
    /// Macros in order of definition.
    pub defines: Vec<Define>,
    /// Paths of `#include`, quotes and brackets removed.
    pub includes: Vec<String>,
    /// Suppression comments.
    pub suppressions: Vec<Suppression>,
}

/// Prepares `text`.
pub fn prepare(text: &[u8], language: Language, rewrites: &Rewrites) -> Prepared {
    let mut scan = Scan {
        text,
        out: Prepared { text: text.to_vec(), ..Prepared::default() },
        groups: Vec::new(),
        language,
        rewrites,
        counted: (0, 1),
    };
    scan.run();
    scan.out
}

/// Blanks the bodies of functions and the values of initialisers in prepared text. They declare
/// nothing that another function could see, and they are most of what there is to parse.
pub fn blank_bodies(text: &mut [u8]) {
    let (mut at, mut before) = (0, b' ');
    while let Some(&byte) = text.get(at) {
        let end = match byte {
            b'"' | b'\'' => quoted_end(text, at),
            b'{' if matches!(before, b')' | b'=') => match closing_brace(text, at) {
                Some(close) => {
                    blank(&mut text[at + 1..close]);
                    close
                }
                None => at + 1,
            },
            _ => at + 1,
        };
        if !byte.is_ascii_whitespace() {
            before = byte;
        }
        at = end;
    }
}

/// The brace that closes the one at `at`. A brace that starts a line closes a function whatever the
/// count says: that is how people find their way in code with unbalanced braces, too.
fn closing_brace(text: &[u8], at: usize) -> Option<usize> {
    let (mut depth, mut end) = (0, at);
    while let Some(&byte) = text.get(end) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 || end > at && text[end - 1] == b'\n' => return Some(end),
            b'}' => depth -= 1,
            _ => {}
        }
        end = if matches!(byte, b'"' | b'\'') { quoted_end(text, end) } else { end + 1 };
    }
    None
}

struct Branch {
    start: usize,
    end: usize,
    dead: bool,
}

struct Scan<'a> {
    text: &'a [u8],
    out: Prepared,
    /// Open conditionals, each with its branches so far.
    groups: Vec<Vec<Branch>>,
    language: Language,
    rewrites: &'a Rewrites,
    /// How far lines have been counted: (offset, line there).
    counted: (usize, u32),
}

impl Scan<'_> {
    fn run(&mut self) {
        let mut at = 0;
        let mut line_is_blank = true;
        while let Some(&byte) = self.text.get(at) {
            at = match byte {
                b'\n' => {
                    line_is_blank = true;
                    at + 1
                }
                b' ' | b'\t' | b'\r' | 0x0c => at + 1,
                b'#' if line_is_blank => self.directive(at),
                b'/' if matches!(self.text.get(at + 1), Some(b'/' | b'*')) => self.comment(at),
                _ => {
                    line_is_blank = false;
                    self.token(at, byte)
                }
            };
        }
    }

    fn token(&mut self, at: usize, byte: u8) -> usize {
        match byte {
            b'"' if at > 0 && self.text[at - 1] == b'R' && self.language == Language::Cpp => {
                raw_string_end(self.text, at)
            }
            b'"' | b'\'' => quoted_end(self.text, at),
            b'0'..=b'9' => word_end(self.text, at, true),
            _ if is_word(byte) => self.word(at),
            _ => at + 1,
        }
    }

    fn word(&mut self, at: usize) -> usize {
        let end = word_end(self.text, at, false);
        let word = &self.text[at..end];
        if matches!(word, b"struct" | b"union" | b"enum") {
            self.type_argument(at, end);
            return end;
        }
        let rewrite = std::str::from_utf8(word).ok().and_then(|word| self.rewrites.get(word));
        match rewrite {
            None => end,
            Some(Rewrite::Blank) => {
                let end = after_parenthesis(self.text, end).unwrap_or(end);
                blank(&mut self.out.text[at..end]);
                end
            }
            Some(Rewrite::Open(words)) => match after_parenthesis(self.text, end) {
                Some(end) if end - at >= words.len() => {
                    blank(&mut self.out.text[at..end]);
                    self.out.text[at..at + words.len()].copy_from_slice(words.as_bytes());
                    end
                }
                _ => end,
            },
        }
    }

    /// `container_of(p, struct S, m)`: a type where C has an expression. Without its keyword it
    /// reads as an identifier; a parameter list never has a comma right after the tag.
    fn type_argument(&mut self, at: usize, end: usize) {
        let tag = skip_blanks(self.text, end);
        let tag_end = word_end(self.text, tag, false);
        if tag_end > tag && self.text.get(skip_blanks(self.text, tag_end)) == Some(&b',') {
            blank(&mut self.out.text[at..end]);
        }
    }

    fn comment(&mut self, at: usize) -> usize {
        let end = comment_end(self.text, at);
        let content = &self.text[at..end];
        if let Some((variable, reason)) = suppression(content) {
            let line = self.line_of(at);
            self.out.suppressions.push(Suppression { line, variable, reason });
        }
        blank(&mut self.out.text[at..end]);
        end
    }

    fn directive(&mut self, at: usize) -> usize {
        let end = directive_end(self.text, at);
        let content = flat(&self.text[at + 1..end]);
        blank(&mut self.out.text[at..end]);
        let (keyword, rest) = split_word(content.trim_start());
        match keyword {
            "define" => {
                let line = self.line_of(at);
                self.out.defines.extend(define(rest, line));
            }
            "include" => self.out.includes.extend(included(rest)),
            "if" | "ifdef" | "ifndef" => {
                self.groups.push(vec![self.branch(end, self.is_dead(keyword, rest))]);
            }
            "elif" | "else" | "elifdef" | "elifndef" => self.next_branch(at, end, rest),
            "endif" => self.close_group(at),
            _ => {}
        }
        end
    }

    fn branch(&self, start: usize, dead: bool) -> Branch {
        Branch { start, end: start, dead }
    }

    fn is_dead(&self, keyword: &str, condition: &str) -> bool {
        let condition = condition.trim();
        let zero = keyword == "if" && condition == "0";
        let foreign = self.language == Language::C
            && keyword != "ifndef"
            && condition.contains("__cplusplus")
            && !condition.contains('!');
        zero || foreign
    }

    fn next_branch(&mut self, at: usize, end: usize, condition: &str) {
        let dead = condition.trim() == "0";
        if let Some(branches) = self.groups.last_mut() {
            if let Some(last) = branches.last_mut() {
                last.end = at;
            }
            branches.push(Branch { start: end, end, dead });
        }
    }

    /// At `#endif`: alternatives that are whole statements are all kept, one after the other, so
    /// that no access is lost; otherwise only the first makes sense to a parser.
    fn close_group(&mut self, at: usize) {
        let Some(mut branches) = self.groups.pop() else { return };
        if let Some(last) = branches.last_mut() {
            last.end = at;
        }
        let text = &mut self.out.text;
        for branch in branches.iter().filter(|branch| branch.dead) {
            blank(&mut text[branch.start..branch.end]);
        }
        let live: Vec<_> = branches.iter().filter(|branch| !branch.dead).collect();
        if live.len() > 1 && !live.iter().all(|it| is_self_contained(&text[it.start..it.end])) {
            for branch in &live[1..] {
                blank(&mut text[branch.start..branch.end]);
            }
        }
    }

    fn line_of(&mut self, at: usize) -> u32 {
        let (from, line) = self.counted;
        let breaks = self.text[from..at].iter().filter(|byte| **byte == b'\n').count();
        self.counted = (at, line + u32::try_from(breaks).unwrap_or(0));
        self.counted.1
    }
}

/// Balanced, and ends where a statement, declaration or initialiser ends.
fn is_self_contained(text: &[u8]) -> bool {
    let (mut depth, mut at, mut last) = (0i32, 0, b';');
    let first_word = skip_blanks(text, 0);
    if text[first_word..].starts_with(b"else") {
        return false;
    }
    while let Some(&byte) = text.get(at) {
        at = match byte {
            b'"' | b'\'' => quoted_end(text, at),
            b'(' | b'{' | b'[' => {
                depth += 1;
                at + 1
            }
            b')' | b'}' | b']' => {
                depth -= 1;
                at + 1
            }
            _ => at + 1,
        };
        if depth < 0 {
            return false;
        }
        if !byte.is_ascii_whitespace() {
            last = byte;
        }
    }
    depth == 0 && matches!(last, b';' | b'}' | b',' | b':')
}

fn suppression(comment: &[u8]) -> Option<(String, String)> {
    const MARK: &str = "whydunit:ignore(";
    // Only comments that could hold the mark are decoded: there are millions of others.
    if !comment.windows(MARK.len()).any(|part| part == MARK.as_bytes()) {
        return None;
    }
    let text = String::from_utf8_lossy(comment);
    let (_, rest) = text.split_once(MARK)?;
    let (variable, reason) = rest.split_once(')')?;
    let reason = reason.trim_end_matches("*/").lines().next().unwrap_or("").trim();
    (!reason.is_empty()).then(|| (variable.trim().to_string(), reason.to_string()))
}

fn define(rest: &str, line: u32) -> Option<Define> {
    let rest = rest.trim_start();
    let (name, after) = split_word(rest);
    if name.is_empty() {
        return None;
    }
    let (parameters, body) = match after.strip_prefix('(') {
        None => (None, after),
        Some(list) => {
            let (list, body) = list.split_once(')')?;
            let names = list.split(',').map(|one| one.trim().trim_end_matches("...").to_string());
            (Some(names.filter(|one| !one.is_empty()).collect()), body)
        }
    };
    Some(Define { name: name.into(), parameters, body: body.trim().into(), line })
}

fn included(rest: &str) -> Option<String> {
    let path = rest.trim().trim_matches(['"', '<', '>']);
    (!path.is_empty()).then(|| path.to_string())
}

/// A directive on one line, its comments and line ends replaced by blanks.
fn flat(directive: &[u8]) -> String {
    let mut out = Vec::with_capacity(directive.len());
    let mut at = 0;
    while let Some(&byte) = directive.get(at) {
        match byte {
            b'/' if matches!(directive.get(at + 1), Some(b'/' | b'*')) => {
                out.push(b' ');
                at = comment_end(directive, at);
            }
            b'"' => {
                let end = quoted_end(directive, at);
                out.extend_from_slice(&directive[at..end]);
                at = end;
            }
            b'\\' if matches!(directive.get(at + 1), Some(b'\n' | b'\r')) => at += 1,
            b'\n' | b'\r' => {
                out.push(b' ');
                at += 1;
            }
            _ => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn split_word(text: &str) -> (&str, &str) {
    let end = text.bytes().position(|byte| !is_word(byte)).unwrap_or(text.len());
    text.split_at(end)
}

fn blank(text: &mut [u8]) {
    for byte in text.iter_mut().filter(|byte| **byte != b'\n') {
        *byte = b' ';
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn skip_blanks(text: &[u8], at: usize) -> usize {
    at + text[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// The end of the word at `at`; a number may hold digit separators and dots.
fn word_end(text: &[u8], at: usize, number: bool) -> usize {
    let more = |(index, byte): (usize, &u8)| {
        is_word(*byte)
            || number
                && (*byte == b'.'
                    || *byte == b'\'' && text.get(at + index + 1).is_some_and(u8::is_ascii_digit))
    };
    at + text[at..].iter().enumerate().take_while(|(index, byte)| more((*index, byte))).count()
}

/// The end of the string or character at `at`. One that is not closed on its line ends there.
fn quoted_end(text: &[u8], at: usize) -> usize {
    let quote = text[at];
    let mut end = at + 1;
    while let Some(&byte) = text.get(end) {
        match byte {
            b'\\' => end += 2,
            b'\n' => return end,
            _ if byte == quote => return end + 1,
            _ => end += 1,
        }
    }
    text.len()
}

fn raw_string_end(text: &[u8], at: usize) -> usize {
    let Some(open) = text[at..].iter().take(18).position(|byte| *byte == b'(') else {
        return quoted_end(text, at);
    };
    let close = [b")", &text[at + 1..at + open], b"\""].concat();
    let body = &text[at + open..];
    let found = body.windows(close.len()).position(|part| part == close);
    found.map_or(text.len(), |offset| at + open + offset + close.len())
}

fn comment_end(text: &[u8], at: usize) -> usize {
    let rest = &text[at + 2..];
    let length = if text[at + 1] == b'/' {
        rest.iter().position(|byte| *byte == b'\n')
    } else {
        rest.windows(2).position(|pair| pair == b"*/").map(|offset| offset + 2)
    };
    length.map_or(text.len(), |length| at + 2 + length)
}

/// The end of the directive at `at`: the first line end that is neither escaped nor in a comment.
fn directive_end(text: &[u8], at: usize) -> usize {
    let mut end = at;
    while let Some(&byte) = text.get(end) {
        end = match byte {
            b'\n' => return end,
            b'\\' if text.get(end + 1) == Some(&b'\r') => end + 3,
            b'\\' => end + 2,
            b'"' => quoted_end(text, end),
            b'/' if text.get(end + 1) == Some(&b'*') => comment_end(text, end),
            b'/' if text.get(end + 1) == Some(&b'/') => return comment_end(text, end),
            _ => end + 1,
        };
    }
    text.len()
}

/// The offset after the parenthesis that opens at or after `at`, if the next thing is one.
fn after_parenthesis(text: &[u8], at: usize) -> Option<usize> {
    let open = skip_blanks(text, at);
    if text.get(open) != Some(&b'(') {
        return None;
    }
    // Bounded: an argument list longer than this is a parenthesis that is never closed.
    let text = &text[..text.len().min(open + 4096)];
    let (mut depth, mut end) = (0, open);
    while let Some(&byte) = text.get(end) {
        end = match byte {
            b'"' | b'\'' => quoted_end(text, end),
            _ => end + 1,
        };
        match byte {
            b'(' => depth += 1,
            b')' if depth == 1 => return Some(end),
            b')' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let mut rewrites = Rewrites::default();
        rewrites.insert("__init".into(), Rewrite::Blank);
        rewrites.insert("CATALOG".into(), Rewrite::Open("typedef struct"));
        let out = prepare(text.as_bytes(), Language::C, &rewrites);
        assert_eq!(out.text.len(), text.len());
        let text = String::from_utf8(out.text).expect("still text");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn only_code_is_left() {
        let rows = [
            ("a; /* b; */ c; // d", "a; c;"),
            ("\"/*\" x; '\"' /* y */", "\"/*\" x; '\"'"),
            ("#define X \\\n  y\nz;", "z;"),
            ("#if A\nx;\n#else\ny;\n#endif\n", "x; y;"),
            ("#if A\nif (x) {\n#else\nif (y) {\n#endif\n}", "if (x) { }"),
            ("#if 0\nx;\n#endif\ny;", "y;"),
            ("#ifdef __cplusplus\nextern \"C\" {\n#endif\nint x;", "int x;"),
            ("static int __init f(void);", "static int f(void);"),
            ("CATALOG(pg_class,1,R) { int x; } T;", "typedef struct { int x; } T;"),
            ("container_of(p, struct s, m)", "container_of(p, s, m)"),
            ("f(struct s *p)", "f(struct s *p)"),
        ];
        for (input, expected) in rows {
            assert_eq!(shown(input), expected, "for {input:?}");
        }
    }

    #[test]
    fn bodies_go_and_declarations_stay() {
        let rows = [
            ("int f(void) { if (x) { y; } } int z;", "int f(void) { } int z;"),
            ("int a[] = { 1, {2} }; struct s { int b; };", "int a[] = { }; struct s { int b; };"),
            ("f(c) { '}'; \"}\"; }", "f(c) { }"),
            ("f(void)\n{ {\n}\nint z;", "f(void) { } int z;"),
            ("f(void) { {", "f(void) { {"),
        ];
        for (input, expected) in rows {
            let mut text = input.as_bytes().to_vec();
            blank_bodies(&mut text);
            let text = String::from_utf8(text).expect("still text");
            let words: Vec<_> = text.split_whitespace().collect();
            assert_eq!(words.join(" "), expected, "for {input:?}");
        }
    }

    #[test]
    fn directives_and_suppressions_are_reported() {
        let text = "#include <a/b.h>\n#define F(x, y) \\\n ((x)->y)\n\
                    // whydunit:ignore(S::len) counted elsewhere\n";
        let out = prepare(text.as_bytes(), Language::C, &Rewrites::default());
        assert_eq!(out.includes, ["a/b.h"]);
        let define = &out.defines[0];
        assert_eq!(define.parameters.as_deref(), Some(&["x".to_string(), "y".to_string()][..]));
        assert_eq!((define.body.as_str(), define.line), ("((x)->y)", 2));
        assert_eq!(out.suppressions[0].reason, "counted elsewhere");
        assert_eq!((out.suppressions[0].line, &*out.suppressions[0].variable), (4, "S::len"));
    }
}
