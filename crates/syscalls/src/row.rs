//! The form of a row of the table: what one call, or one request of a call that multiplexes, writes
//! and takes.

use super::call::{self, Call};
use super::reads::Reading;
use super::{Before, Entry, Known, Peek};

/// What is known of a call, or of one request of a call that multiplexes.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// What the kernel writes into the caller's memory.
    pub writes: Writes,
    /// What it takes from there, besides what the signature of the call tells.
    pub takes: &'static [Take],
}

/// What a call writes into the caller's memory.
#[derive(Clone, Copy, Debug)]
pub enum Writes {
    /// Nothing.
    Nothing,
    /// These.
    Parts(&'static [Part]),
    /// What it writes takes a function to say.
    Rule(Rule),
    /// An `ioctl` whose number says truly how many bytes are read and written at its argument.
    Coded,
    /// An argument selects the row.
    Choice { argument: usize, bits: u64, rows: &'static [(u64, Row)], others: &'static Row },
    /// Not known, for this reason.
    Unknown(&'static str),
}

/// Something that a call takes from memory, besides what its signature tells. Numbers of arguments
/// count from 0. A pointer that is null is never followed.
#[derive(Clone, Copy, Debug)]
pub enum Take {
    /// At this argument a structure of so many bytes.
    Bytes(usize, u64),
    /// As many bytes as the second argument says.
    Whole(usize, usize),
    /// A text up to and with its zero byte.
    Text(usize),
    /// What it takes a function to say.
    Rule(fn(&mut Reading<'_>)),
}

/// Something that a call writes. Numbers of arguments count from 0. A pointer that is null is
/// never written to.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// At this argument so many bytes.
    Fixed(usize, u64),
    /// As many bytes as the answer says, at most as many as the second argument allows.
    Answer(usize, usize),
    /// As many items of this size as the answer says, at most as many as the last argument allows.
    Items(usize, u64, usize),
    /// As many bytes as the second argument says.
    Whole(usize, usize),
    /// A text up to and with its zero byte.
    Text(usize),
    /// So many bytes, whether the call fails or not.
    Always(usize, u64),
    /// So many bytes if the call fails with this error.
    OnError(i32, usize, u64),
    /// So many bytes if the answer is above zero.
    IfAny(usize, u64),
}

/// Looks at memory before the call.
pub type InspectBefore = fn(&[u64; 6], &dyn Peek, &mut Before);
/// Says what the call wrote.
pub type Say = fn(&mut Call<'_>) -> Known;

/// Functions for what parts cannot express.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    pub before: Option<InspectBefore>,
    pub after: Say,
}

impl Row {
    /// A row of a call that writes nothing.
    pub const NOTHING: Self = Self::new(Writes::Nothing);
    /// A row of an `ioctl` whose number says truly what is read and written.
    pub const CODED: Self = Self::new(Writes::Coded);

    const fn new(writes: Writes) -> Self {
        Self { writes, takes: &[] }
    }

    /// A row of a call that writes these.
    pub const fn writes(parts: &'static [Part]) -> Self {
        Self::new(Writes::Parts(parts))
    }

    /// A row of a call of which it is not known what it writes, and why.
    pub const fn unknown(reason: &'static str) -> Self {
        Self::new(Writes::Unknown(reason))
    }

    /// A row with a function for after the call.
    pub const fn after(after: Say) -> Self {
        Self::new(Writes::Rule(Rule { before: None, after }))
    }

    /// A row with functions for before and after the call.
    pub const fn around(before: InspectBefore, after: Say) -> Self {
        Self::new(Writes::Rule(Rule { before: Some(before), after }))
    }

    /// A row of a call that writes nothing and takes these.
    pub const fn takes(takes: &'static [Take]) -> Self {
        Self { writes: Writes::Nothing, takes }
    }

    /// The same row, of a call that also takes these.
    pub const fn taking(self, takes: &'static [Take]) -> Self {
        Self { writes: self.writes, takes }
    }

    /// A row that the low half of an argument selects; what is not listed is unknown.
    pub const fn choice(argument: usize, rows: &'static [(u64, Row)]) -> Self {
        const OTHERS: Row = Row::unknown("the table does not know this request");
        Self::select(argument, 0xffff_ffff, rows, &OTHERS)
    }

    /// A row that these bits of an argument select; `others` is for what is not listed.
    pub const fn select(
        argument: usize,
        bits: u64,
        rows: &'static [(u64, Row)],
        others: &'static Row,
    ) -> Self {
        Self::new(Writes::Choice { argument, bits, rows, others })
    }

    /// Whether it may write, with this request; `None` if nothing is known.
    pub fn may_write(&self, choice: Option<u64>) -> Option<bool> {
        match self.writes {
            Writes::Unknown(_) | Writes::Choice { .. } => None,
            Writes::Nothing => Some(false),
            Writes::Parts(_) | Writes::Rule(_) => Some(true),
            Writes::Coded => Some(choice.is_some_and(call::writes_by_number)),
        }
    }

    /// Appends the entries of this row and the rows below it.
    pub fn list(&self, number: u64, choice: Option<u64>, all: &mut Vec<Entry>) {
        if let Writes::Choice { rows, others, .. } = self.writes {
            for (value, row) in rows {
                row.list(number, Some(*value), all);
            }
            others.list(number, choice, all);
        } else if let Some(writes) = self.may_write(choice) {
            all.push(Entry { number, choice, writes });
        }
    }
}

/// Answers by which the kernel refuses what it does not know or allow, before it does anything.
pub fn refused(answer: i64) -> bool {
    i32::try_from(answer).is_ok_and(|answer| {
        matches!(
            answer.wrapping_neg(),
            libc::EACCES
                | libc::EBADF
                | libc::EINVAL
                | libc::ENOPROTOOPT
                | libc::ENOSYS
                | libc::ENOTTY
                | libc::EOPNOTSUPP
                | libc::EPERM
        )
    })
}

/// The row of `value` among rows that are [`sorted`].
pub fn pick(rows: &'static [(u64, Row)], value: u64) -> Option<&'static Row> {
    let at = rows.binary_search_by_key(&value, |(key, _)| *key).ok()?;
    Some(&rows[at].1)
}

/// Rows in the order of their keys, so that they can be written in the order of their meaning.
pub const fn sorted<const N: usize>(mut rows: [(u64, Row); N]) -> [(u64, Row); N] {
    let mut next = 1;
    while next < N {
        let mut at = next;
        while at > 0 && rows[at - 1].0 > rows[at].0 {
            let moved = rows[at];
            rows[at] = rows[at - 1];
            rows[at - 1] = moved;
            at -= 1;
        }
        assert!(at == 0 || rows[at - 1].0 < rows[at].0, "a request has two rows");
        next += 1;
    }
    rows
}
