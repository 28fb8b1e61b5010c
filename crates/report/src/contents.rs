//! What is in a recording, for people: what a reader wants first, then the tree of processes.

use crate::shell;
use crate::style::Style;
use investigate::contents::{Contents, Process};
use investigate::crash::signal_name;
use recording::{End, Origin, Text};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Below this, the tree of processes is not indented further.
const DEEPEST: usize = 30;

/// The whole page.
pub fn page(contents: &Contents<'_>, style: Style) -> String {
    let mut out = String::new();
    let meta = contents.meta;
    let mut row = |name: &str, value: &str| {
        if !value.is_empty() {
            let name = style.faint(&format!("{name:<12}"));
            let _ = writeln!(out, "{name} {value}");
        }
    };
    row("recording", &format!("{}, {}", contents.file, size(contents.bytes)));
    let state =
        if contents.complete { contents.state.clone() } else { style.alarm(&contents.state) };
    row("state", &state);
    row("command", &style.strong(&command(&meta.command)));
    row("folder", &shell::word(&meta.directory.to_string()));
    row("recorded", &recorded(contents));
    row("took", &contents.duration.map_or_else(String::new, duration));
    row(
        "ended",
        &contents.processes.first().map_or_else(String::new, |first| last_end(first, contents)),
    );
    let cut = if meta.cut { ", with switches inside of blocks" } else { "" };
    row(
        "schedule",
        &if meta.schedule.is_empty() { String::new() } else { format!("{}{cut}", meta.schedule) },
    );
    if let Some(region) = &meta.region {
        let to = region.to.as_deref().unwrap_or("the end");
        row("region", &format!("from {} to {to}", region.from));
    }
    if let Some(about) = &meta.slice {
        row("slice", &format!("of {about}; whydunit step goes through it"));
    }
    row("needs", &needs(contents));
    row("contents", &totals(contents));
    contents.notes.iter().for_each(|note| row("note", note));
    if !contents.processes.is_empty() {
        let _ = writeln!(out, "{}", style.faint("processes"));
        tree(contents, &mut out);
    }
    out
}

/// Every process below the one that made it.
fn tree(contents: &Contents<'_>, out: &mut String) {
    let mut children: BTreeMap<Option<u32>, Vec<&Process<'_>>> = BTreeMap::new();
    for process in contents.processes.iter().rev() {
        // A parent comes before its children; a file that says otherwise gets no endless tree.
        let parent = process.start.parent.filter(|parent| *parent < process.start.process);
        children.entry(parent).or_default().push(process);
    }
    let mut open: Vec<_> = children.remove(&None).into_iter().flatten().map(|it| (it, 1)).collect();
    while let Some((process, depth)) = open.pop() {
        let start = process.start;
        let words = match start.origin {
            Origin::Exec => command(&start.command),
            Origin::Fork { .. } => "fork".to_owned(),
        };
        let indent = "  ".repeat(depth.min(DEEPEST));
        let _ = writeln!(out, "{indent}{} {words}: {}", start.process, facts(process));
        let own = children.remove(&Some(start.process));
        open.extend(own.into_iter().flatten().map(|child| (child, depth + 1)));
    }
}

/// How a process ended and what it did.
fn facts(process: &Process<'_>) -> String {
    let mut facts = vec![ended(process)];
    if let Some(end) = process.ended {
        let instructions = end.instructions.unwrap_or_default();
        for (number, one, many) in [
            (end.threads, "thread", "threads"),
            (end.system_calls, "system call", "system calls"),
            (end.signals, "signal", "signals"),
            (end.switches, "switch", "switches"),
            (instructions, "instruction", "instructions"),
        ] {
            if number > 0 {
                facts.push(counted(number, one, many));
            }
        }
    }
    facts.push(format!("{} of log", size(process.log_bytes)));
    facts.join(", ")
}

fn ended(process: &Process<'_>) -> String {
    match process.ended.map_or(End::Unknown, |ended| ended.end) {
        End::Unknown => "end not recorded".to_owned(),
        End::Exited(code) => format!("exit {code}"),
        End::Killed(signal) => signal_name(signal),
        End::Replaced => "became another program".to_owned(),
    }
}

