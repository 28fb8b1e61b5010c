//! What is known of one thread: its registers' cells, its calls, and which parts of its registers
//! hold something that nobody wrote.

use super::Access;
use super::allocator::Allocator;
use super::blocks::StackId;
use super::bytes::Bytes;
use super::calls::Calls;
use super::cells::Cell;
use super::chains::Node;
use super::code::{CELLS, Code};
use crate::rules::state::Pointer;
use crate::semantics::{Flow, Parts, Side, Span, Uses};

/// A call of an allocator that has not returned.
#[derive(Clone, Copy, Debug)]
pub struct Inside {
    /// What it does.
    pub allocator: Allocator,
    /// The function's address.
    pub function: u64,
    /// Where it returns to.
    pub back: u64,
    /// Stack pointer at its entry.
    pub stack: u64,
    /// Its arguments.
    pub arguments: [u64; 6],
    /// Its first argument as a pointer.
    pub pointer: Pointer,
    /// The chain of that.
    pub chain: Node,
    /// By which calls it was reached.
    pub callers: StackId,
}

impl Inside {
    /// The bytes that are asked for.
    #[must_use]
    pub fn size(&self, size: u8, count: Option<u8>) -> u64 {
        let count = count.map_or(1, |count| self.arguments[count as usize]);
        self.arguments[size as usize].saturating_mul(count)
    }
}

/// Where something that nobody wrote was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The instruction that read it.
    pub pc: u64,
    /// Where.
    pub address: u64,
    /// Bytes.
    pub size: u32,
}

/// Flags have one origin, behind those of the registers.
const FLAGS: usize = 32;

/// One thread.
pub struct Thread {
    /// What registers carry.
    pub cells: [Cell; CELLS],
    /// Active calls.
    pub calls: Calls,
    /// The stack pointer, where it is known.
    pub stack: Option<u64>,
    /// The frame pointer, where the function keeps one.
    pub frame: Option<u64>,
    /// Calls of allocators that have not returned, outermost first.
    pub inside: Vec<Inside>,
    /// Parts of registers that hold something nobody wrote.
    pub unwritten: Parts,
    /// The lowest address of the stack that was written since it was last below the stack pointer.
    pub low: u64,
    origins: [Origin; FLAGS + 1],
}

impl Default for Thread {
    fn default() -> Self {
        Self {
            cells: [Cell::default(); CELLS],
            calls: Calls::default(),
            stack: None,
            frame: None,
            inside: Vec::new(),
            unwritten: Parts::NONE,
            low: 0,
            origins: [Origin::default(); FLAGS + 1],
        }
    }
}

impl Thread {
    /// Forgets calls of allocators that ended by a jump out of them.
    pub fn leave_below(&mut self, stack: u64) {
        // At the same height it is a tail call: still inside.
        self.inside.retain(|inside| inside.stack >= stack);
    }

    /// What of these uses nobody wrote: where it was read.
    #[must_use]
    pub fn unwritten_use(&self, parts: &Parts) -> Option<Origin> {
        if !self.unwritten.meets(parts) {
            return None;
        }
        Some(self.origin_of(parts))
    }

    fn origin_of(&self, parts: &Parts) -> Origin {
        for number in 0..16u8 {
            if parts.general_bytes(number) != 0
                && self
                    .unwritten
                    .meets(&Parts::of_general_bytes(number, parts.general_bytes(number)))
            {
                return self.origins[number as usize];
            }
            let bytes = parts.vector_bytes(number);
            if bytes != 0 && self.unwritten.meets(&Parts::of_vector_bytes(number, bytes)) {
                return self.origins[16 + number as usize];
            }
        }
        self.origins[FLAGS]
    }

    fn set_origin(&mut self, parts: &Parts, origin: Origin) {
        for number in 0..16u8 {
            if parts.general_bytes(number) != 0 {
                self.origins[number as usize] = origin;
            }
            if parts.vector_bytes(number) != 0 {
                self.origins[16 + number as usize] = origin;
            }
        }
        if !parts.only_flags().is_empty() {
            self.origins[FLAGS] = origin;
        }
    }

