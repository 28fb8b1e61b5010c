//! The buffers that a recording runner fills and the host empties. Their fill levels are always up to
//! date, so that nothing is lost with a process that is killed.
//!
//! What goes through are frames of `recording::log`, cut anywhere, and in between contents of
//! files:
//! ```text
//! u32 FILE, u32 0, u64 key, u64 size of the file, u64 offset, u64 length, bytes
//! ```

use std::sync::atomic::{AtomicU32, AtomicU64};

/// The shared words.
#[repr(C)]
pub struct Header {
    /// Set to one when the host has mapped the buffers.
    pub attached: AtomicU32,
    /// State and, once it is handed over, length of each buffer.
    pub buffers: [(AtomicU32, AtomicU32); BUFFERS],
    /// Bytes in each buffer, whether handed over or not.
    pub filled: [AtomicU32; BUFFERS],
    /// What the host has to say.
    pub state: AtomicU32,
}

/// Number of buffers.
pub const BUFFERS: usize = 8;
/// Bytes of a buffer.
pub const BUFFER_BYTES: u64 = 1 << 20;
/// Bytes before the first buffer.
pub const HEADER_BYTES: u64 = 4096;
/// Bytes of the whole.
pub const TOTAL_BYTES: u64 = HEADER_BYTES + BUFFERS as u64 * BUFFER_BYTES;

/// The host cannot store any more.
pub const REFUSED: u32 = 1;

/// In place of the length of a head: contents of a file follow.
pub const FILE: u32 = u32::MAX;
/// Bytes before the contents.
pub const FILE_HEAD: usize = 40;

/// What the processes of one recording share.
#[repr(C)]
pub struct Shared {
    /// Outputs so far.
    pub outputs: AtomicU64,
    /// Not zero while a process writes one.
    pub writing: AtomicU32,
    /// Processes that have ever taken part in the tree baton, and those that still do.
    pub joined: AtomicU32,
    /// See `joined`.
    pub members: AtomicU32,
    /// Set again and again by processes that wait for the tree baton, as long as they live.
    pub waiting: AtomicU32,
    /// How often it was put down while others waited.
    pub free: AtomicU32,
    /// How often it was taken.
    pub turns: AtomicU32,
    /// Processes that have just put it down for others.
    pub yielding: AtomicU32,
    /// Who had it last.
    pub last: AtomicU32,
    /// Who has it, if that process is alive.
    pub holder: AtomicU32,
    /// How often a process has written to shared memory and has not told where.
    pub unreported: AtomicU32,
    /// How many pages of shared memory were told to be written; the last of them follow.
    pub written: AtomicU64,
    /// See `written`.
    pub journal: [AtomicU64; JOURNAL],
    /// Keys of shared memory that these processes have made, from the first on.
    pub made: [AtomicU64; MADE],
    /// Files that these processes are opening.
    pub opening: AtomicU32,
    /// How often they have opened files in memory, by key.
    pub opened: [AtomicU64; OPENED],
    /// Keys of files whose contents some process has sent, or is about to.
    pub files: [AtomicU64; FILES],
    /// Processes that are recorded, by the host's numbers for them: one bit each.
    pub processes: [AtomicU64; PROCESSES / 64],
}

/// Pages that are remembered.
pub const JOURNAL: usize = 1 << 16;
/// Places for shared memory; the last stays empty.
pub const MADE: usize = 1 << 12;
/// Places for files in memory; those that share one are counted together.
pub const OPENED: usize = 1 << 10;
/// Places for keys.
pub const FILES: usize = 1 << 16;
/// As many numbers as the kernel gives to processes.
pub const PROCESSES: usize = 1 << 22;
/// Bytes of [`Shared`], in whole pages.
pub const SHARED_BYTES: u64 = (size_of::<Shared>() as u64).next_multiple_of(4096);
