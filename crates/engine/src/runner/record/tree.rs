//! Memory that the guest's own processes share. While a process has such memory it takes part in a
//! **tree baton**: of all who do, one at a time runs guest code. A process that takes it again after
//! another had it looks for what has changed in the shared pages meanwhile, and writes that into its
//! own log. So each process can be replayed by itself, and sees the others' writes when it saw them.
//!
//! The baton is a lock on a byte of the file that all processes of a recording share: the kernel
//! gives it back when its holder dies, however that happens.
//!
//! * [`pages`]: a copy of every shared page as it was last known;
//! * [`views`]: files that need not be looked at;
//! * [`watch`]: which of them this process has written to;
//! * [`journal`]: which of them the others have.

mod journal;
mod pages;
mod views;
mod watch;

pub use pages::{PAGE, resident};
pub use watch::move_to;

use super::Recorder;
use super::files::shared;
use crate::runner::engine::Engine;
use crate::runner::memory::{Mapping, Memory};
use crate::runner::thread::Thread;
use crate::sys::syscall;
use pages::{Changed, Pages};
use recording::log::{Entry, Position};
use std::fs::Metadata;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// How long a process waits before it looks again whether the holder has died.
const WAITING_NANOSECONDS: i64 = 2_000_000;
/// How long a process that has given way waits for somebody to take the baton.
const YIELDING_NANOSECONDS: i64 = 10_000_000;
/// How often a process that waits may find the holder stopped.
const PATIENCE: u32 = 1_000;
const STANDS_STILL: &str = "a process that shares memory with others was stopped, by its tracer or by \
    SIGSTOP, in the middle of its turn, so that none of them can go on";
/// More than that cannot be written down at once.
const LARGEST: usize = 1 << 30;

/// This process's part in the tree baton.
pub struct Tree {
    /// Descriptor of the file with the lock.
    lock: i32,
    /// This process among those who take part; zero if it does not.
    number: u32,
    holds: bool,
    pages: Pages,
    /// Whether what is known of the pages is older than this process's own last writes.
    stale: bool,
}

impl Tree {
    /// Takes no part yet.
    pub fn new(lock: i32) -> Self {
        Self { lock, number: 0, holds: false, pages: Pages::new(), stale: false }
    }

    /// Whether this process takes part.
    pub fn is_member(&self) -> bool {
        self.number != 0
    }

    /// A file has been mapped, which this process cannot write to there.
    pub fn shows_file(&mut self, range: &Range<u64>, path: &Path, meta: &Metadata) {
        self.pages.views.mapped(range, path, meta);
    }

    /// Takes part from now on, and has the baton.
    fn join(&mut self, memory: &Memory) {
        if self.is_member() {
            return;
        }
        self.number = shared().joined.fetch_add(1, Ordering::AcqRel) + 1;
        shared().members.fetch_add(1, Ordering::AcqRel);
        self.lock();
        self.pages.begin(memory);
    }

    /// Takes no part any more.
    pub fn leave(&mut self, memory: &Memory) {
        if self.is_member() {
            self.release(memory);
            shared().members.fetch_sub(1, Ordering::AcqRel);
            self.number = 0;
        }
    }

    /// Takes the baton; who had it before. Noted now, as a process may die with the baton in hand.
    fn lock(&mut self) -> u32 {
        let mut standstill = 0;
        loop {
            if self.set_lock(libc::F_WRLCK) {
                break;
            }
            // Said before the second try, so that whoever puts the baton down after it knows.
            shared().waiting.store(1, Ordering::SeqCst);
            let free = shared().free.load(Ordering::SeqCst);
            if self.set_lock(libc::F_WRLCK) {
                break;
            }
            // Not for ever: nobody says so when the holder dies.
            if wait(&shared().free, free, WAITING_NANOSECONDS) {
                continue;
            }
            standstill = if self.holder_stands_still() { standstill + 1 } else { 0 };
            if standstill > PATIENCE {
                super::say_refused(STANDS_STILL);
            }
        }
        self.holds = true;
        if shared().holder.swap(self.number, Ordering::AcqRel) != 0 {
            // Whoever had it died, and did not report what it had written.
            journal::report_unknown();
        }
        shared().turns.fetch_add(1, Ordering::AcqRel);
        if shared().yielding.load(Ordering::Acquire) > 0 {
            wake(&shared().turns, i32::MAX);
        }
        shared().last.swap(self.number, Ordering::AcqRel)
    }

    /// Puts it down; whether somebody waited, who is awake now. One is enough: the others would find it taken.
    fn unlock(&mut self) -> bool {
        self.holds = false;
        shared().holder.store(0, Ordering::Release);
        self.set_lock(libc::F_UNLCK);
        if shared().waiting.load(Ordering::SeqCst) == 0 {
            return false;
        }
        shared().free.fetch_add(1, Ordering::SeqCst);
        let waited = wake(&shared().free, 1) > 0;
        if !waited {
            shared().waiting.store(0, Ordering::SeqCst);
        }
        waited
    }

