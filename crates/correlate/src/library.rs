//! What calls into code that is not in the tree do to their arguments.
//!
//! The built-in table is text in the very format that users extend it with (`--summaries FILE`):
//! one function a line, its name, then effects. The format is described in docs/correlate.md.

use crate::prepare::{Rewrite, Rewrites};
use rustc_hash::FxHashMap;
use std::fmt;

/// What a known function does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Arguments it reads through, from 0.
    pub reads: Vec<usize>,
    /// Arguments it writes through.
    pub writes: Vec<usize>,
    /// Arguments that it makes all zero.
    pub zeroes: Vec<usize>,
    /// Arguments whose object it ends the life of.
    pub frees: Vec<usize>,
    /// Whether the object it returns is zeroed as a whole.
    pub zeroed: bool,
    /// Argument that names the type of the object it returns, as in `container_of`.
    pub returns_type_of: Option<usize>,
    /// Whether it is no call at all but a question to the compiler, as `offsetof`.
    pub is_constant: bool,
}

/// The table, and the attribute words that the parser should not see.
#[derive(Clone, Debug, Default)]
pub struct Library {
    functions: FxHashMap<Box<str>, Summary>,
    /// Words to blank.
    pub rewrites: Rewrites,
}

/// A line of a summary file that cannot be understood.
#[derive(Debug, PartialEq, Eq)]
pub struct BadSummary {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong, with the form that was expected.
    pub problem: String,
}

impl fmt::Display for BadSummary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "line {}: {}", self.line, self.problem)
    }
}

impl std::error::Error for BadSummary {}

impl Library {
    /// The built-in table.
    pub fn builtin() -> Self {
        let mut library = Self::default();
        library.extend(include_str!("library.txt")).expect("the built-in table is well formed");
        library
    }

    /// Adds the summaries of `text`; a later line replaces an earlier one of the same name.
    pub fn extend(&mut self, text: &str) -> Result<(), BadSummary> {
        for (index, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or("").trim();
            if line.is_empty() {
                continue;
            }
            self.line(line).map_err(|problem| BadSummary { line: index + 1, problem })?;
        }
        Ok(())
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let words: Vec<_> = words.collect();
        if words == ["attribute"] {
            self.rewrites.insert(name.into(), Rewrite::Blank);
            return Ok(());
        }
        self.functions.insert(name.into(), summary(name, &words)?);
        Ok(())
    }

    /// What is known of the function `name`.
    pub fn get(&self, name: &str) -> Option<&Summary> {
        self.functions.get(name)
    }

    /// Whether what the function returns is all zero: by the table, or by its name.
    pub fn is_zeroed(&self, name: &str) -> bool {
        const PARTS: [&str; 4] = ["calloc", "zalloc", "alloc0", "alloc_zero"];
        match self.functions.get(name) {
            Some(summary) => summary.zeroed,
            None => PARTS.iter().any(|part| name.contains(part)),
        }
    }

    /// Whether the call ends the life of its argument: by the table, or by its name, since every
    /// tree has destructors of its own.
    pub fn frees(&self, name: &str, argument: usize) -> bool {
        const WORDS: [&str; 4] = ["free", "destroy", "delete", "dispose"];
        match self.functions.get(name) {
            Some(summary) => summary.frees.contains(&argument),
            None => argument == 0 && (has_word(name, &WORDS) || is_free(name)),
        }
    }
}

/// Whether two members of a struct of the C library share their memory; its headers are not in the tree.
pub(crate) fn are_variants(of: &str, one: &str, other: &str) -> bool {
    const UNIONS: [(&str, [&str; 2]); 1] = [("sigaction", ["sa_handler", "sa_sigaction"])];
    one != other
        && UNIONS
            .iter()
            .any(|(it, fields)| *it == of && fields.contains(&one) && fields.contains(&other))
}

/// Whether `name` is `free` with a short prefix of the tree's own: `zfree`, `pfree`, `sdsfree`.
fn is_free(name: &str) -> bool {
    const LONGEST: usize = 3;
    name.strip_suffix("free").is_some_and(|prefix| prefix.len() <= LONGEST && !prefix.contains('_'))
}

/// Whether `name` holds one of `words` between underscores or as a camel-case part.
pub(crate) fn has_word(name: &str, words: &[&str]) -> bool {
    let mut parts = vec![String::new()];
    for letter in name.chars() {
        let starts = letter == '_' || letter.is_ascii_uppercase();
        if starts && parts.last().is_some_and(|part| !part.is_empty()) {
            parts.push(String::new());
        }
        if letter != '_' {
            parts.last_mut().expect("never empty").push(letter.to_ascii_lowercase());
        }
    }
    parts.iter().any(|part| words.contains(&part.as_str()))
}

fn summary(name: &str, words: &[&str]) -> Result<Summary, String> {
    let mut summary = Summary::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut argument = || {
            let number = words.next().and_then(|text| text.parse::<usize>().ok());
            number.filter(|number| *number > 0).map(|number| number - 1).ok_or_else(|| {
                format!("`{word}` of `{name}` needs the number of an argument, from 1")
            })
        };
        match *word {
            "read" => summary.reads.push(argument()?),
            "write" => summary.writes.push(argument()?),
            "zero" => {
                let number = argument()?;
                summary.writes.push(number);
                summary.zeroes.push(number);
            }
            "free" => summary.frees.push(argument()?),
            "type" => summary.returns_type_of = Some(argument()?),
            "zeroed" => summary.zeroed = true,
            "constant" => summary.is_constant = true,
            other => {
                return Err(format!(
                    "`{other}` is no effect; use read N, write N, zero N, free N, type N, zeroed, \
                     constant or attribute"
                ));
            }
        }
    }
    Ok(summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_builtin_table_knows_the_c_library() {
        let library = Library::builtin();
        assert_eq!(library.get("memcpy").map(|it| (&it.writes[..], &it.reads[..])), {
            Some((&[0][..], &[1][..]))
        });
        assert!(library.get("kzalloc").is_some_and(|it| it.zeroed));
        assert!(library.frees("free", 0) && library.frees("my_obj_destroy", 0));
        assert!(!library.frees("freeze_all", 0) && library.frees("FreeTupleDesc", 0));
        assert!(library.frees("zfree", 0) && !library.frees("carefree", 0));
    }

    #[test]
    fn a_bad_line_is_named() {
        let mut library = Library::default();
        assert!(library.extend("x write 1\n# note\n").is_ok());
        let error = library.extend("\nx write nothing").expect_err("no number");
        assert_eq!(error.line, 2);
        assert!(library.extend("x wrote 1").expect_err("no effect").problem.contains("wrote"));
    }
}
