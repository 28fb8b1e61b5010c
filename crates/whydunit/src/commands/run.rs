//! `whydunit run`: a program under the engine, with the chosen rules.

use crate::exit::{Exit, OurFault};
use anyhow::bail;
use engine::config::{Children, Observe};
use engine::host::{self, Ending, Job, RunError};
use std::ffi::OsString;

/// Arguments of `whydunit run`.
#[derive(clap::Args)]
pub struct Run {
    /// Rules to check; only `none` exists today
    #[arg(long, default_value = "none")]
    rules: String,
    #[command(flatten)]
    guest: Guest,
    /// What to observe, and to discard: the cost of observing alone
    #[arg(long, value_enum, default_value = "nothing")]
    observe: ObserveArgument,
}

/// What every command that runs a program takes.
#[derive(clap::Args)]
pub struct Guest {
    /// Whose exit code to end with: `tool` (0 clean, 1 findings) or `guest`
    #[arg(long, value_enum, default_value = "tool")]
    exit_code: ExitCodeOf,
    /// Whether children of the program run under the engine too
    #[arg(long, value_enum, default_value = "follow")]
    children: ChildrenArgument,
    /// Most instructions of one translation (for experiments)
    #[arg(long, hide = true, default_value_t = 64)]
    superblock: usize,
    /// Program and arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROG ARGS")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ExitCodeOf {
    Tool,
    Guest,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum ChildrenArgument {
    Follow,
    Native,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum ObserveArgument {
    Nothing,
    Ticks,
}

impl Run {
    /// Runs the program.
    pub fn run(self) -> anyhow::Result<Exit> {
        if self.rules != "none" {
            bail!("there is no rule set '{}' yet; use --rules none", self.rules);
        }
        let observe = match self.observe {
            ObserveArgument::Nothing => Observe::Nothing,
            ObserveArgument::Ticks => Observe::Ticks,
        };
        self.guest.run(observe)
    }
}

impl Guest {
    fn job(&self) -> Job {
        let (program, arguments) = self.command.split_first().expect("clap requires one");
        let mut job = Job::new(program.clone(), arguments.to_vec());
        job.children = match self.children {
            ChildrenArgument::Follow => Children::Follow,
            ChildrenArgument::Native => Children::Native,
        };
        job.superblock_limit = self.superblock.max(1);
        job
    }

    fn run(&self, observe: Observe) -> anyhow::Result<Exit> {
        let mut job = self.job();
        job.observe = observe;
        let outcome = host::run(&job).map_err(fault_or_input)?;
        for note in &outcome.notes {
            eprintln!("whydunit: {note}");
        }
        for crash in &outcome.crashes {
            crate::render::crash::print(crash);
        }
        Ok(match (self.exit_code, outcome.ending) {
            (ExitCodeOf::Guest, Ending::Exit(code)) => Exit::Guest(code as u8),
            (ExitCodeOf::Guest, Ending::Signal(signal)) => Exit::Guest(128 + signal as u8),
            (ExitCodeOf::Tool, Ending::Signal(_)) => Exit::Findings,
            (ExitCodeOf::Tool, Ending::Exit(_)) => Exit::Clean,
        })
    }
}

/// Sorts what went wrong into our faults and unusable input.
pub fn fault_or_input(error: RunError) -> anyhow::Error {
    match error {
        RunError::Fault { .. } => OurFault(error.to_string()).into(),
        other => other.into(),
    }
}

/// `whydunit native` (hidden): the guest in the engine's layout, on the bare processor.
#[derive(clap::Args)]
pub struct Native {
    #[command(flatten)]
    guest: Guest,
}

impl Native {
    /// Stops the guest before its first instruction, then lets it run natively.
    pub fn run(self) -> anyhow::Result<Exit> {
        let mut job = self.guest.job();
        job.native = true;
        let outcome = host::run(&job).map_err(fault_or_input)?;
        Ok(match outcome.ending {
            Ending::Exit(code) => Exit::Guest(code as u8),
            Ending::Signal(signal) => Exit::Guest(128 + signal as u8),
        })
    }
}
