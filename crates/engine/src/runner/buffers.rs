//! What system calls read and wrote, for plans that ask for it: records before the one of the call.
//!
//! Which memory that is follows from the table that recording rests on ([`syscalls`]). Of what the kernel
//! reads, buffers and texts are reported; structures that a call only takes its parameters from are not.

use super::engine::Engine;
use super::guest;
use events::plan::Syscalls;
use events::record::list::{Buffer, BufferList};
use syscalls::{Argument, Before, Content, Peek, Range};

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
        let wanted =
            self.observed.ring.is_some() && self.config.plan.observe.syscalls != Syscalls::Answers;
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
        let mut list = List { engine: self, bytes, out: BufferList::default() };
        for range in read(number, arguments, answer) {
            list.add(range, false);
        }
        for range in written {
            list.add(range, true);
        }
        if answer >= 0 || answer == -i64::from(libc::EFAULT) {
            list.add_absent(number, arguments, &before);
        }
        list.send();
    }
}

/// A buffer of which nothing is said.
const NOTHING: Buffer<'static> =
    Buffer { address: 0, length: 0, write: false, bytes: None, absent: None };

const PAGE: u64 = 4096;
/// Pages of a buffer that are looked at one by one; of a longer one, only the last besides.
const MOST_PAGES: u64 = 256;

/// The first byte of a range that cannot be read.
fn first_absent(range: Range) -> Option<u64> {
    let Range { address, length } = range;
    let last = address.checked_add(length.checked_sub(1)?)?;
    let pages = (address / PAGE + 1..=last / PAGE).map(|page| page * PAGE);
    let looked_at = std::iter::once(address).chain(pages.take(MOST_PAGES as usize)).chain([last]);
    let absent = |at: &u64| guest::read_some(*at, &mut [0]) == 0;
    looked_at.into_iter().find(absent)
}

/// Texts of which nothing can be read.
fn texts(number: u64, arguments: [u64; 6]) -> impl Iterator<Item = Range> {
    let kinds = syscalls::get(number).map_or(&[][..], |call| call.arguments);
    let given = kinds.iter().zip(arguments).filter(|(kind, address)| {
        matches!(kind, Argument::Path | Argument::Text)
            && *address != 0
            && guest::read_some(*address, &mut [0]) == 0
    });
    given.map(|(_, address)| Range { address, length: 1 })
}

/// Where a text should go on, and nothing is there.
fn end_of_text(range: Range) -> Option<u64> {
    let end = range.address.checked_add(range.length)?;
    let mut last = [1];
    if range.length > 0 && (guest::read_some(end - 1, &mut last) == 0 || last == [0]) {
        return None;
    }
    (guest::read_some(end, &mut [0]) == 0).then_some(end)
}

struct List<'a> {
    engine: &'a mut Engine,
    bytes: bool,
    out: BufferList,
}

impl List<'_> {
    fn add(&mut self, range: Range, write: bool) {
        let mut at = range.address;
        let end = range.address.saturating_add(range.length);
        while at < end {
            let piece = (end - at).min(LONGEST as u64) as usize;
            if self.out.length() + piece > 2 * LONGEST {
                self.send();
            }
            if !self.bytes {
                self.put(Buffer { address: at, length: end - at, write, ..NOTHING });
                return;
            }
            let mut bytes = vec![0; piece];
            let there = guest::read_some(at, &mut bytes);
            if there > 0 {
                let (length, bytes) = (there as u64, Some(&bytes[..there]));
                self.put(Buffer { address: at, length, write, bytes, absent: None });
            }
            if there < piece {
                return;
            }
            at += piece as u64;
        }
    }

    /// What a call was given and is not there, as a whole or in part.
    fn add_absent(&mut self, number: u64, arguments: [u64; 6], before: &Before) {
        let (mut reads, mut rooms) = (Vec::new(), Vec::new());
        syscalls::reads(number, arguments, &Guest, &mut reads);
        syscalls::given(number, arguments, before, &Guest, &mut rooms);
        rooms.sort_unstable_by_key(|room| (room.address, std::cmp::Reverse(room.length)));
        rooms.dedup_by_key(|room| room.address);
        let reads = reads.iter().filter(|read| read.content != Content::Parameters);
        let reads = reads.map(|read| (read.range, read.content == Content::Text, false));
        let reads = reads.chain(texts(number, arguments).map(|range| (range, false, false)));
        for (range, text, write) in reads.chain(rooms.into_iter().map(|room| (room, false, true))) {
            let absent = if text { end_of_text(range) } else { first_absent(range) };
            if let Some(at) = absent {
                let Range { address, length } = range;
                let length = length.max(at + 1 - address);
                self.put(Buffer { address, length, write, absent: Some(at), ..NOTHING });
            }
        }
    }

    fn put(&mut self, buffer: Buffer<'_>) {
        self.out.add(&buffer);
    }

    fn send(&mut self) {
        let list = std::mem::take(&mut self.out);
        if list.length() > 0 {
            self.engine.record_bytes(&list.finish());
        }
    }
}

/// What the kernel touched in a call that has been made: what it read, and the room for what
/// it wrote. Where lengths stand in memory that the call has overwritten, less is reported.
pub fn touched(number: u64, arguments: [u64; 6], answer: i64) -> (Vec<Range>, Vec<Range>) {
    let mut written: Vec<Range> = syscalls::rooms(number, arguments).collect();
    if answer < 0 {
        written.clear();
    } else if written.is_empty() {
        syscalls::written(number, arguments, answer, &Before::default(), &Guest, &mut written);
    }
    // What the kernel refuses because memory is not there is the program's mistake all the same.
    let is_looked_at = answer >= 0 || answer == -i64::from(libc::EFAULT);
    (read_if(is_looked_at, number, arguments, answer), written)
}

/// The buffers and texts that the kernel read in a call that has been made.
pub fn read(number: u64, arguments: [u64; 6], answer: i64) -> Vec<Range> {
    read_if(answer >= 0, number, arguments, answer)
}

/// The same; buffers are among it if they count.
fn read_if(buffers_count: bool, number: u64, arguments: [u64; 6], answer: i64) -> Vec<Range> {
    let mut reads = Vec::new();
    if buffers_count || has_read_texts(answer) {
        syscalls::reads(number, arguments, &Guest, &mut reads);
        syscalls::shorten(answer, &mut reads);
        reads.retain(|read| match read.content {
            Content::Parameters => false,
            Content::Text => true,
            Content::Bytes | Content::Data => buffers_count,
        });
    }
    reads.iter().map(|read| read.range).collect()
}

/// A call that failed may have read anything or nothing. With these answers it has looked for what its
/// paths name, and so has read them.
fn has_read_texts(answer: i64) -> bool {
    use libc::{
        EACCES, EEXIST, EISDIR, ELOOP, ENAMETOOLONG, ENODEV, ENOENT, ENOEXEC, ENOTDIR, ENOTEMPTY,
        ENXIO, EPERM, EROFS, ETXTBSY,
    };
    let answers = [
        EACCES,
        EEXIST,
        EISDIR,
        ELOOP,
        ENAMETOOLONG,
        ENODEV,
        ENOENT,
        ENOEXEC,
        ENOTDIR,
        ENOTEMPTY,
        ENXIO,
        EPERM,
        EROFS,
        ETXTBSY,
    ];
    answers.iter().any(|error| answer == -i64::from(*error))
}
