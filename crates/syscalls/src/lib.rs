//! The system calls of x86-64 Linux, in one table: what each is called and takes, what it **writes**
//! into the memory of the process that makes it, and what it **reads** from there.
//!
//! Recording rests on the first ([`before`], [`written`]): [`before`] looks at what the call may
//! overwrite (lengths that are asked and answered in one word, vectors of buffers), [`written`] says
//! after the call which ranges the kernel has written. Slices and rules rest on both: [`reads`] says
//! which ranges the kernel takes its parameters and data from. [`name`], [`show`] and [`number`] are for
//! those who print calls or tell them apart.
//!
//! Every call has one line in a file of its family ([`table`]), and calls that multiplex (`ioctl`,
//! `fcntl`, `prctl` …) have rows below it. A row says what is written, that nothing is, or why that
//! cannot be said.
//!
//! A written range may be larger than what the kernel wrote, never smaller. Storing bytes that did not
//! change is harmless, with one exception: the kernel does not write where the guest may not, so a page
//! that is not writable for the guest was not written either, though it may lie inside a range.
//!
//! What the table does not speak of, because it is not a write that belongs to one call: memory that
//! is shared with others, mapped rings, `/proc/PID/mem`, new mappings (but for
//! [`mapped`]), the word that a thread's end clears, robust futexes, signal frames.
//!
//! Nothing here makes a system call or touches memory but through [`Peek`]; arguments are a guest's
//! doing and may be anything. `testkit::syscallwrites` holds the writes against real programs,
//! `tests/reads.rs` holds the reads against the kernel's own faults.
#![forbid(unsafe_code)]

mod call;
mod reads;
mod row;
mod signature;
mod table;

pub use reads::{Content, Read, reads, shorten};
pub use signature::{Argument, SystemCall, all, get, name, show};
pub use table::number;

use call::Call;
use row::{Row, Writes, refused};

/// Guest memory, as far as the table must look into it.
pub trait Peek {
    /// Fills `out` from `address`; `false` if not all of it can be read.
    fn read(&self, address: u64, out: &mut [u8]) -> bool;
}

/// Bytes of guest memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// Where they start.
    pub address: u64,
    /// How many they are.
    pub length: u64,
}

/// What must be known before the call, because the call, or another thread meanwhile, may
/// overwrite it.
#[derive(Clone, Default, Debug)]
pub struct Before {
    /// Lengths and addresses whose meaning the call's row knows.
    words: [u64; 2],
    /// Buffers of a vectored call, and of all its messages. Empty for most calls, and then nothing
    /// is allocated.
    pieces: Vec<Range>,
    /// Messages of `recvmsg` and `recvmmsg`.
    messages: Vec<table::Message>,
}

/// Whether the table knows what the call wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Known {
    /// The ranges are complete.
    Yes,
    /// They are not: [`reason`] says why. The recorder must refuse, or say so.
    NotInTable,
}

/// To be called before the system call is made.
#[must_use]
#[inline]
pub fn before(number: u64, arguments: [u64; 6], memory: &dyn Peek) -> Before {
    let mut before = Before::default();
    if let Some(row) = find(number, &arguments)
        && let Writes::Rule(rule) = &row.writes
        && let Some(look) = rule.before
    {
        look(&arguments, memory, &mut before);
    }
    before
}

/// Appends to `out` what the kernel wrote, given its answer. To be called after the system call,
/// with what [`before`] said.
#[inline]
pub fn written(
    number: u64,
    arguments: [u64; 6],
    answer: i64,
    before: &Before,
    memory: &dyn Peek,
    out: &mut Vec<Range>,
) -> Known {
    say(number, &mut Call { arguments, answer, before, memory, whole: false, out })
}

