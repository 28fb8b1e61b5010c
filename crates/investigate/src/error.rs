//! What goes wrong, and whose fault it is: every error is the input's unless it carries [`OurFault`].

use engine::host::RunError;
use recording::WriteError;
use replay::RecordError;
use std::fmt;
use std::path::Path;

/// Marks an error as a fault of our own.
#[derive(Debug)]
pub struct OurFault(pub String);

impl fmt::Display for OurFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for OurFault {}

/// Sorts what went wrong in a run or replay into our faults and unusable input.
pub fn fault_or_input(error: RunError) -> anyhow::Error {
    match error {
        RunError::Fault { .. } => OurFault(error.to_string()).into(),
        other => other.into(),
    }
}

/// The same for a recording that was to be written to a file.
pub fn of_recording(file: &Path, error: RecordError) -> anyhow::Error {
    match error {
        RecordError::Run(error) => fault_or_input(error),
        // These name the file themselves.
        RecordError::Write(error @ (WriteError::Exists(_) | WriteError::NotAFile(_))) => {
            anyhow::anyhow!("{error}")
        }
        RecordError::Write(error) => anyhow::anyhow!("{}: {error}", file.display()),
    }
}
