//! A crash on one screen: the finding that it is, or the one that it came from and how it ended the program,
//! the registers, and how to learn more.

use super::finding::{self, Room};
use super::fit;
use super::style::Style;
use base::{Finding, Role, Step};
use investigate::crash::Crash;

/// Registers in a line.
const IN_A_ROW: usize = 4;

/// The crash as text.
pub fn text(crash: &Crash, style: Style) -> String {
    finding::on_a_screen(|room| {
        let evidence =
            finding::steps(crash.finding.when, &crash.finding.evidence, room, style).concat();
        finding::heading(&crash.finding, style) + &evidence + &end(crash, room, style)
    })
}

/// A finding and the crash that came of it, as one report.
pub fn with_cause(cause: &Finding, crash: &Crash, style: Style) -> String {
    let place = crash.finding.place.as_ref();
    let elsewhere = place.filter(|place| !is_same(cause, place));
    let at = elsewhere.map(|place| format!(", at {}", finding::shortened(place)));
    let ended = format!("  {}{}", crash.finding.title, at.unwrap_or_default());
    let (before, after) = match elsewhere {
        Some(_) => (cause.evidence.clone(), crash.finding.evidence.clone()),
        None => (with_arguments(cause, crash), without_calls(crash)),
    };
    finding::on_a_screen(|room| {
        let mut text = finding::heading(cause, style);
        text += &finding::steps(cause.when, &before, room, style).concat();
        text += &format!("{}\n", style.alarm(&fit::wrapped(&ended, style.columns)));
        text += &finding::steps(crash.finding.when, &after, room, style).concat();
        text + &end(crash, room, style)
    })
}

/// The evidence for a finding at which the program crashed, with the arguments that only the crash has; without
/// them if it also happened before, as what is told then is the first time.
fn with_arguments(cause: &Finding, crash: &Crash) -> Vec<Step> {
    if cause.evidence.iter().any(|step| step.role == Some(Role::Times)) {
        return cause.evidence.clone();
    }
    let is_call = |step: &Step| step.role == Some(Role::Call);
    let calls: Vec<&Step> = crash.finding.evidence.iter().filter(|step| is_call(step)).collect();
    let own = |step: &&Step| step.place.as_ref().is_some_and(base::Place::is_own);
    let Some(last) = calls.iter().rposition(own) else { return cause.evidence.clone() };
    let first = cause.evidence.iter().position(is_call).unwrap_or(cause.evidence.len());
    let (before, rest) = cause.evidence.split_at(first);
    let after = rest.iter().filter(|step| !is_call(step));
    let calls = calls[..=last].iter().copied();
    before.iter().chain(calls).chain(after).cloned().collect()
}

/// What is to say of a crash whose stack was told; what was left out of that is nothing by itself.
fn without_calls(crash: &Crash) -> Vec<Step> {
    let told = |step: &&Step| step.role.is_none() && !step.text.starts_with('…');
    crash.finding.evidence.iter().filter(told).cloned().collect()
}

fn is_same(cause: &Finding, place: &base::Place) -> bool {
    let line = |place: &base::Place| (place.file.clone(), place.line, place.function.clone());
    cause.place.as_ref().map(line) == Some(line(place))
}

fn end(crash: &Crash, room: Room, style: Style) -> String {
    let mut text = String::new();
    if room.registers && crash.registers_matter() {
        text += &format!("  registers\n{}\n", style.faint(&registers(crash)));
    }
    if let Some(advice) = crash.advice() {
        text += &format!("{}\n", fit::wrapped(&format!("  {advice}"), style.columns));
    }
    text
}

fn registers(crash: &Crash) -> String {
    let row = |row: &[(&str, u64)]| {
        let cells: Vec<String> =
            row.iter().map(|(name, value)| format!("{name:<3} {value:016x}")).collect();
        format!("      {}", cells.join("  "))
    };
    crash.registers().chunks(IN_A_ROW).map(row).collect::<Vec<_>>().join("\n")
}
