//! Weaves the **address shadow** into a translation: every access is tested before it is made.
//!
//! A byte of the shadow stands for eight of the guest's: that of an address is at
//! `(address >> 3) + BASE`. `BASE` has the bits of 3 at its low end, so the one register that holds
//! it is also the shift count. Where flags are dead the test of `[r + 24]` is
//!
//! ```text
//! shrx T, r, BASE; cmp word [T + BASE + 3], 0; jne suspect
//! ```
//!
//! Elsewhere nothing may touch them, and a branch would need rcx. There the shadow becomes part of an
//! address that exists only if all of it is zero ([`LAST_WORD`], behind which nothing is):
//!
//! ```text
//! shrx T, r, BASE; movzx T, word [T + BASE + 3]; mov T, [T * 8 + LAST_WORD]
//! ```
//!
//! For that every byte of the shadow that is not zero has its highest bit set. Flags that are dead
//! can still be seen by a handler of the guest's if the access faults; a guest that has one gets the
//! second form everywhere ([`Screen::new`], `exact`).
//!
//! Accesses whose addresses differ by constants share a test, as far as eight bytes of shadow
//! reach, and their displacements are part of the shadow's address. Which bytes an access touches
//! exactly is known only to the dispatcher: the test in translated code may look at a granule too
//! many, never at one too few (unless it is asked to be `tight`). Where it finds anything the
//! superblock is left, the dispatcher looks closely, and the instruction runs without a test.

use super::accesses::{Accesses, Form, Operand};
use super::facts::{ALL_FLAGS, ARITHMETIC_FLAGS, Set, number};
use super::observe::{self, derived};
use super::strays::{self, Stray};
use super::superblock::{Guest, Role, Superblock};
#[cfg(doc)]
use crate::runner::layout::LAST_WORD;
use events::plan::GRANULE;
use events::shape::Segment;
use iced_x86::{Mnemonic, Register};

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

/// The tests of a superblock, and the registers they need.
pub struct Screen {
    /// Register that holds the base of the shadow.
    pub base: u8,
    /// Scratch register.
    pub scratch: u8,
    checks: Vec<Check>,
    strays: Vec<Stray>,
}

impl Screen {
    /// For a superblock that leaves two registers alone besides those in `taken`. `exact`: also dead
    /// flags must be right when an access faults. `tight`: registers are taken to hold multiples of a
    /// granule, so that no granule too many is tested, and of an access that is not aligned
    /// perhaps one too few.
    pub fn new(superblock: &Superblock, taken: Set, exact: bool, tight: bool) -> Self {
        let mut free = observe::free(superblock, taken);
        let mut next = || free.next().expect("the superblock leaves two registers alone");
        let (base, scratch) = (next(), next());
        let (mut places, sums) = places(superblock);
        let compares = tight && !superblock.reads_on;
        let mut strays = if compares { strays::of(superblock, &places, &sums) } else { Vec::new() };
        if tight && superblock.reads_on {
            places.iter_mut().for_each(Place::shorten);
        }
        let mut checks = group(&places, tight);
        let dead =
            if exact { vec![false; superblock.guests.len()] } else { dead_flags(superblock) };
        for check in &mut checks {
            check.keeps_flags = !dead[check.index as usize];
        }
        for stray in &mut strays {
            stray.keeps_flags = !dead[stray.index as usize];
        }
        Self { base, scratch, checks, strays }
    }

    /// The addresses to compare with their pointers before an instruction.
    pub fn strays_before(&self, index: u16) -> Vec<Stray> {
        let from = self.strays.partition_point(|stray| stray.index < index);
        let to = self.strays.partition_point(|stray| stray.index <= index);
        self.strays[from..to].to_vec()
    }

    /// The tests to make before an instruction.
    pub fn before(&self, index: u16) -> Vec<Check> {
        let from = self.checks.partition_point(|check| check.index < index);
        let to = self.checks.partition_point(|check| check.index <= index);
        self.checks[from..to].to_vec()
    }
}

/// For each instruction, whether nobody reads the arithmetic flags that it starts with.
fn dead_flags(superblock: &Superblock) -> Vec<bool> {
    let mut flags = ALL_FLAGS;
    let mut dead: Vec<bool> = superblock
        .guests
        .iter()
        .rev()
        .map(|guest| {
            if !matches!(guest.role, Role::Plain | Role::FollowedJump | Role::FollowedCall) {
                flags = ALL_FLAGS;
            }
            let written = if may_keep_flags(guest) { 0 } else { guest.facts.flags_written };
            flags = flags & !written | guest.facts.flags_read;
            flags & ARITHMETIC_FLAGS == 0
        })
        .collect();
    dead.reverse();
    dead
}

/// Instructions that write flags only if their count is not zero.
fn may_keep_flags(guest: &Guest) -> bool {
    use Mnemonic as M;
    let instruction = &guest.instruction;
    let by_register =
        [1, 2].iter().any(|operand| instruction.op_register(*operand) == Register::CL);
    let shifts = matches!(
        instruction.mnemonic(),
        M::Shl | M::Sal | M::Shr | M::Sar | M::Rol | M::Ror | M::Rcl | M::Rcr | M::Shld | M::Shrd
    );
    shifts && by_register || instruction.is_string_instruction()
}

