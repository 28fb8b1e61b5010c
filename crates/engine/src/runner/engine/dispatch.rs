//! The dispatcher: takes a guest thread from one translation to the next, and in between does what
//! translated code cannot.

use super::Engine;
use super::left::left_cache;
use crate::layout;
use crate::runner::cache::Id;
use crate::runner::context::{self, Context};
use crate::runner::cpu::{self, ATTENTION, EXIT_ATTENTION};
use crate::runner::screens::{self, Stage};
use crate::runner::signal::deliver::{deliver, fault};
use crate::runner::signal::{self, Mask, SignalInfo, TRAP_TRACE};
use crate::runner::stops::Reached;
use crate::runner::stream::record_accesses;
use crate::runner::syscall::files;
use crate::runner::thread::Thread;
use crate::runner::translate::lower::{EXIT_FAULT, Variant};
use crate::runner::{baton, own, record, traced, vsyscall};
use crate::sys::{self, syscall};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{Ordering, compiler_fence};

/// Starts the guest's first thread; the calling kernel thread becomes it.
pub fn start(mut engine: Box<Engine>, mut thread: Box<Thread>) -> ! {
    let mut mask = Mask::default();
    // SAFETY: the kernel writes one mask.
    unsafe { syscall!(libc::SYS_rt_sigprocmask, libc::SIG_BLOCK, 0, &raw mut mask, 8) };
    thread.signals.mask = mask;
    thread.block.set_owner(Arc::as_ptr(&thread.shared));
    thread.block.use_for_signals();
    engine.process.actions.take_over();
    record::region::start(&mut engine, &mut thread);
    files::keep_spare(&engine.config);
    engine.announce(0..layout::USER_END);
    let thread = Box::into_raw(thread);
    engine.threads.first = thread;
    context::install(engine);
    run(thread as u64)
}

