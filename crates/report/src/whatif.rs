//! What came of a diversion, as text.

use super::finding::shortened;
use investigate::whatif::differ::Difference;
use investigate::whatif::search::SearchResult;
use investigate::whatif::{Answer, End, Verdict};

/// Lines of its output that are shown.
const SHOWN: usize = 10;

/// One diversion.
pub fn answer(answer: &Answer) -> String {
    let mut lines = vec![
        format!("{}, at {} ({})", answer.altered, shortened(&answer.place), answer.at.tick),
        format!("  recorded:  {}", end(&answer.recorded)),
        format!("  then:      {}", end(&answer.end)),
        format!("  so:        {}", verdict(answer.verdict)),
    ];
    lines.extend(difference(answer.difference.as_ref()));
    lines.extend(written(answer));
    for (what, times) in &answer.refused {
        let often = if *times > 1 { format!(" ({times} times)") } else { String::new() };
        lines.push(format!("  {what}{often}"));
    }
    lines.join("\n") + "\n"
}

/// A search.
pub fn found(found: &SearchResult) -> String {
    let mut lines = Vec::new();
    match found.critical.len() {
        0 => lines.push("no decision makes the failure go away".to_owned()),
        count => {
            let noun = if count == 1 { "decision makes" } else { "decisions make" };
            lines.push(format!("{count} {noun} the failure go away, the nearest first:"));
        }
    }
    for answer in &found.critical {
        let place = shortened(&answer.place);
        lines.push(format!("  {place} decides otherwise, at {}", answer.at.tick));
        lines.push(format!("    then {}", end(&answer.end)));
        lines.extend(difference(answer.difference.as_ref()).map(|line| format!("  {line}")));
    }
    let mut tried = format!(
        "{} tried: {} fail as before, {} end otherwise",
        found.tried, found.same, found.other
    );
    if found.untried > 0 {
        tried += &format!("; {} statements were left when time was up (--budget)", found.untried);
    }
    lines.push(tried);
    lines.join("\n") + "\n"
}

fn end(end: &End) -> String {
    match &end.place {
        Some(place) => format!("{}, at {}", end.words, shortened(place)),
        None => end.words.clone(),
    }
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::NoFailure => "it does not fail",
        Verdict::SameFailure => "it fails in the same way",
        Verdict::OtherEnd => "it ends in another way",
    }
}

fn difference(found: Option<&Difference>) -> Option<String> {
    let Difference { stream, line, recorded, diverted } = found?;
    let stream = if *stream == 1 { "output" } else { "error" };
    let text =
        |text: &Option<String>| text.as_ref().map_or("nothing".into(), |it| format!("`{it}`"));
    Some(format!(
        "  differs:   standard {stream}, line {line} from there on: {} in place of {}",
        text(diverted),
        text(recorded)
    ))
}

/// What the diversion wrote.
fn written(answer: &Answer) -> Vec<String> {
    let mut lines = Vec::new();
    for (text, name) in answer.output.iter().zip(["output", "error"]) {
        let all: Vec<&str> = text.lines().collect();
        for line in all.iter().take(SHOWN) {
            lines.push(format!("  {name:<10} {line}"));
        }
        if all.len() > SHOWN {
            lines.push(format!("  {name:<10} … and {} lines more", all.len() - SHOWN));
        }
    }
    if answer.output_cut {
        lines.push("  what it wrote beyond 16 MB is not kept".into());
    }
    lines
}
