//! The **baton**: guest threads run one at a time.
//!
//! Whoever holds it may be in translated code or in the engine's Rust code; everyone else is in a
//! system call of the guest's or waits here, first come first served. A waiter that waits long
//! sends the holder a signal, so that a thread that spins cannot keep the others out.

use super::signal::KICK;
use super::thread::SharedState;
use crate::sys::{self, syscall};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

static LOCK: AtomicBool = AtomicBool::new(false);
static HOLDER: AtomicPtr<SharedState> = AtomicPtr::new(null_mut());
static FIRST: AtomicPtr<SharedState> = AtomicPtr::new(null_mut());
static LAST: AtomicPtr<SharedState> = AtomicPtr::new(null_mut());
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// How long a waiter is patient.
const PATIENCE_NANOSECONDS: i64 = 2_000_000;

/// Whether waiters never ask for the baton.
static CALM: AtomicBool = AtomicBool::new(false);

/// Whether waiters only wait from now on.
pub fn be_calm(calm: bool) {
    CALM.store(calm, Ordering::Relaxed);
}

/// A thread as the queue has it.
fn pointer(thread: &SharedState) -> *mut SharedState {
    std::ptr::from_ref(thread).cast_mut()
}

struct Guard;

impl Guard {
    fn lock() -> Self {
        let mut tries = 0;
        while LOCK.swap(true, Ordering::Acquire) {
            tries += 1;
            if tries % 64 == 0 {
                // SAFETY: gives the processor away; touches no memory.
                unsafe { syscall!(libc::SYS_sched_yield) };
            }
            std::hint::spin_loop();
        }
        Self
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        LOCK.store(false, Ordering::Release);
    }
}

/// Takes the baton, waiting for it if need be.
///
/// # Safety
/// `thread` must be the calling thread's own, and stay alive until it has let go of the baton.
pub unsafe fn acquire(thread: &SharedState) {
    let granted = &thread.granted;
    let thread = pointer(thread);
    {
        let _guard = Guard::lock();
        if HOLDER.load(Ordering::Relaxed).is_null() {
            HOLDER.store(thread, Ordering::Relaxed);
            return;
        }
        granted.store(0, Ordering::Relaxed);
        enqueue(thread);
    }
    wait_for(granted);
}

/// Gives the baton to one of those who wait and waits for it again: to whoever has it next, this
/// thread is waiting already.
///
/// # Safety
/// `thread` must be the calling thread's own, and hold the baton.
pub unsafe fn hand_over(thread: &SharedState, index: usize) {
    let granted = &thread.granted;
    let thread = pointer(thread);
    let chosen = {
        let _guard = Guard::lock();
        let chosen = dequeue(index);
        if chosen.is_null() {
            return;
        }
        granted.store(0, Ordering::Relaxed);
        enqueue(thread);
        HOLDER.store(chosen, Ordering::Relaxed);
        grant(chosen)
    };
    wake(chosen);
    wait_for(granted);
}

/// Puts a thread into the queue that has just been made: it has come as soon as whoever made it
/// goes on, however long its kernel thread takes to start.
///
/// # Safety
/// `thread` must be alive, not in the queue, and wait with [`await_grant`].
pub unsafe fn admit(thread: &SharedState) {
    let _guard = Guard::lock();
    enqueue(pointer(thread));
}

/// Waits for the baton in the queue that somebody else has put the calling thread into.
pub fn await_grant(thread: &SharedState) {
    wait_for(&thread.granted);
}

/// A thread that does not want the baton until somebody wakes it. It is to be put to sleep by
/// itself, while it still has the baton.
pub fn fall_asleep(thread: &SharedState) {
    thread.granted.store(0, Ordering::Relaxed);
    thread.sleep.store(ASLEEP, Ordering::Relaxed);
}

/// The thread does not sleep.
pub const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;
/// The thread was woken by another.
pub const WOKEN: u32 = 2;

/// Wakes a thread that sleeps: it waits for the baton from now on. Whether it slept.
///
/// # Safety
/// `thread` must be alive: one that sleeps, or has not yet noticed that it does not, is.
pub unsafe fn wake_up(thread: &SharedState) -> bool {
    let _guard = Guard::lock();
    let slept = thread.sleep.load(Ordering::Relaxed) == ASLEEP;
    if slept {
        thread.sleep.store(WOKEN, Ordering::Relaxed);
        enqueue(pointer(thread));
    }
    slept
}

/// The calling thread has slept, and was woken or wants the baton for another reason. Whether it
/// was woken.
///
/// # Safety
/// `thread` must be the calling thread's own, put to sleep before.
pub unsafe fn after_sleep(thread: &SharedState) -> bool {
    let (granted, sleep) = (&thread.granted, &thread.sleep);
    let thread = pointer(thread);
    {
        let _guard = Guard::lock();
        if sleep.load(Ordering::Relaxed) == ASLEEP {
            sleep.store(AWAKE, Ordering::Relaxed);
            if HOLDER.load(Ordering::Relaxed).is_null() {
                HOLDER.store(thread, Ordering::Relaxed);
                return false;
            }
            enqueue(thread);
        }
    }
    wait_for(granted);
    sleep.swap(AWAKE, Ordering::Relaxed) == WOKEN
}

