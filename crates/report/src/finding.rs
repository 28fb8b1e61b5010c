//! Any finding as text: its title, its place with the source around it, and the evidence, on one screen.

use super::fit;
use super::source;
use super::style::Style;
use base::{Confidence, Finding, Place, Role, Step, When};
use std::collections::HashMap;
use std::ops::Range;

const INDENT: &str = "      ";

/// Lines that a report may take before less of it is shown.
pub const SCREEN: usize = 40;

/// Steps in a row that two findings must have in common for the later one to leave them out.
const IN_COMMON: usize = 6;

/// Other places that are named.
const ALSO: usize = 4;

/// How much of the evidence is shown.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Calls of a stack that led to the finding.
    calls: usize,
    /// Calls that led to where a block was made or freed.
    history: usize,
    /// Copies on the way of a value.
    copies: usize,
    /// Lines of values below a step.
    values: usize,
    /// Whether registers are shown, where there are any.
    pub registers: bool,
}

/// From everything to what every reader needs. What is left out is told with `--json`.
const ROOMS: [Room; 4] = [
    Room { calls: usize::MAX, history: 8, copies: 16, values: usize::MAX, registers: true },
    Room { calls: 10, history: 4, copies: 6, values: 3, registers: true },
    Room { calls: 10, history: 4, copies: 6, values: 3, registers: false },
    Room { calls: 6, history: 3, copies: 3, values: 2, registers: false },
];

/// The text with as much in it as fits on a screen.
pub fn on_a_screen(text: impl Fn(Room) -> String) -> String {
    let fits = |text: &String| text.lines().count() <= SCREEN;
    let least = || text(ROOMS[ROOMS.len() - 1]);
    ROOMS.iter().map(|room| text(*room)).find(fits).unwrap_or_else(least)
}

/// The whole finding.
pub fn render(finding: &Finding, style: Style) -> String {
    on_a_screen(|room| {
        let evidence = steps(finding.when, &finding.evidence, room, style);
        heading(finding, style) + &evidence.concat()
    })
}

/// Findings to be read one after the other: what one has in common with an earlier one is told there.
pub fn render_all<'a>(
    findings: impl IntoIterator<Item = &'a Finding>,
    style: Style,
) -> Vec<String> {
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut told: Vec<(&Finding, Vec<usize>)> = Vec::new();
    let mut texts = Vec::new();
    for finding in findings {
        let mut number = |line: &String| {
            let next = numbers.len();
            *numbers.entry(line.clone()).or_insert(next)
        };
        let all = steps(finding.when, &finding.evidence, ROOMS[0], style);
        let own: Vec<usize> = all.iter().map(&mut number).collect();
        let text = match longest(&own, &told) {
            Some((run, earlier)) if run.len() >= IN_COMMON => {
                let rest = as_above(earlier, run.len() - 1);
                let kept = [all[..=run.start].concat(), rest, all[run.end..].concat()];
                heading(finding, style) + &kept.concat()
            }
            _ => render(finding, style),
        };
        texts.push(text);
        told.push((finding, own));
    }
    texts
}

