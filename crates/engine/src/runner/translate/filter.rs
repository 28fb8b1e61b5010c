//! Weaves the **address shadow** into a translation: every access is tested before it is made.
//!
//! A byte of the shadow stands for eight of the guest's: that of an address is at
//! `(address >> 3) + BASE`. `BASE` has the bits of 3 at its low end, so the one register that holds
//! it is also the shift count, and nothing touches the flags, which a signal handler could see if
//! the access faults:
//!
//! ```text
//! lea rcx, [operand]; shrx rcx, rcx, BASE; movzx ecx, byte [rcx + BASE]; jrcxz on; jmp suspect
//! ```
//!
//! Accesses whose addresses differ by constants share a test, as far as eight bytes of shadow
//! reach. Which bytes an access touches exactly is known only to the dispatcher: the test in
//! translated code may look at a granule too many, never at one too few. Where it finds anything
//! the superblock is left, the dispatcher looks closely, and the instruction runs without a test.

use super::accesses::{Accesses, Form, Operand};
use super::facts::Set;
use super::observe::{NEVER_RESERVED, derived};
use super::superblock::Superblock;
use crate::runner::cpu::reg::RCX;
use events::plan::GRANULE;
use events::shape::Segment;

/// Most bytes of the guest's that one test covers, wherever they start.
const REACH: i64 = 7 * GRANULE as i64;

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
}

/// The tests of a superblock, and the registers they need.
pub struct Screen {
    /// Register that holds the base of the shadow.
    pub base: u8,
    /// Whether rcx is put aside for the whole superblock, which does not use it.
    pub owns_rcx: bool,
    checks: Vec<Check>,
}

impl Screen {
    /// For a superblock that leaves a register alone besides those in `taken`.
    pub fn new(superblock: &Superblock, taken: Set) -> Self {
        let used = superblock.guests.iter().fold(taken.0, |used, guest| used | guest.facts.uses.0);
        let base = (0..16u8)
            .find(|register| used & 1 << register == 0 && !NEVER_RESERVED.contains(register))
            .expect("the superblock leaves a register alone");
        let checks = group(&places(superblock));
        let owns_rcx = !checks.is_empty() && used & 1 << RCX == 0;
        Self { base, owns_rcx, checks }
    }

    /// Whether nothing needs to be tested.
    pub fn is_empty(&self) -> bool {
        self.checks.is_empty()
    }

    /// The tests to make before an instruction.
    pub fn before(&self, index: u16) -> Vec<Check> {
        let from = self.checks.partition_point(|check| check.index < index);
        let to = self.checks.partition_point(|check| check.index <= index);
        self.checks[from..to].to_vec()
    }
}

/// The part of an address that is not known, in terms of values that registers had: two places
/// with the same origin differ by a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Nothing,
    Value(u32),
    Sum(Option<u32>, u32, u8),
}

/// An access and where it is relative to its origin.
#[derive(Clone, Copy, Debug)]
struct Place {
    index: u16,
    origin: Origin,
    offset: i64,
    operand: Operand,
}

/// All accesses of a superblock, in order.
fn places(superblock: &Superblock) -> Vec<Place> {
    let mut values: [(u32, i64); 16] = std::array::from_fn(|register| (register as u32, 0));
    let mut fresh = 16;
    let mut places = Vec::new();
    for (index, guest) in superblock.guests.iter().enumerate() {
        if let Accesses::List(list) = &guest.accesses {
            for operand in list {
                let (origin, offset) = origin(operand.form, &values);
                places.push(Place { index: index as u16, origin, offset, operand: *operand });
            }
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
        }
    }
    places
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
fn group(places: &[Place]) -> Vec<Check> {
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
            if same && !*covered {
                *covered = true;
                (low, high) = (wider_low, wider_high);
            }
        }
        cover(&start, low, high, &mut checks);
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
        let granules = (bytes as u64 + 2 * (GRANULE - 1)) / GRANULE;
        let width = granules.next_power_of_two() as u8;
        checks.push(Check { index: start.index, form, segment: start.operand.segment, width });
        from += bytes;
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
    use crate::runner::translate::superblock::{CodeSource, Limits, decode};
    use iced_x86::code_asm::{
        CodeAssembler, dword_ptr, qword_ptr, r8, rax, rbp, rbx, rdi, rdx, rsi, rsp,
    };
    use std::collections::BTreeSet;

    struct Code(Vec<u8>);

    impl CodeSource for Code {
        fn code_at(&self, pc: u64) -> &[u8] {
            &self.0[(pc as usize - 0x1000).min(self.0.len())..]
        }
    }

    /// The tests of a superblock.
    fn checks(
        write: impl FnOnce(&mut CodeAssembler) -> Result<(), iced_x86::IcedError>,
    ) -> Vec<Check> {
        let mut assembler = CodeAssembler::new(64).expect("64 bits");
        write(&mut assembler).expect("good operands");
        assembler.ret().expect("a return");
        let code = Code(assembler.assemble(0x1000).expect("it assembles"));
        let stops = BTreeSet::new();
        let limits = Limits { accesses: true, ..Limits::new(64, &stops) };
        let superblock = decode(&code, 0x1000, limits).expect("code");
        Screen::new(&superblock, Set::default()).checks
    }

    fn check(index: u16, form: Form, width: u8) -> Check {
        Check { index, form, segment: Segment::Flat, width }
    }

    #[test]
    fn pushes_share_one_test() {
        let found = checks(|a| {
            a.push(rbp)?;
            a.push(rbx)?;
            a.sub(rsp, 8)?;
            a.mov(qword_ptr(rsp), rdi)?;
            a.add(rsp, 8)?;
            a.pop(rbx)?;
            a.pop(rbp)
        });
        // From rsp - 24 to rsp + 8: the return reads there.
        assert_eq!(found, [check(0, Form::Base(4, -24), 8)]);
    }

    #[test]
    fn a_register_that_changed_is_another_origin() {
        let found = checks(|a| {
            a.mov(rax, qword_ptr(rdi + 8))?;
            a.mov(rdx, qword_ptr(rdi))?;
            a.mov(rdi, qword_ptr(rax))?;
            a.mov(rsi, qword_ptr(rdi))?;
            a.mov(r8, qword_ptr(rdx + 4096))?;
            a.mov(dword_ptr(rdx), 5)
        });
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
        let found = checks(|a| {
            a.mov(rax, qword_ptr(rdi + rsi * 8))?;
            a.add(rsi, 1)?;
            a.mov(rdx, qword_ptr(rdi + rsi * 8))
        });
        let expected = [check(0, Form::Sum(Some(7), 6, 8, 0), 4), check(3, Form::Base(4, 0), 2)];
        assert_eq!(found, expected);
    }
}
