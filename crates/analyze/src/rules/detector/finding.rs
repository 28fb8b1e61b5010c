//! What holds becomes a [`Hit`]: its stack, its chains, what it is about and that one's history.

use super::*;
use crate::rules::hit::Variable;
use crate::rules::machine::dynamic::DYNAMIC;
use crate::rules::machine::thread_locals::THREAD_LOCAL;

impl Detector {
    /// How many of a stack's innermost frames are the C library's, if any are not: whichever
    /// instruction of `strcpy` it is, it is the same finding.
    pub(super) fn library_frames(&self, stack: &[u64]) -> usize {
        let library = |pc: &&u64| self.lenient.iter().any(|range| range.contains(*pc));
        let inner = stack.iter().take_while(library).count();
        if inner == stack.len() { 0 } else { inner }
    }

    /// Whether the C library works for itself: its loader, and what it tidies up when a thread ends,
    /// which goes through freed blocks.
    pub(super) fn is_library_alone(&self, pc: u64) -> bool {
        let library = |pc: &u64| self.lenient.iter().any(|range| range.contains(pc));
        let callers = self.callers();
        if callers.is_empty() {
            return self.is_allocators(pc);
        }
        library(&pc) && callers.iter().all(library)
    }

    /// Whether code of the C library is the allocator's: it lies between functions that allocate and free.
    fn is_allocators(&self, pc: u64) -> bool {
        let Some(library) = self.lenient.iter().find(|range| range.contains(&pc)) else {
            return false;
        };
        let inside = |(at, known): (&u64, &Function)| {
            (known.allocator.is_some() && library.contains(at)).then_some(*at)
        };
        let own: Vec<u64> = self.functions.iter().filter_map(inside).collect();
        own.iter().any(|at| *at <= pc) && own.iter().any(|at| *at > pc)
    }

    pub(super) fn hit(&self, index: usize, at: &At<'_>, values: &Values) -> Hit {
        let rule = &self.armed[index].rule;
        let callers = self.callers();
        let inner = matches!(at.subject, Subject::Access { .. } | Subject::Unwritten { .. });
        let stack = match (inner, callers.first()) {
            // The call of the function is the innermost frame already.
            (true, Some(call)) if *call == at.pc || self.library.is_judged(at.pc) => callers,
            (true, _) => std::iter::once(at.pc).chain(callers).collect(),
            (false, Some(_)) => callers,
            (false, None) => vec![at.pc],
        };
        let about = values.iter().flatten().find_map(|value| match value {
            Value::Pointer(pointer) => pointer.block,
            Value::Block(block) => Some(*block),
            _ => None,
        });
        let block = about.and_then(|id| Some(self.history(id, self.machine.blocks.get(id)?)));
        let chain = |slot: &usize| {
            let variable = rule.variables[*slot].name.clone();
            // The first is the pointer of the detection point; others were kept by an event.
            let node = match slot {
                0 => at.chains[0],
                // A number is an argument.
                slot if rule.variables[*slot].kind == Type::Number => *at.chains.get(*slot)?,
                _ => about
                    .and_then(|id| self.machine.blocks.get(id)?.release)
                    .map(|r| r.how.chain)?,
            };
            let chains = &self.machine.chains;
            Some(Chain { variable, links: chains.links(node), cut: chains.is_cut(node) })
        };
        let subject = self.subject(rule, at, values);
        let mut hit = Hit {
            rule: rule.name.clone(),
            title: rule.title.clone(),
            stack,
            subject,
            block,
            chains: rule.locators.iter().filter_map(chain).collect(),
            time: self.machine.time,
            position: self.machine.clock.position(),
            thread: self.machine.thread_id(),
            count: 1,
            extent: None,
            guessed: self.guesses,
        };
        hit.extent = hit.touched();
        hit
    }

    /// What the hit is about: the descriptor that the rule says exists, if it does.
    pub(super) fn subject(&self, rule: &Rule, at: &At<'_>, values: &Values) -> Subject {
        let Condition::OverSet(_, slot, Set::Descriptors, ..) = &rule.condition else {
            return at.subject.clone();
        };
        match values.get(*slot) {
            Some(Some(Value::Number(number))) => self.descriptor_subject(*number as i64),
            _ => at.subject.clone(),
        }
    }

    pub(super) fn descriptor_subject(&self, number: i64) -> Subject {
        let history = self.machine.descriptors.get(number);
        let opened = self.machine.stack(history.opened_by).to_vec();
        let closed = self.machine.stack(history.closed_by).to_vec();
        Subject::Descriptor { number, opened, closed, open: history.open }
    }

    /// Which variable a block is.
    fn variable(&self, block: &Block<Freed>) -> Option<Variable> {
        let number = block.variable;
        match block.facts.region {
            REGION_HEAP | 0 => None,
            REGION_GLOBAL if number & THREAD_LOCAL != 0 && number & DYNAMIC == 0 => {
                Some(Variable::ThreadLocal { below: u64::from(number & !THREAD_LOCAL) })
            }
            REGION_GLOBAL => Some(Variable::Static),
            _ if number == DYNAMIC => Some(Variable::Dynamic),
            _ => Some(Variable::Local { offset: self.machine.locals.offset(number)? }),
        }
    }

    pub(super) fn history(&self, id: BlockId, block: &Block<Freed>) -> BlockHistory {
        BlockHistory {
            id: id.0,
            begin: block.facts.begin,
            size: block.facts.size,
            family: block.facts.family,
            heap: block.facts.region == REGION_HEAP,
            global: block.facts.region == REGION_GLOBAL,
            absent: block.facts.region == REGION_ABSENT,
            local: block.facts.region & (REGION_STACK | REGION_LEFT | REGION_SCOPE) != 0
                && block.facts.size < NEAR_STACK,
            variable: self.variable(block),
            name: None,
            allocated: self.machine.stack(block.stack).to_vec(),
            freed: block.release.map(|release| self.machine.stack(release.stack).to_vec()),
            allocated_at: self.machine.allocated_at(id),
            freed_at: block.release.and_then(|release| release.how.when),
        }
    }
}
