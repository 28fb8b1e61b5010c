//! What an instruction defines, and from which definitions.

use super::{Access, Reference, Saved};
use analyze::semantics::{Flow, Meaning, Parts, Shuttle, Side, Span, StringOp, Uses};
use analyze::slice::Kind;
use std::collections::BTreeSet;

impl Reference<'_> {
    /// A register restored from where this same frame has saved it keeps the definitions that it
    /// had then.
    pub(super) fn restore(&mut self, by: usize, meaning: &Meaning, accesses: &[Access]) -> bool {
        match (meaning.shuttle, accesses) {
            (Some(Shuttle::Save(register)), [(true, ..)]) => {
                let frame = self.top().id;
                let thread = self.thread();
                let parts = Parts::general(register, 0, 8).iter();
                let parts = parts.map(|part| (part, thread.parts.get(&part).copied())).collect();
                self.saved.insert(by, Saved { frame, register, parts });
                false
            }
            (Some(Shuttle::Restore(register)), [(false, address, 8), ..])
                if self.options.bypass =>
            {
                let makers: BTreeSet<Option<usize>> = (*address..address + 8)
                    .map(|byte| self.bytes.get(&byte).map(|made| self.definitions[*made].by))
                    .collect();
                let frame = self.top().id;
                let [Some(maker)] = makers.into_iter().collect::<Vec<_>>()[..] else {
                    return false;
                };
                let Some(saved) = self.saved.get(&maker) else { return false };
                if (saved.frame, saved.register) != (frame, register) {
                    return false;
                }
                let parts = saved.parts.clone();
                let thread = self.thread();
                for (part, definition) in parts {
                    match definition {
                        Some(definition) => thread.parts.insert(part, definition),
                        None => thread.parts.remove(&part),
                    };
                }
                true
            }
            _ => false,
        }
    }

    /// The address of what is read is a value if nobody can write there.
    fn address_uses(
        &mut self,
        meaning: &Meaning,
        span: Span,
        accesses: &[Access],
    ) -> Vec<(usize, Kind)> {
        match span.side {
            Side::Memory(slot) => {
                let (_, address, _) = accesses[usize::from(slot)];
                let constants = &self.options.constants;
                let operand = &meaning.memory[usize::from(slot)];
                let constant = operand.entry
                    && constants.iter().any(|(from, n)| (*from..from + n).contains(&address));
                let kind = if constant { Kind::Value } else { Kind::Address };
                self.of_parts(meaning.memory[usize::from(slot)].address, kind)
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn used(
        &mut self,
        meaning: &Meaning,
        uses: &Uses,
        accesses: &[Access],
    ) -> Vec<(usize, Kind)> {
        let mut from = self.of_parts(uses.values, Kind::Value);
        from.extend(self.of_parts(uses.conditions, Kind::Control));
        for read in &uses.reads {
            let Side::Memory(slot) = read.side else { continue };
            let Some((_, address, _)) = accesses.get(usize::from(slot)) else { continue };
            from.extend(self.of_bytes(address + u64::from(read.from), read.bytes.into()));
            from.extend(self.address_uses(meaning, *read, accesses));
        }
        from
    }

    pub(super) fn flows(&mut self, by: usize, meaning: &Meaning, accesses: &[Access]) {
        let regular = accesses.len() == meaning.memory.len();
        assert!(regular, "the programs of these tests have no gathers and the like");
        // All uses are looked up before anything is defined.
        let mut parts: Vec<(Parts, usize)> = Vec::new();
        let mut bytes: Vec<(u64, usize)> = Vec::new();
        for flow in &meaning.flows {
            match flow {
                Flow::Copy { to, from } => {
                    for (mask, target) in self.pieces(*to) {
                        let mut uses = self.address_uses(meaning, *to, accesses);
                        match from.side {
                            Side::Memory(slot) => {
                                let address = accesses[usize::from(slot)].1 + u64::from(from.from);
                                for byte in (0..64).filter(|byte| mask >> byte & 1 == 1) {
                                    uses.extend(self.of_bytes(address + byte, 1));
                                }
                                uses.extend(self.address_uses(meaning, *from, accesses));
                            }
                            _ => {
                                let source = from.some_parts(mask as u32);
                                uses.extend(self.of_parts(source, Kind::Value));
                            }
                        }
                        let made = self.define(by, uses);
                        match to.side {
                            Side::Memory(slot) => {
                                let address = accesses[usize::from(slot)].1 + u64::from(to.from);
                                bytes.push((address + u64::from(mask.trailing_zeros()), made));
                            }
                            _ => parts.push((target, made)),
                        }
                    }
                }
                Flow::Make { parts: made, write, uses, .. } => {
                    let from = self.used(meaning, uses, accesses);
                    if !made.is_empty() {
                        let definition = self.define(by, from.clone());
                        parts.push((*made, definition));
                    }
                    if let Some(write) = write
                        && let Side::Memory(slot) = write.side
                    {
                        let mut from = from;
                        from.extend(self.address_uses(meaning, *write, accesses));
                        let definition = self.define(by, from);
                        let address = accesses[usize::from(slot)].1 + u64::from(write.from);
                        bytes
                            .extend((0..u64::from(write.bytes)).map(|b| (address + b, definition)));
                    }
                }
            }
        }
        let thread = self.thread();
        for (parts, definition) in parts {
            for part in parts.iter() {
                // A frame pointer is made from nothing, and is in no slice.
                match (!meaning.frame).then_some(definition) {
                    Some(definition) => thread.parts.insert(part, definition),
                    None => thread.parts.remove(&part),
                };
            }
        }
        self.bytes.extend(bytes);
    }

    /// The parts (or bytes of memory) of a span, with the bytes of each.
    fn pieces(&self, span: Span) -> Vec<(u64, Parts)> {
        match span.side {
            Side::Memory(_) => (0..span.bytes).map(|byte| (1 << byte, Parts::NONE)).collect(),
            _ => span
                .parts()
                .iter()
                .map(|part| (span.bytes_in(&Parts::numbered(part)).into(), Parts::numbered(part)))
                .collect(),
        }
    }

    pub(super) fn string(
        &mut self,
        by: usize,
        operation: StringOp,
        completed: bool,
        accesses: &[Access],
    ) {
        if accesses.is_empty() {
            return;
        }
        let whole = |number| Parts::general(number, 0, 8);
        let (rcx, rsi, rdi) = (whole(1), whole(6), whole(7));
        let size = accesses[0].2;
        let accumulator = Parts::general(0, 0, size as u8);
        let mut addresses = self.of_parts(rdi, Kind::Address);
        addresses.extend(self.of_parts(rcx, Kind::Control));
        let values = |reference: &mut Self, parts| reference.of_parts(parts, Kind::Value);
        match operation {
            StringOp::Moves => {
                addresses.extend(self.of_parts(rsi, Kind::Address));
                for pair in accesses.chunks(2) {
                    let [(_, source, _), (_, target, _)] = pair[..] else { break };
                    let from: Vec<_> = (0..size).map(|b| self.of_bytes(source + b, 1)).collect();
                    for (byte, mut from) in (0..).zip(from) {
                        from.extend(&addresses);
                        let made = self.define(by, from);
                        self.bytes.insert(target + byte, made);
                    }
                }
            }
            StringOp::Stores => {
                let mut from = values(self, accumulator);
                from.extend(&addresses);
                let made = self.define(by, from);
                for (_, target, _) in accesses {
                    self.bytes.extend((0..size).map(|byte| (target + byte, made)));
                }
            }
            other => panic!("the programs of these tests do not use {other:?}"),
        }
        let set = |reference: &mut Self, parts: Parts, from: Vec<(usize, Kind)>| {
            let made = reference.define(by, from);
            parts.iter().for_each(|part| {
                reference.thread().parts.insert(part, made);
            });
        };
        let moved = values(self, rdi | rcx);
        let moved_source = values(self, rsi | rcx);
        let counted = if completed { Vec::new() } else { values(self, rcx) };
        set(self, rdi, moved);
        if operation == StringOp::Moves {
            set(self, rsi, moved_source);
        }
        set(self, rcx, counted);
    }
}
