//! Anomalies for people: a ranked list with the line of each, and a plot of when they came up.

use super::finding::shortened;
use super::source;
use super::style::Style;
use base::{Place, Step};
use invariants::Model;
use investigate::invariants::report::RankedFinding;
use investigate::invariants::report::words::{grouped, score};

/// Columns of a plot.
const COLUMNS: u64 = 60;

/// How much there is, and against what it was held.
pub fn head((shown, all): (usize, usize), (points, new): (usize, usize), model: &Model) -> String {
    let found = match (shown, all) {
        (_, 0) => "no anomalies".into(),
        (_, 1) => "1 anomaly".into(),
        (shown, all) if shown < all => format!("{shown} of {} anomalies", grouped(all as u64)),
        (_, all) => format!("{all} anomalies"),
    };
    let runs = if model.runs == 1 {
        "1 run".into()
    } else {
        format!("{} runs", grouped(model.runs.into()))
    };
    let new = match new {
        0 => String::new(),
        1 => ", 1 of them in new code".into(),
        new => format!(", {} of them in new code", grouped(new as u64)),
    };
    format!("whydunit: {found} at {} points{new}, held against {runs}\n", grouped(points as u64))
}

/// The list.
pub fn text(told: &[RankedFinding], style: Style) -> String {
    told.iter().map(|one| anomaly(one, style)).collect()
}

fn anomaly(one: &RankedFinding, style: Style) -> String {
    let finding = &one.finding;
    let place =
        finding.place.as_ref().map(|place| shortened(place).to_string()).unwrap_or_default();
    let when = finding.when.map(|when| format!("{}/{}", when.position.tick, when.thread));
    let when = style.faint(&when.unwrap_or_default());
    let mut text = format!(
        "\n{:>3}  {}\n     {} at {}  {when}\n",
        one.rank,
        style.alarm(&finding.title),
        style.faint(&score(one.score)),
        style.strong(&place),
    );
    text += &finding.place.as_ref().map(source_line).unwrap_or_default();
    for step in finding.evidence.iter().filter(|step| step.place.is_some()) {
        text += &evidence(step);
    }
    text
}

fn evidence(step: &Step) -> String {
    let Some(place) = &step.place else { return String::new() };
    format!("     {} at {}\n{}", step.text, shortened(place), source_line(place))
}

fn source_line(place: &Place) -> String {
    let (Some(file), Some(line)) = (&place.file, place.line) else { return String::new() };
    let lines = source::around(file, line, 0, 0);
    lines.iter().map(|(number, words)| format!("       {number:>5} | {}\n", words.trim())).collect()
}

/// When anomalies came up: how many in each stretch of the run, and how noteworthy the most noteworthy was.
pub fn plot(steps: &[(u64, f64)], all: u64) -> String {
    const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let mut counts = vec![0usize; COLUMNS as usize];
    for (step, _) in steps {
        let column = (u128::from(*step) * u128::from(COLUMNS) / u128::from(all.max(1))) as usize;
        counts[column.min(COLUMNS as usize - 1)] += 1;
    }
    let most = counts.iter().copied().max().unwrap_or_default().max(1);
    let bar = |count: &usize| LEVELS[(count * 8).div_ceil(most)];
    let bars: String = counts.iter().map(bar).collect();
    format!("\n  |{bars}|  at most {most} in a stretch\n  0{:>59}  instructions\n", grouped(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_has_a_bar_where_something_was() {
        let text = plot(&[(0, 1.0), (1, 1.0), (599, 2.0)], 600);
        let bars = text.split('|').nth(1).expect("bars");
        assert_eq!(bars.chars().count(), COLUMNS as usize);
        assert!(bars.starts_with('█') && bars.ends_with('▄'), "{bars}");
        assert!(plot(&[], 0).contains("at most 1"));
    }
}
