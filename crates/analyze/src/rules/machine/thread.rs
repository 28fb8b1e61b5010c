//! What is known of one thread: its registers' cells, its calls, and which parts of its registers
//! hold something that nobody wrote.

use super::Access;
use super::calls::Calls;
use super::cells::Cell;
use super::code::{CELLS, Code, Transport};
use super::handlers::Interrupted;
use super::heap::Given;
use super::registers::{Origin, Registers};
use super::unwritten::{Unwritten, WIDEST};
use crate::model::heap::UnderWay;
use crate::rules::state::BlockId;
use crate::semantics::{Flow, Side, Span, Uses};
use std::ops::Range;

/// Areas of XSAVE that are remembered.
const MOST_SAVED: usize = 8;

/// One thread.
#[derive(Clone)]
pub struct Thread {
    /// What registers carry.
    pub cells: [Cell; CELLS],
    /// Active calls.
    pub calls: Calls,
    /// The stack pointer, where it is known.
    pub stack: Option<u64>,
    /// The frame pointer, where the function keeps one.
    pub frame: Option<u64>,
    /// Room that was made on the stack, while nobody knows how much.
    pub room: Option<BlockId>,
    /// What was asked for of room that is about to be made, if somebody told.
    pub(super) asked: Option<u64>,
    /// Where the stack pointer will be once it is moved to room that was made.
    pub(super) making: Option<u64>,
    /// The address of a block that an allocator under way has stored.
    pub(super) stores: Option<u64>,
    /// The thread pointer, once it is known, and what carries a copy of it.
    pub pointer: Option<(u64, BlockId)>,
    /// Calls of allocators that have not returned, outermost first.
    pub inside: UnderWay<Given>,
    /// Where the return address of the innermost function stands that was judged by its contract.
    pub(super) library: Option<u64>,
    /// Bits of registers that nobody wrote.
    pub registers: Registers,
    /// Registers that XSAVE has put into memory, by where.
    pub(super) saved: Vec<(u64, Registers)>,
    /// The lowest address of the stack that was written since it was last below the stack pointer.
    pub low: u64,
    /// Where its stack is, once it has called something.
    pub area: Range<u64>,
    /// What signal handlers have interrupted, innermost last.
    pub(super) interrupted: Vec<Interrupted>,
}

impl Default for Thread {
    fn default() -> Self {
        Self {
            cells: [Cell::default(); CELLS],
            calls: Calls::default(),
            stack: None,
            frame: None,
            room: None,
            asked: None,
            making: None,
            stores: None,
            pointer: None,
            inside: UnderWay::default(),
            library: None,
            registers: Registers::default(),
            saved: Vec::new(),
            low: 0,
            area: 0..0,
            interrupted: Vec::new(),
        }
    }
}

impl Thread {
    /// Whatever one instruction defines counts as written.
    pub fn make_anew(&mut self, code: &Code, accesses: &[Access], memory: &mut Unwritten) {
        self.registers.set_parts(&code.meaning.defines, None);
        written(accesses, memory);
    }

    /// What is in vector registers goes to memory by XSAVE and comes back by XRSTOR, as the loader does where
    /// it binds a function at its first call. The layout there is the processor's affair.
    fn transport(&mut self, state: Transport, accesses: &[Access]) {
        let Some(area) = accesses.first().map(|access| access.address) else { return };
        self.saved.retain(|(known, _)| state == Transport::Restores || *known != area);
        match state {
            Transport::None => {}
            Transport::Saves if self.registers.has_vectors() => {
                if self.saved.len() >= MOST_SAVED {
                    self.saved.remove(0);
                }
                self.saved.push((area, self.registers.clone()));
            }
            Transport::Saves => {}
            Transport::Restores => {
                let found = self.saved.iter().position(|(known, _)| *known == area);
                if let Some(at) = found {
                    self.registers.take_vectors(&self.saved.remove(at).1);
                }
            }
        }
    }

