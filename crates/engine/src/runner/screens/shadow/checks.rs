//! Which tests against the shadow a superblock makes: one for as many accesses as it can cover.

use crate::runner::screens::heap;
use crate::runner::translate::accesses::Form;
use crate::runner::translate::places::Place;
use events::plan::GRANULE;
use events::shape::Segment;

/// Most bytes of the guest's that one test covers, wherever they start, and wherever the register
/// points to that they are relative to.
const REACH: i64 = 6 * GRANULE as i64;

/// Displacements that are divided by the granule instead of being added to their register first.
/// With a larger one it is the register that may be an offset, and a negative one.
pub fn is_split(displacement: i64) -> bool {
    displacement.unsigned_abs() < 0x8000
}

/// A test, made before an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// Which instruction.
    pub index: u16,
    /// Where the tested bytes start.
    pub form: Form,
    /// What that is relative to.
    pub segment: Segment,
    /// Bytes of the shadow to look at: 1, 2, 4 or 8.
    pub width: u8,
    /// Whether flags must be left alone.
    pub keeps_flags: bool,
}

/// One test for as many accesses as it can cover, made before the first of them. `tight`: registers are
/// taken to hold multiples of a granule, so that no granule too many is tested, and of an access that is
/// not aligned perhaps one too few.
pub fn group(places: &[Place], tight: bool) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut covered = vec![false; places.len()];
    for first in 0..places.len() {
        if covered[first] {
            continue;
        }
        let start = places[first];
        let (mut low, mut high) = (start.offset, end(&start));
        for (other, covered) in places.iter().zip(&mut covered).skip(first + 1) {
            let (wider_low, wider_high) = (low.min(other.offset), high.max(end(other)));
            let same = other.origin == start.origin
                && other.operand.segment == start.operand.segment
                && wider_high.checked_sub(wider_low).is_some_and(|bytes| bytes <= REACH)
                && moved(start.operand.form, wider_low.wrapping_sub(start.offset)).is_some();
            let apart = tight && heap::are_tested_apart(&start, other, wider_low..wider_high);
            if same && !*covered && !apart {
                *covered = true;
                (low, high) = (wider_low, wider_high);
            }
        }
        if tight {
            heap::cover(&start, low..high, &mut checks);
        } else {
            cover(&start, low, high, &mut checks);
        }
    }
    checks
}

fn end(place: &Place) -> i64 {
    place.offset.wrapping_add(i64::from(place.operand.size))
}

/// The tests for the bytes from `low` to `high`; more than one only for a very long operand.
fn cover(start: &Place, low: i64, high: i64, checks: &mut Vec<Check>) {
    let mut from = low;
    while from < high {
        let bytes = (high - from).min(REACH);
        let by = from.wrapping_sub(start.offset);
        let form = moved(start.operand.form, by).expect("an operand is short");
        // Wherever it starts in its granule.
        let rest = match form {
            Form::Base(_, displacement) if is_split(displacement) => displacement as u64 % GRANULE,
            _ => 0,
        };
        let granules = (bytes as u64 + rest + 2 * (GRANULE - 1)) / GRANULE;
        let width = granules.next_power_of_two() as u8;
        let segment = start.operand.segment;
        checks.push(Check { index: start.index, form, segment, width, keeps_flags: true });
        from += bytes;
    }
}

