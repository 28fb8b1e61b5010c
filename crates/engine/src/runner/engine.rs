//! The dispatcher: takes a guest thread from one translation to the next, and in between does
//! what translated code cannot.

use super::cache::{Cache, Id};
use super::cpu::{self, EXIT_ATTENTION, cpu};
use super::emulate::{self, Emulated};
use super::events::Ring;
use super::load::Arguments;
use super::memory::Memory;
use super::signal::{Action, Actions, Mask, SignalInfo, TRAP_TRACE, frame, is_fault};
use super::sys::{self, syscall};
use super::syscall::{self as syscalls, Outcome};
use super::thread::{Left, Thread};
use super::translate::lower::{EXIT_FAULT, EXIT_INDIRECT, ExitKind};
use super::translate::superblock::{self, CodeSource, Limits};
use super::{baton, guest, report, signal};
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
    fn translation(&mut self, pc: u64) -> Result<Id, Box<SignalInfo>> {
        let alone = self.alone == Some(pc);
        if !alone && let Some(id) = self.cache.find(pc) {
            return Ok(id);
        }
        let plan = self.config.plan;
        let limits = Limits {
            instructions: if alone { 1 } else { self.config.superblock_limit },
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
        let (id, shape) = self.cache.add(&superblock, plan);
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

    /// Appends a record to the event stream, if there is one.
    pub fn record(&mut self, bytes: &[u8]) {
        if let Some(ring) = &mut self.ring {
            ring.append(bytes);
        }
    }

    /// Says which thread runs, and where its segments are.
    pub fn record_thread(&mut self, thread: i32) {
        if self.ring.is_some() {
            let mut bytes = record::THREAD.to_le_bytes().to_vec();
            bytes.extend((thread as u32).to_le_bytes());
            bytes.extend(cpu().registers.fs.to_le_bytes());
            bytes.extend(cpu::gs_base().to_le_bytes());
            self.record(&bytes);
        }
    }

    fn record_syscall(&mut self, number: u64, arguments: [u64; 6], answer: i64) {
        if self.ring.is_some() {
            let mut bytes = record::SYSCALL.to_le_bytes().to_vec();
            bytes.extend(number.to_le_bytes());
            bytes.extend(arguments.iter().flat_map(|argument| argument.to_le_bytes()));
            bytes.extend(answer.to_le_bytes());
            self.record(&bytes);
        }
    }

    /// Hands the last events over before the process ends or becomes another.
    pub fn finish_events(&mut self) {
        if let Some(ring) = &mut self.ring {
            ring.finish();
        }
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

    /// Code on a writable page may change: the page is made read-only until it is written to.
    fn guard_code(&mut self, superblock: &superblock::Superblock) {
        for guest in &superblock.guests {
            for address in [guest.pc(), guest.instruction.next_ip() - 1] {
                let page = address & !0xfff;
                let writable = self
                    .memory
                    .find(page)
                    .is_some_and(|(_, mapping)| mapping.protection & libc::PROT_WRITE != 0);
                if writable {
                    self.guard(page, page);
                }
                if !self.cache.has_page(page) {
                    for alias in self.memory.writable_aliases(page) {
                        self.guard(alias, page);
                    }
                }
            }
        }
    }

    fn guard(&mut self, page: u64, code: u64) {
        if self.guarded.insert(page, code).is_none() {
            let protection = libc::PROT_READ | libc::PROT_EXEC;
            // SAFETY: a page of the guest's, made less accessible than it asked for.
            unsafe { syscall!(libc::SYS_mprotect, page, 4096, protection) };
        }
    }

    /// Undoes [`Self::guard_code`] for a range. Whether anything was guarded.
    pub fn unguard(&mut self, start: u64, end: u64) -> bool {
        let pages: Vec<(u64, u64)> =
            self.guarded.range(start & !0xfff..end).map(|(page, code)| (*page, *code)).collect();
        for (page, code) in &pages {
            self.guarded.remove(page);
            self.cache.drop_range(*code, *code + 4096);
            if let Some((_, mapping)) = self.memory.find(*page) {
                let protection = mapping.protection;
                // SAFETY: restores what the guest asked for.
                unsafe { syscall!(libc::SYS_mprotect, *page, 4096, protection) };
            }
        }
        !pages.is_empty()
    }

    /// Undoes [`Self::guard_code`] everywhere.
    pub fn unguard_all(&mut self) -> bool {
        self.unguard(0, u64::MAX)
    }

    /// Forgets translations of code that is about to change or go away.
    pub fn code_changes(&mut self, start: u64, end: u64) {
        let pages: Vec<u64> =
            self.guarded.range(start & !0xfff..end).map(|(page, _)| *page).collect();
        for page in pages {
            self.guarded.remove(&page);
        }
        self.cache.drop_range(start, end);
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
    syscalls::files::keep_spare();
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
    let id = match engine.translation(cpu().registers.pc) {
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
    if let Some(pc) = engine.alone.take() {
        cpu().registers.flags |= traced;
        let completed = ![EXIT_ATTENTION, u64::from(EXIT_FAULT)].contains(&cpu().exit);
        left_cache(thread);
        engine.cache.drop_range(pc, pc + 16);
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

/// A superblock was left in the middle.
fn record_partial(left: Left) {
    let engine = engine();
    let Some(observed) = engine.cache.fragment(left.fragment).observed() else { return };
    let Some(ring) = &mut engine.ring else { return };
    let before = observed.fields_before.get(left.index as usize);
    let before = before.or(observed.fields_before.last()).copied().unwrap_or(0);
    let repeat = observed.repeats.iter().find(|(index, _)| *index == left.index);
    let general = &cpu().registers.general;
    let [count, source, destination] = [1, 6, 7].map(|register| general[register]);
    match repeat.map(|(_, moves)| general[*moves as usize]) {
        // What it started with is in the record already.
        Some(moved) if left.repeating => {
            ring.partial(observed.first_exit, left.index, before + 3, &[count, moved]);
        }
        Some(moved) if left.index > 0 => {
            let none = [count, source, destination, count, moved];
            ring.partial(observed.first_exit, left.index, before, &none);
        }
        None if left.index > 0 => ring.partial(observed.first_exit, left.index, before, &[]),
        _ => {}
    }
}

/// The accesses of the instruction that is next, for those where only its registers tell. How
/// many there are.
fn record_accesses(thread: &Thread) -> usize {
    let mut bytes = vec![0; 8];
    let count = list_accesses(thread, &mut bytes);
    let length = bytes.len() as u32 - 8;
    bytes[0..4].copy_from_slice(&record::ACCESS.to_le_bytes());
    bytes[4..8].copy_from_slice(&length.to_le_bytes());
    engine().record(&bytes);
    count
}

fn list_accesses(thread: &Thread, out: &mut Vec<u8>) -> usize {
    let instruction = decode_one(cpu().registers.pc);
    super::explicit::accesses(&instruction, &cpu().registers, &thread.vector, out)
}

/// The instruction whose accesses were listed has not completed. A gather switches off in its mask
/// what it has read; all others have done nothing.
fn record_cut(thread: &Thread, listed: usize) {
    let pc = cpu().registers.pc;
    let left = list_accesses(thread, &mut Vec::new());
    let mut bytes = record::CUT.to_le_bytes().to_vec();
    bytes.extend(pc.to_le_bytes());
    bytes.extend((listed.saturating_sub(left) as u32).to_le_bytes());
    engine().record(&bytes);
}

fn decode_one(pc: u64) -> iced_x86::Instruction {
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

/// Brings a signal to the guest.
pub fn deliver(thread: &mut Thread, info: SignalInfo) {
    let signal = info.number();
    let suspended = std::mem::replace(&mut thread.suspended, false);
    if thread.mask.has(signal) && !suspended {
        if signal::can_be_pending(signal) {
            signal::send_back(&info, sys::getpid(), thread.tid);
        } else {
            thread.held.put(info);
        }
        signal::apply(thread.mask);
        return;
    }
    let action = *engine().actions_of(thread).get(signal);
    if !action.is_handler() {
        if action.handler == signal::DEFAULT && is_deadly(signal) {
            die_of(thread, &info);
        }
        if action.handler == signal::DEFAULT {
            // Stopping and continuing are the kernel's to do.
            signal::send_back(&info, sys::getpid(), thread.tid);
        }
        signal::apply(thread.mask);
        return;
    }
    enter_handler(thread, &action, &info);
}

/// Whether a signal ends a process that does nothing about it.
fn is_deadly(signal: i32) -> bool {
    !matches!(
        signal,
        libc::SIGCHLD
            | libc::SIGURG
            | libc::SIGWINCH
            | libc::SIGCONT
            | libc::SIGTSTP
            | libc::SIGTTIN
            | libc::SIGTTOU
    )
}

fn enter_handler(thread: &mut Thread, action: &Action, info: &SignalInfo) {
    let pushed = frame::push(&mut cpu().registers, thread, action, info, &guest::Checked).is_ok()
        || engine().unguard_all()
            && frame::push(&mut cpu().registers, thread, action, info, &guest::Checked).is_ok();
    if !pushed {
        let fault = SignalInfo::fault(libc::SIGSEGV, libc::SI_KERNEL, 0, (14, 6));
        die_of(thread, &fault);
    }
    let signal = info.number();
    if !action.has(libc::SA_NODEFER) {
        thread.mask.0 |= 1 << (signal - 1);
    }
    thread.mask = Mask(thread.mask.0 | action.mask).without_unblockable();
    if action.has(libc::SA_RESETHAND) {
        let reset = Action { handler: signal::DEFAULT, ..*action };
        engine().actions_of(thread).set(signal, reset);
    }
    signal::apply(thread.mask);
}

/// A fault of the guest's own code.
pub fn fault(thread: &mut Thread, info: SignalInfo) {
    if is_guarded_write(&info) {
        let page = info.address() & !0xfff;
        engine().unguard(page, page + 4096);
        // A wide write may touch the next page as well; it will fault again. If the writing
        // instruction is itself on the page, it must run before the page is guarded again.
        engine().alone = Some(cpu().registers.pc);
        return;
    }
    let mut info = info;
    if is_trap(&info) {
        // The processor reports these behind the instruction.
        cpu().registers.pc = decode_one(cpu().registers.pc).next_ip();
        if info.trap.0 == 1 {
            info.set_address(cpu().registers.pc);
        }
    }
    let signal = info.number();
    let action = *engine().actions_of(thread).get(signal);
    if !action.is_handler() || thread.mask.has(signal) {
        die_of(thread, &info);
    }
    enter_handler(thread, &action, &info);
}

/// INT3 and INT1 are reported when they have executed, unlike faults.
fn is_trap(info: &SignalInfo) -> bool {
    info.number() == libc::SIGTRAP && matches!(info.trap.0, 1 | 3) && info.code() != TRAP_TRACE
}

fn is_guarded_write(info: &SignalInfo) -> bool {
    info.number() == libc::SIGSEGV
        && info.trap.0 == 14
        && info.trap.1 & 2 != 0
        && engine().guarded.contains_key(&(info.address() & !0xfff))
}

/// The guest dies of a signal, and so does this process.
pub fn die_of(thread: &mut Thread, info: &SignalInfo) -> ! {
    let signal = info.number();
    if is_fault(signal) || signal == libc::SIGABRT {
        report::crash(info, &cpu().registers, thread, engine());
    }
    if thread.foreign {
        drop_baton(thread);
    } else {
        engine().finish_events();
    }
    let action = Action::default();
    let mask = Mask(1 << (signal - 1));
    // SAFETY: the kernel only reads both; this ends the process.
    unsafe {
        syscall!(libc::SYS_rt_sigaction, signal, &raw const action, 0, 8);
        syscall!(libc::SYS_tgkill, sys::getpid(), sys::gettid(), signal);
        syscall!(libc::SYS_rt_sigprocmask, libc::SIG_UNBLOCK, &raw const mask, 0, 8);
    }
    // The default action of what comes here is to end the process; should it not, we do.
    sys::exit_group(128 + signal)
}

/// A system call of the guest's.
fn system_call(thread: &mut Thread, next: u64) {
    let registers = &mut cpu().registers;
    let number = registers.general[0];
    let arguments = [7, 6, 2, 10, 8, 9].map(|register| registers.general[register]);
    registers.pc = next;
    registers.general[1] = next;
    registers.general[11] = registers.flags;
    if matches!(number as i64, libc::SYS_exit | libc::SYS_exit_group) {
        engine().record_syscall(number, arguments, 0);
    }
    let outcome = syscalls::dispatch(engine(), thread, number, arguments);
    let answer = match outcome {
        Outcome::Answer(answer) => answer,
        Outcome::Resumed => {
            let answer = cpu().registers.general[0] as i64;
            engine().record_syscall(number, arguments, answer);
            return;
        }
        Outcome::Kernel { number, arguments, blocks } => {
            let mut answer = kernel(thread, number, arguments, blocks);
            if answer == -i64::from(libc::EFAULT) && engine().unguard_all() {
                answer = kernel(thread, number, arguments, blocks);
            }
            answer
        }
    };
    if answer == cpu::NOT_STARTED {
        // A signal came first: the call is made again when its handler has returned.
        cpu().registers.pc = next - 2;
        return;
    }
    if answer != -i64::from(libc::EINTR) {
        thread.suspended = false;
    }
    engine().record_syscall(number, arguments, answer);
    if number as i64 == libc::SYS_arch_prctl {
        engine().record_thread(thread.tid);
    }
    syscalls::after(engine(), number, arguments, answer);
    cpu().registers.general[0] = answer as u64;
}

fn kernel(thread: &mut Thread, number: u64, arguments: [u64; 6], blocks: bool) -> i64 {
    let alone = engine().threads.is_empty();
    if !blocks || alone {
        // SAFETY: the call is the guest's own, on the guest's own memory and descriptors; the
        // table of system calls keeps it away from ours.
        return unsafe { cpu::guest_syscall(number, arguments, &raw const thread.attention) };
    }
    drop_baton(thread);
    let pointer: *mut Thread = thread;
    // SAFETY: as above; the thread is our own, and nothing of the engine is borrowed.
    unsafe {
        let answer = cpu::guest_syscall(number, arguments, &raw const (*pointer).attention);
        take_baton(pointer);
        answer
    }
}

/// Tells the user something, once the guest goes on.
pub fn note(text: &str) {
    report::send(&Message::Note(text.to_owned()));
}
