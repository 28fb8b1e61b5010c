//! The host's end of the event rings: maps the ring of each process of the guest and feeds what
//! comes to a consumer, on a thread of its own. By the same memory the host tells the runner what it
//! wants changed.

use crate::ring::{
    self, BUFFER_BYTES, BUFFERS, FREE, HEADER_BYTES, Header, LAST, MAIL_BYTES, Order, TOTAL_BYTES,
};
use crate::runner::layout::{SHADOW, SHADOW_BASE, USER_END};
use crate::runner::screen;
use crate::runner::syscall::files;
use events::plan::{GRANULE, Paint};
use events::{Consumer, Control, Plan, Process};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Makes the consumer for a process of the guest.
pub type MakeConsumer<'a> = &'a mut (dyn FnMut(i32) -> Box<dyn Consumer> + Send);

/// A ring in the host's memory.
struct Mapped {
    base: *mut u8,
}

// SAFETY: the memory is shared by design; every access goes through the atomics of the header or
// is to a buffer or text that they say is the host's.
unsafe impl Send for Mapped {}
// SAFETY: as above; texts are only written under the lock of `Inner::waiting`.
unsafe impl Sync for Mapped {}

impl Mapped {
    fn open(process: i32, descriptor: i32) -> io::Result<Self> {
        let path = format!("/proc/{process}/fd/{descriptor}");
        let file = File::options().read(true).write(true).open(path)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping of a file of the right size, made by the runner.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                TOTAL_BYTES as usize,
                protection,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
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

    /// Leaves a text for the runner, whose mailbox is empty.
    fn post(&self, text: &[u8]) {
        let mailbox = &self.header().mailbox;
        // SAFETY: the text area behind the first page, which the runner does not read while the
        // mailbox is empty; the length was checked.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), self.base.add(4096), text.len());
        }
        mailbox.length.store(text.len() as u32, Ordering::Relaxed);
        ring::set(&mailbox.sent, mailbox.sent.load(Ordering::Relaxed).wrapping_add(1));
    }

    /// The contents of a buffer that the runner has handed over.
    fn buffer(&self, index: usize, length: u32) -> &[u8] {
        let offset = HEADER_BYTES + index as u64 * BUFFER_BYTES;
        let length = u64::from(length).min(BUFFER_BYTES) as usize;
        // SAFETY: inside the mapping, and the runner does not touch it until it is free again.
        unsafe { std::slice::from_raw_parts(self.base.add(offset as usize), length) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: mapped by `open` with this size.
        unsafe { libc::munmap(self.base.cast(), TOTAL_BYTES as usize) };
    }
}

/// The way to a runner.
#[derive(Clone)]
pub struct Remote(Arc<Inner>);

struct Inner {
    mapped: Mapped,
    process: i32,
    /// Orders that the runner's mailbox had no room for yet.
    waiting: Mutex<VecDeque<Order>>,
    plans: AtomicU32,
    shadow: Mutex<Option<File>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Remote {
    fn new(mapped: Mapped, process: i32) -> Self {
        Self(Arc::new(Inner {
            mapped,
            process,
            waiting: Mutex::default(),
            plans: AtomicU32::new(0),
            shadow: Mutex::default(),
        }))
    }

    /// Answers what the runner waits for, before anything else.
    pub fn answer(&self, order: Order) {
        lock(&self.0.waiting).push_front(order);
        while !self.post(false) && !is_gone(self.0.process) {
            let taken = &self.0.mapped.header().mailbox.taken;
            ring::wait_briefly(taken, taken.load(Ordering::Acquire));
        }
    }

    /// Posts what waits, as far as there is room; whether nothing waits any more. The runner is
    /// made to look if it has not for a while.
    fn post(&self, signal: bool) -> bool {
        let mut waiting = lock(&self.0.waiting);
        if self.0.mapped.header().mailbox.has_mail() {
            if signal {
                self.signal();
            }
            return waiting.is_empty();
        }
        if let Some(order) = waiting.pop_front() {
            let text = serde_json::to_vec(&order).unwrap_or_default();
            if text.len() as u64 <= MAIL_BYTES {
                self.0.mapped.post(&text);
                if signal {
                    self.signal();
                }
            }
        }
        waiting.is_empty()
    }

    /// Gets the running thread out of translated code.
    fn signal(&self) {
        let header = self.0.mapped.header();
        header.signalling.store(1, Ordering::SeqCst);
        let thread = header.running.load(Ordering::SeqCst);
        if thread != 0 {
            let info = ring::summons();
            // SAFETY: the kernel reads a `siginfo_t`; the runner takes the signal for what it is.
            unsafe {
                libc::syscall(
                    libc::SYS_rt_tgsigqueueinfo,
                    self.0.process,
                    thread,
                    libc::SIGSTKFLT,
                    info.as_ptr(),
                );
            }
        }
        header.signalling.store(0, Ordering::SeqCst);
    }
}

impl Control for Remote {
    fn paint(&self, paint: &Paint) {
        let mut shadow = lock(&self.0.shadow);
        if shadow.is_none() {
            let path = format!("/proc/{}/fd/{}", self.0.process, files::SHADOW);
            *shadow = File::options().read(true).write(true).open(path).ok();
        }
        let end = paint.range.end.min(USER_END);
        let Some(shadow) = &*shadow else { return };
        if paint.range.start >= end {
            return;
        }
        let (first, last) = (paint.range.start / GRANULE, (end - 1) / GRANULE);
        let bits = [screen::stored(paint.bits); 4096];
        let mut at = first;
        while at <= last {
            let count = (last + 1 - at).min(bits.len() as u64);
            let offset = at + SHADOW_BASE - SHADOW.start;
            // A process that has ended needs no shadow.
            if shadow.write_all_at(&bits[..count as usize], offset).is_err() {
                return;
            }
            at += count;
        }
    }

    fn set_plan(&self, plan: Plan) -> u32 {
        lock(&self.0.waiting).push_back(Order::Plan(Box::new(plan)));
        let number = self.0.plans.fetch_add(1, Ordering::Relaxed) + 1;
        self.post(true);
        number
    }
}

/// Takes up a process's ring and feeds it to a consumer until the process ends.
pub fn attach(
    process: i32,
    parent: Option<i32>,
    descriptor: i32,
    mut consumer: Box<dyn Consumer>,
) -> io::Result<(JoinHandle<()>, Remote)> {
    let mapped = Mapped::open(process, descriptor)?;
    let remote = Remote::new(mapped, process);
    consumer.begin(Process { id: process, parent, control: Box::new(remote.clone()) });
    ring::set(&remote.0.mapped.header().attached, 1);
    let fed = remote.clone();
    let thread = std::thread::spawn(move || {
        feed(&fed, process, consumer.as_mut());
        consumer.end();
    });
    Ok((thread, remote))
}

fn feed(remote: &Remote, process: i32, consumer: &mut dyn Consumer) {
    let mapped = &remote.0.mapped;
    for index in (0..BUFFERS).cycle() {
        let (state, length) = &mapped.header().buffers[index];
        remote.post(true);
        while !ring::wait_briefly(state, FREE) {
            remote.post(true);
            if is_gone(process) && state.load(Ordering::Acquire) == FREE {
                return;
            }
        }
        let last = state.load(Ordering::Acquire) == LAST;
        consumer.records(mapped.buffer(index, length.load(Ordering::Relaxed)));
        if last {
            return;
        }
        ring::set(state, FREE);
    }
}

/// Whether a process has ended, reaped or not.
fn is_gone(process: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(')').next().and_then(|rest| rest.trim().chars().next()).is_none_or(|s| s == 'Z')
}
