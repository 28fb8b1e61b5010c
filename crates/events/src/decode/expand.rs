//! From a superblock that was executed to the events of its instructions.

use super::{Bases, Event, ExplicitAccess, Path};
use crate::record::{self, FIELD};
use crate::shape::{Access, KIND_BRANCH, Segment, Source};

/// The bits of an address that a field keeps.
const MASK_48: u64 = (1 << 48) - 1;

/// The events of one path. `explicit` has what the last record of accesses listed, and is used up.
pub fn expand(
    path: &Path<'_, '_>,
    bases: Bases,
    explicit: &mut Vec<ExplicitAccess>,
    each: &mut impl FnMut(Event),
) -> Option<()> {
    let mut accesses = path.shape.accesses.as_slice();
    for index in 0..path.begun() {
        let instruction = path.shape.instructions[index as usize];
        let last = index + 1 == path.executed;
        let taken = instruction.kind == KIND_BRANCH && last && path.taken;
        each(if index < path.executed {
            Event::Instruction { pc: instruction.pc, kind: instruction.kind, taken }
        } else {
            Event::Interrupted { pc: instruction.pc }
        });
        let own = accesses.iter().take_while(|access| access.index == index).count();
        let (group, rest) = accesses.split_at(own);
        accesses = rest;
        if let [Access { source: Source::Repeat { field }, .. }, ..] = group {
            expand_repeat(group, *field, path.payload, bases, each)?;
        } else {
            for access in group {
                expand_access(access, path.payload, bases, explicit, each)?;
                if let Some(field) = access.value {
                    each(Event::Value(value(path.payload, field, access.size)?));
                }
            }
        }
    }
    Some(())
}

/// Where an access of a path went, if its shape and the path's fields alone tell.
#[inline]
#[must_use]
pub fn address(access: &Access, payload: &[u8], bases: Bases) -> Option<u64> {
    let base = base_of(access.segment, bases);
    match access.source {
        Source::Constant(address) => Some(address.wrapping_add(base)),
        Source::Field { field, offset } => {
            let value = record::field(payload, field as usize)?;
            Some(value.wrapping_add_signed(offset).wrapping_add(base) & MASK_48)
        }
        Source::Explicit | Source::Repeat { .. } => None,
    }
}

fn base_of(segment: Segment, bases: Bases) -> u64 {
    match segment {
        Segment::Flat => 0,
        Segment::Fs => bases.fs,
        Segment::Gs => bases.gs,
    }
}

/// The bytes of a value.
fn value(payload: &[u8], field: u16, size: u16) -> Option<[u64; 4]> {
    let start = field as usize * FIELD;
    let mut bytes = [0; 32];
    bytes.get_mut(..size as usize)?.copy_from_slice(payload.get(start..start + size as usize)?);
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().ok()?);
    }
    Some(words)
}

pub(super) fn explicit_event((write, address, size): ExplicitAccess) -> Event {
    Event::Access { address, size, write }
}

fn expand_access(
    access: &Access,
    payload: &[u8],
    bases: Bases,
    explicit: &mut Vec<ExplicitAccess>,
    each: &mut impl FnMut(Event),
) -> Option<()> {
    let (size, write) = (u32::from(access.size), access.write);
    match access.source {
        Source::Constant(_) | Source::Field { .. } => {
            let address = address(access, payload, bases)?;
            each(Event::Access { address, size, write });
        }
        Source::Explicit => explicit.drain(..).for_each(|access| each(explicit_event(access))),
        Source::Repeat { .. } => return None,
    }
    Some(())
}

/// What a repeated string instruction has done.
struct Repeats {
    source: u64,
    destination: u64,
    count: u64,
    down: bool,
    mask: u64,
}

impl Repeats {
    fn read(group: &[Access], field: u16, payload: &[u8]) -> Option<Self> {
        let get = |index: usize| record::field(payload, field as usize + index);
        let narrow = group[0].narrow;
        let mask = if narrow { 0xffff_ffff } else { MASK_48 };
        let (source, destination) = (get(1)?, get(2)?);
        // LODS does not move the destination.
        let moves =
            if group.iter().all(|access| access.from_source) { source } else { destination };
        let down = get(4)?.wrapping_sub(moves) & mask > mask / 2;
        let count = repetitions(narrow, get(0)?, get(3)?);
        Some(Self { source, destination, count, down, mask })
    }

    /// Where an access goes at a repetition.
    fn address(&self, access: &Access, step: u64, bases: Bases) -> u64 {
        let start = if access.from_source { self.source } else { self.destination };
        let distance = step.wrapping_mul(u64::from(access.size));
        let offset =
            if self.down { start.wrapping_sub(distance) } else { start.wrapping_add(distance) };
        (offset & self.mask).wrapping_add(base_of(access.segment, bases)) & MASK_48
    }
}

/// The repetitions of a string instruction, each with all its accesses.
fn expand_repeat(
    group: &[Access],
    field: u16,
    payload: &[u8],
    bases: Bases,
    each: &mut impl FnMut(Event),
) -> Option<()> {
    let repeats = Repeats::read(group, field, payload)?;
    for step in 0..repeats.count {
        for access in group {
            let address = repeats.address(access, step, bases);
            each(Event::Access { address, size: u32::from(access.size), write: access.write });
        }
    }
    Some(())
}

/// The memory that each side of a repeated string instruction has gone over, as a whole: whether it wrote, the
/// lowest address, and how many bytes.
pub fn repeated(
    group: &[Access],
    payload: &[u8],
    bases: Bases,
    mut each: impl FnMut(bool, u64, u64),
) -> Option<()> {
    let Some(Access { source: Source::Repeat { field }, .. }) = group.first() else { return None };
    let repeats = Repeats::read(group, *field, payload)?;
    let Some(last) = repeats.count.checked_sub(1) else { return Some(()) };
    for access in group {
        let ends = [0, last].map(|step| repeats.address(access, step, bases));
        let bytes = repeats.count.saturating_mul(u64::from(access.size));
        each(access.write, ends[0].min(ends[1]), bytes);
    }
    Some(())
}

/// How often a string instruction repeated, from its counter before and after.
pub(crate) fn repetitions(narrow: bool, before: u64, after: u64) -> u64 {
    before.wrapping_sub(after) & if narrow { 0xffff_ffff } else { MASK_48 }
}
