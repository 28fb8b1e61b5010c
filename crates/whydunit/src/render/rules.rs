//! What a check of rules has to say beyond its findings.

use super::sarif::{self, Kinds};
use analyze::rules::model::Rule;
use anyhow::Context;
use investigate::check::Found;
use std::path::PathBuf;

/// Where else findings go.
pub struct Also {
    /// Whether a suppression is printed for each finding.
    pub suppressions: bool,
    /// Where SARIF goes.
    pub sarif: Option<PathBuf>,
}

/// Suppressions, SARIF, and what could not be decided.
pub fn epilogue(found: &Found, rules: &[Rule], also: &Also) -> anyhow::Result<()> {
    if also.suppressions {
        super::Output::Error.write(&found.suppressions().collect::<String>())?;
    }
    if found.suppressed > 0 {
        super::note(&format!("{} findings are suppressed", found.suppressed));
    }
    if found.broken {
        super::note(
            "not all that happened was seen: events were lost or make no sense, which is a fault of ours",
        );
    }
    if found.dropped > 0 {
        super::note(&format!("{} more findings are not kept: see the first ones", found.dropped));
    }
    for undecided in &found.undecided {
        let consequence = if undecided.given_up { "; it was switched off" } else { "" };
        super::note(&format!(
            "the rule {} could not be decided {} times: it asks for something that was not \
             observed, or takes more than its bound of steps{consequence}",
            undecided.rule, undecided.times
        ));
    }
    if let Some(path) = &also.sarif {
        let kinds: Kinds =
            rules.iter().map(|rule| (rule.name.as_str(), rule.title.as_str())).collect();
        std::fs::write(path, sarif::render(&found.findings(), &kinds))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
