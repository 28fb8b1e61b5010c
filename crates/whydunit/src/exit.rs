//! The exit codes of every subcommand, in one place.

use engine::host::RunError;
use investigate::OurFault;
use std::process::ExitCode;

/// How a subcommand ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Nothing was found; a proof succeeded; the work is done.
    Clean,
    /// There are findings.
    Findings,
    /// The arguments or the input were unusable.
    BadInput,
    /// The question could not be decided.
    Undecided,
    /// A fault of our own.
    OurFault,
    /// The guest's own exit code, passed on at the user's request.
    Guest(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Clean => 0,
            Exit::Findings => 1,
            Exit::BadInput => 2,
            Exit::Undecided => 3,
            Exit::OurFault => 70,
            Exit::Guest(code) => code,
        })
    }
}

impl Exit {
    /// The exit code that an error deserves.
    pub fn of_error(error: &anyhow::Error) -> Self {
        if let Some(RunError::Interrupted(signal)) = error.downcast_ref() {
            // As a shell tells it.
            return Self::Guest(128 + *signal as u8);
        }
        if error.downcast_ref::<OurFault>().is_some() { Self::OurFault } else { Self::BadInput }
    }
}
