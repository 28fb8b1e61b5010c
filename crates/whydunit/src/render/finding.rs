//! Any finding as text: its title, its place with the source around it, and the evidence.

use super::source;
use super::style::Style;
use base::{Confidence, Finding, Place, Step};

/// Columns that a line of values may take.
const WIDTH: usize = 96;
const INDENT: &str = "      ";

/// The whole finding.
pub fn render(finding: &Finding, style: Style) -> String {
    let mut text = heading(finding, style);
    for step in &finding.evidence {
        text += &evidence(step, style);
    }
    text
}

fn heading(finding: &Finding, style: Style) -> String {
    let sure = finding.confidence == Confidence::Certain;
    let title = style.alarm(&finding.title);
    let mut text = format!("whydunit: {}{title}\n", if sure { "" } else { "probably " });
    let Some(place) = &finding.place else { return text };
    text += &format!("  at {}\n", style.strong(&shortened(place).to_string()));
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

fn shortened(place: &Place) -> Place {
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
            moment: None,
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
    fn many_values_take_several_lines() {
        let values: Vec<_> = (0..9).map(|n| (format!("value{n}"), "x".repeat(20))).collect();
        let lines = wrapped(&values);
        assert!(lines.len() > 1 && lines.iter().all(|line| line.len() <= WIDTH), "{lines:?}");
    }
}
