//! What system calls read and wrote, for plans that ask for it: records before the one of the call.
//!
//! What the kernel writes is in the table that recording rests on ([`effects`]). What it reads is
//! told for buffers, vectors of buffers and texts; structures that a call only takes its parameters
//! from are not.

use super::engine::{Engine, engine};
use super::guest;
use crate::effects::{self, Before, Range};
use base::system_call::{self, Argument};
use events::plan::Syscalls;
use events::record::list::{Buffer, BufferList};

/// The guest's memory, as the table looks at it.
struct Guest;

impl effects::Peek for Guest {
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        guest::read_some(address, out) == out.len()
    }
}

/// Longer records are split: each must fit into a buffer of the ring.
const LONGEST: usize = 256 << 10;
/// Longest text that is looked at.
const LONGEST_TEXT: usize = 4096;
/// Most buffers of a vector that are looked at.
const MOST_PIECES: u64 = 1024;

impl Engine {
    /// To be called before a system call; what [`Self::record_buffers`] needs.
    pub fn before_call(&self, number: u64, arguments: [u64; 6]) -> Option<Before> {
        let wanted = self.ring.is_some() && self.config.plan.observe.syscalls != Syscalls::Answers;
        wanted.then(|| effects::before(number, arguments, &Guest))
    }

    /// A system call has been made: which memory the kernel read and wrote.
    pub fn record_buffers(
        &mut self,
        number: u64,
        arguments: [u64; 6],
        answer: i64,
        before: Option<Before>,
    ) {
        let Some(before) = before else { return };
        let mut written = Vec::new();
        effects::written(number, arguments, answer, &before, &Guest, &mut written);
        let bytes = self.config.plan.observe.syscalls == Syscalls::Bytes;
        let mut list = List { bytes, out: BufferList::default() };
        for range in read(number, arguments, answer) {
            list.add(range, false);
        }
        for range in written {
            list.add(range, true);
        }
        list.send();
    }
}

struct List {
    bytes: bool,
    out: BufferList,
}

impl List {
    fn add(&mut self, range: Range, write: bool) {
        let mut at = range.address;
        let end = range.address.saturating_add(range.length);
        while at < end {
            let piece = (end - at).min(LONGEST as u64) as usize;
            if self.out.length() + piece > 2 * LONGEST {
                self.send();
            }
            if !self.bytes {
                self.put(at, end - at, write, None);
                return;
            }
            let mut bytes = vec![0; piece];
            let there = guest::read_some(at, &mut bytes);
            if there > 0 {
                self.put(at, there as u64, write, Some(&bytes[..there]));
            }
            if there < piece {
                return;
            }
            at += piece as u64;
        }
    }

    fn put(&mut self, address: u64, length: u64, write: bool, bytes: Option<&[u8]>) {
        self.out.add(&Buffer { address, length, write, bytes });
    }

    fn send(&mut self) {
        let list = std::mem::take(&mut self.out);
        if list.length() > 0 {
            engine().record_bytes(&list.finish());
        }
    }
}

/// What the kernel read.
pub fn read(number: u64, arguments: [u64; 6], answer: i64) -> Vec<Range> {
    // A call that failed may have read anything or nothing.
    let Ok(done) = u64::try_from(answer) else { return Vec::new() };
    let mut ranges = Vec::new();
    match number as i64 {
        libc::SYS_writev | libc::SYS_pwritev | libc::SYS_pwritev2 | libc::SYS_vmsplice => {
            pieces(arguments[1], arguments[2], done, &mut ranges);
        }
        libc::SYS_sendmsg => {
            // struct msghdr: name, its length, vector, its length.
            let word = |offset: u64| guest::read_u64(arguments[1].wrapping_add(offset));
            if let (Some(vector), Some(count)) = (word(16), word(24)) {
                pieces(vector, count, done, &mut ranges);
            }
        }
        _ => {}
    }
    let Some(call) = system_call::get(number) else { return ranges };
    for (argument, address) in call.arguments.iter().zip(arguments) {
        match *argument {
            Argument::In(length) => {
                let length = match number as i64 {
                    libc::SYS_write | libc::SYS_pwrite64 | libc::SYS_sendto => done,
                    _ => arguments.get(length).copied().unwrap_or(0),
                };
                ranges.push(Range { address, length });
            }
            Argument::Path | Argument::Text if address != 0 => {
                ranges.push(Range { address, length: text_length(address) });
            }
            _ => {}
        }
    }
    ranges.retain(|range| range.length > 0);
    ranges
}

/// The buffers of a vector, as far as `left` bytes go.
fn pieces(vector: u64, count: u64, mut left: u64, ranges: &mut Vec<Range>) {
    for index in 0..count.min(MOST_PIECES) {
        let entry = vector.wrapping_add(16 * index);
        let (Some(address), Some(length)) =
            (guest::read_u64(entry), guest::read_u64(entry.wrapping_add(8)))
        else {
            return;
        };
        let length = length.min(left);
        ranges.push(Range { address, length });
        left -= length;
    }
}

/// Bytes of a text with the zero that ends it.
fn text_length(address: u64) -> u64 {
    let mut bytes = [0; LONGEST_TEXT];
    let there = guest::read_some(address, &mut bytes);
    let end = bytes[..there].iter().position(|byte| *byte == 0);
    end.map_or(there, |end| end + 1) as u64
}
