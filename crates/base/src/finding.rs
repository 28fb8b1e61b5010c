//! A **finding**: what any analysis reports, in one model, so that every renderer (terminal,
//! JSON, SARIF, HTML) can show every analysis.
//!
//! Analyses build findings; they never format them for a reader.

use crate::address::Address;
use crate::time::When;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Where in the program: as precise as is known, never less than one of the fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Source file as the program or the command line names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line in that file, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Function, demangled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Code address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Address>,
}

impl Place {
    /// A line of a source file.
    #[must_use]
    pub fn line(file: impl Into<String>, line: u32) -> Self {
        Self { file: Some(file.into()), line: Some(line), ..Self::default() }
    }

    /// The same place with its function named.
    #[must_use]
    pub fn in_function(mut self, function: impl Into<String>) -> Self {
        self.function = Some(function.into());
        self
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line, &self.function, self.address) {
            (Some(file), Some(line), Some(function), _) => {
                write!(out, "{file}:{line} ({function})")
            }
            (Some(file), Some(line), None, _) => write!(out, "{file}:{line}"),
            (_, _, Some(function), Some(address)) => write!(out, "{function} (*{address})"),
            (_, _, Some(function), None) => out.write_str(function),
            (_, _, None, Some(address)) => write!(out, "*{address}"),
            (Some(file), None, None, None) => out.write_str(file),
            (None, _, None, None) => out.write_str("an unknown place"),
        }
    }
}

/// How sure an analysis is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Worth a look.
    Low,
    /// Likely.
    Medium,
    /// Very likely.
    High,
    /// Shown beyond doubt by a recording, a proof or a counterexample.
    Certain,
}

/// One step of the evidence for a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What happened there, as a sentence without a full stop.
    pub text: String,
    /// Where, if the step has a place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// When, so that another command can be pointed at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<When>,
    /// Values at that point: (expression, value).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<(String, String)>,
}

impl Step {
    /// A step that has only words.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), place: None, when: None, values: Vec::new() }
    }

    /// The same step at a place.
    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    /// The same step at a time.
    #[must_use]
    pub fn at_time(mut self, when: Option<When>) -> Self {
        self.when = when;
        self
    }

    /// The same step with one more value shown.
    #[must_use]
    pub fn with(mut self, expression: impl Into<String>, value: impl Into<String>) -> Self {
        self.values.push((expression.into(), value.into()));
        self
    }
}

/// What an analysis reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// A stable identifier of the kind, such as `inconsistent-update`: lower case with hyphens.
    pub kind: String,
    /// One line that says what is wrong.
    pub title: String,
    /// How sure the analysis is.
    pub confidence: Confidence,
    /// Where the finding is reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// When, so that another command can be pointed at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<When>,
    /// The steps that led there, in the order a reader should follow them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Step>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_read_like_the_notation_users_type() {
        let cases = [
            (Place::line("a.c", 3), "a.c:3"),
            (Place::line("a.c", 3).in_function("main"), "a.c:3 (main)"),
            (Place { address: Some(Address(0x40)), ..Place::default() }, "*0x40"),
            (Place::default().in_function("main"), "main"),
            (Place::default(), "an unknown place"),
        ];
        for (place, expected) in cases {
            assert_eq!(place.to_string(), expected);
        }
    }
}
