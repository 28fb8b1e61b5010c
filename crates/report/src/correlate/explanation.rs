//! What `--explain` shows of a rule: its supporters, its violators and those that are excused, with
//! their source lines side by side as text, or as data for programs.

use super::text::{more, rule_json};
use crate::style::Style;
use correlate::Analysis;
use correlate::explain::{Conformance, Site, sites};
use correlate::rules::Rule;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Supporters shown as text; violators are shown in full.
const SUPPORTERS: usize = 20;

/// Characters of a source line that fit beside another.
const WIDTH: usize = 50;

/// The explanation for a terminal.
pub fn text(analysis: &Analysis, rule: &Rule, style: Style) -> String {
    let mut files = Files { analysis, read: BTreeMap::new() };
    let groups = Groups::new(analysis, rule);
    let mut out = format!(
        "{}\n{} of {} functions obey it ({:.1} %), {} by their own accesses; it is broken in {}.\n",
        style.strong(&analysis.shown(rule)),
        rule.support,
        rule.left_support,
        100.0 * rule.confidence(),
        rule.direct,
        groups.violators.len(),
    );
    let _ = writeln!(out, "\n{}", style.strong(&format!("Supporters ({})", rule.support)));
    for site in groups.supporters.iter().take(SUPPORTERS) {
        files.show(&mut out, site);
    }
    more(&mut out, groups.supporters.len(), SUPPORTERS, style);
    let heading = format!("Violators ({})", groups.violators.len());
    let _ = writeln!(out, "\n{}", style.strong(&heading));
    for site in &groups.violators {
        files.show(&mut out, site);
    }
    if groups.violators.is_empty() {
        out.push_str("  none\n");
    }
    for (title, sites) in [("Excused", &groups.excused), ("Not counted", &groups.uncounted)] {
        if sites.is_empty() {
            continue;
        }
        let _ = writeln!(out, "\n{}", style.strong(&format!("{title} ({})", sites.len())));
        for site in sites.iter().take(SUPPORTERS) {
            files.show(&mut out, site);
        }
        more(&mut out, sites.len(), SUPPORTERS, style);
    }
    out
}

/// The explanation for programs: all sites, with whole lines.
pub fn json(analysis: &Analysis, rule: &Rule) -> Value {
    let mut files = Files { analysis, read: BTreeMap::new() };
    let groups = Groups::new(analysis, rule);
    let mut list = |sites: &[Site]| sites.iter().map(|site| files.record(site)).collect::<Vec<_>>();
    json!({
        "rule": rule_json(analysis, rule),
        "supporters": list(&groups.supporters),
        "violators": list(&groups.violators),
        "excused": list(&groups.excused),
        "not_counted": list(&groups.uncounted),
    })
}

/// The functions with the left side of a rule. The first three groups together are those that its
/// confidence counts.
#[derive(Default)]
struct Groups {
    supporters: Vec<Site>,
    violators: Vec<Site>,
    excused: Vec<Site>,
    uncounted: Vec<Site>,
}

impl Groups {
    fn new(analysis: &Analysis, rule: &Rule) -> Self {
        let mut groups = Self::default();
        for site in sites(analysis, rule) {
            let group = match site.conformance {
                Conformance::Obeys { .. } => &mut groups.supporters,
                Conformance::Breaks => &mut groups.violators,
                Conformance::Excused(_) if site.is_counted() => &mut groups.excused,
                Conformance::Excused(_) => &mut groups.uncounted,
            };
            group.push(site);
        }
        groups
    }
}

/// Source lines, each file read once.
struct Files<'a> {
    analysis: &'a Analysis,
    read: BTreeMap<u32, Vec<String>>,
}

impl Files<'_> {
    fn show(&mut self, out: &mut String, site: &Site) {
        let function = self.analysis.function_name(site.function);
        let path = self.analysis.path_of(site.function);
        let _ = writeln!(out, "  {path} ({function})");
        let mut numbered = |line| {
            let short: String = self.line(site, line).chars().take(WIDTH).collect();
            format!("{line:>6}: {short}")
        };
        let left = numbered(site.left_line);
        let right = match site.conformance {
            Conformance::Excused(reason) => format!("({reason})"),
            _ => site.right_line.map_or("—".into(), &mut numbered),
        };
        let _ = writeln!(out, "    {left:<58} | {right}");
        if let Some(alone) = site.alone.map(numbered) {
            let _ = writeln!(out, "    {alone:<58} | (here it does not)");
        }
    }

    fn record(&mut self, site: &Site) -> Value {
        let excuse = match site.conformance {
            Conformance::Excused(reason) => Some(reason.to_string()),
            _ => None,
        };
        let side = |files: &mut Self, line| json!({"line": line, "text": files.line(site, line)});
        json!({
            "file": self.analysis.path_of(site.function),
            "function": self.analysis.function_name(site.function),
            "direct": site.conformance == Conformance::Obeys { direct: true },
            "excuse": excuse,
            "left": side(self, site.left_line),
            "right": site.right_line.map(|line| side(self, line)),
            "alone": site.alone.map(|line| side(self, line)),
        })
    }

    /// A line of the file that holds a site, without its indentation.
    fn line(&mut self, site: &Site, line: u32) -> String {
        let file = self.analysis.tree.functions[site.function as usize].file;
        let location = &self.analysis.tree.locations[file as usize];
        let lines = self.read.entry(file).or_insert_with(|| {
            let text = std::fs::read(location).unwrap_or_default();
            String::from_utf8_lossy(&text).lines().map(|it| it.trim().to_string()).collect()
        });
        lines.get(line as usize - 1).cloned().unwrap_or_default()
    }
}