/// Says that a thread has the baton; the word to wake it by. Under the lock.
fn grant(thread: *mut SharedState) -> *mut u32 {
    // SAFETY: it waited until now; the word itself is what wakes it.
    let granted = unsafe { &(*thread).granted };
    granted.store(1, Ordering::Release);
    granted.as_ptr()
}

fn wake(word: *mut u32) {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: a wake on an address that may be gone already is harmless.
    unsafe { syscall!(libc::SYS_futex, word, operation, 1) };
}

fn wait_for(granted: &AtomicU32) {
    while granted.load(Ordering::Acquire) == 0 {
        let patience = libc::timespec { tv_sec: 0, tv_nsec: PATIENCE_NANOSECONDS };
        let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the word is ours and lives; the kernel only reads the timeout.
        let answer = unsafe {
            syscall!(libc::SYS_futex, granted.as_ptr(), operation, 0, &raw const patience)
        };
        // A recording's schedule must not depend on how fast the machine is.
        if answer == -i64::from(libc::ETIMEDOUT) && !CALM.load(Ordering::Relaxed) {
            kick_holder();
        }
    }
}

fn enqueue(thread: *mut SharedState) {
    // SAFETY: under the lock; queued threads stay alive because they wait.
    unsafe {
        (*thread).next_in_queue.store(null_mut(), Ordering::Relaxed);
        let last = LAST.swap(thread, Ordering::Relaxed);
        if last.is_null() {
            FIRST.store(thread, Ordering::Relaxed);
        } else {
            (*last).next_in_queue.store(thread, Ordering::Relaxed);
        }
    }
    WAITING.fetch_add(1, Ordering::Relaxed);
}

/// Asks the holder to let go. Under the lock, so that it still is the holder.
fn kick_holder() {
    let _guard = Guard::lock();
    let holder = HOLDER.load(Ordering::Relaxed);
    if holder.is_null() {
        return;
    }
    // SAFETY: under the lock the holder cannot let go, so it is alive; a signal touches no memory.
    unsafe {
        (*holder).kicks.fetch_add(1, Ordering::Relaxed);
        let tid = (*holder).tid.load(Ordering::Relaxed);
        syscall!(libc::SYS_tgkill, sys::getpid(), tid, KICK);
    }
}

/// The numbers of those who wait, first come first. Only the holder can make it shorter.
pub fn waiting() -> Vec<i32> {
    let mut numbers = Vec::with_capacity(WAITING.load(Ordering::Relaxed) + 8);
    let _guard = Guard::lock();
    let mut thread = FIRST.load(Ordering::Relaxed);
    while !thread.is_null() && numbers.len() < numbers.capacity() {
        // SAFETY: under the lock; queued threads stay alive because they wait.
        unsafe {
            numbers.push((*thread).tid.load(Ordering::Relaxed));
            thread = (*thread).next_in_queue.load(Ordering::Relaxed);
        }
    }
    numbers
}

/// Gives the baton to one of those who wait, counted from the first who came, or puts it down if
/// there is nobody.
pub fn release_to(index: usize) {
    let next = {
        let _guard = Guard::lock();
        let chosen = dequeue(index);
        HOLDER.store(chosen, Ordering::Relaxed);
        if chosen.is_null() {
            return;
        }
        grant(chosen)
    };
    wake(next);
}

/// Takes a thread out of the queue. Under the lock.
fn dequeue(index: usize) -> *mut SharedState {
    let (mut before, mut chosen) = (null_mut::<SharedState>(), FIRST.load(Ordering::Relaxed));
    // SAFETY: under the lock; queued threads stay alive because they wait.
    unsafe {
        for _ in 0..index {
            let next = (*chosen).next_in_queue.load(Ordering::Relaxed);
            if next.is_null() {
                break;
            }
            (before, chosen) = (chosen, next);
        }
        if chosen.is_null() {
            return chosen;
        }
        let next = (*chosen).next_in_queue.load(Ordering::Relaxed);
        let link = if before.is_null() { &FIRST } else { &(*before).next_in_queue };
        link.store(next, Ordering::Relaxed);
        if next.is_null() {
            LAST.store(before, Ordering::Relaxed);
        }
    }
    WAITING.fetch_sub(1, Ordering::Relaxed);
    chosen
}

/// Whether anyone waits.
pub fn wanted() -> bool {
    WAITING.load(Ordering::Relaxed) > 0
}

/// In the child of a fork: the calling thread is alone and holds the baton.
pub fn after_fork(thread: &SharedState) {
    LOCK.store(false, Ordering::Relaxed);
    HOLDER.store(pointer(thread), Ordering::Relaxed);
    FIRST.store(null_mut(), Ordering::Relaxed);
    LAST.store(null_mut(), Ordering::Relaxed);
    WAITING.store(0, Ordering::Relaxed);
}
