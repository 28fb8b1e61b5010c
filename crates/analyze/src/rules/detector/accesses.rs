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
        let pointer_state = self.pointer_state(&mut pointer, u64::from(access.size), code.pc);
        let situation = Situation { pointer_state, written: true };
        if !self.screens[usize::from(access.write)].admits(situation) {
            return;
        }
        if self.library.is_judged(code.pc) {
            return;
        }
        let guessed = pointer_state == PointerState::Freed && !known;
        let over_reads = (pointer_state == PointerState::Outside || guessed)
            && code.vector_read
            && !access.write;
        if over_reads && self.may_read_ahead(code.pc, access, &pointer) {
            return;
        }
        if pointer_state == PointerState::Outside {
            self.reads_beyond(code.pc, access, pointer.block);
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
        self.ask_of_access(&at, situation, (pointer.block, access.write));
    }

    /// Evaluates the rules about accesses that may hold in a situation.
    pub(super) fn ask_of_access(
        &mut self,
        at: &At<'_>,
        situation: Situation,
        (block, write): (Option<BlockId>, bool),
    ) {
        // That the block of code has been left which declares a variable is so at this moment alone.
        let scope = block.filter(|_| situation.pointer_state == PointerState::Freed);
        let scope = scope.filter(|id| self.machine.set_region(*id, REGION_STACK, REGION_SCOPE));
        self.evaluate(at, |armed| {
            let here = matches!(armed.rule.point, Point::Deref { read, write: writes }
                if if write { writes } else { read });
            here && !armed.deferred && armed.screen.admits(situation)
        });
        if let Some(id) = scope {
            self.machine.set_region(id, REGION_SCOPE, REGION_STACK);
        }
    }

    /// Classifies an access. A pointer whose block is not known is taken to be into the freed block
    /// that its address is in, if that memory belongs to no one else.
    pub(super) fn pointer_state(&self, pointer: &mut Pointer, size: u64, pc: u64) -> PointerState {
        let address = pointer.address;
        if address < NULL_PAGE && pointer.block.is_none() {
            return PointerState::Null;
        }
        if pointer.block.is_none()
            && self.machine.needs.allocations
            && self.machine.blocks.may_be_freed(address)
        {
            let found = self.machine.blocks.containing(address);
            let freed = |id: &BlockId| {
                self.machine.blocks.get(*id).is_some_and(|block| block.release.is_some())
            };
            pointer.block = found.filter(freed);
        }
        let Some(block) = pointer.block.and_then(|id| self.machine.blocks.get(id)) else {
            return PointerState::NoBlock;
        };
        let end = address.saturating_add(size);
        let inside = address >= block.facts.begin && end <= block.end();
        let ends = |id| self.machine.is_at_end(id, block, pc);
        if !block.is_live() && pointer.block.is_some_and(ends) {
            PointerState::Inside
        } else if !block.is_live() || block.variable != 0 && self.machine.is_out_of_scope(block, pc)
        {
            PointerState::Freed
        } else if block.unplaced || inside || self.machine.is_doubtful(block, address, size) {
            PointerState::Inside
        } else {
            PointerState::Outside
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
            let made = |access| self.machine.unwritten.origin(made(access));
            origin = origin.or(read.map(made));
        }
        let Some(origin) = origin else { return };
        // Once told, what follows from it is no news.
        self.machine.thread().registers.set_parts(&parts, None);
        // What decides in a function with a contract was judged when it was called.
        if !self.library.is_judged(code.pc) {
            self.unwritten_use(code.pc, origin);
        }
    }

    pub(super) fn unwritten_use(&mut self, pc: u64, origin: Origin) {
        if self.machine.is_excused(pc) {
            return;
        }
        let block = self.machine.blocks.containing(origin.address);
        let block = block.or_else(|| self.machine.variable_at(origin.address, pc));
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
