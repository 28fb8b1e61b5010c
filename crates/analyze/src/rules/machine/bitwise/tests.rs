//! The oracle is what the instruction computes: whichever bits that nobody wrote are turned over,
//! only bits that are said to hang on them may change.

use super::*;
use crate::semantics::Meaning;
use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory};
use proptest::prelude::*;

/// An instruction on eax and ebx, whether its zero flag tells of the result, and what that is.
type Row = (&'static [u8], bool, fn(u32, u32) -> u32);

const ROWS: [Row; 18] = [
    (&[0x25, 0xf0, 0x0f, 0, 0x80], true, |a, _| a & 0x8000_0ff0), // and eax,0x80000ff0
    (&[0x0d, 0xf0, 0x0f, 0, 0x80], true, |a, _| a | 0x8000_0ff0), // or eax,0x80000ff0
    (&[0x31, 0xd8], true, |a, b| a ^ b),                          // xor eax,ebx
    (&[0x01, 0xd8], true, u32::wrapping_add),                     // add eax,ebx
    (&[0x29, 0xd8], true, u32::wrapping_sub),                     // sub eax,ebx
    (&[0x0f, 0xaf, 0xc3], false, u32::wrapping_mul),              // imul eax,ebx
    (&[0xf7, 0xd8], true, |a, _| a.wrapping_neg()),               // neg eax
    (&[0xf7, 0xd0], false, |a, _| !a),                            // not eax
    (&[0xff, 0xc0], true, |a, _| a.wrapping_add(1)),              // inc eax
    (&[0xc1, 0xe0, 5], true, |a, _| a << 5),                      // shl eax,5
    (&[0xc1, 0xf8, 5], true, |a, _| (a as i32 >> 5) as u32),      // sar eax,5
    (&[0xc1, 0xc8, 5], false, |a, _| a.rotate_right(5)),          // ror eax,5
    (&[0x0f, 0xbe, 0xc3], false, |_, b| b as i8 as u32),          // movsx eax,bl
    (&[0x0f, 0xc8], false, |a, _| a.swap_bytes()),                // bswap eax
    (&[0x8d, 0x04, 0x98], false, |a, b| a.wrapping_add(b << 2)),  // lea eax,[rax+rbx*4]
    (&[0x01, 0xc0], true, |a, _| a << 1),                         // add eax,eax
    (&[0x8d, 0x04, 0x00], false, |a, _| a << 1),                  // lea eax,[rax+rax]
    (&[0x0f, 0xba, 0xe8, 3], false, |a, _| a | 8),                // bts eax,3
];

fn bitwise(code: &[u8]) -> Bitwise {
    last_of(&[code])
}

/// The rule of the last of several instructions in a row.
fn last_of(codes: &[&[u8]]) -> Bitwise {
    let mut constants = Constants::default();
    let mut factory = InstructionInfoFactory::new();
    let mut found = None;
    for code in codes {
        let instruction = Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE).decode();
        let meaning = Meaning::of(&instruction, &mut factory);
        found = Bitwise::of(&instruction, &meaning.memory, &constants);
        constants.follow(&instruction, &meaning.defines);
    }
    found.expect("it has a rule")
}

fn origin(bits: u64) -> Option<Origin> {
    (bits != 0).then_some(Origin { pc: 1, address: 2, size: 4 })
}

proptest! {
    #[test]
    fn what_changes_was_said_to(
        (a, b, loose_a, loose_b) in any::<(u32, u32, u32, u32)>(),
        sparse in any::<u32>(),
        turns in prop::collection::vec(any::<(u32, u32)>(), 8),
    ) {
        let (loose_a, loose_b) = (loose_a & sparse, loose_b & sparse.rotate_left(7));
        for (code, tells, computes) in ROWS {
            let mut registers = Registers::default();
            registers.set_general(0, loose_a.into(), origin(loose_a.into()));
            registers.set_general(3, loose_b.into(), origin(loose_b.into()));
            bitwise(code).apply(0x1000, &[], &mut registers, &mut Unwritten::default());
            let said = registers.general(0);
            prop_assert_eq!(said >> 32, 0);
            for (turn_a, turn_b) in &turns {
                let other = computes(a ^ turn_a & loose_a, b ^ turn_b & loose_b);
                let changed = computes(a, b) ^ other;
                prop_assert_eq!(u64::from(changed) & !said, 0, "{:02x?}", code);
                let zero = registers.flags() & ZERO != 0;
                prop_assert!(!tells || zero || (computes(a, b) == 0) == (other == 0), "{:02x?}", code);
            }
        }
    }
}

