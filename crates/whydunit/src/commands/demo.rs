//! `whydunit demo`: the main job on a small built-in program.

use crate::exit::Exit;

/// Arguments of `whydunit demo`.
#[derive(clap::Args)]
pub struct Demo {}

impl Demo {
    /// Runs the demonstration.
    pub fn run(self) -> anyhow::Result<Exit> {
        Ok(Exit::Clean)
    }
}
