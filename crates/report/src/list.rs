//! Findings for people: one paragraph each, the evidence below the claim.

use crate::style::Style;
use base::{Confidence, Finding, Step};
use std::fmt::Write;

fn marked(confidence: Confidence, style: Style) -> String {
    match confidence {
        Confidence::Certain => style.marked("1;31", "certain"),
        Confidence::High => style.marked("31", "high"),
        Confidence::Medium => style.marked("33", "medium"),
        Confidence::Low => style.marked("36", "low"),
    }
}

/// Findings with their numbers, from 1.
pub fn findings(findings: &[Finding], style: Style) -> String {
    let mut out = String::new();
    for (index, finding) in findings.iter().enumerate() {
        let confidence = marked(finding.confidence, style);
        let title = style.strong(&finding.title);
        let _ = writeln!(out, "{:>4}. [{confidence}] {title}", index + 1);
        if let Some(place) = &finding.place {
            let _ = writeln!(out, "      at {place}");
        }
        for step in &finding.evidence {
            let _ = writeln!(out, "      - {}", evidence(step, style));
        }
    }
    out
}

fn evidence(step: &Step, style: Style) -> String {
    let mut text = step.text.clone();
    for (expression, value) in &step.values {
        let _ = write!(text, ", {expression} = {value}");
    }
    match (&step.place, &step.when) {
        (Some(place), _) => format!("{text} {}", style.faint(&format!("({place})"))),
        (None, Some(when)) => format!("{text} {}", style.faint(&format!("({when})"))),
        (None, None) => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Place;

    #[test]
    fn the_evidence_follows_the_claim() {
        let finding = Finding {
            kind: "kind".into(),
            title: "f forgets b".into(),
            confidence: Confidence::Medium,
            place: Some(Place::line("a.c", 3).in_function("f")),
            when: None,
            evidence: vec![Step::new("g does both").at(Place::line("g.c", 9))],
        };
        let text = findings(std::slice::from_ref(&finding), Style::PLAIN);
        let expected =
            "   1. [medium] f forgets b\n      at a.c:3 (f)\n      - g does both (g.c:9)\n";
        assert_eq!(text, expected);
        assert!(findings(&[finding], Style::of_terminal(true, None)).contains("\x1b[33mmedium"));
    }
}
