//! A process that shares the guest's memory and traces the guest's threads, as LeakSanitizer does to
//! look at their registers and stacks. It also shares the engine: a thread that the kernel stopped
//! for it might hold the baton, and both would wait for ever.
//!
//! So the kernel is not asked. While such a tracer has anyone attached it keeps the baton, which is
//! all that stopping the others is for; their registers are known.
//!
//! Any other process is the kernel's to stop; of one of the tool's the tracer is shown the guest ([`tracee`]).

use super::tracee::{self, Tracee, WORDS};
use super::{Outcome, files};
use crate::runner::engine::Engine;
use crate::runner::guest::{self, Checked};
use crate::runner::record;
use crate::runner::signal::frame::GuestMemory;
use crate::runner::thread::{Thread, VECTOR_USED};
use crate::runner::traced::{CHANGED, TRACED};
use std::sync::atomic::Ordering;

/// Who is attached to whom.
#[derive(Default)]
pub struct Attached {
    tracer: Option<*const Thread>,
    /// Numbers of the threads, and whether the tracer has been told that they stand still.
    threads: Vec<(i32, bool)>,
}

impl Attached {
    /// Whether everybody waits for this thread.
    pub fn is_by(&self, thread: &Thread) -> bool {
        self.tracer.is_some_and(|tracer| std::ptr::eq(tracer, thread))
    }

    /// The thread ends, or executes another program.
    pub fn leaves(&mut self, thread: &Thread) {
        if self.is_by(thread) {
            *self = Self::default();
        }
    }

    fn detach(&mut self, number: i32) {
        self.threads.retain(|(other, _)| *other != number);
        if self.threads.is_empty() {
            self.tracer = None;
        }
    }
}

const STOPPED: i32 = libc::SIGSTOP << 8 | 0x7f;
const NT_PRSTATUS: u64 = 1;
const NT_FPREGSET: u64 = 2;
const NT_X86_XSTATE: u64 = 0x202;
/// The legacy area of an XSAVE image.
const LEGACY: usize = 512;

/// `ptrace`.
pub fn ptrace(engine: &mut Engine, thread: &Thread, a: [u64; 6], pass: Outcome) -> Outcome {
    let (request, number) = (a[0] as u32, a[1] as i32);
    let Some(target) = target(engine, thread, number) else {
        return other_process(engine, request, number, a).unwrap_or(pass);
    };
    if matches!(request, libc::PTRACE_ATTACH | libc::PTRACE_SEIZE) {
        return attach(&mut engine.threads.attached, thread, number);
    }
    let attached = &mut engine.threads.attached;
    if !attached.is_by(thread) || !attached.threads.iter().any(|(other, _)| *other == number) {
        return Outcome::error(libc::ESRCH);
    }
    match request {
        libc::PTRACE_DETACH => {
            attached.detach(number);
            Outcome::Answer(0)
        }
        libc::PTRACE_SETOPTIONS | libc::PTRACE_INTERRUPT => Outcome::Answer(0),
        libc::PTRACE_GETREGS => put(a[3], &registers(target)),
        libc::PTRACE_GETFPREGS => put(a[3], &target.vector.0[..LEGACY]),
        libc::PTRACE_GETREGSET => register_set(target, a[2], a[3]),
        libc::PTRACE_PEEKTEXT | libc::PTRACE_PEEKDATA => match guest::read_u64(a[2]) {
            Some(word) => put(a[3], &word.to_le_bytes()),
            None => Outcome::error(libc::EIO),
        },
        libc::PTRACE_GETSIGINFO => {
            let mut information = [0; 128];
            information[0] = libc::SIGSTOP as u8;
            put(a[3], &information)
        }
        // Nobody goes on before the tracer lets go.
        _ => Outcome::error(libc::EIO),
    }
}

/// Another process, which the kernel stops and this engine shows. None if the kernel is to do it all.
fn other_process(engine: &mut Engine, request: u32, number: i32, a: [u64; 6]) -> Option<Outcome> {
    engine.threads.traces |= request != libc::PTRACE_TRACEME;
    match request {
        libc::PTRACE_TRACEME => {
            TRACED.perhaps.store(1, Ordering::Relaxed);
            None
        }
        libc::PTRACE_GETREGS => Some(put(a[3], &bytes(&Tracee::find(number)?.registers()))),
        libc::PTRACE_GETFPREGS => Some(put(a[3], &Tracee::find(number)?.vectors()?[..LEGACY])),
        libc::PTRACE_GETREGSET => {
            let tracee = Tracee::find(number)?;
            let set = match a[2] {
                NT_PRSTATUS => bytes(&tracee.registers()),
                NT_FPREGSET => tracee.vectors()?[..LEGACY].to_vec(),
                NT_X86_XSTATE => tracee.vectors()?,
                _ => return None,
            };
            Some(put_set(&set, a[3]))
        }
        libc::PTRACE_PEEKUSER => {
            let word = Tracee::find(number)?.registers()[word_index(a[2])?];
            Some(put(a[3], &word.to_le_bytes()))
        }
        libc::PTRACE_SETREGS | libc::PTRACE_POKEUSER => set_registers(engine, request, number, a),
        _ => None,
    }
}

