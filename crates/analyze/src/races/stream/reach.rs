//! How far a superblock reaches: its accesses in groups that lie close together, so that most of what is executed
//! is passed by after a look or two.

use super::code::{InstructionFacts, crosses};
use crate::races::clock::Thread;
use crate::races::shared::{Owners, SharedLines};
use events::decode::Bases;
use events::record;
use events::shape::{Access, Segment, Source};

/// Memory around a field of a record that accesses lie in. Not all of it needs to be accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Group {
    field: u16,
    segment: Segment,
    offset: i64,
    bytes: u64,
    write: bool,
}

/// A group is not larger than a line: those of its ends are all that it touches.
const MOST_BYTES: u64 = 64;

/// Where the accesses of a superblock go.
#[derive(Default)]
pub(super) struct Reach {
    /// Whether groups and constants are all there is; calls and returns apart.
    pub(super) tells_all: bool,
    groups: Vec<Group>,
    constants: Vec<(u64, u64, bool)>,
    /// The last thread that has accessed the constants, in the quick pass.
    surveyed: Option<Thread>,
    /// Accesses of calls and returns, by their places among all.
    pub(super) crossings: Vec<u16>,
}

impl Reach {
    /// That of a superblock. If it accesses shared memory at a constant address it has to be looked at anyway.
    pub(super) fn of(
        instructions: &[InstructionFacts],
        accesses: &[Access],
        shared: Option<&SharedLines>,
    ) -> Self {
        let mut reach = Self { tells_all: true, ..Self::default() };
        for (number, access) in accesses.iter().enumerate() {
            let how = &instructions[usize::from(access.index)];
            let simple = matches!(access.source, Source::Constant(_) | Source::Field { .. });
            if crosses(how.kind, access) && simple {
                reach.crossings.push(number as u16);
                continue;
            }
            let bytes = u64::from(access.size);
            reach.tells_all &= !how.locked && bytes <= MOST_BYTES;
            match (access.source, access.segment) {
                (Source::Field { field, offset }, segment) => {
                    reach.add(Group { field, segment, offset, bytes, write: access.write });
                }
                (Source::Constant(address), Segment::Flat) => {
                    reach.tells_all &= shared.is_none_or(|shared| !shared.touches(address, bytes));
                    reach.constants.push((address, bytes, access.write));
                }
                _ => reach.tells_all = false,
            }
        }
        reach.groups.sort_by_key(|group| group.field);
        reach
    }

    fn add(&mut self, new: Group) {
        let joined = |known: &Group| {
            let start = known.offset.min(new.offset);
            let end = (known.offset + known.bytes as i64).max(new.offset + new.bytes as i64);
            (start, (end - start) as u64)
        };
        let fits = |known: &&mut Group| {
            (known.field, known.segment) == (new.field, new.segment)
                && joined(known).1 <= MOST_BYTES
        };
        match self.groups.iter_mut().find(fits) {
            Some(known) => {
                (known.offset, known.bytes) = joined(known);
                known.write |= new.write;
            }
            None => self.groups.push(new),
        }
    }

    /// Where the groups are whose fields a record has.
    #[inline]
    fn each<'a>(
        &'a self,
        payload: &'a [u8],
        bases: Bases,
    ) -> impl Iterator<Item = (u64, u64, bool)> + 'a {
        self.groups.iter().map_while(move |group| {
            let base = match group.segment {
                Segment::Flat => 0,
                Segment::Fs => bases.fs,
                Segment::Gs => bases.gs,
            };
            let field = record::field(payload, usize::from(group.field))?;
            let address = field.wrapping_add_signed(group.offset).wrapping_add(base);
            Some((address & ((1 << 48) - 1), group.bytes, group.write))
        })
    }

    /// Whether a path may touch shared memory.
    #[inline]
    pub(super) fn touches(&self, shared: &SharedLines, payload: &[u8], bases: Bases) -> bool {
        self.each(payload, bases).any(|(address, bytes, _)| shared.touches(address, bytes))
    }

    /// A thread has executed it.
    pub(super) fn survey(
        &mut self,
        owners: &mut Owners,
        now: Thread,
        payload: &[u8],
        bases: Bases,
    ) {
        for (address, bytes, write) in self.each(payload, bases) {
            owners.access(now, address, bytes, write);
        }
        if self.surveyed != Some(now) {
            self.surveyed = Some(now);
            for (address, bytes, write) in &self.constants {
                owners.access(now, *address, *bytes, *write);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_close_to_each_other_are_one_group() {
        let mut reach = Reach::default();
        let one =
            |field, offset, write| Group { field, segment: Segment::Flat, offset, bytes: 8, write };
        [
            one(0, 0, false),
            one(0, 48, true),
            one(0, 64, false),
            one(1, 8, false),
            one(0, -8, false),
        ]
        .into_iter()
        .for_each(|group| reach.add(group));
        let found: Vec<_> =
            reach.groups.iter().map(|it| (it.field, it.offset, it.bytes, it.write)).collect();
        assert_eq!(found, [(0, -8, 64, true), (0, 64, 8, false), (1, 8, 8, false)]);
    }
}
