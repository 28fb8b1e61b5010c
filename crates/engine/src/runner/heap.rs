//! The blocks of the guest's heap, painted into the [shadow](super::screen) as they come and go.
//!
//! The host would be too late: it hears of an allocation when a buffer is full. So the functions
//! that the plan's `heap` lists are followed here, where they are entered and where they return.
//! While a thread is inside one it tests against a blank table: allocators live between blocks and
//! in freed ones.
//!
//! What a granule cannot tell is looked up: which bytes of a block's last granule are its own, and
//! whether a vector of the C library's string functions, which read past ends on purpose, touches a
//! block at all. This is an accelerator: what it lets through is a suspicion, and what it misses
//! (accesses that land in another live block) a full replay would find.

use super::address_map::AddressMap;
use super::cpu::cpu;
use super::engine::Engine;
use super::guest;
use super::layout::{BLANK, BLANK_BASE, SHADOW_BASE};
use super::memory::Mapping;
use super::owners;
use super::screen::Shadow;
use super::sys;
use super::thread::Thread;
use events::plan::{BETWEEN, FREED, GRANULE, HeapFunction, HeapRole, ORDINARY_SIZES, Paint, TAIL};
use std::collections::BTreeMap;
use std::ops::Range;

/// Looks at the last granule of a block that found nothing, until it is no longer tested.
const MOST_LOOKS: u16 = 8;
/// Blocks whose last granule is tested, as a look costs microseconds: the first ones, the first ones of
/// each caller, and of all others one in so many.
const TESTED_TAILS: u64 = 2000;
const TESTED_OF_CALLER: u64 = 64;
const SAMPLED_TAILS: u64 = 512;
/// Bytes on either side of a block where an access is suspicious.
const BESIDE: u64 = 64;
/// Blocks from this size on may have a mapping of their own.
const MAPPED: u64 = 64 << 10;
const PAGE: u64 = 4096;
/// Bytes of an allocator's code that may lie before the first function that others call.
const BEFORE: u64 = 16 << 10;
/// How far compilers let a pointer count from before an array.
const NEAR: u64 = 128;
/// How far ahead of what they have seen the C library's string functions read.
const AHEAD: u64 = 160;

/// The call of an allocator that a thread is in.
#[derive(Clone, Copy)]
pub struct HeapCall {
    followed: Followed,
    /// Where its return address stands.
    stack: u64,
    /// Its return address.
    back: u64,
    arguments: [u64; 6],
    /// The block that it frees.
    freed: Option<Block>,
}

/// An access that is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Where.
    pub address: u64,
    /// Bytes.
    pub size: u32,
    /// Whether it writes.
    pub write: bool,
}

/// A function that is followed.
#[derive(Clone, Copy)]
pub struct Followed {
    /// What it does.
    pub role: HeapRole,
    /// Whose it is.
    pub family: u8,
    /// Whether it hands out blocks of zeros.
    pub zeroed: bool,
}

/// A live block.
#[derive(Clone, Copy)]
struct Block {
    size: u64,
    family: u8,
}

impl Block {
    fn end(&self, begin: u64) -> u64 {
        begin + self.size
    }
}

/// The heap's blocks.
#[derive(Default)]
pub struct Heap {
    names: BTreeMap<String, HeapFunction>,
    functions: AddressMap<Followed>,
    /// Live blocks by address.
    live: BTreeMap<u64, Block>,
    /// Where nothing is painted only the last block at an address counts, and what its size was.
    sizes: Option<AddressMap<u64>>,
    looks: AddressMap<u16>,
    /// Owners so far.
    owners: u64,
    /// Blocks so far, and of those the ones of each caller of an allocator.
    count: u64,
    of_caller: AddressMap<u64>,
}

/// What a thread tests against.
pub fn shadow_of(thread: &Thread) -> u64 {
    if thread.allocating.is_some() { BLANK_BASE } else { SHADOW_BASE }
}

/// Whether the running thread is inside an allocator.
pub fn is_blank() -> bool {
    cpu().shadow == BLANK_BASE
}

/// Whether code is the C library's, whose string functions read past ends on purpose.
pub fn is_c_library(mapping: &Mapping) -> bool {
    let path = mapping.file.as_deref();
    path.is_some_and(|path| base::ModuleKind::of(path).is_c_library())
}

