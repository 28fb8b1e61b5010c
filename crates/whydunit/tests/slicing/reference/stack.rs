//! The stack pointer, followed by executing what little it takes: copies of registers and words of
//! memory, sums with constants. What else is stored or computed is not known. Every push, pop, call
//! and return tells where the stack pointer really is, and must agree.

use super::Access;
use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};
use std::collections::HashMap;

/// What general registers hold, as far as it is known.
pub type Registers = [Option<u64>; 16];

/// Registers of threads and words of memory.
#[derive(Default)]
pub struct Machine {
    threads: HashMap<u32, Registers>,
    words: HashMap<u64, u64>,
    factory: Option<InstructionInfoFactory>,
}

const RSP: usize = 4;
const RBP: usize = 5;

impl Machine {
    /// The stack pointer of a thread.
    pub fn stack(&self, thread: u32) -> Option<u64> {
        self.threads.get(&thread).and_then(|registers| registers[RSP])
    }

    /// All registers of a thread, to be given back later.
    pub fn registers(&mut self, thread: u32) -> &mut Registers {
        self.threads.entry(thread).or_default()
    }

    /// A signal handler of a thread begins.
    pub fn handler(&mut self, thread: u32, frame: u64) {
        *self.registers(thread) = Registers::default();
        self.registers(thread)[RSP] = Some(frame);
    }

    /// A thread has executed an instruction.
    pub fn execute(&mut self, thread: u32, instruction: &Instruction, accesses: &[Access]) {
        let mut registers = *self.registers(thread);
        let value = self.value(&registers, instruction, accesses);
        for (_, address, bytes) in accesses.iter().filter(|(write, ..)| *write) {
            for word in address - 7..address + bytes {
                self.words.remove(&word);
            }
        }
        let factory = self.factory.get_or_insert_with(InstructionInfoFactory::new);
        for used in factory.info(instruction).used_registers() {
            let full = used.register().full_register();
            let reads = matches!(used.access(), OpAccess::Read | OpAccess::CondRead);
            if full.is_gpr64() && !reads && full != Register::RSP {
                registers[full.number()] = None;
            }
        }
        moved_stack(&mut registers, instruction, accesses);
        match (instruction.op0_kind(), instruction.mnemonic()) {
            (_, Mnemonic::Leave) => {
                registers[RBP] = value;
                registers[RSP] = accesses.first().map(|(_, address, _)| address + 8);
            }
            (_, Mnemonic::Push) => self.store(accesses.last(), value),
            (OpKind::Memory, Mnemonic::Mov) => self.store(accesses.first(), value),
            (
                OpKind::Register,
                Mnemonic::Mov | Mnemonic::Lea | Mnemonic::Add | Mnemonic::Sub | Mnemonic::Pop,
            ) if instruction.op0_register().is_gpr64() => {
                registers[instruction.op0_register().number()] = value;
            }
            (OpKind::Register, _) if instruction.op0_register() == Register::RSP => {
                let written = !matches!(instruction.mnemonic(), Mnemonic::Cmp | Mnemonic::Test);
                registers[RSP] = registers[RSP].filter(|_| !written);
            }
            _ => {}
        }
        self.threads.insert(thread, registers);
    }

    /// What a copy copies, or what a sum is.
    fn value(
        &self,
        registers: &Registers,
        instruction: &Instruction,
        accesses: &[Access],
    ) -> Option<u64> {
        let of = |register: Register| {
            if register.is_gpr64() { registers[register.number()] } else { None }
        };
        let word = || self.words.get(&accesses.iter().find(|access| !access.0)?.1).copied();
        let source = if instruction.mnemonic() == Mnemonic::Push { 0 } else { 1 };
        match instruction.mnemonic() {
            Mnemonic::Leave | Mnemonic::Pop => word(),
            Mnemonic::Push | Mnemonic::Mov => match instruction.op_kind(source) {
                OpKind::Register => of(instruction.op_register(source)),
                OpKind::Memory => word(),
                _ => None,
            },
            Mnemonic::Lea if instruction.memory_index() == Register::None => Some(
                of(instruction.memory_base())?.wrapping_add(instruction.memory_displacement64()),
            ),
            Mnemonic::Add | Mnemonic::Sub => {
                let immediate = matches!(
                    instruction.op1_kind(),
                    OpKind::Immediate8to64 | OpKind::Immediate32to64
                );
                let by = immediate.then(|| instruction.immediate(1))?;
                let before = of(instruction.op0_register())?;
                let add = instruction.mnemonic() == Mnemonic::Add;
                Some(if add { before.wrapping_add(by) } else { before.wrapping_sub(by) })
            }
            _ => None,
        }
    }

    fn store(&mut self, access: Option<&Access>, value: Option<u64>) {
        if let (Some((true, address, 8)), Some(value)) = (access, value) {
            self.words.insert(*address, value);
        }
    }
}

/// What pushing, popping, calling and returning does.
fn moved_stack(registers: &mut Registers, instruction: &Instruction, accesses: &[Access]) {
    let by = i64::from(instruction.stack_pointer_increment());
    let access = if by < 0 { accesses.last() } else { accesses.first() };
    let (Some((_, address, _)), false) = (access, by == 0) else { return };
    let before = if by < 0 { address.wrapping_add_signed(-by) } else { *address };
    if let Some(known) = registers[RSP] {
        assert_eq!(known, before, "the stack pointer at {:#x}", instruction.ip());
    }
    registers[RSP] = Some(before.wrapping_add_signed(by));
}
