//! Room that a function makes on its stack while it runs: `alloca`, arrays of variable length.
//!
//! The stack pointer goes down by an amount that only the run tells, and what lies between where it was and
//! where it is then is a block. How far it went is known as soon as something is pushed, mostly the return
//! address of the next call; until then the block has an upper end only. Compilers round sizes up, to
//! sixteen bytes and more, so that an access is told only if it leaves that, unless a [`Probe`] tells what was
//! asked for.

use super::Machine;
use super::cells::Cell;
use super::chains::Node;
use super::code::{Code, STACK_POINTER, StackMove, Transfer};
use super::tags::Tag;
use crate::rules::model::REGION_SCOPE;
use crate::rules::state::BlockId;

/// Marks such a block.
pub const DYNAMIC: u32 = 1 << 31;
/// How much room is taken to be made while nobody knows.
const MOST: u64 = 8 << 20;
/// Arguments of calls may lie below a block; what is further from the stack pointer, while that is not
/// known, may lie above it.
const ARGUMENTS: i64 = 256;

/// What a register holds where an instruction is about to execute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// The size that is asked for, with what was added before it is rounded down.
    Rounds {
        /// The register.
        register: u8,
        /// What was added.
        added: u64,
    },
    /// The address of the room, which has just been made.
    Makes(u8),
    /// The address of a block that an allocator stores for its caller.
    Stores(u8),
}

impl Probe {
    /// The register.
    #[must_use]
    pub fn register(self) -> u8 {
        match self {
            Self::Rounds { register, .. } | Self::Makes(register) | Self::Stores(register) => {
                register
            }
        }
    }
}

/// Room in a frame.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// What was asked for.
    pub block: BlockId,
    /// Where it ends, with what rounding has added.
    pub end: u64,
}

/// The alignment of rooms, and what it adds at most.
const ALIGNMENT: u64 = 16;
const MOST_ADDED: u64 = 48;

impl Machine {
    /// Says what a register holds where an instruction is about to execute.
    pub fn add_probe(&mut self, pc: u64, probe: Probe) {
        self.probes.insert(pc, probe);
    }

    /// A register has this value, where there is a probe.
    pub fn probed(&mut self, pc: u64, register: u8, value: u64) {
        let known = self.probes.get(&pc).copied().filter(|probe| probe.register() == register);
        match known {
            Some(Probe::Rounds { added, .. }) => {
                self.thread().asked = value.checked_sub(added);
            }
            Some(Probe::Makes(_)) => self.makes_room(register, value, pc),
            Some(Probe::Stores(_)) => self.thread().stores = Some(value),
            None => {}
        }
    }

    /// There is room now from an address on, which a register holds. Two rooms of one size may be rounded once.
    fn makes_room(&mut self, register: u8, begin: u64, pc: u64) {
        let thread = self.thread();
        let (asked, before, known) = (thread.asked, thread.stack, thread.room.take());
        match register {
            STACK_POINTER => thread.stack = Some(begin),
            _ => thread.making = Some(begin),
        }
        let rounded = || begin.checked_add(asked?.checked_next_multiple_of(ALIGNMENT)?);
        let end = match known.and_then(|room| self.blocks.get(room)) {
            Some(block) => Some(block.end()),
            None => before.filter(|_| register != STACK_POINTER).or_else(rounded),
        };
        let all = end.and_then(|end| end.checked_sub(begin)).filter(|all| *all <= MOST);
        let room = all.map(|all| {
            let fits = |asked: &u64| (*asked..=asked.saturating_add(MOST_ADDED)).contains(&all);
            self.sized_room(known, (begin, all), asked.filter(fits).unwrap_or(all), pc)
        });
        if register != STACK_POINTER {
            let tag = room.map(Tag::of).unwrap_or_default();
            self.thread().cells[register as usize] = Cell { tag, node: Node::default() };
        }
    }

    /// A room of so many bytes, of which some were asked for.
    fn sized_room(
        &mut self,
        known: Option<BlockId>,
        (begin, all): (u64, u64),
        asked: u64,
        pc: u64,
    ) -> BlockId {
        let block = known.unwrap_or_else(|| {
            let block = self.add_to_frame(begin, asked, (DYNAMIC, pc));
            if let Some((_, top)) = self.thread().calls.top() {
                top.dynamic.push(Room { block, end: begin + all });
            }
            block
        });
        if let Some(block) = self.blocks.get_mut(block) {
            (block.facts.begin, block.facts.size) = (begin, asked);
        }
        block
    }

    /// What an address carries that is made from a stack pointer which nobody knows.
    pub(super) fn made_room(&mut self, displacement: i64) -> Cell {
        let room = self.thread().room.filter(|_| (0..ARGUMENTS).contains(&displacement));
        room.map(|block| Cell { tag: Tag::of(block), node: Node::default() }).unwrap_or_default()
    }

    /// The block of this kind in the innermost frame that has an address.
    pub(super) fn dynamic_at(&mut self, address: u64) -> Option<BlockId> {
        let top = self.thread().calls.top()?.1;
        let all = top.dynamic.clone();
        let begin = |room: &Room| self.blocks.get(room.block).map(|block| block.facts.begin);
        let has =
            |room: &&Room| address < room.end && begin(room).is_some_and(|begin| begin <= address);
        all.iter().rev().find(has).map(|room| room.block)
    }

    /// The stack pointer was moved by an instruction; it was at `before`, and something was written to
    /// `pushed`.
    pub(super) fn follow_room(
        &mut self,
        code: &Code,
        (before, pushed): (Option<u64>, Option<u64>),
        returned: bool,
    ) {
        if code.stack == StackMove::MakeRoom {
            if let Some(end) = before {
                self.make_room(end, code.pc);
            }
            return;
        }
        if returned {
            self.thread().room = None;
            return;
        }
        let Some(stack) = self.running().stack else { return };
        // A call has made the frame of its callee the innermost one by now.
        let lowest = match (code.transfer, pushed) {
            (Transfer::Call, _) | (_, Some(_)) => stack.wrapping_add(8),
            _ => stack,
        };
        if let Some(room) = self.thread().room.take() {
            self.place_room(room, lowest);
        }
        if before.is_none_or(|before| before < stack) && code.transfer == Transfer::None {
            self.give_room_back(stack);
        }
    }

    fn make_room(&mut self, end: u64, pc: u64) {
        let begin = end.saturating_sub(MOST);
        let block = self.add_to_frame(begin, end - begin, (DYNAMIC, pc));
        let thread = self.thread();
        let Some((_, top)) = thread.calls.top() else { return };
        top.dynamic.push(Room { block, end });
        thread.room = Some(block);
    }

    fn place_room(&mut self, room: BlockId, begin: u64) {
        let Some(block) = self.blocks.get_mut(room) else { return };
        let end = block.end();
        if begin < end && end - begin <= MOST {
            (block.facts.begin, block.facts.size) = (begin, end - begin);
        } else {
            // The stack pointer went elsewhere, and nobody knows how far the block reached.
            block.facts.region = 0;
        }
    }

    /// What lies below the stack pointer is nobody's any more.
    fn give_room_back(&mut self, stack: u64) {
        let Self { threads, blocks, .. } = self;
        let Some((_, top)) = threads.now_mut().calls.top() else { return };
        top.dynamic.retain(|room| {
            let Some(block) = blocks.get_mut(room.block) else { return false };
            let gone = room.end <= stack;
            if gone {
                block.facts.region = REGION_SCOPE;
            }
            !gone
        });
    }
}
