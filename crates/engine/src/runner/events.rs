//! The runner's end of the event ring: where translated code writes its records, and the records
//! that the dispatcher adds.

use super::cpu::Cpu;
use super::report;
use crate::layout;
use crate::report::Message;
use crate::ring::{self, BOARD_BYTES, BUFFER_BYTES, BUFFERS, FULL, HEADER_BYTES, LAST};
use crate::ring::{Board, Header};
use crate::sys::{self, syscall};
use ::events::record;
use std::sync::atomic::{AtomicU32, Ordering};

const SPACING: u64 = BUFFER_BYTES + 4096;
const BOARD: u64 = layout::EVENT_BUFFERS.start + (2 << 20);
const FIRST_BUFFER: u64 = layout::EVENT_BUFFERS.start + (4 << 20);
const _: () = assert!(HEADER_BYTES <= BOARD - layout::EVENT_BUFFERS.start);
const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;

/// The ring of this process.
pub struct Ring {
    current: usize,
    /// Where the stream goes on, while what is written goes nowhere.
    muted: Option<u64>,
    /// Whether nothing more will come.
    finished: bool,
}

/// What goes nowhere is written here.
const NOWHERE: u64 = FIRST_BUFFER + BUFFERS as u64 * SPACING;

fn header() -> &'static Header {
    // SAFETY: mapped by `Ring::new` before anyone asks.
    unsafe { &*(layout::EVENT_BUFFERS.start as *const Header) }
}

fn board() -> &'static Board {
    // SAFETY: as above.
    unsafe { &*(BOARD as *const Board) }
}

/// Whether the host empties the ring. A process that it has left behind goes on without.
fn is_read() -> bool {
    board().left.load(Ordering::Acquire) == 0 && header().unread.load(Ordering::Acquire) == 0
}

/// Waits while a word that the host changes has a value.
pub fn wait_for_host(word: &AtomicU32, value: u32) {
    while is_read() && !ring::wait_briefly(word, value) {}
}

fn start_of(buffer: usize) -> u64 {
    FIRST_BUFFER + buffer as u64 * SPACING
}

/// Maps a ring where translated code expects it. Its pages come as they are used: most processes
/// are short, and all of them at once would take ten times as long as such a one runs.
fn map(flags: i32, file: i32, place: u64) -> Result<(), i32> {
    let base = layout::EVENT_BUFFERS.start;
    // SAFETY: ranges of the engine's own, where nothing is, or an older ring that this one takes
    // the place of.
    unsafe { sys::map_fixed(base, HEADER_BYTES, READ_WRITE, flags, file, place)? };
    for buffer in 0..BUFFERS {
        let offset = place + HEADER_BYTES + buffer as u64 * BUFFER_BYTES;
        // SAFETY: as above.
        unsafe {
            sys::map_fixed(start_of(buffer), BUFFER_BYTES, READ_WRITE, flags, file, offset)?;
        }
    }
    let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: as above.
    unsafe { sys::map_fixed(NOWHERE, BUFFER_BYTES, READ_WRITE, anonymous, -1, 0) }
}

/// Locks the first byte of a ring for as long as this process lives.
fn lock(file: i32, place: u64) -> Result<(), i32> {
    let lock = ring::lock_at(place);
    // SAFETY: the kernel reads the request.
    let answer = unsafe { syscall!(libc::SYS_fcntl, file, libc::F_SETLK, &raw const lock) };
    if answer < 0 { Err(-answer as i32) } else { Ok(()) }
}

impl Ring {
    /// Takes a ring of the file `file`, and waits until the host has taken it up. `process`
    /// is this one's number to the host, `parent` that of the one that it was forked from.
    pub fn new(cpu: &mut Cpu, file: i32, process: i32, parent: Option<i32>) -> Result<Self, i32> {
        let shared = libc::MAP_SHARED;
        // SAFETY: a page of the engine's own that holds the board or nothing.
        unsafe { sys::map_fixed(BOARD, BOARD_BYTES, READ_WRITE, shared, file, 0)? };
        let number = board().next.fetch_add(1, Ordering::Relaxed);
        let place = ring::place(number);
        lock(file, place)?;
        map(shared, file, place)?;
        report::send(&Message::Ring { process, parent, number });
        wait_for_host(&header().attached, 0);
        cpu.events = start_of(0);
        Ok(Self { current: 0, muted: None, finished: false })
    }

