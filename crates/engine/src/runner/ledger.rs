//! The **ledger** of the guest's heap, for rules that only unusual calls of allocators can break: of
//! every block its size, its family, who allocated it and who freed it.
//!
//! Nobody is told of ordinary calls. They are not even looked at here: translated code
//! ([`super::translate::lower`]) enters them by itself, at one address for each sixteen bytes of the
//! guest's. Whatever is not quite ordinary comes here by way of [`super::follow`]. A call that is unusual is
//! told with all that is known of the block that it frees, as if that block was all that there ever
//! was: so whoever reads the stream needs no history.
//!
//! A line stands in memory as far from the block as its region's entry in a table says. Blocks that have
//! no line there (odd addresses, 4 GiB and more, no room) are kept in a map.

use super::address_map::AddressMap;
use super::cpu::cpu;
use super::engine::{Engine, engine};
use super::guest;
use super::heap::{self, Followed, Look};
use super::layout::SHADOW;
use super::memory::Memory;
use super::sys::{self, syscall};
use super::thread::Thread;
use events::plan::{HeapFunction, HeapRole, UNUSUAL};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of the guest that have a line.
const UNIT: u64 = 16;
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
const ELSEWHERE: u64 = 1;

/// What an ordinary call of a function does, if translated code can do the same to the ledger.
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
struct Block {
    size: u64,
    allocated: u32,
    family: u8,
    /// Zero if it is live.
    freed: u32,
    order: u32,
}

impl Block {
    fn is_live(&self) -> bool {
        self.freed == 0
    }

    fn holds(&self, begin: u64, address: u64) -> bool {
        address == begin || (begin..begin.saturating_add(self.size)).contains(&address)
    }
}

/// The call of an allocator that a thread is in.
#[derive(Clone, Copy)]
pub struct Call {
    followed: Followed,
    stack: u64,
    back: u64,
    arguments: [u64; 6],
    /// The block that it frees, as it was.
    before: Option<(u64, Block)>,
    /// Whether it is told.
    told: bool,
}

/// A call that is told, with the block that it frees.
struct Unusual {
    block: Option<(u64, Block)>,
}

/// The ledger.
#[derive(Default)]
pub struct Ledger {
    names: BTreeMap<String, HeapFunction>,
    functions: AddressMap<Followed>,
    /// Those of them that are [`Deed::FreesAlone`].
    alone: AddressMap<()>,
    /// Regions that have lines.
    regions: u64,
    /// Sites by their numbers, from 1 on.
    sites: Vec<u64>,
    numbers: AddressMap<u32>,
    odd: BTreeMap<u64, Block>,
}

/// Most sites that have a number of their own; later ones share the last.
const MOST_SITES: usize = (1 << 24) - 1;

impl Ledger {
    /// The functions that a plan lists.
    pub fn arrange(&mut self, functions: &[HeapFunction]) {
        self.names = functions.iter().map(|one| (one.name.clone(), one.clone())).collect();
    }

    /// A function has been found.
    pub fn add_function(&mut self, address: u64, name: &str, library: bool) {
        let Some(HeapFunction { role, family, .. }) = self.names.get(name) else { return };
        if *role == HeapRole::Tend {
            return;
        }
        self.functions.insert(address, Followed { role: *role, family: *family, zeroed: false });
        if library && *role == HeapRole::Free {
            self.alone.insert(address, ());
        }
    }

    /// Whether nobody needs to know when a function returns.
    pub fn is_alone(&self, function: u64) -> bool {
        self.alone.contains_key(&function)
    }

    /// Whether a function is followed.
    pub fn follows(&self, function: u64) -> bool {
        self.functions.contains_key(&function)
    }

    /// What translated code does at the entry of a function.
    pub fn deed(&self, function: u64) -> Option<Deed> {
        let Followed { role, family, .. } = *self.functions.get(&function)?;
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

    fn site(&self, number: u32) -> u64 {
        self.sites.get((number as usize).wrapping_sub(1)).copied().unwrap_or(0)
    }

    /// The line of the block that begins at an address.
    fn line(&self, begin: u64) -> Option<&'static mut Line> {
        if begin & IRREGULAR != 0 {
            return None;
        }
        let distance = DISTANCES[(begin >> 32) as usize].load(Ordering::Relaxed);
        let at = begin.wrapping_add(distance) as *mut Line;
        // SAFETY: all lines of a region are mapped before its distance is set, and stay so; who looks at
        // them has the baton.
        (distance != 0).then(|| unsafe { &mut *at })
    }

    fn get(&self, begin: u64) -> Option<Block> {
        let written = self.line(begin).filter(|line| line.state != 0).map(|line| Block {
            size: line.size.into(),
            allocated: line.allocated,
            family: line.state as u8,
            freed: line.state >> 8,
            order: line.order,
        });
        written.or_else(|| self.odd.get(&begin).copied())
    }

