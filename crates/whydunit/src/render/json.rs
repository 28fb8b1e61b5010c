//! Findings as JSON: the report that programs and `--baseline` read.

use base::Finding;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Raised when the meaning of a field changes.
const VERSION: u32 = 1;

/// A report. What an analysis has to say beyond its findings is in `details`.
#[derive(Serialize, Deserialize)]
pub struct Report {
    /// Always `whydunit`.
    pub tool: String,
    /// Version of this format.
    pub format: u32,
    /// The subcommand.
    pub command: String,
    /// What the subcommand adds.
    #[serde(default)]
    pub details: Value,
    /// Findings, most important first.
    pub findings: Vec<Finding>,
}

/// The report of a subcommand as text.
pub fn render(command: &str, details: Value, findings: Vec<Finding>) -> String {
    let report = Report {
        tool: "whydunit".into(),
        format: VERSION,
        command: command.into(),
        details,
        findings,
    };
    serde_json::to_string_pretty(&report).expect("plain data") + "\n"
}

/// Reads the findings of a report back.
pub fn findings(text: &str) -> anyhow::Result<Vec<Finding>> {
    let report: Report = serde_json::from_str(text)?;
    anyhow::ensure!(report.tool == "whydunit", "not a report of whydunit");
    anyhow::ensure!(
        report.format <= VERSION,
        "format {} is newer than {VERSION}, the newest that this whydunit reads",
        report.format
    );
    Ok(report.findings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Confidence, Place};

    #[test]
    fn a_report_is_read_back() {
        let finding = Finding {
            kind: "kind".into(),
            title: "title".into(),
            confidence: Confidence::High,
            place: Some(Place::line("a.c", 3)),
            moment: None,
            evidence: Vec::new(),
        };
        let text = render("correlate", Value::Null, vec![finding.clone()]);
        assert_eq!(findings(&text).expect("our own report"), [finding]);
        assert!(findings("{}").is_err() && findings("").is_err());
    }
}
