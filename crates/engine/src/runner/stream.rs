//! What the dispatcher adds to the event stream: threads, system calls, superblocks left in the
//! middle, and accesses that only the values of registers tell.

use super::cpu::{self, cpu};
use super::engine::{self, Engine, decode_one, engine};
use super::events::Ring;
use super::sys;
use super::thread::{Left, Thread};
use ::events::record;

impl Engine {
    /// Appends a record to the event stream, if there is one.
    pub fn record(&mut self, bytes: &[u8]) {
        if let Some(ring) = &mut self.ring {
            ring.append(bytes);
        }
    }

    /// Appends a record that the consumer needs whichever thread runs.
    pub fn define(&mut self, bytes: &[u8]) {
        if let Some(ring) = &mut self.ring {
            ring.append_always(bytes);
        }
    }

    /// The events of a thread that the plan leaves out go nowhere.
    pub fn mute_unless_observed(&mut self, thread: i32) {
        if let Some(ring) = &mut self.ring {
            ring.mute(!self.config.plan.covers_thread(thread as u32));
        }
    }

    /// Says which thread runs, and where its segments are. What it does is heard if the plan is
    /// about it.
    pub fn record_thread(&mut self, thread: i32) {
        self.mute_unless_observed(thread);
        if self.ring.is_some() {
            let mut bytes = record::THREAD.to_le_bytes().to_vec();
            bytes.extend((thread as u32).to_le_bytes());
            bytes.extend(cpu().registers.fs.to_le_bytes());
            bytes.extend(cpu::gs_base().to_le_bytes());
            self.record(&bytes);
        }
    }

    /// A system call has returned.
    pub fn record_syscall(&mut self, number: u64, arguments: [u64; 6], answer: i64) {
        if self.ring.is_some() {
            let mut bytes = record::SYSCALL.to_le_bytes().to_vec();
            bytes.extend(number.to_le_bytes());
            bytes.extend(arguments.iter().flat_map(|argument| argument.to_le_bytes()));
            bytes.extend(answer.to_le_bytes());
            self.record(&bytes);
        }
    }

    /// Tells of a call.
    pub fn record_enter(&mut self, function: u64, (stack, back): (u64, u64), arguments: [u64; 6]) {
        let mut bytes = record::ENTER.to_le_bytes().to_vec();
        bytes.extend([function, back, stack].iter().flat_map(|word| word.to_le_bytes()));
        bytes.extend(arguments.iter().flat_map(|argument| argument.to_le_bytes()));
        self.record(&bytes);
    }

    /// Tells that the guest is at a site.
    pub fn record_back(&mut self, pc: u64, stack: u64, value: u64) {
        let mut bytes = record::BACK.to_le_bytes().to_vec();
        bytes.extend([pc, stack, value].iter().flat_map(|word| word.to_le_bytes()));
        self.record(&bytes);
    }

    /// A signal handler comes next; the thread was at `pc` with this stack pointer.
    pub fn record_handler(&mut self, pc: u64, stack: u64) {
        if self.ring.is_some() {
            let mut bytes = record::HANDLER.to_le_bytes().to_vec();
            let numbers = [pc, stack, cpu().registers.general[4]];
            bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
            self.record(&bytes);
        }
    }

    /// A child of this number has been made; 0: this is the child. Whoever follows the child waits
    /// for this.
    pub fn record_fork(&mut self, child: i32) {
        if let Some(ring) = self.ring.as_mut().filter(|_| self.config.plan.forks) {
            let bytes = [record::FORK.to_le_bytes(), child.to_le_bytes()].concat();
            ring.append_and_hand_over(&bytes);
        }
    }

    /// A new ring, and a consumer that knows no shapes yet. `parent`: whose ring this process has shared.
    pub fn restart_events(&mut self, parent: Option<i32>) {
        let lost = |error| {
            engine::note(&format!("events of process {} are lost: error {error}", sys::getpid()));
            Ring::unread()
        };
        self.ring = Ring::new(self.config.rings, self.numbers.host, parent).or_else(lost).ok();
        self.cache.flush();
    }

    /// This thread runs now, and can be asked to look into the mail.
    pub fn listen_as(&mut self, thread: i32) {
        if let Some(ring) = &self.ring {
            ring.running(thread);
        }
        self.record_thread(thread);
    }

    /// Hands the last events over before the process ends or becomes another.
    pub fn finish_events(&mut self) {
        if let Some(ring) = &mut self.ring {
            ring.finish();
        }
    }
}

/// A superblock was left in the middle.
pub fn record_partial(left: Left) {
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
pub fn record_accesses(thread: &Thread) -> usize {
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
pub fn record_cut(thread: &Thread, listed: usize) {
    let pc = cpu().registers.pc;
    let left = list_accesses(thread, &mut Vec::new());
    let mut bytes = record::CUT.to_le_bytes().to_vec();
    bytes.extend(pc.to_le_bytes());
    bytes.extend((listed.saturating_sub(left) as u32).to_le_bytes());
    engine().record(&bytes);
}
