//! Signal dispositions, masks, alternate stacks and the return from handlers.

use super::Outcome;
use crate::runner::context::Context;
use crate::runner::engine::Engine;
use crate::runner::guest::{self, Checked};
use crate::runner::signal::frame::{self, GuestMemory, SS_AUTODISARM};
use crate::runner::signal::{self, Action, Actions, MAX, Mask};
use crate::runner::thread::Thread;
use crate::sys::syscall;

/// `rt_sigaction`.
pub fn action(actions: &mut Actions, a: [u64; 6]) -> Outcome {
    let [signal, new, old, size, ..] = a;
    let unchangeable = signal == libc::SIGKILL as u64 || signal == libc::SIGSTOP as u64;
    if size != 8 || signal < 1 || signal > MAX as u64 || unchangeable && new != 0 {
        return Outcome::error(libc::EINVAL);
    }
    let before = *actions.get(signal as i32);
    if new != 0 {
        let mut bytes = [0; 32];
        if !Checked.read(new, &mut bytes) {
            return Outcome::error(libc::EFAULT);
        }
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
        let action = Action {
            handler: word(0),
            flags: word(8),
            restorer: word(16),
            mask: Mask(word(24)).without_unblockable().0,
        };
        actions.set(signal as i32, action);
    }
    if old != 0 {
        let mut bytes = Vec::with_capacity(32);
        for word in [before.handler, before.flags, before.restorer, before.mask] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        if !Checked.write(old, &bytes) {
            return Outcome::error(libc::EFAULT);
        }
    }
    Outcome::Answer(0)
}

/// `rt_sigprocmask`.
pub fn mask(thread: &mut Thread, a: [u64; 6]) -> Outcome {
    let [how, new, old, size, ..] = a;
    if size != 8 {
        return Outcome::error(libc::EINVAL);
    }
    let before = thread.signals.mask;
    if new != 0 {
        let Some(set) = guest::read_u64(new) else { return Outcome::error(libc::EFAULT) };
        let changed = match how as i32 {
            libc::SIG_BLOCK => before.0 | set,
            libc::SIG_UNBLOCK => before.0 & !set,
            libc::SIG_SETMASK => set,
            _ => return Outcome::error(libc::EINVAL),
        };
        thread.signals.mask = Mask(changed).without_unblockable();
        if thread.signals.mask != before {
            thread.mask_changed();
        }
    }
    if old != 0 && !Checked.write(old, &before.0.to_le_bytes()) {
        return Outcome::error(libc::EFAULT);
    }
    Outcome::Answer(0)
}

/// `rt_sigpending`, for what the kernel does not know of.
pub fn pending(thread: &Thread, a: [u64; 6], pass: Outcome) -> Outcome {
    let held = thread.signals.held.signals();
    if held == Mask::default() || a[1] != 8 {
        return pass;
    }
    let mut mask = Mask::default();
    // SAFETY: the kernel writes one mask.
    unsafe { syscall!(libc::SYS_rt_sigpending, &raw mut mask, 8) };
    let all = mask.0 | held.0;
    let written = Checked.write(a[0], &all.to_le_bytes());
    if written { Outcome::Answer(0) } else { Outcome::error(libc::EFAULT) }
}

/// `rt_sigtimedwait`, for what the kernel does not know of.
pub fn wait(thread: &mut Thread, a: [u64; 6], pass: Outcome) -> Outcome {
    if thread.signals.held.signals() == Mask::default() {
        return pass;
    }
    let Some(wanted) = guest::read_u64(a[0]) else { return pass };
    let Some(info) = thread.signals.held.take(Mask(wanted)) else { return pass };
    if a[1] != 0 && !Checked.write(a[1], &info.raw) {
        return Outcome::error(libc::EFAULT);
    }
    Outcome::Answer(i64::from(info.number()))
}

/// `rt_sigreturn`.
pub fn give_back(context: &mut Context) -> Outcome {
    let (engine, thread) = context.parts();
    if frame::pop(&mut engine.cpu.registers, thread, &Checked).is_err() {
        let info = signal::SignalInfo::fault(libc::SIGSEGV, libc::SI_KERNEL, 0, (0, 0));
        crate::runner::signal::deliver::fault(context, info);
        return Outcome::Resumed;
    }
    thread.mask_changed();
    Outcome::Resumed
}

/// `sigaltstack`.
pub fn stack(engine: &Engine, thread: &mut Thread, a: [u64; 6]) -> Outcome {
    let [new, old, ..] = a;
    let pointer = engine.cpu.registers.general[4];
    let flags = frame::signal_stack_flags(thread, pointer);
    let (base, _, size) = thread.signals.stack;
    if new != 0 {
        let mut bytes = [0; 24];
        if !Checked.read(new, &mut bytes) {
            return Outcome::error(libc::EFAULT);
        }
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
        let (new_base, new_flags, new_size) = (word(0), word(8) as i32, word(16));
        if flags & libc::SS_ONSTACK != 0 {
            return Outcome::error(libc::EPERM);
        }
        match new_flags & !SS_AUTODISARM {
            libc::SS_DISABLE => thread.signals.stack = (0, libc::SS_DISABLE, 0),
            0 | libc::SS_ONSTACK if new_size < libc::MINSIGSTKSZ as u64 => {
                return Outcome::error(libc::ENOMEM);
            }
            0 | libc::SS_ONSTACK => {
                thread.signals.stack = (new_base, new_flags & SS_AUTODISARM, new_size);
            }
            _ => return Outcome::error(libc::EINVAL),
        }
    }
    if old != 0 {
        let mut bytes = Vec::with_capacity(24);
        bytes.extend_from_slice(&base.to_le_bytes());
        bytes.extend_from_slice(&u64::from(flags as u32).to_le_bytes());
        bytes.extend_from_slice(&size.to_le_bytes());
        if !Checked.write(old, &bytes) {
            return Outcome::error(libc::EFAULT);
        }
    }
    Outcome::Answer(0)
}
