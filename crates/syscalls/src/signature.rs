//! How a system call is written: its number, its name, what its arguments are, and how it is printed
//! for a reader of manual pages.

use crate::row::Row;
use crate::table;
use std::fmt::{self, Write};

/// A system call: number, name, arguments.
#[derive(Clone, Copy)]
pub struct SystemCall {
    /// Its number, as in RAX.
    pub number: u64,
    /// Its name, as the kernel has it (`newfstatat`, not `fstatat`).
    pub name: &'static str,
    /// What its arguments are.
    pub arguments: &'static [Argument],
    /// What it writes, and takes besides what its arguments tell.
    pub(crate) row: Row,
}

impl fmt::Debug for SystemCall {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}{:?}", self.number, self.name, self.arguments)
    }
}

/// The size of a structure that only the call's row can tell.
pub(crate) const VARIES: u64 = 0;

/// What an argument of a system call is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Argument {
    /// A file descriptor.
    Fd,
    /// A descriptor of a folder that a path is relative to, or `AT_FDCWD`.
    DirFd,
    /// A path, ended by a zero byte.
    Path,
    /// Another text that a zero byte ends.
    Text,
    /// Bytes that the kernel reads; how many, says the argument of this index.
    In(usize),
    /// The same, but the kernel sends them on, and the answer says how many of them it took.
    Data(usize),
    /// The address of a socket, whose length is in this argument. A path in it ends at its zero byte.
    SocketName(usize),
    /// Bytes that the kernel writes; at most as many as the argument of this index says.
    Out(usize),
    /// A structure of so many bytes that the kernel reads; 0 if the call's row tells what it reads.
    Input(u64),
    /// Items of so many bytes that the kernel reads; how many, says the argument of this index.
    InputItems(u64, usize),
    /// A structure that the kernel writes.
    Output,
    /// A structure that it reads and writes, so many bytes of it being read; 0 as in [`Self::Input`].
    Update(u64),
    /// Items of so many bytes that it reads and writes; how many, says the argument of this index.
    UpdateItems(u64, usize),
    /// An `iovec` array, whose buffers are not read; its length is the argument of this index.
    Vector(usize),
    /// An `iovec` array, whose buffers are sent on as in [`Self::Data`].
    DataVector(usize),
    /// A place in memory that the call is about.
    Address,
    /// An unsigned number: a size, a count, an offset.
    Size,
    /// A signed number.
    Number,
    /// A set of bits.
    Flags,
    /// Permission bits of a file.
    Mode,
    /// The number of a signal.
    Signal,
    /// A process, thread or process group.
    Pid,
}

/// The call of this number, if there is one.
#[must_use]
pub fn get(number: u64) -> Option<&'static SystemCall> {
    table::CALLS.get(usize::try_from(number).ok()?)?.as_ref()
}

/// All calls, by number.
pub fn all() -> impl Iterator<Item = &'static SystemCall> {
    table::CALLS.iter().flatten()
}

/// The name of the call of this number, if there is one.
#[must_use]
pub fn name(number: u64) -> Option<&'static str> {
    get(number).map(|call| call.name)
}

/// A call as text: `read(3, 0x7ffd2310, 4096)`. `told` may have better words for an argument, such
/// as the file behind a descriptor or the text at a path.
#[must_use]
pub fn show(
    number: u64,
    arguments: [u64; 6],
    told: &mut dyn FnMut(Argument, u64) -> Option<String>,
) -> String {
    let Some(call) = get(number) else { return format!("system call {number}") };
    let mut text = format!("{}(", call.name);
    for (index, (argument, value)) in call.arguments.iter().zip(arguments).enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        match told(*argument, value) {
            Some(words) => text.push_str(&words),
            None => argument.show(value, &mut text),
        }
    }
    text.push(')');
    text
}

impl Argument {
    /// The argument that says how long this one is.
    #[must_use]
    pub fn length(self) -> Option<usize> {
        match self {
            Self::In(at) | Self::SocketName(at) | Self::Data(at) | Self::Out(at) => Some(at),
            Self::InputItems(_, at) | Self::UpdateItems(_, at) => Some(at),
            Self::Vector(at) | Self::DataVector(at) => Some(at),
            _ => None,
        }
    }

    /// Appends the plain form of a value.
    fn show(self, value: u64, text: &mut String) {
        const CURRENT_FOLDER: i32 = -100;
        // Descriptors, signals and processes are 32-bit numbers, whatever the upper half holds.
        let small = value as i32;
        // A `String` takes everything.
        let _ = match self {
            Self::DirFd if small == CURRENT_FOLDER => write!(text, "AT_FDCWD"),
            Self::Fd | Self::DirFd | Self::Signal | Self::Pid => write!(text, "{small}"),
            Self::Size => write!(text, "{value}"),
            Self::Number => write!(text, "{}", value.cast_signed()),
            Self::Mode => write!(text, "{:#o}", value as u32),
            Self::Flags if value == 0 => write!(text, "0"),
            Self::Flags => write!(text, "{value:#x}"),
            _ if value == 0 => write!(text, "NULL"),
            _ => write!(text, "{value:#x}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number;

    #[test]
    fn lengths_and_counts_are_sizes() {
        for call in all() {
            assert!(call.arguments.len() <= 6, "{call:?}");
            for argument in call.arguments {
                if let Some(length) = argument.length() {
                    let kind = call.arguments[length];
                    assert!(matches!(kind, Argument::Size | Argument::Number), "{call:?}");
                }
            }
        }
    }

    #[test]
    fn names_and_numbers_belong_together() {
        assert_eq!(name(0), Some("read"));
        assert_eq!(name(number::exit_group), Some("exit_group"));
        assert_eq!(name(334), Some("rseq"));
        assert_eq!(name(number::file_setattr), Some("file_setattr"));
        assert_eq!(name(400), None);
        assert_eq!(name(u64::MAX), None);
    }

    #[test]
    fn calls_are_shown_as_manual_pages_write_them() {
        let mut nothing = |_, _| None;
        let shown = show(number::read, [3, 0x7000, 4096, 9, 9, 9], &mut nothing);
        assert_eq!(shown, "read(3, 0x7000, 4096)");
        let folder = 0xffff_ff9c;
        let shown = show(number::openat, [folder, 0x5000, 0o101, 0o644, 0, 0], &mut |kind, _| {
            (kind == Argument::Path).then(|| "\"out\"".to_owned())
        });
        assert_eq!(shown, "openat(AT_FDCWD, \"out\", 0x41, 0o644)");
        assert_eq!(show(number::lseek, [1, u64::MAX, 1, 0, 0, 0], &mut nothing), "lseek(1, -1, 1)");
        assert_eq!(show(999, [0; 6], &mut nothing), "system call 999");
    }
}
