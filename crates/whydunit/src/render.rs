//! Turns findings and errors into what a reader sees. Analyses never do this themselves.
//!
//! [`finding`] renders any finding for people, [`json`] for programs, [`sarif`] for code review
//! tools; [`terminal`] is the long list of findings that a whole source tree gives; [`crash`], [`why`],
//! [`slice`], [`step`] and [`scene`] show what investigations answer; [`run`] tells how a run went;
//! [`style`] knows about colour, [`source`] about lines of files, [`shell`] about command lines.

pub mod json;
pub mod sarif;
pub mod terminal;

pub mod crash;
pub mod finding;
pub mod rules;
pub mod run;
pub mod scene;
pub mod shell;
pub mod slice;
pub mod source;
pub mod step;
pub mod style;
pub mod why;

use anyhow::Context;
use investigate::Notices;
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use style::Style;

/// Prints an error with its causes, prefixed like every message of the tool.
pub fn error(error: &anyhow::Error) {
    note(&format!("{error:#}"));
}

/// Sentences that come up while an investigation goes on are printed at once.
pub fn notices() -> Notices {
    Notices::to(note)
}

/// Prints one line about the run.
pub fn note(text: &str) {
    // Nobody is left to be told that standard error is gone.
    let _ = writeln!(io::stderr(), "whydunit: {text}");
}

/// Where a report goes.
pub enum Output {
    /// To standard error, beside the guest's own messages.
    Error,
    /// To standard output, for another program.
    Standard,
    /// To a file.
    File(PathBuf, File),
}

impl Output {
    /// A file if one is given; else JSON to standard output and text to standard error. The file
    /// is opened at once: nobody wants to hear after a long run that it cannot be.
    pub fn of(file: Option<&Path>, json: bool) -> anyhow::Result<Self> {
        Ok(match (file, json) {
            (Some(path), _) => Self::File(path.to_owned(), create(path)?),
            (None, true) => Self::Standard,
            (None, false) => Self::Error,
        })
    }

    /// Whether colour may be used.
    pub fn style(&self) -> Style {
        match self {
            Self::File(..) => Style::PLAIN,
            _ => Style::of(&io::stderr()),
        }
    }

    /// Writes a report; a reader that has gone away is no error.
    pub fn write(&mut self, text: &str) -> anyhow::Result<()> {
        let bytes = text.as_bytes();
        let written = match self {
            Self::Error => io::stderr().lock().write_all(bytes),
            Self::Standard => io::stdout().lock().write_all(bytes),
            Self::File(_, file) => file.write_all(bytes),
        };
        match written {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(error).with_context(|| format!("cannot write {}", self.name()))
            }
            _ => Ok(()),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Error => "to standard error".into(),
            Self::Standard => "to standard output".into(),
            Self::File(path, _) => path.display().to_string(),
        }
    }
}

/// Creates a file, or says which one could not be.
pub fn create(path: &Path) -> anyhow::Result<File> {
    File::create(path).with_context(|| format!("cannot write {}", path.display()))
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
