//! Translated code has come back to the dispatcher: why, and what that asks for.

use super::Engine;
use super::dispatch::{CameBy, RESUME_FLAG};
use crate::processor;
use crate::runner::clock::{self, Countdown};
use crate::runner::context::Context;
use crate::runner::cpu::EXIT_ATTENTION;
use crate::runner::emulate::{self, Emulated};
use crate::runner::guest::Checked;
use crate::runner::screens::{self, Stage};
use crate::runner::signal::SignalInfo;
use crate::runner::signal::deliver::{fault, is_trap};
use crate::runner::signal::frame::GuestMemory;
use crate::runner::stream::{record_cut, record_partial};
use crate::runner::syscall::make::system_call;
use crate::runner::thread::{Left, Thread};
use crate::runner::translate::lower::{EXIT_FAULT, EXIT_INDIRECT, EXIT_SUSPECT, ExitKind, Variant};
use crate::runner::{own, record, replay, report};

/// Ticks between two preemptions when they are counted.
const SLICE_TICKS: u64 = 1 << 20;

/// Translated code has come back: find out why.
pub fn left_cache(context: &mut Context) -> CameBy {
    let (engine, thread) = context.parts();
    let exit = engine.cpu.exit;
    record_what_was_left(engine, thread);
    let ticks = engine.config.plan.observe.ticks;
    let countdown = if ticks { clock::look(&mut engine.cpu) } else { Countdown::Runs };
    if countdown == Countdown::Over && engine.log.replayer.is_none() {
        slice_ended(engine, thread);
    }
    match u32::try_from(exit).unwrap_or(EXIT_FAULT) {
        exit if u64::from(exit) == EXIT_ATTENTION => {}
        EXIT_INDIRECT => {
            engine.cpu.registers.pc = engine.cpu.target;
            if engine.code.inside.tests.is_some() {
                engine.look_at_return();
            }
            return CameBy::Indirect;
        }
        EXIT_SUSPECT => suspected(context, Stage::Accesses),
        EXIT_FAULT => {
            if let Some(mut info) = thread.interrupted.fault.take() {
                if std::mem::take(&mut thread.interrupted.branched_nowhere)
                    && let Some(push) = engine.push_before_fault()
                {
                    info = push;
                }
                fault(context, info);
            }
        }
        _ => {
            let kind = engine.code.cache.exit(exit);
            return left_by(context, kind, (exit, countdown));
        }
    }
    CameBy::Elsewhere
}

/// A superblock may have been left in the middle, and an instruction with a list of accesses not
/// have made all of them.
fn record_what_was_left(engine: &mut Engine, thread: &mut Thread) {
    if let Some(before) = engine.observed.repeating.take() {
        screens::look_back(engine, &before);
    }
    if let Some(left) = thread.interrupted.left.take() {
        match (engine.observed.listed, thread.interrupted.fault.as_ref().is_some_and(is_trap)) {
            (Some(listed), _) => record_cut(engine, thread, listed),
            (None, true) => record_partial(engine, Left { index: left.index + 1, ..left }),
            (None, false) => record_partial(engine, left),
        }
    }
}

/// Translated code was left by an exit of its own.
fn left_by(context: &mut Context, kind: ExitKind, (exit, countdown): (u64, Countdown)) -> CameBy {
    let (engine, thread) = context.parts();
    match kind {
        ExitKind::Direct(pc) => {
            engine.cpu.registers.pc = pc;
            // The way out when a cell is empty must stay one: it is not linked.
            let counted = countdown != Countdown::Runs;
            return if counted { CameBy::Elsewhere } else { CameBy::Exit(exit) };
        }
        ExitKind::Syscall(next) => {
            system_call(context, next);
            let (engine, thread) = context.parts();
            record::event(engine, thread);
        }
        ExitKind::Event(next) => {
            engine.cpu.registers.pc = next;
            record::event(engine, thread);
        }
        ExitKind::Emulate(pc) => emulate_one(context, pc),
        ExitKind::Refuse(pc) => refuse(engine, pc),
        ExitKind::Suspect(pc, stage) => {
            engine.cpu.registers.pc = pc;
            suspected(context, stage);
        }
        ExitKind::Learn(pc) => {
            engine.cpu.registers.pc = pc;
            engine.learn(thread, pc);
        }
        ExitKind::Indirect => {}
    }
    CameBy::Elsewhere
}

