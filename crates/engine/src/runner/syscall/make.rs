//! Makes a system call of the guest's: asks the table what is to happen with it, does so, and gives
//! the answer.

use super::{Outcome, after, dispatch};
use crate::runner::cpu::{self, cpu};
use crate::runner::engine::{drop_baton, engine, take_baton};
use crate::runner::record;
use crate::runner::record::scratch::Scratch;
use crate::runner::replay;
use crate::runner::thread::Thread;

/// A system call of the guest's.
pub fn system_call(thread: &mut Thread, next: u64) {
    let registers = &mut cpu().registers;
    let number = registers.general[0];
    let arguments = [7, 6, 2, 10, 8, 9].map(|register| registers.general[register]);
    registers.pc = next;
    if engine().replayer.is_some() {
        let check = record::digest::call(registers, number, arguments, &engine().memory);
        enter(next);
        return replay::system_call(thread, number, arguments, check);
    }
    let noted = record::before_call(engine(), number, arguments);
    enter(next);
    engine().unguard_buffers(number, arguments);
    let before = engine().before_call(number, arguments);
    let outcome = if matches!(number as i64, libc::SYS_exit | libc::SYS_exit_group) {
        engine().record_syscall(number, arguments, 0);
        record::leaves(engine(), noted, number);
        dispatch(engine(), thread, number, arguments);
        return;
    } else {
        dispatch(engine(), thread, number, arguments)
    };
    let asked = (number, arguments);
    let answer = match outcome {
        Outcome::Answer(answer) => answer,
        Outcome::Resumed => {
            let answer = cpu().registers.general[0] as i64;
            engine().record_syscall(number, arguments, answer);
            record::leaves(engine(), noted, number);
            return;
        }
        Outcome::Kernel { number, arguments, blocks } => {
            thread.in_call = Some(asked);
            let mut answer = kernel(thread, number, arguments, blocks);
            if answer == -i64::from(libc::EFAULT) && engine().unguard_all() {
                answer = kernel(thread, number, arguments, blocks);
            }
            answer
        }
    };
    thread.in_call = None;
    if let Some(noted) = noted {
        record::called(engine(), noted, number, arguments, answer);
    }
    engine().record_buffers(number, arguments, answer, before);
    answered(thread, number, arguments, answer);
    if record::takes_yield(engine()) {
        thread.preempt = true;
        thread.attention = 1;
    }
}

/// What the instruction itself changes.
fn enter(next: u64) {
    let registers = &mut cpu().registers;
    registers.general[1] = next;
    registers.general[11] = registers.flags;
}

/// The thread goes on with an answer.
pub fn answered(thread: &mut Thread, number: u64, arguments: [u64; 6], answer: i64) {
    if answer == cpu::NOT_STARTED {
        // A signal came first: the call is made again when its handler has returned.
        cpu().registers.pc -= 2;
        return;
    }
    if answer != -i64::from(libc::EINTR) {
        thread.suspended = false;
    }
    engine().record_syscall(number, arguments, answer);
    if number as i64 == libc::SYS_arch_prctl {
        engine().record_thread(thread.tid);
    }
    after(engine(), number, arguments, answer);
    cpu().registers.general[0] = answer as u64;
}

fn kernel(thread: &mut Thread, number: u64, arguments: [u64; 6], blocks: bool) -> i64 {
    let alone = engine().threads.is_empty() && !record::is_member(engine());
    if !blocks || alone || engine().attached.is_by(thread) {
        // SAFETY: the call is the guest's own, on the guest's own memory and descriptors; the
        // table of system calls keeps it away from ours.
        return unsafe { cpu::guest_syscall(number, arguments, &raw const thread.attention) };
    }
    let mut arguments = arguments;
    let scratch = Scratch::of(engine(), number, &mut arguments);
    drop_baton(thread);
    let pointer: *mut Thread = thread;
    // SAFETY: as above; the thread is our own, and nothing of the engine is borrowed.
    let answer = unsafe {
        let answer = cpu::guest_syscall(number, arguments, &raw const (*pointer).attention);
        take_baton(pointer);
        answer
    };
    scratch.map_or(answer, |scratch| scratch.give(answer))
}
