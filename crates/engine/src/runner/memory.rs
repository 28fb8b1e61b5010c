//! The guest's address space as the engine knows it: every mapping, and where the next one goes.
//!
//! The kernel never chooses an address for the guest. That keeps the guest away from the runner,
//! makes the layout the same in every run, and tells the translator which code can change.

use super::cpu::TABLE_MASKS;
use super::translate::superblock::CodeSource;
use crate::layout;
use iced_x86::{Decoder, DecoderOptions, Instruction};
use recording::log::FileView;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

/// What is mapped somewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    /// `PROT_*` bits as the guest set them.
    pub protection: i32,
    /// Whether writes are seen outside the process.
    pub shared: bool,
    /// File behind it.
    pub file: Option<Rc<str>>,
    /// Offset in the file of the first byte.
    pub offset: u64,
    /// Device and inode, where other mappings of the same file share its contents.
    pub identity: Option<(u64, u64)>,
    /// Where a recording has what the file contained; its offset is not kept up to date.
    pub view: Option<FileView>,
}

#[derive(Clone, Debug)]
struct Entry {
    end: u64,
    mapping: Mapping,
}

/// All mappings of the guest.
#[derive(Default)]
pub struct Memory {
    entries: BTreeMap<u64, Entry>,
    /// The extent that code was last fetched from.
    fetched: Cell<(u64, u64)>,
    /// What the main stack may grow to: mappings are placed below that.
    pub stack_room: u64,
    /// How far below the usual place mappings begin.
    pub lowered: u64,
    /// First and current end of the heap that `brk` moves.
    pub heap: Range<u64>,
}

const PAGE: u64 = 4096;
/// On x86 what can be written or executed can be read.
const READABLE: i32 = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;

impl Memory {
    /// The mapping at an address, with its range.
    pub fn find(&self, address: u64) -> Option<(Range<u64>, &Mapping)> {
        let (start, entry) = self.entries.range(..=address).next_back()?;
        (address < entry.end).then_some((*start..entry.end, &entry.mapping))
    }

    /// Every mapping by rising address.
    pub fn iter(&self) -> impl Iterator<Item = (Range<u64>, &Mapping)> {
        self.entries.iter().map(|(start, entry)| (*start..entry.end, &entry.mapping))
    }

    /// The mappings, or parts of them, inside a range.
    pub fn inside(&self, range: Range<u64>) -> Vec<(Range<u64>, Mapping)> {
        let first = self.entries.range(..=range.start).next_back().map_or(range.start, |(s, _)| *s);
        self.entries
            .range(first..range.end)
            .filter(|(_, entry)| entry.end > range.start)
            .map(|(start, entry)| {
                let from = (*start).max(range.start);
                let mut mapping = entry.mapping.clone();
                mapping.offset += from - start;
                (from..entry.end.min(range.end), mapping)
            })
            .collect()
    }

    /// Cuts the range out of whatever is there.
    pub fn remove(&mut self, range: Range<u64>) {
        self.fetched.set((0, 0));
        let touched: Vec<u64> = {
            let first =
                self.entries.range(..=range.start).next_back().map_or(range.start, |(s, _)| *s);
            self.entries
                .range(first..range.end)
                .filter(|(_, entry)| entry.end > range.start)
                .map(|(start, _)| *start)
                .collect()
        };
        for start in touched {
            let Some(entry) = self.entries.remove(&start) else { continue };
            if start < range.start {
                let left = Entry { end: range.start, mapping: entry.mapping.clone() };
                self.entries.insert(start, left);
            }
            if entry.end > range.end {
                let mut right = entry.clone();
                right.mapping.offset += range.end - start;
                self.entries.insert(range.end, right);
            }
        }
    }

