//! The **code cache**: translations, how they are found, linked, dropped and flushed.
//!
//! Memory for code is handed out in one direction and taken back all at once: when it is full
//! everything is flushed, which is always safe because no thread is inside the cache while another
//! holds the baton. Dropping one translation (its guest code changed) only makes it unreachable.

mod tables;

use super::address_map::AddressMap;
use super::report;
use super::thread::Left;
use super::translate::accesses::Accesses;
use super::translate::instrument::Instrumentation;
use super::translate::lower::{Exit, ExitKind, FIRST_EXIT, Shared, Translation, Variant, lower};
use super::translate::map::{Map, Point, Spills};
use super::translate::superblock::{Marks, Superblock};
use crate::layout;
use crate::runner::cpu::reg::{RCX, RDI, RSI};
use crate::sys;
use events::shape::Shape;
use tables::Tables;

/// Number of a translation.
pub type Id = u32;

/// A translation in the cache.
pub struct Fragment {
    /// Guest address it translates.
    pub pc: u64,
    start: u64,
    end: u64,
    far: u64,
    body: u64,
    indirect_body: u64,
    inner: u64,
    reserved: u64,
    map: Map,
    incoming: Vec<u32>,
    return_stubs: Box<[u64]>,
    alive: bool,
    observed: Option<Observed>,
    /// Its one instruction's accesses must be worked out before it is entered.
    pub explicit: bool,
    /// The dispatcher must be there whenever it is entered.
    attended: bool,
    /// The dispatcher wants to know when it is left.
    comes_back: bool,
    variant: Variant,
    test_registers: Option<(u8, u8)>,
    value_source: Option<u8>,
    /// The register through which it writes records about the place where it starts, if it does.
    marks_by: Option<u8>,
}

/// What the event stream has to do with a translation.
pub struct Observed {
    /// Register that points to the record under construction.
    pub record_register: u8,
    /// Number of its first exit.
    pub first_exit: u32,
    /// Fields stored before each instruction.
    pub fields_before: Box<[u16]>,
    /// Its repeated string instructions, and which register moves with each.
    pub repeats: Box<[(u16, u8)]>,
}

/// The repeated string instructions of a shape; LODS moves the source only.
fn repeats(shape: &Shape) -> Box<[(u16, u8)]> {
    let all = 0..shape.instructions.len() as u16;
    all.filter(|index| shape.repeats(*index))
        .map(|index| {
            let mut own = shape.accesses.iter().filter(|access| access.index == index);
            (index, if own.all(|access| access.from_source) { RSI } else { RDI })
        })
        .collect()
}

impl Fragment {
    /// Where direct branches enter.
    pub fn body(&self) -> u64 {
        self.body
    }

    /// What the event stream has to do with it.
    pub fn observed(&self) -> Option<&Observed> {
        self.observed.as_ref()
    }

    /// The register through which it loads values.
    pub fn value_source(&self) -> Option<u8> {
        self.value_source
    }

    /// The register that points to what it writes to the event stream.
    pub fn record_register(&self) -> Option<u8> {
        self.observed.as_ref().map(|observed| observed.record_register).or(self.marks_by)
    }

    /// Whether it writes records about the place where it starts.
    pub fn is_marked(&self) -> bool {
        self.marks_by.is_some()
    }

    /// The registers that tests against the shadow use in it: its base, and scratch.
    pub fn test_registers(&self) -> Option<(u8, u8)> {
        self.test_registers
    }
}

struct CacheExit {
    fragment: Id,
    exit: Exit,
    linked: bool,
}

/// The cache.
pub struct Cache {
    fragments: Vec<Fragment>,
    exits: Vec<CacheExit>,
    by_pc: AddressMap<Id>,
    by_page: AddressMap<Vec<Id>>,
    next: u64,
    start: u64,
    /// Next free byte of [`layout::FAR_CODE`].
    far: u64,
    /// How far either is mapped.
    mapped: [u64; 2],
    shared: Shared,
    second_used: bool,
    tables: Tables,
    /// Whether inserted code must leave also dead flags alone, as a handler of faults may look.
    pub exact_flags: bool,
    /// Times the whole cache was flushed.
    pub flushes: u64,
}

/// Where a translated address belongs.
pub struct Located {
    /// The guest's state there.
    pub point: Point,
    /// Guest pc.
    pub pc: u64,
    /// Whether it is exactly an instruction boundary.
    pub boundary: bool,
    /// The translation.
    pub fragment: Id,
}

impl Located {
    /// What is known of a translation that is left there.
    pub fn left(&self) -> Left {
        let Point { index, repeating, .. } = self.point;
        Left { fragment: self.fragment, index, repeating }
    }
}

const PAGE: u64 = 4096;
const HUGE_PAGE: u64 = 2 << 20;
/// Room that any translation surely fits in.
const LARGEST_TRANSLATION: u64 = 64 << 10;

