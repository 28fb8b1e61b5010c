//! What the kernel takes from the memory of the process that makes a call: paths, buffers, vectors of
//! buffers, structures.
//!
//! Most of it the kinds of the arguments tell ([`Argument`]); a call's row adds what they cannot. The
//! ranges are what the kernel copies if the call goes all the way: one that fails earlier has read less.
//! What a call reads and writes (`poll`) is in both lists.
//!
//! Not told: what a pointer inside the value of a socket option, a key's parameters or an `ioctl` leads
//! to, and the 4 KiB of options that `mount` takes if they are there.

use crate::call;
use crate::row::{Row, Take, Writes};
use crate::signature::{Argument, get};
use crate::{Known, Peek, Range, find};

/// What a call takes a range for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// Parameters of the call: a structure, padding and all.
    Parameters,
    /// A buffer that is taken whole.
    Bytes,
    /// A part of what is sent on; the answer says how much of it was taken.
    Data,
    /// A path or another text, with the zero byte that ends it.
    Text,
}

/// Bytes that the kernel takes from the caller's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Read {
    /// Where they are.
    pub range: Range,
    /// What they are taken for.
    pub content: Content,
}

/// Appends to `out` what the kernel takes from memory if the call succeeds. To be called before the
/// system call, which may overwrite it.
pub fn reads(number: u64, arguments: [u64; 6], memory: &dyn Peek, out: &mut Vec<Read>) -> Known {
    let Some(call) = get(number) else { return Known::NotInTable };
    let mut reading = Reading { arguments, memory, known: Known::Yes, out };
    for (at, argument) in call.arguments.iter().enumerate() {
        reading.argument(at, *argument);
    }
    let Some(row) = find(number, &arguments) else { return Known::NotInTable };
    reading.row(&call.row);
    if matches!(call.row.writes, Writes::Choice { .. }) {
        reading.row(row);
    }
    match row.writes {
        // Who does not know what a call writes may yet know what it reads.
        Writes::Unknown(_) if row.takes.is_empty() => Known::NotInTable,
        _ => reading.known,
    }
}

/// Shortens what was to be sent on to what the answer says was taken.
pub fn shorten(answer: i64, reads: &mut Vec<Read>) {
    let Ok(mut left) = u64::try_from(answer) else { return };
    for read in reads.iter_mut().filter(|read| read.content == Content::Data) {
        read.range.length = read.range.length.min(left);
        left -= read.range.length;
    }
    reads.retain(|read| read.range.length > 0);
}

/// Longest path, and longest text of another kind.
const LONGEST_TEXT: u64 = 4096;
/// Longest argument or variable of a new program.
const LONGEST_WORD: u64 = 128 << 10;
/// The kernel takes no more than this of all arguments or variables of a new program.
const MOST_WORDS: u64 = 6 << 20;
const PAGE: u64 = 4096;

/// A call about to be made: the words in which rows say what it takes.
pub struct Reading<'a> {
    pub arguments: [u64; 6],
    pub memory: &'a dyn Peek,
    /// Whether what is taken is all.
    pub known: Known,
    out: &'a mut Vec<Read>,
}