    /// Follows what nobody wrote through one instruction.
    pub fn follow(&mut self, code: &Code, accesses: &[Access], memory: &mut Unwritten) {
        if code.state != Transport::None {
            self.make_anew(code, accesses, memory);
            return self.transport(code.state, accesses);
        }
        self.follow_values(code, accesses, memory);
    }

    fn follow_values(&mut self, code: &Code, accesses: &[Access], memory: &mut Unwritten) {
        let matched = accesses.len() == usize::from(code.operands);
        if !matched || code.repeats {
            return self.make_anew(code, accesses, memory);
        }
        let mut reads = accesses.iter().filter(|access| !access.write);
        let clean =
            |access: &Access| memory.first(access.address, u64::from(access.size)).is_none();
        if !self.registers.meets(code.touched) && reads.all(clean) {
            written(accesses, memory);
        } else if code.cleanses {
            self.registers.set_parts(&code.meaning.defines, None);
        } else if let Some(bitwise) = &code.bitwise {
            bitwise.apply(code.pc, accesses, &mut self.registers, memory);
        } else {
            self.follow_flows(code, accesses, memory);
        }
    }

    /// Byte by byte where bytes are copied; anything else that is made from a bit nobody wrote is
    /// taken to hang on it whole.
    fn follow_flows(&mut self, code: &Code, accesses: &[Access], memory: &mut Unwritten) {
        // All sources are read before anything is written.
        let mut results = Vec::with_capacity(code.meaning.flows.len());
        for flow in &code.meaning.flows {
            results.push(match flow {
                Flow::Copy { from, .. } => self.copied(from, code, accesses, memory),
                Flow::Make { uses, .. } => {
                    let origin = self.used(uses, code, accesses, memory);
                    ([if origin.is_some() { u8::MAX } else { 0 }; WIDEST], origin)
                }
            });
        }
        for (flow, (bits, origin)) in code.meaning.flows.iter().zip(&results) {
            let write = match flow {
                Flow::Copy { to, .. } => {
                    self.registers.store(to, bits, *origin);
                    Some(to)
                }
                Flow::Make { parts, write, .. } => {
                    self.registers.set_parts(parts, *origin);
                    write.as_ref()
                }
            };
            if let Some(Span { side: Side::Memory(slot), from, bytes }) = write {
                let address = accesses[*slot as usize].address.wrapping_add(u64::from(*from));
                // State of the processor, which XSAVE stores, is longer than any value.
                let short = (*bytes as usize).min(WIDEST);
                memory.remove(address, u64::from(*bytes));
                memory.store_from(address, &bits[..short], *origin);
            }
        }
    }

    fn copied(
        &self,
        from: &Span,
        code: &Code,
        accesses: &[Access],
        memory: &Unwritten,
    ) -> ([u8; WIDEST], Option<Origin>) {
        match from.side {
            Side::Memory(slot) => {
                let access = accesses[slot as usize];
                let address = access.address.wrapping_add(u64::from(from.from));
                let origin = Origin { pc: code.pc, address, size: u32::from(from.bytes) };
                (memory.load(address, u64::from(from.bytes)), Some(memory.origin(origin)))
            }
            Side::General(number) => {
                (self.registers.load(from), Some(self.registers.origin_of_general(number)))
            }
            Side::Vector(number) => {
                (self.registers.load(from), Some(self.registers.origin_of_vector(number)))
            }
        }
    }

    fn used(
        &self,
        uses: &Uses,
        code: &Code,
        accesses: &[Access],
        memory: &Unwritten,
    ) -> Option<Origin> {
        for read in &uses.reads {
            let Side::Memory(slot) = read.side else { continue };
            let access = accesses[slot as usize];
            let address = access.address.wrapping_add(u64::from(read.from));
            if memory.first(address, u64::from(read.bytes)).is_some() {
                let here = Origin { pc: code.pc, address, size: u32::from(read.bytes) };
                return Some(memory.origin(here));
            }
        }
        self.registers.used(&(uses.values | uses.conditions))
    }
}

/// What was stored counts as written.
fn written(accesses: &[Access], memory: &mut Unwritten) {
    for access in accesses.iter().filter(|access| access.write) {
        memory.remove(access.address, u64::from(access.size));
    }
}
