//! The dispatcher: takes a guest thread from one translation to the next, and in between does
//! what translated code cannot.

use super::cache::{Cache, Id};
use super::cpu::{self, EXIT_ATTENTION, cpu};
use super::emulate::{self, Emulated};
use super::events::Ring;
use super::load::Arguments;
use super::memory::Memory;
use super::signal::deliver::{deliver, fault, is_trap};
use super::signal::{self, Actions, Mask, SignalInfo, TRAP_TRACE};
use super::stream::{record_accesses, record_cut, record_partial};
use super::sys::{self, syscall};
use super::syscall::files;
use super::syscall::make::system_call;
use super::thread::{Left, Thread};
use super::translate::lower::{EXIT_FAULT, EXIT_INDIRECT, ExitKind};
use super::translate::superblock::{self, CodeSource, Limits};
use super::{baton, guest, report};
use crate::config::Config;
use crate::report::Message;
use ::events::record;
use iced_x86::{Decoder, DecoderOptions};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Ticks between two preemptions when they are counted.
const SLICE_TICKS: u64 = 1 << 20;

/// Everything that the guest's threads share.
pub struct Engine {
    /// How to run.
    pub config: Config,
    /// Translations.
    pub cache: Cache,
    /// Address space.
    pub memory: Memory,
    /// Signal dispositions.
    pub actions: Actions,
    /// The guest's executable.
    pub executable: PathBuf,
    /// What it was started with.
    pub arguments: Arguments,
    /// Pages that are write-protected because code has been translated, and where that code is:
    /// on the same page, or on one that shows the same bytes.
    pub guarded: BTreeMap<u64, u64>,
    /// An instruction to run by itself, without guarding the page it is on.
    pub alone: Option<u64>,
    /// Threads that have been started.
    pub threads: Vec<*mut Thread>,
    /// Threads that have not ended.
    pub live: usize,
    /// Stack blocks handed out so far.
    pub blocks: u64,
    /// Event ring, if anything is written there.
    pub ring: Option<Ring>,
    /// How many accesses have been listed of the one instruction that is about to execute.
    listed: Option<usize>,
}

static ENGINE: AtomicPtr<Engine> = AtomicPtr::new(null_mut());
static RUNNING: AtomicPtr<Thread> = AtomicPtr::new(null_mut());

/// The engine, for whoever holds the baton.
pub fn engine() -> &'static mut Engine {
    // SAFETY: set once by `start`, never freed; borrows end before the baton is passed on.
    unsafe { &mut *ENGINE.load(Ordering::Relaxed) }
}

/// The cache, for the signal handler of a thread that is in translated code.
pub fn cache() -> &'static Cache {
    &engine().cache
}

/// Whether the thread holds the baton.
pub fn is_running(thread: *const Thread) -> bool {
    std::ptr::eq(RUNNING.load(Ordering::Relaxed), thread)
}

/// The event buffer is full: moves the record under construction. Called from the signal handler.
pub fn events_full() -> u64 {
    engine().ring.as_mut().map_or(0, Ring::overflow)
}

/// Whether `end` is behind the event buffer in use. Called from the signal handler.
pub fn runs_over(end: u64) -> bool {
    engine().ring.as_ref().is_some_and(|ring| end > ring.end())
}

impl Engine {
    /// An engine for a guest that has been loaded.
    pub fn new(
        config: Config,
        memory: Memory,
        executable: PathBuf,
        arguments: Arguments,
    ) -> Box<Self> {
        let cache = Cache::new()
            .unwrap_or_else(|error| report::refuse(&format!("no code cache: error {error}"), 0));
        let ring = config.plan.emits().then(|| {
            Ring::new()
                .unwrap_or_else(|error| report::refuse(&format!("no event ring: error {error}"), 0))
        });
        Box::new(Self {
            config,
            cache,
            memory,
            actions: Actions::inherited(),
            executable,
            arguments,
            guarded: BTreeMap::new(),
            alone: None,
            threads: Vec::new(),
            live: 1,
            blocks: 1,
            ring,
            listed: None,
        })
    }

    /// The dispositions that count for a thread.
    pub fn actions_of<'a>(&'a mut self, thread: &'a mut Thread) -> &'a mut Actions {
        thread.own_actions.as_deref_mut().unwrap_or(&mut self.actions)
    }

