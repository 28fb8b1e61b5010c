//! The subcommands: one file each, and the list of them.

mod check;
mod correlate;
mod count;
mod demo;
mod extract;
mod info;
mod linearize;
mod record;
mod replay;
pub mod rules;
mod run;
mod slice;
mod step;
mod why;

use crate::exit::Exit;
use clap::Subcommand;

/// What to do.
#[derive(Subcommand)]
pub enum Command {
    /// Check a recording against bug rules
    Check(check::Check),
    /// Find which variables of a source tree belong together, and updates that forgot one
    Correlate(Box<correlate::Correlate>),
    /// Show the main job on a small built-in program
    Demo(demo::Demo),
    /// Run a program and explain it if it crashes
    Run(Box<run::Run>),
    /// Count what a program executes: instructions, branches, loads, stores, system calls
    Count(count::Count),
    /// Record a program: one file from which all of the run can be seen again
    Record(record::Record),
    /// Replay a recording, and check that it goes as it went
    Replay(replay::Replay),
    /// Cut a self-contained region out of a recording
    Extract(extract::Extract),
    /// Tell what is in a recording
    Info(info::Info),
    /// Run a program natively in the engine's address layout, for tests
    #[command(hide = true)]
    Native(run::Native),
    /// Prove or refute that a concurrent data structure is linearizable
    Linearize(linearize::Linearize),
    /// Show what a value was made from: the statements, and the dependences between them
    Slice(Box<slice::Slice>),
    /// Step through a saved slice: only the statements that took part, with the values they had
    Step(step::Step),
    /// Explain why a program ended as it did: the chain back to where the wrong value was made
    Why(Box<why::Why>),
}

impl Command {
    /// Runs the chosen subcommand.
    pub fn run(self) -> anyhow::Result<Exit> {
        match self {
            Self::Check(command) => command.run(),
            Self::Correlate(command) => command.run(),
            Self::Demo(command) => command.run(),
            Self::Count(command) => command.run(),
            Self::Extract(command) => command.run(),
            Self::Info(command) => command.run(),
            Self::Run(command) => command.run(),
            Self::Record(command) => command.run(),
            Self::Replay(command) => command.run(),
            Self::Native(command) => command.run(),
            Self::Linearize(command) => command.run(),
            Self::Slice(command) => command.run(),
            Self::Step(command) => command.run(),
            Self::Why(command) => command.run(),
        }
    }
}
