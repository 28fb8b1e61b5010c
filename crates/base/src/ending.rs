//! How a process ended.

use serde::{Deserialize, Serialize};

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// With an exit code.
    Exit(i32),
    /// By a signal that it had no handler for.
    Signal(i32),
}
