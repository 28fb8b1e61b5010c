//! Findings for people: one paragraph each, the evidence below the claim.

use base::{Confidence, Finding, Step};
use std::fmt::Write;

/// The colours of a report, or none of them.
#[derive(Clone, Copy)]
pub struct Paint {
    colour: bool,
}

impl Paint {
    /// With or without colour.
    pub fn new(colour: bool) -> Self {
        Self { colour }
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }

    /// A heading.
    pub fn heading(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// Something to overlook at first.
    pub fn faint(self, text: &str) -> String {
        self.wrap("2", text)
    }

    fn confidence(self, confidence: Confidence) -> String {
        match confidence {
            Confidence::Certain => self.wrap("1;31", "certain"),
            Confidence::High => self.wrap("31", "high"),
            Confidence::Medium => self.wrap("33", "medium"),
            Confidence::Low => self.wrap("36", "low"),
        }
    }
}

/// Findings with their numbers, from 1.
pub fn findings(findings: &[Finding], paint: Paint) -> String {
    let mut out = String::new();
    for (index, finding) in findings.iter().enumerate() {
        let confidence = paint.confidence(finding.confidence);
        let title = paint.heading(&finding.title);
        let _ = writeln!(out, "{:>4}. [{confidence}] {title}", index + 1);
        if let Some(place) = &finding.place {
            let _ = writeln!(out, "      at {place}");
        }
        for step in &finding.evidence {
            let _ = writeln!(out, "      - {}", evidence(step, paint));
        }
    }
    out
}

fn evidence(step: &Step, paint: Paint) -> String {
    let mut text = step.text.clone();
    for (expression, value) in &step.values {
        let _ = write!(text, ", {expression} = {value}");
    }
    match (&step.place, &step.when) {
        (Some(place), _) => format!("{text} {}", paint.faint(&format!("({place})"))),
        (None, Some(when)) => format!("{text} {}", paint.faint(&format!("({when})"))),
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
        let text = findings(std::slice::from_ref(&finding), Paint::new(false));
        let expected =
            "   1. [medium] f forgets b\n      at a.c:3 (f)\n      - g does both (g.c:9)\n";
        assert_eq!(text, expected);
        assert!(findings(&[finding], Paint::new(true)).contains("\x1b[33mmedium"));
    }
}
