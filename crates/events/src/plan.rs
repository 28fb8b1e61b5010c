//! An **observation plan**: what an analysis wants to see.

use serde::{Deserialize, Serialize};

/// What to observe. Nothing by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Which blocks were executed, and by which exit they were left.
    pub blocks: bool,
    /// The address of every memory access; implies `blocks`.
    pub memory: bool,
    /// Ticks are counted, as recording needs it.
    pub ticks: bool,
}

impl Plan {
    /// Whether anything is written to the event stream.
    pub fn emits(&self) -> bool {
        self.blocks || self.memory
    }
}