    /// A ring that nobody reads, for a process that cannot have one that is.
    pub fn unread(cpu: &mut Cpu) -> Result<Self, i32> {
        let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: as above.
        unsafe { sys::map_fixed(BOARD, BOARD_BYTES, READ_WRITE, anonymous, -1, 0)? };
        map(anonymous, -1, 0)?;
        header().unread.store(1, Ordering::Relaxed);
        cpu.events = start_of(0);
        Ok(Self { current: 0, muted: None, finished: false })
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
    pub fn mute(&mut self, cpu: &mut Cpu, on: bool) {
        match (on, self.muted) {
            (true, None) => {
                self.muted = Some(cpu.events);
                cpu.events = NOWHERE;
            }
            (false, Some(events)) => {
                self.muted = None;
                cpu.events = events;
            }
            _ => {}
        }
    }

    /// What came from the host, and whether there is any.
    pub fn mailbox(&self) -> &'static ring::Mailbox {
        &header().mailbox
    }

    /// Whether the host still listens.
    pub fn is_read(&self) -> bool {
        is_read()
    }

    /// The host can ask this thread to look into its mail.
    pub fn running(&self, thread: i32) {
        // Others may still run while one executes another program, which must not be signalled.
        if !self.finished {
            header().running.store(thread as u32, Ordering::Relaxed);
        }
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
        let (word, _) = &header().buffers[self.current];
        wait_for_host(word, FULL);
    }

    /// A record has run over the end of the buffer: it moves to the next one. Called from the
    /// signal handler; the new place of the record.
    pub fn overflow(&mut self, cpu: &mut Cpu) -> u64 {
        let record = cpu.events;
        let (begin, end) = (self.begin(), self.end());
        self.turn(record - begin, FULL);
        let fresh = self.begin();
        // SAFETY: both ranges are mapped buffers; a record is far shorter than a buffer.
        unsafe {
            std::ptr::copy(record as *const u8, fresh as *mut u8, (end - record) as usize);
        }
        cpu.events = fresh;
        fresh
    }

    /// Appends a record of the dispatcher's. No superblock is under way.
    pub fn append(&mut self, cpu: &mut Cpu, bytes: &[u8]) {
        if cpu.events + bytes.len() as u64 > self.end() {
            self.turn(cpu.events - self.begin(), FULL);
            cpu.events = self.begin();
        }
        // SAFETY: there is room, checked above; shapes are far shorter than a buffer.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), cpu.events as *mut u8, bytes.len());
        }
        cpu.events += bytes.len() as u64;
    }

    /// Appends a record also while what is written goes nowhere, and hands over what there is, as
    /// someone waits for it.
    pub fn append_and_hand_over(&mut self, cpu: &mut Cpu, bytes: &[u8]) {
        let muted = self.muted.is_some();
        self.mute(cpu, false);
        self.append(cpu, bytes);
        self.turn(cpu.events - self.begin(), FULL);
        cpu.events = self.begin();
        self.mute(cpu, muted);
    }

    /// The same, also while what is written goes nowhere.
    pub fn append_always(&mut self, cpu: &mut Cpu, bytes: &[u8]) {
        let muted = self.muted.is_some();
        self.mute(cpu, false);
        self.append(cpu, bytes);
        self.mute(cpu, muted);
    }

    /// A superblock was left in the middle: what it has stored, and what the dispatcher adds,
    /// becomes a record of its own.
    pub fn partial(
        &mut self,
        cpu: &mut Cpu,
        (first_exit, executed): (u32, u16),
        stored: u16,
        added: &[u64],
    ) {
        let length = stored as usize * record::FIELD;
        // SAFETY: the unfinished record stands at `events`, its fields behind four bytes.
        let stored = unsafe { std::slice::from_raw_parts((cpu.events + 4) as *const u8, length) };
        self.append(cpu, &record::list::partial(first_exit, executed, stored, added));
    }

    /// Hands over what there is; nothing more will come.
    pub fn finish(&mut self, cpu: &mut Cpu) {
        self.mute(cpu, false);
        self.finished = true;
        // No signal of the host's may reach the program that may come next.
        header().running.store(0, Ordering::SeqCst);
        while header().signalling.load(Ordering::SeqCst) != 0 {
            std::hint::spin_loop();
        }
        self.turn(cpu.events - start_of(self.current), LAST);
        // Other threads may run on until the kernel ends them; nobody will read what they do.
        cpu.events = start_of(self.current);
    }
}
