//! Findings as SARIF 2.1.0, the format that code review tools and CI systems show.

use base::{Confidence, Finding, Place, Role, Step};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What a kind of finding means, for the tool's list of rules.
pub type Kinds<'a> = BTreeMap<&'a str, &'a str>;

/// The findings as one run.
pub fn render(findings: &[Finding], kinds: &Kinds<'_>) -> String {
    let mut kinds = kinds.clone();
    for finding in findings {
        kinds.entry(finding.kind.as_str()).or_insert(finding.title.as_str());
    }
    let rules: Vec<_> = kinds
        .iter()
        .map(|(kind, meaning)| json!({"id": kind, "shortDescription": {"text": meaning}}))
        .collect();
    let prints = Finding::fingerprints(findings);
    let results: Vec<_> =
        findings.iter().zip(&prints).map(|(one, print)| result(one, print)).collect();
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

fn result(finding: &Finding, print: &str) -> Value {
    let mut result = json!({
        "ruleId": finding.kind,
        "level": level(finding.confidence),
        "message": {"text": message(finding)},
        "partialFingerprints": {FINGERPRINT: print},
    });
    if let Some(location) = finding.place.as_ref().and_then(location) {
        result["locations"] = json!([location]);
    }
    let related: Vec<_> = finding.evidence.iter().enumerate().filter_map(related).collect();
    if !related.is_empty() {
        result["relatedLocations"] = json!(related);
    }
    let stacks = stacks(finding);
    if !stacks.is_empty() {
        result["stacks"] = json!(stacks);
    }
    if let Some(flow) = flow(finding) {
        result["codeFlows"] = json!([flow]);
    }
    result
}

/// Names how fingerprints are made; another name whenever that changes.
const FINGERPRINT: &str = "whydunit/v2";

/// The title, and the sentence that says what happened.
fn message(finding: &Finding) -> String {
    let plain = |step: &&Step| step.role.is_none() && step.place.is_none();
    match finding.evidence.first().filter(plain) {
        Some(step) => format!("{}: {}", finding.title, step.text),
        None => finding.title.clone(),
    }
}

/// The calls that were active, where each thing happened.
fn stacks(finding: &Finding) -> Vec<Value> {
    const STACKS: [(Role, &str); 5] = [
        (Role::Call, "the calls that led there"),
        (Role::Allocated, "where it was made"),
        (Role::Freed, "where it was freed"),
        (Role::Opened, "where it was opened"),
        (Role::Closed, "where it was closed"),
    ];
    let stack = |(role, words): (Role, &str)| {
        let frame = |step: &Step| {
            let place = step.place.as_ref()?;
            let location = location(place).unwrap_or_else(|| json!({}));
            let mut location = location;
            location["message"] = json!({"text": step.text});
            Some(json!({"location": location}))
        };
        let calls = finding.evidence.iter().filter(|step| step.role == Some(role));
        let frames: Vec<Value> = calls.filter_map(frame).collect();
        (!frames.is_empty()).then(|| json!({"message": {"text": words}, "frames": frames}))
    };
    STACKS.into_iter().filter_map(stack).collect()
}

/// The way of the value, in the order in which it went: made, copied, freed, used.
fn flow(finding: &Finding) -> Option<Value> {
    let of = |role: Role| finding.evidence.iter().filter(move |step| step.role == Some(role));
    let mut steps: Vec<&Step> = of(Role::Copied).collect();
    steps.reverse();
    if steps.is_empty() {
        return None;
    }
    steps.splice(..0, of(Role::Allocated).take(1));
    steps.extend(of(Role::Freed).take(1));
    let mut locations: Vec<Value> = steps.into_iter().filter_map(flow_step).collect();
    let last = finding.place.as_ref().and_then(location).map(|mut location| {
        location["message"] = json!({"text": finding.title});
        json!({"location": location, "importance": "essential"})
    });
    locations.extend(last);
    for (order, location) in locations.iter_mut().enumerate() {
        location["executionOrder"] = json!(order + 1);
    }
    Some(json!({"threadFlows": [{"locations": locations}]}))
}

fn flow_step(step: &Step) -> Option<Value> {
    let mut location = location(step.place.as_ref()?)?;
    location["message"] = json!({"text": step.text});
    Some(json!({"location": location}))
}

fn level(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Low => "note",
        Confidence::Medium => "warning",
        Confidence::High | Confidence::Certain => "error",
    }
}

/// Steps without a file have no place in SARIF's list of locations.
fn related((index, step): (usize, &Step)) -> Option<Value> {
    let mut location = location(step.place.as_ref()?)?;
    location["id"] = json!(index);
    location["message"] = json!({"text": step.text});
    Some(location)
}

fn location(place: &Place) -> Option<Value> {
    // Without a file there is still a function to point at.
    let mut location = match place.file.as_deref() {
        Some(file) => {
            let mut physical = json!({"artifactLocation": {"uri": uri(file)}});
            if let Some(line) = place.line {
                physical["region"] = json!({"startLine": line});
            }
            json!({"physicalLocation": physical})
        }
        None => {
            place.function.as_ref()?;
            json!({})
        }
    };
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
