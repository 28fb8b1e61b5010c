//! The runner's end of the event ring: where translated code writes its records, and the records
//! that the dispatcher adds.

use super::cpu::cpu;
use super::layout;
use super::report;
use super::sys::{self, syscall};
use crate::report::Message;
use crate::ring::{self, BUFFER_BYTES, BUFFERS, FREE, FULL, HEADER_BYTES, Header, LAST};
use ::events::record;
use std::sync::atomic::Ordering;

const SPACING: u64 = BUFFER_BYTES + 4096;
const FIRST_BUFFER: u64 = layout::EVENT_BUFFERS.start + 0x10000;

/// The ring of this process.
pub struct Ring {
    current: usize,
    /// Where the stream goes on, while what is written goes nowhere.
    muted: Option<u64>,
}

/// What goes nowhere is written here.
const NOWHERE: u64 = FIRST_BUFFER + BUFFERS as u64 * SPACING;

fn header() -> &'static Header {
    // SAFETY: mapped by `Ring::new` before anyone asks.
    unsafe { &*(layout::EVENT_BUFFERS.start as *const Header) }
}

fn start_of(buffer: usize) -> u64 {
    FIRST_BUFFER + buffer as u64 * SPACING
}

impl Ring {
    /// Makes a ring, and waits until the host has taken it up. `parent`: the process that this one
    /// was forked from.
    pub fn new(parent: Option<i32>) -> Result<Self, i32> {
        // SAFETY: the kernel reads a terminated name.
        let file =
            unsafe { syscall!(libc::SYS_memfd_create, c"events".as_ptr(), libc::MFD_CLOEXEC) };
        if file < 0 {
            return Err(-file as i32);
        }
        let file = file as i32;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: ranges of the engine's own, nothing else is there (or an older ring, whose
        // place this one takes).
        unsafe {
            syscall!(libc::SYS_ftruncate, file, ring::TOTAL_BYTES);
            let base = layout::EVENT_BUFFERS.start;
            sys::map_fixed(base, HEADER_BYTES, protection, libc::MAP_SHARED, file, 0)?;
            for buffer in 0..BUFFERS {
                let offset = HEADER_BYTES + buffer as u64 * BUFFER_BYTES;
                let start = start_of(buffer);
                let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
                sys::map_fixed(start, BUFFER_BYTES, protection, flags, file, offset)?;
            }
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            sys::map_fixed(NOWHERE, BUFFER_BYTES, protection, flags, -1, 0)?;
        }
        report::send(&Message::Ring { process: sys::getpid(), parent, descriptor: file });
        ring::wait_while(&header().attached, 0);
        // SAFETY: ours.
        unsafe { syscall!(libc::SYS_close, file) };
        cpu().events = start_of(0);
        Ok(Self { current: 0, muted: None })
    }

    /// The end of the buffer in use.
    pub fn end(&self) -> u64 {
        self.begin() + BUFFER_BYTES
    }

    fn begin(&self) -> u64 {
        if self.muted.is_some() { NOWHERE } else { start_of(self.current) }
    }

    /// From now on what is written goes nowhere, or to the stream again. No superblock is under
    /// way.
    pub fn mute(&mut self, on: bool) {
        match (on, self.muted) {
            (true, None) => {
                self.muted = Some(cpu().events);
                cpu().events = NOWHERE;
            }
            (false, Some(events)) => {
                self.muted = None;
                cpu().events = events;
            }
            _ => {}
        }
    }

    /// What came from the host, and whether there is any.
    pub fn mailbox(&self) -> &'static ring::Mailbox {
        &header().mailbox
    }

    /// The host can ask this thread to look into its mail.
    pub fn running(&self, thread: i32) {
        header().running.store(thread as u32, Ordering::Relaxed);
    }

    /// Hands the buffer over, up to `length`, and goes on in the next one.
    fn turn(&mut self, length: u64, state: u32) {
        if self.muted.is_some() {
            return;
        }
        let (word, bytes) = &header().buffers[self.current];
        bytes.store(length as u32, Ordering::Relaxed);
        ring::set(word, state);
        self.current = (self.current + 1) % BUFFERS;
        if state != LAST {
            let (word, _) = &header().buffers[self.current];
            while word.load(Ordering::Acquire) != FREE {
                ring::wait_while(word, FULL);
            }
        }
    }

    /// A record has run over the end of the buffer: it moves to the next one. Called from the
    /// signal handler; the new place of the record.
    pub fn overflow(&mut self) -> u64 {
        let record = cpu().events;
        let (begin, end) = (self.begin(), self.end());
        self.turn(record - begin, FULL);
        let fresh = self.begin();
        // SAFETY: both ranges are mapped buffers; a record is far shorter than a buffer.
        unsafe {
            std::ptr::copy(record as *const u8, fresh as *mut u8, (end - record) as usize);
        }
        cpu().events = fresh;
        fresh
    }

    /// Appends a record of the dispatcher's. No superblock is under way.
    pub fn append(&mut self, bytes: &[u8]) {
        if cpu().events + bytes.len() as u64 > self.end() {
            self.turn(cpu().events - self.begin(), FULL);
            cpu().events = self.begin();
        }
        // SAFETY: there is room, checked above; shapes are far shorter than a buffer.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), cpu().events as *mut u8, bytes.len());
        }
        cpu().events += bytes.len() as u64;
    }

    /// The same, also while what is written goes nowhere.
    pub fn append_always(&mut self, bytes: &[u8]) {
        let muted = self.muted.is_some();
        self.mute(false);
        self.append(bytes);
        self.mute(muted);
    }

    /// A superblock was left in the middle: what it has stored, and what the dispatcher adds,
    /// becomes a record of its own.
    pub fn partial(&mut self, first_exit: u32, executed: u16, stored: u16, added: &[u64]) {
        let length = stored as usize * record::FIELD;
        let mut bytes = Vec::with_capacity(12 + length);
        bytes.extend(record::PARTIAL.to_le_bytes());
        bytes.extend(first_exit.to_le_bytes());
        bytes.extend(u32::from(executed).to_le_bytes());
        // SAFETY: the unfinished record stands at `events`, its fields behind four bytes.
        let stored = unsafe { std::slice::from_raw_parts((cpu().events + 4) as *const u8, length) };
        bytes.extend_from_slice(stored);
        bytes.extend(added.iter().flat_map(|field| field.to_le_bytes()[..record::FIELD].to_vec()));
        self.append(&bytes);
    }

    /// Hands over what there is; nothing more will come.
    pub fn finish(&mut self) {
        self.mute(false);
        // No signal of the host's may reach the program that may come next.
        header().running.store(0, Ordering::SeqCst);
        while header().signalling.load(Ordering::SeqCst) != 0 {
            std::hint::spin_loop();
        }
        self.turn(cpu().events - start_of(self.current), LAST);
        // Other threads may run on until the kernel ends them; nobody will read what they do.
        cpu().events = start_of(self.current);
    }
}
