//! A guest thread: what the engine keeps of it while it does not run.

use super::cpu::{Registers, cpu};
use super::guest::Checked;
use super::robust;
use super::screens::{self, allocations};
use super::signal::frame::GuestMemory;
use super::signal::{self, Actions, Inbox, Mask, SignalInfo};
use super::stack::Block;
use super::syscall::seccomp::Filter;
use super::translate::lower::Variant;
use std::sync::atomic::{AtomicPtr, AtomicU32};

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

/// One guest thread. Lives in the runner's heap until its kernel thread has ended.
pub struct Thread {
    /// Kernel's number of the thread.
    pub tid: i32,
    /// Its stack block.
    pub block: Block,
    /// Registers while the thread does not hold the baton.
    pub registers: Registers,
    /// Vector registers while it is not in translated code.
    pub vector: Box<VectorState>,
    /// Signals that the guest has blocked.
    pub mask: Mask,
    /// Alternate signal stack of the guest: start, flags, size.
    pub signal_stack: (u64, i32, u64),
    /// Word to clear and wake when the thread ends.
    pub clear_tid: u64,
    /// Head of the guest's list of robust futexes.
    pub robust_list: u64,
    /// Not zero when the dispatcher must look at this thread. Written by the signal handler.
    pub attention: u64,
    /// Signals that have come and are not delivered yet. Written by the signal handler.
    pub inbox: Inbox,
    /// Signals that the guest blocks and the kernel cannot keep pending for it.
    pub held: Inbox,
    /// A fault in translated code. Written by the signal handler.
    pub fault: Option<SignalInfo>,
    /// Whether that is an indirect branch whose target is no address. Written by the signal handler.
    pub branched_nowhere: bool,
    /// Where translated code was left in the middle. Written by the signal handler.
    pub left_in: Option<Left>,
    /// The dispatcher has looked after the instruction there, which has not executed yet; how it is
    /// to be run.
    pub looked_after: Option<(u64, Variant)>,
    /// Others wait for the baton. Written by the signal handler.
    pub preempt: bool,
    /// How often waiters have asked for the baton by a signal that has not come yet.
    pub kicks: AtomicU32,
    /// In a system call with a mask of its own: a signal that comes is not blocked.
    pub suspended: bool,
    /// The system call that it is in without the baton: number and arguments.
    pub in_call: Option<(u64, [u64; 6])>,
    /// Belongs to a child process that shares the guest's memory.
    pub foreign: bool,
    /// Signal dispositions of that child, where it does not share them too.
    pub own_actions: Option<Box<Actions>>,
    /// Filters on system calls that only this thread has.
    pub filters: Vec<Filter>,
    /// The calls of allocators that it is in.
    pub calls: screens::Calls,
    /// Whether it has been in the queue for the baton since before it started.
    pub admitted: bool,
    /// Whether it sleeps until somebody wakes it ([`super::baton::AWAKE`] …).
    pub sleep: AtomicU32,
    /// Futex word that says the baton is ours.
    pub granted: AtomicU32,
    /// Next in the queue for the baton.
    pub next_in_queue: AtomicPtr<Thread>,
}

impl Thread {
    /// A thread that has not run yet.
    pub fn new(block: Block, registers: Registers) -> Box<Self> {
        Box::new(Self {
            tid: 0,
            block,
            registers,
            vector: Box::new(VectorState::initial()),
            mask: Mask::default(),
            signal_stack: (0, libc::SS_DISABLE, 0),
            clear_tid: 0,
            robust_list: 0,
            attention: 0,
            inbox: Inbox::default(),
            held: Inbox::default(),
            fault: None,
            branched_nowhere: false,
            left_in: None,
            looked_after: None,
            preempt: false,
            kicks: AtomicU32::new(0),
            suspended: false,
            in_call: None,
            foreign: false,
            own_actions: None,
            filters: Vec::new(),
            calls: screens::Calls::default(),
            admitted: false,
            sleep: AtomicU32::new(super::baton::AWAKE),
            granted: AtomicU32::new(0),
            next_in_queue: AtomicPtr::new(std::ptr::null_mut()),
        })
    }

    /// A new thread is to clear a word when it ends, if `clone` was asked for that.
    pub fn set_clear_tid(&mut self, flags: u64, child_tid: u64) {
        if flags & libc::CLONE_CHILD_CLEARTID as u64 != 0 {
            self.clear_tid = child_tid;
        }
    }

    /// The thread ends: what the kernel would do to the guest's memory then.
    pub fn release(&mut self) {
        robust::release(self.robust_list, self.tid);
        if self.clear_tid != 0 {
            Checked.write(self.clear_tid, &0u32.to_le_bytes());
        }
    }

    /// The guest has changed its mask: what it no longer blocks comes through.
    pub fn mask_changed(&mut self) {
        signal::apply(self.mask);
        while let Some(info) = self.held.take(Mask(!self.mask.0)) {
            self.inbox.put(info);
            self.attention = 1;
        }
    }

    /// Puts the thread's state where translated code finds it.
    pub fn move_in(&mut self) {
        let cpu = cpu();
        cpu.registers = self.registers;
        cpu.vector_state = self.vector.0.as_mut_ptr() as u64;
        cpu.attention = self.attention;
        self.calls.move_in();
    }

    /// Takes the thread's state back, before another one runs.
    pub fn move_out(&mut self) {
        allocations::put_aside(self);
        self.registers = cpu().registers;
    }
}
