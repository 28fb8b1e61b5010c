//! `difftest`: runs random instruction cases natively and under a tool, and prints where the two
//! disagree, with disassembly and the difference in state.
#![forbid(unsafe_code)]

use anyhow::Context;
use clap::Parser;
use iced_x86::Code;
use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use testkit::fuzzcases::{Comparison, Disagreement, Forms, Program, Tool, compare};

/// Random instruction cases, natively and under a tool
#[derive(Parser)]
struct Arguments {
    /// How many cases
    #[arg(long, default_value_t = 100_000)]
    cases: usize,
    /// What the cases are drawn from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The command that runs a program; words are split at blanks
    #[arg(long, default_value = "")]
    tool: String,
    /// One more argument for the tool (repeatable)
    #[arg(long = "tool-arg", allow_hyphen_values = true)]
    tool_args: Vec<OsString>,
    /// Only forms whose name contains this, such as VPGATHER or LOCK_ADD
    #[arg(long)]
    only: Option<String>,
    /// No forms whose name contains this (repeatable)
    #[arg(long)]
    without: Vec<String>,
    /// Cases in one program
    #[arg(long, default_value_t = 20_000)]
    chunk: usize,
    /// How many disagreements to explain
    #[arg(long, default_value_t = 10)]
    explain: usize,
    /// Keep the programs in this folder
    #[arg(long)]
    keep: Option<PathBuf>,
    /// The totals as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Default)]
struct Totals {
    cases: usize,
    forms: HashSet<Code>,
    /// Forms of which at least one case ran through without a signal.
    completed: HashSet<Code>,
    signals: BTreeMap<u8, usize>,
    wrong: BTreeMap<String, usize>,
    disagreements: usize,
    deaths: usize,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(error) => {
            eprintln!("difftest: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<usize> {
    let mut forms = Forms::of_this_machine().context("reading /proc/cpuinfo")?;
    if let Some(part) = &arguments.only {
        forms = forms.named(part);
    }
    for part in &arguments.without {
        forms = forms.without(part);
    }
    let words = arguments.tool.split_whitespace().map(OsString::from);
    let tool = Tool { command: words.chain(arguments.tool_args.iter().cloned()).collect() };
    let mut totals = Totals::default();
    let mut chunk = 0;
    while totals.cases < arguments.cases {
        let wanted = arguments.chunk.min(arguments.cases - totals.cases);
        let program = Program::draw(&forms, wanted, arguments.seed.wrapping_add(chunk << 32));
        anyhow::ensure!(!program.cases.is_empty(), "no instruction form is called that");
        let temporary = tempfile::tempdir()?;
        let folder = match &arguments.keep {
            Some(kept) => kept.join(chunk.to_string()),
            None => temporary.path().into(),
        };
        std::fs::create_dir_all(&folder)?;
        let elf = program.build(&folder)?;
        let comparison = compare::compare(&program, &elf, &tool)?;
        for found in &comparison.disagreements {
            if totals.disagreements < arguments.explain && !arguments.json {
                explain(&program, &elf, &tool, found)?;
            }
            totals.disagreements += 1;
        }
        totals.add(&program, &comparison);
        chunk += 1;
    }
    totals.print(forms.codes(), arguments);
    Ok(totals.disagreements)
}

impl Totals {
    fn add(&mut self, program: &Program, comparison: &Comparison) {
        self.cases += program.cases.len();
        for (case, record) in program.cases.iter().zip(&comparison.native) {
            self.forms.insert(case.form);
            if record.signal == 0 {
                self.completed.insert(case.form);
            }
            *self.signals.entry(record.signal).or_default() += 1;
        }
        for found in &comparison.disagreements {
            let form = program.cases[found.index as usize].form;
            *self.wrong.entry(format!("{form:?}")).or_default() += 1;
            self.deaths += usize::from(found.tool.is_none());
        }
    }

    fn print(&self, forms: &[Code], arguments: &Arguments) {
        let names = |set: &HashSet<Code>| -> Vec<String> {
            forms
                .iter()
                .filter(|form| !set.contains(form))
                .map(|form| format!("{form:?}"))
                .collect()
        };
        let drawn_from = forms.len();
        if arguments.json {
            let totals = serde_json::json!({
                "seed": arguments.seed,
                "cases": self.cases,
                "forms": self.forms.len(),
                "forms_drawn_from": drawn_from,
                "forms_completed": self.completed.len(),
                "forms_never_drawn": names(&self.forms),
                "forms_never_completed": names(&self.completed),
                "signals": self.signals,
                "disagreements": self.disagreements,
                "deaths": self.deaths,
                "wrong_forms": self.wrong,
            });
            println!("{totals:#}");
            return;
        }
        for (form, count) in &self.wrong {
            println!("wrong: {form} in {count} cases");
        }
        println!(
            "seed {}: {} cases, {} instruction forms of {} ({} ran through at least once), \
             signals {:?}",
            arguments.seed,
            self.cases,
            self.forms.len(),
            drawn_from,
            self.completed.len(),
            self.signals
        );
        println!(
            "{} agree, {} disagree ({} forms), {} of them end the tool",
            self.cases - self.disagreements,
            self.disagreements,
            self.wrong.len(),
            self.deaths
        );
    }
}

fn explain(program: &Program, elf: &Path, tool: &Tool, found: &Disagreement) -> anyhow::Result<()> {
    let case = &program.cases[found.index as usize];
    println!("case {}: {:?}\n{}", found.index, case.form, case.disassembly());
    let native = compare::dump(elf, &Tool::default(), found.index)?;
    if found.tool.is_none() {
        println!("  the tool ended or hung here; natively:");
        native.lines().filter(|line| !line.starts_with("in.")).for_each(|line| {
            println!("    {line}");
        });
        return Ok(());
    }
    let theirs = compare::dump(elf, tool, found.index)?;
    print_difference(&native, &theirs);
    Ok(())
}

/// The lines that differ, by their names, and what each register held before.
fn print_difference(native: &str, theirs: &str) {
    let lines = |text: &str| -> BTreeMap<String, String> { text.lines().map(split_line).collect() };
    let (native, theirs) = (lines(native), lines(theirs));
    let names: std::collections::BTreeSet<_> = native.keys().chain(theirs.keys()).collect();
    let mut same = true;
    for name in names {
        let (ours, other) = (native.get(name), theirs.get(name));
        if ours != other {
            same = false;
            let show =
                |value: Option<&String>| value.cloned().unwrap_or_else(|| "unchanged".into());
            println!("  {name}: natively {}, under the tool {}", show(ours), show(other));
            if let Some(before) =
                name.strip_prefix("out.").and_then(|r| native.get(&format!("in.{r}")))
            {
                println!("      before: {before}");
            }
        }
    }
    if same {
        println!("  run alone the case agrees: what ran before it matters");
    }
    println!();
}

fn split_line(line: &str) -> (String, String) {
    let words = if line.starts_with("memory ") { 2 } else { 1 };
    let at = line.match_indices(' ').nth(words - 1).map_or(line.len(), |(at, _)| at);
    (line[..at].to_string(), line[at..].trim().to_string())
}
