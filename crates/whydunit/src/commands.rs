//! The subcommands: one file each, and the list of them.

mod demo;
mod linearize;

use crate::exit::Exit;
use clap::Subcommand;

/// What to do.
#[derive(Subcommand)]
pub enum Command {
    /// Show the main job on a small built-in program
    Demo(demo::Demo),
    /// Prove or refute that a concurrent data structure is linearizable
    Linearize(linearize::Linearize),
}

impl Command {
    /// Runs the chosen subcommand.
    pub fn run(self) -> anyhow::Result<Exit> {
        match self {
            Self::Demo(command) => command.run(),
            Self::Linearize(command) => command.run(),
        }
    }
}
