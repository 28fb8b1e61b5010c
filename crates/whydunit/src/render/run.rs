//! How a run went: its end, and the crashes on the way there.

use super::crash;
use super::style::Style;
use super::{finding, json};
use base::{Ending, Finding};
use engine::host::Outcome;
use investigate::crash::{Crash, signal_name};
use serde::Serialize;
use serde_json::json;

/// What there is to say about a run.
pub struct RunReport {
    ending: End,
    findings: Vec<Reported>,
    program: String,
}

/// One thing that was found.
#[derive(Serialize)]
#[serde(untagged)]
enum Reported {
    Rule(Finding),
    Crash(Box<Crash>),
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum End {
    ExitCode(i32),
    Signal(String),
}

impl RunReport {
    /// Explains how a run of `program` went.
    pub fn of(program: String, outcome: &Outcome) -> Self {
        let ending = match outcome.ending {
            Ending::Exit(code) => End::ExitCode(code),
            Ending::Signal(signal) => End::Signal(signal_name(signal)),
        };
        let crash = |report| Reported::Crash(Box::new(Crash::of(report)));
        Self { ending, findings: outcome.crashes.iter().map(crash).collect(), program }
    }

    /// The same with what rules found, which came before any crash.
    #[must_use]
    pub fn with_rules(mut self, findings: Vec<Finding>) -> Self {
        self.findings.splice(..0, findings.into_iter().map(Reported::Rule));
        self
    }

    /// As text; empty if there is nothing to say.
    pub fn text(&self, style: Style) -> String {
        let rules = self.findings.iter().filter_map(|reported| match reported {
            Reported::Rule(found) => Some(found),
            Reported::Crash(_) => None,
        });
        let mut all = finding::render_all(rules, style);
        all.extend(self.findings.iter().filter_map(|reported| match reported {
            Reported::Rule(_) => None,
            Reported::Crash(found) => Some(crash::text(found, style)),
        }));
        let mut text = all.join("\n");
        if let (End::Signal(signal), true) = (&self.ending, text.is_empty()) {
            text = format!("whydunit: {} was ended by {signal}\n", self.program);
        }
        text
    }

    /// As JSON.
    pub fn json(&self, command: &str) -> String {
        json::render(command, &self.findings, json!({ "ending": self.ending }))
    }
}
