//! What is known of every byte of memory: its last write, and the reads that came after.
//!
//! Eight bytes that are always accessed as one have one **cell**; where accesses differ in extent each
//! byte has its own. So answers are about bytes, and most memory costs an eighth.

use super::clock::{Epoch, VectorClock};
use rustc_hash::FxHashMap;

/// An access as it is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// By whom, and when in that thread's own time.
    pub epoch: Epoch,
    /// Where: a number of whoever tells.
    pub site: u32,
    /// When: of whoever tells, too.
    pub time: u64,
}

/// What is known of bytes that are accessed together.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    write: Option<Seen>,
    /// The last read of each thread since the write.
    reads: Vec<Seen>,
}

impl Cell {
    /// An access by the thread that knows `clock`. Those before that it is not ordered with go to `race`,
    /// with whether they wrote.
    fn access(
        &mut self,
        seen: Seen,
        write: bool,
        clock: &VectorClock,
        race: &mut impl FnMut(Seen, bool),
    ) {
        // The same thread again, and nobody in between: what there was to say has been said.
        let again = |known: &Seen| known.epoch == seen.epoch;
        let wrote = self.write.as_ref().is_some_and(again) && self.reads.is_empty();
        if wrote || !write && self.reads.iter().any(again) {
            return;
        }
        if let Some(known) = self.write.filter(|known| known.epoch.thread != seen.epoch.thread)
            && !clock.knows(known.epoch)
        {
            race(known, true);
        }
        if write {
            for known in &self.reads {
                if known.epoch.thread != seen.epoch.thread && !clock.knows(known.epoch) {
                    race(*known, false);
                }
            }
            self.write = Some(seen);
            self.reads.clear();
            return;
        }
        match self.reads.iter_mut().find(|known| known.epoch.thread == seen.epoch.thread) {
            Some(known) => *known = seen,
            None => {
                // Reads that come before this one say nothing that it does not.
                self.reads.retain(|known| !clock.knows(known.epoch));
                self.reads.push(seen);
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Granule {
    /// These bytes of it, by a mask, are always accessed together, and no others.
    Whole(u8, Cell),
    /// A cell for each byte.
    Split(Box<[Cell; 8]>),
}

const PAGE_GRANULES: u64 = 512;
/// Most granules of which anything is known.
const MOST_GRANULES: usize = 1 << 23;

/// For each granule of a page the place of what is known of it, from 1; 0 if nothing is.
type Page = Box<[u32; PAGE_GRANULES as usize]>;

/// The cells of all memory.
#[derive(Clone, Debug, Default)]
pub struct Cells {
    pages: FxHashMap<u64, Page>,
    granules: Vec<Granule>,
    /// Places of granules of which nothing is known any more.
    free: Vec<u32>,
    /// Accesses to memory of which nothing could be kept, as there is too much.
    pub left_out: u64,
}

/// The bytes of each granule that an access of this extent touches.
fn granules(address: u64, size: u64) -> impl Iterator<Item = (u64, u8)> {
    let end = address.saturating_add(size);
    (address / 8..end.div_ceil(8)).map(move |granule| {
        let from = address.max(granule * 8) - granule * 8;
        let to = end.min(granule * 8 + 8) - granule * 8;
        let below = |bit: u64| ((1u16 << bit) - 1) as u8;
        (granule, below(to) & !below(from))
    })
}

impl Cells {
    /// An access to some bytes; earlier ones that race with it go to `race`: the first byte of those it
    /// shares with each, the access, and whether that wrote.
    pub fn access(
        &mut self,
        (address, size): (u64, u64),
        seen: Seen,
        write: bool,
        clock: &VectorClock,
        mut race: impl FnMut(u64, Seen, bool),
    ) {
        for (granule, mask) in granules(address, size) {
            let Some(slot) = self.slot(granule, mask) else { continue };
            if let Granule::Whole(known, _) = slot
                && *known != mask
            {
                split(slot);
            }
            match slot {
                Granule::Whole(mask, cell) => {
                    let first = granule * 8 + u64::from(mask.trailing_zeros());
                    cell.access(seen, write, clock, &mut |known, wrote| race(first, known, wrote));
                }
                Granule::Split(cells) => {
                    for (bit, cell) in cells.iter_mut().enumerate() {
                        if mask >> bit & 1 != 0 {
                            let byte = granule * 8 + bit as u64;
                            cell.access(seen, write, clock, &mut |known, wrote| {
                                race(byte, known, wrote);
                            });
                        }
                    }
                }
            }
        }
    }

    /// What is known of a granule, which is nothing if these bytes of it are the first to be accessed.
    #[inline]
    fn slot(&mut self, granule: u64, mask: u8) -> Option<&mut Granule> {
        let Self { pages, granules, free, left_out } = self;
        let page = pages
            .entry(granule / PAGE_GRANULES)
            .or_insert_with(|| Box::new([0; PAGE_GRANULES as usize]));
        let place = &mut page[(granule % PAGE_GRANULES) as usize];
        if *place == 0 {
            let fresh = Granule::Whole(mask, Cell::default());
            if let Some(unused) = free.pop() {
                granules[unused as usize - 1] = fresh;
                *place = unused;
            } else if granules.len() < MOST_GRANULES {
                granules.push(fresh);
                *place = granules.len() as u32;
            } else {
                *left_out += 1;
                return None;
            }
        }
        granules.get_mut(*place as usize - 1)
    }

    /// Nothing that was done to these bytes counts any more: they are another object.
    pub fn forget(&mut self, address: u64, size: u64) {
        let pages = address / 8 / PAGE_GRANULES..=address.saturating_add(size) / 8 / PAGE_GRANULES;
        if pages.end() - pages.start() > self.pages.len() as u64 {
            let known: Vec<u64> = self.pages.keys().copied().collect();
            known.into_iter().filter(|page| pages.contains(page)).for_each(|page| {
                self.forget_on(page, address, size);
            });
        } else {
            pages.for_each(|page| self.forget_on(page, address, size));
        }
    }

    fn forget_on(&mut self, number: u64, address: u64, size: u64) {
        let Self { pages, granules: all, free, .. } = self;
        let Some(page) = pages.get_mut(&number) else { return };
        let start = address.max(number * PAGE_GRANULES * 8);
        let end = address.saturating_add(size).min((number + 1) * PAGE_GRANULES * 8);
        for (granule, mask) in granules(start, end.saturating_sub(start)) {
            let place = &mut page[(granule % PAGE_GRANULES) as usize];
            let Some(slot) = place.checked_sub(1).and_then(|at| all.get_mut(at as usize)) else {
                continue;
            };
            match slot {
                Granule::Whole(known, _) if *known & !mask == 0 => {
                    free.push(std::mem::take(place));
                }
                Granule::Whole(..) | Granule::Split(_) => forget_bytes(slot, mask),
            }
        }
    }
}

fn split(slot: &mut Granule) {
    if let Granule::Whole(known, cell) = slot {
        let (known, cell) = (*known, std::mem::take(cell));
        let own = |bit: usize| if known >> bit & 1 != 0 { cell.clone() } else { Cell::default() };
        *slot = Granule::Split(Box::new(std::array::from_fn(own)));
    }
}

fn forget_bytes(slot: &mut Granule, mask: u8) {
    split(slot);
    if let Granule::Split(cells) = slot {
        for (bit, cell) in cells.iter_mut().enumerate() {
            if mask >> bit & 1 != 0 {
                *cell = Cell::default();
            }
        }
    }
}