/// The same form some bytes further, if it can be written down.
pub fn moved(form: Form, by: i64) -> Option<Form> {
    Some(match form {
        Form::Constant(address) => Form::Constant(address.wrapping_add_signed(by)),
        Form::Base(base, displacement) => {
            let displacement = displacement.checked_add(by)?;
            i32::try_from(displacement).ok()?;
            Form::Base(base, displacement)
        }
        Form::Sum(base, index, scale, displacement) => {
            let displacement = i64::from(displacement).checked_add(by)?;
            Form::Sum(base, index, scale, i32::try_from(displacement).ok()?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::screens::inline::Tests;
    use crate::runner::translate::facts::Set;
    use crate::runner::translate::instrument;
    use crate::runner::translate::superblock::{Superblock, with_return as superblock};

    const BLOCKS: instrument::Tests = instrument::Tests::Blocks { provenance: true };

    fn made(superblock: &Superblock, exact: bool, tests: instrument::Tests) -> Vec<Check> {
        let made = Tests::new(superblock, Set::default(), exact, tests);
        (0..superblock.guests.len() as u16).flat_map(|index| made.checks_before(index)).collect()
    }

    fn checks(instructions: &[&[u8]]) -> Vec<Check> {
        made(&superblock(instructions), true, instrument::Tests::Painted)
    }

    fn check(index: u16, form: Form, width: u8) -> Check {
        Check { index, form, segment: Segment::Flat, width, keeps_flags: true }
    }

    #[test]
    fn pushes_share_one_test() {
        let found = checks(&[
            &[0x55],                   // push rbp
            &[0x53],                   // push rbx
            &[0x48, 0x83, 0xec, 8],    // sub rsp, 8
            &[0x48, 0x89, 0x3c, 0x24], // mov [rsp], rdi
            &[0x48, 0x83, 0xc4, 8],    // add rsp, 8
            &[0x5b],                   // pop rbx
            &[0x5d],                   // pop rbp
        ]);
        // From rsp - 24 to rsp + 8: the return reads there.
        assert_eq!(found, [check(0, Form::Base(4, -24), 8)]);
    }

    #[test]
    fn a_register_that_changed_is_another_origin() {
        let found = checks(&[
            &[0x48, 0x8b, 0x47, 8],             // mov rax, [rdi + 8]
            &[0x48, 0x8b, 0x17],                // mov rdx, [rdi]
            &[0x48, 0x8b, 0x38],                // mov rdi, [rax]
            &[0x48, 0x8b, 0x37],                // mov rsi, [rdi]
            &[0x4c, 0x8b, 0x82, 0, 0x10, 0, 0], // mov r8, [rdx + 4096]
            &[0xc7, 0x02, 5, 0, 0, 0],          // mov dword [rdx], 5
        ]);
        let expected = [
            check(0, Form::Base(7, 0), 4),
            check(2, Form::Base(0, 0), 2),
            check(3, Form::Base(7, 0), 2),
            check(4, Form::Base(2, 4096), 2),
            check(5, Form::Base(2, 0), 2),
            check(6, Form::Base(4, 0), 2),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn sums_are_compared_by_their_parts() {
        let found = checks(&[
            &[0x48, 0x8b, 0x04, 0xf7], // mov rax, [rdi + rsi * 8]
            &[0x48, 0x83, 0xc6, 1],    // add rsi, 1
            &[0x48, 0x8b, 0x14, 0xf7], // mov rdx, [rdi + rsi * 8]
        ]);
        let expected = [check(0, Form::Sum(Some(7), 6, 8, 0), 4), check(3, Form::Base(4, 0), 2)];
        assert_eq!(found, expected);
    }

    #[test]
    fn tight_tests_look_at_no_granule_too_many() {
        let code: [&[u8]; 2] = [&[0x48, 0x8b, 0x47, 8], &[0x8b, 0x57, 0x1c]]; // rdi + 8, rdi + 28
        let superblock = superblock(&code);
        let checks = made(&superblock, true, BLOCKS);
        let expected = [
            check(0, Form::Base(7, 8), 2),
            check(0, Form::Base(7, 24), 1),
            check(2, Form::Base(4, 0), 1),
        ];
        assert_eq!(checks, expected);
    }

    #[test]
    fn bytes_share_a_tight_test_only_inside_a_granule() {
        let code: [&[u8]; 3] = [&[0x88, 0x01], &[0x88, 0x41, 1], &[0x88, 0x41, 0xff]]; // rcx, rcx + 1, rcx - 1
        let superblock = superblock(&code);
        let checks = made(&superblock, true, BLOCKS);
        let expected = [
            check(0, Form::Base(1, 0), 1),
            check(2, Form::Base(1, -1), 1),
            check(3, Form::Base(4, 0), 1),
        ];
        assert_eq!(checks, expected);
    }

    #[test]
    fn of_vectors_that_read_on_the_beginning_is_tested() {
        let mut superblock = superblock(&[&[0xc5, 0xfe, 0x6f, 0x07]]); // vmovdqu ymm0, [rdi]
        superblock.reads_on = true;
        let checks = made(&superblock, true, BLOCKS);
        assert_eq!(checks, [check(0, Form::Base(7, 0), 1), check(1, Form::Base(4, 0), 1)]);
    }

    #[test]
    fn flags_are_dead_only_where_all_of_them_are_written_for_sure() {
        for (between, keeps_flags) in [
            (&[0x90][..], false),                 // nop
            (&[0x48, 0x01, 0xfe], false),         // add rsi, rdi
            (&[0x48, 0x11, 0xfe], true),          // adc rsi, rdi
            (&[0x40, 0x0f, 0x92, 0xc6], true),    // setc sil
            (&[0x48, 0xd3, 0xe6], false),         // shl rsi, cl
            (&[0x48, 0xd3, 0xe6, 0x72, 0], true), // shl rsi, cl; jc on
            (&[0xc3], true),                      // ret
        ] {
            // mov rax, [rdi]; …; cmp rax, rdx
            let superblock = superblock(&[&[0x48, 0x8b, 0x07], between, &[0x48, 0x39, 0xd0]]);
            let checks = made(&superblock, false, instrument::Tests::Painted);
            assert_eq!(checks[0].keeps_flags, keeps_flags, "{between:x?}");
        }
    }
}
