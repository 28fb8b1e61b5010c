//! The blocks of the heap, by the place that allocated each.

use crate::layout::Layout;
use crate::model::SiteId;
use analyze::model::blocks::Blocks;
use analyze::model::heap::{AllocatorCall, Outcome, UnderWay, takes_block};
use base::allocator::Role;

/// What a call of an allocator has changed: memory that is gone, and memory that is new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Freed: first address and size.
    pub freed: Option<(u64, u64)>,
    /// Allocated.
    pub made: Option<Made>,
}

/// A new block, or the new part of one that has grown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    /// First address.
    pub start: u64,
    /// Bytes.
    pub size: u64,
    /// The call that led to it.
    pub site: SiteId,
    /// Whether a library asked for it, and not the program.
    pub hidden: bool,
    /// The block that it continues, if it has only grown.
    pub grown: bool,
}

/// Calls of allocators under way in a thread.
pub type Allocating = UnderWay<SiteId>;

/// All blocks.
#[derive(Default)]
pub struct Heap(Blocks<()>);

impl Heap {
    /// A function has been called; whether it is an allocator's.
    pub fn enter(
        &self,
        layout: &Layout,
        under_way: &mut Allocating,
        (function, back, stack, arguments): (u64, u64, u64, [u64; 6]),
        site: SiteId,
    ) -> bool {
        let Some(allocator) = layout.allocators.get(&function).copied() else { return false };
        let pointer = Some(arguments[0]).filter(|at| takes_block(allocator.role) && *at != 0);
        let block = pointer.and_then(|address| self.0.at_pointer(address));
        under_way.enter(AllocatorCall {
            allocator,
            function,
            back,
            stack,
            arguments,
            block,
            guessed: true,
            callers: 0,
            data: site,
        });
        true
    }

    /// A function of an allocator has returned a value; what that has changed.
    pub fn leave(
        &mut self,
        layout: &Layout,
        under_way: &mut Allocating,
        (stack, value): (u64, u64),
    ) -> Change {
        let Some(call) = under_way.leave(stack) else { return Change::default() };
        let old = self.0.freed_by(&call).and_then(|id| self.0.get(id).map(|block| (id, *block)));
        let outcome = self.0.finish(&call, value, 0, ((), false));
        let hidden = !layout.is_own(call.back.wrapping_sub(1));
        let made = |start, size, grown| Some(Made { start, size, site: call.data, hidden, grown });
        let freed = || {
            let takes = matches!(call.allocator.role, Role::Free | Role::Resize(..));
            let (id, block) = old.filter(|_| takes)?;
            let is_gone = self.0.get(id).is_none_or(|block| !block.is_live());
            is_gone.then_some((block.facts.begin, block.facts.size))
        };
        match outcome {
            Outcome::Allocated { block, .. } => {
                let size = self.0.get(block).map_or(0, |block| block.facts.size);
                Change { freed: freed(), made: made(value, size, false) }
            }
            Outcome::Resized { block, before } | Outcome::Renewed { block, before, .. } => {
                let size = self.0.get(block).map_or(0, |block| block.facts.size);
                match size.checked_sub(before) {
                    Some(more) => Change { freed: None, made: made(value + before, more, true) },
                    None => Change { freed: Some((value + size, before - size)), made: None },
                }
            }
            Outcome::Nothing | Outcome::Stored(_) => Change { freed: freed(), made: None },
        }
    }
}
