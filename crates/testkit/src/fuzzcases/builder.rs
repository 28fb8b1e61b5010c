//! A case under construction: which registers already have a value that something relies on,
//! what is patched into the random state, and how memory operands are given the address they
//! should have.

use super::layout::{FS_BASE, PAST_FILE, READ_ONLY, SCRATCH, SCRATCH_SIZE, UNMAPPED};
use super::layout::{STATE_IN, STATE_YMM};
use crate::random::Random;
use iced_x86::{Instruction, Register};

/// Numbers of the general registers that instructions use by themselves.
pub const RAX: usize = 0;
pub const RCX: usize = 1;
pub const RDX: usize = 2;
pub const RBX: usize = 3;
pub const RSP: usize = 4;
pub const RBP: usize = 5;
pub const RSI: usize = 6;
pub const RDI: usize = 7;

/// Bytes put into the random state before a case runs.
#[derive(Clone, Debug)]
pub struct Patch {
    pub address: u64,
    pub bytes: Vec<u8>,
}

/// Bytes left out of the comparison.
#[derive(Clone, Copy, Debug)]
pub struct Mask {
    pub address: u64,
    pub length: u64,
}

pub struct InstructionBuilder {
    pub random: Random,
    /// Registers that must hold a certain value when the instruction starts.
    pub fixed: [Option<u64>; 16],
    pub patches: Vec<Patch>,
    pub masks: Vec<Mask>,
    pub flags: u32,
    /// Whether addresses are computed in 32 bits (67h prefix).
    pub narrow: bool,
    /// Where the explicit memory operand lies.
    pub spot: u64,
}