    /// Puts a mapping over whatever is there, and joins it to an equal neighbour below.
    pub fn insert(&mut self, range: Range<u64>, mapping: Mapping) {
        if range.is_empty() {
            return;
        }
        if overlap(&range, &layout::BEYOND_TABLES) {
            TABLE_MASKS.narrow();
        }
        self.remove(range.clone());
        if let Some((start, below)) = self.entries.range_mut(..range.start).next_back()
            && below.end == range.start
            && continues(&below.mapping, range.start - start, &mapping)
        {
            below.end = range.end;
            return;
        }
        self.entries.insert(range.start, Entry { end: range.end, mapping });
    }

    /// Changes the protection of what is mapped inside the range.
    pub fn protect(&mut self, range: Range<u64>, protection: i32) {
        for (part, mut mapping) in self.inside(range) {
            mapping.protection = protection;
            self.insert(part, mapping);
        }
    }

    /// Whether nothing of guest or engine is in the range.
    pub fn is_free(&self, range: &Range<u64>) -> bool {
        !layout::belongs_to_engine(range)
            && self
                .entries
                .range(..range.end)
                .next_back()
                .is_none_or(|(_, entry)| entry.end <= range.start)
    }

    /// The highest free place of `length` bytes whose end is at most `top`.
    pub fn place_below(&self, length: u64, top: u64, bottom: u64) -> Option<u64> {
        let length = length.next_multiple_of(PAGE);
        let mut end = top;
        loop {
            let start = end.checked_sub(length).filter(|start| *start >= bottom)?;
            let wanted = start..end;
            if let Some(own) = layout::own().iter().find(|own| overlap(own, &wanted)) {
                end = own.start;
                continue;
            }
            match self.entries.range(..end).next_back() {
                Some((below, entry)) if entry.end > start => end = *below,
                _ => return Some(start),
            }
        }
    }

    /// Where a mapping goes when the guest gives a hint or nothing.
    pub fn place(&self, hint: u64, length: u64) -> Option<u64> {
        let hint = hint & !(PAGE - 1);
        let length = length.next_multiple_of(PAGE);
        if hint >= layout::MAPPINGS_BOTTOM
            && hint.checked_add(length).is_some_and(|end| end <= layout::USER_END)
            && self.is_free(&(hint..hint + length))
        {
            return Some(hint);
        }
        let top = layout::MAPPINGS_TOP.min(layout::USER_END - self.stack_room) - self.lowered;
        self.place_below(length, top, layout::MAPPINGS_BOTTOM)
    }

    /// Other pages that show, and let the guest write, the same bytes as the page at `address`.
    pub fn writable_aliases(&self, address: u64) -> Vec<u64> {
        let Some((range, code)) = self.find(address) else { return Vec::new() };
        if code.identity.is_none() {
            return Vec::new();
        }
        let page = address & !(PAGE - 1);
        let offset = code.offset + (page - range.start);
        self.iter()
            .filter(|(_, other)| {
                other.identity == code.identity && other.protection & libc::PROT_WRITE != 0
            })
            .filter_map(|(other, mapping)| {
                let alias = other.start.checked_add(offset.checked_sub(mapping.offset)?)?;
                (other.contains(&alias) && alias != page).then_some(alias)
            })
            .collect()
    }

    /// Whether the guest has all of a range and may read it.
    pub fn is_readable(&self, address: u64, length: u64) -> bool {
        self.allows(address, length, READABLE)
    }

    /// Whether the guest has all of a range and may write to it.
    pub fn is_writable(&self, address: u64, length: u64) -> bool {
        self.allows(address, length, libc::PROT_WRITE)
    }

    fn allows(&self, address: u64, length: u64, any_of: i32) -> bool {
        let Some(end) = address.checked_add(length) else { return false };
        let mut at = address;
        while at < end {
            match self.find(at) {
                Some((range, mapping)) if mapping.protection & any_of != 0 => at = range.end,
                _ => return false,
            }
        }
        true
    }

