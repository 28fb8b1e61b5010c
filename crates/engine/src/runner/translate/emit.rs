//! A very small assembler: just the instruction forms that translations are made of.
//!
//! It writes into a buffer that will be copied to a known address, so that displacements are
//! final at once. The general encoder of iced-x86 is kept off this path for speed; the tests
//! check every form against its decoder.

use crate::runner::cpu::reg::{R8, RBP, RSP};

/// A condition code as the processor numbers it (`0` overflow … `4` equal, `5` not equal …).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Condition(pub u8);

impl Condition {
    /// Below, without a sign.
    pub const BELOW: Self = Self(2);
    /// Below or equal, without a sign.
    pub const BELOW_OR_EQUAL: Self = Self(6);
    /// Equal, zero.
    pub const EQUAL: Self = Self(4);
    /// Not equal, not zero.
    pub const NOT_EQUAL: Self = Self(5);
}

/// Machine code under construction for one address.
pub struct Emit {
    base: u64,
    bytes: Vec<u8>,
}

/// A displacement of one byte that is filled in later.
#[derive(Clone, Copy)]
pub struct ShortHole(usize);

/// A 32-bit displacement that is not known yet.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Hole(usize);

impl Emit {
    /// Code that will stand at `base`.
    pub fn at(base: u64) -> Self {
        Self { base, bytes: Vec::with_capacity(1024) }
    }