    /// Whether somebody has stopped the process that has the baton, as tracers and SIGSTOP do.
    fn holder_stands_still(&self) -> bool {
        let (l_type, l_whence) = (libc::F_WRLCK as i16, libc::SEEK_SET as i16);
        let mut asked = libc::flock { l_type, l_whence, l_start: 0, l_len: 1, l_pid: 0 };
        // SAFETY: the kernel reads the description and writes who has the lock.
        unsafe { syscall!(libc::SYS_fcntl, self.lock, libc::F_GETLK, &raw mut asked) };
        if asked.l_type != libc::F_WRLCK as i16 || asked.l_pid <= 0 {
            return false;
        }
        let stat = std::fs::read(format!("/proc/{}/stat", asked.l_pid)).unwrap_or_default();
        let after_name = stat.iter().rposition(|byte| *byte == b')').unwrap_or_default();
        stat.get(after_name + 2).is_some_and(|state| matches!(state, b'T' | b't'))
    }

    fn set_lock(&self, kind: i32) -> bool {
        let (l_type, l_whence) = (kind as i16, libc::SEEK_SET as i16);
        let range = libc::flock { l_type, l_whence, l_start: 0, l_len: 1, l_pid: 0 };
        // SAFETY: the kernel only reads the description.
        unsafe { syscall!(libc::SYS_fcntl, self.lock, libc::F_SETLK, &raw const range) == 0 }
    }

    /// Lets other processes run; whether one waited for that.
    fn release(&mut self, memory: &Memory) -> bool {
        if !self.holds {
            return false;
        }
        // A process that is alone need not look; whoever comes must.
        self.stale |= shared().members.load(Ordering::Acquire) <= 1;
        if self.stale {
            journal::report_unknown();
        } else {
            self.pages.settle(memory);
        }
        self.unlock()
    }

    /// Waits until this process may run; what the others have written meanwhile is reported.
    fn take(&mut self, memory: &Memory, changed: Changed) {
        if !self.is_member() || self.holds || self.lock() == self.number {
            return;
        }
        if std::mem::take(&mut self.stale) {
            self.pages.take_all(memory, changed);
        } else {
            self.pages.look(memory, changed);
        }
    }

    /// A call has returned that may have arranged memory anew. Where it lets the process see pages
    /// that others have written meanwhile.
    pub fn called(&mut self, memory: &Memory, number: u64, a: [u64; 6], answer: i64) -> Vec<u64> {
        let [start, length, third, ..] = a;
        let from = |place: u64, length: u64| place..place.saturating_add(length);
        if !self.is_member() || answer < 0 {
            match number as i64 {
                _ if answer < 0 => {}
                libc::SYS_mmap => self.pages.views.forget(&from(answer as u64, length)),
                libc::SYS_munmap => self.pages.views.forget(&from(start, length)),
                libc::SYS_mremap => self.pages.views.forget(&from(answer as u64, third)),
                _ => {}
            }
            return Vec::new();
        }
        match number as i64 {
            libc::SYS_mmap => self.pages.forget(from(answer as u64, length)),
            libc::SYS_munmap => self.pages.forget(from(start, length)),
            libc::SYS_mremap => self.pages.forget(from(answer as u64, third)),
            libc::SYS_shmat => {
                let range = memory.find(answer as u64).map(|(range, _)| range);
                self.pages.forget(range.unwrap_or_default());
            }
            libc::SYS_madvise if third as i32 == libc::MADV_REMOVE => self.pages.invalidate(),
            libc::SYS_mprotect => return self.pages.appear(memory, from(start, length)),
            _ => {}
        }
        Vec::new()
    }
}

/// Waits until a word that all processes share has another value, or for so long. Whether it was in time.
fn wait(word: &AtomicU32, value: u32, nanoseconds: i64) -> bool {
    let patience = libc::timespec { tv_sec: 0, tv_nsec: nanoseconds };
    // SAFETY: the kernel reads the word and the time.
    unsafe {
        let word = word.as_ptr();
        let answer = syscall!(libc::SYS_futex, word, libc::FUTEX_WAIT, value, &raw const patience);
        answer != -i64::from(libc::ETIMEDOUT)
    }
}

/// Wakes some of those who wait; how many.
fn wake(word: &AtomicU32, most: i32) -> i64 {
    // SAFETY: a wake touches no memory.
    unsafe { syscall!(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, most) }
}

/// Other processes may have the memory that is about to be mapped: this one takes part.
pub fn joins(engine: &mut Engine) {
    let Engine { log, process, .. } = engine;
    let (Some(recorder), memory) = (&mut log.recorder, &process.memory) else { return };
    recorder.tree.join(memory);
}

