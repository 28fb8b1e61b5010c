//! What a change of one file would do to the report, for many changes in turn: the engine of
//! `benches/correlate/mutate`, which would otherwise read the tree anew for every mutant.
//!
//! `variants TREE` first prints a line about the unchanged tree: its findings, and every update that a
//! rule `write(x) => write(y)` asks for (`[file, function, y, line, rule]`). Then it reads lines of JSON
//! such as `{"file": "a.c", "cut": [[120, 134]]}`, a file and the bytes in it to blank, and answers each
//! with a line: the findings on the changed tree alone (`plain`), against the rules of the unchanged tree
//! (`rules`, as if the function were new), and against the unchanged tree as a baseline (`against`), in
//! order, as `[file, function, missing...]`.

use correlate::access::Kind;
use correlate::baseline::Baseline;
use correlate::explain::{Conformance, sites};
use correlate::library::Library;
use correlate::rules::{BySize, Options, Way};
use correlate::tree::Silent;
use correlate::{Analysis, Request, analyse};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write;

#[derive(Deserialize)]
struct Change {
    file: String,
    cut: Vec<(usize, usize)>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let root = std::env::args_os().nth(1).ok_or("usage: variants TREE")?;
    let library = Library::builtin();
    let request = Request {
        roots: vec![root.into()],
        library: library.clone(),
        options: Options::default(),
        by_size: BySize::ALL,
        max_file_size: 32 << 20,
        ..Request::default()
    };
    let mut analysis = analyse(&request, &Silent)?;
    let options = analysis.options;
    let baseline = Baseline::of(&analysis);
    let rules_alone = Baseline { functions: Vec::new(), ..baseline.clone() };
    print(&json!({"findings": violations(&analysis), "updates": updates(&analysis)}))?;
    for line in std::io::stdin().lines() {
        let change: Change = serde_json::from_str(&line?)?;
        let file = analysis.tree.paths.iter().position(|path| *path == change.file);
        let file = file.ok_or_else(|| format!("{}: not in the tree", change.file))?;
        let mut text = std::fs::read(&analysis.tree.locations[file])?;
        for (from, to) in change.cut {
            let cut = text.get_mut(from..to).ok_or("the cut is outside the file")?;
            cut.iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
        }
        let mut tree = analysis.tree;
        let functions = tree.reread(file as u32, &text, &library);
        let former = tree.replace(file as u32, functions);
        analysis = Analysis::new(tree, options, &Silent);
        let plain = violations(&analysis);
        let (mined, found) = (analysis.rules.len(), analysis.violations.clone());
        analysis.against(&rules_alone);
        let rules = violations(&analysis);
        analysis.rules.truncate(mined);
        analysis.violations = found;
        analysis.against(&baseline);
        let against = violations(&analysis);
        print(&json!({"plain": plain, "rules": rules, "against": against}))?;
        analysis.tree.replace(file as u32, former);
    }
    Ok(())
}

/// The findings: a function, and all that it lacks.
fn violations(analysis: &Analysis) -> Vec<Vec<String>> {
    let mut findings: Vec<Vec<String>> = Vec::new();
    let mut of: BTreeMap<u32, usize> = BTreeMap::new();
    for violation in &analysis.violations {
        let id = violation.function;
        let index = *of.entry(id).or_insert_with(|| {
            findings.push(vec![analysis.path_of(id).to_string(), analysis.function_name(id)]);
            findings.len() - 1
        });
        findings[index].push(analysis.graph.shown(&analysis.tree, violation.missing));
    }
    findings
}

/// Every update that a rule asks for, and that a function makes itself.
fn updates(analysis: &Analysis) -> Vec<Value> {
    let mut updates = BTreeMap::new();
    for rule in analysis.rules.iter().filter(|it| it.is_simple(Way::Write, Way::Write)) {
        let y = rule.right.1;
        for site in sites(analysis, rule) {
            if site.conformance != (Conformance::Obeys { direct: true }) {
                continue;
            }
            let written = analysis.graph.entries(site.function, y).iter();
            for entry in written.filter(|it| it.via == 0 && it.kind.meets(Kind::WRITE)) {
                updates.entry((site.function, y, entry.line)).or_insert(rule);
            }
        }
    }
    let shown = updates.into_iter().map(|((function, y, line), rule)| {
        let name = analysis.function_name(function);
        let y = analysis.graph.shown(&analysis.tree, y);
        json!([analysis.path_of(function), name, y, line, analysis.shown(rule)])
    });
    shown.collect()
}

fn print(answer: &Value) -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, answer)?;
    writeln!(out)?;
    Ok(out.flush()?)
}
