//! Makes a system call of the guest's: asks the table what is to happen with it, does so, and gives
//! the answer.

use super::{Outcome, after, dispatch, tracee};
use crate::runner::context::Context;
use crate::runner::cpu;
use crate::runner::engine::Engine;
use crate::runner::engine::dispatch::{drop_baton, take_baton};
use crate::runner::own::Kept;
use crate::runner::record;
use crate::runner::record::bounce::BounceBuffers;
use crate::runner::replay;

/// A system call of the guest's.
pub fn system_call(context: &mut Context, next: u64) {
    let engine = context.engine();
    let registers = &mut engine.cpu.registers;
    let number = registers.general[0];
    let arguments = [7, 6, 2, 10, 8, 9].map(|register| registers.general[register]);
    registers.pc = next;
    if engine.log.replayer.is_some() {
        let check = record::digest::call(registers, number, arguments, &engine.process.memory);
        enter(engine, next);
        return replay::system_call(context, number, arguments, check);
    }
    let noted = record::before_call(engine, number, arguments);
    enter(engine, next);
    engine.unguard_buffers(number, arguments);
    let before = engine.before_call(number, arguments);
    if matches!(number as i64, libc::SYS_exit | libc::SYS_exit_group) {
        engine.record_syscall(number, arguments, 0);
        record::leaves(engine, noted, number);
        dispatch(context, number, arguments);
        return;
    }
    let answer = match dispatch(context, number, arguments) {
        Outcome::Answer(answer) => answer,
        Outcome::Resumed => {
            let engine = context.engine();
            let answer = engine.cpu.registers.general[0] as i64;
            engine.record_syscall(number, arguments, answer);
            record::leaves(engine, noted, number);
            return;
        }
        Outcome::Kernel { number: other, arguments: others, blocks } => {
            context.thread().kernel.in_call = Some((number, arguments));
            loop {
                let answer = ask_kernel(context, other, others, blocks);
                if !tracee::waits_on(context, number, arguments, answer) {
                    break answer;
                }
            }
        }
    };
    let (engine, thread) = context.parts();
    thread.kernel.in_call = None;
    let answer = record::waits::read(engine, number, arguments, answer);
    if let Some(noted) = noted {
        record::called(engine, noted, number, arguments, answer);
    }
    engine.record_buffers(number, arguments, answer, before);
    // The instruction has two bytes.
    engine.look_at_system_call(next.wrapping_sub(2), (number, arguments), answer);
    answered(context, number, arguments, answer);
    let (engine, thread) = context.parts();
    if record::takes_yield(engine) {
        thread.shared.preempt();
    }
}

/// What the instruction itself changes.
fn enter(engine: &mut Engine, next: u64) {
    let registers = &mut engine.cpu.registers;
    registers.general[1] = next;
    registers.general[11] = registers.flags;
}

/// The thread goes on with an answer.
pub fn answered(context: &mut Context, number: u64, arguments: [u64; 6], answer: i64) {
    let (engine, thread) = context.parts();
    if answer == cpu::NOT_STARTED {
        // A signal came first: the call is made again when its handler has returned.
        engine.cpu.registers.pc -= 2;
        return;
    }
    if answer != -i64::from(libc::EINTR) {
        thread.signals.suspended = false;
    }
    engine.record_syscall(number, arguments, answer);
    if number as i64 == libc::SYS_arch_prctl {
        engine.record_thread(thread.tid());
    }
    after(engine, number, arguments, answer);
    engine.cpu.registers.general[0] = answer as u64;
}

/// The kernel's answer; where a page that we have made read-only was in its way, the second one.
fn ask_kernel(context: &mut Context, number: u64, arguments: [u64; 6], blocks: bool) -> i64 {
    let answer = kernel(context, number, arguments, blocks);
    if answer == -i64::from(libc::EFAULT) && context.engine().unguard_all() {
        return kernel(context, number, arguments, blocks);
    }
    answer
}

fn kernel(context: &mut Context, number: u64, arguments: [u64; 6], blocks: bool) -> i64 {
    let (engine, thread) = context.parts();
    let kept = Kept::of(engine, number, arguments);
    if kept.is_bad {
        return -i64::from(libc::EFAULT);
    }
    let mut arguments = kept.arguments;
    let alone = engine.threads.list.is_empty() && !record::is_member(engine);
    if !blocks || alone || engine.threads.attached.is_by(thread) {
        return call(context, number, arguments);
    }
    let bounce = BounceBuffers::of(engine, number, &mut arguments);
    drop_baton(context);
    let answer = call(context, number, arguments);
    take_baton(context);
    bounce.map_or(answer, |bounce| bounce.give(context.engine(), answer))
}

/// Makes the call, with or without the baton.
fn call(context: &Context, number: u64, arguments: [u64; 6]) -> i64 {
    let attention = &context.shared().attention;
    // SAFETY: the call is the guest's own, on the guest's own memory and descriptors; the table of
    // system calls keeps it away from ours. Nothing of engine or thread is borrowed.
    unsafe { cpu::guest_syscall(number, arguments, attention.as_ptr()) }
}
