//! The command-line tool: arguments, wiring and rendering. No algorithm lives here.
//!
//! `commands/` has one file a subcommand, `render/` turns findings into text, JSON and SARIF,
//! `exit.rs` holds the exit codes that all of them share.

#![forbid(unsafe_code)]

mod commands;
mod exit;
mod render;

use clap::Parser;
use investigate::OurFault;
use std::process::ExitCode;

/// Tells why a native Linux program did what it did.
#[derive(Parser)]
#[command(name = "whydunit", version, arg_required_else_help = true, after_help = AFTER_HELP)]
struct Arguments {
    #[command(subcommand)]
    command: commands::Command,
}

const AFTER_HELP: &str = "\
Examples:
  whydunit demo                      the main job on a small program of ours
  whydunit run -- ./prog arguments   run a program; explain it if it crashes
  whydunit count -- ./prog           count what it executes

Exit codes: 0 nothing found, 1 findings, 2 wrong arguments or unusable input, 3 not decided,
70 a fault of our own. `whydunit COMMAND --help` tells more of a command.";

const PANICKED: &str = "a fault of our own, not of the program; please report it with the command line and this message";

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // What a panic has to say has been said when it gets here.
    let answered = std::panic::catch_unwind(|| arguments.command.run());
    match answered.unwrap_or_else(|_| Err(OurFault(PANICKED.into()).into())) {
        Ok(exit) => exit.into(),
        Err(error) => {
            render::error(&error);
            exit::Exit::of_error(&error).into()
        }
    }
}
