//! Sessions over recordings: [`mod@record`] makes one, [`session`] replays what is in it, and a
//! [`timeline`] goes to any moment of one process. [`mod@extract`] cuts a region out, and [`slices`]
//! keeps chosen stretches alone. A [`diversion`] leaves the recording with something altered.
//!
//! The engine records and replays single processes; here they become one recording: [`keep`] puts
//! the logs of all processes into one file while they run, and a session finds the way to each of
//! them. What is asked of a session is not known here.

#![forbid(unsafe_code)]

pub mod diversion;
pub mod extract;
mod keep;
mod machine;
pub mod outputs;
pub mod record;
pub mod session;
pub mod slices;
pub mod timeline;

pub use engine::control::{Instant, Stopped};
pub use extract::extract;
pub use record::{RecordError, Recorded, record, record_observed, schedule_text};
pub use session::{Session, SessionError, Shown};
pub use timeline::{StoppedProcess, Timeline, Window};
