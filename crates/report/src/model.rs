//! What is in a model, at a place or in all, and how two differ.

use investigate::invariants::report::words::grouped;
use investigate::invariants::show::{Difference, Info, Shown};
use investigate::invariants::train::Trained;

/// What is in a model, in numbers.
#[must_use]
pub fn info(info: &Info) -> String {
    let rows = [
        ("runs", u64::from(info.runs)),
        ("points", info.points as u64),
        ("tracked expressions", info.values as u64),
        ("evaluations", info.evaluations),
        ("reads", info.reads as u64),
        ("pairs of a read and its writer", info.pairs as u64),
        ("executed lines", info.lines as u64),
    ];
    let line = |(name, count): (&str, u64)| format!("{:>16}  {name}\n", grouped(count));
    format!("{:>16}  program\n", info.program) + &rows.map(line).concat()
}

/// The invariants of a place.
#[must_use]
pub fn shown(shown: &[Shown]) -> String {
    let mut text = String::new();
    for point in shown {
        let what = point.what.as_ref().map_or_else(String::new, |what| format!("  {what}"));
        text += &format!("{}{what}\n", point.place);
        text += &point.invariants.iter().map(|line| format!("  {line}\n")).collect::<String>();
    }
    text
}

/// What one model has that another has not.
#[must_use]
pub fn difference(difference: &Difference) -> String {
    let Difference { new, gone, common, changed } = difference;
    let all = common + new;
    let counts = [*new, all, *gone, changed.len()].map(|count| grouped(count as u64));
    let [new, all, gone, count] = counts;
    let head = format!("{new} of {all} points are new, {gone} are gone, {count} have changed\n");
    head + &self::shown(changed)
}

/// What was learned, and from how much.
#[must_use]
pub fn learned(trained: &Trained, info: &Info) -> String {
    let mut text = format!(
        "whydunit: learned from {}; the model has {}, {} points and {} lines\n",
        counted(trained.runs as u64, "run"),
        counted(u64::from(info.runs), "run"),
        grouped(info.points as u64),
        grouped(info.lines as u64),
    );
    for (name, why) in &trained.left_out {
        text += &format!("whydunit: left out {name}: {why}\n");
    }
    text
}

fn counted(count: u64, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{} {what}s", grouped(count)),
    }
}