/// Gives the guest of another process other registers.
fn set_registers(engine: &mut Engine, request: u32, number: i32, a: [u64; 6]) -> Option<Outcome> {
    let tracee = Tracee::find(number)?;
    let mut words = tracee.registers();
    if request == libc::PTRACE_SETREGS {
        for (place, word) in (a[3]..).step_by(8).zip(&mut words) {
            *word = guest::read_u64(place)?;
        }
    } else {
        *words.get_mut(word_index(a[2])?)? = a[3];
    }
    if engine.is_recorded() && !tracee.is_at_a_fault() {
        record::refuse(engine, CHANGED);
    }
    let done = tracee.set_registers(&words);
    Some(if done { Outcome::Answer(0) } else { Outcome::error(libc::EIO) })
}

/// Which word of the registers an offset means, if any.
fn word_index(offset: u64) -> Option<usize> {
    (offset.is_multiple_of(8) && offset < 8 * WORDS as u64).then_some(offset as usize / 8)
}

fn bytes(words: &[u64; WORDS]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A tracer has attached to a process: it is told, if it is one of the tool's.
pub fn after(engine: &Engine, a: [u64; 6]) {
    let attaches = matches!(a[0] as u32, libc::PTRACE_ATTACH | libc::PTRACE_SEIZE);
    if attaches
        && engine.log.replayer.is_none()
        && files::is_runner((a[1] as i32).to_string().as_ref())
    {
        tracee::attached(a[1] as i32);
    }
}

/// `wait4`: a tracer hears that those it has attached to stand still.
pub fn wait(engine: &mut Engine, thread: &Thread, a: [u64; 6], pass: Outcome) -> Outcome {
    if !engine.threads.attached.is_by(thread) {
        return pass;
    }
    let number = a[0] as i32;
    let mut threads = engine.threads.attached.threads.iter_mut();
    match threads.find(|(other, _)| *other == number || number == -1) {
        None => pass,
        Some((_, true)) if a[2] as i32 & libc::WNOHANG != 0 => Outcome::Answer(0),
        Some((_, true)) => Outcome::error(libc::ECHILD),
        Some((number, told)) => {
            *told = true;
            if a[1] != 0 && !Checked.write(a[1], &STOPPED.to_le_bytes()) {
                return Outcome::error(libc::EFAULT);
            }
            Outcome::Answer(i64::from(*number))
        }
    }
}

/// The thread of the guest's that a process which shares its memory means.
fn target<'a>(engine: &Engine, thread: &Thread, number: i32) -> Option<&'a Thread> {
    if !thread.foreign {
        return None;
    }
    let all = engine.threads.list.iter().copied().chain([engine.threads.first]);
    // SAFETY: threads in the list have not been freed, and none of them runs while we do.
    all.filter(|other| !other.is_null())
        .map(|other| unsafe { &*other })
        .find(|other| other.tid() == number && !other.foreign)
}

fn attach(attached: &mut Attached, thread: &Thread, number: i32) -> Outcome {
    let taken = attached.tracer.is_some() && !attached.is_by(thread);
    if taken || attached.threads.iter().any(|(other, _)| *other == number) {
        return Outcome::error(libc::EPERM);
    }
    attached.tracer = Some(thread);
    attached.threads.push((number, false));
    Outcome::Answer(0)
}

fn put(address: u64, bytes: &[u8]) -> Outcome {
    if Checked.write(address, bytes) { Outcome::Answer(0) } else { Outcome::error(libc::EFAULT) }
}

/// A set of registers goes where a vector of one element says, which then says how much it was.
fn register_set(target: &Thread, kind: u64, vector: u64) -> Outcome {
    let bytes = match kind {
        NT_PRSTATUS => registers(target),
        NT_FPREGSET => target.vector.0[..LEGACY].to_vec(),
        NT_X86_XSTATE => target.vector.0[..VECTOR_USED].to_vec(),
        _ => return Outcome::error(libc::EINVAL),
    };
    put_set(&bytes, vector)
}

fn put_set(bytes: &[u8], vector: u64) -> Outcome {
    let (Some(address), Some(room)) = (guest::read_u64(vector), guest::read_u64(vector + 8)) else {
        return Outcome::error(libc::EFAULT);
    };
    let length = bytes.len().min(room as usize);
    let written = Checked.write(address, &bytes[..length])
        && Checked.write(vector + 8, &(length as u64).to_le_bytes());
    if written { Outcome::Answer(0) } else { Outcome::error(libc::EFAULT) }
}

/// The kernel's `struct user_regs_struct`.
fn registers(target: &Thread) -> Vec<u8> {
    const CODE: u64 = 0x33;
    const DATA: u64 = 0x2b;
    let registers = &target.registers;
    let call = target.kernel.in_call.map_or(u64::MAX, |(number, _)| number);
    let g = &registers.general;
    let words = [
        g[15],
        g[14],
        g[13],
        g[12],
        g[5],
        g[3],
        g[11],
        g[10],
        g[9],
        g[8],
        g[0],
        g[1],
        g[2],
        g[6],
        g[7],
        call,
        registers.pc,
        CODE,
        registers.flags,
        g[4],
        DATA,
        registers.fs,
        0,
        0,
        0,
        0,
        0,
    ];
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
