//! What the dispatcher adds to the event stream: threads, system calls, superblocks left in the
//! middle, and accesses that only the values of registers tell.

use super::cpu;
use super::engine::{self, Engine};
use super::events::Ring;
use super::thread::{Left, Thread};
use crate::sys;
use ::events::record::list::{self, ExplicitAccess};
use ::events::record::{Bases, Entry};

impl Engine {
    /// Appends a record to the event stream, if there is one.
    pub fn record(&mut self, entry: &Entry) {
        if let Some(ring) = &mut self.observed.ring {
            ring.append(&mut self.cpu, &entry.bytes());
        }
    }

    /// The same for a record that lists several things.
    pub fn record_bytes(&mut self, bytes: &[u8]) {
        if let Some(ring) = &mut self.observed.ring {
            ring.append(&mut self.cpu, bytes);
        }
    }

    /// Appends a record that the consumer needs whichever thread runs.
    pub fn define(&mut self, bytes: &[u8]) {
        if let Some(ring) = &mut self.observed.ring {
            ring.append_always(&mut self.cpu, bytes);
        }
    }

    /// The events of a thread that the plan leaves out go nowhere.
    pub fn mute_unless_observed(&mut self, thread: i32) {
        if let Some(ring) = &mut self.observed.ring {
            ring.mute(&mut self.cpu, !self.config.plan.scope.covers_thread(thread as u32));
        }
    }

    /// Says which thread runs, and where its segments are. Its events are kept if the plan is
    /// about it.
    pub fn record_thread(&mut self, thread: i32) {
        self.mute_unless_observed(thread);
        if self.observed.ring.is_some() {
            let bases = Bases { fs: self.cpu.registers.fs, gs: cpu::gs_base() };
            self.record(&Entry::Thread { thread: thread as u32, bases });
        }
    }

    /// A system call has returned.
    pub fn record_syscall(&mut self, number: u64, arguments: [u64; 6], answer: i64) {
        self.record(&Entry::Syscall { number, arguments, answer });
    }

    /// Tells of a call.
    pub fn record_enter(&mut self, function: u64, (stack, back): (u64, u64), arguments: [u64; 6]) {
        self.record(&Entry::Enter { function, back, stack, arguments });
    }

    /// Tells that the guest is at a site.
    pub fn record_back(&mut self, pc: u64, stack: u64, value: u64) {
        self.record(&Entry::Back { pc, stack, value });
    }

    /// A signal handler comes next; the thread was at `pc` with this stack pointer.
    pub fn record_handler(&mut self, pc: u64, stack: u64) {
        self.record(&Entry::Handler { pc, stack, frame: self.cpu.registers.general[4] });
    }

    /// A child of this number has been made; 0: this is the child. Whoever follows the child waits
    /// for this.
    pub fn record_fork(&mut self, child: i32) {
        if let Some(ring) = self.observed.ring.as_mut().filter(|_| self.config.plan.observe.forks) {
            ring.append_and_hand_over(&mut self.cpu, &Entry::Fork(child as u32).bytes());
        }
    }

    /// A new ring, and a consumer that knows no shapes yet. `parent`: whose ring this process has shared.
    pub fn restart_events(&mut self, parent: Option<i32>) {
        let ring = Ring::new(&mut self.cpu, self.config.rings, self.process.numbers.host, parent);
        let ring = ring.or_else(|error| {
            engine::note(&format!("events of process {} are lost: error {error}", sys::getpid()));
            Ring::unread(&mut self.cpu)
        });
        self.observed.ring = ring.ok();
        self.code.cache.flush();
    }

    /// This thread runs now, and can be asked to look into the mail.
    pub fn listen_as(&mut self, thread: i32) {
        if let Some(ring) = &self.observed.ring {
            ring.running(thread);
        }
        self.record_thread(thread);
    }

    /// Hands the last events over before the process ends or becomes another.
    pub fn finish_events(&mut self) {
        if let Some(ring) = &mut self.observed.ring {
            ring.finish(&mut self.cpu);
        }
    }
}

/// A superblock was left in the middle.
pub fn record_partial(engine: &mut Engine, left: Left) {
    let Engine { code, observed, cpu, .. } = engine;
    let (cache, Some(ring)) = (&code.cache, &mut observed.ring) else { return };
    let Some(observed) = cache.fragment(left.fragment).observed() else { return };
    let before = observed.fields_before.get(left.index as usize);
    let before = before.or(observed.fields_before.last()).copied().unwrap_or(0);
    let repeat = observed.repeats.iter().find(|(index, _)| *index == left.index);
    let general = cpu.registers.general;
    let [count, source, destination] = [1, 6, 7].map(|register| general[register]);
    match repeat.map(|(_, moves)| general[*moves as usize]) {
        // What it started with is in the record already.
        Some(moved) if left.repeating => {
            ring.partial(cpu, (observed.first_exit, left.index), before + 3, &[count, moved]);
        }
        Some(moved) if left.index > 0 => {
            let none = [count, source, destination, count, moved];
            ring.partial(cpu, (observed.first_exit, left.index), before, &none);
        }
        None if left.index > 0 => {
            ring.partial(cpu, (observed.first_exit, left.index), before, &[]);
        }
        _ => {}
    }
}

/// The accesses of the instruction that is next, for those where only its registers tell. How
/// many there are.
pub fn record_accesses(engine: &mut Engine, thread: &Thread) -> usize {
    let accesses = list_accesses(engine, thread);
    engine.record_bytes(&list::accesses(&accesses));
    accesses.len()
}

fn list_accesses(engine: &Engine, thread: &Thread) -> Vec<ExplicitAccess> {
    let registers = &engine.cpu.registers;
    let instruction = engine.decode_one(registers.pc);
    let mut accesses = Vec::new();
    let mut put = |write, address, size| accesses.push((write, address, size));
    super::explicit::each(&instruction, registers, &thread.vector, &mut put);
    accesses
}

/// The instruction whose accesses were listed has not completed. A gather switches off in its mask
/// what it has read; all others have done nothing.
pub fn record_cut(engine: &mut Engine, thread: &Thread, listed: usize) {
    let (pc, left) = (engine.cpu.registers.pc, list_accesses(engine, thread).len());
    engine.record(&Entry::Cut { pc, made: listed.saturating_sub(left) as u32 });
}
