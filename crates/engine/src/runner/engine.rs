//! The dispatcher: takes a guest thread from one translation to the next, and in between does
//! what translated code cannot.

use super::cache::{Cache, Id};
use super::clock::{self, Countdown};
use super::cpu::{self, EXIT_ATTENTION, Registers, cpu};
use super::emulate::{self, Emulated};
use super::events::Ring;
use super::futex::Futexes;
use super::guest::Checked;
use super::layout;
use super::load::Arguments;
use super::memory::Memory;
use super::numbers::Numbers;
use super::record::region::Region;
use super::record::{self, Recorder};
use super::replay::{self, Replayer};
use super::screens::{self, Screens, Stage, allocators};
use super::signal::deliver::{deliver, fault, is_trap};
use super::signal::frame::GuestMemory;
use super::signal::{self, Actions, Mask, SignalInfo, TRAP_TRACE};
use super::stops::{Reached, Stops};
use super::stream::{record_accesses, record_cut, record_partial};
use super::sys::{self, syscall};
use super::syscall::files;
use super::syscall::make::system_call;
use super::syscall::trace::Attached;
use super::thread::{Left, Thread};
use super::translate::instrument::Instrumentation;
use super::translate::lower::{EXIT_FAULT, EXIT_INDIRECT, EXIT_SUSPECT, ExitKind, Variant};
use super::translate::superblock::{self, CodeSource, Limits};
use super::{baton, report, vsyscall};
use crate::config::Config;
use crate::processor;
use crate::report::Message;
use ::events::record::{Entry, list};
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
    /// What this process is called.
    pub numbers: Numbers,
    /// The guest's executable.
    pub executable: PathBuf,
    /// What it was started with.
    pub arguments: Arguments,
    /// Pages that are write-protected because code has been translated, and where that code is:
    /// on the same page, or on one that shows the same bytes.
    pub guarded: BTreeMap<u64, u64>,
    /// An instruction to run by itself, without guarding the page it is on.
    pub alone: Option<u64>,
    /// Where the next piece of code must end, which is then run once.
    pub stop_before: Vec<u64>,
    /// Threads that have been started.
    pub threads: Vec<*mut Thread>,
    /// Threads that have not ended.
    pub live: usize,
    /// Stack blocks handed out so far.
    pub blocks: u64,
    /// Who waits for which word of the guest's, while it is recorded.
    pub futexes: Futexes,
    /// Threads that a process which shares our memory traces.
    pub attached: Attached,
    /// The guest's first thread.
    pub first: *mut Thread,
    /// What of the run is recorded.
    pub region: Region,
    /// Writes a recording, if one is made.
    pub recorder: Option<Box<Recorder>>,
    /// Reads one, if it is replayed.
    pub replayer: Option<Box<Replayer>>,
    /// Event ring, if anything is written there.
    pub ring: Option<Ring>,
    /// How many accesses have been listed of the one instruction that is about to execute.
    listed: Option<usize>,
    /// What is woven into code that is observed.
    pub inside: Instrumentation,
    /// What is woven into other code.
    pub outside: Instrumentation,
    /// How many plans there have been before this one.
    pub plan_number: u32,
    /// The tables of screens.
    pub screens: Screens,
    /// Places of probes and patches.
    pub stops: Stops,
    /// Registers before the repeated string instruction that is about to execute.
    repeating: Option<Box<Registers>>,
}

static ENGINE: AtomicPtr<Engine> = AtomicPtr::new(null_mut());
static RUNNING: AtomicPtr<Thread> = AtomicPtr::new(null_mut());

/// Says which thread holds the baton.
pub fn set_running(thread: *mut Thread) {
    RUNNING.store(thread, Ordering::Relaxed);
}

/// Makes an engine the one of this process.
pub fn install(engine: Box<Engine>) {
    ENGINE.store(Box::into_raw(engine), Ordering::Relaxed);
}