impl Cache {
    /// Maps the cache's tables; [`Self::arrange`] makes it usable.
    pub fn new() -> Result<Self, i32> {
        let from = layout::CODE_CACHE.start;
        Ok(Self {
            tables: Tables::map()?,
            fragments: Vec::new(),
            exits: Vec::new(),
            by_pc: AddressMap::default(),
            by_page: AddressMap::default(),
            next: from,
            start: from,
            far: layout::FAR_CODE.start,
            mapped: [from, layout::FAR_CODE.start],
            shared: Shared::default(),
            second_used: false,
            exact_flags: false,
            flushes: 0,
        })
    }

    /// Says what is put aside at indirect branches and returns from now on; forgets everything.
    pub fn arrange(&mut self, common_spills: Spills) {
        self.next = layout::CODE_CACHE.start;
        let (shared, code) = Shared::write(self.next, common_spills);
        self.copy_in(&code);
        (self.shared, self.start) = (shared, self.next);
        self.forget();
    }

    fn copy_far(&mut self, code: &[u8]) {
        let end = self.far + code.len() as u64;
        assert!(end <= layout::FAR_CODE.end, "the code cache is full");
        self.mapped[1] = reach(self.mapped[1], end);
        // SAFETY: as for `copy_in`.
        unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), self.far as *mut u8, code.len()) };
        self.far = end;
    }

    fn copy_in(&mut self, code: &[u8]) {
        let end = self.next + code.len() as u64;
        assert!(end <= layout::CODE_CACHE.end, "the code cache is full");
        self.mapped[0] = reach(self.mapped[0], end);
        // SAFETY: the destination is unused cache memory, checked to be large enough.
        unsafe {
            std::ptr::copy_nonoverlapping(code.as_ptr(), self.next as *mut u8, code.len());
        }
        self.next = end.next_multiple_of(16);
    }

    fn clear_table(&mut self) {
        let miss = self.shared.table_miss as u32;
        self.tables.indirect().fill(miss);
        self.tables.returns().fill(self.shared.return_miss as u32);
        if self.second_used {
            self.tables.second().fill([0; 2]);
            self.second_used = false;
        }
    }

    /// Where indirect branches go whose target has no translation at hand; where returns go.
    pub fn misses(&self) -> (u64, u64) {
        (self.shared.table_miss, self.shared.return_miss)
    }

    /// The live translation of a guest address.
    pub fn find(&self, pc: u64, variant: Variant) -> Option<Id> {
        self.by_pc.get(&key(pc, variant)).copied()
    }

    /// A translation by its number.
    pub fn fragment(&self, id: Id) -> &Fragment {
        &self.fragments[id as usize]
    }

    /// What an exit means.
    pub fn exit(&self, number: u64) -> ExitKind {
        self.exits[number as usize - FIRST_EXIT as usize].exit.kind
    }

    /// Whether there may be no room for another translation.
    pub fn is_full(&self) -> bool {
        self.next + LARGEST_TRANSLATION > layout::CODE_CACHE.end
            || self.far + LARGEST_TRANSLATION > layout::FAR_CODE.end
    }

    /// Translates a superblock into the cache, which is not full, for everyone to find. Also the
    /// facts for the consumer of its events. `stop`: the dispatcher must be there whenever it is
    /// entered.
    pub fn add(
        &mut self,
        superblock: &Superblock,
        instrumentation: Instrumentation,
        variant: Variant,
        stop: bool,
    ) -> (Id, Option<Shape>) {
        let (id, shape) = self.add_alone(superblock, instrumentation, variant, stop);
        let mut pages: Vec<u64> = superblock.pages().collect();
        pages.sort_unstable();
        pages.dedup();
        for page in pages {
            self.by_page.entry(page).or_default().push(id);
        }
        self.by_pc.insert(key(superblock.pc, variant), id);
        (id, shape)
    }

    /// As [`Self::add`], but nobody else finds it: it is for one execution, and then dropped.
    pub fn add_alone(
        &mut self,
        superblock: &Superblock,
        instrumentation: Instrumentation,
        variant: Variant,
        stop: bool,
    ) -> (Id, Option<Shape>) {
        let first_exit = FIRST_EXIT + self.exits.len() as u32;
        let (places, shared, exact) = ((self.next, self.far), self.shared, self.exact_flags);
        let mut translation =
            lower(superblock, places, first_exit, shared, instrumentation, variant, exact);
        let shape = translation.shape.take();
        let (test_registers, value_source) = (translation.test_registers, translation.value_source);
        let id = self.insert(superblock, translation, variant);
        let fragment = &mut self.fragments[id as usize];
        let accesses = &superblock.guests[0].accesses;
        let inline = accesses.is_plain_repeat() && variant == Variant::Usual;
        let repeated = matches!(accesses, Accesses::Repeat { .. }) && !inline;
        let tested = instrumentation.tests.is_some() && repeated;
        fragment.explicit = *accesses == Accesses::Explicit || tested;
        fragment.attended = fragment.explicit || stop || variant != Variant::Usual;
        fragment.comes_back = tested || variant != Variant::Usual;
        fragment.test_registers = test_registers;
        fragment.value_source = value_source;
        let observed = fragment.observed.as_ref().map(|observed| observed.record_register);
        fragment.marks_by =
            (superblock.marks != Marks::default()).then_some(observed.unwrap_or(RCX));
        if let (Some(shape), Some(observed)) = (&shape, &mut fragment.observed) {
            observed.first_exit = first_exit;
            observed.fields_before = shape.fields_before.as_slice().into();
            observed.repeats = repeats(shape);
        }
        (id, shape)
    }

    fn insert(
        &mut self,
        superblock: &Superblock,
        translation: Translation,
        variant: Variant,
    ) -> Id {
        let id = self.fragments.len() as Id;
        let start = self.next;
        let far = self.far;
        self.copy_in(&translation.code);
        self.copy_far(&translation.far);
        self.exits.extend(translation.exits.iter().map(|exit| CacheExit {
            fragment: id,
            exit: *exit,
            linked: false,
        }));
        self.fragments.push(Fragment {
            pc: superblock.pc,
            start,
            end: self.next,
            far,
            body: start + u64::from(translation.body),
            indirect_body: start + u64::from(translation.indirect_body),
            inner: start + u64::from(translation.inner),
            reserved: translation.reserved,
            map: translation.map,
            incoming: Vec::new(),
            return_stubs: translation.return_stubs.into(),
            alive: true,
            observed: translation.record_register.map(|record_register| Observed {
                record_register,
                first_exit: 0,
                fields_before: Box::default(),
                repeats: Box::default(),
            }),
            explicit: false,
            attended: false,
            comes_back: false,
            variant,
            test_registers: None,
            value_source: None,
            marks_by: None,
        });
        id
    }

    /// From now on the exit goes straight to the translation, without the dispatcher.
    pub fn link(&mut self, number: u64, to: Id) {
        let index = number as usize - FIRST_EXIT as usize;
        let Some(exit) = self.exits.get_mut(index) else { return };
        let (from, target) =
            (&self.fragments[exit.fragment as usize], &self.fragments[to as usize]);
        let wanted = from.alive && !from.comes_back && !target.attended;
        if exit.linked || exit.exit.patch == 0 || !wanted {
            return;
        }
        exit.linked = true;
        match exit.exit.kept.filter(|kept| kept.registers == target.reserved) {
            Some(kept) => write_displacement(kept.patch, target.inner as u32),
            None => write_displacement(exit.exit.patch, target.body as u32),
        }
        self.fragments[to as usize].incoming.push(index as u32);
    }

    /// Lets indirect branches find the translation.
    pub fn link_indirect(&mut self, to: Id) {
        let fragment = &self.fragments[to as usize];
        if fragment.attended {
            return;
        }
        let prefix = fragment.start;
        let displaced = std::mem::replace(self.tables.indirect_entry(fragment.pc), prefix as u32);
        let displaced = u64::from(displaced);
        if displaced != prefix && displaced != self.shared.table_miss {
            let index = self.fragments.partition_point(|fragment| fragment.start < displaced);
            let other = &self.fragments[index];
            *self.tables.second_entry(other.pc) = [other.pc.wrapping_neg(), other.indirect_body];
            self.second_used = true;
        }
    }

    /// Drops every translation of code in `[start, end)`. Whether there was any.
    pub fn drop_range(&mut self, start: u64, end: u64) -> bool {
        let (first, last) = (start / PAGE, end.saturating_sub(1) / PAGE);
        let pages: Vec<u64> = if last - first < self.by_page.len() as u64 {
            (first..=last).filter(|page| self.by_page.contains_key(page)).collect()
        } else {
            self.by_page.keys().copied().filter(|page| (first..=last).contains(page)).collect()
        };
        for page in &pages {
            for id in self.by_page.remove(page).unwrap_or_default() {
                self.drop_one(id);
            }
        }
        !pages.is_empty()
    }

    /// Drops every translation that the instruction at an address is part of.
    pub fn drop_covering(&mut self, address: u64) {
        let mut all = self.by_page.remove(&(address / PAGE)).unwrap_or_default();
        all.retain(|id| {
            let fragment = &self.fragments[*id as usize];
            let covers = fragment.map.pcs(fragment.pc).any(|pc| pc == address);
            if covers {
                self.drop_one(*id);
            }
            !covers
        });
        if !all.is_empty() {
            self.by_page.insert(address / PAGE, all);
        }
    }

    /// Drops what [`Self::add_alone`] added. Its room is used again if nothing came after it and
    /// no consumer of events knows the numbers of its exits.
    pub fn drop_alone(&mut self, id: Id) {
        let fragment = &self.fragments[id as usize];
        let last = id as usize + 1 == self.fragments.len() && fragment.observed.is_none();
        let (start, far) = (fragment.start, fragment.far);
        self.drop_one(id);
        if last {
            self.fragments.pop();
            self.next = start;
            self.far = far;
            while self.exits.last().is_some_and(|exit| exit.fragment == id) {
                self.exits.pop();
            }
        }
    }

    /// Whether a page has translations.
    pub fn has_page(&self, address: u64) -> bool {
        self.by_page.contains_key(&(address / PAGE))
    }

    fn drop_one(&mut self, id: Id) {
        let fragment = &mut self.fragments[id as usize];
        if !std::mem::replace(&mut fragment.alive, false) {
            return;
        }
        // Nobody is inside, nor will be: the way back is not asked for again.
        (fragment.map, fragment.observed) = (Map::default(), None);
        let (pc, prefix, variant) = (fragment.pc, fragment.start, fragment.variant);
        let own = fragment.start..fragment.end;
        for back in std::mem::take(&mut fragment.return_stubs) {
            let entry = self.tables.return_entry(back);
            if own.contains(&u64::from(*entry)) {
                *entry = self.shared.return_miss as u32;
            }
        }
        for exit in std::mem::take(&mut fragment.incoming) {
            let from = &mut self.exits[exit as usize];
            from.linked = false;
            write_displacement(from.exit.patch, from.exit.stub);
            if let Some(kept) = from.exit.kept {
                write_displacement(kept.patch, kept.elsewhere);
            }
        }
        if self.by_pc.get(&key(pc, variant)) == Some(&id) {
            self.by_pc.remove(&key(pc, variant));
        }
        let miss = self.shared.table_miss as u32;
        let entry = self.tables.indirect_entry(pc);
        if u64::from(*entry) == prefix {
            *entry = miss;
        }
        let second = self.tables.second_entry(pc);
        if second[0] == pc.wrapping_neg() {
            *second = [0; 2];
        }
    }

    /// Forgets every translation.
    pub fn flush(&mut self) {
        self.forget();
        self.flushes += 1;
    }

    fn forget(&mut self) {
        self.fragments.clear();
        self.exits.clear();
        self.by_pc.clear();
        self.by_page.clear();
        self.next = self.start;
        self.far = layout::FAR_CODE.start;
        self.clear_table();
    }

    /// The guest's state at an address in the cache. Called from the signal handler.
    pub fn locate(&self, address: u64) -> Option<Located> {
        let after = self.fragments.partition_point(|fragment| fragment.start <= address);
        let index = after.checked_sub(1)?;
        let fragment = &self.fragments[index];
        if address >= fragment.end {
            return None;
        }
        let (point, boundary) = fragment.map.find((address - fragment.start) as u32)?;
        let pc = fragment.map.pc_of(fragment.pc, point.index)?;
        Some(Located { point, pc, boundary, fragment: index as Id })
    }

    /// Translations and bytes of code, for statistics.
    pub fn size(&self) -> (usize, u64) {
        (self.fragments.len(), self.next - self.start)
    }
}

