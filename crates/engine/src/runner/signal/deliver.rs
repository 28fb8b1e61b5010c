//! Signals and faults on their way to the guest: its handlers, or its end.

use super::{Action, Mask, SignalInfo, TRAP_TRACE, frame, is_deadly, is_fault};
use crate::runner::context::Context;
use crate::runner::engine::Engine;
use crate::runner::engine::dispatch::drop_baton;
use crate::runner::thread::Thread;
use crate::runner::translate::lower::Variant;
use crate::runner::{guest, record, replay, report, signal, traced};
use crate::sys::{self, syscall};
use iced_x86::Mnemonic;
use recording::log::Ending;

/// Brings a signal to the guest.
pub fn deliver(context: &mut Context, info: SignalInfo) {
    let (engine, thread) = context.parts();
    let signal = info.number();
    let suspended = std::mem::replace(&mut thread.signals.suspended, false);
    if thread.signals.mask.has(signal) && !suspended {
        if signal::can_be_pending(signal) {
            signal::send_back(&info, sys::getpid(), thread.tid());
        } else {
            thread.signals.held.put(info);
        }
        signal::apply(thread.signals.mask);
        return;
    }
    let action = *engine.actions_of(thread).get(signal);
    if !action.is_handler() {
        if action.handler == signal::DEFAULT && is_deadly(signal) {
            record::stopped(engine);
            die_of(context, &info);
        }
        if action.handler == signal::DEFAULT {
            // Stopping and continuing are the kernel's to do.
            signal::send_back(&info, sys::getpid(), thread.tid());
        }
        signal::apply(thread.signals.mask);
        return;
    }
    record::signal(engine, &info);
    enter_handler(context, &action, &info);
}

/// Runs the guest's handler for a signal.
pub fn handle(context: &mut Context, info: &SignalInfo) {
    let (engine, thread) = context.parts();
    let action = *engine.actions_of(thread).get(info.number());
    enter_handler(context, &action, info);
}

fn enter_handler(context: &mut Context, action: &Action, info: &SignalInfo) {
    let (engine, thread) = context.parts();
    let (pc, stack) = (engine.cpu.registers.pc, engine.cpu.registers.general[4]);
    let push = |engine: &mut Engine, thread: &mut Thread| {
        let registers = &mut engine.cpu.registers;
        frame::push(registers, thread, action, info, &guest::Checked).is_ok()
    };
    let pushed = push(engine, thread) || engine.unguard_all() && push(engine, thread);
    if !pushed {
        let fault = SignalInfo::fault(libc::SIGSEGV, libc::SI_KERNEL, 0, (14, 6));
        die_of(context, &fault);
    }
    engine.record_handler(pc, stack);
    let signal = info.number();
    if !action.has(libc::SA_NODEFER) {
        thread.signals.mask.0 |= 1 << (signal - 1);
    }
    thread.signals.mask = Mask(thread.signals.mask.0 | action.mask).without_unblockable();
    if action.has(libc::SA_RESETHAND) {
        let reset = Action { handler: signal::DEFAULT, ..*action };
        engine.actions_of(thread).set(signal, reset);
    }
    signal::apply(thread.signals.mask);
}

/// A fault of the guest's own code.
pub fn fault(context: &mut Context, info: SignalInfo) {
    let (engine, thread) = context.parts();
    if is_guarded_write(engine, &info) {
        let page = info.address() & !0xfff;
        engine.unguard(page, page + 4096);
        // A wide write may touch the next page as well; it will fault again. If the writing
        // instruction is itself on the page, it must run before the page is guarded again.
        try_alone(engine, thread);
        return;
    }
    if is_write(&info) && engine.decode_one(engine.cpu.registers.pc).mnemonic() == Mnemonic::Ret {
        // Our own write (translate/lower/returns.rs), to a stack that can only be read.
        try_alone(engine, thread);
        return;
    }
    let mut info = info;
    if is_trap(&info) {
        // The processor reports these behind the instruction.
        engine.cpu.registers.pc = engine.decode_one(engine.cpu.registers.pc).next_ip();
        if info.trap.0 == 1 {
            info.set_address(engine.cpu.registers.pc);
        }
    }
    let signal = info.number();
    if !traced::lets_fault(context, &info) {
        return;
    }
    let (engine, thread) = context.parts();
    let action = *engine.actions_of(thread).get(signal);
    if !action.is_handler() || thread.signals.mask.has(signal) {
        die_of(context, &info);
    }
    enter_handler(context, &action, &info);
}

/// The instruction that has faulted runs again, by itself. If it is at a stop, what was to happen
/// before it has happened.
fn try_alone(engine: &mut Engine, thread: &mut Thread) {
    let pc = engine.cpu.registers.pc;
    engine.code.alone = Some(pc);
    if engine.observed.stops.places().contains(&pc) {
        thread.looked_after = Some((pc, Variant::Untested));
    }
}

/// INT3 and INT1 are reported when they have executed, unlike faults.
pub fn is_trap(info: &SignalInfo) -> bool {
    info.number() == libc::SIGTRAP && matches!(info.trap.0, 1 | 3) && info.code() != TRAP_TRACE
}

fn is_guarded_write(engine: &Engine, info: &SignalInfo) -> bool {
    is_write(info) && engine.code.guarded.contains_key(&(info.address() & !0xfff))
}

/// Whether a page that may not be written to was.
fn is_write(info: &SignalInfo) -> bool {
    info.number() == libc::SIGSEGV && info.trap.0 == 14 && info.trap.1 & 2 != 0
}

/// The guest dies of a signal, and so does this process.
pub fn die_of(context: &mut Context, info: &SignalInfo) -> ! {
    let (engine, thread) = context.parts();
    let signal = info.number();
    if is_fault(signal) || signal == libc::SIGABRT {
        report::crash(info, &engine.cpu.registers, thread, engine);
    }
    if engine.log.replayer.is_some() {
        replay::died(context, signal);
    }
    if thread.foreign {
        engine.threads.attached.leaves(thread);
        record::leaves_by_signal(engine);
        drop_baton(context);
    } else {
        engine.finish_events();
        record::ended(engine, Ending::Signal(signal));
    }
    traced::ends(signal);
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
