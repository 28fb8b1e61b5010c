//! The event stream: what can be observed of a guest ([`plan`]), how it is written down
//! ([`record`], [`shape`]), and how it is read again ([`decode`], [`calls`], [`consume`]).
//!
//! A stream is a sequence of whole records for one process. Most records are four bytes, the
//! number of the exit by which a superblock was left, followed by the few addresses that cannot be
//! derived; a **shape**, sent once when the superblock is translated, says how to rebuild the rest.
//! Streams can be saved to a file ([`file`]) and fed to a consumer without the engine.
//!
//! This crate does not know how events come about.
#![forbid(unsafe_code)]

pub mod calls;
pub mod consume;
pub mod count;
pub mod decode;
pub mod file;
pub mod patch;
pub mod plan;
pub mod record;
pub mod shape;

pub use consume::{Consumer, Control, Discard, Process};
pub use decode::{Decoder, Event};
pub use plan::Plan;