fn paint(range: Range<u64>, bits: u8) {
    Shadow.paint(&Paint { range, bits });
}

/// The bytes that a call asks for.
pub fn bytes(arguments: &[u64; 6], size: u8, count: Option<u8>) -> u64 {
    let count = count.map_or(1, |count| arguments[usize::from(count % 6)]);
    arguments[usize::from(size % 6)].saturating_mul(count)
}

/// Whether a call is made inside of another, by where their return addresses stand and what they are: at the
/// same height, to return to the same place, it is a tail call.
pub fn is_inside(inner: (u64, u64), outer: (u64, u64)) -> bool {
    inner.0 < outer.0 || inner == outer
}

/// Whether a call is, that frees a live block of this family.
pub fn is_unusual(
    Followed { role, family, .. }: Followed,
    arguments: &[u64; 6],
    freed: Option<u8>,
) -> bool {
    let size = match role {
        HeapRole::Allocate(size, count) | HeapRole::Resize(size, count) => {
            bytes(arguments, size, count)
        }
        HeapRole::AllocateTo(size) => bytes(arguments, size, None),
        HeapRole::AllocateFixed(_) | HeapRole::Free | HeapRole::Measure | HeapRole::Tend => 0,
    };
    let frees = matches!(role, HeapRole::Free | HeapRole::Resize(..)) && arguments[0] != 0;
    !ORDINARY_SIZES.contains(&size) || frees && freed != Some(family)
}

impl Heap {
    /// The functions that a plan lists.
    pub fn arrange(&mut self, functions: &[HeapFunction]) {
        if self.names.is_empty() && self.sizes.is_none() {
            map_tables();
        }
        self.names = functions.iter().map(|one| (one.name.clone(), one.clone())).collect();
        for (name, address) in
            functions.iter().flat_map(|one| one.at.iter().map(|at| (&one.name, *at)))
        {
            self.add_function(address, name);
        }
    }

    /// The same where nothing is painted.
    pub fn arrange_unpainted(&mut self, functions: &[HeapFunction]) {
        self.sizes = Some(AddressMap::default());
        self.arrange(functions);
    }

    /// A function has been found.
    pub fn add_function(&mut self, address: u64, name: &str) {
        if let Some(HeapFunction { role, family, zeroed, .. }) = self.names.get(name) {
            let followed = Followed { role: *role, family: *family, zeroed: *zeroed };
            self.functions.insert(address, followed);
        }
    }

    /// A function has been called: where its return address stands, and what it is. Whether the
    /// call is unusual.
    pub fn entered(
        &mut self,
        thread: &mut Thread,
        function: u64,
        (stack, back): (u64, u64),
        arguments: [u64; 6],
    ) -> bool {
        let Some(followed) = self.functions.get(&function).copied() else { return false };
        // A call further up the stack than the one under way: that one was left by a jump. One that goes
        // through the heap may allocate as anybody does.
        let outer = thread.allocating.filter(|call| call.followed.role != HeapRole::Tend);
        if outer.is_some_and(|call| is_inside((stack, back), (call.stack, call.back))) {
            return false;
        }
        let frees = matches!(followed.role, HeapRole::Free | HeapRole::Resize(..));
        // Before the function does it, so that nobody else has the memory yet.
        let freed = frees.then(|| self.free(arguments[0])).flatten();
        let unusual = is_unusual(followed, &arguments, freed.map(|block| block.family));
        thread.allocating = Some(HeapCall { followed, stack, back, arguments, freed });
        if self.sizes.is_some() {
            return false;
        }
        cpu().shadow = BLANK_BASE;
        cpu().owner_mask = owners::mask(true);
        unusual
    }

    /// Whether code of the C library is the allocator's: it lies between functions that are followed, or not
    /// far before them. What the library does when a thread ends it does there, though nobody has called these.
    pub fn is_own(&self, pc: u64, library: &Range<u64>) -> bool {
        let inside = || self.functions.keys().filter(|function| library.contains(function));
        inside().any(|function| *function <= pc + BEFORE) && inside().any(|function| *function > pc)
    }

    /// Whether a function is followed.
    pub fn follows(&self, function: u64) -> bool {
        self.functions.contains_key(&function)
    }