    /// The translation of the code at `pc`, made now if need be.
    fn translation(&mut self, pc: u64, came_by: CameBy) -> Result<Id, Box<SignalInfo>> {
        let alone = self.alone == Some(pc);
        if !alone && let Some(id) = self.cache.find(pc) {
            return Ok(id);
        }
        let plan = self.config.plan;
        let limits = Limits {
            instructions: self.config.superblock_limit,
            alone,
            prefixed: came_by == CameBy::Indirect,
            flags: plan.ticks,
            reserved: if plan.emits() { 2 } else { 0 },
            accesses: plan.memory,
        };
        let superblock = superblock::decode(&self.memory, pc, limits)
            .map_err(|superblock::NotExecutable(at)| Box::new(self.fetch_fault(at)))?;
        if !alone {
            self.guard_code(&superblock);
        }
        if self.cache.is_full() {
            self.cache.flush();
            self.record(&record::FLUSH.to_le_bytes());
        }
        let (id, shape) = if alone {
            self.cache.add_alone(&superblock, plan)
        } else {
            self.cache.add(&superblock, plan)
        };
        if let Some(shape) = shape {
            let mut bytes = vec![0; 8];
            shape.write(&mut bytes);
            let length = bytes.len() as u32 - 8;
            bytes[0..4].copy_from_slice(&record::DEFINE.to_le_bytes());
            bytes[4..8].copy_from_slice(&length.to_le_bytes());
            self.record(&bytes);
        }
        Ok(id)
    }

    fn fetch_fault(&self, address: u64) -> SignalInfo {
        let mapped = self.memory.find(address).is_some();
        let (code, error) = if mapped { (2, 0x15) } else { (1, 0x14) };
        let canonical = address < 1 << 47;
        if canonical {
            SignalInfo::fault(libc::SIGSEGV, code, address, (14, error))
        } else {
            SignalInfo::fault(libc::SIGSEGV, libc::SI_KERNEL, 0, (13, 0))
        }
    }
}

/// Starts the guest's first thread; the calling kernel thread becomes it.
pub fn start(fresh: Box<Engine>, thread: Box<Thread>) -> ! {
    ENGINE.store(Box::into_raw(fresh), Ordering::Relaxed);
    let thread = Box::into_raw(thread);
    let mut mask = Mask::default();
    // SAFETY: the kernel writes one mask; the thread was just made.
    unsafe {
        syscall!(libc::SYS_rt_sigprocmask, libc::SIG_BLOCK, 0, &raw mut mask, 8);
        (*thread).mask = mask;
        (*thread).block.set_owner(thread);
        (*thread).block.use_for_signals();
    }
    engine().actions.take_over();
    files::keep_spare();
    run(thread as u64)
}

/// The life of a kernel thread that carries a guest thread.
pub extern "C" fn run(thread: u64) -> ! {
    let thread = thread as *mut Thread;
    // SAFETY: whoever started this kernel thread made the thread for it.
    unsafe {
        (*thread).tid = sys::gettid();
        (*thread).block.use_for_signals();
        take_baton(thread);
        signal::apply((*thread).mask);
    }
    let mut came_by = CameBy::Elsewhere;
    loop {
        // SAFETY: only this kernel thread frees it, at its end.
        came_by = step(unsafe { &mut *thread }, came_by);
    }
}

/// How a thread came to its pc.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CameBy {
    /// By an exit that can be linked.
    Exit(u64),
    /// By an indirect branch.
    Indirect,
    /// By a system call, a signal, or from nowhere.
    Elsewhere,
}

/// Waits for the baton and brings the thread's state in.
///
/// # Safety
/// `thread` must be the calling thread's own.
pub unsafe fn take_baton(thread: *mut Thread) {
    // SAFETY: the caller's promise.
    unsafe {
        baton::acquire(thread);
        RUNNING.store(thread, Ordering::Relaxed);
        (*thread).move_in();
        engine().record_thread((*thread).tid);
    }
}

/// Puts the thread's state away and lets others run.
pub fn drop_baton(thread: &mut Thread) {
    thread.move_out();
    RUNNING.store(null_mut(), Ordering::Relaxed);
    baton::release();
}

/// From one entry into translated code to the next.
fn step(thread: &mut Thread, came_by: CameBy) -> CameBy {
    let mut came_by = came_by;
    if cpu().attention != 0 || thread.attention != 0 {
        attend(thread);
        came_by = CameBy::Elsewhere;
    }
    if cpu().registers.pc & !0xc00 == VSYSCALL_PAGE {
        vsyscall();
        return CameBy::Elsewhere;
    }
    let engine = engine();
    let flushes = engine.cache.flushes;
    let traced = cpu().registers.flags & TRAP_FLAG;
    if traced != 0 {
        cpu().registers.flags &= !TRAP_FLAG;
        engine.alone = Some(cpu().registers.pc);
    }
    let pc = cpu().registers.pc;
    let id = match engine.translation(pc, came_by) {
        Ok(id) => id,
        Err(info) => {
            engine.alone = None;
            cpu().registers.flags |= RESUME_FLAG | traced;
            fault(thread, *info);
            return CameBy::Elsewhere;
        }
    };
    match came_by {
        CameBy::Exit(exit) if flushes == engine.cache.flushes => engine.cache.link(exit, id),
        CameBy::Indirect => engine.cache.link_indirect(id),
        _ => {}
    }
    engine.listed = engine.cache.fragment(id).explicit.then(|| record_accesses(thread));
    let entry = engine.cache.fragment(id).body();
    // SAFETY: a live translation of the code at the guest's pc.
    unsafe { cpu::enter_cache(entry) };
    if engine.alone.take() == Some(pc) {
        cpu().registers.flags |= traced;
        let completed = ![EXIT_ATTENTION, u64::from(EXIT_FAULT)].contains(&cpu().exit);
        left_cache(thread);
        if flushes == engine.cache.flushes {
            engine.cache.drop_alone(id);
        }
        if traced != 0 && completed {
            trace_trap(thread);
        }
        return CameBy::Elsewhere;
    }
    left_cache(thread)
}

