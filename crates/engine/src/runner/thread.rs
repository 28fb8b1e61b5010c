//! A guest thread: what the engine keeps of it while it does not run.

use super::cpu::{ATTENTION, Cpu, Registers};
use super::engine::Engine;
use super::guest::Checked;
use super::robust;
use super::screens::{self, allocations};
use super::signal::frame::GuestMemory;
use super::signal::{self, Actions, Inbox, Mask, SharedInbox, SignalInfo};
use super::stack::StackBlock;
use super::translate::lower::Variant;
use crate::config::Filter;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Room for the XSAVE image of x87, SSE and AVX, and then some.
pub const VECTOR_BYTES: usize = 1024;
/// What of it the guest's state fills: the legacy area, the header and the upper halves.
pub const VECTOR_USED: usize = 832;

/// Vector registers as XSAVE stores them.
#[derive(Clone)]
#[repr(C, align(64))]
pub struct VectorState(pub [u8; VECTOR_BYTES]);

impl VectorState {
    /// The state of a fresh process.
    pub fn initial() -> Self {
        let mut bytes = [0; VECTOR_BYTES];
        bytes[0..2].copy_from_slice(&0x037fu16.to_le_bytes());
        bytes[24..28].copy_from_slice(&0x1f80u32.to_le_bytes());
        Self(bytes)
    }

    /// Makes a state that the guest wrote one that the processor will load without a fault.
    pub fn sanitize(&mut self) {
        let mxcsr = u32::from_le_bytes(self.0[24..28].try_into().expect("four bytes")) & 0xffff;
        self.0[24..28].copy_from_slice(&mxcsr.to_le_bytes());
        let present = u64::from_le_bytes(self.0[512..520].try_into().expect("eight bytes"));
        self.0[512..520].copy_from_slice(&(present & super::cpu::VECTOR_MASK).to_le_bytes());
        self.0[520..576].fill(0);
    }
}

/// Where a translation was left in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// The translation.
    pub fragment: u32,
    /// The instruction of it that has not completed.
    pub index: u16,
    /// Whether that is a string instruction that may have repeated some of the way.
    pub repeating: bool,
}

/// What others may touch of a thread at any time: the signal handler, and those who wait for the
/// baton. All of it is atomic, and lies outside of [`Thread`], which only the baton's holder touches.
pub struct SharedState {
    /// Kernel's number of the thread.
    pub tid: AtomicI32,
    /// Not zero when the dispatcher must look at this thread.
    pub attention: AtomicU64,
    /// Signals that have come and are not delivered yet.
    pub inbox: SharedInbox,
    /// Others wait for the baton.
    pub preempt: AtomicBool,
    /// How often waiters have asked for the baton by a signal that has not come yet.
    pub kicks: AtomicU32,
    /// Whether it has the baton and its registers are where translated code finds them.
    running: AtomicBool,
    /// Whether it sleeps until somebody wakes it ([`super::baton::AWAKE`] …).
    pub sleep: AtomicU32,
    /// Futex word that says the baton is ours.
    pub granted: AtomicU32,
    /// Next in the queue for the baton.
    pub next_in_queue: AtomicPtr<SharedState>,
}

