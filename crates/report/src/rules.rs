//! What a check of rules has to say beyond its findings.

use super::sarif::{self, Kinds};
use analyze::rules::model::Rule;
use base::Finding;
use base::finding::FATAL_SIGNAL;
use investigate::check::leaks::{self, Amount, POSSIBLE};
use investigate::check::{Chosen, Leaks, RuleFindings};

/// Sentences beside the findings: what is missing, suppressed, lost, or could not be decided.
#[must_use]
pub fn notes(found: &RuleFindings, chosen: &Chosen) -> Vec<String> {
    let mut notes = chosen.missing(&found.functions);
    match found.suppressed {
        0 => {}
        1 => notes.push("1 finding is suppressed".into()),
        count => notes.push(format!("{count} findings are suppressed")),
    }
    notes.extend(set_aside(found));
    if !chosen.rules.iter().any(leaks::is_leak) {
        notes.extend(found.leaks.iter().filter(|leaks| leaks.is_any()).map(summarise));
    }
    if found.broken {
        notes.push(
            "not all that happened was seen: events were lost or make no sense, which is a fault of ours"
                .into(),
        );
    }
    if found.dropped > 0 {
        notes.push(format!("{} more findings are not kept: see the first ones", found.dropped));
    }
    notes.extend(found.undecided.iter().map(|undecided| {
        let consequence = if undecided.given_up { "; it was switched off" } else { "" };
        format!(
            "the rule {} could not be decided {} times: it asks for something that was not \
             observed, or takes more than its bound of steps{consequence}",
            undecided.rule, undecided.times
        )
    }));
    notes
}

/// The findings of rules, and crashes among them, as SARIF.
#[must_use]
pub fn sarif(findings: &[Finding], rules: &[Rule]) -> String {
    let mut kinds: Kinds<'_> =
        rules.iter().map(|rule| (rule.name.as_str(), rule.title.as_str())).collect();
    kinds.insert(FATAL_SIGNAL, "a signal ended the program");
    kinds.insert(POSSIBLE.0, POSSIBLE.1);
    sarif::render(findings, &kinds)
}

/// Says of what is harmless by design how much there was.
fn set_aside(found: &RuleFindings) -> Option<String> {
    let count: usize = found.set_aside.values().sum();
    let plural = if count == 1 { " is" } else { "s are" };
    let why: Vec<&str> = found.set_aside.keys().map(String::as_str).collect();
    (count > 0).then(|| {
        format!(
            "{count} finding{plural} set aside as harmless: {}; `--suppressions none` shows them",
            why.join(", ")
        )
    })
}

/// What was left in the heap, in a line.
fn summarise(leaks: &Leaks) -> String {
    let words = |Amount { bytes, blocks }: Amount| {
        let plural = |count: u64| if count == 1 { "" } else { "s" };
        format!("{bytes} byte{} in {blocks} block{}", plural(bytes), plural(blocks))
    };
    let with_them = match leaks.indirect.blocks {
        0 => String::new(),
        blocks => format!(" ({} in {blocks} with them)", leaks.indirect.bytes),
    };
    let definite = format!("{} definitely lost{with_them}", words(leaks.definite));
    let possible = format!("{} possibly lost", words(leaks.possible));
    let lost: Vec<String> = [(leaks.definite, definite), (leaks.possible, possible)]
        .into_iter()
        .filter(|(amount, _)| amount.blocks > 0)
        .map(|(_, words)| words)
        .collect();
    format!("leaks: {}; `--rules leaks` says where", lost.join(", "))
}
