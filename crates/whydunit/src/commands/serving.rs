//! `whydunit dap` and `whydunit mcp`: protocols over standard input and output.

use crate::exit::Exit;
use std::io::{BufReader, stdin, stdout};

/// Arguments of `whydunit dap`.
#[derive(clap::Args)]
#[command(after_help = "\
An editor starts this by itself; editors/vscode is an extension for Visual Studio Code.

Examples:
  {\"recording\": \"prog.whydunit\", \"at\": \"crash\"}     what `attach` takes
  {\"program\": \"./prog\", \"args\": [\"input\"]}        what `launch` takes: records it first

Exit codes: 0 the editor has left; 2 unusable input; 70 a fault of our own. More in docs/dap.md.")]
pub struct Dap {}

impl Dap {
    /// Serves one editor.
    pub fn run(self) -> anyhow::Result<Exit> {
        serve::dap::serve(BufReader::new(stdin()), &mut stdout())?;
        Ok(Exit::Clean)
    }
}

/// Arguments of `whydunit mcp`.
#[derive(clap::Args)]
#[command(after_help = "\
An agent starts this by itself.

Examples:
  {\"command\": \"whydunit\", \"args\": [\"mcp\"]}                  as agents are told of it
  {\"command\": \"whydunit\", \"args\": [\"mcp\", \"--allow-run\"]}   may record programs, too

Exit codes: 0 the agent has left; 70 a fault of our own. More in docs/mcp.md.")]
pub struct Mcp {
    /// Let the agent run programs, to record them; without it, it only asks about recordings
    #[arg(long)]
    allow_run: bool,
}

impl Mcp {
    /// Serves one agent.
    pub fn run(self) -> anyhow::Result<Exit> {
        serve::mcp::serve(self.allow_run)?;
        Ok(Exit::Clean)
    }
}
