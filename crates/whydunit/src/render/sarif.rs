//! Findings as SARIF 2.1.0, the format that code review tools and CI systems show.

use base::{Confidence, Finding, Place, Step};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What a kind of finding means, for the tool's list of rules.
pub type Kinds<'a> = BTreeMap<&'a str, &'a str>;

/// The findings as one run.
pub fn render(findings: &[Finding], kinds: &Kinds) -> String {
    let rules: Vec<_> = kinds
        .iter()
        .map(|(kind, meaning)| json!({"id": kind, "shortDescription": {"text": meaning}}))
        .collect();
    let results: Vec<_> = findings.iter().map(result).collect();
    let mut driver =
        json!({"name": "whydunit", "version": env!("CARGO_PKG_VERSION"), "rules": rules});
    // The format wants an absolute URI or none.
    if !env!("CARGO_PKG_REPOSITORY").is_empty() {
        driver["informationUri"] = json!(env!("CARGO_PKG_REPOSITORY"));
    }
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": driver},
            "columnKind": "utf16CodeUnits",
            "results": results,
        }],
    });
    serde_json::to_string_pretty(&log).expect("plain data") + "\n"
}

fn result(finding: &Finding) -> Value {
    let mut result = json!({
        "ruleId": finding.kind,
        "level": level(finding.confidence),
        "message": {"text": finding.title},
        "partialFingerprints": {"whydunit/v1": fingerprint(finding)},
    });
    if let Some(location) = finding.place.as_ref().and_then(location) {
        result["locations"] = json!([location]);
    }
    let related: Vec<_> = finding.evidence.iter().enumerate().filter_map(related).collect();
    if !related.is_empty() {
        result["relatedLocations"] = json!(related);
    }
    result
}

fn level(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Low => "note",
        Confidence::Medium => "warning",
        Confidence::High | Confidence::Certain => "error",
    }
}

/// What stays the same when lines move.
fn fingerprint(finding: &Finding) -> String {
    let file = finding.place.as_ref().and_then(|place| place.file.as_deref());
    format!("{}|{}|{}", finding.kind, file.unwrap_or_default(), finding.title)
}

/// Steps without a file have no place in SARIF's list of locations.
fn related((index, step): (usize, &Step)) -> Option<Value> {
    let mut location = location(step.place.as_ref()?)?;
    location["id"] = json!(index);
    location["message"] = json!({"text": step.text});
    Some(location)
}

fn location(place: &Place) -> Option<Value> {
    let mut physical = json!({"artifactLocation": {"uri": uri(place.file.as_deref()?)}});
    if let Some(line) = place.line {
        physical["region"] = json!({"startLine": line});
    }
    let mut location = json!({"physicalLocation": physical});
    if let Some(function) = &place.function {
        location["logicalLocations"] =
            json!([{"fullyQualifiedName": function, "kind": "function"}]);
    }
    Some(location)
}

/// A path as a URI reference: only what may not stand in one is escaped.
fn uri(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~+@".contains(&byte);
    let escaped = |byte: u8| match plain(byte) {
        true => (byte as char).to_string(),
        false => format!("%{byte:02X}"),
    };
    path.bytes().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_keeps_its_place_and_evidence() {
        let finding = Finding {
            kind: "inconsistent-update".into(),
            title: "f forgets b".into(),
            confidence: Confidence::High,
            place: Some(Place::line("a b.c", 3).in_function("f")),
            when: None,
            evidence: vec![Step::new("g does both").at(Place::line("g.c", 9)), Step::new("so")],
        };
        let kinds = Kinds::from([("inconsistent-update", "an update forgot a variable")]);
        let log: Value = serde_json::from_str(&render(&[finding], &kinds)).expect("JSON");
        let result = &log["runs"][0]["results"][0];
        let physical = &result["locations"][0]["physicalLocation"];
        assert_eq!(physical["artifactLocation"]["uri"], "a%20b.c");
        assert_eq!(physical["region"]["startLine"], 3);
        assert_eq!(result["level"], "error");
        assert_eq!(result["relatedLocations"].as_array().map(Vec::len), Some(1));
        let driver = &log["runs"][0]["tool"]["driver"];
        assert_eq!(driver["rules"][0]["id"], result["ruleId"]);
        let uri = driver.get("informationUri").and_then(Value::as_str);
        assert!(uri.is_none_or(|uri| uri.starts_with("https://")), "{uri:?} is not absolute");
    }
}