/// The engine, for whoever holds the baton.
pub fn engine() -> &'static mut Engine {
    // SAFETY: set once by `start`, never freed; borrows end before the baton is passed on.
    unsafe { &mut *ENGINE.load(Ordering::Relaxed) }
}

/// The cache, for the signal handler of a thread that is in translated code.
pub fn cache() -> &'static Cache {
    &engine().cache
}

/// The thread that holds the baton, for whoever it called.
pub fn running() -> &'static mut Thread {
    // SAFETY: a thread in translated code holds the baton, and has not been freed.
    unsafe { &mut *RUNNING.load(Ordering::Relaxed) }
}

/// Whether the thread holds the baton.
pub fn is_running(thread: *const Thread) -> bool {
    std::ptr::eq(RUNNING.load(Ordering::Relaxed), thread)
}

/// The event buffer is full: moves the record under construction. Called from the signal handler.
pub fn events_full() -> u64 {
    engine().ring.as_mut().map_or(0, Ring::overflow)
}

/// Bits of an address. Called from the signal handler.
pub fn address_bits() -> u32 {
    engine().config.quirks.address_bits
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
        let plan = config.plan.clone();
        let ring = (plan.emits() || config.controlled).then(|| {
            Ring::new(config.rings, Numbers::of_this(config.proc).host, None)
                .unwrap_or_else(|error| report::refuse(&format!("no event ring: error {error}"), 0))
        });
        let mut fresh = Box::new(Self {
            numbers: Numbers::of_this(config.proc),
            config,
            cache,
            memory,
            actions: Actions::inherited(),
            executable,
            arguments,
            guarded: BTreeMap::new(),
            alone: None,
            stop_before: Vec::new(),
            threads: Vec::new(),
            live: 1,
            blocks: 1,
            futexes: Futexes::default(),
            attached: Attached::default(),
            first: null_mut(),
            region: Region::default(),
            recorder: None,
            replayer: None,
            ring,
            listed: None,
            inside: Instrumentation::default(),
            outside: Instrumentation::default(),
            plan_number: 0,
            screens: Screens::default(),
            stops: Stops::default(),
            repeating: None,
        });
        fresh.arrange(plan);
        fresh
    }

    /// A guest that handles faults can see flags that nothing else reads.
    pub fn handlers_changed(&mut self) {
        let handles = |signal: &i32| self.actions.get(*signal).is_handler();
        let faults = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP];
        let exact = faults.iter().any(handles);
        if exact && !std::mem::replace(&mut self.cache.exact_flags, exact) {
            self.cache.flush();
            self.define(&Entry::Flush.bytes());
        }
    }

    /// The dispositions that count for a thread.
    pub fn actions_of<'a>(&'a mut self, thread: &'a mut Thread) -> &'a mut Actions {
        thread.own_actions.as_deref_mut().unwrap_or(&mut self.actions)
    }

    /// The translation of the code at `pc`, made now if need be.
    fn translation(&mut self, pc: u64, variant: Variant) -> Result<Id, Box<SignalInfo>> {
        let alone = self.alone == Some(pc);
        if !alone
            && self.stop_before.is_empty()
            && let Some(id) = self.cache.find(pc, variant)
        {
            return Ok(id);
        }
        let scope = &self.config.plan.scope;
        let woven = if scope.covers(pc) { self.inside } else { self.outside };
        let single = alone || variant != Variant::Usual;
        let limits = Limits {
            instructions: self.config.superblock_limit,
            alone: single,
            reserved: woven.reserved(),
            past_calls: !woven.records(),
            accesses: woven.needs_accesses(),
            repeats_alone: woven.tests.is_some(),
            stops: self.stops.places(),
            code: &scope.code,
            once: &self.stop_before,
        };
        let mut superblock = superblock::decode(&self.memory, pc, limits)
            .map_err(|superblock::NotExecutable(at)| Box::new(self.fetch_fault(at)))?;
        let stop = self.stops.places().contains(&pc);
        let marks = if stop { self.marks(pc) } else { None };
        superblock.marks = marks.filter(|_| variant == Variant::Usual).unwrap_or_default();
        let mapping = self.memory.find(pc);
        superblock.reads_on = mapping.is_some_and(|(_, mapping)| allocators::is_c_library(mapping));
        let stop = stop && marks.is_none();
        if !alone {
            self.guard_code(&superblock);
        }
        if self.cache.is_full() {
            self.cache.flush();
            self.define(&Entry::Flush.bytes());
        }
        let (id, shape) = if alone {
            self.cache.add_alone(&superblock, woven, variant, stop)
        } else {
            self.cache.add(&superblock, woven, variant, stop)
        };
        if let Some(shape) = shape {
            self.define(&list::define(&shape));
        }
        Ok(id)
    }

    fn fetch_fault(&self, address: u64) -> SignalInfo {
        let mapped = self.memory.find(address).is_some();
        let code = if mapped { 2 } else { 1 };
        let bits = self.config.quirks.address_bits;
        if !processor::is_canonical(address, bits) {
            SignalInfo::fault(libc::SIGSEGV, libc::SI_KERNEL, 0, (13, 0))
        } else if mapped || address >= processor::user_end(bits) {
            // Of its own half the kernel does not tell what is mapped.
            SignalInfo::fault(libc::SIGSEGV, code, address, (14, 0x15))
        } else {
            SignalInfo::fault(libc::SIGSEGV, code, address, (14, 0x14))
        }
    }
}

