//! What an instruction makes of marks.

use super::Forward;
use crate::semantics::{Flow, Parts, Shuttle, Side, Span, StringOp, Uses};
use crate::slice::at::At;
use crate::slice::graph::Kind;
use crate::slice::strings::{Repeated, repeated};
use crate::slice::wanters::Reasons;

/// What of an instruction's definitions carries the value.
#[derive(Default)]
pub struct Made {
    parts: Parts,
    /// Address, which of 64 bytes.
    bytes: Vec<(u64, u64)>,
    any: bool,
    everything: bool,
}

impl Made {
    /// Whether anything does.
    pub fn is_some(&self) -> bool {
        self.any
    }

    /// Forgets it all unless it is to be kept.
    pub fn keep(&mut self, keep: bool) {
        if !keep {
            *self = Self::default();
        }
    }

    /// All that the instruction defines, but for a frame pointer.
    pub fn all(&mut self, frame: bool) {
        self.everything = !frame;
    }

    fn parts(&mut self, parts: Parts) {
        self.parts |= parts;
        self.any |= !parts.is_empty();
    }

    fn bytes(&mut self, address: u64, which: u64) {
        if which != 0 {
            self.bytes.push((address, which));
            self.any = true;
        }
    }

    fn range(&mut self, address: u64, bytes: u64) {
        for from in (0..bytes).step_by(64) {
            self.bytes(address.wrapping_add(from), first(bytes - from));
        }
    }
}

/// The mask of the first so many of 64 bytes.
fn first(bytes: u64) -> u64 {
    if bytes >= 64 { u64::MAX } else { (1 << bytes) - 1 }
}