    /// The thread is at a site, with a stack that has given up what stood at `stack`. The block that it got
    /// there, and how much of it somebody has written.
    pub fn came_back(
        &mut self,
        thread: &mut Thread,
        pc: u64,
        stack: u64,
        value: u64,
    ) -> Option<(Range<u64>, u64)> {
        let call = thread.allocating.take_if(|call| call.stack <= stack)?;
        if self.sizes.is_none() {
            cpu().shadow = SHADOW_BASE;
            cpu().owner_mask = owners::mask(false);
        }
        if (call.stack, call.back) != (stack, pc) {
            // It was left by a jump.
            return None;
        }
        let got = self.note_block(&call, value)?;
        let kept = match (call.followed.role, call.freed) {
            (HeapRole::Resize(..), Some(before)) => before.size,
            // Nobody knows how much of it was there before.
            (HeapRole::Resize(..), None) if call.arguments[0] != 0 => return None,
            _ => 0,
        };
        (!call.followed.zeroed).then_some((got, kept))
    }

    /// The block that a call has allocated, if it has.
    fn note_block(&mut self, call: &HeapCall, value: u64) -> Option<Range<u64>> {
        let (arguments, family) = (&call.arguments, call.followed.family);
        let (block, caller) = (|size| Block { size, family }, call.back);
        match call.followed.role {
            HeapRole::Allocate(size, count) => {
                self.allocate(value, block(bytes(arguments, size, count)), caller)
            }
            HeapRole::AllocateFixed(size) => self.allocate(value, block(size), caller),
            HeapRole::Resize(size, count) => {
                let wanted = bytes(arguments, size, count);
                if let (0, Some(before)) = (value, call.freed.filter(|_| wanted > 0)) {
                    // It failed, and everything is as it was.
                    self.allocate(arguments[0], before, caller);
                    return None;
                }
                self.allocate(value, block(wanted), caller)
            }
            HeapRole::AllocateTo(size) if value == 0 => {
                let stored = guest::read_u64(arguments[0]).unwrap_or(0);
                self.allocate(stored, block(bytes(arguments, size, None)), caller)
            }
            HeapRole::Measure => {
                let known = self.live.get(&arguments[0]).copied();
                if let Some(block) = known.filter(|block| block.size < value) {
                    self.allocate(arguments[0], Block { size: value, ..block }, caller);
                }
                None
            }
            HeapRole::AllocateTo(_) | HeapRole::Free | HeapRole::Tend => None,
        }
    }

    fn free(&mut self, begin: u64) -> Option<Block> {
        if let Some(sizes) = &self.sizes {
            return sizes.get(&begin).map(|size| Block { size: *size, family: 0 });
        }
        let block = self.live.remove(&begin)?;
        if block.size > 0 {
            paint(begin..block.end(begin), FREED);
            owners::release(&(begin..block.end(begin)));
        }
        Some(block)
    }

    fn allocate(&mut self, begin: u64, block: Block, caller: u64) -> Option<Range<u64>> {
        let end = begin.checked_add(block.size).filter(|_| begin != 0)?;
        if let Some(sizes) = &mut self.sizes {
            sizes.insert(begin, block.size);
            return Some(begin..end);
        }
        self.live.insert(begin, block);
        if block.size > 0 {
            paint(begin..end, 0);
            self.owners += 1;
            owners::claim(&(begin..end), self.owners);
        }
        if !end.is_multiple_of(GRANULE) && self.is_tail_tested(caller) {
            self.looks.remove(&(end / GRANULE));
            paint(end..end + 1, TAIL);
        }
        for beside in self.beside(begin, end) {
            Shadow.paint_blank(beside, BETWEEN);
        }
        Some(begin..end)
    }

    /// Whether the last granule of one more block is tested.
    fn is_tail_tested(&mut self, caller: u64) -> bool {
        self.count += 1;
        let own = self.of_caller.entry(caller).or_default();
        *own += 1;
        self.count < TESTED_TAILS || *own < TESTED_OF_CALLER || own.is_multiple_of(SAMPLED_TAILS)
    }