    /// Follows what nobody wrote through one instruction.
    pub fn follow(&mut self, code: &Code, accesses: &[Access], memory: &mut Bytes) {
        let meaning = &code.meaning;
        let matched = accesses.len() == meaning.memory.len();
        if !matched || meaning.repeats.is_some() {
            self.unwritten = self.unwritten.without(&meaning.defines);
            for access in accesses.iter().filter(|access| access.write) {
                memory.remove(access.address, u64::from(access.size));
            }
            return;
        }
        let reads = accesses.iter().filter(|access| !access.write);
        let unread =
            |access: &Access| memory.first(access.address, u64::from(access.size)).is_none();
        if self.unwritten.is_empty() && reads.clone().all(unread) {
            for access in accesses.iter().filter(|access| access.write) {
                memory.remove(access.address, u64::from(access.size));
            }
            return;
        }
        self.follow_flows(code, accesses, memory);
    }

    fn follow_flows(&mut self, code: &Code, accesses: &[Access], memory: &mut Bytes) {
        let (before, origins) = (self.unwritten, self.origins);
        let mut writes: Vec<(u64, u64, u64)> = Vec::new();
        let mut after = self.unwritten.without(&code.meaning.defines);
        for flow in &code.meaning.flows {
            let (parts, write, bits, origin) = match flow {
                Flow::Copy { to, from } => {
                    let (bits, origin) = self.copied(from, code, accesses, memory, &before);
                    (to.some_parts(bits as u32), memory_of(to), bits, origin)
                }
                Flow::Make { parts, write, uses, .. } => {
                    let origin = self.used(uses, code, accesses, memory, &before);
                    let dirty = origin.is_some() && !code.cleanses;
                    let bits = if dirty { u64::MAX } else { 0 };
                    let parts = if dirty { *parts } else { Parts::NONE };
                    (parts, write.as_ref().and_then(memory_of), bits, origin)
                }
            };
            after |= parts;
            if let (Some(origin), false) = (origin, parts.is_empty()) {
                self.origins = origins;
                self.set_origin(&parts, origin);
            }
            if let Some((slot, from, bytes)) = write {
                let address = accesses[slot].address.wrapping_add(from);
                writes.push((address, bytes, bits));
            }
        }
        self.unwritten = after;
        for (address, bytes, bits) in writes {
            memory.assign(address, bytes.min(64), bits);
        }
    }

    fn copied(
        &self,
        from: &Span,
        code: &Code,
        accesses: &[Access],
        memory: &Bytes,
        before: &Parts,
    ) -> (u64, Option<Origin>) {
        match from.side {
            Side::Memory(slot) => {
                let access = accesses[slot as usize];
                let address = access.address.wrapping_add(u64::from(from.from));
                let bits = memory.bits(address, u64::from(from.bytes));
                let origin = Origin { pc: code.pc, address, size: u32::from(from.bytes) };
                (bits, (bits != 0).then_some(origin))
            }
            _ => {
                let bits = u64::from(from.bytes_in(before));
                (bits, (bits != 0).then(|| self.origin_of(&from.parts())))
            }
        }
    }

    fn used(
        &self,
        uses: &Uses,
        code: &Code,
        accesses: &[Access],
        memory: &Bytes,
        before: &Parts,
    ) -> Option<Origin> {
        for read in &uses.reads {
            let Side::Memory(slot) = read.side else { continue };
            let access = accesses[slot as usize];
            let address = access.address.wrapping_add(u64::from(read.from));
            if memory.first(address, u64::from(read.bytes)).is_some() {
                return Some(Origin { pc: code.pc, address, size: u32::from(read.bytes) });
            }
        }
        let parts = uses.values | uses.conditions;
        before.meets(&parts).then(|| self.origin_of(&parts))
    }
}

/// The memory operand of a span, and which of its bytes.
fn memory_of(span: &Span) -> Option<(usize, u64, u64)> {
    match span.side {
        Side::Memory(slot) => Some((slot as usize, u64::from(span.from), u64::from(span.bytes))),
        _ => None,
    }
}
