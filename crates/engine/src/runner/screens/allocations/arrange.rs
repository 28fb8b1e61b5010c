//! The table. A line stands in memory as far from the block as its region's entry in a list of distances
//! says, at one address for each sixteen bytes of the guest's. Blocks that have no line there (odd addresses,
//! 4 GiB and more, no room) are kept in a map.

use crate::layout::LINES;
use crate::runner::address_map::AddressMap;
use crate::runner::screens::allocators::{Allocators, Followed};
use crate::sys::{self, syscall};
use events::plan::{self, HeapFunction, HeapRole};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of the guest that have a line.
pub(super) const UNIT: u64 = 16;
/// Memory whose lines lie together.
const REGION_BYTES: u64 = 1 << 32;
const REGIONS: usize = 1 << 15;

/// Bits of an address that a block with a line does not have.
pub const IRREGULAR: u64 = (UNIT - 1) | (!0 << 47);
/// Bits of an address that tell its region.
pub const REGION: u64 = (REGIONS as u64 - 1) << 32;

/// For each region how far its lines are from it; zero if it has none.
static DISTANCES: [AtomicU64; REGIONS] = [const { AtomicU64::new(0) }; REGIONS];

/// Where that table lies: in the engine's image, so below 2 GiB.
pub fn distances() -> u64 {
    (&raw const DISTANCES) as u64
}

/// A line as it stands in memory. Translated code reads and writes it.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Line {
    /// Bytes of the block.
    pub size: u32,
    /// The site that it was allocated from.
    pub allocated: u32,
    /// Its family; above that the site that it was freed from. Zero if there is no block.
    pub state: u32,
    /// How many blocks there were before, as far as that fits.
    pub order: u32,
}

/// The call that translated code has entered for the running thread.
#[repr(C)]
pub struct UnderWay {
    /// Where its return address stands. Zero if there is none, [`ELSEWHERE`] if the thread knows it.
    pub stack: u64,
    /// Its return address.
    pub back: u64,
    /// The size that is asked for, or what is freed.
    pub value: u64,
    /// The family of a block that is asked for; zero if one is freed.
    pub family: u64,
    /// The site that frees, as [`Line::state`] has it.
    pub site: u64,
    /// Blocks so far.
    pub order: u64,
    /// [`IRREGULAR`].
    pub irregular: u64,
    /// [`REGION`].
    pub region: u64,
}

impl UnderWay {
    /// No call.
    pub const NONE: Self = Self {
        stack: 0,
        back: 0,
        value: 0,
        family: 0,
        site: 0,
        order: 0,
        irregular: IRREGULAR,
        region: REGION,
    };
}

/// No stack is there, so that translated code leaves all to us.
pub(super) const ELSEWHERE: u64 = 1;

/// What an ordinary call of a function does, if translated code can do the same to the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Returns a block of this family, of as many bytes as are asked for so.
    Allocates(u8, Asked),
    /// Frees the block of this family that its first argument points to.
    Frees(u8),
    /// The same, and calls nothing on the way that would be entered, so that nobody needs to know when it
    /// returns: `free` of the C library.
    FreesAlone(u8),
}

/// How a size is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// By the first argument.
    First,
    /// By the second argument.
    Second,
    /// By the product of both.
    Product,
}

/// A block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TableBlock {
    pub size: u64,
    /// The site that it was allocated from.
    pub allocated: u32,
    pub family: u8,
    /// The site that it was freed from; zero if it is live.
    pub freed: u32,
    /// How many blocks there were before.
    pub order: u32,
}

impl TableBlock {
    pub fn is_live(&self) -> bool {
        self.freed == 0
    }

    pub fn holds(&self, begin: u64, address: u64) -> bool {
        address == begin || (begin..begin.saturating_add(self.size)).contains(&address)
    }
}

/// The table of all blocks.
#[derive(Default)]
pub struct Allocations {
    /// The functions that are followed.
    pub(super) allocators: Allocators,
    /// Those of them that are [`Deed::FreesAlone`].
    alone: AddressMap<()>,
    /// Regions that have lines.
    regions: u64,
    /// Sites by their numbers, from 1 on.
    sites: Vec<u64>,
    numbers: AddressMap<u32>,
    pub(super) odd: BTreeMap<u64, TableBlock>,
}

/// Most sites that have a number of their own; later ones share the last.
const MOST_SITES: usize = (1 << 24) - 1;

impl Allocations {
    /// What a plan asks for.
    pub fn arrange(&mut self, asked: &plan::Allocations) {
        let of_blocks = |function: &&HeapFunction| function.role != HeapRole::Tend;
        let functions: Vec<_> = asked.functions.iter().filter(of_blocks).cloned().collect();
        self.allocators.arrange(&functions);
    }

