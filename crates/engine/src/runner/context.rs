//! What the holder of the baton holds: the engine and the thread that runs. Made once where Rust code
//! begins to carry a guest thread, and passed down from there.
//!
//! # Rules of raw pointers
//!
//! Two static pointers lead to the engine and to the running thread. References are made from them in
//! three places only, each of which says why nobody else has one:
//!
//! * **[`Context`]**, made by the first function of a kernel thread (`engine::dispatch::run`,
//!   `replay::start`).
//!   It holds pointers and lends references that end before it is used again, so the compiler sees to
//!   it that none is alive when the whole context is needed: to enter translated code
//!   (`cpu::enter_cache`) and to let another thread run (`engine::dispatch::drop_baton`).
//! * **[`lent`]**, for functions that translated code calls (`follow`). The dispatcher is inside
//!   `enter_cache` then, and has lent all of its context.
//! * **The signal handler** (`signal::handler`) asks where it has interrupted the thread. In translated
//!   code it uses [`lent`], as above. In Rust code it touches nothing but [`SharedState`], which is atomic,
//!   and [`ATTENTION`](super::cpu::ATTENTION).
//!
//! ```text
//! kernel ──► dispatch::run ──► Context ──► step ──► enter_cache ──► translated code
//!            replay::start                            ▲                │      │
//!                                                     │                │      └─► follow ──► lent()
//!                                                     └── exit ◄───────┤
//! kernel ──► signal handler ──► SharedState, ATTENTION                 │
//!                           └─► lent(), if it was in translated code ─┘
//! ```
//!
//! Threads that do not run are reached by the pointers in `Engine::threads` and in the contexts of a
//! replay. Whoever holds the baton may make references from them, as their own contexts have lent none
//! while they wait.

use super::cpu::CpuBlock;
use super::engine::Engine;
use super::replay::Replayer;
use super::thread::{SharedState, Thread};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};

static ENGINE: AtomicPtr<Engine> = AtomicPtr::new(null_mut());
static RUNNING: AtomicPtr<Thread> = AtomicPtr::new(null_mut());

/// Where the two pointers are, in every process of the tool.
pub fn roots() -> (u64, u64) {
    ((&raw const ENGINE) as u64, (&raw const RUNNING) as u64)
}

/// Makes an engine the one of this process.
pub fn install(engine: Box<Engine>) {
    ENGINE.store(Box::into_raw(engine), Ordering::Relaxed);
}

/// The engine, and the guest thread that the calling kernel thread carries.
pub struct Context {
    engine: NonNull<Engine>,
    thread: NonNull<Thread>,
}

impl Context {
    /// For the calling kernel thread.
    ///
    /// # Safety
    /// An engine has been installed. `thread` is the calling kernel thread's own, lives until that
    /// ends, and has no other context. References are taken while it holds the baton only.
    pub unsafe fn new(thread: NonNull<Thread>) -> Self {
        let engine = NonNull::new(ENGINE.load(Ordering::Relaxed)).expect("an engine is installed");
        Self { engine, thread }
    }

    /// The engine and the running thread.
    #[inline]
    pub fn parts(&mut self) -> (&mut Engine, &mut Thread) {
        // SAFETY: the promise of `new`; the engine owns no thread, so the two do not overlap.
        unsafe { (self.engine.as_mut(), self.thread.as_mut()) }
    }

    /// The engine.
    #[inline]
    pub fn engine(&mut self) -> &mut Engine {
        self.parts().0
    }

    /// The running thread.
    #[inline]
    pub fn thread(&mut self) -> &mut Thread {
        self.parts().1
    }

    /// The running thread's registers and what else translated code shares.
    #[inline]
    pub fn cpu(&mut self) -> &mut CpuBlock {
        &mut self.parts().0.cpu
    }

    /// The replay under way.
    pub fn replayer(&mut self) -> &mut Replayer {
        self.engine().replayer()
    }

    /// The running thread, for lists of threads.
    pub fn pointer(&self) -> NonNull<Thread> {
        self.thread
    }

    /// What others may touch of the running thread, also while it does not hold the baton.
    pub fn shared(&self) -> &SharedState {
        // SAFETY: the promise of `new`: nobody frees the thread, nor replaces this part of it, which
        // is atomic and lies outside of it.
        unsafe { &*std::sync::Arc::as_ptr(&(*self.thread.as_ptr()).shared) }
    }

    /// The thread has the baton: calls from translated code are about it.
    pub fn runs(&mut self) {
        RUNNING.store(self.thread.as_ptr(), Ordering::Relaxed);
        self.shared().set_running(true);
    }

    /// The thread is about to let go of the baton.
    pub fn stops(&mut self) {
        self.shared().set_running(false);
        RUNNING.store(null_mut(), Ordering::Relaxed);
    }

    /// In a replay the kernel thread carries all guest threads: from now on this one runs.
    ///
    /// # Safety
    /// As for [`Self::new`].
    pub unsafe fn switch(&mut self, thread: NonNull<Thread>) {
        self.thread = thread;
        self.runs();
    }
}

/// The context of the thread that is in translated code.
///
/// # Safety
/// The caller was called by translated code or has interrupted it, and keeps no reference when that
/// goes on.
pub unsafe fn lent<'a>() -> (&'a mut Engine, &'a mut Thread) {
    // SAFETY: the dispatcher of the running thread is inside `enter_cache`, which borrows its context.
    unsafe { (&mut *ENGINE.load(Ordering::Relaxed), &mut *RUNNING.load(Ordering::Relaxed)) }
}