impl Forward<'_> {
    /// What the instruction makes of what is marked; nothing is changed yet.
    pub(super) fn makes(&mut self, at: &At<'_>, found: &mut Reasons, made: &mut Made) {
        let meaning = at.meaning();
        if let Some(operation) = meaning.repeats {
            return self.string(at, operation, found, made);
        }
        if at.is_irregular() {
            return self.irregular(at, found, made);
        }
        for flow in &meaning.flows {
            match flow {
                Flow::Copy { to, from } => self.copy(at, *to, *from, found, made),
                Flow::Make { parts, write, uses, .. } => {
                    let used = self.used(at, uses, found);
                    if used && !meaning.frame {
                        made.parts(*parts);
                    }
                    if let Some(write) = write
                        && let Side::Memory(slot) = write.side
                        && (self.addressed(at, *write, found) | used)
                        && let Some(address) = at.slot(slot)
                    {
                        made.range(address.wrapping_add(write.from.into()), write.bytes.into());
                    }
                }
            }
        }
    }

    fn copy(&mut self, at: &At<'_>, to: Span, from: Span, found: &mut Reasons, made: &mut Made) {
        let addressed = self.addressed(at, to, found) | self.addressed(at, from, found);
        let mask = match from.side {
            Side::Memory(slot) => {
                let Some(address) = at.slot(slot) else { return };
                let address = address.wrapping_add(from.from.into());
                let mask = self.memory.mask(address, from.bytes.into());
                self.memory.tell(address, mask, found);
                mask
            }
            _ => {
                let marked = self.current.marked.marked();
                self.current.marked.tell(from.parts(), Kind::Value, found);
                from.bytes_in(&marked).into()
            }
        };
        let mask = if addressed { first(to.bytes.into()) } else { mask };
        match to.side {
            Side::Memory(slot) => {
                if let Some(address) = at.slot(slot) {
                    made.bytes(address.wrapping_add(to.from.into()), mask);
                }
            }
            _ => made.parts(to.some_parts(mask as u32)),
        }
    }

    /// Whether the address of a span of memory carries the value.
    fn addressed(&mut self, at: &At<'_>, span: Span, found: &mut Reasons) -> bool {
        let Side::Memory(slot) = span.side else { return false };
        let operand = &at.meaning().memory[usize::from(slot)];
        let kind = self.question.address_kind(operand.entry, at.slot(slot));
        self.parts(operand.address, kind, found)
    }

    /// Whether register parts carry the value, and edges of this kind are followed.
    fn parts(&mut self, parts: Parts, kind: Kind, found: &mut Reasons) -> bool {
        if !self.question.follow.follows(kind) || !self.current.marked.meets(&parts) {
            return false;
        }
        self.current.marked.tell(parts, kind, found);
        true
    }

    /// Whether any of a range of memory carries the value.
    fn read(&mut self, address: u64, bytes: u64, found: &mut Reasons) -> bool {
        if !self.memory.has(address, bytes) {
            return false;
        }
        for from in (0..bytes).step_by(64) {
            let address = address.wrapping_add(from);
            let mask = self.memory.mask(address, (bytes - from).min(64));
            self.memory.tell(address, mask, found);
        }
        true
    }

    /// Whether any of these uses carries the value.
    pub(super) fn used(&mut self, at: &At<'_>, uses: &Uses, found: &mut Reasons) -> bool {
        let mut any = self.parts(uses.values, Kind::Value, found);
        any |= self.parts(uses.conditions, Kind::Control, found);
        for read in &uses.reads {
            if let Side::Memory(slot) = read.side
                && let Some(address) = at.slot(slot)
            {
                any |= self.read(address.wrapping_add(read.from.into()), read.bytes.into(), found);
                any |= self.addressed(at, *read, found);
            }
        }
        any
    }

    /// An instruction whose accesses stand in a record of their own: all from all.
    fn irregular(&mut self, at: &At<'_>, found: &mut Reasons, made: &mut Made) {
        let meaning = at.meaning();
        let mut any = self.parts(meaning.addresses(), Kind::Address, found);
        for flow in &meaning.flows {
            match flow {
                Flow::Copy { from, .. } => any |= self.parts(from.parts(), Kind::Value, found),
                Flow::Make { uses, .. } => {
                    any |= self.parts(uses.values, Kind::Value, found);
                    any |= self.parts(uses.conditions, Kind::Control, found);
                }
            }
        }
        for (_, address, bytes) in at.explicit().filter(|access| !access.0) {
            any |= self.read(address, bytes, found);
        }
        if any {
            made.parts(meaning.defines);
            for (_, address, bytes) in at.explicit().filter(|access| access.0) {
                made.range(address, bytes);
            }
        }
    }

    fn string(&mut self, at: &At<'_>, operation: StringOp, found: &mut Reasons, made: &mut Made) {
        let Some(did) = self.repeated(at) else { return };
        let whole = |number| Parts::general(number, 0, 8);
        let (rax, rcx, rsi, rdi) = (whole(0), whole(1), whole(6), whole(7));
        let accumulator = Parts::general(0, 0, did.size as u8);
        let counted = self.parts(rcx, Kind::Control, found);
        let to_address = self.parts(rdi, Kind::Address, found);
        let from_address = operation.reads_source() && self.parts(rsi, Kind::Address, found);
        let count = self.parts(rcx, Kind::Value, found);
        if count || self.parts(rsi, Kind::Value, found) {
            made.parts(rsi & at.meaning().defines);
        }
        if count || self.parts(rdi, Kind::Value, found) {
            made.parts(rdi & at.meaning().defines);
        }
        match operation {
            StringOp::Moves if counted || to_address || from_address => {
                made.range(did.target, did.bytes);
            }
            StringOp::Moves => self.moved(&did, found, made),
            StringOp::Stores => {
                if counted || to_address || self.parts(accumulator, Kind::Value, found) {
                    made.range(did.target, did.bytes);
                }
            }
            StringOp::Loads => {
                let last = if did.down { 0 } else { did.bytes - did.size };
                if self.read(did.source + last, did.size, found) | counted | from_address {
                    made.parts(rax & at.meaning().defines);
                }
            }
            StringOp::Compares | StringOp::Scans => {
                let mut any = count | to_address | from_address;
                any |= operation.reads_source() && self.read(did.source, did.bytes, found);
                any |= operation.reads_target() && self.read(did.target, did.bytes, found);
                any |= operation == StringOp::Scans && self.parts(accumulator, Kind::Value, found);
                if any {
                    made.parts(at.meaning().defines);
                }
            }
        }
        let completed = at.index < at.record.exit.executed;
        let counts = matches!(operation, StringOp::Moves | StringOp::Stores | StringOp::Loads);
        if counts && !completed && count {
            made.parts(rcx);
        }
    }

    fn repeated(&self, at: &At<'_>) -> Option<Repeated> {
        let range = at.record.block.accesses_of(at.index);
        let accesses = &at.record.block.accesses[range];
        let did = repeated(accesses, at.record.payload, at.record.when.bases)?;
        // Not even the counter changes where nothing is repeated.
        (did.bytes > 0).then_some(did)
    }

    /// A repeated move, byte for byte. Where it ran into what it had written, the bytes come from
    /// its beginning.
    fn moved(&mut self, did: &Repeated, found: &mut Reasons, made: &mut Made) {
        let apart = did.target.wrapping_sub(did.source);
        let wraps = !did.down && apart >= did.size && apart < did.bytes;
        let source = if wraps { apart } else { did.bytes };
        if !self.read(did.source, source, found) {
            return;
        }
        if wraps {
            for byte in 0..did.bytes {
                if self.memory.has(did.source + byte % apart, 1) {
                    made.bytes(did.target + byte, 1);
                }
            }
            return;
        }
        for from in (0..did.bytes).step_by(64) {
            let mask = self.memory.mask(did.source + from, (did.bytes - from).min(64));
            made.bytes(did.target + from, mask);
        }
    }

    /// Whether the instruction restores a register that its frame has saved: it then has the marks
    /// again that it had. What is not marked was saved without, most likely where nobody looked.
    pub(super) fn restores(&mut self, at: &At<'_>) -> bool {
        let Some(Shuttle::Restore(register)) = at.meaning().shuttle else { return false };
        let Some(address) = at.slot(0).filter(|_| self.question.bypass) else { return false };
        let parts = Parts::general(register, 0, 8);
        match self.current.frames.restored(address, register) {
            Some(marks) => self.current.marked.put_back(parts, &marks),
            None if self.memory.has(address, 8) => return false,
            None => self.current.marked.clear(parts),
        }
        self.slice.bypassed += 1;
        true
    }

    /// Takes marks off what the instruction defines, and marks what carries the value.
    pub(super) fn define(&mut self, at: &At<'_>, made: &Made, node: Option<u32>) {
        let meaning = at.meaning();
        let saved = match meaning.shuttle {
            Some(Shuttle::Save(register)) => {
                // Also if it is too far from the question to be followed: who restores the register
                // is no further than who made it.
                let marks = self.current.marked.part(Parts::general(register, 0, 8));
                let matters = node.is_some() || !marks.marked().is_empty();
                at.slot(0).filter(|_| matters).map(|address| (address, register, marks))
            }
            _ => None,
        };
        let mut stores: Vec<(u64, u64)> = Vec::new();
        let mut defines = meaning.defines;
        if meaning.repeats.is_some() {
            match self.repeated(at) {
                Some(did)
                    if matches!(meaning.repeats, Some(StringOp::Moves | StringOp::Stores)) =>
                {
                    stores.push((did.target, did.bytes));
                }
                Some(_) => {}
                None => defines = Parts::NONE,
            }
        } else if at.is_irregular() {
            let written = at.explicit().filter(|access| access.0);
            stores.extend(written.map(|(_, address, bytes)| (address, bytes)));
        } else {
            let written = meaning.writes().filter_map(|slot| {
                Some((at.slot(slot)?, meaning.memory[usize::from(slot)].bytes.into()))
            });
            stores.extend(written);
        }
        self.current.marked.clear(defines);
        for (address, bytes) in &stores {
            self.memory.clear(*address, *bytes);
            self.overwrite(*address, *bytes);
        }
        if let Some((address, register, marks)) = saved {
            self.current.frames.save(address, register, marks);
        }
        let Some(node) = node else { return };
        if made.everything {
            self.current.marked.set(self.unpruned(defines), node);
            stores.iter().for_each(|(address, bytes)| self.mark_range(*address, *bytes, node));
        } else {
            self.current.marked.set(self.unpruned(made.parts), node);
            made.bytes.iter().for_each(|(address, which)| self.mark(*address, *which, node));
        }
    }

    /// Registers saved here by any thread are no longer.
    fn overwrite(&mut self, address: u64, bytes: u64) {
        self.current.frames.overwrite(address, bytes);
        self.others.values_mut().for_each(|thread| thread.frames.overwrite(address, bytes));
    }
}
