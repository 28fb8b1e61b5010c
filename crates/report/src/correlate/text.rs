//! The report of `whydunit correlate` as text: the table of rules, the summary, and the records behind
//! `--json` and `--accesses`.

use crate::list;
use crate::style::Style;
use base::Finding;
use correlate::Analysis;
use correlate::access::{Kind, Owner};
use correlate::baseline::{Baseline, KnownViolation};
use correlate::rules::{Rule, Way};
use correlate::types::Type;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The whole report for a terminal.
pub fn report(
    analysis: &Analysis,
    findings: &[Finding],
    silenced: usize,
    limit: usize,
    style: Style,
) -> String {
    let mut out = String::new();
    let shown = strongest_forms(analysis);
    let count = shown.len();
    let _ = writeln!(out, "{}", style.strong(&format!("Correlations ({count} pairs)")));
    let _ = writeln!(out, "{}", style.faint("support direct confidence  rule"));
    for rule in shown.iter().take(limit) {
        let _ = writeln!(
            out,
            "{:>7} {:>6} {:>9.1}%  {}",
            rule.support,
            rule.direct,
            100.0 * rule.confidence(),
            analysis.shown(rule)
        );
    }
    more(&mut out, count, limit, style);
    let heading = format!("\nInconsistent updates ({})", findings.len());
    let _ = writeln!(out, "{}", style.strong(&heading));
    out.push_str(&list::findings(&findings[..findings.len().min(limit)], style));
    more(&mut out, findings.len(), limit, style);
    out.push('\n');
    out.push_str(&summary(analysis, silenced));
    out
}

/// Says how many rows a list leaves out.
pub fn more(out: &mut String, count: usize, limit: usize, style: Style) {
    if count > limit {
        let text = format!("  … and {} more; see --limit or --json", count - limit);
        let _ = writeln!(out, "{}", style.faint(&text));
    }
}

/// One rule for each set of variables and direction: the one that demands most. The forms of a pair
/// say nearly the same, and nine lines for it would hide the next pair.
fn strongest_forms(analysis: &Analysis) -> Vec<&Rule> {
    let mut best: BTreeMap<(Vec<_>, _), usize> = BTreeMap::new();
    let demand = |rule: &Rule| match (rule.left[0].0, rule.right.0) {
        (Way::Any, Way::Write) => 0,
        (Way::Write, Way::Write) => 1,
        (Way::Any, Way::Read) => 2,
        (Way::Any, Way::Any) => 3,
        (Way::Read, Way::Write) => 4,
        (Way::Read, Way::Read) => 5,
        (Way::Write, _) => 6,
        (Way::Read, Way::Any) => 7,
    };
    for (index, rule) in analysis.rules.iter().enumerate() {
        let variables: Vec<_> = rule.left.iter().map(|(_, variable)| *variable).collect();
        let slot = best.entry((variables, rule.right.1)).or_insert(index);
        if demand(rule) < demand(&analysis.rules[*slot]) {
            *slot = index;
        }
    }
    let mut chosen: Vec<_> = best.into_values().collect();
    chosen.sort_unstable();
    chosen.into_iter().map(|index| &analysis.rules[index]).collect()
}

fn summary(analysis: &Analysis, silenced: usize) -> String {
    let tree = &analysis.tree;
    let resolution = tree.resolution;
    let mut out = format!(
        "{} lines in {} files, {} functions. Field accesses: {} resolved ({:.1} %), {} guessed by \
         a unique field name, {} dropped.\n",
        tree.lines,
        tree.files,
        tree.functions.len(),
        resolution.resolved,
        resolution.percent(),
        resolution.guessed,
        resolution.dropped,
    );
    if silenced > 0 {
        let _ = writeln!(out, "{silenced} findings silenced by suppressions or the baseline.");
    }
    for skipped in tree.skipped.iter().take(10) {
        let _ = writeln!(out, "passed over {}: {}", skipped.path, skipped.reason);
    }
    if tree.skipped.len() > 10 {
        let _ = writeln!(out, "… and {} more passed over", tree.skipped.len() - 10);
    }
    out
}

/// The summary for programs.
pub fn summary_json(analysis: &Analysis, silenced: usize) -> Value {
    let tree = &analysis.tree;
    json!({
        "lines": tree.lines,
        "files": tree.files,
        "functions": tree.functions.len(),
        "variables": analysis.graph.variables.len(),
        "accesses": tree.resolution,
        "rules": analysis.rules.len(),
        "silenced": silenced,
        "options": analysis.options,
    })
}

/// A rule for programs.
pub fn rule_json(analysis: &Analysis, rule: &Rule) -> Value {
    json!({
        "rule": analysis.shown(rule),
        "support": rule.support,
        "direct": rule.direct,
        "left_support": rule.left_support,
        "confidence": (rule.confidence() * 1e4).round() / 1e4,
        "same_object": rule.same_object,
    })
}

/// The baseline that a report is. Reports of earlier versions name what a function lacks in the title of
/// the finding alone.
pub fn baseline(details: &Value, findings: &[Finding]) -> anyhow::Result<Baseline> {
    let mut baseline = Baseline::deserialize(details)?;
    if details.get("violations").is_none() {
        let known = findings.iter().filter_map(|finding| {
            let place = finding.place.as_ref()?;
            Some(KnownViolation {
                file: place.file.clone()?,
                function: place.function.clone()?,
                missing: finding.title.rsplit(' ').next()?.to_string(),
            })
        });
        baseline.violations = known.collect();
    }
    Ok(baseline)
}

/// Every access of every function, one JSON object a line, and the structs it sets as a whole.
pub fn accesses(analysis: &Analysis) -> String {
    let mut out = String::new();
    let tree = &analysis.tree;
    for (id, function) in tree.functions.iter().enumerate() {
        let (path, name) = (&tree.paths[function.file as usize], analysis.function_name(id as u32));
        for access in &function.accesses {
            let owner = match access.owner {
                Owner::Struct(it) => tree.names.text(tree.types.structure(it).name),
                Owner::Opaque(it) => tree.names.text(it),
                Owner::Member(it) => {
                    tree.names.text(tree.types.structure(tree.members.get(it).inner).name)
                }
                Owner::Global | Owner::Static(_) => "",
            };
            let line = json!({
                "file": path,
                "line": access.line,
                "function": name,
                "macro": function.is_macro,
                "type": owner,
                "field": tree.names.text(access.field),
                "read": access.kind.meets(Kind::READ),
                "write": access.kind.meets(Kind::WRITE),
                "address": access.kind.meets(Kind::ADDRESS),
                "guess": access.is_guess,
            });
            let _ = writeln!(out, "{line}");
        }
        for whole in &function.wholes {
            let owner = match whole.of {
                Type::Struct(it) => tree.names.text(tree.types.structure(it).name),
                Type::Opaque(it) => tree.names.text(it),
                Type::Unknown | Type::Scalar => continue,
            };
            let line = json!({"file": path, "function": name, "whole": owner});
            let _ = writeln!(out, "{line}");
        }
    }
    out
}