/// The longest run that an earlier finding has as well, and the first that has it.
fn longest<'a>(
    own: &[usize],
    told: &[(&'a Finding, Vec<usize>)],
) -> Option<(Range<usize>, &'a Finding)> {
    let runs = told.iter().map(|(earlier, steps)| (common_run(own, steps), *earlier));
    runs.rev().max_by_key(|(run, _)| run.len())
}

/// The longest run of steps that the other has as well.
fn common_run(own: &[usize], other: &[usize]) -> Range<usize> {
    let mut best = 0..0;
    for from in 0..own.len() {
        for at in 0..other.len() {
            let pairs = own[from..].iter().zip(&other[at..]);
            let length = pairs.take_while(|(own, other)| own == other).count();
            if length > best.len() {
                best = from..from + length;
            }
        }
    }
    best
}

fn as_above(earlier: &Finding, left_out: usize) -> String {
    let place = earlier.place.as_ref();
    let place = place.map_or(String::new(), |place| format!(" at {}", shortened(place)));
    format!("  … and {left_out} more lines as in the finding{place} above\n")
}

/// The evidence of a finding that shows at `when`, a text for each step or for several that are told in one line. A
/// moment is told where it is another than that of the line above.
pub fn steps(when: Option<When>, evidence: &[Step], room: Room, style: Style) -> Vec<String> {
    let mut texts = Vec::new();
    for group in evidence.chunk_by(|one, next| one.role.is_some() && one.role == next.role) {
        let most = match group[0].role {
            Some(Role::Also) => {
                texts.push(also(group, style));
                continue;
            }
            Some(Role::Call) => room.calls,
            Some(Role::Allocated | Role::Freed | Role::Opened | Role::Closed) => room.history,
            Some(Role::Copied) => room.copies,
            Some(Role::Times) | None => usize::MAX,
        };
        let mut told = when;
        for (number, step) in (1..).zip(group.iter().take(most)) {
            let left = if number == most { group.len() - number } else { 0 };
            let more = if left > 0 { format!(" (… {left} more)") } else { String::new() };
            let moment = step.when.filter(|_| step.when != told);
            told = step.when.or(told);
            texts.push(one(step, moment, &more, room, style));
        }
    }
    texts
}

/// Other places of the same finding, in a line or two.
fn also(places: &[Step], style: Style) -> String {
    let named = places.iter().filter_map(|step| step.place.as_ref()).take(ALSO);
    let named: Vec<String> = named.map(|place| briefly(place).to_string()).collect();
    let left = places.len() - named.len();
    let more = if left > 0 { format!(" and {left} more places") } else { String::new() };
    fit::wrapped(&format!("  also at {}{more}", named.join(", ")), style.columns) + "\n"
}

/// Title, place and the source around it.
pub fn heading(finding: &Finding, style: Style) -> String {
    let sure = finding.confidence == Confidence::Certain;
    let title = format!("{}{}", if sure { "" } else { "probably " }, finding.title);
    titled(&title, finding, style)
}

/// The same under another title.
pub fn titled(title: &str, finding: &Finding, style: Style) -> String {
    let title = fit::wrapped(&format!("whydunit: {title}"), style.columns);
    let (tool, title) = title.split_once(' ').unwrap_or((&title, ""));
    let mut text = format!("{tool} {}\n", style.alarm(title));
    let Some(place) = &finding.place else { return text };
    let when = short_moment(finding.when, style);
    let place_text = fit::abridged(&shortened(place).to_string(), style.columns.saturating_sub(20));
    text += &format!("  at {}{when}\n", style.strong(&place_text));
    if let (Some(file), Some(line)) = (&place.file, place.line) {
        text += &excerpt(file, line, style);
    }
    text
}

/// `@TICK/THREAD`, which is what other commands take.
fn short_moment(when: Option<When>, style: Style) -> String {
    when.map_or_else(String::new, |when| {
        format!("  {}", style.faint(&format!("{}/{}", when.position.tick, when.thread)))
    })
}

fn excerpt(file: &str, line: u32, style: Style) -> String {
    let lines = source::excerpt(file, line);
    let mut text = String::new();
    for (number, words) in &lines {
        if *number == line {
            let marked = fit::cut(&format!("  > {number:>5} | {words}"), style.columns);
            text += &format!("{}\n", style.strong(marked.trim_end()));
        } else {
            text += fit::cut(&format!("    {number:>5} | {words}"), style.columns).trim_end();
            text.push('\n');
        }
    }
    if text.is_empty() { text } else { format!("\n{text}\n") }
}

/// A step, with its moment and `more` behind its line.
fn one(step: &Step, moment: Option<When>, more: &str, room: Room, style: Style) -> String {
    let moment = short_moment(moment, Style::PLAIN) + more;
    let behind = format!("{}{moment}", remaining(step));
    let room_for_name = style.columns.saturating_sub(2 + fit::width(&behind));
    let line = format!("  {}{behind}", step.text);
    let line = match step.role {
        _ if fit::width(&line) <= style.columns => line,
        Some(role) if role != Role::Copied && room_for_name >= NAME => {
            format!("  {}{behind}", fit::abridged(&step.text, room_for_name))
        }
        None => fit::wrapped(&line, style.columns),
        Some(_) => {
            let words = fit::abridged(&step.text, style.columns.saturating_sub(2));
            fit::wrapped(&format!("  {words}{behind}"), style.columns)
        }
    };
    let mut text = format!("{}\n", with_faint(&line, &moment, style));
    let lines = wrapped(&step.values, style.columns.saturating_sub(INDENT.len()));
    for line in lines.iter().take(room.values) {
        text += &format!("{INDENT}{}\n", style.faint(line));
    }
    text
}

/// Columns that a name keeps when the line around it is too long.
const NAME: usize = 24;

/// Columns that a function's name may take where it is said in passing.
const IN_PASSING: usize = 60;

fn with_faint(line: &str, end: &str, style: Style) -> String {
    match line.strip_suffix(end).filter(|_| !end.is_empty()) {
        Some(before) => format!("{before}{}", style.faint(end)),
        None => line.to_owned(),
    }
}

/// The place of a step, as far as its words have not said it.
fn remaining(step: &Step) -> String {
    let Some(place) = &step.place else { return String::new() };
    let said = place.function.as_ref().is_some_and(|function| step.text.contains(function));
    match (&place.file, place.line, place.address) {
        (Some(file), Some(line), _) if said => format!(" at {}:{line}", named(file)),
        (None, _, _) if said => String::new(),
        (None, _, Some(address)) if step.text.contains(&address.to_string()) => String::new(),
        _ => format!(" at {}", briefly(place)),
    }
}

/// The same place with a short name of its function.
fn briefly(place: &Place) -> Place {
    let function = place.function.as_deref().map(|name| fit::abridged(name, IN_PASSING));
    Place { function, ..shortened(place) }
}

/// The same place, its file as seen from the current folder.
pub fn shortened(place: &Place) -> Place {
    Place { file: place.file.as_deref().map(named), ..place.clone() }
}

/// A file as seen from the current folder; of one that a library was built from its name alone.
fn named(file: &str) -> String {
    match base::is_own_source(file) || file.starts_with("/rustc/") {
        true => source::shortened(file),
        false => file.rsplit('/').next().unwrap_or(file).to_owned(),
    }
}

/// Values side by side, as many as a line takes.
fn wrapped(values: &[(String, String)], columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (name, value) in values {
        let item = fit::cut(&format!("{name} = {value}"), columns);
        match lines.last_mut() {
            Some(line) if fit::width(line) + fit::width(&item) + 2 <= columns => {
                *line += &format!(", {item}");
            }
            _ => lines.push(item),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Address;

    fn finding(line: u32, evidence: Vec<Step>) -> Finding {
        Finding {
            kind: "test".into(),
            title: "freed memory is used".into(),
            confidence: Confidence::Certain,
            place: Some(Place::line("/gone/a.c", line)),
            when: None,
            evidence,
        }
    }

    #[test]
    fn a_finding_reads_from_title_to_evidence() {
        let line = Place::line("/gone/a.c", 3).in_function("main");
        let address = Place { address: Some(Address(0x40)), ..Place::default() };
        let evidence = vec![
            Step::new("#0 main").at(line.clone()).with("a", "1").with("b", "2"),
            Step::new("it was freed").at(line.clone()),
            Step::new("#1 0x40 in no file").at(address.clone()),
            Step::new("called").at(address),
            Step::new("also").as_a(Role::Also).at(Place::line("/gone/b.c", 4)),
            Step::new("also").as_a(Role::Also).at(Place::line("./libio/ioputs.c", 5)),
        ];
        let finding = Finding {
            title: "the list has lost a node".into(),
            place: Some(line),
            ..finding(3, evidence)
        };
        let expected = "\
whydunit: the list has lost a node
  at /gone/a.c:3 (main)
  #0 main at /gone/a.c:3
      a = 1, b = 2
  it was freed at /gone/a.c:3 (main)
  #1 0x40 in no file
  called at *0x40
  also at /gone/b.c:4, ioputs.c:5
";
        assert_eq!(render(&finding, Style::PLAIN), expected);
    }

    #[test]
    fn what_findings_have_in_common_is_told_once() {
        let chain = |first: &str, last: &str| {
            let middle = (0..IN_COMMON).map(|number| format!("freed: #{number}"));
            let all = [first.to_owned()].into_iter().chain(middle).chain([last.to_owned()]);
            all.map(Step::new).collect::<Vec<_>>()
        };
        let short = vec![Step::new("read"), Step::new("freed: #0"), Step::new("freed: #1")];
        let findings = [
            finding(1, chain("read", "twice")),
            finding(2, short),
            finding(3, chain("written", "three times")),
        ];
        let texts = render_all(&findings, Style::PLAIN);
        assert_eq!(texts[0], render(&findings[0], Style::PLAIN));
        assert_eq!(texts[1], render(&findings[1], Style::PLAIN));
        let expected = "\
whydunit: freed memory is used
  at /gone/a.c:3
  written
  freed: #0
  … and 5 more lines as in the finding at /gone/a.c:1 above
  three times
";
        assert_eq!(texts[2], expected);
    }

    #[test]
    fn whatever_there_is_to_say_fits_on_a_screen() {
        let name = "std::map<std::string, std::vector<int>>::insert_or_assign".repeat(3);
        let frame = |role| {
            let place = Place::line("/a/rather/long/path/to/a/file.cpp", 12345).in_function(&name);
            Step::new(format!("#0 {name}")).as_a(role).at(place)
        };
        let mut evidence = vec![Step::new("word ".repeat(60))];
        for role in [Role::Call, Role::Allocated, Role::Freed, Role::Copied, Role::Also] {
            evidence.extend((0..50).map(|_| frame(role)));
        }
        let values = (0..60).fold(Step::new("the variables"), |step, n| {
            step.with(format!("value{n}"), "x".repeat(n * 3))
        });
        evidence.push(values);
        let text = render(&finding(1, evidence), Style::PLAIN);
        assert!(text.lines().count() <= SCREEN, "{text}");
        let widest = text.lines().map(fit::width).max();
        assert!(widest <= Some(Style::PLAIN.columns), "{text}");
        assert!(text.contains("(… 44 more)") && text.contains("and 46 more places"), "{text}");
    }
}
