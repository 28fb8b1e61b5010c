//! `whydunit linearize`: proves or refutes that a data structure is linearizable.

use crate::exit::Exit;
use crate::render::Output;
use anyhow::Context;
use clap::ValueEnum;
use linearize::explore::machine::Memory;
use linearize::explore::search::Bound;
use linearize::model::Program;
use linearize::proof::pairs::all_pairs;
use linearize::{Verdict, judge};
use report::linearize::{Judged, Outcome, findings, text};
use report::sarif::Kinds;
use spec::Source;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Arguments of `whydunit linearize`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  whydunit linearize queue.lin             prove it, or show a history that refutes it
  whydunit linearize --json queue.lin      the same for a script

Exit codes: 0 proved, 1 refuted, 2 bad input, 3 not proved. With several files, the gravest counts.
The language: docs/linearize.md.")]
pub struct Linearize {
    /// Specifications to judge
    #[arg(required = true, value_name = "SPEC")]
    specs: Vec<PathBuf>,
    /// Show what was derived on the way
    #[arg(long, value_name = "WHAT")]
    show: Option<Show>,
    /// The most operations in a history when looking for a counterexample
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u8).range(1..=40))]
    operations: u8,
    /// Arguments are 1, 2, … up to this when looking for a counterexample, and also 0, -1 and the
    /// numbers of the specification
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=20))]
    values: u8,
    /// The most states to visit when looking for a counterexample
    #[arg(long, value_name = "N", default_value_t = Bound::default().states)]
    states: usize,
    /// The most seconds for the proof, and again for the search for a counterexample
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = seconds)]
    time: f64,
    /// The most memory for the search, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    max_memory: u32,
    /// In which order stores reach memory
    #[arg(long, value_name = "MODEL", default_value = "sc")]
    memory: Order,
    /// Let `malloc` give nodes again that were freed
    #[arg(long)]
    reuse: bool,
    /// Print JSON, alone on standard output
    #[arg(long, conflicts_with = "sarif")]
    json: bool,
    /// Print the counterexamples as SARIF 2.1.0
    #[arg(long)]
    sarif: bool,
    /// Write the answer to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// In which order stores reach memory.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Order {
    /// Sub-operations happen one after the other (sequential consistency)
    Sc,
    /// Stores wait in a buffer of their thread, as on x86 (total store order)
    Tso,
}

/// Reads a number of seconds.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 1e6 => Ok(seconds),
        _ => Err("expected a positive number of seconds, such as 30 or 0.5".to_owned()),
    }
}

/// What `--show` can show.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Show {
    /// Ordering and reversibility of every pair of prefixes, with the cases
    Pairs,
}

impl Linearize {
    /// Judges all files and prints what was found.
    pub fn run(self) -> anyhow::Result<Exit> {
        let mut output = Output::answer(self.output.as_deref(), self.json || self.sarif)?;
        let mut all = Vec::new();
        for path in &self.specs {
            all.push(self.judge_file(path)?);
        }
        let text = if self.json {
            report::linearize::json::render(&all)
        } else if self.sarif {
            let kinds = Kinds::from([(findings::KIND, findings::MEANING)]);
            report::sarif::render(&findings::findings(&all), &kinds)
        } else {
            let style = output.style();
            all.iter().map(|judged| text::render(judged, style)).collect()
        };
        output.write(&text)?;
        Ok(all.iter().map(exit).max_by_key(|&exit| gravity(exit)).unwrap_or(Exit::Clean))
    }

    fn judge_file(&self, path: &PathBuf) -> anyhow::Result<Judged> {
        let name = path.display().to_string();
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {name}"))?;
        let source = Source::new(name, String::from_utf8_lossy(&bytes));
        let began = Instant::now();
        let outcome = linearize::language::read(&source).map(|program| self.judge(program));
        Ok(Judged { source, outcome, took: began.elapsed() })
    }

    fn judge(&self, program: Program) -> Outcome {
        let bound = Bound {
            operations: usize::from(self.operations),
            values: i64::from(self.values),
            states: self.states,
            time: Duration::from_secs_f64(self.time),
            bytes: self.max_memory as usize * 1024 * 1024,
            memory: Memory { buffers: self.memory == Order::Tso, reuse: self.reuse },
        };
        let judgement = judge(&program, bound);
        let pairs = (self.show == Some(Show::Pairs)).then(|| all_pairs(&program));
        Outcome { program, judgement, pairs }
    }
}

fn exit(judged: &Judged) -> Exit {
    match judged.outcome.as_ref().map(|outcome| &outcome.judgement.verdict) {
        Err(_) => Exit::BadInput,
        Ok(Verdict::Proved) => Exit::Clean,
        Ok(Verdict::Refuted { .. }) => Exit::Findings,
        Ok(Verdict::NotProved { .. }) => Exit::Undecided,
    }
}

/// Which exit code counts when files differ.
fn gravity(exit: Exit) -> u8 {
    match exit {
        Exit::BadInput => 3,
        Exit::Findings => 2,
        Exit::Undecided => 1,
        _ => 0,
    }
}
