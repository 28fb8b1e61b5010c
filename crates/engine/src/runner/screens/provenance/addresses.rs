//! Which addresses are compared with the pointers that they are **derived** from.
//!
//! One is made where an instruction adds something to a pointer: in the address of an access
//! that has an index or a large displacement, and by LEA and ADD if the sum is an address of an access in
//! the same superblock. A small displacement is a member of a structure; what lies next to a block the
//! shadow shows. Pointers are told from numbers at run time: no block begins with a small number.

use crate::runner::cpu::reg::{RBP, RSP};
use crate::runner::translate::accesses::{Accesses, Form, Operand};
use crate::runner::translate::facts::number;
use crate::runner::translate::places::{Origin, Place};
use crate::runner::translate::superblock::{Guest, Superblock};
use events::shape::Segment;
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// Displacements from which on an access may leave its block. Below, it would have to lie in the next block
/// but not between the two.
const FAR: u64 = 64;

/// Bytes of a vector, at least.
pub const VECTOR: u16 = 16;

/// An address to compare with the pointer that it was made from, before an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Derived {
    /// Which instruction.
    pub index: u16,
    /// How it is made: the base is the pointer, or the index if the base is none and is not scaled.
    pub form: Form,
    /// Whether flags must be left alone.
    pub keeps_flags: bool,
}

/// The derived addresses of a superblock, in order.
pub fn of(superblock: &Superblock, places: &[Place], sums: &[(u16, u32)]) -> Vec<Derived> {
    let mut found: Vec<(Derived, Option<(Origin, i64)>)> = Vec::new();
    for place in places {
        let near = |other: &(Origin, i64)| {
            other.0 == place.origin && other.1.abs_diff(place.offset) <= FAR
        };
        let known = found.iter().any(|(_, tested)| tested.as_ref().is_some_and(near));
        if operand_may_leave_block(&place.operand) && !known {
            let before = &superblock.guests[..place.index as usize];
            let form = pointer_first(place.operand.form, before);
            let derived = Derived { index: place.index, form, keeps_flags: true };
            found.push((derived, Some((place.origin, place.offset))));
        }
    }
    for (index, value) in sums {
        let is_used = places.iter().any(|place| place.origin == Origin::Value(*value));
        let form = sum(&superblock.guests[*index as usize].instruction);
        if let (true, Some(form)) = (is_used, form.filter(|form| may_leave_block(*form))) {
            found.push((Derived { index: *index, form, keeps_flags: true }, None));
        }
    }
    let mut all: Vec<Derived> = found.into_iter().map(|(derived, _)| derived).collect();
    all.sort_by_key(|derived| derived.index);
    all
}

/// With what is probably the pointer as the base: a register that was written in its lower half is none.
fn pointer_first(form: Form, before: &[Guest]) -> Form {
    let Form::Sum(Some(base), index, 1, by) = form else { return form };
    let written = before.iter().rev().find(|guest| guest.facts.writes.has(base));
    let is_number = written.is_some_and(|guest| {
        let to = guest.instruction.op0_register();
        number(to) == Some(base) && to.is_gpr32()
    });
    if is_number { Form::Sum(Some(index), base, 1, by) } else { form }
}

/// Wide reads at constant distances are those of string functions, which go on past ends.
fn operand_may_leave_block(operand: &Operand) -> bool {
    let reads_on = !operand.write && operand.size >= VECTOR;
    let is_sum = matches!(operand.form, Form::Sum(..));
    operand.segment == Segment::Flat && may_leave_block(operand.form) && (is_sum || !reads_on)
}

/// The stack is no block of the heap's.
fn may_leave_block(form: Form) -> bool {
    let is_frame = |base: u8, displacement: i64| base == RSP || base == RBP && displacement < 0;
    match form {
        Form::Constant(_) => false,
        Form::Base(base, by) => {
            let fits = i32::try_from(by).is_ok();
            by.unsigned_abs() >= FAR && fits && !is_frame(base, by)
        }
        Form::Sum(base, _, _, by) => base.is_some_and(|base| !is_frame(base, i64::from(by))),
    }
}

