//! What a system call writes into the memory of the process that makes it: the table that recording
//! rests on.
//!
//! [`before`] looks at what the call may overwrite (lengths that are asked and answered in one word,
//! vectors of buffers), [`written`] says after the call which ranges the kernel has written. Every
//! call of x86-64 Linux has a [`Row`]: what it writes, that it writes nothing, or why that cannot be
//! said. Calls that multiplex (`ioctl`, `fcntl`, `prctl` …) have rows below their row. The rows stand
//! in one file a family; a call has exactly one, which is checked when this is compiled.
//!
//! A range may be larger than what the kernel wrote, never smaller. Storing bytes that did not change
//! is harmless, with one exception: the kernel does not write where the guest may not, so a page that
//! is not writable for the guest was not written either, though it may lie inside a range.
//!
//! What the table does not speak of, because it is not a write that belongs to one call: memory that
//! is shared with others, mapped rings, `/proc/PID/mem`, new mappings ([`kind`] tells those calls),
//! the word that a thread's end clears, robust futexes, signal frames.
//!
//! Nothing here makes a system call or touches memory but through [`Peek`]; arguments are a guest's
//! doing and may be anything. `testkit::syscallwrites` holds the table against real programs.

mod call;
mod files;
mod ioctl;
mod ipc;
mod kind;
mod memory;
mod processes;
mod row;
mod signals;
mod sockets;
mod system;
mod time;
mod waiting;

pub use kind::{Kind, kind};

use base::system_call;
use call::Call;
use row::{Row, refused};

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
    messages: Vec<sockets::Message>,
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
    if let Row::Rule(rule) = find(number, &arguments)
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
    let mut call = Call { arguments, answer, before, memory, out };
    match find(number, &arguments) {
        Row::Nothing => Known::Yes,
        Row::Writes(parts) => {
            for part in *parts {
                call.part(part);
            }
            Known::Yes
        }
        Row::Rule(rule) => (rule.after)(&mut call),
        Row::Coded => {
            call.coded();
            Known::Yes
        }
        Row::Absent | Row::Choice { .. } | Row::Unknown(_) if refused(answer) => Known::Yes,
        Row::Absent | Row::Choice { .. } | Row::Unknown(_) => Known::NotInTable,
    }
}

/// Why the table does not say what a call wrote, where it answered [`Known::NotInTable`].
#[must_use]
pub fn reason(number: u64, arguments: [u64; 6]) -> &'static str {
    match find(number, &arguments) {
        Row::Unknown(reason) => reason,
        Row::Absent => "the call is newer than the table",
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
    let mut row = top(number);
    while let Row::Choice { argument, bits, rows, others } = row {
        let value = arguments[*argument] & bits;
        match row::pick(rows, value) {
            Some(found) => (row, choice) = (found, Some(value)),
            None => row = others,
        }
    }
    row.writes().map(|writes| Entry { number, choice, writes })
}

/// All rows that say something, in order.
#[must_use]
pub fn entries() -> Vec<Entry> {
    let mut all = Vec::new();
    for call in system_call::all() {
        top(call.number).list(call.number, None, &mut all);
    }
    all.sort_unstable();
    all
}

fn find(number: u64, arguments: &[u64; 6]) -> &'static Row {
    let mut row = top(number);
    while let Row::Choice { argument, bits, rows, others } = row {
        row = row::pick(rows, arguments[*argument] & bits).unwrap_or(others);
    }
    row
}

fn top(number: u64) -> &'static Row {
    ROWS.get(number as usize).unwrap_or(&Row::Absent)
}

/// One row a number; large enough for every call there is.
static ROWS: [Row; 512] = rows();

const fn rows() -> [Row; 512] {
    let mut all = [Row::Absent; 512];
    all = row::add(all, files::ROWS, files::NOTHING);
    all = row::add(all, ioctl::ROWS, &[]);
    all = row::add(all, ipc::ROWS, ipc::NOTHING);
    all = row::add(all, memory::ROWS, memory::NOTHING);
    all = row::add(all, processes::ROWS, processes::NOTHING);
    all = row::add(all, signals::ROWS, signals::NOTHING);
    all = row::add(all, sockets::ROWS, sockets::NOTHING);
    all = row::add(all, system::ROWS, system::NOTHING);
    all = row::add(all, time::ROWS, time::NOTHING);
    row::add(all, waiting::ROWS, waiting::NOTHING)
}

#[cfg(test)]
mod tests;
