//! The look at calls that are not quite ordinary, and how an invalid one is reported.

use super::arrange::{Allocations, ELSEWHERE, TableBlock, UNIT};
use crate::runner::cpu::Cpu;
use crate::runner::engine::Engine;
use crate::runner::memory::Memory;
use crate::runner::screens::Calls;
use crate::runner::screens::allocators::{Followed, Outcome, is_inside};
use crate::runner::thread::Thread;
use events::plan::HeapRole;
use events::suspicion::Suspicion;

/// The call of an allocator that a thread is in.
#[derive(Clone, Copy)]
pub struct Call {
    followed: Followed,
    stack: u64,
    back: u64,
    arguments: [u64; 6],
    /// The block that it frees, as it was.
    before: Option<(u64, TableBlock)>,
    /// Whether it is reported.
    reported: bool,
}

/// An invalid call, with the block that it frees.
struct Invalid {
    block: Option<(u64, TableBlock)>,
}

impl Call {
    fn resizes(&self) -> bool {
        matches!(self.followed.role, HeapRole::Resize(..))
    }
}

impl Allocations {
    /// The block that is meant by an address: the one that begins there, or that it is in; of those that
    /// were freed the last one.
    fn holder(&self, address: u64, memory: &Memory) -> Option<(u64, TableBlock)> {
        let lowest = memory.find(address).map_or(address, |(range, _)| range.start) & !(UNIT - 1);
        let mut freed: Option<(u64, TableBlock)> = None;
        let mut at = address & !(UNIT - 1);
        let odd = || {
            let nearest = self.odd.range(..=address).next_back();
            nearest.map(|(begin, block)| (*begin, *block)).filter(|(b, it)| it.holds(*b, address))
        };
        while at >= lowest && at != 0 {
            let here = self.line(at).and_then(|_| self.get(at));
            match here {
                Some(block) if block.is_live() => {
                    // Inside of a live block another allocator may have freed one of its own.
                    let inner = freed
                        .filter(|(begin, inner)| *begin == address && inner.order > block.order);
                    let live = Some((at, block)).filter(|_| block.holds(at, address));
                    return inner.or(live).or(freed).or_else(odd);
                }
                Some(block) if block.holds(at, address) => {
                    let newer = freed.is_none_or(|(_, known)| known.order < block.order);
                    if newer && !self.is_overlapped(address, at, block) {
                        freed = Some((at, block));
                    }
                }
                _ => {}
            }
            at -= UNIT;
        }
        freed.or_else(odd)
    }

    /// Whether a later block begins inside of a freed one, behind an address.
    fn is_overlapped(&self, address: u64, begin: u64, block: TableBlock) -> bool {
        let behind = (address & !(UNIT - 1)) + UNIT;
        let later = |at: &u64| self.get(*at).is_some_and(|other| other.order > block.order);
        (behind..begin.saturating_add(block.size))
            .step_by(UNIT as usize)
            .take_while(|at| self.line(*at).is_some())
            .any(|at| later(&at))
    }

    /// A function that makes blocks of a family, and what it is called with for one of a size.
    fn maker(&self, family: u8, size: u64) -> Option<(u64, [u64; 6])> {
        let of_family = self.allocators.iter().filter(|(_, one)| one.family == family);
        of_family
            .filter_map(|(function, followed)| {
                let mut arguments = [0; 6];
                match followed.role {
                    HeapRole::Allocate(bytes, count) => {
                        arguments[usize::from(bytes % 6)] = size;
                        count.iter().for_each(|count| arguments[usize::from(count % 6)] = 1);
                    }
                    HeapRole::AllocateFixed(_) => {}
                    _ => return None,
                }
                Some((function, arguments))
            })
            .min()
    }

    fn releaser(&self, family: u8) -> Option<u64> {
        let frees = |one: &Followed| one.family == family && one.role == HeapRole::Free;
        self.allocators.iter().filter(|(_, one)| frees(one)).map(|(function, _)| function).min()
    }

    /// What translated code has entered for the thread, if it has, is ours from now on.
    fn take_over(&mut self, cpu: &mut Cpu, thread: &mut Thread) {
        let under = &mut cpu.allocation;
        if under.stack <= ELSEWHERE {
            return;
        }
        let (stack, back, value) = (under.stack, under.back, under.value);
        let freed = || self.get(value).filter(|block| !block.is_live());
        let (role, family, before) = match under.family {
            0 => {
                (HeapRole::Free, 0, freed().map(|block| (value, TableBlock { freed: 0, ..block })))
            }
            family => (HeapRole::Allocate(0, None), family as u8, None),
        };
        let followed = Followed { role, family, zeroed: false };
        let arguments = [value, 0, 0, 0, 0, 0];
        thread.calls.allocation =
            Some(Call { followed, stack, back, arguments, before, reported: false });
        under.stack = ELSEWHERE;
    }

    /// A call was left by a jump: nothing became of it.
    fn abandon(&mut self, call: &Call) {
        let back = self.number(call.back);
        if let Some((begin, block)) = call.before
            && self.get(begin) == Some(TableBlock { freed: back, ..block })
        {
            self.put(begin, block);
        }
    }

