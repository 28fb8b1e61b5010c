//! The subcommands: one file each, and the list of them.

mod correlate;
mod demo;

use crate::exit::Exit;
use clap::Subcommand;

/// What to do.
#[derive(Subcommand)]
pub enum Command {
    /// Find which variables of a source tree belong together, and updates that forgot one
    Correlate(Box<correlate::Correlate>),
    /// Show the main job on a small built-in program
    Demo(demo::Demo),
}

impl Command {
    /// Runs the chosen subcommand.
    pub fn run(self) -> anyhow::Result<Exit> {
        match self {
            Self::Correlate(command) => command.run(),
            Self::Demo(command) => command.run(),
        }
    }
}
