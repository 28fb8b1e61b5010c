//! The command-line tool: arguments, wiring and rendering. No algorithm lives here.
//!
//! `commands/` has one file a subcommand, `render/` turns findings into text, JSON and SARIF,
//! `exit.rs` holds the exit codes that all of them share.

#![forbid(unsafe_code)]

mod commands;
mod exit;
mod render;

use clap::Parser;
use engine::Allocator;
use std::process::ExitCode;

/// Tells why a native Linux program did what it did.
#[derive(Parser)]
#[command(name = "whydunit", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: commands::Command,
}

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.command.run() {
        Ok(exit) => exit.into(),
        Err(error) => {
            render::error(&error);
            exit::Exit::of_error(&error).into()
        }
    }
}
