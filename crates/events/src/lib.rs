//! The event contract: what can be asked of a guest, how it is written down, how it is read again.
//!
//! **A plan** ([`plan`]) is a list of parts that do not know each other: what to *observe* (execution,
//! system calls, forks, ticks), *screens*, *stops* (probes and functions), *patches*, and the *scope* that
//! observation is limited to. Each part costs what it costs by itself, and says by itself what it needs;
//! what cannot be had together is refused by name ([`Plan::check`]).
//!
//! **A screen** ([`plan::Screen`]) is an inline test that lets the ordinary pass. What it stops is a
//! **suspicion** ([`suspicion::Suspicion`]): which screen, and what it saw. Screens are an enumeration on
//! either side, so the compiler names every place that a new kind has to fill in: a variant of `Screen`
//! for what it is asked, a variant of `Suspicion` for what it answers, and in the engine a folder that
//! arranges its tables, emits its test and looks closely at a hit.
//!
//! **A stream** ([`record`], [`shape`]) is a sequence of whole records for one process. Most records are
//! four bytes, the number of the exit by which a superblock was left, followed by the few addresses that
//! cannot be derived; a **shape**, sent once when the superblock is translated, says how to rebuild the
//! rest. Numbers below [`record::FIRST_EXIT`] are kinds of other records: there is room for 255 of them,
//! and exits pay nothing for it. Writers and readers of each record stand side by side in [`record`]; those
//! that translated code writes itself have their offsets there.
//!
//! [`decode`] and [`calls`] turn records into events for a [`Consumer`]; a stream can be saved to a file
//! ([`file`]) and fed to a consumer without the engine. A decoder is given bytes that it has not made: it
//! refuses what it does not understand and never panics. This crate does not know how events come about.
#![forbid(unsafe_code)]

pub mod calls;
pub mod condition;
pub mod consume;
pub mod count;
pub mod decode;
pub mod file;
pub mod patch;
pub mod plan;
pub mod record;
pub mod shape;
pub mod suspicion;

pub use consume::{Consumer, Control, Discard, Process};
pub use decode::{Decoder, Event};
pub use plan::Plan;
pub use suspicion::Suspicion;
