//! A **finding**: what any analysis reports, in one model, so that every renderer (terminal,
//! JSON, SARIF, HTML) can show every analysis.
//!
//! Analyses build findings; they never format them for a reader.

use crate::address::Address;
use crate::source_kind::is_own_source;
use crate::time::When;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Where in the program: as precise as is known, never less than one of the fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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

impl Place {
    /// Whether it is a line of the program's own authors, as far as file names tell.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.line.is_some() && self.file.as_deref().is_some_and(is_own_source)
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

/// What a step of evidence is to its finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A call that was active there, innermost first.
    Call,
    /// A call that was active where the block was allocated, or the variable's function called.
    Allocated,
    /// A call that was active where the block was freed.
    Freed,
    /// A call that was active where the descriptor was opened.
    Opened,
    /// A call that was active where the descriptor was closed.
    Closed,
    /// A copy on the way of a value, the newest first.
    Copied,
    /// Another place at which the same thing happened.
    Also,
    /// How often it happened, where that is more than once.
    Times,
}

impl Role {
    /// Whether it is a call that was active at another moment than the finding's.
    #[must_use]
    pub fn is_history(self) -> bool {
        matches!(self, Self::Allocated | Self::Freed | Self::Opened | Self::Closed)
    }
}

/// One step of the evidence for a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What happened there, as a sentence without a full stop.
    pub text: String,
    /// What it is to the finding, if it is one of the usual things.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
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
        Self { text: text.into(), role: None, place: None, when: None, values: Vec::new() }
    }

    /// The same step with what it is to its finding.
    #[must_use]
    pub fn as_a(mut self, role: Role) -> Self {
        self.role = Some(role);
        self
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

impl Finding {
    /// The same finding at a time, and its evidence with it: what has no moment of its own is of the moment at
    /// which the finding shows, and the calls of another stack are of the moment of that stack.
    #[must_use]
    pub fn at_time(mut self, when: Option<When>) -> Self {
        self.when = when;
        let mut stack: Option<(Role, When)> = None;
        for step in &mut self.evidence {
            let inherited = match step.role {
                Some(Role::Call) => when,
                None if step.place.is_none() => when,
                Some(role) if role.is_history() => {
                    stack.filter(|(of, _)| *of == role).map(|(_, when)| when)
                }
                _ => None,
            };
            step.when = step.when.or(inherited);
            stack = step.role.zip(step.when);
        }
        self
    }

    /// What stays the same when addresses, lines, folders and call paths change: the kind, the function that
    /// is to blame, the functions that made and freed what it is about, and the variable's name.
    fn identity(&self) -> String {
        let mut parts = vec![self.kind.as_str()];
        parts.extend(self.place.as_ref().and_then(|place| place.function.as_deref()));
        // A leak is told from another by who asked for the block, over all wrappers of `malloc`.
        let depth = if self.kind.contains("leak") { MOST_FUNCTIONS } else { 1 };
        for role in [Role::Allocated, Role::Freed, Role::Opened] {
            let own = self.evidence.iter().filter(|step| step.role == Some(role));
            let names = own.filter_map(|step| step.place.as_ref()).filter(|place| place.is_own());
            parts.extend(names.filter_map(|place| place.function.as_deref()).take(depth));
        }
        if self.kind != FATAL_SIGNAL {
            let words = self.evidence.first().map_or("", |step| step.text.as_str());
            parts.extend(words.split('`').nth(1));
        }
        parts.join("\0")
    }

    /// Fingerprints of findings that are told together, in their order: 16 hexadecimal digits each. Of those
    /// that nothing tells apart but their lines, all but the first have a number behind.
    #[must_use]
    pub fn fingerprints(findings: &[Self]) -> Vec<String> {
        let identities: Vec<String> = findings.iter().map(Self::identity).collect();
        let line =
            |index: usize| findings[index].place.as_ref().map(|place| (&place.file, place.line));
        let numbered = |(index, identity): (usize, &String)| {
            let alike = (0..findings.len()).filter(|other| &identities[*other] == identity);
            let before = alike.filter(|&other| (line(other), other) < (line(index), index)).count();
            let digest = fnv(identity.as_bytes());
            if before == 0 {
                format!("{digest:016x}")
            } else {
                format!("{digest:016x}-{}", before + 1)
            }
        };
        identities.iter().enumerate().map(numbered).collect()
    }
}

/// The kind of a finding that is a crash.
pub const FATAL_SIGNAL: &str = "fatal-signal";

/// Functions that tell one leak from another.
const MOST_FUNCTIONS: usize = 6;

/// FNV-1a of 64 bits: short, and the same in every version of every compiler.
fn fnv(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{Position, ProcessNumber, ThreadNumber, Tick};

    fn finding(function: &str, line: u32, text: &str) -> Finding {
        Finding {
            kind: "heap-overflow".into(),
            title: "title".into(),
            confidence: Confidence::Certain,
            place: Some(Place::line("/home/me/a.c", line).in_function(function)),
            when: None,
            evidence: vec![
                Step::new(text),
                Step::new("#0 f")
                    .as_a(Role::Call)
                    .at(Place::line("a.c", line).in_function(function)),
            ],
        }
    }

    #[test]
    fn calls_are_of_the_moment_of_their_stack() {
        let at = |tick| {
            let position = Position { tick: Tick(tick), pc: Address(0x10) };
            Some(When { process: ProcessNumber(0), thread: ThreadNumber(1), position })
        };
        let mut of_a_block = finding("f", 3, "1 byte written");
        of_a_block.evidence.extend([
            Step::new("allocated: #0 g").as_a(Role::Allocated).at_time(at(3)),
            Step::new("allocated: #1 h").as_a(Role::Allocated),
            Step::new("freed: #0 g").as_a(Role::Freed),
            Step::new("the pointer was made").as_a(Role::Copied),
            Step::new("it was read").at(Place::line("a.c", 1)),
            Step::new("twice").as_a(Role::Times),
        ]);
        let dated = of_a_block.at_time(at(9));
        let moments: Vec<_> = dated.evidence.iter().map(|step| step.when).collect();
        assert_eq!(moments, [at(9), at(9), at(3), at(3), None, None, None, None]);
        assert_eq!(dated.when, at(9));
    }

    #[test]
    fn fingerprints_outlive_addresses_and_lines_and_tell_findings_apart() {
        let one = finding("f", 3, "1 byte written at 0x10, past the end of `name`");
        let mut moved = finding("f", 30, "1 byte written at 0x99, past the end of `name`");
        moved.place.as_mut().expect("a place").file = Some("/elsewhere/a.c".into());
        moved.evidence.push(Step::new("#1 g").as_a(Role::Call));
        let alone = |finding: &Finding| Finding::fingerprints(std::slice::from_ref(finding));
        assert_eq!(alone(&one), alone(&moved), "the same bug, elsewhere");
        let others = [
            finding("g", 3, "1 byte written at 0x10, past the end of `name`"),
            finding("f", 3, "1 byte written at 0x10, past the end of `text`"),
            Finding { kind: "dangling-pointer".into(), ..one.clone() },
        ];
        assert!(others.iter().all(|other| alone(other) != alone(&one)));
        let later = finding("f", 9, "1 byte written at 0x10, past the end of `name`");
        let together = Finding::fingerprints(&[later.clone(), one.clone()]);
        assert_eq!(together[1], alone(&one)[0]);
        assert_eq!(
            together[0],
            format!("{}-2", alone(&one)[0]),
            "the later line, whatever the order"
        );
    }

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
