//! Calls of functions with contracts: their translations note what they are given, and test the bytes that
//! their arguments tell. Where a test finds something, here or at a vector that such a function reads
//! ahead, the contract decides.

use super::{BESIDE, FREED, Heap};
use crate::layout::BLANK_BASE;
use crate::runner::contracts::Guest;
use crate::runner::cpu::reg::{RCX, RDI, RDX, RSI, RSP};
use crate::runner::cpu::{self, Cpu};
use crate::runner::engine::Engine;
use crate::runner::screens::shadow::Table;
use crate::runner::screens::shadow::checks::Check;
use crate::runner::stops::arguments;
use crate::runner::translate::accesses::Form;
use crate::runner::translate::lower::Lower;
use contracts::{Contract, Deed};
use events::plan::GRANULE;
use events::shape::Segment;
use events::suspicion::{Access, Memory, Suspicion};
use std::mem::offset_of;

/// The registers of the arguments that contracts speak of.
const ARGUMENTS: [u8; 4] = [RDI, RSI, RDX, RCX];
/// Arguments that are noted.
const NOTED: usize = 3;
/// Bytes of code that a function with a contract has at most.
const LONGEST: u64 = 8 << 10;
/// Bytes that such a function pushes at most.
const DEEPEST: u64 = 256;

/// The call of a function with a contract, as translated code notes it.
#[repr(C)]
pub struct LibraryCall {
    /// rdi, rsi, rdx.
    arguments: [u64; NOTED],
    /// The stack pointer.
    stack: u64,
    /// The function.
    function: u64,
}

impl LibraryCall {
    /// None so far.
    pub const NONE: Self = Self { arguments: [0; NOTED], stack: 0, function: 0 };

    /// Whether an instruction belongs to it, by where it is and by the stack pointer.
    fn holds(&self, pc: u64, stack: u64) -> bool {
        let inside = pc.wrapping_sub(self.function) < LONGEST;
        inside && self.stack.wrapping_sub(stack) < DEEPEST
    }
}

/// The registers that must be left alone where a function with a contract begins.
pub const USED: u16 = 1 << RDI | 1 << RSI | 1 << RDX;

/// The tests of what a call is given.
pub fn checks(contract: &Contract) -> Vec<Check> {
    let mut checks: Vec<Check> = Vec::new();
    for probe in contract.probes() {
        let register = ARGUMENTS[usize::from(probe.argument) % ARGUMENTS.len()];
        let form = match probe.count.map(|count| ARGUMENTS[usize::from(count) % ARGUMENTS.len()]) {
            Some(count) => Form::Sum(Some(register), count, probe.width, -1),
            None => Form::Base(register, 0),
        };
        let check = Check { index: 0, form, segment: Segment::Flat, width: 1, keeps_flags: true };
        if !checks.contains(&check) {
            checks.push(check);
        }
    }
    checks
}

impl Lower<'_> {
    /// Notes what a function with a contract is given.
    pub(in crate::runner) fn note_library(&mut self) {
        let field = |offset: usize| cpu::field(offset_of!(Cpu, library) + offset);
        for (number, register) in ARGUMENTS.into_iter().take(NOTED).enumerate() {
            let cell = field(offset_of!(LibraryCall, arguments) + 8 * number);
            self.emit.store_cell(cell, register);
        }
        self.emit.store_cell(field(offset_of!(LibraryCall, stack)), RSP);
        let function = field(offset_of!(LibraryCall, function));
        self.emit.store_cell_imm32(function, self.superblock.pc as u32);
        self.emit.store_cell_imm32(function + 4, (self.superblock.pc >> 32) as u32);
    }
}

impl Engine {
    /// The contract that a function is screened by.
    pub fn screened_contract(&self, function: u64) -> Option<&'static Contract> {
        self.observed.screens.heap.as_ref()?.library.get(&function).copied()
    }

    /// A test has found something where a function with a contract may begin.
    pub fn look_at_library(&mut self, pc: u64) {
        if self.cpu.shadow != BLANK_BASE
            && let Some(contract) = self.screened_contract(pc)
        {
            self.look_at_call(pc, contract, arguments(&self.cpu));
        }
    }

    /// A function of the C library reads ahead: whether it is one with a contract, which then has decided.
    pub fn look_at_reader(&mut self, pc: u64) -> bool {
        let call = &self.cpu.library;
        if !call.holds(pc, self.cpu.registers.general[usize::from(RSP)]) {
            return false;
        }
        let ([first, second, third], function) = (call.arguments, call.function);
        let Some(contract) = self.screened_contract(function) else { return false };
        self.look_at_call(function, contract, [first, second, third, 0, 0, 0]);
        true
    }

    fn look_at_call(&mut self, function: u64, contract: &Contract, arguments: [u64; 6]) {
        let mut touched = Vec::new();
        contract.touched(arguments, &Guest(self), &mut touched);
        for one in touched.into_iter().filter(|one| one.deed != Deed::Decides) {
            let write = one.deed == Deed::Writes;
            self.look_at_range(function, (one.address, one.length), write);
        }
    }

    /// Bytes that are touched on behalf of the program.
    pub fn look_at_range(&mut self, pc: u64, (address, length): (u64, u64), write: bool) {
        let Some(heap) = &mut self.observed.screens.heap else { return };
        if let Some(memory) = heap.left_by(address, length) {
            let size = u32::try_from(length).unwrap_or(u32::MAX);
            let access = Access { address, size, write };
            self.suspect(pc, Suspicion::OutsideBlocks { access, memory });
        }
    }

    /// What the kernel has touched in a system call, which begins at `pc`.
    pub fn look_at_system_call(
        &mut self,
        pc: u64,
        (number, arguments): (u64, [u64; 6]),
        answer: i64,
    ) {
        if self.observed.screens.heap.is_none() || self.cpu.shadow == BLANK_BASE {
            return;
        }
        let (read, written) = crate::runner::buffers::touched(number, arguments, answer);
        for (ranges, write) in [(read, false), (written, true)] {
            for range in ranges {
                self.look_at_range(pc, (range.address, range.length), write);
            }
        }
    }
}

impl Heap {
    /// What bytes are that are not all of one block and not all outside of the heap.
    fn left_by(&mut self, address: u64, length: u64) -> Option<Memory> {
        let end = Some(address.saturating_add(length)).filter(|_| length > 0)?;
        if let Some(block) = self.block_of(address) {
            if end <= block.end {
                self.tire_of(end - 1);
                return None;
            }
            return Some(Memory::Beside);
        }
        match Table.bits(address, 1) {
            bits if bits & FREED != 0 => Some(Memory::Freed),
            bits if bits & BESIDE != 0 => Some(Memory::Beside),
            _ => self.live.range(address..end).next().map(|_| Memory::Beside),
        }
    }

    /// A byte whose last granule may be tested was touched rightly.
    fn tire_of(&mut self, byte: u64) {
        if Table.bits(byte, 1) != 0 && !(byte + 1).is_multiple_of(GRANULE) {
            self.tire(byte);
        }
    }
}