    fn entered(
        &mut self,
        (cpu, memory): (&mut Cpu, &Memory),
        thread: &mut Thread,
        function: u64,
        (stack, back): (u64, u64),
        arguments: [u64; 6],
    ) -> Option<Invalid> {
        let followed = self.allocators.get(function)?;
        self.take_over(cpu, thread);
        let outer = thread.calls.allocation.map(|call| (call.stack, call.back));
        if outer.is_some_and(|outer| is_inside((stack, back), outer)) {
            return None;
        }
        thread.calls.allocation.take().iter().for_each(|left| self.abandon(left));
        let frees = followed.frees();
        let pointer = arguments[0];
        let live = self.get(pointer).filter(|block| frees && pointer != 0 && block.is_live());
        let is_invalid = followed.is_invalid_call(&arguments, live.map(|block| block.family));
        let invalid = is_invalid.then(|| {
            let meant = (frees && pointer != 0).then(|| self.holder(pointer, memory));
            Invalid { block: meant.flatten() }
        });
        // Before the function does it, so that nobody else has the memory yet.
        if let Some(block) = live {
            let freed = self.number(back);
            self.put(pointer, TableBlock { freed, ..block });
        }
        if self.is_alone(function) {
            cpu.allocation.stack = 0;
            return invalid;
        }
        let before = live.map(|block| (pointer, block));
        let reported = is_invalid;
        thread.calls.allocation = Some(Call { followed, stack, back, arguments, before, reported });
        cpu.allocation.stack = ELSEWHERE;
        invalid
    }

    /// The thread is at a site, with a stack that has given up what stood at `stack`. Whether the return
    /// is reported.
    fn came_back(
        &mut self,
        cpu: &mut Cpu,
        thread: &mut Thread,
        pc: u64,
        (stack, value): (u64, u64),
    ) -> bool {
        self.take_over(cpu, thread);
        let Some(call) = thread.calls.allocation.take_if(|call| call.stack <= stack) else {
            return false;
        };
        cpu.allocation.stack = 0;
        if (call.stack, call.back) != (stack, pc) {
            self.abandon(&call);
            return false;
        }
        match call.followed.outcome(&call.arguments, value) {
            Outcome::Block { begin, size } => match call.before {
                // In place it stays the same block.
                Some((same, block)) if same == begin && call.resizes() => {
                    self.put(begin, TableBlock { size, ..block });
                }
                _ => self.allocate(cpu, begin, size, &call),
            },
            Outcome::Failed => {
                if let Some((begin, block)) = call.before {
                    self.put(begin, block);
                }
            }
            Outcome::Measured { begin, usable } => {
                if let Some(block) = self.get(begin) {
                    self.put(begin, TableBlock { size: block.size.max(usable), ..block });
                }
            }
            Outcome::Nothing => {}
        }
        call.reported
    }

    fn allocate(&mut self, cpu: &mut Cpu, begin: u64, size: u64, call: &Call) {
        if begin == 0 {
            return;
        }
        cpu.allocation.order += 1;
        let (order, family) = (cpu.allocation.order as u32, call.followed.family);
        let allocated = self.number(call.back);
        self.put(begin, TableBlock { size, allocated, family, freed: 0, order });
    }
}

/// The thread takes the call that it is in along, before another one runs.
pub fn put_aside(engine: &mut Engine, thread: &mut Thread) {
    if engine.cpu.allocation.stack > ELSEWHERE
        && let Some(table) = &mut engine.observed.screens.allocations
    {
        table.take_over(&mut engine.cpu, thread);
    }
}

/// What translated code knows of the call that a thread is in.
pub fn stack_of(calls: &Calls) -> u64 {
    if calls.allocation.is_some() { ELSEWHERE } else { 0 }
}

impl Engine {
    /// A function has been called: where its return address stands, and what it is.
    pub fn enter_allocation(
        &mut self,
        thread: &mut Thread,
        function: u64,
        at: (u64, u64),
        arguments: [u64; 6],
    ) {
        let Some(table) = &mut self.observed.screens.allocations else { return };
        let alone = table.is_alone(function);
        if let Some(invalid) =
            table.entered((&mut self.cpu, &self.process.memory), thread, function, at, arguments)
        {
            let argument = arguments[0];
            self.suspect(function, Suspicion::InvalidCall { argument, recounted: true });
            self.record_life(at.0, invalid.block);
            self.record_enter(function, at, arguments);
            if alone {
                self.record_back(at.1, at.0.wrapping_add(8), 0);
            }
        }
    }

    /// The guest is at a site.
    pub fn leave_allocation(&mut self, thread: &mut Thread, pc: u64, (stack, value): (u64, u64)) {
        let Some(table) = &mut self.observed.screens.allocations else { return };
        let reported = table.came_back(&mut self.cpu, thread, pc, (stack.wrapping_sub(8), value));
        if reported && !self.observed.stops.is_reported(pc) {
            self.record_back(pc, stack, value);
        }
    }

    /// The life of a block, as calls from a height of the stack.
    fn record_life(&mut self, stack: u64, block: Option<(u64, TableBlock)>) {
        let (Some(table), Some((begin, block))) = (&self.observed.screens.allocations, block)
        else {
            return;
        };
        let Some((maker, arguments)) = table.maker(block.family, block.size) else { return };
        let releaser = table.releaser(block.family).filter(|_| !block.is_live());
        let (allocated, freed) = (table.site(block.allocated), table.site(block.freed));
        self.record_enter(maker, (stack, allocated), arguments);
        self.record_back(allocated, stack.wrapping_add(8), begin);
        if let Some(releaser) = releaser {
            self.record_enter(releaser, (stack, freed), [begin, 0, 0, 0, 0, 0]);
            self.record_back(freed, stack.wrapping_add(8), 0);
        }
    }
}
