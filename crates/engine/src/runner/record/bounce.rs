//! **Bounce buffers** of calls that wait while other threads or processes run: what the kernel writes for
//! them goes to room of our own, and to the guest's memory only when the caller has the baton again. Otherwise others
//! could see it at a time that no log has.
//!
//! [`vectors`] are buffers in several pieces, and messages.

mod vectors;

use crate::runner::engine::Engine;
use crate::runner::guest::{self, Checked};
use crate::runner::memory::Memory;
use crate::runner::signal::frame::GuestMemory;
use vectors::Messages;

/// Bounce buffers of a call.
#[derive(Default)]
pub struct BounceBuffers {
    rooms: Vec<Room>,
    /// Keeps the list of the one piece where it is.
    _vector: Option<Box<[u64; 2]>>,
    messages: Option<Messages>,
}

/// A bounce buffer: memory of ours in place of the guest's.
struct Room {
    bytes: Vec<u8>,
    /// Where the guest wants it, piece by piece: address and length.
    places: Vec<(u64, u64)>,
    what: What,
}

/// How much of a room counts in the end.
#[derive(Clone, Copy)]
enum What {
    /// As many bytes as are answered, behind so many that always count.
    Bytes(usize),
    /// As many items of this size as are answered.
    Items(usize),
    /// All of it, unless the call failed.
    All,
    /// All of it, whether the call failed or not.
    Always,
}

/// Larger ones are rare and go straight to the guest.
const LARGEST: u64 = 16 << 20;

impl BounceBuffers {
    /// Puts the buffers of a call aside, if it has any; the call then has other arguments.
    pub fn of(engine: &Engine, number: u64, arguments: &mut [u64; 6]) -> Option<Self> {
        engine.log.recorder.as_ref()?;
        let memory = &engine.process.memory;
        match number as i64 {
            libc::SYS_readv | libc::SYS_preadv | libc::SYS_preadv2 => {
                vectors::buffers(memory, arguments)
            }
            libc::SYS_recvmsg => vectors::messages(memory, arguments, false),
            libc::SYS_recvmmsg => vectors::messages(memory, arguments, true),
            _ => Self::of_buffers(memory, number, arguments),
        }
    }

    fn of_buffers(memory: &Memory, number: u64, arguments: &mut [u64; 6]) -> Option<Self> {
        let buffers = buffers(number, *arguments);
        let mut others = *arguments;
        let mut rooms = Vec::new();
        for (index, length, what) in
            buffers.into_iter().filter(|(index, ..)| arguments[*index] != 0)
        {
            let room = Room::new(memory, vec![(arguments[index], length)], what)?;
            others[index] = room.bytes.as_ptr() as u64;
            rooms.push(room);
        }
        *arguments = others;
        (!rooms.is_empty()).then_some(Self { rooms, ..Self::default() })
    }

    /// Gives the guest what came; the answer to the call.
    pub fn give(self, engine: &mut Engine, answer: i64) -> i64 {
        let mut written = self.rooms.iter().all(|room| room.give(engine, answer));
        if let Some(messages) = self.messages {
            written &= messages.give(engine, answer);
        }
        if written { answer } else { -i64::from(libc::EFAULT) }
    }
}

/// The buffers of a call: which argument each is, how long, and what of it counts.
fn buffers(number: u64, a: [u64; 6]) -> Vec<(usize, u64, What)> {
    const EVENT: u64 = 12;
    const POLLED: u64 = 8;
    const TIME: u64 = 16;
    const USAGE: u64 = 144;
    const INFORMATION: u64 = 128;
    let times = |count: u64, size: u64| count.saturating_mul(size);
    match number as i64 {
        libc::SYS_read | libc::SYS_pread64 => vec![(1, a[2], What::Bytes(0))],
        libc::SYS_recvfrom if a[4] == 0 => vec![(1, a[2], What::Bytes(0))],
        libc::SYS_recvfrom => {
            vec![(1, a[2], What::Bytes(0)), (4, announced(a[5]), What::All), (5, 4, What::All)]
        }
        libc::SYS_accept | libc::SYS_accept4 if a[1] != 0 => {
            vec![(1, announced(a[2]), What::All), (2, 4, What::All)]
        }
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => {
            vec![(1, times(a[2], EVENT), What::Items(EVENT as usize))]
        }
        libc::SYS_poll => vec![(0, times(a[1], POLLED), What::All)],
        libc::SYS_ppoll => vec![(0, times(a[1], POLLED), What::All), (2, TIME, What::Always)],
        libc::SYS_select | libc::SYS_pselect6 => {
            let set = (a[0] as u32 as u64).div_ceil(64) * 8;
            let sets = (1..4).map(|index| (index, set, What::All));
            sets.chain([(4, TIME, What::Always)]).collect()
        }
        libc::SYS_nanosleep => vec![(1, TIME, What::Always)],
        libc::SYS_clock_nanosleep => vec![(3, TIME, What::Always)],
        libc::SYS_wait4 => vec![(1, 4, What::All), (3, USAGE, What::All)],
        libc::SYS_waitid => vec![(2, INFORMATION, What::All), (4, USAGE, What::All)],
        libc::SYS_rt_sigtimedwait => vec![(1, INFORMATION, What::All)],
        libc::SYS_msgrcv => vec![(1, a[2].saturating_add(8), What::Bytes(8))],
        libc::SYS_mq_timedreceive => vec![(1, a[2], What::Bytes(0)), (3, 4, What::All)],
        _ => Vec::new(),
    }
}

/// How much room the guest says there is.
fn announced(address: u64) -> u64 {
    guest::read_u32(address).map_or(0, u64::from)
}

impl Room {
    /// Room in place of the guest's, if that is there and not too large.
    fn new(memory: &Memory, places: Vec<(u64, u64)>, what: What) -> Option<Self> {
        let length = places.iter().try_fold(0u64, |sum, (_, length)| sum.checked_add(*length))?;
        let there =
            |(address, length): &(u64, u64)| *length == 0 || memory.is_writable(*address, *length);
        if length > LARGEST || !places.iter().all(there) {
            return None;
        }
        let mut bytes = vec![0; length as usize];
        // What is not written stays as it was.
        if matches!(what, What::All | What::Always) {
            let mut rest = &mut bytes[..];
            for (address, length) in &places {
                let (now, later) = rest.split_at_mut(*length as usize);
                if !now.is_empty() && !Checked.read(*address, now) {
                    return None;
                }
                rest = later;
            }
        }
        Some(Self { bytes, places, what })
    }

    fn give(&self, engine: &mut Engine, answer: i64) -> bool {
        let count = usize::try_from(answer).unwrap_or(0);
        let length = match self.what {
            What::Bytes(_) | What::Items(_) | What::All if answer < 0 => 0,
            What::Bytes(before) => before.saturating_add(count),
            What::Items(size) => count.saturating_mul(size),
            What::All | What::Always => self.bytes.len(),
        };
        self.give_bytes(engine, length)
    }

    /// Gives the guest the first bytes.
    fn give_bytes(&self, engine: &mut Engine, length: usize) -> bool {
        let mut rest = &self.bytes[..length.min(self.bytes.len())];
        for (address, length) in &self.places {
            let (now, later) = rest.split_at(rest.len().min(*length as usize));
            if !write(engine, *address, now) {
                return false;
            }
            rest = later;
        }
        true
    }
}

fn write(engine: &mut Engine, address: u64, bytes: &[u8]) -> bool {
    bytes.is_empty()
        || Checked.write(address, bytes)
        || engine.unguard_all() && Checked.write(address, bytes)
}
