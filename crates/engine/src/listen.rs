//! The host's end of the event rings: the file that they lie in, and for the ring of each process
//! of the guest a thread that feeds what comes to a consumer. By the same memory the host tells the
//! runner what it wants changed.

use crate::layout::{SHADOW_BASE, USER_END, stored};
use crate::ring::{
    self, BOARD_BYTES, BUFFER_BYTES, BUFFERS, Board, FREE, HEADER_BYTES, Header, LAST, MAIL_BYTES,
    MAIL_OFFSET, Order, RING_BYTES,
};
use events::plan::{GRANULE, Paint};
use events::{Consumer, Control, Plan, Process};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Makes the consumer for a process of the guest.
pub type MakeConsumer<'a> = &'a mut (dyn FnMut(i32) -> Box<dyn Consumer> + Send);

/// Part of the rings' file in the host's memory.
struct Mapped {
    base: *mut u8,
    length: u64,
}

// SAFETY: the memory is shared by design; every access goes through atomics or is to a buffer or
// text that they say is the host's.
unsafe impl Send for Mapped {}
// SAFETY: as above; texts are only written under the lock of `Inner::waiting`.
unsafe impl Sync for Mapped {}

impl Mapped {
    fn new(file: &File, place: u64, length: u64) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping inside a file that is never made shorter.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length as usize,
                protection,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                place as i64,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { base: base.cast(), length })
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this size.
        unsafe { libc::munmap(self.base.cast(), self.length as usize) };
    }
}

/// The file of a job's rings.
pub struct Rings {
    file: File,
    board: Mapped,
    leaving: AtomicBool,
}

impl Rings {
    /// A file without rings.
    pub fn new() -> io::Result<Arc<Self>> {
        // SAFETY: a terminated name.
        let descriptor = unsafe { libc::memfd_create(c"events".as_ptr(), libc::MFD_CLOEXEC) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it was just made.
        let file = unsafe { File::from_raw_fd(descriptor) };
        set_length(&file)?;
        let board = Mapped::new(&file, 0, BOARD_BYTES)?;
        Ok(Arc::new(Self { file, board, leaving: AtomicBool::new(false) }))
    }

    /// The file itself.
    pub fn file(&self) -> &File {
        &self.file
    }

    fn board(&self) -> &Board {
        // SAFETY: the first page of the file; all fields are atomics.
        unsafe { &*self.board.base.cast::<Board>() }
    }

    /// Takes up the ring of a process and feeds it to a consumer until the process ends, or the
    /// host is about to leave.
    pub fn take_up(
        self: &Arc<Self>,
        number: u64,
        process: i32,
        parent: Option<i32>,
        mut consumer: Box<dyn Consumer>,
    ) -> io::Result<(JoinHandle<()>, Remote)> {
        let place = ring::place(number);
        let mapped = match Mapped::new(&self.file, place, RING_BYTES) {
            Ok(mapped) => mapped,
            Err(error) => {
                self.give_up(place);
                return Err(error);
            }
        };
        let remote = Remote::new(Ring { mapped, place, rings: self.clone() }, process);
        consumer.begin(Process { id: process, parent, control: Box::new(remote.clone()) });
        ring::set(&remote.0.ring.header().attached, 1);
        let fed = remote.clone();
        let thread = std::thread::spawn(move || {
            fed.feed(consumer.as_mut());
            consumer.end();
            fed.0.ring.release();
        });
        Ok((thread, remote))
    }

    /// Tells the owner of a ring that nobody will empty it, without mapping it.
    fn give_up(&self, place: u64) {
        // A failure leaves the process waiting until the host leaves; nothing is left to try.
        let _ = self.file.write_all_at(&1u32.to_le_bytes(), place);
    }

    /// Processes that live on are not listened to much longer.
    pub fn about_to_leave(&self) {
        self.leaving.store(true, Ordering::Release);
    }

    /// From now on nobody empties rings; processes that live on stop waiting for it.
    pub fn leave(&self) {
        self.board().left.store(1, Ordering::Release);
    }
}

/// Makes the file as long as it will ever be; it is all holes. A limit on the length of files is
/// lifted meanwhile, as far as this process may: beyond it the kernel sends a signal.
fn set_length(file: &File) -> io::Result<()> {
    // SAFETY: plain data.
    let mut limit: libc::rlimit = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one limit.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) };
    if limit.rlim_max < ring::FILE_BYTES {
        return Err(io::Error::from_raw_os_error(libc::EFBIG));
    }
    let lifted = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
    // SAFETY: the kernel reads one limit.
    unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const lifted) };
    let done = file.set_len(ring::FILE_BYTES);
    // SAFETY: as above.
    unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) };
    done
}

/// A ring that is being emptied.
struct Ring {
    mapped: Mapped,
    place: u64,
    rings: Arc<Rings>,
}

impl Ring {
    fn header(&self) -> &Header {
        // SAFETY: the first page of the ring; all fields are atomics.
        unsafe { &*self.mapped.base.cast::<Header>() }
    }

    /// The contents of a buffer that the runner has handed over.
    fn buffer(&self, index: usize, length: u32) -> &[u8] {
        let offset = HEADER_BYTES + index as u64 * BUFFER_BYTES;
        let length = u64::from(length).min(BUFFER_BYTES) as usize;
        // SAFETY: inside the mapping, and the runner does not touch it until it is free again.
        unsafe { std::slice::from_raw_parts(self.mapped.base.add(offset as usize), length) }
    }