    fn put(&mut self, begin: u64, block: Block) {
        self.open_region(begin);
        let state = u32::from(block.family) | block.freed << 8;
        match (self.line(begin), u32::try_from(block.size)) {
            (Some(line), Ok(size)) => {
                *line = Line { size, allocated: block.allocated, state, order: block.order };
            }
            (line, _) => {
                line.into_iter().for_each(|line| line.state = 0);
                self.odd.insert(begin, block);
            }
        }
    }

    /// Makes room for the lines of a region, if there is any: where the address space is limited blocks
    /// are odd.
    fn open_region(&mut self, begin: u64) {
        let room = SHADOW.start + self.regions * REGION_BYTES;
        let known = begin & IRREGULAR != 0 || self.line(begin).is_some();
        if known || room >= SHADOW.end {
            return;
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: the range is the engine's own, kept for tables, and this plan has no shadow there.
        let mapped = unsafe { sys::map_fixed(room, REGION_BYTES, protection, flags, -1, 0) };
        if mapped.is_ok() {
            // SAFETY: advice about memory of our own.
            unsafe { syscall!(libc::SYS_madvise, room, REGION_BYTES, libc::MADV_DONTDUMP) };
            self.regions += 1;
            let distance = room.wrapping_sub(begin & REGION);
            DISTANCES[(begin >> 32) as usize].store(distance, Ordering::Relaxed);
        }
    }

    /// The block that is meant by an address: the one that begins there, or that it is in; of those that
    /// were freed the last one.
    fn holder(&self, address: u64, memory: &Memory) -> Option<(u64, Block)> {
        let lowest = memory.find(address).map_or(address, |(range, _)| range.start) & !(UNIT - 1);
        let mut freed: Option<(u64, Block)> = None;
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
    fn is_overlapped(&self, address: u64, begin: u64, block: Block) -> bool {
        let behind = (address & !(UNIT - 1)) + UNIT;
        let later = |at: &u64| self.get(*at).is_some_and(|other| other.order > block.order);
        (behind..begin.saturating_add(block.size))
            .step_by(UNIT as usize)
            .take_while(|at| self.line(*at).is_some())
            .any(|at| later(&at))
    }

    /// A function that makes blocks of a family, and what it is called with for one of a size.
    fn maker(&self, family: u8, size: u64) -> Option<(u64, [u64; 6])> {
        let of_family = self.functions.iter().filter(|(_, one)| one.family == family);
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
                Some((*function, arguments))
            })
            .min()
    }

    fn releaser(&self, family: u8) -> Option<u64> {
        let frees = |one: &Followed| one.family == family && one.role == HeapRole::Free;
        self.functions.iter().filter(|(_, one)| frees(one)).map(|(function, _)| *function).min()
    }

    /// What translated code has entered for the thread, if it has, is ours from now on.
    fn take_over(&mut self, thread: &mut Thread) {
        let under = &mut cpu().ledger;
        if under.stack <= ELSEWHERE {
            return;
        }
        let (stack, back, value) = (under.stack, under.back, under.value);
        let freed = || self.get(value).filter(|block| !block.is_live());
        let (role, family, before) = match under.family {
            0 => (HeapRole::Free, 0, freed().map(|block| (value, Block { freed: 0, ..block }))),
            family => (HeapRole::Allocate(0, None), family as u8, None),
        };
        let followed = Followed { role, family, zeroed: false };
        let arguments = [value, 0, 0, 0, 0, 0];
        thread.ledger = Some(Call { followed, stack, back, arguments, before, told: false });
        under.stack = ELSEWHERE;
    }

    /// A call was left by a jump: nothing became of it.
    fn abandon(&mut self, call: &Call) {
        let back = self.number(call.back);
        if let Some((begin, block)) = call.before
            && self.get(begin) == Some(Block { freed: back, ..block })
        {
            self.put(begin, block);
        }
    }

    fn entered(
        &mut self,
        thread: &mut Thread,
        function: u64,
        (stack, back): (u64, u64),
        arguments: [u64; 6],
        memory: &Memory,
    ) -> Option<Unusual> {
        let followed = self.functions.get(&function).copied()?;
        self.take_over(thread);
        let outer = thread.ledger.map(|call| (call.stack, call.back));
        if outer.is_some_and(|outer| heap::is_inside((stack, back), outer)) {
            return None;
        }
        thread.ledger.take().iter().for_each(|left| self.abandon(left));
        let frees = matches!(followed.role, HeapRole::Free | HeapRole::Resize(..));
        let pointer = arguments[0];
        let live = self.get(pointer).filter(|block| frees && pointer != 0 && block.is_live());
        let is_unusual = heap::is_unusual(followed, &arguments, live.map(|block| block.family));
        let unusual = is_unusual.then(|| {
            let meant = (frees && pointer != 0).then(|| self.holder(pointer, memory));
            Unusual { block: meant.flatten() }
        });
        // Before the function does it, so that nobody else has the memory yet.
        if let Some(block) = live {
            let freed = self.number(back);
            self.put(pointer, Block { freed, ..block });
        }
        if self.is_alone(function) {
            cpu().ledger.stack = 0;
            return unusual;
        }
        let before = live.map(|block| (pointer, block));
        let told = is_unusual;
        thread.ledger = Some(Call { followed, stack, back, arguments, before, told });
        cpu().ledger.stack = ELSEWHERE;
        unusual
    }

