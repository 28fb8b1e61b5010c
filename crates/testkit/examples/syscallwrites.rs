//! Compares what the system calls of a program wrote with the engine's table, and adds what was seen
//! to a file, so that many programs can be taken together (`tests/effects`).

#[path = "../tests/table/mod.rs"]
mod table;

use clap::Parser;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;
use table::Coverage;
use testkit::syscallwrites::{Tally, trace};

/// Holds the table of what system calls write against a program.
#[derive(Parser)]
struct Arguments {
    /// Adds what is seen to this file.
    #[arg(long)]
    tally: Option<PathBuf>,
    /// Prints which rows have been exercised.
    #[arg(long)]
    rows: bool,
    /// Passes the program's output on.
    #[arg(long)]
    output: bool,
    /// Ends the program after so many seconds.
    #[arg(long, default_value_t = 3600)]
    limit: u64,
    /// The program and its arguments.
    #[arg(trailing_var_arg = true)]
    command: Vec<OsString>,
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let mut seen = Tally::default();
    if !arguments.command.is_empty() {
        let output = if arguments.output { Stdio::inherit() } else { Stdio::null() };
        let limit = Duration::from_secs(arguments.limit);
        seen = trace(&arguments.command, output, limit, &table::Effects)?;
        summary(&seen);
    }
    let is_right = seen.failure_count == 0;
    if let Some(path) = &arguments.tally {
        let mut all = load(path)?;
        all.add(seen);
        serde_json::to_writer_pretty(File::create(path)?, &all)?;
        seen = all;
    }
    if arguments.rows {
        rows(&seen);
    }
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn load(path: &Path) -> anyhow::Result<Tally> {
    match File::open(path) {
        Ok(file) => Ok(serde_json::from_reader(file)?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Tally::default()),
        Err(error) => Err(error.into()),
    }
}

fn summary(seen: &Tally) {
    eprintln!(
        "{} calls, {} compared, {} with threads, {} sampled out, {} wrong",
        seen.calls, seen.compared, seen.threaded, seen.sampled_out, seen.failure_count
    );
    if seen.cut_short {
        eprintln!("  ended by us: a real-time signal came, or its time was over");
    }
    for (name, count) in &seen.unknown {
        eprintln!("  not in the table: {name} ({count})");
    }
    for failure in &seen.failures {
        eprintln!("  {failure}");
    }
}

fn rows(seen: &Tally) {
    let coverage = Coverage::of(seen);
    let percent = |names: &[String]| 100.0 * names.len() as f64 / coverage.rows() as f64;
    println!("rows that write: {}", coverage.rows());
    println!("exercised: {} ({:.1} %)", coverage.exercised.len(), percent(&coverage.exercised));
    let others = [("refused by this machine", &coverage.refused), ("not called", &coverage.unseen)];
    for (kind, names) in others {
        println!("{kind}: {} ({:.1} %): {}", names.len(), percent(names), names.join(", "));
    }
    let claimed: u64 = seen.rows.values().map(|row| row.claimed).sum();
    let changed: u64 = seen.rows.values().map(|row| row.changed).sum();
    println!(
        "calls {}, compared {}, wrong {}; bytes listed {claimed}, changed {changed}",
        seen.calls, seen.compared, seen.failure_count
    );
}
