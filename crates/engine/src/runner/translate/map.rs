//! The way back: from an address inside a translation to the guest's pc and registers there.
//!
//! Made while the code is written. Every inserted sequence performs the guest's own memory access
//! before it changes anything the guest can see, so restoring spilled registers is all it takes.

use crate::runner::cpu::Registers;

/// A guest register whose value is in a spill slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spill {
    /// The register.
    pub register: u8,
    /// The slot that holds its value.
    pub slot: u8,
}

/// Most registers that are spilled at once.
pub const MAX_SPILLS: usize = 7;

/// Which registers are spilled at some point.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Spills([Option<Spill>; MAX_SPILLS]);

impl Spills {
    /// One more register in a slot.
    #[must_use]
    pub fn with(mut self, register: u8, slot: u8) -> Self {
        let free = self.0.iter_mut().find(|spill| spill.is_none()).expect("a free spill entry");
        *free = Some(Spill { register, slot });
        self
    }

    /// The register is back in place.
    #[must_use]
    pub fn without(mut self, register: u8) -> Self {
        for spill in &mut self.0 {
            if spill.is_some_and(|spill| spill.register == register) {
                *spill = None;
            }
        }
        self
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Spill> {
        self.0.into_iter().flatten()
    }

    /// All of them as one number.
    pub fn packed(&self) -> u64 {
        self.iter().fold(0, |packed, Spill { register, slot }| {
            packed << 8 | u64::from(slot + 1) << 4 | u64::from(register)
        })
    }

    /// Puts the guest's values back into a copy of the processor's registers.
    pub fn restore(&self, registers: &mut Registers, slots: &[u64]) {
        for spill in self.0.iter().flatten() {
            registers.general[spill.register as usize] = slots[spill.slot as usize];
        }
    }
}

/// The guest's state from one offset of the translation to the next entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Point {
    /// Offset in the translation.
    pub offset: u32,
    /// Which instruction of the superblock.
    pub index: u16,
    /// Whether that instruction has not begun here: the state is that of an instruction boundary.
    pub boundary: bool,
    /// Whether that instruction may have repeated some of the way already: a string instruction,
    /// which can be left and gone on with later.
    pub repeating: bool,
    /// Registers that are elsewhere.
    pub spills: Spills,
}

/// Gathers the points of a translation, by rising offset, and packs them.
#[derive(Default)]
pub struct Builder {
    packed: Vec<u8>,
    written: Last,
    /// Not packed yet: the next point may take its place.
    last: Option<Point>,
}

/// What a packed point is told against: the one before it.
#[derive(Clone, Copy, Default)]
struct Last {
    offset: u32,
    index: u16,
    spills: Spills,
}

/// The points of a translation, and the pcs of its instructions.
///
/// Looked at for faults and signals only, but kept for every translation there is, so it is small:
/// a point is two bytes most of the time, a pc one.
#[derive(Default, Debug)]
pub struct Map {
    points: Box<[u8]>,
    /// Distance of each instruction from the one before it.
    pcs: Box<[u8]>,
}

const BOUNDARY: u8 = 1;
const REPEATING: u8 = 2;
/// Spills follow that differ from those before.
const SPILLS: u8 = 4;
/// The index is one more than before.
const NEXT: u8 = 8;
/// The index follows.
const INDEX: u8 = 16;

impl Builder {
    /// Notes that from `offset` on the state is as given.
    pub fn add(&mut self, point: Point) {
        // A followed jump has no code of its own: the instruction after it stands at its offset.
        if let Some(last) = self.last.replace(point)
            && last.offset != point.offset
        {
            self.pack(last);
        }
    }

    fn pack(&mut self, point: Point) {
        let before = self.written;
        let mut head =
            (u8::from(point.boundary) * BOUNDARY) | (u8::from(point.repeating) * REPEATING);
        if point.spills != before.spills {
            head |= SPILLS;
        }
        if point.index == before.index + 1 {
            head |= NEXT;
        } else if point.index != before.index {
            head |= INDEX;
        }
        self.packed.push(head);
        put(&mut self.packed, u64::from(point.offset - before.offset));
        if head & INDEX != 0 {
            put(&mut self.packed, u64::from(point.index));
        }
        if head & SPILLS != 0 {
            self.packed.push(point.spills.0.iter().flatten().count() as u8);
            for spill in point.spills.0.iter().flatten() {
                self.packed.push(spill.register | spill.slot << 4);
            }
        }
        self.written = Last { offset: point.offset, index: point.index, spills: point.spills };
    }

    /// The map of a translation from `pc` of instructions at `pcs`.
    pub fn finish(mut self, pc: u64, pcs: impl Iterator<Item = u64>) -> Map {
        if let Some(last) = self.last.take() {
            self.pack(last);
        }
        let mut packed = Vec::with_capacity(64);
        pcs.fold(pc, |before, pc| {
            let distance = pc.wrapping_sub(before) as i64;
            put(&mut packed, (distance << 1 ^ distance >> 63) as u64);
            pc
        });
        Map { points: self.packed.into(), pcs: packed.into() }
    }
}