impl InstructionBuilder {
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let narrow = random.chance(1, 10);
        Self {
            random,
            fixed: [None; 16],
            patches: Vec::new(),
            masks: Vec::new(),
            flags: 0,
            narrow,
            spot: SCRATCH + 0x800,
        }
    }

    /// Makes a register start with `value`; none if it must already hold another.
    pub fn fix(&mut self, register: usize, value: u64) -> Option<()> {
        match self.fixed[register] {
            Some(already) if already != value => None,
            _ => {
                self.fixed[register] = Some(value);
                Some(())
            }
        }
    }

    /// Like `fix`, but for an address register: in 32-bit addressing the upper half is noise.
    pub fn fix_pointer(&mut self, register: usize, address: u64) -> Option<()> {
        let noise = if self.narrow { self.random.biased() << 32 } else { 0 };
        if self.narrow && address >> 32 != 0 {
            return None;
        }
        self.fix(register, address | noise)
    }

    pub fn patch(&mut self, address: u64, bytes: &[u8]) {
        let end = address.saturating_add(bytes.len() as u64);
        let in_scratch = address >= SCRATCH && end <= SCRATCH + SCRATCH_SIZE;
        let in_state = address >= STATE_IN && end <= STATE_IN + 0x1000;
        if in_scratch || in_state {
            self.patches.push(Patch { address, bytes: bytes.to_vec() });
        }
    }

    pub fn patch_vector(&mut self, number: usize, bytes: &[u8]) {
        self.patch(STATE_IN + STATE_YMM + 32 * number as u64, bytes);
    }

    pub fn mask(&mut self, address: u64, length: u64) {
        self.masks.push(Mask { address, length });
    }

    /// An address for an operand of `size` bytes: mostly good, sometimes where it faults.
    pub fn choose_spot(&mut self, size: u64, aligned: bool) -> u64 {
        let size = size.max(1);
        let align = if aligned { size.next_power_of_two().min(64) } else { 1 };
        let end = SCRATCH + SCRATCH_SIZE;
        let inside = SCRATCH + self.random.below(SCRATCH_SIZE - size) / align * align;
        match self.random.below(40) {
            0 => end - self.random.below(size + 1),
            1 => SCRATCH - self.random.below(size + 1),
            2 => SCRATCH + SCRATCH_SIZE / 2 - self.random.below(size + 1),
            3 => READ_ONLY + self.random.below(0x1000 - size.min(0xf00)) / align * align,
            4 => PAST_FILE + self.random.below(0x1000 - size.min(0xf00)) / align * align,
            5 => {
                let elsewhere = [
                    0,
                    8,
                    UNMAPPED,
                    0x8000_0000_0000,
                    0xdead_beef_0000_0000,
                    0x7fff_ffff_fff8,
                    0xffff_8000_0000_0000,
                    u64::MAX - 3,
                ];
                self.random.pick(&elsewhere)
            }
            6 | 7 => SCRATCH + self.random.below(SCRATCH_SIZE - size),
            8 => end - size,
            _ => inside,
        }
    }

    /// A stack pointer with room on both sides, or at an edge.
    pub fn choose_stack(&mut self) -> u64 {
        let middle = SCRATCH + SCRATCH_SIZE / 2 + 8 * self.random.below(32);
        match self.random.below(40) {
            0 => SCRATCH + self.random.below(9),
            1 => SCRATCH + SCRATCH_SIZE - self.random.below(9),
            2 => READ_ONLY + 0x800,
            3 => self.random.pick(&[0, UNMAPPED, PAST_FILE + 64, 0x8000_0000_0000, u64::MAX]),
            4..=7 => middle + self.random.below(8),
            _ => middle,
        }
    }

    /// Gives the memory operand of `instruction` some addressing form that yields `spot`.
    pub fn address(&mut self, instruction: &mut Instruction, spot: u64) -> Option<()> {
        self.spot = spot;
        let wanted = spot.wrapping_sub(self.choose_segment(instruction));
        if self.narrow && wanted >> 32 != 0 {
            return None;
        }
        match self.random.below(8) {
            0 if wanted < 0x7000_0000 => self.address_by_rip(instruction, wanted),
            1 => self.address_by_displacement(instruction, wanted),
            _ => self.address_by_registers(instruction, wanted),
        }
    }

    /// Sometimes sets a segment prefix; returns the segment's base.
    fn choose_segment(&mut self, instruction: &mut Instruction) -> u64 {
        let (segment, base) = match self.random.below(60) {
            0..=4 => (Register::FS, FS_BASE),
            5 => (Register::GS, 0),
            6 => (self.random.pick(&[Register::DS, Register::CS, Register::ES, Register::SS]), 0),
            _ => return 0,
        };
        instruction.set_segment_prefix(segment);
        base
    }

    fn address_by_rip(&mut self, instruction: &mut Instruction, wanted: u64) -> Option<()> {
        let base = if self.narrow { Register::EIP } else { Register::RIP };
        instruction.set_memory_base(base);
        instruction.set_memory_displacement64(wanted);
        instruction.set_memory_displ_size(if self.narrow { 4 } else { 8 });
        Some(())
    }

    fn address_by_displacement(&mut self, instruction: &mut Instruction, to: u64) -> Option<()> {
        self.set_displacement(instruction, to, true)
    }

    fn address_by_registers(&mut self, instruction: &mut Instruction, wanted: u64) -> Option<()> {
        let base = self.random.chance(9, 10).then(|| self.random.below(16) as usize);
        let index = self.random.chance(1, 2).then(|| self.random.below(16) as usize);
        let index = index.filter(|number| *number != RSP);
        let scale = 1 << self.random.below(4);
        let mut rest = wanted;
        if let Some(number) = index {
            let value = self.small_index(number);
            self.fix(number, value)?;
            instruction.set_memory_index(self.pointer_register(number));
            instruction.set_memory_index_scale(scale);
            rest = rest.wrapping_sub(value.wrapping_mul(u64::from(scale)));
        }
        let Some(number) = base else {
            return self.set_displacement(instruction, rest, true);
        };
        instruction.set_memory_base(self.pointer_register(number));
        if let Some(value) = self.fixed[number] {
            return self.set_displacement(instruction, rest.wrapping_sub(value), false);
        }
        let displacement = match self.random.below(3) {
            0 => 0,
            1 => i64::from(self.random.word() as i8),
            _ => i64::from(self.random.word() as i32),
        };
        rest = rest.wrapping_sub(displacement as u64);
        let noise = if self.narrow { self.random.biased() << 32 } else { 0 };
        let value = if self.narrow { u64::from(rest as u32) | noise } else { rest };
        self.fix(number, value)?;
        self.set_displacement(instruction, displacement as u64, false)
    }

    fn small_index(&mut self, number: usize) -> u64 {
        if let Some(value) = self.fixed[number] {
            return value;
        }
        match self.random.below(4) {
            0 => self.random.below(64),
            1 => self.random.below(64).wrapping_neg(),
            2 => self.random.below(0x1_0000_0000),
            _ => u64::from(self.random.word() as u16),
        }
    }

    /// The register as an address register of this case's address size.
    pub fn pointer_register(&self, number: usize) -> Register {
        (if self.narrow { Register::EAX } else { Register::RAX }) + number as u32
    }

    fn set_displacement(
        &self,
        instruction: &mut Instruction,
        value: u64,
        alone: bool,
    ) -> Option<()> {
        let short = value as i32;
        let (value, size) = if self.narrow {
            (u64::from(short as u32), 4)
        } else if i64::from(short) == value as i64 {
            (value, 8)
        } else {
            return None;
        };
        instruction.set_memory_displacement64(value);
        let size = match short {
            0 if !alone => 0,
            -128..=127 if !alone => 1,
            _ => size,
        };
        instruction.set_memory_displ_size(size);
        Some(())
    }
}
