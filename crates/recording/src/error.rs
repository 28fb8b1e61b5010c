//! What can go wrong, one variant a cause, each with a sentence that says what was found and what
//! is needed.

use crate::blob::BlobId;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a file cannot be opened as a recording.
#[derive(Debug)]
pub enum OpenError {
    /// The system's word.
    Io(io::Error),
    /// It belongs to another user, who keeps it to himself.
    OtherUser {
        /// The owner.
        owner: u32,
        /// The mode.
        mode: u32,
    },
    /// A folder, a device, a pipe.
    NotAFile,
    /// It has no bytes.
    Empty,
    /// It does not start as recordings do.
    NotARecording,
    /// It starts as recordings do and ends before anything is told.
    TooShort {
        /// Its length.
        length: u64,
    },
    /// It was made by a newer tool.
    Newer {
        /// Its version.
        found: u32,
        /// The newest that is known.
        newest: u32,
    },
    /// It was made on a machine of the other byte order.
    OtherOrder,
    /// What everything else depends on is damaged.
    Damaged {
        /// Where in the file.
        offset: u64,
        /// What is there.
        what: &'static str,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(out, "cannot be read: {error}"),
            Self::OtherUser { owner, mode } => write!(
                out,
                "belongs to user {owner}, who lets nobody else read it (mode {mode:04o}), as a \
                 recording holds all that the program read; that user can make a copy for you"
            ),
            Self::NotAFile => {
                write!(out, "is not a regular file; a recording is one file, made by `record -o`")
            }
            Self::Empty => write!(out, "is empty; a recording is made by `record -o FILE`"),
            Self::NotARecording => write!(
                out,
                "is not a recording: it does not start as one does; a recording is made by \
                 `record -o FILE`"
            ),
            Self::TooShort { length } => write!(
                out,
                "is a recording of which only {length} bytes are left; nothing of the run is in them"
            ),
            Self::Newer { found, newest } => write!(
                out,
                "has version {found} of the format; this tool reads up to version {newest}: use the \
                 one that recorded it, or a newer one"
            ),
            Self::OtherOrder => {
                write!(out, "was recorded on a machine of the other byte order; x86-64 is needed")
            }
            Self::Damaged { offset, what } => {
                write!(out, "is damaged: {what} at byte {offset} is not what a recorder writes")
            }
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        if let Self::Io(error) = self { Some(error) } else { None }
    }
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Why something of an opened recording cannot be read.
#[derive(Debug)]
pub enum ReadError {
    /// The system's word.
    Io(io::Error),
    /// A chunk is damaged.
    Damaged {
        /// Where in the file.
        offset: u64,
        /// What is there.
        what: &'static str,
        /// Of a log: how much of it comes before.
        position: u64,
    },
    /// The log ends before what was asked for.
    End {
        /// Its length.
        length: u64,
    },
    /// There is no such process.
    NoProcess(u32),
    /// There is no such blob, or no such piece of it.
    NoBlob(BlobId),
}

impl fmt::Display for ReadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(out, "the recording cannot be read: {error}"),
            Self::Damaged { offset, what, position: 0 } => {
                write!(out, "the recording is damaged: {what} at byte {offset} of the file")
            }
            Self::Damaged { offset, what, position } => write!(
                out,
                "the recording is damaged: {what} at byte {offset} of the file; the {position} \
                 bytes of log before it can be used"
            ),
            Self::End { length } => write!(out, "the log ends after {length} bytes"),
            Self::NoProcess(process) => write!(out, "the recording has no process {process}"),
            Self::NoBlob(id) => write!(out, "the recording has no contents {id}"),
        }
    }
}

impl std::error::Error for ReadError {}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Io(error) => error,
            ReadError::End { .. } => Self::new(io::ErrorKind::UnexpectedEof, error),
            other => Self::new(io::ErrorKind::InvalidData, other),
        }
    }
}

/// Why a recording cannot be written.
#[derive(Debug)]
pub enum WriteError {
    /// There is something of that name already.
    Exists(PathBuf),
    /// What is there is not a file, so it is not replaced.
    NotAFile(PathBuf),
    /// The disk is full.
    Full {
        /// Bytes written before that; they can be read.
        written: u64,
    },
    /// The system's word.
    Io(io::Error),
    /// A process has no start, or two.
    Process(u32),
    /// Something is too long for a chunk.
    TooLong {
        /// What.
        what: &'static str,
        /// Its length.
        length: usize,
    },
    /// An earlier write failed, so nothing more is taken.
    Failed,
}

impl fmt::Display for WriteError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists(path) => {
                write!(
                    out,
                    "{} is there already; --force overwrites it, -o names another file",
                    path.display()
                )
            }
            Self::NotAFile(path) => {
                write!(out, "{} is not a regular file and is left alone", path.display())
            }
            Self::Full { written } => write!(
                out,
                "no space left for the recording; the {written} bytes written before can be replayed"
            ),
            Self::Io(error) => write!(out, "the recording cannot be written: {error}"),
            Self::Process(process) => {
                write!(out, "process {process} has no start in the recording, or two")
            }
            Self::TooLong { what, length } => {
                write!(out, "{what} of {length} bytes is too long for a recording")
            }
            Self::Failed => write!(out, "an earlier write to the recording failed"),
        }
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        if let Self::Io(error) = self { Some(error) } else { None }
    }
}
