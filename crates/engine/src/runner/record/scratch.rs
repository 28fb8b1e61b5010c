//! Calls that wait while other threads or processes run: what the kernel writes for them goes to room
//! of our own, and to the guest's memory only when the caller has the baton again. Otherwise others
//! could see it at a time that no log has.

use crate::runner::engine::{Engine, engine};
use crate::runner::guest::Checked;
use crate::runner::signal::frame::GuestMemory;

/// A buffer of a call, put aside.
pub struct Scratch {
    room: Vec<u8>,
    /// Where the guest wants it.
    address: u64,
    what: What,
}

/// How much of the room counts in the end.
#[derive(Clone, Copy)]
enum What {
    /// As many bytes as are answered.
    Bytes,
    /// As many items of this size as are answered.
    Items(usize),
    /// All of it, unless the call failed.
    All,
}

/// Larger ones are rare and go straight to the guest.
const LARGEST: u64 = 16 << 20;
const EVENT: u64 = 12;
const POLLED: u64 = 8;

impl Scratch {
    /// Puts the buffer of a call aside, if it has one; the call then has other arguments.
    pub fn of(engine: &Engine, number: u64, arguments: &mut [u64; 6]) -> Option<Self> {
        engine.recorder.as_ref()?;
        let [first, second, third, ..] = *arguments;
        let (index, length, what) = match number as i64 {
            libc::SYS_read | libc::SYS_pread64 | libc::SYS_recvfrom => (1, third, What::Bytes),
            libc::SYS_epoll_wait | libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => {
                (1, third.checked_mul(EVENT)?, What::Items(EVENT as usize))
            }
            libc::SYS_poll | libc::SYS_ppoll if first != 0 => {
                (0, second.checked_mul(POLLED)?, What::All)
            }
            libc::SYS_wait4 if second != 0 => (1, 4, What::All),
            _ => return None,
        };
        let address = arguments[index];
        let fits = (1..=LARGEST).contains(&length) && engine.memory.is_writable(address, length);
        let mut room = vec![0; if fits { length as usize } else { 0 }];
        // What is not written stays as it was.
        if !fits || matches!(what, What::All) && !Checked.read(address, &mut room) {
            return None;
        }
        arguments[index] = room.as_mut_ptr() as u64;
        Some(Self { room, address, what })
    }

    /// Gives the guest what came; the answer to the call.
    pub fn give(self, answer: i64) -> i64 {
        let count = usize::try_from(answer).unwrap_or(0);
        let length = match self.what {
            What::Bytes => count,
            What::Items(size) => count.saturating_mul(size),
            What::All if answer < 0 => 0,
            What::All => self.room.len(),
        };
        let bytes = &self.room[..length.min(self.room.len())];
        let written = bytes.is_empty()
            || Checked.write(self.address, bytes)
            || engine().unguard_all() && Checked.write(self.address, bytes);
        if written { answer } else { -i64::from(libc::EFAULT) }
    }
}