/// Starts the guest's first thread; the calling kernel thread becomes it.
pub fn start(fresh: Box<Engine>, thread: Box<Thread>) -> ! {
    install(fresh);
    let thread = Box::into_raw(thread);
    engine().first = thread;
    let mut mask = Mask::default();
    // SAFETY: the kernel writes one mask; the thread was just made.
    unsafe {
        syscall!(libc::SYS_rt_sigprocmask, libc::SIG_BLOCK, 0, &raw mut mask, 8);
        (*thread).mask = mask;
        (*thread).block.set_owner(thread);
        (*thread).block.use_for_signals();
    }
    engine().actions.take_over();
    // SAFETY: just made, and not running yet.
    record::region::start(engine(), unsafe { &mut *thread });
    files::keep_spare();
    engine().announce(0..layout::USER_END);
    run(thread as u64)
}

/// The life of a kernel thread that carries a guest thread.
pub extern "C" fn run(thread: u64) -> ! {
    let thread = thread as *mut Thread;
    // SAFETY: whoever started this kernel thread made the thread for it.
    unsafe {
        (*thread).tid = sys::gettid();
        (*thread).block.use_for_signals();
        if (*thread).admitted {
            baton::await_grant(thread);
            resume(thread);
        } else {
            take_baton(thread);
        }
        signal::apply((*thread).mask);
    }
    let mut came_by = CameBy::Elsewhere;
    loop {
        // SAFETY: only this kernel thread frees it, at its end.
        let thread = unsafe { &mut *thread };
        record::region::look(thread);
        let (alone, stops) = record::cut(engine());
        if alone {
            engine().alone = Some(cpu().registers.pc);
        }
        if stops {
            thread.preempt = true;
            thread.attention = 1;
        }
        came_by = step(thread, came_by);
    }
}

/// How a thread came to its pc.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum CameBy {
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
        resume(thread);
    }
}

/// The thread has the baton: brings its state in.
///
/// # Safety
/// `thread` must be the calling thread's own.
pub unsafe fn resume(thread: *mut Thread) {
    // SAFETY: the caller's promise.
    unsafe {
        RUNNING.store(thread, Ordering::Relaxed);
        (*thread).move_in();
        let engine = engine();
        record::tree::takes(engine);
        if let Some(recorder) = &mut engine.recorder {
            recorder.switched((*thread).tid);
        }
        if let Some(ring) = &engine.ring {
            ring.running((*thread).tid);
        }
        engine.record_thread((*thread).tid);
    }
}

/// Puts the thread's state away and lets others run.
pub fn drop_baton(thread: &mut Thread) {
    record::tree::lets_go(engine(), thread);
    let next = record::next(engine());
    thread.move_out();
    RUNNING.store(null_mut(), Ordering::Relaxed);
    baton::release_to(next);
}