/// Maps more code memory, in steps of a huge page, until all below `end` is there: what is not needed yet
/// is not there for a wild access of the guest's either. How far it is mapped then.
fn reach(mapped: u64, end: u64) -> u64 {
    if end <= mapped {
        return mapped;
    }
    let all = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let bytes = (end - mapped).next_multiple_of(HUGE_PAGE);
    // SAFETY: a range of the engine's own (layout), where nothing is yet.
    unsafe {
        if let Err(error) = sys::map_fixed(mapped, bytes, all, flags, -1, 0) {
            report::refuse(&format!("no memory for translated code: error {error}"), 0);
        }
        sys::syscall!(libc::SYS_madvise, mapped, bytes, libc::MADV_HUGEPAGE);
    }
    mapped + bytes
}

/// Translations are found by address and variant: the upper bits of an address are all alike.
fn key(pc: u64, variant: Variant) -> u64 {
    pc ^ (variant as u64) << 60
}

fn write_displacement(at: u32, target: u32) {
    let distance = target.wrapping_sub(at + 4) as i32;
    // SAFETY: `at` is the displacement of a jump inside the cache, which is mapped writable, and
    // no thread executes there while we hold the baton.
    unsafe { std::ptr::write_unaligned(at as *mut i32, distance) };
}

/// Whether an address lies in the cache.
pub fn contains(address: u64) -> bool {
    (layout::CODE_CACHE.start..layout::FAR_CODE.end).contains(&address)
}
