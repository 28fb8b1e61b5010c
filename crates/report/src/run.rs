//! How a run went: its end, and the crashes on the way there.

use super::crash;
use super::style::Style;
use super::{finding, json};
use base::{Ending, Finding};
use engine::host::Outcome;
use investigate::check::coverage::Coverage;
use investigate::check::{Leaks, RuleFindings};
use investigate::crash::{Crash, signal_name};
use serde::Serialize;
use serde_json::json;

/// What there is to say about a run.
pub struct RunReport {
    ending: End,
    /// What rules found.
    findings: Vec<Finding>,
    crashes: Vec<Ended>,
    program: String,
    /// What was checked, if rules were.
    coverage: Option<Coverage>,
    /// What was left in the heap, if that was looked at.
    leaks: Option<Leaks>,
}

/// A crash, and which of the findings it came from.
struct Ended {
    crash: Crash,
    cause: Option<usize>,
}

/// One thing that was found, as data.
#[derive(Serialize)]
#[serde(untagged)]
enum Reported<'a> {
    Rule(&'a Finding),
    Crash {
        #[serde(flatten)]
        crash: &'a Crash,
        /// The fingerprint of the finding that it came from.
        #[serde(skip_serializing_if = "Option::is_none")]
        follows_from: Option<&'a str>,
    },
}

/// How a program ended, as data.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// By itself.
    ExitCode(i32),
    /// By this signal.
    Signal(String),
}

/// An end as data.
#[must_use]
pub fn ending(ending: Ending) -> End {
    match ending {
        Ending::Exit(code) => End::ExitCode(code),
        Ending::Signal(signal) => End::Signal(signal_name(signal)),
    }
}

impl RunReport {
    /// Explains how a run of `program` went.
    pub fn of(program: String, outcome: &Outcome) -> Self {
        let ending = ending(outcome.ending);
        let crash = |report| Ended { crash: Crash::of(report), cause: None };
        let crashes = outcome.crashes.iter().map(crash).collect();
        Self { ending, findings: Vec::new(), crashes, program, coverage: None, leaks: None }
    }

    /// The same with what rules have looked at.
    #[must_use]
    pub fn with_coverage(self, coverage: Coverage) -> Self {
        Self { coverage: Some(coverage), ..self }
    }

    /// The same with what rules found, and which of that the crashes came from.
    #[must_use]
    pub fn with_rules(mut self, found: &mut RuleFindings, outcome: &Outcome) -> Self {
        let (crashes, causes) = found.blame(&outcome.crashes);
        let ended = |(crash, cause)| Ended { crash, cause };
        self.crashes = crashes.into_iter().zip(causes).map(ended).collect();
        self.findings = found.findings();
        self.findings.extend(found.failure.clone());
        self.leaks = found.leaks;
        self
    }

    /// All findings, crashes behind what they came from.
    pub fn findings(&self) -> Vec<Finding> {
        self.listed().into_iter().map(|one| one.0.clone()).collect()
    }

    /// All findings in the order of a report; of a crash also which it is.
    fn listed(&self) -> Vec<(&Finding, Option<&Ended>)> {
        let crashes = |of: Option<usize>| {
            let own = self.crashes.iter().filter(move |ended| ended.cause == of);
            own.map(|ended| (&ended.crash.finding, Some(ended)))
        };
        let of_rules = self.findings.iter().enumerate().flat_map(|(index, finding)| {
            std::iter::once((finding, None)).chain(crashes(Some(index)))
        });
        of_rules.chain(crashes(None)).collect()
    }

    /// As text; empty if there is nothing to say.
    pub fn text(&self, style: Style) -> String {
        let alone = |index: &usize| self.crashes.iter().all(|ended| ended.cause != Some(*index));
        let mut all: Vec<String> = Vec::new();
        for ended in &self.crashes {
            if let Some(cause) = ended.cause {
                all.push(crash::with_cause(&self.findings[cause], &ended.crash, style));
            }
        }
        let others = (0..self.findings.len()).filter(alone).map(|index| &self.findings[index]);
        all.extend(finding::render_all(others, style));
        let unexplained = self.crashes.iter().filter(|ended| ended.cause.is_none());
        all.extend(unexplained.map(|ended| crash::text(&ended.crash, style)));
        let mut text = all.join("\n");
        if let (End::Signal(signal), true) = (&self.ending, text.is_empty()) {
            text = format!("whydunit: {} was ended by {signal}\n", self.program);
        }
        text
    }

    /// As JSON.
    pub fn json(&self, command: &str) -> String {
        let mut result = json!({ "ending": self.ending });
        if let Some(coverage) = &self.coverage {
            result["checked"] = json!(coverage);
        }
        if let Some(leaks) = &self.leaks {
            result["leaks"] = json!(leaks);
        }
        let prints = Finding::fingerprints(&self.findings);
        let reported: Vec<Reported<'_>> = self
            .listed()
            .into_iter()
            .map(|(finding, ended)| match ended {
                Some(Ended { crash, cause }) => {
                    let follows_from = cause.map(|cause| prints[cause].as_str());
                    Reported::Crash { crash, follows_from }
                }
                None => Reported::Rule(finding),
            })
            .collect();
        json::render(command, &reported, result)
    }
}