/// How the first program ended, through whatever it became.
fn last_end(first: &Process<'_>, contents: &Contents<'_>) -> String {
    let mut process = first;
    while process.ended.is_some_and(|ended| ended.end == End::Replaced) {
        let number = process.start.process;
        let is_successor = |next: &&Process<'_>| {
            next.start.parent == Some(number)
                && next.start.process > number
                && next.start.origin == Origin::Exec
        };
        match contents.processes.iter().find(is_successor) {
            Some(next) => process = next,
            None => break,
        }
    }
    ended(process)
}

fn recorded(contents: &Contents<'_>) -> String {
    let meta = contents.meta;
    let mut text = date(meta.recorded);
    if !meta.tool.is_empty() {
        let _ = write!(text, " by whydunit {}", meta.tool);
    }
    if !meta.kernel.is_empty() {
        let _ = write!(text, ", Linux {}", meta.kernel);
    }
    let _ = write!(text, ", format {}", contents.version);
    text
}

fn needs(contents: &Contents<'_>) -> String {
    let meta = contents.meta;
    let on = if meta.processor.is_empty() {
        String::new()
    } else {
        format!(" (recorded on {})", meta.processor)
    };
    if meta.features.is_empty() {
        return String::new();
    }
    format!("a processor with {}{on}", meta.features.join(" "))
}

fn totals(contents: &Contents<'_>) -> String {
    let totals = &contents.totals;
    let mut parts = vec![counted(totals.processes, "process", "processes")];
    if totals.threads > 0 {
        parts.push(counted(totals.threads, "thread", "threads"));
        parts.push(counted(totals.system_calls, "system call", "system calls"));
    }
    if let Some(instructions) = totals.instructions.filter(|count| *count > 0) {
        parts.push(counted(instructions, "instruction", "instructions"));
    }
    parts.push(format!("{} of logs", size(totals.log_bytes)));
    if contents.mapped_files > 0 {
        let files = counted(contents.mapped_files as u64, "mapped file", "mapped files");
        parts.push(format!("{files} of {}", size(contents.mapped_bytes)));
    }
    parts.join(", ")
}

fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

fn command(words: &[Text]) -> String {
    shell::line(words.iter().map(Text::to_string))
}

/// Bytes, in the largest unit that leaves a number above one.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    let mut value = bytes as f64;
    let mut unit = "bytes";
    for larger in UNITS {
        if value < 1000.0 {
            break;
        }
        (value, unit) = (value / 1000.0, larger);
    }
    if unit == "bytes" { counted(bytes, "byte", "bytes") } else { format!("{value:.1} {unit}") }
}

fn duration(nanoseconds: u64) -> String {
    let seconds = nanoseconds as f64 / 1e9;
    match nanoseconds {
        0..1_000_000 => format!("{:.1} µs", seconds * 1e6),
        1_000_000..1_000_000_000 => format!("{:.1} ms", seconds * 1e3),
        _ => format!("{seconds:.1} s"),
    }
}

/// A time of day, UTC, from seconds since 1970.
fn date(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (mut year, mut left) = (1970, days.min(4_000_000));
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    while left >= 365 + u64::from(is_leap(year)) {
        left -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year}-{month:02}-{:02} {hour:02}:{minute:02}:{second:02} UTC", left + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_the_calendars() {
        for (seconds, expected) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_709_164_800, "2024-02-29 00:00:00 UTC"),
            (1_735_689_599, "2024-12-31 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(date(seconds), expected);
        }
        assert!(date(u64::MAX).ends_with("UTC"), "no endless loop");
    }

    #[test]
    fn words_stay_on_their_line() {
        let words = ["ls", "a b", "it's", "x\ny", ""].map(Text::from);
        assert_eq!(command(&words), r"ls 'a b' 'it'\''s' 'x\ny' ''");
    }

    #[test]
    fn numbers_have_units() {
        let sizes = [0, 1, 999, 1000, 1_234_567, 5_000_000_000].map(size);
        assert_eq!(sizes, ["0 bytes", "1 byte", "999 bytes", "1.0 kB", "1.2 MB", "5.0 GB"]);
        let times = [1500, 2_500_000, 61_000_000_000].map(duration);
        assert_eq!(times, ["1.5 µs", "2.5 ms", "61.0 s"]);
    }
}
