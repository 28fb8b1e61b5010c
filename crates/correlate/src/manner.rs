//! The **manner** of a write: it steps a value on, changes some of its bits, empties it, sets a
//! constant, or sets anything else.
//!
//! Functions are compared by it. A hundred functions that fill in `base` and `len` together say
//! little about one that only moves on (`len += n`) or lets go (`len = 0`).

use crate::access::{Access, Kind};
use crate::names::Names;

/// A set of manners.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manners(u8);

impl Manners {
    const STEP: u8 = 1;
    const EMPTY: u8 = 2;
    const CONSTANT: u8 = 4;
    const VALUE: u8 = 8;
    const BITS: u8 = 16;

    /// The manners of some writes.
    pub fn of<'a>(writes: impl Iterator<Item = &'a Access>, names: &Names) -> Self {
        let manner = |write: &Access| match write.value.map(|value| names.text(value)) {
            _ if write.is_bits => Self::BITS,
            _ if write.kind.meets(Kind::READ) => Self::STEP,
            Some("0" | "NULL" | "nullptr" | "false" | "FALSE") => Self::EMPTY,
            Some(_) => Self::CONSTANT,
            None => Self::VALUE,
        };
        Self(writes.fold(0, |set, write| set | manner(write)))
    }

    /// Whether they have one in common.
    pub fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether it only steps the value on, only changes bits, only empties it or only sets a constant.
    pub fn is_special(self) -> bool {
        matches!(self.0, Self::STEP | Self::BITS | Self::EMPTY | Self::CONSTANT)
    }

    /// Whether it empties the value, among others.
    pub fn empties(self) -> bool {
        self.0 & Self::EMPTY != 0
    }

    /// How alike a write in these manners is to those of others, from nearly 0 to 1: the share of
    /// them with a manner in common. Where nobody has, a tenth is left, as manners are only a hint.
    pub fn likeness(self, others: &[Self]) -> f64 {
        const REST: f64 = 0.1;
        let common = others.iter().filter(|other| self.meets(**other)).count() as f64;
        let share = common / others.len().max(1) as f64;
        (share + REST) / (1.0 + REST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn likeness_is_the_share_with_a_manner_in_common() {
        let value = Manners(Manners::VALUE);
        let mixed = Manners(Manners::VALUE | Manners::EMPTY);
        let step = Manners(Manners::STEP);
        assert_eq!(value.likeness(&[value, mixed]), 1.0);
        assert!(step.likeness(&[value, mixed]) < 0.1);
        let half = value.likeness(&[value, step]);
        assert!((0.5..0.6).contains(&half), "{half}");
    }
}
