//! The vocabulary that every other crate speaks: addresses, places, [`time`] (ticks, steps, positions,
//! threads, processes), the notation of [`moment`]s, crashes and endings as plain data, and the one model
//! of a **finding** that all analyses report in.
//!
//! This crate does no I/O and knows nothing of how programs are run, recorded or analysed.
#![forbid(unsafe_code)]

pub mod address;
pub mod crash;
pub mod ending;
pub mod finding;
pub mod module;
pub mod moment;
pub mod place;
pub mod replayed;
pub mod system_call;
pub mod time;

pub use address::{Address, Range};
pub use crash::CrashReport;
pub use ending::Ending;
pub use finding::{Confidence, Finding, Place, Step};
pub use module::ModuleMap;
pub use moment::{Moment, Nth};
pub use place::PlaceName;
pub use time::{Position, ProcessNumber, StepCount, ThreadNumber, Tick, When};
