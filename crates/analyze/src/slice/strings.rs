//! Repeated string instructions: what their repetitions read and wrote, as ranges.

use crate::semantics::StringOp;
use events::decode::Bases;
use events::record;
use events::shape::{Access, Segment, Source};

const MASK_48: u64 = (1 << 48) - 1;

/// What a repeated string instruction did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeated {
    /// Bytes of an element.
    pub size: u64,
    /// Bytes in all.
    pub bytes: u64,
    /// First byte that was read through RSI.
    pub source: u64,
    /// First byte that was read or written through RDI.
    pub target: u64,
    /// Whether it went downwards.
    pub down: bool,
}

/// Reads the fields of a repeated instruction; `None` if the record does not hold them.
pub fn repeated(accesses: &[Access], payload: &[u8], bases: Bases) -> Option<Repeated> {
    let first = accesses.first()?;
    let Source::Repeat { field } = first.source else { return None };
    let get = |index: usize| record::field(payload, usize::from(field) + index);
    let mask = if first.narrow { 0xffff_ffff } else { MASK_48 };
    let steps = get(0)?.wrapping_sub(get(3)?) & mask;
    let only_source = accesses.iter().all(|access| access.from_source);
    let moved = if only_source { get(1)? } else { get(2)? };
    let down = get(4)?.wrapping_sub(moved) & mask > mask / 2;
    let size = u64::from(first.size);
    let bytes = steps.checked_mul(size)?;
    let lowest = |start: u64| {
        let start = start & mask;
        if down { start.wrapping_add(size).wrapping_sub(bytes) } else { start }
    };
    let based = |source: bool, start: u64| {
        let access = accesses.iter().find(|access| access.from_source == source);
        let base = match access.map(|access| access.segment) {
            Some(Segment::Fs) => bases.fs,
            Some(Segment::Gs) => bases.gs,
            _ => 0,
        };
        lowest(start).wrapping_add(base) & MASK_48
    };
    Some(Repeated {
        size,
        bytes,
        source: based(true, get(1)?),
        target: based(false, get(2)?),
        down,
    })
}

impl StringOp {
    /// Whether it reads through RSI.
    pub(super) fn reads_source(self) -> bool {
        matches!(self, Self::Moves | Self::Loads | Self::Compares)
    }

    /// Whether it reads through RDI.
    pub(super) fn reads_target(self) -> bool {
        matches!(self, Self::Compares | Self::Scans)
    }
}