    /// A function has been found.
    pub fn add_function(&mut self, address: u64, name: &str, library: bool) {
        let followed = self.allocators.add(address, name);
        if library && followed.is_some_and(|followed| followed.role == HeapRole::Free) {
            self.alone.insert(address, ());
        }
    }

    /// Whether nobody needs to know when a function returns.
    pub fn is_alone(&self, function: u64) -> bool {
        self.alone.contains_key(&function)
    }

    /// Whether a function is followed.
    pub fn follows(&self, function: u64) -> bool {
        self.allocators.get(function).is_some()
    }

    /// What translated code does at the entry of a function.
    pub fn deed(&self, function: u64) -> Option<Deed> {
        let Followed { role, family, .. } = self.allocators.get(function)?;
        match role {
            HeapRole::Allocate(0, None) => Some(Deed::Allocates(family, Asked::First)),
            HeapRole::Allocate(1, None) => Some(Deed::Allocates(family, Asked::Second)),
            HeapRole::Allocate(1, Some(0)) => Some(Deed::Allocates(family, Asked::Product)),
            HeapRole::Free if self.is_alone(function) => Some(Deed::FreesAlone(family)),
            HeapRole::Free => Some(Deed::Frees(family)),
            _ => None,
        }
    }

    /// The number of a site.
    pub fn number(&mut self, site: u64) -> u32 {
        if let Some(number) = self.numbers.get(&site) {
            return *number;
        }
        if self.sites.len() < MOST_SITES {
            self.sites.push(site);
        }
        let number = self.sites.len() as u32;
        self.numbers.insert(site, number);
        number
    }

    /// The number of a site that has one.
    pub fn known(&self, site: u64) -> Option<u32> {
        self.numbers.get(&site).copied()
    }

    pub(super) fn site(&self, number: u32) -> u64 {
        self.sites.get((number as usize).wrapping_sub(1)).copied().unwrap_or(0)
    }

    /// The line of the block that begins at an address.
    pub(super) fn line(&self, begin: u64) -> Option<Line> {
        // SAFETY: all lines of a region are mapped before its distance is set, and stay so; who looks at
        // them has the baton, and translated code does not run meanwhile.
        self.place(begin).map(|at| unsafe { at.read() })
    }

    fn set_line(&mut self, begin: u64, line: Line) -> bool {
        let place = self.place(begin);
        if let Some(at) = place {
            // SAFETY: as above.
            unsafe { at.write(line) };
        }
        place.is_some()
    }

    /// Where the line of a block is, if it has one.
    fn place(&self, begin: u64) -> Option<*mut Line> {
        if begin & IRREGULAR != 0 {
            return None;
        }
        let distance = DISTANCES[(begin >> 32) as usize].load(Ordering::Relaxed);
        let at = begin.wrapping_add(distance) as *mut Line;
        (distance != 0).then_some(at)
    }

    pub(super) fn get(&self, begin: u64) -> Option<TableBlock> {
        let written = self.line(begin).filter(|line| line.state != 0).map(|line| TableBlock {
            size: line.size.into(),
            allocated: line.allocated,
            family: line.state as u8,
            freed: line.state >> 8,
            order: line.order,
        });
        written.or_else(|| self.odd.get(&begin).copied())
    }

    pub(super) fn put(&mut self, begin: u64, block: TableBlock) {
        self.open_region(begin);
        let state = u32::from(block.family) | block.freed << 8;
        let TableBlock { allocated, order, .. } = block;
        let size = u32::try_from(block.size);
        let state = if size.is_ok() { state } else { 0 };
        let line = Line { size: size.unwrap_or(0), allocated, state, order };
        if !self.set_line(begin, line) || size.is_err() {
            self.odd.insert(begin, block);
        }
    }

    /// Makes room for the lines of a region, if there is any: where the address space is limited blocks
    /// are odd.
    fn open_region(&mut self, begin: u64) {
        let room = LINES.start + self.regions * REGION_BYTES;
        let known = begin & IRREGULAR != 0 || self.place(begin).is_some();
        if known || room >= LINES.end {
            return;
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: the range is the engine's own, kept for them.
        let mapped = unsafe { sys::map_fixed(room, REGION_BYTES, protection, flags, -1, 0) };
        if mapped.is_ok() {
            // SAFETY: advice about memory of our own.
            unsafe { syscall!(libc::SYS_madvise, room, REGION_BYTES, libc::MADV_DONTDUMP) };
            self.regions += 1;
            let distance = room.wrapping_sub(begin & REGION);
            DISTANCES[(begin >> 32) as usize].store(distance, Ordering::Relaxed);
        }
    }
}