/// Before a child is made: if it will share memory with us both take part.
pub fn before_fork(engine: &mut Engine) {
    let shares =
        engine.process.memory.iter().any(|(_, mapping)| mapping.shared && can_change(mapping));
    if !shares {
        return;
    }
    let Engine { log, process, .. } = engine;
    let (Some(recorder), memory) = (&mut log.recorder, &process.memory) else {
        engine.log.region.shares = true;
        return;
    };
    recorder.tree.join(memory);
    // What the child knows is what there is now.
    recorder.tree.stale = false;
    recorder.tree.pages.settle(memory);
}

/// A file that can only be read is not changed through its mapping.
fn can_change(mapping: &Mapping) -> bool {
    mapping.file.is_none() || mapping.protection & libc::PROT_WRITE != 0
}

/// In the child of a fork.
pub fn forked(recorder: &mut Recorder, memory: &Memory) {
    if recorder.tree.is_member() {
        recorder.tree.number = shared().joined.fetch_add(1, Ordering::AcqRel) + 1;
        shared().members.fetch_add(1, Ordering::AcqRel);
        recorder.tree.holds = false;
        recorder.tree.pages.forked(memory);
        recorder.outsiders.forked();
        take(recorder, memory, None);
    }
}

/// The process is about to become another program, which has none of this memory.
pub fn executes(engine: &mut Engine) {
    let Engine { log, process, .. } = engine;
    let (Some(recorder), memory) = (&mut log.recorder, &process.memory) else { return };
    if recorder.tree.is_member() {
        recorder.tree.release(memory);
        shared().members.fetch_sub(1, Ordering::AcqRel);
    }
}

/// It has not.
pub fn not_executed(engine: &mut Engine) {
    let Engine { log, process, .. } = engine;
    let (Some(recorder), memory) = (&mut log.recorder, &process.memory) else { return };
    if recorder.tree.is_member() {
        shared().members.fetch_add(1, Ordering::AcqRel);
        take(recorder, memory, None);
    }
}

/// The process is about to put its own baton down.
pub fn lets_go(engine: &mut Engine, thread: &Thread) {
    let Engine { log, process, threads, .. } = engine;
    let (Some(recorder), memory) = (&mut log.recorder, &process.memory) else { return };
    if !recorder.tree.holds {
        return;
    }
    // A child that shares our memory is another process to the lock.
    let foreign = |thread: &&*mut Thread| {
        // SAFETY: threads in the list have not been freed.
        unsafe { (***thread).foreign && (***thread).tid() > 0 }
    };
    let mixed = thread.foreign || threads.list.iter().any(|thread| foreign(&thread));
    if mixed || !crate::runner::baton::wanted() {
        recorder.tree.release(memory);
    }
}

/// The process keeps its own baton, but waits for another.
pub fn waits(engine: &mut Engine) {
    let Engine { log, process, .. } = engine;
    let (Some(recorder), memory) = (&mut log.recorder, &process.memory) else { return };
    recorder.tree.release(memory);
}

/// The process has its own baton.
pub fn takes(engine: &mut Engine) {
    let Engine { log, process, .. } = engine;
    let (Some(recorder), memory) = (&mut log.recorder, &process.memory) else { return };
    take(recorder, memory, None);
}

fn take(recorder: &mut Recorder, memory: &Memory, at: Option<Position>) {
    if let Some(path) = recorder.outsiders.find() {
        let path = path.display();
        let why = format!(
            "a process that is not recorded has opened {path}, memory that the guest shares, and \
             can write to it at any time"
        );
        recorder.refuse(&why);
    }
    let (mut writes, mut payload) = (Vec::new(), Vec::new());
    recorder.tree.take(memory, &mut |start, bytes| {
        writes.push((start, bytes.len() as u64));
        payload.extend(bytes);
    });
    if payload.len() > LARGEST {
        recorder.refuse("more than a gigabyte of memory that processes share has changed at once");
    }
    if !writes.is_empty() {
        recorder.put(&Entry::Others { at, writes }, payload.len() as u32);
        recorder.log.append(&payload);
    }
}

/// Whether another process waits for this one.
pub fn is_wanted(engine: &Engine) -> bool {
    let member = engine.log.recorder.as_ref().is_some_and(|recorder| recorder.tree.is_member());
    member && shared().waiting.load(Ordering::Acquire) > 0
}

/// The running thread has had its ticks, and another process waits.
pub fn gives_way(engine: &mut Engine) {
    let at = super::position(engine);
    let Engine { log, process, .. } = engine;
    let (Some(recorder), memory) = (&mut log.recorder, &process.memory) else { return };
    let turn = shared().turns.load(Ordering::Acquire);
    shared().yielding.fetch_add(1, Ordering::AcqRel);
    if recorder.tree.release(memory) {
        wait(&shared().turns, turn, YIELDING_NANOSECONDS);
    }
    shared().yielding.fetch_sub(1, Ordering::AcqRel);
    take(recorder, memory, Some(at));
}