/// Appends to `out` the memory that a call is given to write to, whether that is there or not.
pub fn given(
    number: u64,
    arguments: [u64; 6],
    before: &Before,
    memory: &dyn Peek,
    out: &mut Vec<Range>,
) {
    // After such a fault all may have been written that was to be.
    let answer = -i64::from(libc::EFAULT);
    out.extend(rooms(number, arguments));
    say(number, &mut Call { arguments, answer, before, memory, whole: true, out });
}

fn say(number: u64, call: &mut Call<'_>) -> Known {
    match find(number, &call.arguments).map(|row| &row.writes) {
        Some(Writes::Nothing) => Known::Yes,
        Some(Writes::Parts(parts)) => {
            for part in *parts {
                call.part(part);
            }
            Known::Yes
        }
        Some(Writes::Rule(rule)) => (rule.after)(call),
        Some(Writes::Coded) => {
            call.coded();
            Known::Yes
        }
        _ if refused(call.answer) => Known::Yes,
        None | Some(Writes::Choice { .. } | Writes::Unknown(_)) => Known::NotInTable,
    }
}

/// The room that a call is given for what the kernel writes. All of it should be there, however little is
/// written in the end.
pub fn rooms(number: u64, arguments: [u64; 6]) -> impl Iterator<Item = Range> {
    let call = get(number).map_or(&[][..], |call| call.arguments);
    let room = move |(at, argument): (usize, &Argument)| match *argument {
        Argument::Out(length) => Some(Range { address: arguments[at], length: arguments[length] }),
        _ => None,
    };
    call.iter().enumerate().filter_map(room)
}

/// What a call has mapped anew: old pages of a fixed mapping are gone, and new ones hold what the file
/// does, or zeros.
#[must_use]
pub fn mapped(number: u64, arguments: &[u64; 6], answer: i64) -> Option<Range> {
    let address = u64::try_from(answer).ok()?;
    let length = arguments[1];
    (number == number::mmap && length > 0).then_some(Range { address, length })
}

/// Memory of which nothing is known: for those who have a call's arguments and answer alone. Lengths
/// that stand in memory are then 0.
pub struct NoMemory;

impl Peek for NoMemory {
    fn read(&self, _: u64, _: &mut [u8]) -> bool {
        false
    }
}

/// Why the table does not say what a call wrote, where it answered [`Known::NotInTable`].
#[must_use]
pub fn reason(number: u64, arguments: [u64; 6]) -> &'static str {
    match find(number, &arguments).map(|row| row.writes) {
        Some(Writes::Unknown(reason)) => reason,
        None => "the call is newer than the table",
        _ => "the table does not know this request",
    }
}

/// A row of the table, for those who count which were exercised.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Entry {
    /// Number of the call.
    pub number: u64,
    /// The request or command that selects a row below it.
    pub choice: Option<u64>,
    /// Whether the kernel may write, by this row.
    pub writes: bool,
}

/// The row that a call falls under; `None` if that row says that nothing is known.
#[must_use]
pub fn entry(number: u64, arguments: [u64; 6]) -> Option<Entry> {
    let mut choice = None;
    let mut row = &get(number)?.row;
    while let Writes::Choice { argument, bits, rows, others } = &row.writes {
        let value = arguments[*argument] & bits;
        match row::pick(rows, value) {
            Some(found) => (row, choice) = (found, Some(value)),
            None => row = others,
        }
    }
    row.may_write(choice).map(|writes| Entry { number, choice, writes })
}

/// All rows that say something, in order.
#[must_use]
pub fn entries() -> Vec<Entry> {
    let mut all = Vec::new();
    for call in signature::all() {
        call.row.list(call.number, None, &mut all);
    }
    all.sort_unstable();
    all
}

/// The row that a call falls under.
fn find(number: u64, arguments: &[u64; 6]) -> Option<&'static Row> {
    let mut row = &get(number)?.row;
    while let Writes::Choice { argument, bits, rows, others } = &row.writes {
        row = row::pick(rows, arguments[*argument] & bits).unwrap_or(others);
    }
    Some(row)
}

#[cfg(test)]
mod tests;