/// A test has stopped the instruction that is next: it faults, or is looked at and runs without a test.
fn suspected(context: &mut Context, stage: Stage) {
    let (engine, thread) = context.parts();
    if stage == Stage::Accesses
        && let Some(info) = own::trespass(engine, thread)
    {
        engine.cpu.registers.flags |= RESUME_FLAG;
        return fault(context, info);
    }
    screens::look(engine, thread, stage);
    thread.looked_after = Some((engine.cpu.registers.pc, Variant::Untested));
}

fn emulate_one(context: &mut Context, pc: u64) {
    let engine = context.engine();
    let instruction = engine.decode_one(pc);
    let asks = emulate::asks_outside(&instruction);
    if asks && replay::answers(engine) {
        return replay::answer(context, instruction.next_ip());
    }
    let (engine, thread) = context.parts();
    let before = engine.cpu.registers;
    let base_bits = engine.config.quirks.base_bits;
    match emulate::emulate(&instruction, &mut engine.cpu.registers, base_bits) {
        Emulated::Done if emulate::moves_segment(&instruction) => {
            engine.record_thread(thread.tid());
        }
        Emulated::Done if asks => record::answered(engine, &before),
        Emulated::Done => {}
        Emulated::Fault => {
            engine.cpu.registers.pc = pc;
            engine.cpu.registers.flags |= RESUME_FLAG;
            fault(context, SignalInfo::fault(libc::SIGSEGV, libc::SI_KERNEL, 0, (13, 0)));
        }
        Emulated::Unknown => refuse(engine, pc),
    }
}

fn refuse(engine: &Engine, pc: u64) -> ! {
    let instruction = engine.decode_one(pc);
    let mnemonic = format!("{:?}", instruction.mnemonic()).to_lowercase();
    report::refuse(
        &format!(
            "the guest executed `{mnemonic}`, which CPUID does not offer and the engine does not run"
        ),
        pc,
    )
}

/// The running thread has had its ticks.
fn slice_ended(engine: &mut Engine, thread: &mut Thread) {
    let left = record::region::left(engine);
    let stops = match &mut engine.log.recorder {
        Some(recorder) => recorder.slice_ended(&mut engine.cpu, thread.tid(), left),
        None => {
            clock::arm(&mut engine.cpu, SLICE_TICKS);
            true
        }
    };
    if stops {
        thread.shared.preempt();
    } else {
        thread.shared.attend();
    }
}

impl Engine {
    /// An indirect branch has found that its target is no address. A call faults at its stack first, where that takes no
    /// return address; on some processors it has pushed it by the time it faults at the target.
    fn push_before_fault(&mut self) -> Option<SignalInfo> {
        let registers = &self.cpu.registers;
        let branch = self.decode_one(registers.pc);
        if !branch.is_call_near_indirect() {
            return None;
        }
        let slot = registers.general[4].wrapping_sub(8);
        let mut bytes = branch.next_ip().to_le_bytes();
        if !self.config.quirks.call_pushes && !Checked.read(slot, &mut bytes) {
            return Some(self.stack_fault(slot));
        }
        if Checked.write(slot, &bytes) {
            return None;
        }
        self.unguard(slot & !0xfff, (slot & !0xfff) + 8192);
        if Checked.write(slot, &bytes) { None } else { Some(self.stack_fault(slot)) }
    }

    /// How a push to a slot faults that cannot be written to.
    fn stack_fault(&self, slot: u64) -> SignalInfo {
        const WRITE_BY_USER: u64 = 6;
        const PRESENT: u64 = 1;
        let bits = self.config.quirks.address_bits;
        if !processor::is_canonical(slot, bits) {
            return SignalInfo::fault(libc::SIGBUS, libc::SI_KERNEL, 0, (12, 0));
        }
        let mapping = self.process.memory.find(slot).map(|(_, mapping)| mapping);
        // Memory that may be read is taken to be there; what the kernel's half holds is not told.
        let present = mapping.is_some_and(|mapping| mapping.protection != 0)
            || slot >= processor::user_end(bits);
        let error = WRITE_BY_USER | if present { PRESENT } else { 0 };
        let code = if mapping.is_some() { 2 } else { 1 };
        SignalInfo::fault(libc::SIGSEGV, code, slot, (14, error))
    }
}
