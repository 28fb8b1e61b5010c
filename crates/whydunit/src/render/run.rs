//! How a run went: its end, and the crashes on the way there.

use super::crash::{Crash, signal_name};
use super::style::Style;
use engine::host::{Ending, Outcome};
use serde::Serialize;

/// What there is to say about a run.
#[derive(Serialize)]
pub struct RunReport {
    ending: End,
    findings: Vec<Crash>,
    #[serde(skip)]
    program: String,
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
        Self { ending, findings: outcome.crashes.iter().map(Crash::of).collect(), program }
    }

    /// As text; empty if there is nothing to say.
    pub fn text(&self, style: Style) -> String {
        let crashes: Vec<String> = self.findings.iter().map(|crash| crash.text(style)).collect();
        let mut text = crashes.join("\n");
        if let (End::Signal(signal), true) = (&self.ending, text.is_empty()) {
            text = format!("whydunit: {} was ended by {signal}\n", self.program);
        }
        text
    }

    /// As JSON, in one line.
    pub fn json(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string(self)? + "\n")
    }
}
