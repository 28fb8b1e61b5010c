//! What a change of one file would do to the report, for many changes in turn: the engine of
//! `benches/correlate/mutate`, which would otherwise read the tree anew for every mutant.
//!
//! `variants TREE` reads lines of JSON such as `{"file": "a.c", "blank": [12, 13]}`, a file and the
//! lines in it to replace by `;`, and answers each with a line: all findings, in order, as
//! `[file, function, title]`. The first line of output is the report on the unchanged tree.

use correlate::library::Library;
use correlate::rules::Options;
use correlate::tree::Silent;
use correlate::{Analysis, Request, analyse};
use serde::Deserialize;
use std::error::Error;
use std::io::Write;

#[derive(Deserialize)]
struct Change {
    file: String,
    blank: Vec<usize>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let root = std::env::args_os().nth(1).ok_or("usage: variants TREE")?;
    let library = Library::builtin();
    let options = Options::default();
    let request = Request {
        roots: vec![root.into()],
        library: library.clone(),
        options,
        max_file_size: 32 << 20,
        ..Request::default()
    };
    let mut analysis = analyse(&request, &Silent)?;
    print(&analysis)?;
    for line in std::io::stdin().lines() {
        let change: Change = serde_json::from_str(&line?)?;
        let file = analysis.tree.paths.iter().position(|path| *path == change.file);
        let file = file.ok_or_else(|| format!("{}: not in the tree", change.file))?;
        let text = changed(&std::fs::read(&analysis.tree.locations[file])?, &change.blank);
        let mut tree = analysis.tree;
        let functions = tree.reread(file as u32, &text, &library);
        let former = tree.replace(file as u32, functions);
        analysis = Analysis::new(tree, options, &Silent);
        print(&analysis)?;
        analysis.tree.replace(file as u32, former);
    }
    Ok(())
}

fn changed(text: &[u8], blank: &[usize]) -> Vec<u8> {
    let lines: Vec<&[u8]> = text
        .split(|byte| *byte == b'\n')
        .enumerate()
        .map(|(index, line)| if blank.contains(&(index + 1)) { b";" } else { line })
        .collect();
    lines.join(&b'\n')
}

fn print(analysis: &Analysis) -> Result<(), Box<dyn Error>> {
    let findings = analysis.findings();
    let shown = findings.iter().map(|finding| {
        let place = finding.place.as_ref();
        let file = place.and_then(|place| place.file.clone());
        let function = place.and_then(|place| place.function.clone());
        (file, function, &finding.title)
    });
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, &shown.collect::<Vec<_>>())?;
    writeln!(out)?;
    Ok(out.flush()?)
}
