//! The rings of event buffers that runners fill and the host empties, in memory that they share.
//!
//! All rings of a job lie in one anonymous file, which the host makes and every runner inherits:
//! no name in `/proc`, no permission and no process number has to be right for it.
//!
//! ```text
//! page 0   the board: what the host says to all runners, and the number of the next ring
//! then     rings, each: a page of words ([`Header`]), the text in the mailbox, the buffers
//! ```
//! The runner maps each buffer with an unmapped page behind it: a record that runs over the end
//! faults, so that translated code needs no bounds check. It also locks the first byte of its
//! ring in the file, which the kernel undoes when the process ends, however that happens.

use events::Plan;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Number of buffers.
pub const BUFFERS: usize = 8;
/// Bytes of a buffer.
pub const BUFFER_BYTES: u64 = 1 << 20;
/// Bytes before the first buffer.
pub const HEADER_BYTES: u64 = MAIL_OFFSET + MAIL_BYTES;
/// Where a text from the host stands in a ring.
pub const MAIL_OFFSET: u64 = 4096;
/// Most bytes of it.
pub const MAIL_BYTES: u64 = 1 << 20;
/// Bytes of a ring.
pub const RING_BYTES: u64 = HEADER_BYTES + BUFFERS as u64 * BUFFER_BYTES;
/// Bytes of the board.
pub const BOARD_BYTES: u64 = 4096;
/// Most rings of a job, one after the other. The file has holes where no ring is in use.
pub const RINGS: u64 = 1 << 20;
/// Bytes of the file.
pub const FILE_BYTES: u64 = BOARD_BYTES + RINGS * RING_BYTES;

/// Where a ring begins in the file.
pub fn place(number: u64) -> u64 {
    BOARD_BYTES + number * RING_BYTES
}

/// The lock by which a process holds its ring.
pub fn lock_at(place: u64) -> libc::flock {
    libc::flock {
        l_type: libc::F_WRLCK as i16,
        l_whence: libc::SEEK_SET as i16,
        l_start: place as i64,
        l_len: 1,
        l_pid: 0,
    }
}

/// The runner may fill the buffer.
pub const FREE: u32 = 0;
/// The host may read it.
pub const FULL: u32 = 1;
/// Nothing more will come.
pub const LAST: u32 = 2;

/// What all processes of a job share.
#[repr(C)]
pub struct Board {
    /// Number of the next ring.
    pub next: AtomicU64,
    /// Not zero when the host has left: nobody empties rings any more.
    pub left: AtomicU32,
}

/// The shared words of a ring.
#[repr(C)]
pub struct Header {
    /// Not zero if the host cannot empty this ring.
    pub unread: AtomicU32,
    /// Set to one when the host has taken up the ring.
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

/// Whether a `siginfo_t` is such a one. Where the user's limit of waiting signals is reached the
/// kernel passes the signal on without what was sent along; nobody else's is as bare as that.
pub fn is_summons(raw: &[u8; 128]) -> bool {
    let word = |index: usize| {
        u32::from_le_bytes([raw[index], raw[index + 1], raw[index + 2], raw[index + 3]])
    };
    let has = |expected: [u32; 32]| [0, 2, 4, 6].iter().all(|i| word(4 * i) == expected[*i]);
    let mut bare = [0; 32];
    bare[0] = libc::SIGSTKFLT as u32;
    has(summons()) || has(bare)
}

/// What the host may tell a runner.
#[derive(Debug, Serialize, Deserialize)]
pub enum Order {
    /// Puts another plan in force.
    Plan(Box<Plan>),
    /// Functions of the module that was just announced which the plan names, and their names.
    Functions(Vec<(u64, String)>),
}

/// Waits while a word has a value, but not for long; whether it has changed.
pub fn wait_briefly(word: &AtomicU32, value: u32) -> bool {
    let pause = libc::timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    if word.load(Ordering::Acquire) == value {
        // SAFETY: the word is shared memory that stays mapped; the kernel reads the timeout.
        unsafe {
            crate::sys::syscall!(
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
    unsafe { crate::sys::syscall!(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
}
