//! From the stream to records, with what must be known of the threads meanwhile.

use super::format::{
    ACCESS, FIRST_EXIT, HANDLER, RESUMED, SYSCALL, THREAD, UNWOUND, WROTE, address,
};
use super::windows::Closed;
use crate::dependence::block::Blocks;
use crate::dependence::calls::Calls;
use crate::dependence::system_calls;
use crate::semantics::Form;
use events::decode::{Bases, Record};
use rustc_hash::FxHashMap;

/// Bytes of a chunk, about.
const CHUNK: usize = 1 << 20;
const RT_SIGRETURN: u64 = 15;

/// How a thread came to where it is.
pub enum Arrival {
    /// As its last superblock, or the kernel, says.
    Told,
    /// By the indirect jump or call, or the return, at the end of this exit.
    Sent(u32),
}

/// What is known while the stream comes in. A copy of it, made where a window begins, is all that
/// is needed to write that window again.
#[derive(Clone, Default)]
pub struct Writer {
    open: Vec<u8>,
    /// Instructions so far.
    pub executed: u64,
    open_before: u64,
    thread: u32,
    bases: Bases,
    /// Accesses of the next exit's instruction.
    explicit: Vec<u8>,
    /// What the next system call wrote, if the stream tells.
    buffers: Option<Vec<(u64, u64)>>,
    threads: FxHashMap<u32, ThreadWriter>,
    current: ThreadWriter,
}

/// What is known of one thread.
#[derive(Clone, Default)]
struct ThreadWriter {
    calls: Calls,
    /// The exit by which it left its last superblock.
    last: Option<u32>,
}

impl Writer {
    /// Whether a chunk is full.
    pub fn is_full(&self) -> bool {
        self.open.len() >= CHUNK
    }

    /// Ends a chunk; none if nothing is in it.
    pub fn close(&mut self) -> Option<Closed> {
        if self.open.is_empty() {
            return None;
        }
        let bytes = std::mem::replace(&mut self.open, Vec::with_capacity(CHUNK + 4096));
        let (before, executed) = (self.open_before, self.executed - self.open_before);
        self.open_before = self.executed;
        self.thread_record();
        Some(Closed { bytes: bytes.into(), before, executed })
    }

    /// Everything but the execution of a superblock.
    pub fn other(&mut self, record: Record<'_, '_>) {
        match record {
            Record::Thread(thread, bases) => self.switch(thread, bases),
            Record::Syscall(number, arguments, answer) => self.syscall(number, arguments, answer),
            Record::Accesses(list) => {
                self.explicit.clear();
                let mut rest = list;
                while let Some(write) = rest.u8() {
                    let (Some(address), Some(bytes)) = (rest.u64(), rest.u32()) else { break };
                    self.explicit.push(write & 1);
                    self.explicit.extend(address.to_le_bytes());
                    self.explicit.extend(bytes.to_le_bytes());
                }
            }
            // What was not completed defines nothing that anyone could rely on.
            Record::Cut(..) => self.explicit.clear(),
            Record::Buffers(buffers) => {
                let written = buffers.flatten().filter(|buffer| buffer.write && buffer.length > 0);
                self.buffers = Some(written.map(|b| (b.address, b.length)).collect());
            }
            Record::Path(_) | Record::Single(_) | Record::Probe(..) => {}
        }
    }

    fn switch(&mut self, thread: u32, bases: Bases) {
        if thread != self.thread {
            let next = self.threads.remove(&thread).unwrap_or_default();
            let last = std::mem::replace(&mut self.current, next);
            self.threads.insert(self.thread, last);
        }
        (self.thread, self.bases) = (thread, bases);
        self.thread_record();
    }

    fn syscall(&mut self, number: u64, arguments: [u64; 6], answer: i64) {
        self.word(SYSCALL);
        for value in [number].iter().chain(&arguments) {
            self.open.extend(value.to_le_bytes());
        }
        self.open.extend(answer.to_le_bytes());
        let ranges = match self.buffers.take() {
            Some(mut told) => {
                told.extend(system_calls::mapped(number, &arguments, answer));
                told
            }
            None => system_calls::written(number, &arguments, answer),
        };
        if !ranges.is_empty() {
            self.word(WROTE);
            self.word(ranges.len() as u32);
            for (address, bytes) in ranges {
                self.open.extend(address.to_le_bytes());
                self.open.extend(bytes.to_le_bytes());
            }
        }
        if number == RT_SIGRETURN {
            self.resume();
        }
    }

    /// Control of the thread arrives at an address: was it sent there?
    pub fn arrive(&mut self, blocks: &Blocks, pc: u64) -> Arrival {
        let Some(last) = self.current.last else { return Arrival::Told };
        let exit = &blocks.exits[last as usize];
        if exit.next == pc {
            return Arrival::Told;
        }
        if exit.next == 0 {
            return Arrival::Sent(last);
        }
        let ends_in_call = blocks.last_form(exit) == Some(Form::Syscall);
        if ends_in_call && self.current.calls.in_handler() {
            self.resume();
        } else {
            self.current.calls.handler();
            self.word(HANDLER);
        }
        Arrival::Told
    }

    /// A superblock was left by an exit.
    pub fn path(&mut self, blocks: &Blocks, id: u32, payload: &[u8]) {
        if !self.explicit.is_empty() {
            let list = std::mem::take(&mut self.explicit);
            self.word(ACCESS);
            self.word((list.len() / 13) as u32);
            self.open.extend(&list);
        }
        let exit = &blocks.exits[id as usize];
        if exit.crossings > 0 {
            let block = &blocks.blocks[exit.block as usize];
            for crossing in &block.crossings[..exit.crossings.into()] {
                let access = &block.accesses[usize::from(crossing.access)];
                let Some(slot) = address(access, payload, self.bases) else { continue };
                let calls = &mut self.current.calls;
                let left = if crossing.call { calls.call(slot) } else { calls.returns(slot) };
                if !left.is_empty() {
                    self.unwound(&left);
                }
            }
        }
        self.word(id + FIRST_EXIT);
        self.open.extend(payload);
        self.executed += u64::from(exit.executed);
        self.current.last = Some(id);
    }

    fn word(&mut self, word: u32) {
        self.open.extend(word.to_le_bytes());
    }

    fn thread_record(&mut self) {
        self.word(THREAD);
        self.word(self.thread);
        let (fs, gs) = (self.bases.fs, self.bases.gs);
        self.open.extend(fs.to_le_bytes());
        self.open.extend(gs.to_le_bytes());
    }

    fn unwound(&mut self, left: &[u64]) {
        self.word(UNWOUND);
        self.word(left.len() as u32);
        for slot in left {
            self.open.extend(slot.to_le_bytes());
        }
    }

    fn resume(&mut self) {
        self.current.calls.handler_returns();
        self.current.last = None;
        self.word(RESUMED);
    }
}
