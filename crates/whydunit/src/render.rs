//! Turns findings and errors into what a reader sees. Analyses never do this themselves.
//!
//! [`finding`] renders any finding for people, [`json`] for programs, [`sarif`] for code review
//! tools; [`terminal`] is the long list of findings that a whole source tree gives; [`crash`] makes
//! a finding of a fatal signal and adds what only a crash has; [`run`] tells how a run went;
//! [`style`] knows about colour, [`source`] about lines of files.

pub mod json;
pub mod sarif;
pub mod terminal;

pub mod crash;
pub mod finding;
pub mod rules;
pub mod run;
pub mod source;
pub mod style;

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::Path;

/// Prints an error with its causes, prefixed like every message of the tool.
pub fn error(error: &anyhow::Error) {
    note(&format!("{error:#}"));
}

/// Prints one line about the run.
pub fn note(text: &str) {
    // Nobody is left to be told that standard error is gone.
    let _ = writeln!(io::stderr(), "whydunit: {text}");
}

/// Where a report goes.
pub enum Output<'a> {
    /// To standard error, beside the guest's own messages.
    Error,
    /// To standard output, for another program.
    Standard,
    /// To a file.
    File(&'a Path),
}

impl<'a> Output<'a> {
    /// A file if one is given; else JSON to standard output and text to standard error.
    pub fn of(file: Option<&'a Path>, json: bool) -> Self {
        match (file, json) {
            (Some(path), _) => Self::File(path),
            (None, true) => Self::Standard,
            (None, false) => Self::Error,
        }
    }

    /// Writes a report; a reader that has gone away is no error.
    pub fn write(&self, text: &str) -> anyhow::Result<()> {
        let bytes = text.as_bytes();
        let written = match self {
            Self::Error => io::stderr().lock().write_all(bytes),
            Self::Standard => io::stdout().lock().write_all(bytes),
            Self::File(path) => {
                use anyhow::Context;
                return std::fs::write(path, bytes)
                    .with_context(|| format!("cannot write {}", path.display()));
            }
        };
        match written {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(()),
        }
    }
}

/// Writes a report to standard output. A reader that has gone away is no error.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Whether standard output is a terminal that wants colour.
pub fn wants_colour() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty())
}
