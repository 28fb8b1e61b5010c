//! What is poisoned: blocks, as they are handed out. Frames are poisoned by translated code.

use crate::runner::address_map::AddressMap;
use crate::runner::engine::Engine;
use crate::runner::memory::Mapping;
use crate::runner::screens::allocators::{Allocators, Call, HeapBlock, Outcome};
use crate::runner::thread::Thread;
use events::plan::{self, HeapRole, POISON};
use std::ops::Range;

/// Bytes of a block that are poisoned; the kernel would have to provide all of a large one.
const MOST: u64 = 1 << 20;
/// The bytes of a block by which glibc knows that it is free already. They may be left over from an earlier
/// life of the block, and then `free` looks for it among the free ones.
const KEY: Range<u64> = 8..16;

/// What is known of a poisoned process.
#[derive(Default)]
pub struct Poison {
    /// The functions that are followed.
    pub allocators: Allocators,
    /// The sizes of blocks: of each address the last.
    sizes: AddressMap<u64>,
    /// Suspicions so far, by place.
    pub(super) reported: AddressMap<u32>,
}

impl Poison {
    /// What a plan asks for.
    pub fn arrange(&mut self, asked: &plan::Poison) {
        self.allocators.arrange(&asked.functions);
    }

    fn entered(
        &mut self,
        thread: &mut Thread,
        function: u64,
        (stack, back): (u64, u64),
        arguments: [u64; 6],
    ) {
        let Some(followed) = self.allocators.get(function) else { return };
        if thread.calls.poison.is_some_and(|call| call.holds(stack, back)) {
            return;
        }
        let known = self.sizes.get(&arguments[0]).filter(|_| followed.frees());
        let freed = known.map(|size| HeapBlock { size: *size, family: followed.family });
        thread.calls.poison = Some(Call { followed, stack, back, arguments, freed });
    }

    /// The thread is at a site, with a stack that has given up what stood at `stack`. The block that it got
    /// there, and how much of it somebody has written.
    fn came_back(
        &mut self,
        thread: &mut Thread,
        pc: u64,
        stack: u64,
        value: u64,
    ) -> Option<(Range<u64>, u64)> {
        let call = thread.calls.poison.take_if(|call| call.stack <= stack)?;
        if (call.stack, call.back) != (stack, pc) {
            // It was left by a jump.
            return None;
        }
        let outcome = call.followed.outcome(&call.arguments, value);
        let Outcome::Block { begin, size } = outcome else { return None };
        let end = begin.checked_add(size).filter(|_| begin != 0)?;
        self.sizes.insert(begin, size);
        let kept = match (call.followed.role, call.freed) {
            (HeapRole::Resize(..), Some(before)) => before.size,
            // Nobody knows how much of it was there before.
            (HeapRole::Resize(..), None) if call.arguments[0] != 0 => return None,
            _ => 0,
        };
        (!call.followed.zeroed).then_some((begin..end, kept))
    }
}

impl Engine {
    /// A function has been called that may allocate or free.
    pub fn enter_poison(
        &mut self,
        thread: &mut Thread,
        function: u64,
        at: (u64, u64),
        arguments: [u64; 6],
    ) {
        if let Some(poison) = &mut self.observed.screens.poison {
            poison.entered(thread, function, at, arguments);
        }
    }

    /// One may have returned.
    pub fn leave_poison(&mut self, thread: &mut Thread, pc: u64, (stack, value): (u64, u64)) {
        let Some(poison) = &mut self.observed.screens.poison else { return };
        let fresh = poison.came_back(thread, pc, stack.wrapping_sub(8), value);
        if let Some((block, kept)) = fresh {
            self.poison(&block, kept);
        }
    }

    /// A block has been handed out, of which somebody has written the first bytes.
    fn poison(&mut self, block: &Range<u64>, written: u64) {
        let start = block.start.saturating_add(written);
        let range = start..block.end.min(start.saturating_add(MOST));
        if range.is_empty() || !self.is_plain(&range) {
            return;
        }
        // SAFETY: the guest's own private memory, which it can write and nobody else uses now: whoever
        // could change that waits for the baton.
        let bytes = unsafe {
            let length = (range.end - range.start) as usize;
            std::slice::from_raw_parts_mut(range.start as *mut u8, length)
        };
        let inside = |at: u64| at.saturating_sub(written).min(bytes.len() as u64) as usize;
        let key = inside(KEY.start)..inside(KEY.end);
        let kept = bytes[key.clone()].to_vec();
        let turned = POISON.rotate_right(8 * (range.start % 4) as u32).to_le_bytes();
        let (words, rest) = bytes.as_chunks_mut();
        words.fill(turned);
        rest.copy_from_slice(&turned[..rest.len()]);
        if kept.iter().any(|byte| *byte != 0) {
            bytes[key].copy_from_slice(&kept);
        }
    }

    /// Whether memory can be written without a fault.
    fn is_plain(&self, range: &Range<u64>) -> bool {
        let is_plain = |(found, mapping): (Range<u64>, &Mapping)| {
            let writable = mapping.protection & libc::PROT_WRITE != 0;
            writable && mapping.file.is_none() && !mapping.shared && range.end <= found.end
        };
        let is_guarded = self.code.guarded.range(range.start & !0xfff..range.end).next().is_some();
        self.process.memory.find(range.start).is_some_and(is_plain) && !is_guarded
    }
}