impl SharedState {
    fn new() -> Self {
        Self {
            tid: AtomicI32::new(0),
            attention: AtomicU64::new(0),
            inbox: SharedInbox::default(),
            preempt: AtomicBool::new(false),
            kicks: AtomicU32::new(0),
            running: AtomicBool::new(false),
            sleep: AtomicU32::new(super::baton::AWAKE),
            granted: AtomicU32::new(0),
            next_in_queue: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// Makes the dispatcher look at the thread before it goes on.
    pub fn attend(&self) {
        self.attention.store(1, Ordering::Relaxed);
    }

    /// Makes the dispatcher look at the thread, and let others run.
    pub fn preempt(&self) {
        self.preempt.store(true, Ordering::Relaxed);
        self.attend();
    }

    /// Whether the dispatcher must look.
    pub fn is_wanted(&self) -> bool {
        self.attention.load(Ordering::Relaxed) != 0
    }

    /// Whether it has the baton and its registers are where translated code finds them.
    pub fn is_running(&self) -> bool {
        self.running.load(Ordering::Relaxed)
    }

    /// Notes whether it has.
    pub fn set_running(&self, running: bool) {
        self.running.store(running, Ordering::Relaxed);
    }
}

/// A thread's signals, but for those that have just come.
pub struct SignalState {
    /// Signals that the guest has blocked.
    pub mask: Mask,
    /// Alternate signal stack of the guest: start, flags, size.
    pub stack: (u64, i32, u64),
    /// Signals that the guest blocks and the kernel cannot keep pending for it.
    pub held: Inbox,
    /// In a system call with a mask of its own: a signal that comes is not blocked.
    pub suspended: bool,
    /// Signal dispositions of a child that shares the guest's memory, where it does not share them too.
    pub actions: Option<Box<Actions>>,
}

/// Why and where translated code was left other than by an exit of its own.
#[derive(Default)]
pub struct Interrupted {
    /// A fault.
    pub fault: Option<SignalInfo>,
    /// Whether that is an indirect branch whose target is no address.
    pub branched_nowhere: bool,
    /// Where translated code was left in the middle.
    pub left: Option<Left>,
}

/// What the kernel keeps of a thread, or would if it were asked.
#[derive(Default)]
pub struct KernelState {
    /// Word to clear and wake when the thread ends.
    pub clear_tid: u64,
    /// Head of the guest's list of robust futexes.
    pub robust_list: u64,
    /// The system call that it is in without the baton: number and arguments.
    pub in_call: Option<(u64, [u64; 6])>,
    /// Filters on system calls that only this thread has.
    pub filters: Vec<Filter>,
}

/// One guest thread. Lives in the runner's heap until its kernel thread has ended.
pub struct Thread {
    /// What others may touch.
    pub shared: Arc<SharedState>,
    /// Its stack block.
    pub block: StackBlock,
    /// Registers while the thread does not hold the baton.
    pub registers: Registers,
    /// Vector registers while it is not in translated code.
    pub vector: Box<VectorState>,
    /// Its signals.
    pub signals: SignalState,
    /// How it was interrupted in translated code. Written by the signal handler.
    pub interrupted: Interrupted,
    /// The dispatcher has looked after the instruction there, which has not executed yet; how it is
    /// to be run.
    pub looked_after: Option<(u64, Variant)>,
    /// What the kernel would know of it.
    pub kernel: KernelState,
    /// Belongs to a child process that shares the guest's memory.
    pub foreign: bool,
    /// The calls of allocators that it is in.
    pub calls: screens::Calls,
    /// Whether it has been in the queue for the baton since before it started.
    pub admitted: bool,
}

impl Thread {
    /// A thread that has not run yet.
    pub fn new(block: StackBlock, registers: Registers) -> Box<Self> {
        Box::new(Self {
            shared: Arc::new(SharedState::new()),
            block,
            registers,
            vector: Box::new(VectorState::initial()),
            signals: SignalState {
                mask: Mask::default(),
                stack: (0, libc::SS_DISABLE, 0),
                held: Inbox::default(),
                suspended: false,
                actions: None,
            },
            interrupted: Interrupted::default(),
            looked_after: None,
            kernel: KernelState::default(),
            foreign: false,
            calls: screens::Calls::default(),
            admitted: false,
        })
    }

    /// Kernel's number of the thread; negative once it has ended.
    pub fn tid(&self) -> i32 {
        self.shared.tid.load(Ordering::Relaxed)
    }

    /// Notes that number.
    pub fn set_tid(&mut self, tid: i32) {
        self.shared.tid.store(tid, Ordering::Relaxed);
    }

    /// A new thread is to clear a word when it ends, if `clone` was asked for that.
    pub fn set_clear_tid(&mut self, flags: u64, child_tid: u64) {
        if flags & libc::CLONE_CHILD_CLEARTID as u64 != 0 {
            self.kernel.clear_tid = child_tid;
        }
    }

    /// The thread ends: what the kernel would do to the guest's memory then.
    pub fn release(&mut self, engine: &mut Engine) {
        robust::release(engine, self.kernel.robust_list, self.tid());
        if self.kernel.clear_tid != 0 {
            Checked.write(self.kernel.clear_tid, &0u32.to_le_bytes());
        }
    }

    /// The guest has changed its mask: what it no longer blocks comes through.
    pub fn mask_changed(&mut self) {
        signal::apply(self.signals.mask);
        while let Some(info) = self.signals.held.take(Mask(!self.signals.mask.0)) {
            self.shared.inbox.put(info);
            self.shared.attend();
        }
    }

    /// Puts the thread's state where translated code finds it.
    pub fn move_in(&mut self, cpu: &mut Cpu) {
        cpu.registers = self.registers;
        cpu.vector_state = self.vector.0.as_mut_ptr() as u64;
        ATTENTION.store(self.shared.attention.load(Ordering::Relaxed), Ordering::Relaxed);
        self.calls.move_in(cpu);
    }

    /// Takes the thread's state back, before another one runs.
    pub fn move_out(&mut self, engine: &mut Engine) {
        allocations::put_aside(engine, self);
        self.registers = engine.cpu.registers;
    }
}
