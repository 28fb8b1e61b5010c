//! What instructions read, write and use: rules about accesses, and about bytes that nobody wrote.

use super::*;

impl Detector {
    /// An instruction is about to complete, with these accesses.
    pub fn instruction(&mut self, code: &Code, accesses: &[Access]) {
        if code.is_quiet && !self.machine.running().registers.meets(code.touched | code.steers) {
            self.machine.time += 1;
            return;
        }
        self.machine.clock.here = (code.ticks_before, code.pc);
        if !self.machine.is_inside() {
            self.accesses(code, accesses);
            if self.machine.watches_writes {
                self.uses(code, accesses);
            }
        }
        self.machine.execute(code, accesses);
    }

    /// An instruction made these accesses and did not complete.
    pub fn interrupted(&mut self, code: &Code, accesses: &[Access]) {
        self.machine.clock.here = (code.ticks_before, code.pc);
        if !self.machine.is_inside() {
            self.accesses(code, accesses);
        }
    }

    fn accesses(&mut self, code: &Code, accesses: &[Access]) {
        let slots = code.pointers.len();
        if slots == 0 || (accesses.len() != slots && !accesses.len().is_multiple_of(slots)) {
            return;
        }
        for (index, access) in accesses.iter().enumerate() {
            // Repeated string instructions go through the same pointers again and again.
            let slot = if index < slots { index } else { index % slots };
            if Machine::goes_through_pointer(code, slot) {
                self.access(code, slot, access);
            }
        }
    }

    /// An access is about to be made.
    fn access(&mut self, code: &Code, slot: usize, access: &Access) {
        let (mut pointer, chain) = if self.machine.needs.pointers {
            self.machine.pointer(code, slot, access.address)
        } else {
            (Pointer { address: access.address, block: None }, Node::default())
        };
        if self.machine.is_from_before(pointer.block) {
            // At NULL there is nothing, whatever the pointer was made from.
            if access.address >= NULL_PAGE {
                self.not_known(code.pc);
                return;
            }
            pointer.block = None;
        }
        let known = pointer.block.is_some();
        let standing = self.standing(&mut pointer, access);
        let situation = Situation { standing, written: true };
        if !self.screens[usize::from(access.write)].admits(situation) {
            return;
        }
        let guessed = standing == Standing::Freed && !known;
        let over_reads =
            (standing == Standing::Outside || guessed) && code.vector_read && !access.write;
        if over_reads && self.lenient.iter().any(|range| range.contains(&code.pc)) {
            return;
        }
        let at = At {
            pc: code.pc,
            values: vec![Value::Pointer(pointer)],
            chains: [chain; 6],
            subject: Subject::Access {
                address: access.address,
                size: access.size,
                write: access.write,
            },
            width: u64::from(access.size),
            releaser: 0,
            written: true,
            pointed: None,
        };
        let write = access.write;
        self.evaluate(&at, |armed| {
            let here = matches!(armed.rule.point, Point::Deref { read, write: writes }
                if if write { writes } else { read });
            here && !armed.deferred && armed.screen.admits(situation)
        });
    }

    /// Classifies an access. A pointer whose block is not known is taken to be into the freed block
    /// that its address is in, if that memory belongs to no one else.
    fn standing(&self, pointer: &mut Pointer, access: &Access) -> Standing {
        if access.address < NULL_PAGE && pointer.block.is_none() {
            return Standing::Null;
        }
        if pointer.block.is_none()
            && self.machine.needs.allocations
            && self.machine.blocks.may_be_freed(access.address)
        {
            let found = self.machine.blocks.containing(access.address);
            let freed = |id: &BlockId| {
                self.machine.blocks.get(*id).is_some_and(|block| block.release.is_some())
            };
            pointer.block = found.filter(freed);
        }
        let Some(block) = pointer.block.and_then(|id| self.machine.blocks.get(id)) else {
            return Standing::NoBlock;
        };
        let end = access.address.saturating_add(u64::from(access.size));
        if !block.is_live() {
            Standing::Freed
        } else if block.unplaced || (access.address >= block.facts.begin && end <= block.end()) {
            Standing::Inside
        } else {
            Standing::Outside
        }
    }

    /// Where a value matters: addresses and branches.
    fn uses(&mut self, code: &Code, accesses: &[Access]) {
        let thread = self.machine.running();
        if !code.steers_by_memory && !thread.registers.meets(code.steers) {
            return;
        }
        let decides = code.meaning.decides.as_ref();
        let mut parts = code.meaning.addresses();
        let mut origin = thread.registers.used(&parts);
        if let (None, Some(decides)) = (origin, decides) {
            parts = decides.values | decides.conditions;
            origin = thread.registers.used(&parts);
            let reads = accesses.iter().filter(|access| !access.write && !decides.reads.is_empty());
            let unwritten = |access: &&Access| {
                self.machine.unwritten.first(access.address, u64::from(access.size)).is_some()
            };
            let read = reads.clone().find(unwritten);
            let made = |access: &Access| Origin {
                pc: code.pc,
                address: access.address,
                size: access.size,
            };
            origin = origin.or(read.map(made));
        }
        let Some(origin) = origin else { return };
        // Once told, what follows from it is no news.
        self.machine.thread().registers.set_parts(&parts, None);
        self.unwritten_use(code.pc, origin);
    }

    pub(super) fn unwritten_use(&mut self, pc: u64, origin: Origin) {
        if self.machine.is_excused(pc) {
            return;
        }
        let block = self.machine.blocks.containing(origin.address);
        let pointer = Pointer { address: origin.address, block };
        let at = At {
            pc,
            values: vec![Value::Pointer(pointer)],
            chains: [Node::default(); 6],
            subject: Subject::Unwritten {
                address: origin.address,
                size: origin.size,
                read: origin.pc,
            },
            width: u64::from(origin.size),
            releaser: 0,
            written: false,
            pointed: None,
        };
        self.evaluate(&at, |armed| armed.deferred);
    }
}
