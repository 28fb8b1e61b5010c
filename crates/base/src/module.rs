//! Files in the memory of a process.

use serde::{Deserialize, Serialize};

/// A part of a file in the guest's memory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ModuleMap {
    /// First address.
    pub start: u64,
    /// First address past the end.
    pub end: u64,
    /// Offset of `start` in the file.
    pub offset: u64,
    /// The file.
    pub path: String,
}
