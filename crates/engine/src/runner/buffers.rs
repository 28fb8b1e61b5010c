//! What system calls read and wrote, for plans that ask for it: records before the one of the call.
//!
//! Which memory that is, the table tells that recording rests on ([`syscalls`]). Of what the kernel
//! reads, buffers and texts are told; structures that a call only takes its parameters from are not.

use super::engine::{Engine, engine};
use super::guest;
use events::plan::Syscalls;
use events::record::list::{Buffer, BufferList};
use syscalls::{Before, Content, Peek, Range};

/// The guest's memory, as the table looks at it.
struct Guest;

impl Peek for Guest {
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        guest::read_some(address, out) == out.len()
    }
}

/// Longer records are split: each must fit into a buffer of the ring.
const LONGEST: usize = 256 << 10;

impl Engine {
    /// To be called before a system call; what [`Self::record_buffers`] needs.
    pub fn before_call(&self, number: u64, arguments: [u64; 6]) -> Option<Before> {
        let wanted = self.ring.is_some() && self.config.plan.observe.syscalls != Syscalls::Answers;
        wanted.then(|| syscalls::before(number, arguments, &Guest))
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
        syscalls::written(number, arguments, answer, &before, &Guest, &mut written);
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

/// The buffers and texts that the kernel read in a call that has been made.
pub fn read(number: u64, arguments: [u64; 6], answer: i64) -> Vec<Range> {
    let mut reads = Vec::new();
    // A call that failed may have read anything or nothing.
    if answer >= 0 {
        syscalls::reads(number, arguments, &Guest, &mut reads);
        syscalls::shorten(answer, &mut reads);
        reads.retain(|read| read.content != Content::Parameters);
    }
    reads.iter().map(|read| read.range).collect()
}
