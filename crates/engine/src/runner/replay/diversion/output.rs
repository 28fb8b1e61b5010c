//! What a diverted process writes to standard output and error: an anonymous file that the host is handed.
//! Before each piece stand its number and, in one word, stream and length, as where a replay shows output.

use crate::runner::guest;
use crate::sys::{self, syscall};

/// Bytes that are kept.
const MOST: u64 = 16 << 20;

/// An `iovec` has at most so many parts.
const MOST_PARTS: u64 = 1024;

/// The file.
pub struct Output {
    file: i32,
    pieces: u64,
    bytes: u64,
    cut: bool,
}

impl Output {
    /// An empty one.
    pub fn new() -> Self {
        // SAFETY: the kernel reads a terminated name.
        let file =
            unsafe { syscall!(libc::SYS_memfd_create, c"output".as_ptr(), libc::MFD_CLOEXEC) };
        Self { file: file as i32, pieces: 0, bytes: 0, cut: false }
    }

    /// Whether something is missing.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// The file's descriptor.
    pub fn descriptor(&self) -> i32 {
        self.file
    }

    /// Keeps memory of the guest's that was written; how many bytes, or nothing if it is not all there.
    pub fn put(&mut self, stream: u8, address: u64, length: u64) -> Option<u64> {
        let kept = length.min(MOST.saturating_sub(self.bytes));
        self.cut |= kept < length;
        let mut bytes = vec![0; kept as usize];
        if guest::read_some(address, &mut bytes) < bytes.len() {
            return None;
        }
        if !bytes.is_empty() {
            sys::write_all(self.file, &self.pieces.to_le_bytes());
            sys::write_all(self.file, &(u64::from(stream) << 56 | kept).to_le_bytes());
            sys::write_all(self.file, &bytes);
            (self.pieces, self.bytes) = (self.pieces + 1, self.bytes + kept);
        }
        Some(length)
    }

    /// The same for an `iovec` array.
    pub fn put_vector(&mut self, stream: u8, vector: u64, parts: u64) -> Option<u64> {
        let mut all = 0;
        for index in 0..parts.min(MOST_PARTS) {
            let part = |at| guest::read_u64(vector.wrapping_add(16 * index + at));
            all += self.put(stream, part(0)?, part(8)?)?;
        }
        Some(all)
    }
}
