//! Any finding as text: its title, its place with the source around it, and the evidence.

use super::source;
use super::style::Style;
use base::{Confidence, Finding, Place, Step};
use std::collections::HashMap;
use std::ops::Range;

/// Columns that a line of values may take.
const WIDTH: usize = 96;
const INDENT: &str = "      ";

/// Steps in a row that two findings must have in common for the later one to leave them out.
const IN_COMMON: usize = 6;

/// The whole finding.
pub fn render(finding: &Finding, style: Style) -> String {
    heading(finding, style) + &steps(finding, style).concat()
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
        let lines = steps(finding, style);
        let mut number = |line: &String| {
            let next = numbers.len();
            *numbers.entry(line.clone()).or_insert(next)
        };
        let own: Vec<usize> = lines.iter().map(&mut number).collect();
        let evidence = match longest(&own, &told) {
            Some((run, earlier)) if run.len() >= IN_COMMON => {
                let rest = as_above(earlier, run.len() - 1);
                [lines[..=run.start].concat(), rest, lines[run.end..].concat()].concat()
            }
            _ => lines.concat(),
        };
        texts.push(heading(finding, style) + &evidence);
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

fn steps(finding: &Finding, style: Style) -> Vec<String> {
    finding.evidence.iter().map(|step| evidence(step, style)).collect()
}

fn heading(finding: &Finding, style: Style) -> String {
    let sure = finding.confidence == Confidence::Certain;
    let title = style.alarm(&finding.title);
    let mut text = format!("whydunit: {}{title}\n", if sure { "" } else { "probably " });
    let Some(place) = &finding.place else { return text };
    let when = finding.when.map_or_else(String::new, |when| {
        format!("  {}", style.faint(&format!("{}/{}", when.position.tick, when.thread)))
    });
    text += &format!("  at {}{when}\n", style.strong(&shortened(place).to_string()));
    if let (Some(file), Some(line)) = (&place.file, place.line) {
        text += &excerpt(file, line, style);
    }
    text
}

fn excerpt(file: &str, line: u32, style: Style) -> String {
    let lines = source::excerpt(file, line);
    let mut text = String::new();
    for (number, words) in &lines {
        if *number == line {
            let marked = format!("  > {number:>5} | {words}");
            text += &format!("{}\n", style.strong(marked.trim_end()));
        } else {
            text += format!("    {number:>5} | {words}").trim_end();
            text.push('\n');
        }
    }
    if text.is_empty() { text } else { format!("\n{text}\n") }
}

fn evidence(step: &Step, style: Style) -> String {
    let mut text = format!("  {}{}\n", step.text, remaining(step));
    for line in wrapped(&step.values) {
        text += &format!("{INDENT}{}\n", style.faint(&line));
    }
    text
}

/// The place of a step, as far as its words have not said it.
fn remaining(step: &Step) -> String {
    let Some(place) = &step.place else { return String::new() };
    let said = place.function.as_ref().is_some_and(|function| step.text.contains(function));
    match (&place.file, place.line, place.address) {
        (Some(file), Some(line), _) if said => format!(" at {}:{line}", source::shortened(file)),
        (None, _, _) if said => String::new(),
        (None, _, Some(address)) if step.text.contains(&address.to_string()) => String::new(),
        _ => format!(" at {}", shortened(place)),
    }
}

/// The same place, its file as seen from the current folder.
pub fn shortened(place: &Place) -> Place {
    Place { file: place.file.as_deref().map(source::shortened), ..place.clone() }
}

/// Values side by side, as many as a line takes.
fn wrapped(values: &[(String, String)]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (name, value) in values {
        let item = format!("{name} = {value}");
        match lines.last_mut() {
            Some(line) if line.chars().count() + item.chars().count() + 2 <= WIDTH => {
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

    #[test]
    fn a_finding_reads_from_title_to_evidence() {
        let line = Place::line("/gone/a.c", 3).in_function("main");
        let address = Place { address: Some(Address(0x40)), ..Place::default() };
        let finding = Finding {
            kind: "test".into(),
            title: "the list has lost a node".into(),
            confidence: Confidence::Certain,
            place: Some(line.clone()),
            when: None,
            evidence: vec![
                Step::new("#0 main").at(line.clone()).with("a", "1").with("b", "2"),
                Step::new("it was freed").at(line),
                Step::new("#1 0x40 in no file").at(address.clone()),
                Step::new("called").at(address),
            ],
        };
        let expected = "\
whydunit: the list has lost a node
  at /gone/a.c:3 (main)
  #0 main at /gone/a.c:3
      a = 1, b = 2
  it was freed at /gone/a.c:3 (main)
  #1 0x40 in no file
  called at *0x40
";
        assert_eq!(render(&finding, Style::PLAIN), expected);
    }

    #[test]
    fn what_findings_have_in_common_is_told_once() {
        let finding = |line: u32, evidence: Vec<Step>| Finding {
            kind: "test".into(),
            title: "freed memory is used".into(),
            confidence: Confidence::Certain,
            place: Some(Place::line("/gone/a.c", line)),
            when: None,
            evidence,
        };
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
    fn many_values_take_several_lines() {
        let values: Vec<_> = (0..9).map(|n| (format!("value{n}"), "x".repeat(20))).collect();
        let lines = wrapped(&values);
        assert!(lines.len() > 1 && lines.iter().all(|line| line.len() <= WIDTH), "{lines:?}");
    }
}