/// Those of which only whole bytes are told apart, as the mask or the number is not known.
const BY_BYTE: [Row; 5] = [
    (&[0x21, 0xd8], true, |a, b| a & b),          // and eax,ebx
    (&[0x09, 0xd8], true, |a, b| a | b),          // or eax,ebx
    (&[0xd3, 0xe0], false, |a, c| a << (c & 31)), // shl eax,cl
    (&[0xd3, 0xe8], false, |a, c| a >> (c & 31)), // shr eax,cl
    (&[0xd3, 0xf8], false, |a, c| (a as i32 >> (c & 31)) as u32), // sar eax,cl
];

/// The bytes in which any bit is set.
fn whole(bits: u32) -> u32 {
    u32::from_le_bytes(bits.to_le_bytes().map(|byte| if byte == 0 { 0 } else { 0xff }))
}

proptest! {
    #[test]
    fn where_whole_bytes_are_unwritten_what_changes_was_said_to(
        (a, b) in any::<(u32, u32)>(),
        (loose_a, loose_b) in (0..16u32, 0..16u32),
        turns in prop::collection::vec(any::<(u32, u32)>(), 8),
    ) {
        let spread = |bytes: u32| whole((0..4).filter(|at| bytes >> at & 1 != 0).map(|at| 1 << (at * 8)).sum());
        let (loose_a, loose_b) = (spread(loose_a), spread(loose_b));
        for (code, tells, computes) in BY_BYTE {
            let second = if code[0] == 0xd3 { 1 } else { 3 };
            let mut registers = Registers::default();
            registers.set_general(0, loose_a.into(), origin(loose_a.into()));
            registers.set_general(second, loose_b.into(), origin(loose_b.into()));
            bitwise(code).apply(0x1000, &[], &mut registers, &mut Unwritten::default());
            let said = whole(registers.general(0) as u32);
            for (turn_a, turn_b) in &turns {
                let other = computes(a ^ turn_a & loose_a, b ^ turn_b & loose_b);
                prop_assert_eq!(whole(computes(a, b) ^ other) & !said, 0, "{:02x?}", code);
                let zero = registers.flags() & ZERO != 0;
                prop_assert!(!tells || zero || (computes(a, b) == 0) == (other == 0), "{:02x?}", code);
            }
        }
    }
}

#[test]
fn words_may_be_written_and_tested_bit_by_bit() {
    // or [rax],rdx, and then: test [rax],rdx; bt [rax],rdx; mov rbx,[rax]; shr rbx,cl
    let (mut registers, mut memory) = (Registers::default(), Unwritten::default());
    memory.insert(0x100, 8);
    let access = |write| Access { address: 0x100, size: 8, write };
    let test = |registers: &mut Registers, memory: &mut Unwritten| {
        bitwise(&[0x48, 0x85, 0x10]).apply(0x1000, &[access(false)], registers, memory);
        registers.flags() & ZERO != 0
    };
    assert!(test(&mut registers, &mut memory), "nothing of it was written");
    let both = [access(false), access(true)];
    bitwise(&[0x48, 0x09, 0x10]).apply(0x1000, &both, &mut registers, &mut memory);
    assert!(!test(&mut registers, &mut memory));
    bitwise(&[0x48, 0x0f, 0xa3, 0x10]).apply(0x1000, &[access(false)], &mut registers, &mut memory);
    assert_eq!(registers.flags() & CARRY, 0);
    let mut bits = [0; 8];
    bits.copy_from_slice(&memory.load(0x100, 8)[..8]);
    registers.set_general(3, u64::from_le_bytes(bits), origin(1));
    bitwise(&[0x48, 0xd3, 0xeb]).apply(0x1000, &[], &mut registers, &mut memory);
    assert_eq!(registers.general(3), 0);
}

