//! Why a file could not be used.

use std::fmt;
use std::path::{Path, PathBuf};

/// A file that cannot be read as a module of a program.
#[derive(Debug)]
pub enum Error {
    /// The file could not be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The file is not ELF, or its headers are broken.
    NotElf {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// The file is ELF for another machine.
    WrongMachine {
        /// The file.
        path: PathBuf,
        /// The machine it is for.
        machine: String,
    },
}

impl Error {
    pub(crate) fn not_elf(path: &Path, cause: impl fmt::Display) -> Self {
        Self::NotElf { path: path.into(), cause: cause.to_string() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, cause } => {
                write!(out, "{}: cannot be read: {cause}", path.display())
            }
            Self::NotElf { path, cause } => {
                write!(out, "{}: not a usable ELF file: {cause}", path.display())
            }
            Self::WrongMachine { path, machine } => {
                write!(out, "{}: is for {machine}; x86-64 is needed", path.display())
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreadable { cause, .. } => Some(cause),
            _ => None,
        }
    }
}
