//! Finding moments in a trace, and what the instructions there used.

use super::Exit;
use super::trace::{Item, Trace, When, address};
use crate::semantics::{Form, Parts, Side, Uses};
pub use base::Nth;
use base::StepCount;
use base::{Address, Position, Tick};
use rustc_hash::FxHashSet;
use std::ops::ControlFlow;

/// Executions that one statement has at most: a line may be a loop.
const LONGEST_STATEMENT: usize = 10_000;

/// An instruction that was executed, or that did not get to.
#[derive(Clone, Debug)]
pub struct Executed {
    /// When.
    pub moment: StepCount,
    /// Its thread.
    pub thread: u32,
    /// The instruction, as a number of the trace.
    pub instruction: u32,
    /// Addresses of its memory operands, as far as they are known.
    pub addresses: Vec<Option<u64>>,
}

impl Trace {
    /// The position before the instruction that so many came before; nothing at the end of the run and
    /// beyond.
    #[must_use]
    pub fn position(&self, moment: StepCount) -> Option<Position> {
        let mut found = None;
        self.forward_from(moment, |when, item| {
            let Item::Path { exit, .. } = item else { return ControlFlow::Continue(()) };
            let exit = &self.blocks.exits[exit as usize];
            let Some(index) = moment.0.checked_sub(when.moment.0) else {
                return ControlFlow::Break(());
            };
            if index >= exit.executed.into() {
                return ControlFlow::Continue(());
            }
            found = Some(self.position_in(when, exit, index as u16));
            ControlFlow::Break(())
        });
        found
    }

    /// The position of an instruction of an exit.
    #[must_use]
    pub fn position_in(&self, when: When, exit: &Exit, index: u16) -> Position {
        let block = &self.blocks.blocks[exit.block as usize];
        let pc = self.blocks.statics[block.instructions[usize::from(index)] as usize].pc;
        let ticks = u64::from(self.blocks.ticks_before(exit, index));
        Position { tick: Tick(when.tick.0 + ticks), pc: Address(pc) }
    }

