//! The tables of `--distribution` and `--sensitivity`.

use crate::style::Style;
use correlate::statistics::{Distribution, Setting};
use std::fmt::Write;

/// Peers beyond which variables are counted together.
const MOST_PEERS: usize = 10;

/// How the correlations of a tree are distributed.
pub fn distribution(found: &Distribution, style: Style) -> String {
    let mut out = format!(
        "{}\n{} pairs of {} variables in {} structs; {} hold in both directions, {} in one.\n",
        style.strong("Correlations any(x) => any(y)"),
        found.pairs,
        found.variables,
        found.structs,
        found.symmetric,
        found.pairs - found.symmetric,
    );
    let _ = writeln!(out, "\n{}", style.strong("Variables by the number of their peers"));
    let _ = writeln!(out, "{}", style.faint("peers variables   share"));
    let share = |count: usize| 100.0 * count as f64 / found.variables.max(1) as f64;
    for (peers, count) in found.peers.range(..=MOST_PEERS) {
        let _ = writeln!(out, "{peers:>5} {count:>9} {:>6.1}%", share(*count));
    }
    let beyond: usize = found.peers.range(MOST_PEERS + 1..).map(|(_, count)| count).sum();
    if beyond > 0 {
        let _ = writeln!(out, "{:>5} {beyond:>9} {:>6.1}%", "more", share(beyond));
    }
    let _ = writeln!(out, "\n{}", style.strong("Rules with one variable on the left, by form"));
    for (form, count) in &found.forms {
        let _ = writeln!(out, "{count:>9}  {form}");
    }
    let _ = writeln!(out, "\n{}", style.strong("Rules by the number of variables on the left"));
    for (left, count) in &found.left {
        let _ = writeln!(out, "{count:>9}  {left}");
    }
    out
}

/// What is found with each threshold changed alone.
pub fn sensitivity(settings: &[Setting], style: Style) -> String {
    let mut out = String::new();
    for part in settings.chunk_by(|left, right| left.option == right.option) {
        let _ = writeln!(out, "{}", style.strong(part[0].option));
        let header = " value any=>any write=>any findings of those given";
        let _ = writeln!(out, "{}", style.faint(header));
        for it in part {
            let _ = writeln!(
                out,
                "{:>6} {:>8} {:>10} {:>8} {:>14}",
                it.value, it.rules, it.write_rules, it.findings, it.kept
            );
        }
        out.push('\n');
    }
    out
}
