//! The runner's end of the log: bytes go to buffers that the host shares, and survive this process
//! however it ends.

use crate::layout;
use crate::log_ring::{self, BUFFER_BYTES, BUFFERS, HEADER_BYTES, Header, TOTAL_BYTES};
use crate::report::{LogOrigin, Message};
use crate::ring::{self, FREE, FULL, LAST};
use crate::runner::report;
use crate::sys::{self, syscall};
use std::sync::atomic::Ordering;

/// The log of this process.
pub struct Log {
    current: usize,
    filled: u64,
}

fn header() -> &'static Header {
    // SAFETY: mapped by `Log::open` before anyone asks.
    unsafe { &*(layout::LOG_BUFFERS.start as *const Header) }
}

fn start_of(buffer: usize) -> u64 {
    layout::LOG_BUFFERS.start + HEADER_BYTES + buffer as u64 * BUFFER_BYTES
}

impl Log {
    /// Makes the log of this process, by its number to the host, and waits until that has taken it up.
    pub fn open(process: i32, origin: LogOrigin) -> Result<Self, i32> {
        // SAFETY: the kernel reads a terminated name.
        let file = unsafe { syscall!(libc::SYS_memfd_create, c"log".as_ptr(), libc::MFD_CLOEXEC) };
        if file < 0 {
            return Err(-file as i32);
        }
        let file = file as i32;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a range of the engine's own, where nothing is or an older log that this replaces.
        unsafe {
            syscall!(libc::SYS_ftruncate, file, TOTAL_BYTES);
            let base = layout::LOG_BUFFERS.start;
            sys::map_fixed(base, TOTAL_BYTES, protection, libc::MAP_SHARED, file, 0)?;
        }
        report::send(&Message::Log { process, descriptor: file, origin });
        while !ring::wait_briefly(&header().attached, 0) {}
        // SAFETY: ours.
        unsafe { syscall!(libc::SYS_close, file) };
        Ok(Self { current: 0, filled: 0 })
    }

    /// Appends bytes of the engine's.
    pub fn append(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(self.room()));
            // SAFETY: there is room for it in the current buffer.
            unsafe {
                let to = (start_of(self.current) + self.filled) as *mut u8;
                std::ptr::copy_nonoverlapping(now.as_ptr(), to, now.len());
            }
            self.filled += now.len() as u64;
            rest = later;
        }
        self.publish();
    }

    /// Bytes that fit into the current buffer, at least one.
    fn room(&mut self) -> usize {
        if self.filled == BUFFER_BYTES {
            self.turn(FULL);
        }
        (BUFFER_BYTES - self.filled) as usize
    }

    /// Lets the host know how far the buffer is filled, should this process be killed.
    fn publish(&self) {
        header().filled[self.current].store(self.filled as u32, Ordering::Release);
    }

    fn turn(&mut self, state: u32) {
        let (word, length) = &header().buffers[self.current];
        length.store(self.filled as u32, Ordering::Relaxed);
        ring::set(word, state);
        self.current = (self.current + 1) % BUFFERS;
        self.filled = 0;
        if state != LAST {
            let (word, _) = &header().buffers[self.current];
            while word.load(Ordering::Acquire) != FREE {
                ring::wait_briefly(word, FULL);
            }
            self.publish();
        }
    }

    /// Hands over what there is; nothing more will come.
    pub fn finish(&mut self) {
        self.turn(LAST);
    }

    /// Whether the host has said that nothing can be stored any more.
    pub fn is_refused(&self) -> bool {
        header().state.load(Ordering::Relaxed) == log_ring::REFUSED
    }
}
