//! The **shadow** screen: every access against a byte that stands for eight of the guest's, which the host
//! has painted. [`super::heap`] uses the same table and the same tests.
//!
//! Translated code tests whole granules; what an instruction touches exactly is worked out by the look, and
//! only that becomes an event.

pub mod arrange;
pub mod checks;
mod inline;
mod look;
mod strings;

pub use arrange::{Table, leave_out_own};
pub use look::{look, look_back};
pub use strings::kept_flags;
