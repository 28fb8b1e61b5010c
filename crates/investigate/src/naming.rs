//! What the program calls a piece of memory at a moment: `c.hits`, `item->refs`, in place of an offset into a
//! variable or a block. Only the memory and the variables of that moment tell, so the replay goes there.

use crate::case::Case;
use crate::error::fault_or_input;
use crate::scene::{At, registers_of};
use base::{Address, Range};
use replay::{Instant, Timeline};
use rustc_hash::FxHashMap;
use symbols::{Level, Program, Scene};

/// Calls of the stack whose variables may name it.
const LEVELS: usize = 4;

/// A piece of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Memory {
    /// Its first byte.
    pub address: u64,
    /// The block of the heap that it is in, if it is in one: first address and size.
    pub block: Option<(u64, u64)>,
}

/// Names for memory of one process.
pub struct Names<'a> {
    case: &'a Case,
    process: u32,
    program: &'a Program,
    line: Option<Timeline>,
    known: FxHashMap<(u64, u64, Memory), Option<String>>,
}

impl<'a> Names<'a> {
    /// For a process of a recording. Nothing is replayed before the first question.
    #[must_use]
    pub fn new(case: &'a Case, process: u32, program: &'a Program) -> Self {
        Self { case, process, program, line: None, known: FxHashMap::default() }
    }

    /// The shortest expression for some memory where a thread is about to execute `pc` at `tick`.
    pub fn at(&mut self, tick: u64, pc: u64, memory: Memory) -> anyhow::Result<Option<String>> {
        let key = (tick, pc, memory);
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let name = self.ask(tick, pc, memory)?;
        self.known.insert(key, name.clone());
        Ok(name)
    }

    /// How many moments have been gone to.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.known.len()
    }

    fn ask(&mut self, tick: u64, pc: u64, memory: Memory) -> anyhow::Result<Option<String>> {
        if self.line.is_none() {
            self.line = Some(self.case.timeline(self.process)?);
        }
        let Some(line) = &mut self.line else { return Ok(None) };
        let standing = line.seek(Instant { time: tick, pc: Some(pc) }).map_err(fault_or_input)?;
        if standing.at.thread.pc != pc {
            return Ok(None);
        }
        let there = At(&standing);
        let stack = self.program.unwind_at_most(&registers_of(&standing.at.thread), &there, LEVELS);
        let scene =
            Scene { program: self.program, memory: &there, stack: &stack, thread_pointer: None };
        let (level, address) = (Level::default(), Address(memory.address));
        let mut names = scene.names_of(level, address);
        if let (true, Some((start, size))) = (names.is_empty(), memory.block) {
            names = scene.names_within(level, address, Range::new(start, size));
        }
        Ok(names.into_iter().next().map(|naming| naming.expression))
    }
}
