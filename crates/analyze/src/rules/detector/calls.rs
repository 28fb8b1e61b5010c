//! Detection points at functions: calls and returns that rules name, allocations and releases.

use super::*;

impl Detector {
    /// A function has been called.
    pub fn enter(&mut self, function: u64, back: u64, stack: u64, arguments: [u64; 6]) {
        // Where no instructions are observed, calls are what time is counted in.
        self.machine.time += 1;
        self.machine.clock.here = (0, function);
        let Some(known) = self.functions.get(&function) else { return };
        let allocator = known.allocator;
        if !known.named.is_empty() {
            for name in known.named.clone() {
                self.call(&name, back, arguments);
            }
        }
        let Some(allocator) = allocator else { return };
        let inside = about_to(&mut self.machine, allocator, function, back, stack, arguments);
        // A call that was left by a jump is over when another begins further up.
        self.machine.thread().inside.leave_below(stack, back);
        if !self.machine.is_inside() {
            self.allocation(&inside);
        }
        self.machine.enter(inside);
    }

    pub(super) fn call(&mut self, name: &str, back: u64, arguments: [u64; 6]) {
        self.machine.remember(EventKind::Call, name, arguments[0]);
        let number = |value: u64| Value::Number(i128::from(value as i64));
        let chains = ARGUMENTS.map(|cell| self.machine.running().cells[cell].node);
        let values = arguments.iter().copied().map(number).collect();
        let at = At { chains, ..self.at_call(back, values, name) };
        self.evaluate(
            &at,
            |armed| matches!(&armed.rule.point, Point::Call(known) if known == name),
        );
    }

    pub(super) fn at_call(&self, back: u64, values: Vec<Value>, name: &str) -> At<'static> {
        At {
            pc: back.wrapping_sub(1),
            values,
            chains: [Node::default(); 6],
            subject: Subject::Call(name.to_owned()),
            width: 0,
            releaser: 0,
            written: true,
            pointed: None,
        }
    }

    /// An allocator is about to work.
    pub(super) fn allocation(&mut self, inside: &Inside) {
        let (size, frees) = match inside.allocator.role {
            Role::Allocate(size, count) => (Some(inside.size(size, count)), false),
            Role::Resize(size, count) => (Some(inside.size(size, count)), true),
            Role::AllocateFixed(bytes) => (Some(bytes), false),
            Role::AllocateTo(size) => (Some(inside.size(size, None)), false),
            Role::Free => (None, true),
            Role::Measure | Role::Tend => (None, false),
        };
        if let Some(size) =
            size.filter(|size| !self.suppressed.sizes || !ordinary::SIZES.contains(size))
        {
            let subject = Subject::Allocation { size };
            let values = vec![Value::Number(i128::from(size as i64))];
            let at = At { subject, ..self.at_call(inside.back, values, "") };
            self.evaluate(&at, |armed| armed.rule.point == Point::Malloc);
        }
        // Freeing NULL does nothing.
        if frees
            && inside.arguments[0] != 0
            && !(self.suppressed.releases && self.is_ordinary_release(inside))
            && !self.may_be_unplaced(inside)
        {
            let at = At {
                chains: [inside.data.chain; 6],
                subject: Subject::Release { address: inside.arguments[0] },
                releaser: inside.allocator.family,
                ..self.at_call(inside.back, vec![Value::Pointer(inside.pointer())], "")
            };
            self.evaluate(&at, |armed| armed.rule.point == Point::Free);
        }
    }

    /// Whether a live block is freed by its own family, at its beginning.
    pub(super) fn is_ordinary_release(&self, inside: &Inside) -> bool {
        let block = inside.block.and_then(|id| self.machine.blocks.get(id));
        block.is_some_and(|block| {
            block.is_live()
                && !block.unplaced
                && block.facts.region == REGION_HEAP
                && block.facts.begin == inside.arguments[0]
                && block.facts.family == inside.allocator.family
        })
    }

    /// Whether the pointer may be one whose block we could not place.
    pub(super) fn may_be_unplaced(&self, inside: &Inside) -> bool {
        let known = inside.block.and_then(|id| self.machine.blocks.get(id));
        known.is_some_and(|block| block.unplaced)
    }

    /// A function has returned.
    pub fn leave(&mut self, function: u64, stack: u64, value: u64) {
        self.machine.time += 1;
        let Some(known) = self.functions.get(&function) else { return };
        let allocates = known.allocator.is_some();
        if !known.named.is_empty() {
            for name in known.named.clone() {
                self.returned(&name, value);
            }
        }
        if let Some(inside) = allocates.then(|| self.machine.leave(stack)).flatten() {
            self.machine.finish(&inside, value);
        }
    }

    pub(super) fn returned(&mut self, name: &str, value: u64) {
        let pointed = self
            .pointed(|armed| matches!(&armed.rule.point, Point::Return(known) if known == name));
        let values = vec![Value::Number(i128::from(value as i64))];
        let pc = self.machine.running().calls.innermost();
        let chains = [self.machine.running().cells[RESULT].node; 6];
        let call = self.at_call(pc.map_or(0, |pc| pc + 1), values, name);
        let at = At { pointed: Some(&pointed), chains, ..call };
        self.evaluate(
            &at,
            |armed| matches!(&armed.rule.point, Point::Return(known) if known == name),
        );
        self.machine.remember(EventKind::Return, name, value);
    }
}
