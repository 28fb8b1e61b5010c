//! Makes source text palatable to a grammar that knows no preprocessor, without moving a line.
//!
//! A tree need not build here, so nothing can be preprocessed. Instead everything that a C grammar
//! stumbles over is overwritten with blanks of the same length: comments, directives, alternatives
//! of a conditional that are not whole statements, attribute macros. `shrink` then leaves out what
//! a pass does not need. The same scan can report what the directives and comments said.

mod directives;
mod lexical;
mod shrink;

pub use directives::{Define, Suppression};
pub use shrink::{Wanted, shrink};

use crate::sources::Language;
use directives::{define, flat, included, split_word, suppression};
use lexical::{
    after_parenthesis, blank, comment_end, directive_end, is_self_contained, is_word, quoted_end,
    raw_string_end, skip_blanks, word_end,
};
use rustc_hash::FxHashMap;

/// Alternatives nested deeper than this are all kept without a look at what is in them; looking
/// costs their length once for each level.
const MOST_NESTING: usize = 64;

/// What to do with an identifier wherever it stands in code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rewrite {
    /// An attribute: blank the word, and the parenthesis after it if there is one.
    Blank,
    /// A macro with parameters that means nothing: blank its calls. Without a parenthesis the word is
    /// something else.
    BlankCall,
    /// A macro call that opens a declaration: put these words in its place.
    Open(&'static str),
}

/// Identifiers to rewrite.
pub type Rewrites = FxHashMap<Box<str>, Rewrite>;

/// What the directives and comments of a file said.
#[derive(Debug, Default)]
pub struct Notes {
    /// Macros in order of definition.
    pub defines: Vec<Define>,
    /// Paths of `#include`, quotes and brackets removed.
    pub includes: Vec<String>,
    /// Suppression comments.
    pub suppressions: Vec<Suppression>,
}

/// The text ready for the parser, as long as the original.
pub fn prepare(text: &[u8], language: Language, rewrites: &Rewrites) -> Vec<u8> {
    let mut scan = Scan::new(text, language, rewrites);
    scan.run();
    scan.out
}

/// The same, with what the directives and comments said.
pub fn prepare_with_notes(
    text: &[u8],
    language: Language,
    rewrites: &Rewrites,
) -> (Vec<u8>, Notes) {
    let mut scan = Scan::new(text, language, rewrites);
    scan.notes = Some(Notes::default());
    scan.run();
    (scan.out, scan.notes.unwrap_or_default())
}

struct Branch {
    start: usize,
    end: usize,
    dead: bool,
}

struct Scan<'a> {
    text: &'a [u8],
    out: Vec<u8>,
    /// None if nobody wants them.
    notes: Option<Notes>,
    /// Open conditionals, each with its branches so far.
    groups: Vec<Vec<Branch>>,
    language: Language,
    rewrites: &'a Rewrites,
    /// How far lines have been counted: (offset, line there).
    counted: (usize, u32),
}

