//! The one envelope in which every command gives its answer to programs: `--json`.

use base::Finding;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Raised when the meaning of a field changes.
const VERSION: u32 = 2;

/// An answer.
#[derive(Serialize)]
struct Envelope<'a, F, R> {
    /// Always `whydunit`.
    tool: &'a str,
    /// Version of this format.
    format: u32,
    /// The subcommand.
    command: &'a str,
    /// What was found, most important first.
    findings: &'a [F],
    /// What the subcommand answers beyond that.
    result: R,
}

/// A finding and what it is known by.
#[derive(Serialize)]
struct Fingerprinted<'a, F> {
    #[serde(flatten)]
    finding: &'a F,
    fingerprint: String,
}

/// The answer of a subcommand as text. Each finding, whatever else it has, gets its fingerprint.
pub fn render<F: Serialize>(command: &str, findings: &[F], result: impl Serialize) -> String {
    let plain = |finding: &F| {
        let value = serde_json::to_value(finding).expect("plain data");
        serde_json::from_value::<Finding>(value).expect("a finding, and perhaps more")
    };
    let plain: Vec<Finding> = findings.iter().map(plain).collect();
    let prints = Finding::fingerprints(&plain).into_iter();
    let known = |(finding, fingerprint)| Fingerprinted { finding, fingerprint };
    let findings: Vec<Fingerprinted<'_, F>> = findings.iter().zip(prints).map(known).collect();
    let findings = findings.as_slice();
    let envelope = Envelope { tool: "whydunit", format: VERSION, command, findings, result };
    serde_json::to_string_pretty(&envelope).expect("plain data") + "\n"
}

/// The same where there are no findings, only a result.
pub fn result(command: &str, result: impl Serialize) -> String {
    render::<Value>(command, &[], result)
}

/// What is read of a report.
#[derive(Deserialize)]
struct Report {
    tool: String,
    format: u32,
    findings: Vec<Finding>,
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
            when: None,
            evidence: Vec::new(),
        };
        let text = render("correlate", &[&finding], Value::Null);
        assert_eq!(findings(&text).expect("our own report"), std::slice::from_ref(&finding));
        let value: Value = serde_json::from_str(&text).expect("JSON");
        let print = Finding::fingerprints(&[finding]).remove(0);
        assert_eq!(value["findings"][0]["fingerprint"], print);
        assert!(findings("{}").is_err() && findings("").is_err());
    }
}
