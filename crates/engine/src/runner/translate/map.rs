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

    /// Puts the guest's values back into a copy of the processor's registers.
    pub fn restore(&self, registers: &mut Registers, slots: &[u64]) {
        for spill in self.0.iter().flatten() {
            registers.general[spill.register as usize] = slots[spill.slot as usize];
        }
    }
}

/// The guest's state from one offset of the translation to the next entry.
#[derive(Clone, Copy, Debug)]
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

/// All points of a translation, by rising offset.
#[derive(Default, Debug)]
pub struct Map {
    points: Vec<Point>,
}

impl Map {
    /// Notes that from `offset` on the state is as given.
    pub fn add(&mut self, point: Point) {
        // A followed jump has no code of its own: the instruction after it stands at its offset.
        if let Some(last) = self.points.last_mut()
            && last.offset == point.offset
        {
            *last = point;
            return;
        }
        self.points.push(point);
    }

    /// The state at an offset, and whether it is exactly an instruction boundary.
    pub fn find(&self, offset: u32) -> Option<(Point, bool)> {
        let after = self.points.partition_point(|point| point.offset <= offset);
        let point = *self.points.get(after.checked_sub(1)?)?;
        Some((point, point.boundary && point.offset == offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(offset: u32, index: u16) -> Point {
        Point { offset, index, boundary: true, repeating: false, spills: Spills::default() }
    }

    #[test]
    fn only_the_first_byte_is_a_boundary() {
        let mut map = Map::default();
        map.add(point(4, 0));
        map.add(point(9, 1));
        assert!(map.find(3).is_none());
        assert_eq!(map.find(4).map(|(p, exact)| (p.index, exact)), Some((0, true)));
        assert_eq!(map.find(8).map(|(p, exact)| (p.index, exact)), Some((0, false)));
        assert_eq!(map.find(100).map(|(p, exact)| (p.index, exact)), Some((1, false)));
    }

    #[test]
    fn spilled_registers_come_back() {
        let spills = Spills::default().with(1, 0).with(2, 3).without(1);
        let mut registers = Registers::default();
        spills.restore(&mut registers, &[10, 11, 12, 13, 14, 15, 16, 17]);
        assert_eq!(registers.general[1..3], [0, 13]);
    }
}
