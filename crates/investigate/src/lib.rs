//! Investigations: a recording is opened as a [`Case`], questions are put to it, and the answers come
//! back as data. Command line, debugger protocols, editors, web pages and tests all ask here.
//!
//! - [`case`]: the recording, made first if there is only a program; which process is meant.
//! - [`program`], [`files`], [`functions`]: the program's files, where they are loaded, and what the
//!   recording has of those that have changed since.
//! - [`moments`], [`scene`]: from a moment as a person writes it to a position, and what is there; [`naming`]: what it is
//!   called.
//! - [`crash`]: a fatal signal, explained.
//! - [`diagnosis`]: why a program ended as it did.
//! - [`outputs`], [`whynot`]: why it wrote what it wrote, and why it did not come to a place.
//! - [`slicing`]: what a value was made from; [`stepping`]: through a saved slice.
//! - [`check`]: bug rules, live, over a recording, or screened first and confirmed on replay.
//! - [`hijack`]: control that went where the program did not send it.
//! - [`races`]: what threads did to each other; [`expose`]: schedules until a failure shows.
//! - [`whatif`]: what it would have done with something altered.
//! - [`count`]: what a program executes, in numbers.
//! - [`contents`]: what is in a recording, without executing any of it.
//! - [`invariants`]: what it does in ordinary runs, and where another run left that.
//!
//! Nothing here prints, knows a protocol or a terminal: what is worth saying while work goes on goes to
//! [`Notices`], and what goes wrong is an error that says whose fault it is ([`error`]).

#![forbid(unsafe_code)]

pub mod assembly;
pub mod case;
pub mod chain;
pub mod check;
pub mod contents;
pub mod count;
pub mod crash;
pub mod debugging;
pub mod diagnosis;
pub mod ending;
pub mod error;
pub mod expose;
pub mod files;
pub mod functions;
pub mod hijack;
pub mod history;
pub mod invariants;
pub mod moments;
pub mod naming;
mod notices;
pub mod outputs;
pub mod paths;
pub mod program;
pub mod races;
pub mod scene;
pub mod sight;
pub mod slicing;
pub mod stepping;
pub mod threads;
pub mod whatif;
pub mod whynot;

pub use case::Case;
pub use diagnosis::Diagnosis;
pub use error::OurFault;
pub use notices::Notices;
