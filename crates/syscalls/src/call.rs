//! A system call that has been made: the words in which rows say what it wrote.

use super::row::Part;
use super::{Before, Peek, Range};

/// The kernel moves at most this much in one call.
const MOST: u64 = 0x7fff_f000;
/// The kernel takes at most this many buffers in one call.
const MOST_PIECES: u64 = 1024;
const PAGE: u64 = 0x1000;

/// A call with its answer.
pub struct Call<'a> {
    pub arguments: [u64; 6],
    pub answer: i64,
    pub before: &'a Before,
    pub memory: &'a dyn Peek,
    /// Whether what a call that failed may have written is asked for as if all memory were there.
    pub whole: bool,
    pub out: &'a mut Vec<Range>,
}

impl Call<'_> {
    /// Whether the answer is an error number.
    pub fn failed(&self) -> bool {
        (-4095..0).contains(&self.answer)
    }

    /// Whether the answer is this error.
    pub fn is(&self, error: i32) -> bool {
        self.answer == -i64::from(error)
    }

    /// Whether results were written: the call succeeded, or a fault came while it wrote them, and
    /// then what lies before the fault may have changed.
    pub fn wrote(&self) -> bool {
        !self.failed() || self.is(libc::EFAULT)
    }

    /// How much was written, where the answer says so. After a fault nobody knows.
    pub fn amount(&self) -> u64 {
        if self.failed() { MOST } else { self.answer.cast_unsigned() }
    }

    /// `length` bytes at `address` were written. If the call failed that is so only as far as there
    /// is memory.
    pub fn put(&mut self, address: u64, length: u64) {
        let mut length = length.min(0u64.wrapping_sub(address));
        if address == 0 || length == 0 {
            return;
        }
        if self.failed() && !self.whole {
            length = self.mapped(address, length);
            if length == 0 {
                return;
            }
        }
        self.out.push(Range { address, length });
    }

    /// As [`Self::put`], but only as far as there is memory, for lengths that are a guess.
    pub fn put_mapped(&mut self, address: u64, length: u64) {
        let length = self.mapped(address, length);
        self.put(address, length);
    }

    /// `bytes` bytes were written over the pieces, one after the other.
    pub fn spread(&mut self, pieces: &[Range], mut bytes: u64) {
        for piece in pieces {
            let length = piece.length.min(bytes);
            self.put(piece.address, length);
            bytes -= length;
            if bytes == 0 {
                return;
            }
        }
    }

    /// Something that a row lists.
    #[inline]
    pub fn part(&mut self, part: &Part) {
        let a = self.arguments;
        match *part {
            Part::Fixed(pointer, length) if self.wrote() => self.put(a[pointer], length),
            Part::Answer(pointer, limit) if self.wrote() => {
                self.put(a[pointer], self.amount().min(a[limit]));
            }
            Part::Items(pointer, size, limit) if self.wrote() => {
                self.put(a[pointer], self.amount().min(a[limit]).saturating_mul(size));
            }
            Part::Whole(pointer, length) if self.wrote() => self.put(a[pointer], a[length]),
            Part::Text(pointer) if self.wrote() => self.put(a[pointer], self.text(a[pointer])),
            Part::Always(pointer, length) => self.put(a[pointer], length),
            Part::OnError(error, pointer, length) if self.is(error) => {
                self.put(a[pointer], length);
            }
            Part::IfAny(pointer, length) if self.answer > 0 || self.is(libc::EFAULT) => {
                self.put(a[pointer], length);
            }
            _ => {}
        }
    }

    /// An `ioctl` by what its number says: how many bytes, and whether the caller reads them.
    pub fn coded(&mut self) {
        let request = self.arguments[1];
        if self.wrote() && writes_by_number(request) {
            self.put(self.arguments[2], request >> 16 & 0x3fff);
        }
    }

    /// The 32-bit word at an address; 0 if there is none.
    pub fn word(&self, address: u64) -> u64 {
        word(self.memory, address)
    }

    /// The length of the text at an address with its zero byte; at most a page.
    fn text(&self, address: u64) -> u64 {
        let mut byte = [0];
        let ends =
            |at: &u64| !self.memory.read(address.wrapping_add(*at), &mut byte) || byte[0] == 0;
        (0..PAGE - 1).find(ends).unwrap_or(PAGE - 1) + 1
    }

    /// How many of `length` bytes at `address` there are.
    fn mapped(&self, address: u64, length: u64) -> u64 {
        let end = address.saturating_add(length.min(MOST));
        let mut at = address;
        while at < end && self.memory.read(at, &mut [0]) {
            at = (at | (PAGE - 1)).saturating_add(1).min(end);
        }
        at - address
    }
}

/// Whether the number of an `ioctl` says that the kernel writes: that the caller reads.
pub fn writes_by_number(request: u64) -> bool {
    const READ: u64 = 2;
    request >> 30 & READ != 0
}

/// The 32-bit word at an address; 0 if there is none.
pub fn word(memory: &dyn Peek, address: u64) -> u64 {
    let mut bytes = [0; 4];
    if memory.read(address, &mut bytes) { u32::from_le_bytes(bytes).into() } else { 0 }
}

/// The 64-bit word at an address; 0 if there is none.
pub fn long(memory: &dyn Peek, address: u64) -> u64 {
    let mut bytes = [0; 8];
    if memory.read(address, &mut bytes) { u64::from_le_bytes(bytes) } else { 0 }
}

/// Appends the buffers of an `iovec` array.
pub fn pieces(memory: &dyn Peek, address: u64, count: u64, into: &mut Vec<Range>) {
    if count > MOST_PIECES {
        return;
    }
    into.reserve(count as usize);
    for index in 0..count {
        let mut bytes = [0; 16];
        if !memory.read(address.wrapping_add(16 * index), &mut bytes) {
            return;
        }
        let (base, length) = bytes.split_at(8);
        let number =
            |half: &[u8]| half.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        into.push(Range { address: number(base), length: number(length) });
    }
}
