//! The host's end of logs: maps the buffers of each recorded process and hands on what comes, on a
//! thread of its own.

use crate::listen::MakeConsumer;
use crate::log_ring::{BUFFER_BYTES, BUFFERS, HEADER_BYTES, Header, REFUSED, TOTAL_BYTES};
use crate::report::LogOrigin;
use crate::ring::{self, FREE, LAST};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Takes the log of one process.
pub trait LogSink: Send {
    /// The next bytes, cut anywhere. Whether more can be taken.
    fn bytes(&mut self, bytes: &[u8]) -> bool;

    /// The log has ended.
    fn end(&mut self);
}

/// Makes what takes the log of a process.
pub type MakeLog<'a> = &'a mut (dyn FnMut(i32, LogOrigin) -> Box<dyn LogSink> + Send);

/// What is done with what the guest's processes have to say.
pub struct EventSinks<'a> {
    /// Events.
    pub events: MakeConsumer<'a>,
    /// Logs, if the guest is recorded.
    pub logs: Option<MakeLog<'a>>,
}

impl<'a> EventSinks<'a> {
    /// For a guest that is not recorded.
    pub fn for_events(events: MakeConsumer<'a>) -> Self {
        Self { events, logs: None }
    }
}

/// The buffers of a process in the host's memory.
struct Mapped {
    base: *mut u8,
}

// SAFETY: the memory is shared by design; every access goes through the atomics of the header or
// is to bytes that they say are the host's.
unsafe impl Send for Mapped {}

impl Mapped {
    fn open(process: i32, descriptor: i32) -> io::Result<Self> {
        let path = format!("/proc/{process}/fd/{descriptor}");
        let file = File::options().read(true).write(true).open(path)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let length = TOTAL_BYTES as usize;
        // SAFETY: a fresh mapping of a file of the right size, made by the runner.
        let base = unsafe {
            let none = std::ptr::null_mut();
            libc::mmap(none, length, protection, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { base: base.cast() })
    }

    fn header(&self) -> &Header {
        // SAFETY: the first page of the mapping; all fields are atomics.
        unsafe { &*self.base.cast::<Header>() }
    }

    /// The first bytes of a buffer, which the runner has filled.
    fn buffer(&self, index: usize, length: u32) -> &[u8] {
        let offset = HEADER_BYTES + index as u64 * BUFFER_BYTES;
        let length = u64::from(length).min(BUFFER_BYTES) as usize;
        // SAFETY: inside the mapping, and the runner does not change what it has filled.
        unsafe { std::slice::from_raw_parts(self.base.add(offset as usize), length) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: mapped by `open` with this size.
        unsafe { libc::munmap(self.base.cast(), TOTAL_BYTES as usize) };
    }
}

/// Takes up a process's log until the process ends or becomes another.
pub fn attach(
    process: i32,
    descriptor: i32,
    mut sink: Box<dyn LogSink>,
) -> io::Result<JoinHandle<()>> {
    let mapped = Mapped::open(process, descriptor)?;
    ring::set(&mapped.header().attached, 1);
    Ok(std::thread::spawn(move || {
        feed_log(&mapped, process, sink.as_mut());
        sink.end();
    }))
}

/// How long what was logged may wait in a buffer that is not full.
const PATIENCE: Duration = Duration::from_millis(500);

fn feed_log(mapped: &Mapped, process: i32, sink: &mut dyn LogSink) {
    let header = mapped.header();
    for index in (0..BUFFERS).cycle() {
        let (state, length) = &header.buffers[index];
        let filled = &header.filled[index];
        let mut done = 0;
        let mut since = Instant::now();
        let mut some = |from: u32, to: u32| {
            if to > from && !sink.bytes(&mapped.buffer(index, to)[from as usize..]) {
                header.state.store(REFUSED, Ordering::Release);
            }
        };
        while !ring::wait_briefly(state, FREE) {
            let gone = is_gone(process);
            if gone || since.elapsed() > PATIENCE {
                since = Instant::now();
                let level = filled.load(Ordering::Acquire);
                some(done, level);
                done = done.max(level);
            }
            if gone && state.load(Ordering::Acquire) == FREE {
                return;
            }
        }
        let last = state.load(Ordering::Acquire) == LAST;
        some(done, length.load(Ordering::Relaxed));
        if last {
            return;
        }
        filled.store(0, Ordering::Relaxed);
        ring::set(state, FREE);
    }
}

/// Whether a process has ended, reaped or not. One whose first thread has ended looks dead but for
/// its other threads.
pub fn is_gone(process: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().and_then(|rest| rest.trim().chars().next());
    let threads = || std::fs::read_dir(format!("/proc/{process}/task")).map_or(0, Iterator::count);
    state.is_none_or(|state| state == 'Z' && threads() <= 1)
}
