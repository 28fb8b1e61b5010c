//! What directives and comments say: macro definitions, includes, suppressions.

use super::lexical::{comment_end, is_word, quoted_end};
use std::borrow::Cow;

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

/// Reads what follows `#define`.
pub(super) fn define(rest: &str, line: u32) -> Option<Define> {
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

/// Reads what follows `#include`.
pub(super) fn included(rest: &str) -> Option<String> {
    let path = rest.trim().trim_matches(['"', '<', '>']);
    (!path.is_empty()).then(|| path.to_string())
}

/// The variable and the reason of a suppression comment.
pub(super) fn suppression(comment: &[u8]) -> Option<(String, String)> {
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

/// A directive on one line, its comments and line ends replaced by blanks.
pub(super) fn flat(directive: &[u8]) -> Cow<'_, str> {
    if !directive.iter().any(|byte| matches!(byte, b'/' | b'\\' | b'\n' | b'\r')) {
        return String::from_utf8_lossy(directive);
    }
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
    Cow::Owned(String::from_utf8_lossy(&out).into_owned())
}

/// The word that a text starts with, and the rest.
pub(super) fn split_word(text: &str) -> (&str, &str) {
    let end = text.bytes().position(|byte| !is_word(byte)).unwrap_or(text.len());
    text.split_at(end)
}
