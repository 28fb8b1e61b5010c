//! The ring of event buffers that a runner fills and the host empties, in memory that they share.
//!
//! ```text
//! page 0   attached u32, then for each buffer: state u32, length u32; running thread u32; mailbox
//! then     the text in the mailbox, and the buffers
//! ```
//! The runner maps each buffer with an unmapped page behind it: a record that runs over the end
//! faults, so that translated code needs no bounds check.

use events::Plan;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of buffers.
pub const BUFFERS: usize = 8;
/// Bytes of a buffer.
pub const BUFFER_BYTES: u64 = 1 << 20;
/// Bytes before the first buffer.
pub const HEADER_BYTES: u64 = 4096 + MAIL_BYTES;
/// Most bytes of a text from the host.
pub const MAIL_BYTES: u64 = 1 << 20;
/// Bytes of the whole.
pub const TOTAL_BYTES: u64 = HEADER_BYTES + BUFFERS as u64 * BUFFER_BYTES;

/// The runner may fill the buffer.
pub const FREE: u32 = 0;
/// The host may read it.
pub const FULL: u32 = 1;
/// Nothing more will come.
pub const LAST: u32 = 2;

/// The shared words.
#[repr(C)]
pub struct Header {
    /// Set to one when the host has mapped the ring.
    pub attached: AtomicU32,
    /// State and length of each buffer.
    pub buffers: [(AtomicU32, AtomicU32); BUFFERS],
    /// The thread that held the baton last; zero when the host must not signal any more.
    pub running: AtomicU32,
    /// Not zero while the host may be about to signal that thread.
    pub signalling: AtomicU32,
    /// From the host to the runner.
    pub mailbox: Mailbox,
}

/// Where the host leaves one text at a time for the runner.
#[repr(C)]
pub struct Mailbox {
    /// How many texts the host has left.
    pub sent: AtomicU32,
    /// How many of them the runner has taken.
    pub taken: AtomicU32,
    /// Length of the text that is there.
    pub length: AtomicU32,
}

impl Mailbox {
    /// Whether a text has not been taken yet.
    pub fn has_mail(&self) -> bool {
        self.sent.load(Ordering::Acquire) != self.taken.load(Ordering::Relaxed)
    }
}

/// The `siginfo_t` of the signal by which the host makes a runner look into its mailbox. Nobody
/// else sends one like it.
pub fn summons() -> [u32; 32] {
    let mut info = [0; 32];
    info[0] = libc::SIGSTKFLT as u32;
    info[2] = libc::SI_QUEUE as u32;
    info[6] = 0x7768_7964;
    info
}

/// Whether a `siginfo_t` is such a one.
pub fn is_summons(raw: &[u8; 128]) -> bool {
    let word = |index: usize| {
        u32::from_le_bytes([raw[index], raw[index + 1], raw[index + 2], raw[index + 3]])
    };
    let expected = summons();
    [0, 2, 6].iter().all(|index| word(4 * index) == expected[*index])
}

/// What the host may tell a runner.
#[derive(Debug, Serialize, Deserialize)]
pub enum Order {
    /// Puts another plan in force.
    Plan(Box<Plan>),
    /// Functions of the module that was just announced which the plan names.
    Functions(Vec<u64>),
}

/// Waits while a word has a value.
pub fn wait_while(word: &AtomicU32, value: u32) {
    while !wait_briefly(word, value) {}
}

/// Waits while a word has a value, but not for long; whether it has changed.
pub fn wait_briefly(word: &AtomicU32, value: u32) -> bool {
    let pause = libc::timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    if word.load(Ordering::Acquire) == value {
        // SAFETY: the word is shared memory that stays mapped; the kernel reads the timeout.
        unsafe {
            crate::runner::sys::syscall!(
                libc::SYS_futex,
                word.as_ptr(),
                libc::FUTEX_WAIT,
                value,
                &raw const pause
            );
        }
    }
    word.load(Ordering::Acquire) != value
}

/// Changes a word and wakes whoever waits for that.
pub fn set(word: &AtomicU32, value: u32) {
    word.store(value, Ordering::Release);
    // SAFETY: a wake touches no memory.
    unsafe { crate::runner::sys::syscall!(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
}