impl Map {
    /// The state at an offset, and whether it is exactly an instruction boundary.
    pub fn find(&self, offset: u32) -> Option<(Point, bool)> {
        let mut packed = &*self.points;
        let mut found = None;
        let mut last = Last::default();
        while let Some(point) = take_point(&mut packed, last).filter(|next| next.offset <= offset) {
            last = Last { offset: point.offset, index: point.index, spills: point.spills };
            found = Some(point);
        }
        found.map(|point| (point, point.boundary && point.offset == offset))
    }

    /// Guest address of an instruction of the superblock at `pc`.
    pub fn pc_of(&self, pc: u64, index: u16) -> Option<u64> {
        self.pcs(pc).nth(usize::from(index))
    }

    /// Guest addresses of the instructions of the superblock at `pc`.
    pub fn pcs(&self, pc: u64) -> impl Iterator<Item = u64> {
        let mut packed = &*self.pcs;
        let mut last = pc;
        std::iter::from_fn(move || {
            let distance = take(&mut packed)?;
            last = last.wrapping_add(distance >> 1 ^ (distance & 1).wrapping_neg());
            Some(last)
        })
    }
}

fn take_point(packed: &mut &[u8], before: Last) -> Option<Point> {
    let head = take_byte(packed)?;
    let offset = before.offset + take(packed)? as u32;
    let index = match head & (NEXT | INDEX) {
        NEXT => before.index + 1,
        INDEX => take(packed)? as u16,
        _ => before.index,
    };
    let mut spills = before.spills;
    if head & SPILLS != 0 {
        spills = Spills::default();
        for _ in 0..take_byte(packed)? {
            let spill = take_byte(packed)?;
            spills = spills.with(spill & 15, spill >> 4);
        }
    }
    let (boundary, repeating) = (head & BOUNDARY != 0, head & REPEATING != 0);
    Some(Point { offset, index, boundary, repeating, spills })
}

fn put(packed: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        packed.push(value as u8 | 0x80);
        value >>= 7;
    }
    packed.push(value as u8);
}

fn take_byte(packed: &mut &[u8]) -> Option<u8> {
    let (first, rest) = packed.split_first()?;
    *packed = rest;
    Some(*first)
}

fn take(packed: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take_byte(packed)?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn point(offset: u32, index: u16) -> Point {
        Point { offset, index, boundary: true, repeating: false, spills: Spills::default() }
    }

    fn packed(points: &[Point]) -> Map {
        let mut builder = Builder::default();
        points.iter().for_each(|point| builder.add(*point));
        builder.finish(0, std::iter::empty())
    }

    #[test]
    fn only_the_first_byte_is_a_boundary() {
        let map = packed(&[point(4, 0), point(9, 1)]);
        assert!(map.find(3).is_none());
        assert_eq!(map.find(4).map(|(p, exact)| (p.index, exact)), Some((0, true)));
        assert_eq!(map.find(8).map(|(p, exact)| (p.index, exact)), Some((0, false)));
        assert_eq!(map.find(100).map(|(p, exact)| (p.index, exact)), Some((1, false)));
    }

    #[test]
    fn a_point_at_the_same_offset_replaces_the_one_before() {
        let map = packed(&[point(4, 0), point(4, 1), point(4, 2), point(5, 3)]);
        assert_eq!(map.find(4).map(|(p, _)| p.index), Some(2));
    }

    fn any_point() -> impl Strategy<Value = (u32, Point)> {
        let spills =
            proptest::collection::vec((0..16u8, 0..8u8), 0..=MAX_SPILLS).prop_map(|list| {
                list.iter()
                    .fold(Spills::default(), |all, (register, slot)| all.with(*register, *slot))
            });
        let flags = (any::<bool>(), any::<bool>());
        (1..300u32, 0..64u16, flags, spills).prop_map(
            |(step, index, (boundary, repeating), spills)| {
                (step, Point { offset: 0, index, boundary, repeating, spills })
            },
        )
    }

    proptest! {
        #[test]
        fn packing_loses_nothing(
            steps in proptest::collection::vec(any_point(), 1..80),
            pc in any::<u64>(),
            pcs in proptest::collection::vec(any::<u64>(), 1..64),
        ) {
            let mut offset = 0;
            let mut builder = Builder::default();
            let mut points = Vec::new();
            for (step, point) in steps {
                offset += step;
                points.push(Point { offset, ..point });
                builder.add(Point { offset, ..point });
            }
            let map = builder.finish(pc, pcs.iter().copied());
            for point in points {
                prop_assert_eq!(map.find(point.offset), Some((point, point.boundary)));
            }
            for (index, at) in pcs.iter().enumerate() {
                prop_assert_eq!(map.pc_of(pc, index as u16), Some(*at));
            }
            prop_assert_eq!(map.pc_of(pc, pcs.len() as u16), None);
        }
    }

    #[test]
    fn spilled_registers_come_back() {
        let spills = Spills::default().with(1, 0).with(2, 3).without(1);
        let mut registers = Registers::default();
        spills.restore(&mut registers, &[10, 11, 12, 13, 14, 15, 16, 17]);
        assert_eq!(registers.general[1..3], [0, 13]);
    }
}