impl<'a> Scan<'a> {
    fn new(text: &'a [u8], language: Language, rewrites: &'a Rewrites) -> Self {
        Self {
            text,
            out: text.to_vec(),
            notes: None,
            groups: Vec::new(),
            language,
            rewrites,
            counted: (0, 1),
        }
    }

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
            // A member may have the name of a macro.
            Some(Rewrite::Blank | Rewrite::BlankCall) if self.follows_member_operator(at) => end,
            Some(Rewrite::BlankCall) => match after_parenthesis(self.text, end) {
                Some(end) => {
                    blank(&mut self.out[at..end]);
                    end
                }
                None => end,
            },
            Some(Rewrite::Blank) => {
                let end = after_parenthesis(self.text, end).unwrap_or(end);
                blank(&mut self.out[at..end]);
                end
            }
            Some(Rewrite::Open(words)) => match after_parenthesis(self.text, end) {
                Some(end) if end - at >= words.len() => {
                    blank(&mut self.out[at..end]);
                    self.out[at..at + words.len()].copy_from_slice(words.as_bytes());
                    end
                }
                _ => end,
            },
        }
    }

    fn follows_member_operator(&self, at: usize) -> bool {
        let before = self.text[..at].trim_ascii_end();
        before.ends_with(b"->") || before.ends_with(b".") && !before.ends_with(b"..")
    }

    /// `container_of(p, struct S, m)`: a type where C has an expression. Without its keyword it
    /// reads as an identifier; a parameter list never has a comma right after the tag.
    fn type_argument(&mut self, at: usize, end: usize) {
        let tag = skip_blanks(self.text, end);
        let tag_end = word_end(self.text, tag, false);
        if tag_end > tag && self.text.get(skip_blanks(self.text, tag_end)) == Some(&b',') {
            blank(&mut self.out[at..end]);
        }
    }

    fn comment(&mut self, at: usize) -> usize {
        let end = comment_end(self.text, at);
        if self.notes.is_some()
            && let Some((variable, reason)) = suppression(&self.text[at..end])
        {
            let line = self.line_of(at);
            let notes = self.notes.get_or_insert_default();
            notes.suppressions.push(Suppression { line, variable, reason });
        }
        blank(&mut self.out[at..end]);
        end
    }

    fn directive(&mut self, at: usize) -> usize {
        let end = directive_end(self.text, at);
        blank(&mut self.out[at..end]);
        let content = flat(&self.text[at + 1..end]);
        let (keyword, rest) = split_word(content.trim_start());
        match keyword {
            "define" | "include" => self.note(keyword, rest, at),
            "if" | "ifdef" | "ifndef" => {
                self.groups.push(vec![self.branch(end, self.is_dead(keyword, rest))]);
            }
            "elif" | "else" | "elifdef" | "elifndef" => self.next_branch(at, end, rest),
            "endif" => self.close_group(at),
            _ => {}
        }
        end
    }

    fn note(&mut self, keyword: &str, rest: &str, at: usize) {
        if self.notes.is_none() {
            return;
        }
        let line = self.line_of(at);
        let notes = self.notes.get_or_insert_default();
        match keyword {
            "define" => notes.defines.extend(define(rest, line)),
            _ => notes.includes.extend(included(rest)),
        }
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
        let text = &mut self.out;
        for branch in branches.iter().filter(|branch| branch.dead) {
            blank(&mut text[branch.start..branch.end]);
        }
        if self.groups.len() >= MOST_NESTING {
            return;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let mut rewrites = Rewrites::default();
        rewrites.insert("__init".into(), Rewrite::Blank);
        rewrites.insert("error".into(), Rewrite::BlankCall);
        rewrites.insert("CATALOG".into(), Rewrite::Open("typedef struct"));
        let out = prepare(text.as_bytes(), Language::C, &rewrites);
        assert_eq!(out.len(), text.len());
        let text = String::from_utf8(out).expect("still text");
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
            ("error(S, s); x;", "; x;"),
            (
                "int error; p->error = 1; p.__init; p->error(x);",
                "int error; p->error = 1; p.__init; p->error(x);",
            ),
            ("f(int x, ... __init);", "f(int x, ... );"),
            ("CATALOG(pg_class,1,R) { int x; } T;", "typedef struct { int x; } T;"),
            ("container_of(p, struct s, m)", "container_of(p, s, m)"),
            ("f(struct s *p)", "f(struct s *p)"),
        ];
        for (input, expected) in rows {
            assert_eq!(shown(input), expected, "for {input:?}");
        }
    }

    #[test]
    fn directives_and_suppressions_are_reported() {
        let text = "#include <a/b.h>\n#define F(x, y) \\\n ((x)->y)\n\
                    // whydunit:ignore(S::len) counted elsewhere\n";
        let (_, out) = prepare_with_notes(text.as_bytes(), Language::C, &Rewrites::default());
        assert_eq!(out.includes, ["a/b.h"]);
        let define = &out.defines[0];
        assert_eq!(define.parameters.as_deref(), Some(&["x".to_string(), "y".to_string()][..]));
        assert_eq!((define.body.as_str(), define.line), ("((x)->y)", 2));
        assert_eq!(out.suppressions[0].reason, "counted elsewhere");
        assert_eq!((out.suppressions[0].line, &*out.suppressions[0].variable), (4, "S::len"));
    }
}