    /// Address of the next byte.
    pub fn here(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    /// Offset of the next byte.
    pub fn offset(&self) -> u32 {
        self.bytes.len() as u32
    }

    /// Everything written.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Everything written, to keep.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn imm32(&mut self, value: i32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// `rel32` from the end of the instruction, `after` bytes behind the displacement.
    fn rel32(&mut self, target: u64, after: u64) {
        let end = self.here() + 4 + after;
        let distance = target.wrapping_sub(end) as i64;
        debug_assert_eq!(distance, i64::from(distance as i32), "target out of reach");
        self.imm32(distance as i32);
    }

    fn rex(wide: bool, register: u8, base: u8) -> u8 {
        0x40 | u8::from(wide) << 3 | (register >> 3) << 2 | base >> 3
    }

    fn rex_if_needed(&mut self, wide: bool, register: u8, base: u8) {
        let rex = Self::rex(wide, register, base);
        if rex != 0x40 {
            self.bytes.push(rex);
        }
    }

    /// ModRM (and SIB) for `[base + displacement]`.
    fn memory(&mut self, register: u8, base: u8, displacement: i32) {
        let field = (register & 7) << 3;
        let low = base & 7;
        let mode = match displacement {
            0 if low != RBP => 0,
            -128..=127 => 1,
            _ => 2,
        };
        self.bytes.push(mode << 6 | field | low);
        if low == RSP {
            self.bytes.push(0x24);
        }
        match mode {
            0 => {}
            1 => self.bytes.push(displacement as u8),
            _ => self.imm32(displacement),
        }
    }

    /// `mov [cell], register` (64 bits).
    pub fn store_cell(&mut self, cell: u64, register: u8) {
        self.raw(&[Self::rex(true, register, 0), 0x89, 0x05 | (register & 7) << 3]);
        self.rel32(cell, 0);
    }

    /// `mov register, [cell]` (64 bits).
    pub fn load_cell(&mut self, register: u8, cell: u64) {
        self.raw(&[Self::rex(true, register, 0), 0x8b, 0x05 | (register & 7) << 3]);
        self.rel32(cell, 0);
    }

    /// `mov dword [cell], value`.
    pub fn store_cell_imm32(&mut self, cell: u64, value: u32) {
        self.raw(&[0xc7, 0x05]);
        self.rel32(cell, 4);
        self.imm32(value as i32);
    }

    /// `mov register, value`, in its shortest form. Leaves flags alone.
    pub fn load_constant(&mut self, register: u8, value: u64) {
        if u32::try_from(value).is_ok() {
            self.rex_if_needed(false, 0, register);
            self.bytes.push(0xb8 | register & 7);
            self.imm32(value as i32);
        } else if i64::from(value as i32) as u64 == value {
            self.raw(&[Self::rex(true, 0, register), 0xc7, 0xc0 | register & 7]);
            self.imm32(value as i32);
        } else {
            self.raw(&[Self::rex(true, 0, register), 0xb8 | register & 7]);
            self.raw(&value.to_le_bytes());
        }
    }

    /// `mov to, from` (64 bits).
    pub fn copy(&mut self, to: u8, from: u8) {
        self.raw(&[Self::rex(true, from, to), 0x89, 0xc0 | (from & 7) << 3 | to & 7]);
    }

    /// `mov register, [base + displacement]` (64 bits).
    pub fn load(&mut self, register: u8, base: u8, displacement: i32) {
        self.raw(&[Self::rex(true, register, base), 0x8b]);
        self.memory(register, base, displacement);
    }

    /// `mov [base + displacement], register` (64 bits).
    pub fn store(&mut self, base: u8, displacement: i32, register: u8) {
        self.raw(&[Self::rex(true, register, base), 0x89]);
        self.memory(register, base, displacement);
    }

    /// `mov dword [base + displacement], value`.
    pub fn store_imm32(&mut self, base: u8, displacement: i32, value: u32) {
        self.rex_if_needed(false, 0, base);
        self.bytes.push(0xc7);
        self.memory(0, base, displacement);
        self.imm32(value as i32);
    }

    /// `lea register, [base + displacement]`.
    pub fn lea(&mut self, register: u8, base: u8, displacement: i32) {
        self.raw(&[Self::rex(true, register, base), 0x8d]);
        self.memory(register, base, displacement);
    }

    /// `lea register, [base + index]`; `index` is not rsp.
    pub fn lea_sum(&mut self, register: u8, base: u8, index: u8) {
        debug_assert_ne!(index, RSP);
        let rex = Self::rex(true, register, base) | (index >> 3) << 1;
        // Mode 1 with a zero byte: mode 0 has no form with rbp or r13 as the base.
        let field = (register & 7) << 3;
        self.raw(&[rex, 0x8d, 0x44 | field, (index & 7) << 3 | base & 7, 0]);
    }

    /// `lea register, [base + index * scale + displacement]`; `index` is not rsp.
    pub fn lea_scaled(
        &mut self,
        register: u8,
        base: Option<u8>,
        index: u8,
        scale: u8,
        displacement: i32,
    ) {
        self.bytes.push(Self::rex(true, register, base.unwrap_or(0)) | (index >> 3) << 1);
        self.bytes.push(0x8d);
        self.sum(register, base, index, scale, displacement);
    }

    /// ModRM and SIB for `[base + index * scale + displacement]`; `index` is not rsp.
    fn sum(&mut self, register: u8, base: Option<u8>, index: u8, scale: u8, displacement: i32) {
        debug_assert_ne!(index, RSP);
        // Without a base, mode 0 with base field 5 means a bare 32-bit displacement.
        let low = base.map_or(RBP, |base| base & 7);
        let mode = match displacement {
            _ if base.is_none() => 0,
            0 if low != RBP => 0,
            -128..=127 => 1,
            _ => 2,
        };
        let sib = (scale.trailing_zeros() as u8) << 6 | (index & 7) << 3 | low;
        self.raw(&[mode << 6 | (register & 7) << 3 | 4, sib]);
        match mode {
            0 if base.is_some() => {}
            1 => self.bytes.push(displacement as u8),
            _ => self.imm32(displacement),
        }
    }

    /// `push qword [literal]`, the literal's place not known yet.
    pub fn push_hole(&mut self) -> Hole {
        self.raw(&[0xff, 0x35]);
        self.hole()
    }

    /// `push value`, sign-extended to 64 bits.
    pub fn push_imm32(&mut self, value: i32) {
        self.bytes.push(0x68);
        self.imm32(value);
    }

    /// `pext to, from, [cell]`: the bits that a mask in memory selects. Leaves flags alone.
    pub fn select_bits(&mut self, to: u8, from: u8, cell: u64) {
        let extension = u8::from(to < 8) << 7 | 0x62;
        self.raw(&[0xc4, extension, 0x82 | (!from & 15) << 3, 0xf5, 0x05 | (to & 7) << 3]);
        self.rel32(cell, 0);
    }

    /// `mov r32, [index * 8 + table]`, with a table below 2 GiB.
    pub fn load_word(&mut self, to: u8, index: u8, table: u64) {
        self.bytes.push(Self::rex(false, to, 0) | (index >> 3) << 1);
        self.bytes.push(0x8b);
        let table = i32::try_from(table).expect("tables lie below 2 GiB");
        self.sum(to, None, index, 8, table);
    }

    /// `shrx to, from, count`: leaves flags alone.
    pub fn shift_right(&mut self, to: u8, from: u8, count: u8) {
        // VEX with R and B inverted, map 0F38, W and the count in vvvv, pp = F2.
        let extension = (!to >> 3 & 1) << 7 | 1 << 6 | (!from >> 3 & 1) << 5;
        self.raw(&[0xc4, extension | 2, 0x80 | (!count & 15) << 3 | 3, 0xf7]);
        self.bytes.push(0xc0 | (to & 7) << 3 | from & 7);
    }

    /// `mulx high, low, by`: the product of rdx and `by`. Leaves flags alone.
    pub fn multiply(&mut self, high: u8, low: u8, by: u8) {
        let extension = (!high >> 3 & 1) << 7 | 1 << 6 | (!by >> 3 & 1) << 5;
        self.raw(&[0xc4, extension | 2, 0x80 | (!low & 15) << 3 | 3, 0xf6]);
        self.bytes.push(0xc0 | (high & 7) << 3 | by & 7);
    }

    /// Compares 1, 2, 4 or 8 bytes at `[base + index + displacement]` with zero; `index` is not rsp.
    pub fn compare_sum(&mut self, base: u8, index: u8, displacement: i32, bytes: u8) {
        self.compare_prefix(bytes, Self::rex(bytes == 8, 0, base) | (index >> 3) << 1);
        self.sum(7, Some(base), index, 1, displacement);
        self.bytes.push(0);
    }

    /// Compares 1, 2, 4 or 8 bytes at `[base + displacement]` with zero.
    pub fn compare_at(&mut self, base: u8, displacement: i32, bytes: u8) {
        self.compare_prefix(bytes, Self::rex(bytes == 8, 0, base));
        self.memory(7, base, displacement);
        self.bytes.push(0);
    }

    fn compare_prefix(&mut self, bytes: u8, rex: u8) {
        if bytes == 2 {
            self.bytes.push(0x66);
        }
        self.raw(&[rex, if bytes == 1 { 0x80 } else { 0x83 }]);
    }

    /// Loads 1, 2, 4 or 8 bytes at `[base + displacement]`, extended with zeros.
    pub fn load_bytes(&mut self, to: u8, base: u8, displacement: i32, bytes: u8) {
        self.load_prefix(bytes, Self::rex(bytes == 8, to, base));
        self.memory(to, base, displacement);
    }

    /// Loads 1, 2, 4 or 8 bytes at `[base + index + displacement]`, extended with zeros; `index` is
    /// not rsp.
    pub fn load_sum(&mut self, to: u8, base: u8, index: u8, displacement: i32, bytes: u8) {
        self.load_prefix(bytes, Self::rex(bytes == 8, to, base) | (index >> 3) << 1);
        self.sum(to, Some(base), index, 1, displacement);
    }

    fn load_prefix(&mut self, bytes: u8, rex: u8) {
        self.bytes.push(rex);
        match bytes {
            1 => self.raw(&[0x0f, 0xb6]),
            2 => self.raw(&[0x0f, 0xb7]),
            _ => self.bytes.push(0x8b),
        }
    }

    /// `movzx register, byte [index + table]`, with a table below 2 GiB.
    pub fn load_table_byte(&mut self, to: u8, index: u8, table: u64) {
        let table = i32::try_from(table).expect("tables lie below 2 GiB");
        self.load_bytes(to, index, table, 1);
    }

    /// `cmp one, other` (64 bits).
    pub fn compare_registers(&mut self, one: u8, other: u8) {
        self.raw(&[Self::rex(true, other, one), 0x39, 0xc0 | (other & 7) << 3 | one & 7]);
    }

    /// `rdfsbase register` or `rdgsbase register`.
    pub fn segment_base(&mut self, register: u8, gs: bool) {
        let rex = Self::rex(true, 0, register);
        self.raw(&[0xf3, rex, 0x0f, 0xae, 0xc0 | u8::from(gs) << 3 | register & 7]);
    }

    /// `jmp register`.
    pub fn jump_register(&mut self, register: u8) {
        debug_assert!(register < R8);
        self.raw(&[0xff, 0xe0 | register]);
    }

    /// `mov register, [index * 8 + table]`, both registers below r8 and a table below 2 GiB.
    pub fn load_scaled(&mut self, register: u8, index: u8, table: u64) {
        debug_assert!(register < 8 && index < 8 && index != RSP);
        self.raw(&[0x48, 0x8b, 0x04 | register << 3, 0xc5 | index << 3]);
        self.imm32(i32::try_from(table).expect("tables lie below 2 GiB"));
    }

    /// `mov index, dword [index * 4 + table]` with a register below r8 and a table below 2 GiB.
    pub fn load_entry(&mut self, index: u8, table: u64) {
        debug_assert!(index < 8 && index != RSP);
        self.raw(&[0x8b, 0x04 | index << 3, 0x85 | index << 3]);
        self.imm32(i32::try_from(table).expect("tables lie below 2 GiB"));
    }

    /// `jmp [cell]`.
    pub fn jump_cell(&mut self, cell: u64) {
        self.raw(&[0xff, 0x25]);
        self.rel32(cell, 0);
    }

    /// `cmp [cell], register` (64 bits).
    pub fn compare_cell(&mut self, cell: u64, register: u8) {
        self.raw(&[Self::rex(true, register, 0), 0x39, 0x05 | (register & 7) << 3]);
        self.rel32(cell, 0);
    }

    /// `cmp qword [cell], value`.
    pub fn compare_cell_imm32(&mut self, cell: u64, value: i32) {
        self.raw(&[0x48, 0x81, 0x3d]);
        self.rel32(cell, 4);
        self.imm32(value);
    }

    /// `cmp [base + displacement], register` (64 bits).
    pub fn compare(&mut self, base: u8, displacement: i32, register: u8) {
        self.raw(&[Self::rex(true, register, base), 0x39]);
        self.memory(register, base, displacement);
    }

    /// `cmp register, value` (64 bits).
    pub fn compare_constant(&mut self, register: u8, value: i32) {
        self.raw(&[Self::rex(true, 0, register), 0x81, 0xf8 | register & 7]);
        self.imm32(value);
    }

    /// `cmp qword [base + displacement], value`.
    pub fn compare_imm32(&mut self, base: u8, displacement: i32, value: i32) {
        self.raw(&[Self::rex(true, 0, base), 0x81]);
        self.memory(7, base, displacement);
        self.imm32(value);
    }

    /// `cmp register, value` (32 bits).
    pub fn compare_low(&mut self, register: u8, value: i32) {
        self.rex_if_needed(false, 0, register);
        self.raw(&[0x81, 0xf8 | register & 7]);
        self.imm32(value);
    }

    /// `cmp dword [base + displacement], value`.
    pub fn compare_dword(&mut self, base: u8, displacement: i32, value: i32) {
        self.rex_if_needed(false, 0, base);
        self.bytes.push(0x81);
        self.memory(7, base, displacement);
        self.imm32(value);
    }

    /// `cmp dword [base + index * scale + displacement], value`; `index` is not rsp.
    pub fn compare_dword_sum(
        &mut self,
        base: Option<u8>,
        index: u8,
        scale: u8,
        displacement: i32,
        value: i32,
    ) {
        self.bytes.push(Self::rex(false, 0, base.unwrap_or(0)) | (index >> 3) << 1);
        self.bytes.push(0x81);
        self.sum(7, base, index, scale, displacement);
        self.imm32(value);
    }

    /// `dec qword [cell]`.
    pub fn decrement_cell(&mut self, cell: u64) {
        self.raw(&[0x48, 0xff, 0x0d]);
        self.rel32(cell, 0);
    }

    /// `mov qword [base + displacement], value`, sign-extended.
    pub fn store_wide_imm32(&mut self, base: u8, displacement: i32, value: i32) {
        self.raw(&[Self::rex(true, 0, base), 0xc7]);
        self.memory(0, base, displacement);
        self.imm32(value);
    }

    /// `call` to a place not known yet.
    pub fn call_hole(&mut self) -> Hole {
        self.bytes.push(0xe8);
        self.hole()
    }

    /// `jmp target`, with the address of its displacement.
    pub fn jump(&mut self, target: u64) -> u64 {
        self.bytes.push(0xe9);
        let patch = self.here();
        self.rel32(target, 0);
        patch
    }

    /// `jmp` to a place not known yet.
    pub fn jump_hole(&mut self) -> Hole {
        self.bytes.push(0xe9);
        self.hole()
    }

    /// `jcc` to a place not known yet.
    pub fn branch_hole(&mut self, condition: Condition) -> Hole {
        self.raw(&[0x0f, 0x80 | condition.0]);
        self.hole()
    }

    /// `jcc target`.
    pub fn branch(&mut self, condition: Condition, target: u64) {
        self.raw(&[0x0f, 0x80 | condition.0]);
        self.rel32(target, 0);
    }

    /// `jrcxz` over the next `bytes`.
    pub fn jump_if_rcx_zero(&mut self, bytes: i8) {
        self.raw(&[0xe3, bytes as u8]);
    }

    /// `jrcxz` to a place not known yet that is close.
    pub fn jump_if_rcx_zero_hole(&mut self) -> ShortHole {
        self.raw(&[0xe3, 0]);
        ShortHole(self.bytes.len() - 1)
    }

    /// Fills a hole with the way to the next byte.
    pub fn fill_short(&mut self, hole: ShortHole) {
        let distance = self.bytes.len() - hole.0 - 1;
        self.bytes[hole.0] = i8::try_from(distance).expect("close by") as u8;
    }

    /// `jmp` over the next `bytes`.
    pub fn jump_short(&mut self, bytes: i8) {
        self.raw(&[0xeb, bytes as u8]);
    }

    /// `not register`: leaves flags alone.
    pub fn complement(&mut self, register: u8) {
        self.raw(&[Self::rex(true, 0, register), 0xf7, 0xd0 | register & 7]);
    }

    /// `mov [base + displacement], register` (32 bits).
    pub fn store_word(&mut self, base: u8, displacement: i32, register: u8) {
        self.rex_if_needed(false, register, base);
        self.bytes.push(0x89);
        self.memory(register, base, displacement);
    }

    fn hole(&mut self) -> Hole {
        self.imm32(0);
        Hole(self.bytes.len() - 4)
    }

    /// Address of a hole's displacement; the cache lies below 4 GiB.
    pub fn hole_place(&self, hole: Hole) -> u32 {
        self.base as u32 + hole.0 as u32
    }

    /// Fills a hole with the way to an address.
    pub fn fill_to(&mut self, hole: Hole, target: u64) {
        let end = self.base + hole.0 as u64 + 4;
        let distance = target.wrapping_sub(end) as i32;
        self.bytes[hole.0..hole.0 + 4].copy_from_slice(&distance.to_le_bytes());
    }

    /// Fills a hole with the way to the next byte.
    pub fn fill(&mut self, hole: Hole) {
        let distance = (self.bytes.len() - hole.0 - 4) as i32;
        self.bytes[hole.0..hole.0 + 4].copy_from_slice(&distance.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};

    const BASE: u64 = 0x7400_0000;
    const CELL: u64 = 0x7300_0010;

    /// What iced-x86 says the emitted bytes are.
    fn disassemble(write: impl FnOnce(&mut Emit)) -> String {
        let mut emit = Emit::at(BASE);
        write(&mut emit);
        let mut decoder = Decoder::with_ip(64, emit.bytes(), BASE, DecoderOptions::NONE);
        let mut formatter = IntelFormatter::new();
        formatter.options_mut().set_rip_relative_addresses(false);
        formatter.options_mut().set_space_after_operand_separator(true);
        let mut lines = Vec::new();
        while decoder.can_decode() {
            let mut line = String::new();
            formatter.format(&decoder.decode(), &mut line);
            lines.push(line);
        }
        lines.join("; ")
    }

    #[test]
    fn forms_are_what_they_say() {
        let cases: Vec<(String, &str)> = vec![
            (disassemble(|e| e.store_cell(CELL, 9)), "mov [73000010h], r9"),
            (disassemble(|e| e.load_cell(2, CELL)), "mov rdx, [73000010h]"),
            (disassemble(|e| e.store_cell_imm32(CELL, 7)), "mov dword ptr [73000010h], 7"),
            (disassemble(|e| e.load_constant(1, 5)), "mov ecx, 5"),
            (disassemble(|e| e.load_constant(8, 5)), "mov r8d, 5"),
            (disassemble(|e| e.load_constant(1, u64::MAX)), "mov rcx, 0FFFFFFFFFFFFFFFFh"),
            (disassemble(|e| e.load_constant(9, 1 << 40)), "mov r9, 10000000000h"),
            (disassemble(|e| e.copy(9, 1)), "mov r9, rcx"),
            (disassemble(|e| e.load(1, 4, 0)), "mov rcx, [rsp]"),
            (disassemble(|e| e.load(1, 13, 0)), "mov rcx, [r13]"),
            (disassemble(|e| e.store(12, 200, 15)), "mov [r12+0C8h], r15"),
            (disassemble(|e| e.store_imm32(8, 0, 3)), "mov dword ptr [r8], 3"),
            (disassemble(|e| e.lea(4, 4, 8)), "lea rsp, [rsp+8]"),
            (disassemble(|e| e.lea(1, 1, -1)), "lea rcx, [rcx-1]"),
            (disassemble(|e| e.lea_scaled(9, Some(13), 12, 4, -8)), "lea r9, [r13+r12*4-8]"),
            (disassemble(|e| e.lea_scaled(0, None, 3, 8, 16)), "lea rax, [rbx*8+10h]"),
            (disassemble(|e| e.lea_sum(1, 5, 10)), "lea rcx, [rbp+r10]"),
            (
                disassemble(|e| {
                    let hole = e.push_hole();
                    e.fill(hole);
                }),
                "push qword ptr [74000006h]",
            ),
            (disassemble(|e| e.push_imm32(-2)), "push 0FFFFFFFFFFFFFFFEh"),
            (disassemble(|e| e.select_bits(2, 1, CELL)), "pext rdx, rcx, [73000010h]"),
            (disassemble(|e| e.select_bits(1, 9, CELL)), "pext rcx, r9, [73000010h]"),
            (disassemble(|e| e.load_word(9, 9, 0x1000)), "mov r9d, [r9*8+1000h]"),
            (disassemble(|e| e.jump_register(2)), "jmp rdx"),
            (disassemble(|e| e.load_scaled(0, 2, CELL)), "mov rax, [rdx*8+73000010h]"),
            (disassemble(|e| e.multiply(1, 2, 6)), "mulx rcx, rdx, rsi"),
            (disassemble(|e| e.multiply(12, 9, 11)), "mulx r12, r9, r11"),
            (disassemble(|e| e.complement(1)), "not rcx"),
            (disassemble(|e| e.complement(9)), "not r9"),
            (disassemble(|e| e.store_word(2, 8, 1)), "mov [rdx+8], ecx"),
            (disassemble(|e| e.store_word(2, 0, 9)), "mov [rdx], r9d"),
            (disassemble(|e| e.shift_right(1, 1, 9)), "shrx rcx, rcx, r9"),
            (disassemble(|e| e.shift_right(12, 4, 3)), "shrx r12, rsp, rbx"),
            (disassemble(|e| e.select_bits(9, 9, CELL)), "pext r9, r9, [73000010h]"),
            (disassemble(|e| e.compare_sum(1, 9, 0, 1)), "cmp byte ptr [rcx+r9], 0"),
            (disassemble(|e| e.compare_sum(13, 1, 0, 2)), "cmp word ptr [r13+rcx], 0"),
            (disassemble(|e| e.compare_sum(8, 9, -8, 4)), "cmp dword ptr [r8+r9-8], 0"),
            (disassemble(|e| e.compare_sum(5, 3, 300, 8)), "cmp qword ptr [rbp+rbx+12Ch], 0"),
            (disassemble(|e| e.compare_at(11, 300, 2)), "cmp word ptr [r11+12Ch], 0"),
            (disassemble(|e| e.compare_constant(10, 300)), "cmp r10, 12Ch"),
            (disassemble(|e| e.load_bytes(9, 5, 0, 1)), "movzx r9d, byte ptr [rbp]"),
            (disassemble(|e| e.load_bytes(1, 12, 8, 2)), "movzx ecx, word ptr [r12+8]"),
            (disassemble(|e| e.load_bytes(8, 0, 16, 4)), "mov r8d, [rax+10h]"),
            (disassemble(|e| e.load_bytes(8, 9, 24, 8)), "mov r8, [r9+18h]"),
            (disassemble(|e| e.load_sum(1, 1, 9, 0, 1)), "movzx ecx, byte ptr [rcx+r9]"),
            (disassemble(|e| e.load_sum(1, 1, 13, 0, 2)), "movzx ecx, word ptr [rcx+r13]"),
            (disassemble(|e| e.load_sum(1, 1, 5, 3, 4)), "mov ecx, [rcx+rbp+3]"),
            (disassemble(|e| e.load_sum(9, 13, 0, 0, 8)), "mov r9, [r13+rax]"),
            (disassemble(|e| e.load_table_byte(9, 9, CELL)), "movzx r9d, byte ptr [r9+73000010h]"),
            (disassemble(|e| e.compare_registers(9, 2)), "cmp r9, rdx"),
            (disassemble(|e| e.segment_base(9, false)), "rdfsbase r9"),
            (disassemble(|e| e.segment_base(3, true)), "rdgsbase rbx"),
            (disassemble(|e| e.jump_cell(CELL)), "jmp qword ptr [73000010h]"),
            (disassemble(|e| e.compare_cell(CELL, 1)), "cmp [73000010h], rcx"),
            (disassemble(|e| e.compare_cell_imm32(CELL, 9)), "cmp qword ptr [73000010h], 9"),
            (disassemble(|e| e.compare(4, 0, 1)), "cmp [rsp], rcx"),
            (disassemble(|e| e.compare_imm32(4, 0, 9)), "cmp qword ptr [rsp], 9"),
            (disassemble(|e| e.decrement_cell(CELL)), "dec qword ptr [73000010h]"),
            (disassemble(|e| e.load_entry(1, CELL)), "mov ecx, [rcx*4+73000010h]"),
            (disassemble(|e| e.store_wide_imm32(4, 0, 9)), "mov qword ptr [rsp], 9"),
            (
                disassemble(|e| {
                    let hole = e.call_hole();
                    e.fill(hole);
                }),
                "call 0000000074000005h",
            ),
            (disassemble(|e| assert_eq!(e.jump(BASE), BASE + 1)), "jmp 0000000074000000h"),
            (disassemble(|e| e.branch(Condition::EQUAL, BASE)), "je 0000000074000000h"),
        ];
        for (got, expected) in cases {
            assert_eq!(got, expected);
        }
    }

    #[test]
    fn a_filled_hole_leads_to_the_next_byte() {
        let text = disassemble(|e| {
            let hole = e.branch_hole(Condition::NOT_EQUAL);
            e.raw(&[0x90]);
            e.fill(hole);
            e.raw(&[0x90]);
        });
        assert_eq!(text, "jne 0000000074000007h; nop; nop");
    }
}
