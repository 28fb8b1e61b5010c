//! A failure that only some schedules show.

use crate::shell;
use investigate::expose::{Exposed, Switch};
use std::path::Path;

/// The failure, the switches of threads that it takes, and where its recording is.
#[must_use]
pub fn text(exposed: &Exposed, file: &Path) -> String {
    const SHOWN: usize = 8;
    let Exposed { what, run, found_with, kept_with, shortened, switches } = exposed;
    let mut lines = vec![format!("run {run} failed: {what}")];
    lines.extend(sentence(switches).map(|sentence| format!("  {sentence}")));
    lines.push(format!("  with the schedule {found_with}"));
    if kept_with != found_with {
        lines.push(format!(
            "  kept: one with fewer switches, {kept_with}, out of {shortened} more runs"
        ));
    }
    lines.push(match switches.len() {
        0 => "  no thread was stopped for another: who waits and who is woken is enough".into(),
        1 => "  it takes one switch of threads:".into(),
        count => format!("  it takes {count} switches of threads:"),
    });
    lines.extend(switches.iter().take(SHOWN).map(|switch| {
        let (place, tick) = (&switch.place, switch.tick);
        format!(
            "    thread {} stops at {place} ({tick}), thread {} runs",
            switch.thread, switch.next
        )
    }));
    if switches.len() > SHOWN {
        lines.push(format!("    … and {} more", switches.len() - SHOWN));
    }
    let file = file.to_string_lossy();
    let next = shell::line(["whydunit", "why", &file]);
    lines.push(format!("recorded to {file}; next: `{next}`"));
    lines.join("\n") + "\n"
}

/// The schedule as a sentence, if it is short enough for one.
fn sentence(switches: &[Switch]) -> Option<String> {
    const LONGEST: usize = 4;
    if switches.is_empty() || switches.len() > LONGEST {
        return None;
    }
    let clause = |switch: &Switch| {
        let (thread, place, next) = (switch.thread, &switch.place, switch.next);
        format!("thread {thread} is stopped before {place} and thread {next} runs")
    };
    let clauses: Vec<String> = switches.iter().map(clause).collect();
    Some(format!("it fails when {}", clauses.join(", then ")))
}
