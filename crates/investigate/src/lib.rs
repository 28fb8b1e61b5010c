//! Investigations: a recording is opened as a [`Case`], questions are put to it, and the answers come
//! back as data. Command line, debugger protocols, editors, web pages and tests all ask here.
//!
//! - [`case`]: the recording, made first if there is only a program; which process is meant.
//! - [`program`], [`files`], [`functions`]: the program's files, where they are loaded, and what the
//!   recording has of those that have changed since.
//! - [`moments`], [`scene`]: from a moment as a person writes it to a position, and what is there.
//! - [`crash`]: a fatal signal, explained.
//! - [`diagnosis`]: why a program ended as it did.
//! - [`slicing`]: what a value was made from; [`stepping`]: through a saved slice.
//! - [`check`]: bug rules, live, over a recording, or screened first and confirmed on replay.
//! - [`count`]: what a program executes, in numbers.
//!
//! Nothing here prints, knows a protocol or a terminal: what is worth saying while work goes on goes to
//! [`Notices`], and what goes wrong is an error that says whose fault it is ([`error`]).

#![forbid(unsafe_code)]

pub mod assembly;
pub mod case;
pub mod check;
pub mod count;
pub mod crash;
pub mod diagnosis;
pub mod error;
pub mod files;
pub mod functions;
pub mod moments;
mod notices;
pub mod paths;
pub mod program;
pub mod scene;
pub mod slicing;
pub mod stepping;
pub mod threads;

pub use case::Case;
pub use diagnosis::Diagnosis;
pub use error::OurFault;
pub use notices::Notices;
