//! What allocators do to the heap: blocks that come, go and change their size, from calls and returns
//! of their functions.
//!
//! An analysis may know more of a call than the stream tells (`D`: how its argument came about), and
//! keep more of a release (`W`).

use super::blocks::{Block, BlockFacts, BlockId, Blocks, REGION_HEAP, Release};
use super::stacks::StackId;
use base::allocator::{Allocator, Role};

/// A call of an allocator that has not returned.
#[derive(Clone, Copy, Debug)]
pub struct AllocatorCall<D> {
    /// What it does.
    pub allocator: Allocator,
    /// The function's address.
    pub function: u64,
    /// Where it returns to.
    pub back: u64,
    /// Stack pointer at its entry.
    pub stack: u64,
    /// Its arguments.
    pub arguments: [u64; 6],
    /// The block that its first argument points to, if that is a pointer.
    pub block: Option<BlockId>,
    /// Whether that was found by the address, or is just one that it may be.
    pub guessed: bool,
    /// By which calls it was reached.
    pub callers: StackId,
    /// What its analysis knows of it.
    pub data: D,
}

impl<D> AllocatorCall<D> {
    /// The bytes that are asked for.
    #[must_use]
    pub fn size(&self, size: u8, count: Option<u8>) -> u64 {
        let count = count.map_or(1, |count| self.arguments[count as usize]);
        self.arguments[size as usize].saturating_mul(count)
    }
}

/// Whether the first argument of a function of this role points to a block.
#[must_use]
pub fn takes_block(role: Role) -> bool {
    matches!(role, Role::Free | Role::Resize(..) | Role::Measure)
}

/// The calls of allocators under way in one thread, outermost first: functions of an allocator call each
/// other, and only the outermost is the program's doing.
#[derive(Clone, Debug)]
pub struct UnderWay<D>(Vec<AllocatorCall<D>>);

impl<D> Default for UnderWay<D> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<D: Copy> UnderWay<D> {
    /// Whether there is none.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// All, to change.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut AllocatorCall<D>> {
        self.0.iter_mut()
    }

    /// A function is called at this height of the stack, to return to `back`: calls further in were left
    /// by a jump out of them.
    pub fn leave_below(&mut self, stack: u64, back: u64) {
        // At the same height, and to return to the same place, it is a tail call: still inside.
        self.0.retain(|call| call.stack > stack || (call.stack, call.back) == (stack, back));
    }

    /// A function of an allocator has been called.
    pub fn enter(&mut self, call: AllocatorCall<D>) {
        self.leave_below(call.stack, call.back);
        self.0.push(call);
    }

    /// A function that was called at this height has returned: its call, if it is the outermost one.
    /// Functions that end in a jump to another return together with it. One that goes through the heap
    /// may allocate as anybody does: `malloc_info` prints.
    pub fn leave(&mut self, stack: u64) -> Option<AllocatorCall<D>> {
        let at = self.0.iter().position(|call| call.stack <= stack)?;
        let found = self.0[at];
        self.0.truncate(at);
        self.0.iter().all(|outer| outer.allocator.role == Role::Tend).then_some(found)
    }
}

/// What a call of an allocator has made of the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing that hands out memory.
    Nothing,
    /// A new block, of which so many bytes hold something that the program may rely on.
    Allocated {
        /// The block.
        block: BlockId,
        /// Zeros, or what was moved.
        written: u64,
    },
    /// A block has another size.
    Resized {
        /// The block.
        block: BlockId,
        /// Its size before.
        before: u64,
    },
    /// A block has another size at the same place, where pointers from before are not to be used any more.
    Renewed {
        /// What it was.
        old: BlockId,
        /// What it is now.
        block: BlockId,
        /// Its size before.
        before: u64,
    },
    /// A block whose address the function has stored where its first argument points.
    Stored(BlockId),
}