    /// Whether a file is behind any mapping in the range.
    pub fn has_file(&self, range: Range<u64>) -> bool {
        let mut at = range.start;
        while at < range.end {
            match self.find(at) {
                Some((_, mapping)) if mapping.file.is_some() => return true,
                Some((range, _)) => at = range.end,
                None => return false,
            }
        }
        false
    }

    /// The instruction at an address.
    pub fn decode_one(&self, pc: u64) -> Instruction {
        Decoder::with_ip(64, self.code_at(pc), pc, DecoderOptions::NONE).decode()
    }

    /// Whether any mapping in the range can be executed.
    pub fn has_code(&self, range: Range<u64>) -> bool {
        self.inside(range).iter().any(|(_, mapping)| mapping.protection & libc::PROT_EXEC != 0)
    }

    fn executable_end(&self, pc: u64) -> u64 {
        let mut end = pc;
        while let Some((range, mapping)) = self.find(end) {
            if mapping.protection & libc::PROT_EXEC == 0 {
                break;
            }
            end = range.end;
        }
        end
    }
}

fn overlap(left: &Range<u64>, right: &Range<u64>) -> bool {
    left.start < right.end && right.start < left.end
}

fn continues(below: &Mapping, distance: u64, above: &Mapping) -> bool {
    below.protection == above.protection
        && below.shared == above.shared
        && below.identity == above.identity
        && below.file == above.file
        && below.view.map(|view| view.key) == above.view.map(|view| view.key)
        && (below.file.is_none() || below.offset + distance == above.offset)
}

impl CodeSource for Memory {
    fn code_at(&self, pc: u64) -> &[u8] {
        let (mut start, mut end) = self.fetched.get();
        if !(start <= pc && pc < end) {
            (start, end) = (pc, self.executable_end(pc));
            self.fetched.set((start, end));
        }
        let _ = start;
        let length = (end - pc).min(15) as usize;
        // SAFETY: the bytes belong to a mapping that the guest may execute, hence read, and that
        // only goes away through a call of the engine, which does not happen while this borrow
        // of the map lives.
        unsafe { std::slice::from_raw_parts(pc as *const u8, length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(protection: i32) -> Mapping {
        Mapping { protection, ..Mapping::default() }
    }

    fn ranges(memory: &Memory) -> Vec<(u64, u64, i32)> {
        memory.iter().map(|(range, m)| (range.start, range.end, m.protection)).collect()
    }

    #[test]
    fn a_hole_splits_a_mapping() {
        let mut memory = Memory::default();
        memory.insert(0x10000..0x20000, mapping(1));
        memory.remove(0x14000..0x15000);
        assert_eq!(ranges(&memory), [(0x10000, 0x14000, 1), (0x15000, 0x20000, 1)]);
    }

    #[test]
    fn equal_neighbours_join_and_protection_splits() {
        let mut memory = Memory::default();
        memory.insert(0x10000..0x11000, mapping(3));
        memory.insert(0x11000..0x12000, mapping(3));
        assert_eq!(ranges(&memory), [(0x10000, 0x12000, 3)]);
        memory.protect(0x11000..0x13000, 1);
        assert_eq!(ranges(&memory), [(0x10000, 0x11000, 3), (0x11000, 0x12000, 1)]);
    }

    #[test]
    fn placement_goes_downwards_and_around_the_engine() {
        let mut memory = Memory::default();
        let first = memory.place(0, 0x3000).expect("room");
        assert_eq!(first, layout::MAPPINGS_TOP - 0x3000);
        memory.insert(first..first + 0x3000, mapping(3));
        assert_eq!(memory.place(0, 1), Some(first - 0x1000));
        assert_eq!(memory.place(0x1234_5000, 1), Some(0x1234_5000));
        assert_ne!(memory.place(layout::ENGINE.start, 0x1000), Some(layout::ENGINE.start));
        let below = memory.place_below(0x1000, layout::ARENA.start + 0x5000, 0x1000);
        assert_eq!(below, Some(layout::ARENA.start - 0x1000));
    }
}