/// The part of an address that is not known, in terms of values that registers had: two places
/// with the same origin differ by a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// None: the address is a constant.
    Nothing,
    /// One value.
    Value(u32),
    /// Two, the second one scaled.
    Sum(Option<u32>, u32, u8),
}

/// An access and where it is relative to its origin.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Which instruction makes it.
    pub index: u16,
    /// What its address is relative to.
    pub origin: Origin,
    /// How far.
    pub offset: i64,
    /// The access.
    pub operand: Operand,
}

impl Place {
    /// Of a vector that is read only the beginning counts: string functions go on past ends.
    fn shorten(&mut self) {
        if !self.operand.write && self.operand.size >= strays::VECTOR {
            self.operand.size = 1;
        }
    }
}

/// All accesses of a superblock, in order; and which instructions make which values by adding to a
/// pointer.
fn places(superblock: &Superblock) -> (Vec<Place>, Vec<(u16, u32)>) {
    let mut values: [(u32, i64); 16] = std::array::from_fn(|register| (register as u32, 0));
    let mut fresh = 16;
    let (mut places, mut sums) = (Vec::new(), Vec::new());
    for (index, guest) in superblock.guests.iter().enumerate() {
        if let Accesses::List(list) = &guest.accesses {
            for operand in list {
                let (origin, offset) = origin(operand.form, &values);
                places.push(Place { index: index as u16, origin, offset, operand: *operand });
            }
        }
        if guest.role == Role::Call {
            // Whatever the callee does, and to the shadow as well.
            values = std::array::from_fn(|register| (fresh + register as u32, 0));
            fresh += 16;
            continue;
        }
        let kept = derived(guest).map(|(to, from, by)| {
            let (value, offset) = values[from as usize];
            (to, (value, offset.wrapping_add(by)))
        });
        for register in (0..16u8).filter(|register| guest.facts.writes.has(*register)) {
            values[register as usize] = (fresh, 0);
            fresh += 1;
        }
        if let Some((to, value)) = kept {
            values[to as usize] = value;
        } else if strays::makes_sum(guest)
            && let Some(to) = number(guest.instruction.op0_register())
        {
            sums.push((index as u16, values[to as usize].0));
        }
    }
    (places, sums)
}

fn origin(form: Form, values: &[(u32, i64); 16]) -> (Origin, i64) {
    match form {
        Form::Constant(address) => (Origin::Nothing, address as i64),
        Form::Base(base, displacement) => {
            let (value, offset) = values[base as usize];
            (Origin::Value(value), offset.wrapping_add(displacement))
        }
        Form::Sum(base, index, scale, displacement) => {
            let (value, offset) = values[index as usize];
            let scaled = offset.wrapping_mul(i64::from(scale));
            let (base, offset) = match base.map(|base| values[base as usize]) {
                Some((value, offset)) => (Some(value), offset.wrapping_add(scaled)),
                None => (None, scaled),
            };
            (Origin::Sum(base, value, scale), offset.wrapping_add(i64::from(displacement)))
        }
    }
}

/// One test for as many accesses as it can cover, made before the first of them.
fn group(places: &[Place], tight: bool) -> Vec<Check> {
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
            // A pointer to bytes is hardly ever aligned: a test for two granules would meet one too many.
            let small = start.operand.size.min(other.operand.size) < 4;
            let one = granule_of(wider_low) == granule_of(wider_high - 1);
            if same && !*covered && (one || !(tight && small)) {
                *covered = true;
                (low, high) = (wider_low, wider_high);
            }
        }
        if tight {
            cover_tightly(&start, low, high, &mut checks);
        } else {
            cover(&start, low, high, &mut checks);
        }
    }
    checks
}

fn granule_of(offset: i64) -> i64 {
    offset.div_euclid(GRANULE as i64)
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

/// The tests for just the granules from that of `low` to that of the last byte before `high`.
fn cover_tightly(start: &Place, low: i64, high: i64, checks: &mut Vec<Check>) {
    let granule = GRANULE as i64;
    let (mut at, end) = (granule_of(low), granule_of(high - 1) + 1);
    while at < end {
        // The largest power of two that is not too much.
        let width = 1 << (end - at).min(8).ilog2();
        let by = (at * granule).max(low).wrapping_sub(start.offset);
        let Some(form) = moved(start.operand.form, by) else { return };
        let segment = start.operand.segment;
        checks.push(Check { index: start.index, form, segment, width, keeps_flags: true });
        at += i64::from(width);
    }
}

/// The same form some bytes further, if it can be written down.
fn moved(form: Form, by: i64) -> Option<Form> {
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
    use crate::runner::translate::superblock::with_return as superblock;

    fn checks(instructions: &[&[u8]]) -> Vec<Check> {
        Screen::new(&superblock(instructions), Set::default(), true, false).checks
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
        let checks = Screen::new(&superblock, Set::default(), true, true).checks;
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
        let checks = Screen::new(&superblock, Set::default(), true, true).checks;
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
        let checks = Screen::new(&superblock, Set::default(), true, true).checks;
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
            let checks = Screen::new(&superblock, Set::default(), false, false).checks;
            assert_eq!(checks[0].keeps_flags, keeps_flags, "{between:x?}");
        }
    }
}