impl<W: Copy> Blocks<W> {
    /// A call of an allocator has returned a value. `how` is kept of the release, if it is one; `exact`
    /// says that blocks are told apart by more than addresses, so that a guess ends none.
    pub fn finish<D>(
        &mut self,
        call: &AllocatorCall<D>,
        value: u64,
        time: u64,
        (how, exact): (W, bool),
    ) -> Outcome {
        match call.allocator.role {
            Role::Allocate(size, count) if value != 0 => {
                let size = call.size(size, count);
                let written = if call.allocator.zeroed { size } else { 0 };
                self.allocated(call, value, size, time, written)
            }
            Role::AllocateFixed(bytes) if value != 0 => self.allocated(call, value, bytes, time, 0),
            Role::AllocateTo(size) if value == 0 => {
                let facts = facts(call, 0, call.size(size, None), time);
                Outcome::Stored(self.add(facts, call.callers, true))
            }
            Role::Resize(size, count) => {
                self.resize(call, value, call.size(size, count), time, (how, exact))
            }
            Role::Free => {
                self.free(call, time, (how, exact));
                Outcome::Nothing
            }
            Role::Measure => {
                self.measured(call.arguments[0], value);
                Outcome::Nothing
            }
            Role::Allocate(..) | Role::AllocateFixed(_) | Role::AllocateTo(_) | Role::Tend => {
                Outcome::Nothing
            }
        }
    }

    fn allocated<D>(
        &mut self,
        call: &AllocatorCall<D>,
        begin: u64,
        size: u64,
        time: u64,
        written: u64,
    ) -> Outcome {
        let block = self.allocate(facts(call, begin, size, time), call.callers);
        Outcome::Allocated { block, written }
    }

    fn resize<D>(
        &mut self,
        call: &AllocatorCall<D>,
        value: u64,
        size: u64,
        time: u64,
        how: (W, bool),
    ) -> Outcome {
        let old = call.arguments[0];
        let known = self.freed_by(call);
        if value == 0 {
            if size == 0 {
                self.free(call, time, how);
            }
            return Outcome::Nothing;
        }
        if let (Some(id), true) = (known, value == old)
            && let Some(block) = self.get_mut(id)
        {
            let placed = !block.unplaced && block.facts.begin == value;
            if how.1 && placed {
                // What was asked for may as well have moved.
                let before = block.facts.size;
                self.free(call, time, how);
                let block = self.allocate(facts(call, value, size, time), call.callers);
                return Outcome::Renewed { old: id, block, before };
            }
            // In place it stays the same block.
            let before = std::mem::replace(&mut block.facts.size, size);
            return Outcome::Resized { block: id, before };
        }
        let kept = known.and_then(|id| self.get(id)).map_or(0, |block| block.facts.size);
        if old != 0 {
            self.free(call, time, how);
        }
        // What was copied keeps what it carried.
        self.allocated(call, value, size, time, kept.min(size).max(1))
    }

    /// The live block that a call frees.
    #[must_use]
    pub fn freed_by<D>(&self, call: &AllocatorCall<D>) -> Option<BlockId> {
        let live = |id: &BlockId| self.get(*id).is_some_and(Block::is_live);
        call.block.filter(live).or_else(|| self.beginning_at(call.arguments[0]).filter(live))
    }

    fn free<D>(&mut self, call: &AllocatorCall<D>, time: u64, (how, exact): (W, bool)) {
        let Some(id) = self.freed_by(call) else { return };
        let Some(block) = self.get(id) else { return };
        if block.unplaced {
            // To say that it is freed the pointer would have to be its. Where a block was freed before, this
            // may be that one again: a C library goes through what it keeps for a thread that ends.
            let may_be_another = exact || self.beginning_at(call.arguments[0]).is_some();
            if call.guessed && may_be_another {
                return;
            }
            self.place(id, call.arguments[0]);
        } else if block.facts.begin != call.arguments[0] {
            return;
        }
        self.release(id, Release { time, stack: call.callers, how });
    }

    fn measured(&mut self, begin: u64, usable: u64) {
        if let Some(id) = self.beginning_at(begin)
            && let Some(block) = self.get_mut(id)
        {
            block.facts.size = block.facts.size.max(usable);
        }
    }
}

/// A block that a call has made.
fn facts<D>(call: &AllocatorCall<D>, begin: u64, size: u64, time: u64) -> BlockFacts {
    BlockFacts { begin, size, time, family: call.allocator.family, region: REGION_HEAP }
}
