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
        Self::from(exit.code())
    }
}

impl Exit {
    /// The code.
    pub fn code(self) -> u8 {
        match self {
            Self::Clean => 0,
            Self::Findings => 1,
            Self::BadInput => 2,
            Self::Undecided => 3,
            Self::OurFault => 70,
            Self::Guest(code) => code,
        }
    }

    /// The exit code that an error deserves.
    pub fn of_error(error: &anyhow::Error) -> Self {
        if let Some(RunError::Interrupted(signal)) = error.downcast_ref() {
            // As a shell tells it.
            return Self::Guest(128 + *signal as u8);
        }
        if error.downcast_ref::<OurFault>().is_some() { Self::OurFault } else { Self::BadInput }
    }
}