impl Reading<'_> {
    fn argument(&mut self, at: usize, argument: Argument) {
        let address = self.arguments[at];
        let count = argument.length().map_or(0, |length| self.arguments[length]);
        match argument {
            Argument::Path | Argument::Text => self.text(address),
            Argument::In(_) => self.put(Content::Bytes, address, count),
            Argument::SocketName(_) => self.socket_name(address, count),
            Argument::Data(_) => self.put(Content::Data, address, count),
            Argument::Input(size) | Argument::Update(size) => self.parameters(address, size),
            Argument::InputItems(size, _) | Argument::UpdateItems(size, _) => {
                // Counts are 32-bit numbers, whatever the upper half holds.
                self.parameters(address, size * (count & 0xffff_ffff));
            }
            Argument::Vector(_) => self.vector(address, count, None),
            Argument::DataVector(_) => self.vector(address, count, Some(Content::Data)),
            _ => {}
        }
    }

    fn row(&mut self, row: &Row) {
        let a = self.arguments;
        if matches!(row.writes, Writes::Coded) {
            self.coded();
        }
        for take in row.takes {
            match *take {
                Take::Bytes(pointer, length) => self.parameters(a[pointer], length),
                Take::Whole(pointer, length) => self.put(Content::Bytes, a[pointer], a[length]),
                Take::Text(pointer) => self.text(a[pointer]),
                Take::Rule(rule) => rule(self),
            }
        }
    }

    /// `length` bytes at `address` are taken.
    pub fn put(&mut self, content: Content, address: u64, length: u64) {
        let length = length.min(0u64.wrapping_sub(address));
        if address != 0 && length > 0 {
            self.out.push(Read { range: Range { address, length }, content });
        }
    }

    /// A structure is taken.
    pub fn parameters(&mut self, address: u64, length: u64) {
        self.put(Content::Parameters, address, length);
    }

    /// The address of a socket is taken, with room that nobody looks at: behind a path, behind the number of a
    /// host.
    pub fn socket_name(&mut self, address: u64, length: u64) {
        const FAMILY: u64 = 2;
        const LOCAL: u16 = 1;
        const INTERNET: u16 = 2;
        self.parameters(address, length);
        let mut family = [0; FAMILY as usize];
        if !self.memory.read(address, &mut family) {
            return;
        }
        let looked_at = match u16::from_ne_bytes(family) {
            LOCAL => {
                let path = address.wrapping_add(FAMILY);
                let used = self.text_length(path, length.saturating_sub(FAMILY));
                // Names outside of the file system begin with a zero byte and are as long as is said.
                if used > 1 { FAMILY + used } else { length }
            }
            INTERNET => 8,
            _ => FAMILY,
        };
        self.put(Content::Bytes, address, looked_at.min(length));
    }

    /// A text is taken.
    pub fn text(&mut self, address: u64) {
        self.short_text(address, LONGEST_TEXT);
    }

    /// A text of at most so many bytes is taken.
    pub fn short_text(&mut self, address: u64, most: u64) {
        self.put(Content::Text, address, self.text_length(address, most));
    }

    /// An `iovec` array is taken, and its buffers, if they are read, as `content`.
    pub fn vector(&mut self, address: u64, count: u64, content: Option<Content>) {
        const MOST: u64 = 1024;
        if count > MOST {
            return;
        }
        self.parameters(address, 16 * count);
        let Some(content) = content else { return };
        let mut pieces = Vec::new();
        call::pieces(self.memory, address, count, &mut pieces);
        for piece in pieces {
            self.put(content, piece.address, piece.length);
        }
    }

    /// The arguments or variables of a new program: pointers to texts, ended by a null.
    pub fn words(&mut self, list: u64) {
        if list == 0 {
            return;
        }
        let (mut at, mut taken) = (list, 0);
        while taken < MOST_WORDS {
            let text = self.long(at);
            at = at.wrapping_add(8);
            if text == 0 {
                break;
            }
            let length = self.text_length(text, LONGEST_WORD);
            self.put(Content::Text, text, length);
            taken += 8 + length;
        }
        self.parameters(list, at.wrapping_sub(list));
    }

    /// A mask of so many bits, in whole words.
    pub fn bits(&mut self, address: u64, count: u64) {
        self.parameters(address, count.div_ceil(64) * 8);
    }

    /// The 32-bit word at an address; 0 if there is none.
    pub fn word(&self, address: u64) -> u64 {
        call::word(self.memory, address)
    }

    /// The 64-bit word at an address; 0 if there is none.
    pub fn long(&self, address: u64) -> u64 {
        call::long(self.memory, address)
    }

    /// An `ioctl` by what its number says: how many bytes, and whether the kernel reads them.
    pub fn coded(&mut self) {
        const WRITE: u64 = 1;
        let request = self.arguments[1];
        if request >> 30 & WRITE != 0 {
            self.parameters(self.arguments[2], request >> 16 & 0x3fff);
        }
    }

    /// The length of a text with the zero byte that ends it; what is there if memory ends first.
    fn text_length(&self, address: u64, most: u64) -> u64 {
        let mut bytes = [0; PAGE as usize];
        let mut length = 0;
        while length < most {
            let at = address.wrapping_add(length);
            // Up to the end of the page, as there may be none behind it.
            let chunk = (PAGE - at % PAGE).min(most - length);
            let bytes = &mut bytes[..chunk as usize];
            if !self.memory.read(at, bytes) {
                break;
            }
            if let Some(end) = bytes.iter().position(|byte| *byte == 0) {
                return length + end as u64 + 1;
            }
            length += chunk;
        }
        length
    }
}
