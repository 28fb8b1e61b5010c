//! The subcommands: one file each, and the list of them.

mod anomalies;
mod check;
mod correlate;
mod count;
mod debug;
mod demo;
mod expose;
mod extract;
mod generate;
mod info;
mod learn;
mod linearize;
mod model;
mod races;
mod record;
mod replay;
pub mod rules;
mod run;
mod serving;
mod slice;
mod step;
mod whatif;
mod why;

use crate::exit::Exit;
use clap::Subcommand;
use std::time::Duration;

/// What to do.
#[derive(Subcommand)]
pub enum Command {
    /// Explain why a program ended as it did: the chain back to where the wrong value was made
    Why(Box<why::Why>),
    /// Run a program and explain it if it crashes
    Run(Box<run::Run>),
    /// Record a program: one file from which all of the run can be seen again
    Record(record::Record),
    /// Replay a recording, and check that it goes as it went
    Replay(replay::Replay),
    /// Look around in a recording with gdb, forwards and backwards
    Debug(Box<debug::Debug>),
    /// Tell what a program would have done with something altered, or which decision makes its failure go away
    Whatif(Box<whatif::Whatif>),
    /// Serve an editor: the Debug Adapter Protocol over standard input and output
    Dap(serving::Dap),
    /// Serve an agent: the Model Context Protocol over standard input and output
    Mcp(serving::Mcp),
    /// Show what a value was made from: the statements, and the dependences between them
    Slice(Box<slice::Slice>),
    /// Step through a saved slice: only the statements that took part, with the values they had
    Step(step::Step),
    /// Check a recording against bug rules
    Check(check::Check),
    /// Tell what the threads of a run did to each other: races, deadlocks, lost updates
    Races(races::Races),
    /// Record a program under one schedule after the other, until it fails
    Expose(expose::Expose),
    /// Learn what a program does in ordinary runs: a model for `anomalies`
    Learn(Box<learn::Learn>),
    /// Tell what a run did that no run of a model did, most noteworthy first
    Anomalies(Box<anomalies::Anomalies>),
    /// Read, merge and compare models
    Model(model::ModelCommand),
    /// Find which variables of a source tree belong together, and updates that forgot one
    Correlate(Box<correlate::Correlate>),
    /// Prove or refute that a concurrent data structure is linearizable
    Linearize(linearize::Linearize),
    /// Count what a program executes: instructions, branches, loads, stores, system calls
    Count(count::Count),
    /// Tell what is in a recording
    Info(info::Info),
    /// Cut a self-contained region out of a recording
    Extract(extract::Extract),
    /// Show a crash, a wrong number and a hang, each from the command to the answer
    Demo(demo::Demo),
    /// Make completions for shells, and manual pages
    #[command(hide = true)]
    Generate(generate::Generate),
    /// Run a program natively in the engine's address layout, for tests
    #[command(hide = true)]
    Native(run::Native),
}

impl Command {
    /// Runs the chosen subcommand.
    pub fn run(self) -> anyhow::Result<Exit> {
        match self {
            Self::Why(command) => command.run(),
            Self::Run(command) => command.run(),
            Self::Record(command) => command.run(),
            Self::Replay(command) => command.run(),
            Self::Debug(command) => command.run(),
            Self::Whatif(command) => command.run(),
            Self::Dap(command) => command.run(),
            Self::Mcp(command) => command.run(),
            Self::Slice(command) => command.run(),
            Self::Step(command) => command.run(),
            Self::Check(command) => command.run(),
            Self::Races(command) => command.run(),
            Self::Expose(command) => command.run(),
            Self::Learn(command) => command.run(),
            Self::Anomalies(command) => command.run(),
            Self::Model(command) => command.run(),
            Self::Correlate(command) => command.run(),
            Self::Linearize(command) => command.run(),
            Self::Count(command) => command.run(),
            Self::Info(command) => command.run(),
            Self::Extract(command) => command.run(),
            Self::Demo(command) => command.run(),
            Self::Generate(command) => command.run(crate::command()),
            Self::Native(command) => command.run(),
        }
    }
}

/// A number of seconds, such as `2` or `0.5`.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let parsed = text.parse().ok().filter(|seconds: &f64| *seconds > 0.0);
    let parsed = parsed.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    parsed.ok_or_else(|| format!("'{text}' is not a number of seconds such as 2 or 0.5"))
}