#[test]
fn a_field_that_was_written_is_not_blamed_for_its_neighbours() {
    // and dword [rax], ~7; or dword [rax], 5; test dword [rax], 7
    let steps: [&[u8]; 3] = [&[0x83, 0x20, 0xf8], &[0x83, 0x08, 0x05], &[0xf7, 0x00, 7, 0, 0, 0]];
    let (mut registers, mut memory) = (Registers::default(), Unwritten::default());
    memory.insert(0x100, 4);
    for (index, code) in steps.into_iter().enumerate() {
        let access = |write| Access { address: 0x100, size: 4, write };
        let accesses =
            if index < 2 { vec![access(false), access(true)] } else { vec![access(false)] };
        bitwise(code).apply(0x1000, &accesses, &mut registers, &mut memory);
    }
    assert_eq!(memory.load(0x100, 4)[..4], [0xf8, 0xff, 0xff, 0xff]);
    assert_eq!(registers.flags() & ZERO, 0);
}

#[test]
fn masks_in_registers_are_known_where_they_were_just_put_there() {
    let found = last_of(&[&[0xba, 0xff, 0, 0, 0], &[0x23, 0x10]]); // mov edx,255; and edx,[rax]
    let (mut registers, mut memory) = (Registers::default(), Unwritten::default());
    memory.insert(0x101, 3);
    let access = Access { address: 0x100, size: 4, write: false };
    found.apply(0x1000, &[access], &mut registers, &mut memory);
    assert!(registers.is_clean());
}

#[test]
fn lanes_that_are_put_beside_each_other_do_not_meet() {
    // punpckldq xmm0,xmm1: the second four bytes of xmm1, which nobody wrote, come last.
    let mut registers = Registers::default();
    let mut second = [0; 32];
    second[4..8].fill(0xff);
    registers.set_vector(1, second, origin(1));
    bitwise(&[0x66, 0x0f, 0x62, 0xc1]).apply(
        0x1000,
        &[],
        &mut registers,
        &mut Unwritten::default(),
    );
    assert_eq!(registers.vector(0)[..8], [0; 8]);
    assert_eq!(registers.vector(0)[8..16], [0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
}

#[test]
fn what_stands_behind_a_text_does_not_decide_whether_it_is_another() {
    // movabs rax,"us_ascii"; cmp [rsp+5],rax, and the other way round.
    let constant: &[u8] = &[0x48, 0xb8, 0x75, 0x73, 0x5f, 0x61, 0x73, 0x63, 0x69, 0x69];
    let compares: [&[u8]; 2] = [&[0x48, 0x39, 0x44, 0x24, 5], &[0x48, 0x3b, 0x44, 0x24, 5]];
    for compare in compares {
        let found = last_of(&[constant, compare]);
        let flags_if_unwritten = |from: u64| {
            let (mut registers, mut memory) = (Registers::default(), Unwritten::default());
            memory.insert(from, 0x108 - from);
            let access = Access { address: 0x100, size: 8, write: false };
            found.apply(0x1000, &[access], &mut registers, &mut memory);
            registers.flags()
        };
        assert_eq!(flags_if_unwritten(0x106) & (ZERO | CARRY), CARRY);
        assert_eq!(flags_if_unwritten(0x100) & (ZERO | CARRY), ZERO | CARRY);
        assert_eq!(flags_if_unwritten(0x108), 0);
    }
}

#[test]
fn of_two_conditions_the_one_that_is_known_decides() {
    // sete cl, of flags that hang on what nobody wrote; or cl,al; jne
    let mut registers = Registers::default();
    registers.set_flags(ZERO, ZERO, origin(1));
    let mut apply = |code: &[u8]| {
        bitwise(code).apply(0x1000, &[], &mut registers, &mut Unwritten::default());
        registers.flags() & ZERO != 0
    };
    apply(&[0x0f, 0x94, 0xc1]);
    assert!(apply(&[0x84, 0xc9]), "test cl,cl: alone it is used");
    assert!(!apply(&[0x08, 0xc1]));
}
