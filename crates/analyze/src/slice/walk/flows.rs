//! What an instruction defines of what is wanted, and what it wants in turn.

use super::{Next, Walk};
use crate::semantics::{Flow, Parts, Side, Span, StringOp, Uses};
use crate::slice::at::At;
use crate::slice::graph::Kind;
use crate::slice::strings::{Repeated, repeated};
use crate::slice::wanters::Reasons;

impl Walk<'_> {
    pub(super) fn flows(&mut self, at: &At<'_>, found: &mut Reasons, next: &mut Next) -> bool {
        let mut hit = false;
        for flow in &at.meaning().flows {
            match flow {
                Flow::Copy { to, from } => {
                    let mask = self.take_span(at, *to, found);
                    if mask != 0 {
                        hit = true;
                        self.use_span(at, *from, mask, next);
                        self.use_address(at, *to, next);
                    }
                }
                Flow::Make { parts, write, uses, .. } => {
                    let mut any = self.current.wanted.meets(parts);
                    if any {
                        self.take_parts(*parts, found);
                    }
                    if let Some(write) = write
                        && self.take_span(at, *write, found) != 0
                    {
                        any = true;
                        self.use_address(at, *write, next);
                    }
                    if any {
                        hit = true;
                        self.use_all(at, uses, next);
                    }
                }
            }
        }
        hit
    }

    /// An instruction whose accesses stand in a record of their own: all from all.
    pub(super) fn irregular(&mut self, at: &At<'_>, found: &mut Reasons, next: &mut Next) -> bool {
        let meaning = at.meaning();
        let mut hit = self.current.wanted.meets(&meaning.defines);
        if hit {
            self.take_parts(meaning.defines, found);
        }
        let accesses = at.explicit();
        for (_, address, bytes) in accesses.clone().filter(|access| access.0) {
            hit |= self.take_range(address, bytes, found).is_some();
        }
        if hit {
            for flow in &meaning.flows {
                match flow {
                    Flow::Copy { from, .. } => next.parts(Kind::Value, from.parts()),
                    Flow::Make { uses, .. } => {
                        next.parts(Kind::Value, uses.values);
                        next.parts(Kind::Control, uses.conditions);
                    }
                }
            }
            for (_, address, bytes) in accesses.filter(|access| !access.0) {
                next.range(address, bytes);
            }
            next.parts(Kind::Address, meaning.addresses());
        }
        hit
    }

    pub(super) fn string(
        &mut self,
        at: &At<'_>,
        operation: StringOp,
        found: &mut Reasons,
        next: &mut Next,
    ) -> bool {
        let range = at.record.block.accesses_of(at.index);
        let accesses = &at.record.block.accesses[range];
        let Some(did) = repeated(accesses, at.record.payload, at.record.when.bases) else {
            return false;
        };
        if did.bytes == 0 {
            // Not even the counter changes.
            return false;
        }
        let whole = |number| Parts::general(number, 0, 8);
        let (rax, rcx, rsi, rdi) = (whole(0), whole(1), whole(6), whole(7));
        let mut hit = false;
        if matches!(operation, StringOp::Moves | StringOp::Stores)
            && let Some(taken) = self.take_range(did.target, did.bytes, found)
        {
            hit = true;
            next.parts(Kind::Address, rdi);
            next.parts(Kind::Control, rcx);
            if operation == StringOp::Moves {
                next.parts(Kind::Address, rsi);
                moved(&did, &taken, next);
            } else {
                next.parts(Kind::Value, Parts::general(0, 0, did.size as u8));
            }
        }
        let completed = at.index < at.record.exit.executed;
        let counts = matches!(operation, StringOp::Moves | StringOp::Stores | StringOp::Loads);
        let defines = at.meaning().defines & self.current.wanted;
        if defines.is_empty() {
            return hit;
        }
        self.take_parts(defines, found);
        if counts {
            if defines.meets(&rsi) {
                next.parts(Kind::Value, rsi | rcx);
            }
            if defines.meets(&rdi) {
                next.parts(Kind::Value, rdi | rcx);
            }
            if defines.meets(&rcx) && !completed {
                next.parts(Kind::Value, rcx);
            }
            if operation == StringOp::Loads && defines.meets(&rax) {
                let last = if did.down { 0 } else { did.bytes - did.size };
                next.range(did.source + last, did.size);
                next.parts(Kind::Address, rsi);
                next.parts(Kind::Control, rcx);
            }
        } else {
            next.parts(Kind::Value, rcx);
            if operation.reads_source() {
                next.range(did.source, did.bytes);
                next.parts(Kind::Value, rsi & defines);
                next.parts(Kind::Address, rsi);
            } else {
                next.parts(Kind::Value, Parts::general(0, 0, did.size as u8));
            }
            if operation.reads_target() {
                next.range(did.target, did.bytes);
                next.parts(Kind::Value, rdi & defines);
                next.parts(Kind::Address, rdi);
            }
        }
        true
    }

    /// Takes what is wanted of a span out of the set; which of its bytes.
    pub(super) fn take_span(&mut self, at: &At<'_>, span: Span, found: &mut Reasons) -> u64 {
        match span.side {
            Side::Memory(slot) => {
                let Some(address) = at.slot(slot) else { return 0 };
                let address = address.wrapping_add(span.from.into());
                let bytes = u64::from(span.bytes);
                if bytes > 64 {
                    return u64::from(self.take_range(address, bytes, found).is_some());
                }
                let taken = self.memory.take(address, bytes);
                if taken != 0 && self.keeps_edges() {
                    self.wanters.take_bytes(address, taken, found);
                }
                taken
            }
            _ => {
                let mask = span.bytes_in(&self.current.wanted);
                if mask != 0 {
                    self.take_parts(span.some_parts(mask), found);
                }
                mask.into()
            }
        }
    }

    pub(super) fn take_parts(&mut self, parts: Parts, found: &mut Reasons) {
        let taken = self.current.wanted & parts;
        self.current.wanted = self.current.wanted.without(&parts);
        if self.keeps_edges() {
            self.wanters.take_parts(self.number, taken, found);
        }
    }

    /// Takes a range of memory out of the set: what was wanted of it, if anything was. Registers
    /// restored from there were not saved there.
    pub(super) fn take_range(
        &mut self,
        address: u64,
        bytes: u64,
        found: &mut Reasons,
    ) -> Option<Vec<(u64, u64)>> {
        if !self.saved.is_empty() {
            self.refute(address, bytes);
        }
        let taken = self.memory.take_range(address, bytes);
        if self.keeps_edges() {
            for (from, count) in &taken {
                for at in 0..*count {
                    self.wanters.take_bytes(from + at, 1, found);
                }
            }
        }
        (!taken.is_empty()).then_some(taken)
    }

    pub(super) fn use_span(&self, at: &At<'_>, span: Span, mask: u64, next: &mut Next) {
        match span.side {
            Side::Memory(slot) => {
                if let Some(address) = at.slot(slot) {
                    next.memory.push((address.wrapping_add(span.from.into()), mask, Kind::Value));
                }
                self.use_read_address(at, span, next);
            }
            _ => next.parts(Kind::Value, span.some_parts(mask as u32)),
        }
    }

    pub(super) fn use_address(&self, at: &At<'_>, span: Span, next: &mut Next) {
        if let Side::Memory(slot) = span.side {
            next.parts(Kind::Address, at.meaning().memory[usize::from(slot)].address);
        }
    }

    /// The registers that form the address of what is read.
    fn use_read_address(&self, at: &At<'_>, span: Span, next: &mut Next) {
        if let Side::Memory(slot) = span.side {
            let operand = &at.meaning().memory[usize::from(slot)];
            let kind = self.question.address_kind(operand.entry, at.slot(slot));
            next.parts(kind, operand.address);
        }
    }

    pub(super) fn use_all(&self, at: &At<'_>, uses: &Uses, next: &mut Next) {
        next.parts(Kind::Value, uses.values);
        next.parts(Kind::Control, uses.conditions);
        for read in &uses.reads {
            if let Side::Memory(slot) = read.side
                && let Some(address) = at.slot(slot)
            {
                next.range(address.wrapping_add(read.from.into()), read.bytes.into());
                self.use_read_address(at, *read, next);
            }
        }
    }
}

/// The bytes that a repeated move took from its source. Where it ran into what it had written, the
/// bytes come from its beginning.
fn moved(did: &Repeated, taken: &[(u64, u64)], next: &mut Next) {
    let apart = did.target.wrapping_sub(did.source);
    let wraps = !did.down && apart >= did.size && apart < did.bytes;
    for (from, count) in taken {
        if wraps {
            for byte in *from..from + count {
                next.range(did.source + (byte - did.target) % apart, 1);
            }
        } else {
            next.range(did.source.wrapping_add(from - did.target), *count);
        }
    }
}