    /// The first execution at a tick or, if there is none at all, after it: of any instruction, or of the one
    /// at an address, in any thread or in one.
    #[must_use]
    pub fn at_tick(
        &self,
        tick: Tick,
        pc: Option<Address>,
        thread: Option<u32>,
    ) -> Option<(Executed, Position)> {
        let mut found = None;
        self.forward_from(self.chunk_at(tick), |when, item| {
            let Item::Path { exit: id, payload, .. } = item else {
                return ControlFlow::Continue(());
            };
            let extent = &self.blocks.extents[id as usize];
            let over = when.tick.0 + u64::from(extent.ticks) < tick.0;
            if over || thread.is_some_and(|thread| thread != when.thread) {
                return ControlFlow::Continue(());
            }
            let exit = &self.blocks.exits[id as usize];
            for index in 0..exit.executed {
                let position = self.position_in(when, exit, index);
                if position.tick >= tick && pc.is_none_or(|pc| pc == position.pc) {
                    found = Some((self.executed_in(when, id, payload, index), position));
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        });
        found
    }

    /// The thread that ran last.
    #[must_use]
    pub fn last_thread(&self) -> Option<u32> {
        self.backward().previous().map(|(when, _)| when.thread)
    }

    /// The last instruction that a thread executed before a moment.
    #[must_use]
    pub fn last_executed(&self, thread: Option<u32>, before: StepCount) -> Option<Executed> {
        let mut back = self.backward();
        while let Some((when, item)) = back.previous() {
            let Item::Path { exit, payload, .. } = item else { continue };
            if when.moment >= before || thread.is_some_and(|thread| thread != when.thread) {
                continue;
            }
            let executed = u64::from(self.blocks.exits[exit as usize].executed);
            let room = (before.0 - when.moment.0).min(executed);
            let Some(index) = room.checked_sub(1) else { continue };
            return Some(self.executed_in(when, exit, payload, index as u16));
        }
        None
    }

    /// The first instruction that a thread executes from a moment on.
    #[must_use]
    pub fn next_executed(&self, thread: u32, from: StepCount) -> Option<Executed> {
        let mut found = None;
        self.forward_from(from, |when, item| {
            let Item::Path { exit, payload, .. } = item else { return ControlFlow::Continue(()) };
            let index = from.0.saturating_sub(when.moment.0);
            let executed = self.blocks.extents[exit as usize].executed;
            if when.thread != thread || index >= executed.into() {
                return ControlFlow::Continue(());
            }
            found = Some(self.executed_in(when, exit, payload, index as u16));
            ControlFlow::Break(())
        });
        found
    }

    fn executed_in(&self, when: When, exit: u32, payload: &[u8], index: u16) -> Executed {
        let block = &self.blocks.blocks[self.blocks.exits[exit as usize].block as usize];
        let accesses = &block.accesses[block.accesses_of(index)];
        let addresses = accesses.iter().map(|access| address(access, payload, when.bases));
        Executed {
            moment: StepCount(when.moment.0 + u64::from(index)),
            thread: when.thread,
            instruction: block.instructions[usize::from(index)],
            addresses: addresses.collect(),
        }
    }

    /// The execution of any of these addresses that is meant.
    /// Or how often they were executed, if there is none.
    pub fn find(&self, pcs: &[u64], nth: Nth, thread: Option<u32>) -> Result<Executed, u64> {
        let ids: FxHashSet<u32> = (0u32..)
            .zip(&self.blocks.statics)
            .filter(|(_, known)| pcs.contains(&known.pc))
            .map(|(id, _)| id)
            .collect();
        // Which instructions of each exit are meant.
        let inside = |exit: &super::Exit| -> Vec<u16> {
            let block = &self.blocks.blocks[exit.block as usize];
            let ran = (0u16..).zip(&block.instructions).take(exit.executed.into());
            ran.filter(|(_, id)| ids.contains(id)).map(|(index, _)| index).collect()
        };
        let wanted: Vec<Vec<u16>> = self.blocks.exits.iter().map(inside).collect();
        let inside = |when: When, exit: u32| {
            let meant = thread.is_none_or(|thread| thread == when.thread);
            if meant { &wanted[exit as usize][..] } else { &[] }
        };
        let mut count = 0;
        match nth {
            Nth::Number(number) => {
                let mut found = None;
                self.forward_from(StepCount(0), |when, item| {
                    let Item::Path { exit, payload, .. } = item else {
                        return ControlFlow::Continue(());
                    };
                    for index in inside(when, exit) {
                        count += 1;
                        if count == number {
                            found = Some(self.executed_in(when, exit, payload, *index));
                            return ControlFlow::Break(());
                        }
                    }
                    ControlFlow::Continue(())
                });
                found.ok_or(count)
            }
            Nth::FromEnd(number) => {
                let mut back = self.backward();
                while let Some((when, item)) = back.previous() {
                    let Item::Path { exit, payload, .. } = item else { continue };
                    for index in inside(when, exit).iter().rev() {
                        count += 1;
                        if count == number {
                            return Ok(self.executed_in(when, exit, payload, *index));
                        }
                    }
                }
                Err(count)
            }
        }
    }

    /// The executions of one statement from its first on: what follows in the same frame, as long
    /// as it is `inside`. What is called is not part of it.
    #[must_use]
    pub fn statement(&self, first: &Executed, inside: &dyn Fn(u64) -> bool) -> Vec<Executed> {
        let (mut found, mut depth) = (Vec::new(), 0u64);
        self.forward_from(first.moment, |when, item| {
            let Item::Path { exit: id, payload, .. } = item else {
                return ControlFlow::Continue(());
            };
            let exit = &self.blocks.exits[id as usize];
            let block = &self.blocks.blocks[exit.block as usize];
            for index in 0..exit.executed {
                let moment = when.moment.0 + u64::from(index);
                if when.thread != first.thread || moment < first.moment.0 {
                    continue;
                }
                let known = &self.blocks.statics[block.instructions[usize::from(index)] as usize];
                if depth == 0 {
                    if !inside(known.pc) || found.len() >= LONGEST_STATEMENT {
                        return ControlFlow::Break(());
                    }
                    found.push(self.executed_in(when, id, payload, index));
                }
                match known.meaning.form {
                    Form::Call(_) | Form::IndirectCall => depth += 1,
                    Form::Return if depth == 0 => return ControlFlow::Break(()),
                    Form::Return => depth -= 1,
                    _ => {}
                }
            }
            ControlFlow::Continue(())
        });
        found
    }

    /// What a statement used that it had not made itself.
    #[must_use]
    pub fn used_by(&self, statement: &[Executed]) -> (Parts, Vec<(u64, u64)>) {
        let (mut parts, mut memory) = (Parts::NONE, Vec::new());
        let (mut made, mut stored) = (Parts::NONE, FxHashSet::default());
        for executed in statement {
            let (used, read) = self.used(executed);
            parts |= used.without(&made);
            for byte in read.into_iter().flat_map(|(from, bytes)| from..from + bytes) {
                match memory.last_mut() {
                    _ if stored.contains(&byte) => {}
                    Some((from, bytes)) if *from + *bytes == byte => *bytes += 1,
                    _ => memory.push((byte, 1)),
                }
            }
            let (defined, written) = self.defined(executed);
            made |= defined;
            stored.extend(written.into_iter().flat_map(|(from, bytes)| from..from + bytes));
        }
        (parts, memory)
    }

    /// Everything that an instruction defined: register parts, and memory that it wrote. The
    /// return address that a call pushes is not of interest.
    #[must_use]
    pub fn defined(&self, executed: &Executed) -> (Parts, Vec<(u64, u64)>) {
        let meaning = &self.blocks.statics[executed.instruction as usize].meaning;
        if matches!(meaning.form, Form::Call(_) | Form::IndirectCall) {
            return (Parts::NONE, Vec::new());
        }
        let written = meaning.writes().filter_map(|slot| {
            let address = executed.addresses.get(usize::from(slot)).copied()??;
            Some((address, meaning.memory[usize::from(slot)].bytes.into()))
        });
        (meaning.defines, written.collect())
    }

    /// Everything that an instruction used: register parts, and memory that it read.
    #[must_use]
    pub fn used(&self, executed: &Executed) -> (Parts, Vec<(u64, u64)>) {
        let meaning = &self.blocks.statics[executed.instruction as usize].meaning;
        let (mut parts, mut memory) = (meaning.addresses(), Vec::new());
        let mut uses = |uses: &Uses| {
            parts |= uses.values | uses.conditions;
            for read in &uses.reads {
                if let Side::Memory(slot) = read.side
                    && let Some(Some(address)) = executed.addresses.get(usize::from(slot))
                {
                    memory.push((address + u64::from(read.from), u64::from(read.bytes)));
                }
            }
        };
        for flow in &meaning.flows {
            match flow {
                crate::semantics::Flow::Make { uses: made, .. } => uses(made),
                crate::semantics::Flow::Copy { from, .. } => {
                    uses(&Uses {
                        values: from.parts(),
                        reads: matches!(from.side, Side::Memory(_))
                            .then_some(*from)
                            .into_iter()
                            .collect(),
                        ..Uses::default()
                    });
                }
            }
        }
        if let Some(decides) = &meaning.decides {
            uses(decides);
        }
        (parts, memory)
    }

    /// The call instruction that returns to this address, if it was seen.
    #[must_use]
    pub fn call_before(&self, return_address: u64) -> Option<u64> {
        let calls = |form| matches!(form, Form::Call(_) | Form::IndirectCall);
        let found = self.blocks.statics.iter();
        let mut found = found.filter(|known| known.next() == return_address);
        found.find(|known| calls(known.meaning.form)).map(|known| known.pc)
    }
}