/// The guest steps through itself: it has executed one instruction.
fn trace_trap(thread: &mut Thread) {
    let pc = cpu().registers.pc;
    fault(thread, SignalInfo::fault(libc::SIGTRAP, TRAP_TRACE, pc, (1, 0)));
}

/// Set by a guest that steps through itself.
const TRAP_FLAG: u64 = 0x100;

/// Set in the flags that a fault saves.
const RESUME_FLAG: u64 = 0x1_0000;

const VSYSCALL_PAGE: u64 = 0xffff_ffff_ff60_0000;

/// The three functions that old programs call at fixed addresses.
fn vsyscall() {
    let registers = &mut cpu().registers;
    let number = match registers.pc & 0xc00 {
        0 => libc::SYS_gettimeofday,
        0x400 => libc::SYS_time,
        _ => libc::SYS_getcpu,
    };
    let [first, second] = [registers.general[7], registers.general[6]];
    // SAFETY: the guest's own call with its own pointers, which the kernel checks.
    registers.general[0] = unsafe { syscall!(number, first, second, 0) } as u64;
    if let Some(back) = guest::read_u64(registers.general[4]) {
        registers.pc = back;
        registers.general[4] += 8;
    }
}

/// Translated code has come back: find out why.
fn left_cache(thread: &mut Thread) -> CameBy {
    let exit = cpu().exit;
    if let Some(left) = thread.left_in.take() {
        match (engine().listed, thread.fault.as_ref().is_some_and(is_trap)) {
            (Some(listed), _) => record_cut(thread, listed),
            (None, true) => record_partial(Left { index: left.index + 1, ..left }),
            (None, false) => record_partial(left),
        }
    }
    if engine().config.plan.ticks && cpu().ticks == 0 {
        cpu().ticks = SLICE_TICKS;
        thread.preempt = true;
        thread.attention = 1;
    }
    match u32::try_from(exit).unwrap_or(EXIT_FAULT) {
        exit if u64::from(exit) == EXIT_ATTENTION => {}
        EXIT_INDIRECT => {
            cpu().registers.pc = cpu().target;
            return CameBy::Indirect;
        }
        EXIT_FAULT => {
            if let Some(info) = thread.fault.take() {
                fault(thread, info);
            }
        }
        _ => match engine().cache.exit(exit) {
            ExitKind::Direct(pc) => {
                cpu().registers.pc = pc;
                return CameBy::Exit(exit);
            }
            ExitKind::Syscall(next) => system_call(thread, next),
            ExitKind::Emulate(pc) => emulate_one(thread, pc),
            ExitKind::Refuse(pc) => refuse(pc),
            ExitKind::Indirect => {}
        },
    }
    CameBy::Elsewhere
}

/// The instruction at an address.
pub fn decode_one(pc: u64) -> iced_x86::Instruction {
    let code = engine().memory.code_at(pc);
    Decoder::with_ip(64, code, pc, DecoderOptions::NONE).decode()
}

fn emulate_one(thread: &mut Thread, pc: u64) {
    let instruction = decode_one(pc);
    match emulate::emulate(&instruction, &mut cpu().registers) {
        Emulated::Done if emulate::moves_segment(&instruction) => {
            engine().record_thread(thread.tid);
        }
        Emulated::Done => {}
        Emulated::Fault => {
            cpu().registers.pc = pc;
            cpu().registers.flags |= RESUME_FLAG;
            fault(thread, SignalInfo::fault(libc::SIGSEGV, libc::SI_KERNEL, 0, (13, 0)));
        }
        Emulated::Unknown => refuse(pc),
    }
}

fn refuse(pc: u64) -> ! {
    let instruction = decode_one(pc);
    let mnemonic = format!("{:?}", instruction.mnemonic()).to_lowercase();
    report::refuse(
        &format!(
            "the guest executed `{mnemonic}`, which CPUID does not offer and the engine does not run"
        ),
        pc,
    )
}

/// Something wants the thread: a signal, or others the baton.
fn attend(thread: &mut Thread) {
    cpu().attention = 0;
    thread.attention = 0;
    while let Some(info) = thread.inbox.take(Mask(u64::MAX)) {
        deliver(thread, info);
    }
    if std::mem::replace(&mut thread.preempt, false) && baton::wanted() {
        drop_baton(thread);
        // SAFETY: our own thread.
        unsafe { take_baton(thread) };
    }
}

/// Tells the user something, once the guest goes on.
pub fn note(text: &str) {
    report::send(&Message::Note(text.to_owned()));
}