    /// The thread is at a site, with a stack that has given up what stood at `stack`. Whether the return
    /// is told.
    fn came_back(&mut self, thread: &mut Thread, pc: u64, stack: u64, value: u64) -> bool {
        self.take_over(thread);
        let Some(call) = thread.ledger.take_if(|call| call.stack <= stack) else { return false };
        cpu().ledger.stack = 0;
        if (call.stack, call.back) != (stack, pc) {
            self.abandon(&call);
            return false;
        }
        let arguments = &call.arguments;
        match call.followed.role {
            HeapRole::Allocate(size, count) => {
                self.allocate(value, heap::bytes(arguments, size, count), &call);
            }
            HeapRole::AllocateFixed(size) => self.allocate(value, size, &call),
            HeapRole::Resize(size, count) => {
                self.resize(value, heap::bytes(arguments, size, count), &call);
            }
            HeapRole::AllocateTo(size) if value == 0 => {
                let stored = guest::read_u64(arguments[0]).unwrap_or(0);
                self.allocate(stored, heap::bytes(arguments, size, None), &call);
            }
            HeapRole::Measure => {
                if let Some(block) = self.get(arguments[0]) {
                    self.put(arguments[0], Block { size: block.size.max(value), ..block });
                }
            }
            HeapRole::AllocateTo(_) | HeapRole::Free | HeapRole::Tend => {}
        }
        call.told
    }

    fn resize(&mut self, value: u64, size: u64, call: &Call) {
        match call.before {
            // In place it stays the same block.
            Some((begin, block)) if value == begin => self.put(begin, Block { size, ..block }),
            // It failed, and everything is as it was.
            Some((begin, block)) if value == 0 && size > 0 => self.put(begin, block),
            _ => self.allocate(value, size, call),
        }
    }

    fn allocate(&mut self, begin: u64, size: u64, call: &Call) {
        if begin == 0 {
            return;
        }
        cpu().ledger.order += 1;
        let (order, family) = (cpu().ledger.order as u32, call.followed.family);
        let allocated = self.number(call.back);
        self.put(begin, Block { size, allocated, family, freed: 0, order });
    }
}

/// The thread takes the call that it is in along, before another one runs.
pub fn put_aside(thread: &mut Thread) {
    if cpu().ledger.stack > ELSEWHERE
        && let Some(ledger) = &mut engine().ledger
    {
        ledger.take_over(thread);
    }
}

/// What translated code knows of the call that a thread is in.
pub fn stack_of(thread: &Thread) -> u64 {
    if thread.ledger.is_some() { ELSEWHERE } else { 0 }
}

impl Engine {
    /// A function has been called: where its return address stands, and what it is.
    pub fn enter_in_ledger(
        &mut self,
        thread: &mut Thread,
        function: u64,
        at: (u64, u64),
        arguments: [u64; 6],
    ) {
        let Some(ledger) = &mut self.ledger else { return };
        let alone = ledger.is_alone(function);
        if let Some(unusual) = ledger.entered(thread, function, at, arguments, &self.memory) {
            let look = Look { address: arguments[0], size: 0, write: false };
            self.record_suspect(function, look, UNUSUAL);
            self.record_life(at.0, unusual.block);
            self.record_enter(function, at, arguments);
            if alone {
                self.record_back(at.1, at.0.wrapping_add(8), 0);
            }
        }
    }

    /// The guest is at a site.
    pub fn leave_in_ledger(&mut self, thread: &mut Thread, pc: u64, (stack, value): (u64, u64)) {
        let Some(ledger) = &mut self.ledger else { return };
        let told = ledger.came_back(thread, pc, stack.wrapping_sub(8), value);
        if told && !self.stops.is_told(pc) {
            self.record_back(pc, stack, value);
        }
    }

    /// The life of a block, as calls from a height of the stack.
    fn record_life(&mut self, stack: u64, block: Option<(u64, Block)>) {
        let (Some(ledger), Some((begin, block))) = (&self.ledger, block) else { return };
        let Some((maker, arguments)) = ledger.maker(block.family, block.size) else { return };
        let releaser = ledger.releaser(block.family).filter(|_| !block.is_live());
        let (allocated, freed) = (ledger.site(block.allocated), ledger.site(block.freed));
        self.record_enter(maker, (stack, allocated), arguments);
        self.record_back(allocated, stack.wrapping_add(8), begin);
        if let Some(releaser) = releaser {
            self.record_enter(releaser, (stack, freed), [begin, 0, 0, 0, 0, 0]);
            self.record_back(freed, stack.wrapping_add(8), 0);
        }
    }
}
