//! What is emitted for blocks of the heap: tests against the shadow, which are **tight**. Blocks begin at
//! multiples of a granule, and so do most members of structures; a test that looked at a granule more than
//! an access touches would find the end of a block all the time, and each time cost a close look. So
//! registers are taken to hold multiples of a granule. Of an access that is not aligned a granule may be
//! missed.

use crate::runner::screens::provenance::VECTOR;
use crate::runner::screens::shadow::checks::{Check, moved};
use crate::runner::translate::places::Place;
use events::plan::GRANULE;
use std::ops::Range;

/// Of a vector that is read only the beginning counts: string functions go on past ends.
pub fn shorten(place: &mut Place) {
    if !place.operand.write && place.operand.size >= VECTOR {
        place.operand.size = 1;
    }
}

/// Whether two accesses are not tested together, whose bytes relative to a register lie in a range.
pub fn are_tested_apart(one: &Place, other: &Place, range: Range<i64>) -> bool {
    // A pointer to bytes is hardly ever aligned: a test for two granules would meet one too many.
    let small = one.operand.size.min(other.operand.size) < 4;
    small && granule_of(range.start) != granule_of(range.end - 1)
}

/// Whether the granule of a byte that is so far from a register follows from that of the register.
/// Of pointers that are not aligned, only the sum tells.
pub fn is_whole(displacement: i64) -> bool {
    (displacement as u64).is_multiple_of(GRANULE)
}

fn granule_of(offset: i64) -> i64 {
    offset.div_euclid(GRANULE as i64)
}

/// The tests for just the granules of these bytes.
pub fn cover(start: &Place, bytes: Range<i64>, checks: &mut Vec<Check>) {
    let granule = GRANULE as i64;
    let (mut at, end) = (granule_of(bytes.start), granule_of(bytes.end - 1) + 1);
    while at < end {
        // The largest power of two that is not too much.
        let width = 1 << (end - at).min(8).ilog2();
        let by = (at * granule).max(bytes.start).wrapping_sub(start.offset);
        let Some(form) = moved(start.operand.form, by) else { return };
        let segment = start.operand.segment;
        checks.push(Check { index: start.index, form, segment, width, keeps_flags: true });
        at += i64::from(width);
    }
}