    /// What lies next to a block on either side, as far as no other block is there.
    fn beside(&self, begin: u64, end: u64) -> [Range<u64>; 2] {
        let before = self.live.range(..begin).next_back().map_or(0, |(at, block)| block.end(*at));
        let after = self.live.range(begin + 1..).next().map_or(u64::MAX, |(at, _)| *at);
        let end = end.next_multiple_of(GRANULE);
        let mut low = begin.saturating_sub(BESIDE).max(before.next_multiple_of(GRANULE));
        let mut high = end.saturating_add(BESIDE).min(after);
        if end - begin >= MAPPED {
            // What is mapped next to it is somebody else's.
            (low, high) = (low.max(begin & !(PAGE - 1)), high.min(end.next_multiple_of(PAGE)));
        }
        [low & !(GRANULE - 1)..begin & !(GRANULE - 1), end..high]
    }

    /// The live block that an address is in: where it begins and ends.
    fn holder(&self, address: u64) -> Option<Range<u64>> {
        let (begin, block) = self.live.range(..=address).next_back()?;
        // Whoever looks at granules asks for the whole last one.
        let end = block.end(*begin);
        (address < end.next_multiple_of(GRANULE)).then_some(*begin..end)
    }

    /// Whether an address that was made from a pointer lies in another block than that points to. A pointer
    /// next to the other block must be the beginning of its own: compilers count from before an array,
    /// where another one may be.
    pub fn strays(&self, pointer: u64, address: u64) -> bool {
        let (Some(from), Some(to)) = (self.block_of(pointer), self.block_of(address)) else {
            return false;
        };
        let near = to.start.saturating_sub(NEAR)..to.end.saturating_add(NEAR);
        from != to && (!near.contains(&pointer) || pointer == from.start)
    }

    /// Whether two addresses lie in one block.
    pub fn shares(&self, one: u64, other: u64) -> bool {
        let block = self.block_of(one);
        block.is_some() && block == self.block_of(other)
    }

    fn block_of(&self, address: u64) -> Option<Range<u64>> {
        self.holder(address).filter(|block| block.contains(&address))
    }

    /// Whether an access whose shadow is not blank is to be told.
    pub fn suspects(
        &mut self,
        look: Look,
        shadow: &mut Shadow,
        reads_ahead: impl FnOnce() -> bool,
    ) -> bool {
        let Look { address, size, write } = look;
        let end = address.saturating_add(u64::from(size));
        let inside = |block: &Range<u64>| block.start <= address && end <= block.end;
        if self.holder(address).as_ref().is_some_and(inside) {
            self.tire(end - 1, shadow);
            return false;
        }
        if write || !reads_ahead() {
            return true;
        }
        // String functions go on in whole vectors behind the first: into whatever is there. The first
        // begins where the string does, and is not aligned.
        let last = self.live.range(..end).next_back();
        let comes_from =
            |(at, block): (&u64, &Block)| block.end(*at).saturating_add(AHEAD) > address;
        let goes_on = address.is_multiple_of(u64::from(size));
        !last.is_some_and(comes_from) && !goes_on && shadow.bits(address, 1) & FREED != 0
    }

    /// A last granule that is used all the time is worth less than what the looks cost.
    fn tire(&mut self, address: u64, shadow: &mut Shadow) {
        let looks = self.looks.entry(address / GRANULE).or_default();
        *looks += 1;
        if *looks >= MOST_LOOKS {
            shadow.paint(&Paint { range: address..address + 1, bits: 0 });
        }
    }
}

/// Maps the table of owners, and that in which everything passes; its pages are all the one that is always
/// zero.
fn map_tables() {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let bytes = BLANK.end - BLANK.start;
    // SAFETY: the range is the engine's own and holds nothing else.
    let mapped = unsafe { sys::map_fixed(BLANK.start, bytes, libc::PROT_READ, flags, -1, 0) };
    if let Err(error) = mapped.and(owners::map()) {
        super::report::refuse(&format!("no tables for the heap: error {error}"), 0);
    }
    cpu().owner_mask = owners::mask(false);
}

impl Engine {
    /// Memory has been mapped anew or is gone: no block is there.
    pub fn blank(&mut self, range: Range<u64>) {
        if let (Some(heap), Some(shadow)) = (&mut self.heap, &mut self.shadow) {
            let gone: Vec<u64> = heap.live.range(range.clone()).map(|(begin, _)| *begin).collect();
            for begin in gone {
                let block = heap.live.remove(&begin);
                block.iter().for_each(|block| owners::release(&(begin..block.end(begin))));
            }
            shadow.paint(&Paint { range, bits: 0 });
        }
    }
}
