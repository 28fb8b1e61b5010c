//! The file that a **recording** is: one portable file, written while a program runs and read by
//! everything that asks about the run afterwards.
//!
//! This crate knows the container and what a person would want to know of a run ([`Meta`],
//! [`ProcessStart`], [`Summary`]). What is in the log of a process is bytes to it; how those come
//! about is the engine's business.
//!
//! - [`write`]: [`Writer`], for the host only: it compresses with the C library.
//! - [`read`]: [`Recording`] and [`LogReader`], for host and runner: safe Rust throughout, positions
//!   of its own, so that forks and threads share one descriptor.
//! - [`format`]: what the bytes are. `docs/recording-format.md` tells it in words.
//! - [`meta`], [`blob`], [`error`], [`features`]: what the file says of the run, contents of mapped
//!   files, what can go wrong, what the processor must be able to do.
//!
//! A file is a header, chunks and a trailer. Every byte is under a checksum that is compared before
//! the byte is used, and every length is bounded before anything is allocated for it. A recorder
//! that dies leaves whole chunks: they are read by scanning, and the recording says that it is not
//! complete.

#![forbid(unsafe_code)]

pub mod blob;
mod compress;
mod directory;
pub mod error;
pub mod features;
pub mod format;
pub mod log;
pub mod meta;
pub mod read;
mod text;
pub mod write;

pub use blob::BlobId;
pub use error::{OpenError, ReadError, WriteError};
pub use features::missing_features;
pub use meta::{End, Meta, Origin, ProcessEnd, ProcessStart, Quirks, Region, Summary};
pub use read::{Completeness, LogReader, Recording};
pub use text::Text;
pub use write::{Sink, Writer};