/// The life of a kernel thread that carries a guest thread.
pub extern "C" fn run(thread: u64) -> ! {
    let thread = NonNull::new(thread as *mut Thread).expect("whoever starts a thread makes it");
    // SAFETY: whoever started this kernel thread made the thread for it alone, and nobody changes
    // these two fields.
    let (mut context, block, admitted) =
        unsafe { (Context::new(thread), (*thread.as_ptr()).block, (*thread.as_ptr()).admitted) };
    context.shared().tid.store(sys::gettid(), Ordering::Relaxed);
    block.use_for_signals();
    if admitted {
        baton::await_grant(context.shared());
        resume(&mut context);
    } else {
        take_baton(&mut context);
    }
    signal::apply(context.thread().signals.mask);
    let mut came_by = CameBy::Elsewhere;
    loop {
        let (engine, thread) = context.parts();
        record::region::look(engine, thread);
        let (alone, stops) = record::cut(engine);
        if alone {
            engine.code.alone = Some(engine.cpu.registers.pc);
        }
        if stops {
            thread.shared.preempt();
        }
        record::arrives(engine, thread);
        came_by = step(&mut context, came_by);
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
pub fn take_baton(context: &mut Context) {
    // SAFETY: the calling thread's own, which frees it after it has let go of the baton for good.
    unsafe { baton::acquire(context.shared()) };
    resume(context);
}

/// The thread has the baton: brings its state in.
pub fn resume(context: &mut Context) {
    context.runs();
    let (engine, thread) = context.parts();
    thread.move_in(&mut engine.cpu);
    record::tree::takes(engine);
    if let Some(recorder) = &mut engine.log.recorder {
        recorder.switched(&engine.cpu, thread.tid());
    }
    if let Some(ring) = &engine.observed.ring {
        ring.running(thread.tid());
    }
    engine.record_thread(thread.tid());
}

/// Puts the thread's state away and lets others run.
pub fn drop_baton(context: &mut Context) {
    let (engine, thread) = context.parts();
    record::tree::lets_go(engine, thread);
    let next = put_away(context);
    baton::release_to(next);
}

/// Puts the thread's state away; who has the baton next.
fn put_away(context: &mut Context) -> usize {
    let (engine, thread) = context.parts();
    let next = record::next(engine);
    thread.move_out(engine);
    context.stops();
    next
}

/// From one entry into translated code to the next.
pub fn step(context: &mut Context, came_by: CameBy) -> CameBy {
    let mut came_by = came_by;
    if context.engine().take_orders() {
        came_by = CameBy::Elsewhere;
    }
    let pc = context.cpu().registers.pc;
    // What the stream says is about to happen comes before any signal.
    let looked_after = context.thread().looked_after.take_if(|(at, _)| *at == pc);
    if looked_after.is_some() {
        ATTENTION.store(0, Ordering::Relaxed);
    } else if ATTENTION.load(Ordering::Relaxed) != 0 || context.shared().is_wanted() {
        attend(context);
        came_by = CameBy::Elsewhere;
    }
    if vsyscall::is_one(context.cpu().registers.pc) {
        vsyscall::make(context);
        return CameBy::Elsewhere;
    }
    let (engine, thread) = context.parts();
    let mut visit = Visit::begin(engine, looked_after.map(|(_, variant)| variant));
    match visit.prepare(engine, thread, came_by) {
        Ok(id) => visit.enter(context, id),
        Err(stays) => {
            visit.give_up(context.engine());
            if let Stays::Faults(info) = stays {
                fault(context, *info);
            }
            CameBy::Elsewhere
        }
    }
}

/// What the dispatcher knows of the translation that it is about to enter.
struct Visit {
    /// Where it begins.
    pc: u64,
    variant: Variant,
    /// Whether what is to happen before its first instruction had happened already.
    looked_after: bool,
    /// The same, or it has happened in this visit.
    reached: bool,
    /// The trap flag, if the guest steps through itself.
    traced: u64,
    /// How often the cache had been emptied.
    flushes: u64,
}

/// Why no translation is entered.
enum Stays {
    /// The guest is somewhere else now.
    Moved,
    /// The instruction that is next faults.
    Faults(Box<SignalInfo>),
}

impl Visit {
    fn begin(engine: &mut Engine, looked_after: Option<Variant>) -> Self {
        let registers = &mut engine.cpu.registers;
        let (pc, traced) = (registers.pc, registers.flags & TRAP_FLAG);
        if traced != 0 {
            registers.flags &= !TRAP_FLAG;
            engine.code.alone = Some(pc);
        }
        Self {
            pc,
            variant: looked_after.unwrap_or(Variant::Usual),
            looked_after: looked_after.is_some(),
            reached: looked_after.is_some(),
            traced,
            flushes: engine.code.cache.flushes,
        }
    }

    /// Finds or makes the translation, and does what is to happen before it.
    fn prepare(
        &mut self,
        engine: &mut Engine,
        thread: &mut Thread,
        came_by: CameBy,
    ) -> Result<Id, Stays> {
        self.reach(engine, thread)?;
        let id = match engine.translation(self.pc, self.variant) {
            Ok(id) => id,
            Err(info) => return Err(self.faults(engine, *info)),
        };
        match came_by {
            CameBy::Exit(exit) if self.flushes == engine.code.cache.flushes => {
                engine.code.cache.link(exit, id);
            }
            CameBy::Indirect => engine.code.cache.link_indirect(id),
            _ => {}
        }
        engine.observed.listed = None;
        if engine.code.cache.fragment(id).explicit {
            if let Some(info) = own::trespass(engine, thread) {
                return Err(self.faults(engine, info));
            }
            self.reached |= engine.look_after(thread, self.looked_after);
        }
        Ok(id)
    }

    /// If the guest is at a stop: does what is to happen there.
    fn reach(&mut self, engine: &mut Engine, thread: &mut Thread) -> Result<(), Stays> {
        let pc = self.pc;
        if self.reached
            || !engine.observed.stops.places().contains(&pc)
            || engine.marks(pc).is_some()
        {
            return Ok(());
        }
        self.reached = true;
        match engine.reach(thread, pc) {
            Reached::On(variant) => {
                self.variant = variant;
                Ok(())
            }
            Reached::Moved => {
                engine.cpu.registers.flags |= self.traced;
                Err(Stays::Moved)
            }
        }
    }

    fn faults(&self, engine: &mut Engine, info: SignalInfo) -> Stays {
        engine.cpu.registers.flags |= RESUME_FLAG | self.traced;
        Stays::Faults(Box::new(info))
    }

    /// Nothing is entered, so nothing is run by itself either.
    fn give_up(&self, engine: &mut Engine) {
        engine.code.alone = None;
        engine.code.stop_before.clear();
    }

    /// Runs the translation, and sees to whatever it was left for.
    fn enter(self, context: &mut Context, id: Id) -> CameBy {
        let entry = context.engine().code.cache.fragment(id).body();
        // SAFETY: a live translation of the code at the guest's pc.
        unsafe { cpu::enter_cache(context, entry) };
        let (engine, thread) = context.parts();
        if self.reached && !has_executed(engine, thread) {
            let again = match self.variant {
                Variant::Usual => Variant::Untested,
                variant => variant,
            };
            thread.looked_after = Some((self.pc, again));
        }
        if engine.code.alone.take() == Some(self.pc) {
            return self.was_alone(context, id);
        }
        let once = !std::mem::take(&mut engine.code.stop_before).is_empty();
        let came_by = left_cache(context);
        if once {
            context.engine().code.cache.drop_range(self.pc, self.pc + 1);
            return CameBy::Elsewhere;
        }
        came_by
    }

    /// The instruction was run by itself: its translation is used once.
    fn was_alone(self, context: &mut Context, id: Id) -> CameBy {
        let cpu = context.cpu();
        cpu.registers.flags |= self.traced;
        let completed = ![EXIT_ATTENTION, u64::from(EXIT_FAULT)].contains(&cpu.exit);
        left_cache(context);
        let cache = &mut context.engine().code.cache;
        if self.flushes == cache.flushes {
            cache.drop_alone(id);
        }
        if self.traced != 0 && completed {
            trace_trap(context);
        }
        CameBy::Elsewhere
    }
}

/// Whether translated code was left with at least one instruction executed, or by its fault.
fn has_executed(engine: &Engine, thread: &Thread) -> bool {
    let at_start = thread.interrupted.left.is_none_or(|left| left.index == 0 && !left.repeating);
    engine.cpu.exit != EXIT_ATTENTION || !at_start
}

impl Engine {
    /// An instruction whose accesses only the values of its registers tell is about to execute.
    /// Whether events say so already.
    fn look_after(&mut self, thread: &Thread, looked_after: bool) -> bool {
        let (lists, tests) =
            (self.code.inside.records_accesses(), self.code.inside.tests.is_some());
        let repeats = tests && self.decode_one(self.cpu.registers.pc).is_string_instruction();
        self.observed.listed = (lists && !repeats).then(|| record_accesses(self, thread));
        if repeats {
            self.observed.repeating = Some(Box::new(self.cpu.registers));
        } else if tests && !looked_after {
            screens::look(self, thread, Stage::Accesses);
        }
        tests && !repeats
    }
}

/// The guest steps through itself: it has executed one instruction.
fn trace_trap(context: &mut Context) {
    let pc = context.cpu().registers.pc;
    fault(context, SignalInfo::fault(libc::SIGTRAP, TRAP_TRACE, pc, (1, 0)));
}

/// Set by a guest that steps through itself.
const TRAP_FLAG: u64 = 0x100;

/// Set in the flags that a fault saves.
pub const RESUME_FLAG: u64 = 0x1_0000;

/// Something wants the thread: a signal, or others the baton.
fn attend(context: &mut Context) {
    ATTENTION.store(0, Ordering::Relaxed);
    context.shared().attention.store(0, Ordering::Relaxed);
    // A signal that comes from here on is noted in both again; one that came before is in the inbox.
    compiler_fence(Ordering::SeqCst);
    while let Some(info) = context.shared().inbox.take() {
        if traced::lets_pass(context, &info) {
            deliver(context, info);
        }
    }
    traced::stop_if_wanted();
    if !context.shared().preempt.swap(false, Ordering::Relaxed) {
        return;
    }
    let (engine, thread) = context.parts();
    if record::tree::is_wanted(engine) {
        record::tree::gives_way(engine);
    }
    if engine.threads.attached.is_by(thread) {
        return;
    }
    if baton::wanted() && !record::keeps_running(engine, thread.tid()) {
        record::stopped(engine);
        let next = put_away(context);
        // SAFETY: our own thread, which holds the baton.
        unsafe { baton::hand_over(context.shared(), next) };
        resume(context);
    }
}