/// What LEA and ADD of registers make.
pub fn sum(instruction: &Instruction) -> Option<Form> {
    let wide = |register: Register| number(register).filter(|_| register.is_gpr64());
    let to = wide(instruction.op0_register())?;
    match instruction.mnemonic() {
        Mnemonic::Add if instruction.op1_kind() == OpKind::Register => {
            let by = wide(instruction.op1_register())?;
            (to != by).then_some(Form::Sum(Some(to), by, 1, 0))
        }
        Mnemonic::Lea => {
            let (base, index) = (instruction.memory_base(), instruction.memory_index());
            let by = instruction.memory_displacement64() as i64;
            let scale = instruction.memory_index_scale() as u8;
            Some(Form::Sum(Some(wide(base)?), wide(index)?, scale, i32::try_from(by).ok()?))
        }
        _ => None,
    }
}

/// The forms of addresses that an instruction makes and that may leave a block: of its accesses, or of its
/// result.
pub fn forms(instruction: &Instruction, accesses: &Accesses) -> Vec<Form> {
    match accesses {
        Accesses::List(list) if !list.is_empty() => {
            let derived = list.iter().filter(|operand| operand_may_leave_block(operand));
            derived.map(|operand| operand.form).collect()
        }
        _ => sum(instruction).into_iter().collect(),
    }
}

/// The register that the instruction makes a sum in that may leave a block.
pub fn sum_register(guest: &Guest) -> Option<u8> {
    sum(&guest.instruction).filter(|form| may_leave_block(*form))?;
    number(guest.instruction.op0_register())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::screens::inline::Tests;
    use crate::runner::translate::facts::Set;
    use crate::runner::translate::instrument;
    use crate::runner::translate::superblock::with_return;

    /// What is compared in these instructions, which a return follows.
    fn derived(instructions: &[&[u8]]) -> Vec<(u16, Form)> {
        let superblock = with_return(instructions);
        let against = instrument::Tests::Blocks { provenance: true };
        let tests = Tests::new(&superblock, Set::default(), true, against);
        let indices = 0..superblock.guests.len() as u16;
        let found = indices.flat_map(|index| tests.derived_before(index));
        found.map(|derived| (derived.index, derived.form)).collect()
    }

    #[test]
    fn indices_and_large_displacements_are_compared() {
        let found = derived(&[
            &[0x8b, 0x04, 0xb7],                   // mov eax, [rdi + rsi * 4]
            &[0x8b, 0x54, 0xb7, 8], // mov edx, [rdi + rsi * 4 + 8]: near the one before
            &[0x48, 0x8b, 0x4f, 0x10], // mov rcx, [rdi + 16]
            &[0x48, 0x8b, 0x8f, 0, 1, 0, 0], // mov rcx, [rdi + 256]
            &[0x48, 0x8b, 0x44, 0x24, 0x60], // mov rax, [rsp + 96]
            &[0xc5, 0xfe, 0x6f, 0x46, 0x60], // vmovdqu ymm0, [rsi + 96]
            &[0x48, 0x8b, 0x84, 0x24, 0, 1, 0, 0], // mov rax, [rsp + 256]
        ]);
        let sum = Form::Sum(Some(7), 6, 4, 0);
        assert_eq!(found, [(0, sum), (3, Form::Base(7, 256))]);
    }

    #[test]
    fn a_sum_is_compared_if_it_is_used() {
        let add: &[u8] = &[0x48, 0x01, 0xf7]; // add rdi, rsi
        let store: &[u8] = &[0xc6, 0x07, 1]; // mov byte [rdi], 1
        assert_eq!(derived(&[add, store]), [(0, Form::Sum(Some(7), 6, 1, 0))]);
        assert_eq!(derived(&[add]), []);
        let lea: &[u8] = &[0x48, 0x8d, 0x3c, 0xf2]; // lea rdi, [rdx + rsi * 8]
        assert_eq!(derived(&[lea, store]), [(0, Form::Sum(Some(2), 6, 8, 0))]);
    }

    #[test]
    fn a_number_of_half_a_register_is_no_pointer() {
        let narrow: &[u8] = &[0x89, 0xf0]; // mov eax, esi
        let load: &[u8] = &[0x8a, 0x0c, 0x38]; // mov cl, [rax + rdi]
        assert_eq!(derived(&[narrow, load]), [(1, Form::Sum(Some(7), 0, 1, 0))]);
        assert_eq!(derived(&[load]), [(0, Form::Sum(Some(0), 7, 1, 0))]);
    }
}
