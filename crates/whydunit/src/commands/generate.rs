//! `whydunit generate`: what an installation has besides the program, made from the arguments' definitions.

use crate::exit::Exit;
use crate::render::Output;
use anyhow::Context;
use clap::{Command, Subcommand};
use clap_complete::Shell;
use std::path::PathBuf;

/// Arguments of `whydunit generate`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  whydunit generate completions bash > /etc/bash_completion.d/whydunit
  whydunit generate man /usr/local/share/man/man1

Exit codes: 0; 2 wrong arguments, or a folder that cannot be written to. More in docs/install.md.")]
pub struct Generate {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Print what completes words in a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write a manual page for each command
    Man {
        /// The folder
        folder: PathBuf,
    },
}

impl Generate {
    /// Makes it for the whole command line.
    pub fn run(self, command: Command) -> anyhow::Result<Exit> {
        let mut command = command.disable_help_subcommand(true);
        match self.what {
            What::Completions { shell } => {
                let mut script = Vec::new();
                clap_complete::generate(shell, &mut command, "whydunit", &mut script);
                Output::Standard.write(&String::from_utf8_lossy(&script))?;
            }
            What::Man { folder } => {
                command.build();
                clap_mangen::generate_to(command, &folder).with_context(|| {
                    format!("cannot write manual pages to {}", folder.display())
                })?;
            }
        }
        Ok(Exit::Clean)
    }
}