/// From one entry into translated code to the next.
pub fn step(thread: &mut Thread, came_by: CameBy) -> CameBy {
    let mut came_by = came_by;
    if engine().take_orders() {
        came_by = CameBy::Elsewhere;
    }
    // What the stream says is about to happen comes before any signal.
    let looked_after = thread.looked_after.take_if(|(pc, _)| *pc == cpu().registers.pc);
    if looked_after.is_some() {
        cpu().attention = 0;
    } else if cpu().attention != 0 || thread.attention != 0 {
        attend(thread);
        came_by = CameBy::Elsewhere;
    }
    if vsyscall::is_one(cpu().registers.pc) {
        vsyscall::make(thread);
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
    let mut variant = looked_after.map_or(Variant::Usual, |(_, variant)| variant);
    let mut reached = looked_after.is_some();
    if !reached && engine.stops.places().contains(&pc) && engine.marks(pc).is_none() {
        match engine.reach(thread, pc) {
            Reached::Moved => {
                engine.alone = None;
                cpu().registers.flags |= traced;
                return CameBy::Elsewhere;
            }
            Reached::On(with) => variant = with,
        }
        reached = true;
    }
    let id = match engine.translation(pc, variant) {
        Ok(id) => id,
        Err(info) => {
            engine.alone = None;
            engine.stop_before.clear();
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
    engine.listed = None;
    if engine.cache.fragment(id).explicit {
        reached |= engine.look_after(thread, looked_after.is_some());
    }
    let entry = engine.cache.fragment(id).body();
    // SAFETY: a live translation of the code at the guest's pc.
    unsafe { cpu::enter_cache(entry) };
    if reached && !has_executed(thread) {
        let again = if variant == Variant::Usual { Variant::Untested } else { variant };
        thread.looked_after = Some((pc, again));
    }
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
    if !std::mem::take(&mut engine.stop_before).is_empty() {
        left_cache(thread);
        engine.cache.drop_range(pc, pc + 1);
        return CameBy::Elsewhere;
    }
    left_cache(thread)
}

/// Whether translated code was left with at least one instruction executed, or by its fault.
fn has_executed(thread: &Thread) -> bool {
    let at_start = thread.left_in.is_none_or(|left| left.index == 0 && !left.repeating);
    cpu().exit != EXIT_ATTENTION || !at_start
}

impl Engine {
    /// An instruction whose accesses only the values of its registers tell is about to execute.
    /// Whether events say so already.
    fn look_after(&mut self, thread: &Thread, looked_after: bool) -> bool {
        let (lists, tests) = (self.inside.records_accesses(), self.inside.tests.is_some());
        let repeats = tests && decode_one(cpu().registers.pc).is_string_instruction();
        self.listed = (lists && !repeats).then(|| record_accesses(thread));
        if repeats {
            self.repeating = Some(Box::new(cpu().registers));
        } else if tests && !looked_after {
            screens::look(thread, Stage::Accesses);
        }
        tests && !repeats
    }
}

impl Engine {
    /// An indirect branch has found that its target is no address: on some processors a call has
    /// pushed its return address by then.
    fn push_before_fault(&mut self) {
        let registers = &cpu().registers;
        let branch = decode_one(registers.pc);
        if !(self.config.quirks.call_pushes && branch.is_call_near_indirect()) {
            return;
        }
        let slot = registers.general[4].wrapping_sub(8);
        let bytes = branch.next_ip().to_le_bytes();
        if !Checked.write(slot, &bytes) {
            self.unguard(slot & !0xfff, (slot & !0xfff) + 8192);
            // A stack that cannot be written to at all stays as it is.
            Checked.write(slot, &bytes);
        }
    }
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

/// Translated code has come back: find out why.
fn left_cache(thread: &mut Thread) -> CameBy {
    let exit = cpu().exit;
    if let Some(before) = engine().repeating.take() {
        screens::look_back(&before);
    }
    if let Some(left) = thread.left_in.take() {
        match (engine().listed, thread.fault.as_ref().is_some_and(is_trap)) {
            (Some(listed), _) => record_cut(thread, listed),
            (None, true) => record_partial(Left { index: left.index + 1, ..left }),
            (None, false) => record_partial(left),
        }
    }
    let countdown =
        if engine().config.plan.observe.ticks { clock::look() } else { Countdown::Runs };
    if countdown == Countdown::Over && engine().replayer.is_none() {
        slice_ended(thread);
    }
    match u32::try_from(exit).unwrap_or(EXIT_FAULT) {
        exit if u64::from(exit) == EXIT_ATTENTION => {}
        EXIT_INDIRECT => {
            cpu().registers.pc = cpu().target;
            return CameBy::Indirect;
        }
        EXIT_SUSPECT => {
            screens::look(thread, Stage::Accesses);
            thread.looked_after = Some((cpu().registers.pc, Variant::Untested));
        }
        EXIT_FAULT => {
            if let Some(info) = thread.fault.take() {
                if std::mem::take(&mut thread.branched_nowhere) {
                    engine().push_before_fault();
                }
                fault(thread, info);
            }
        }
        _ => match engine().cache.exit(exit) {
            ExitKind::Direct(pc) => {
                cpu().registers.pc = pc;
                // The way out when a cell is empty must stay one: it is not linked.
                let counted = countdown != Countdown::Runs;
                return if counted { CameBy::Elsewhere } else { CameBy::Exit(exit) };
            }
            ExitKind::Syscall(next) => system_call(thread, next),
            ExitKind::Emulate(pc) => emulate_one(thread, pc),
            ExitKind::Refuse(pc) => refuse(pc),
            ExitKind::Suspect(pc, stage) => {
                cpu().registers.pc = pc;
                screens::look(thread, stage);
                thread.looked_after = Some((pc, Variant::Untested));
            }
            ExitKind::Learn(pc) => {
                cpu().registers.pc = pc;
                engine().learn(thread, pc);
            }
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
    let asks = emulate::asks_outside(&instruction);
    if asks && engine().replayer.is_some() {
        return replay::answer(instruction.next_ip());
    }
    let before = cpu().registers;
    let base_bits = engine().config.quirks.base_bits;
    match emulate::emulate(&instruction, &mut cpu().registers, base_bits) {
        Emulated::Done if emulate::moves_segment(&instruction) => {
            engine().record_thread(thread.tid);
        }
        Emulated::Done if asks => record::answered(engine(), &before),
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

/// The running thread has had its ticks.
fn slice_ended(thread: &mut Thread) {
    let left = record::region::left(engine());
    let stops = match &mut engine().recorder {
        Some(recorder) => record::slice_ended(recorder, thread.tid, left),
        None => {
            clock::arm(SLICE_TICKS);
            true
        }
    };
    thread.preempt |= stops;
    thread.attention = 1;
}

/// Something wants the thread: a signal, or others the baton.
fn attend(thread: &mut Thread) {
    cpu().attention = 0;
    thread.attention = 0;
    while let Some(info) = thread.inbox.take(Mask(u64::MAX)) {
        deliver(thread, info);
    }
    if !std::mem::replace(&mut thread.preempt, false) {
        return;
    }
    if record::tree::is_wanted(engine()) {
        record::tree::gives_way(engine());
    }
    if engine().attached.is_by(thread) {
        return;
    }
    if baton::wanted() && !record::keeps_running(engine(), thread.tid) {
        record::stopped(engine());
        let next = record::next(engine());
        thread.move_out();
        RUNNING.store(null_mut(), Ordering::Relaxed);
        // SAFETY: our own thread, which holds the baton.
        unsafe {
            baton::hand_over(thread, next);
            resume(thread);
        }
    }
}

/// Tells the user something, once the guest goes on.
pub fn note(text: &str) {
    report::send(&Message::Note(text.to_owned()));
}
