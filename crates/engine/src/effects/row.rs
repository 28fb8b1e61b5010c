//! The form of a row of the table.

use super::call::Call;
use super::{Before, Entry, Known, Peek};

/// What is known of a call, or of one request of a call that multiplexes.
#[derive(Clone, Copy)]
pub enum Row {
    /// There is no such call.
    Absent,
    /// The kernel writes nothing into the caller's memory.
    Nothing,
    /// It writes these.
    Writes(&'static [Part]),
    /// What it writes takes a function to say.
    Rule(Rule),
    /// An `ioctl` whose number says truly how many bytes are written at its argument.
    Coded,
    /// An argument selects the row.
    Choice { argument: usize, bits: u64, rows: &'static [(u64, Row)], others: &'static Row },
    /// Not known, for this reason.
    Unknown(&'static str),
}

/// Something that a call writes. Numbers of arguments count from 0. A pointer that is null is
/// never written to.
#[derive(Clone, Copy)]
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
pub type Look = fn(&[u64; 6], &dyn Peek, &mut Before);
/// Says what the call wrote.
pub type Say = fn(&mut Call<'_>) -> Known;

/// Functions for what parts cannot express.
#[derive(Clone, Copy)]
pub struct Rule {
    pub before: Option<Look>,
    pub after: Say,
}

impl Row {
    /// A row with a function for after the call.
    pub const fn after(after: Say) -> Self {
        Self::Rule(Rule { before: None, after })
    }

    /// A row with functions for before and after the call.
    pub const fn around(before: Look, after: Say) -> Self {
        Self::Rule(Rule { before: Some(before), after })
    }

    /// A row that the low half of an argument selects; what is not listed is unknown.
    pub const fn choice(argument: usize, rows: &'static [(u64, Row)]) -> Self {
        const OTHERS: Row = Row::Unknown("the table does not know this request");
        Self::Choice { argument, bits: 0xffff_ffff, rows, others: &OTHERS }
    }

    /// Whether it may write; `None` if nothing is known.
    pub fn writes(&self) -> Option<bool> {
        match self {
            Self::Absent | Self::Unknown(_) | Self::Choice { .. } => None,
            Self::Nothing => Some(false),
            Self::Writes(_) | Self::Rule(_) | Self::Coded => Some(true),
        }
    }

    /// Appends the entries of this row and the rows below it.
    pub fn list(&self, number: u64, choice: Option<u64>, all: &mut Vec<Entry>) {
        if let Self::Choice { rows, others, .. } = self {
            for (value, row) in *rows {
                row.list(number, Some(*value), all);
            }
            others.list(number, choice, all);
        } else if let Some(writes) = self.writes() {
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

/// The table with the rows of one family added.
pub const fn add(mut all: [Row; 512], rows: &[(u64, Row)], nothing: &[u64]) -> [Row; 512] {
    let mut at = 0;
    while at < rows.len() {
        let (number, row) = rows[at];
        assert!(matches!(all[number as usize], Row::Absent), "a call has two rows");
        all[number as usize] = row;
        at += 1;
    }
    let mut at = 0;
    while at < nothing.len() {
        assert!(matches!(all[nothing[at] as usize], Row::Absent), "a call has two rows");
        all[nothing[at] as usize] = Row::Nothing;
        at += 1;
    }
    all
}
