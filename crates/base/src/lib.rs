//! The vocabulary that every other crate speaks: addresses, places, [`time`] (ticks, steps, positions,
//! threads, processes), the notation of [`moment`]s, crashes and endings as plain data, the one model
//! of a **finding** that all analyses report in, and what is known of every program: its allocators
//! ([`allocator`]), whose code a file holds ([`module_kind`]), and whose source one is ([`source_kind`]).
//!
//! This crate does no I/O and knows nothing of how programs are run, recorded or analysed.
#![forbid(unsafe_code)]

pub mod address;
pub mod allocator;
pub mod crash;
pub mod ending;
pub mod finding;
pub mod module;
pub mod module_kind;
pub mod moment;
pub mod place;
pub mod replayed;
pub mod source_kind;
pub mod time;

pub use address::{Address, Range};
pub use crash::CrashReport;
pub use ending::Ending;
pub use finding::{Confidence, Finding, Place, Role, Step};
pub use module::ModuleMap;
pub use module_kind::{ModuleKind, is_system_file};
pub use moment::{Moment, Nth};
pub use place::PlaceName;
pub use source_kind::is_own_source;
pub use time::{Position, ProcessNumber, StepCount, ThreadNumber, Tick, When};