    /// Leaves a text for the runner, whose mailbox is empty.
    fn post(&self, text: &[u8]) {
        let mailbox = &self.header().mailbox;
        // SAFETY: the text area, which the runner does not read while the mailbox is empty; the
        // length was checked.
        unsafe {
            let area = self.mapped.base.add(MAIL_OFFSET as usize);
            std::ptr::copy_nonoverlapping(text.as_ptr(), area, text.len());
        }
        mailbox.length.store(text.len() as u32, Ordering::Relaxed);
        ring::set(&mailbox.sent, mailbox.sent.load(Ordering::Relaxed).wrapping_add(1));
    }

    fn is_leaving(&self) -> bool {
        self.rings.leaving.load(Ordering::Acquire)
    }

    /// Whether the process that fills the ring is alive: it holds the lock.
    fn is_owned(&self) -> bool {
        let mut lock = ring::lock_at(self.place);
        let file = self.rings.file.as_raw_fd();
        // SAFETY: the kernel reads and writes one plain structure.
        let answer = unsafe { libc::fcntl(file, libc::F_GETLK, &raw mut lock) };
        answer == 0 && lock.l_type != libc::F_UNLCK as i16
    }

    /// Its memory goes back to the system. To a process that lives on, a page of zeros means that
    /// all buffers are free.
    fn release(&self) {
        let hole = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let file = self.rings.file.as_raw_fd();
        // SAFETY: frees pages of a file that is ours.
        unsafe { libc::fallocate(file, hole, self.place as i64, RING_BYTES as i64) };
    }
}

/// The way to a runner.
#[derive(Clone)]
pub struct Remote(Arc<Inner>);

struct Inner {
    ring: Ring,
    process: i32,
    /// Orders that the runner's mailbox had no room for yet.
    waiting: Mutex<VecDeque<Order>>,
    plans: AtomicU32,
    /// The runner's memory, where the shadow is.
    memory: Mutex<Option<File>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Remote {
    fn new(ring: Ring, process: i32) -> Self {
        Self(Arc::new(Inner {
            ring,
            process,
            waiting: Mutex::default(),
            plans: AtomicU32::new(0),
            memory: Mutex::default(),
        }))
    }

    /// Answers what the runner waits for, before anything else.
    pub fn answer(&self, order: Order) {
        lock(&self.0.waiting).push_front(order);
        while !self.post(false) && self.0.ring.is_owned() {
            let taken = &self.0.ring.header().mailbox.taken;
            ring::wait_briefly(taken, taken.load(Ordering::Acquire));
        }
    }

    /// Posts what waits, as far as there is room; whether nothing waits any more. The runner is
    /// made to look if it has not for a while.
    fn post(&self, signal: bool) -> bool {
        let mut waiting = lock(&self.0.waiting);
        if self.0.ring.header().mailbox.has_mail() {
            if signal {
                self.signal();
            }
            return waiting.is_empty();
        }
        if let Some(order) = waiting.pop_front() {
            let text = serde_json::to_vec(&order).unwrap_or_default();
            if text.len() as u64 <= MAIL_BYTES {
                self.0.ring.post(&text);
                if signal {
                    self.signal();
                }
            }
        }
        waiting.is_empty()
    }

    fn feed(&self, consumer: &mut dyn Consumer) {
        let ring = &self.0.ring;
        // Of a process that lives on and never stops, as many buffers as it can have filled.
        let mut left = BUFFERS;
        for index in (0..BUFFERS).cycle() {
            let (state, length) = &ring.header().buffers[index];
            self.post(true);
            while !ring::wait_briefly(state, FREE) {
                self.post(true);
                let over = ring.is_leaving() || !ring.is_owned();
                if over && state.load(Ordering::Acquire) == FREE {
                    return;
                }
            }
            let last = state.load(Ordering::Acquire) == LAST;
            consumer.records(ring.buffer(index, length.load(Ordering::Relaxed)));
            if last {
                return;
            }
            ring::set(state, FREE);
            if ring.is_leaving() && ring.is_owned() {
                left -= 1;
                if left == 0 {
                    return;
                }
            }
        }
    }

    /// Gets the running thread out of translated code.
    fn signal(&self) {
        let header = self.0.ring.header();
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
        let mut memory = lock(&self.0.memory);
        if memory.is_none() {
            let path = format!("/proc/{}/mem", self.0.process);
            *memory = File::options().write(true).open(path).ok();
        }
        let end = paint.range.end.min(USER_END);
        let Some(memory) = &*memory else { return };
        if paint.range.start >= end {
            return;
        }
        let (first, last) = (paint.range.start / GRANULE, (end - 1) / GRANULE);
        let bits = [stored(paint.bits); 4096];
        let mut at = first;
        while at <= last {
            let count = (last + 1 - at).min(bits.len() as u64);
            // A process that has ended needs no shadow.
            if memory.write_all_at(&bits[..count as usize], at + SHADOW_BASE).is_err() {
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

    fn end(&self) {
        if self.0.ring.is_owned() {
            // SAFETY: a signal to a process that holds its ring, so it has not ended.
            unsafe { libc::kill(self.0.process, libc::SIGKILL) };
        }
    }
}
