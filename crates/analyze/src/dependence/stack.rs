//! What instructions do to the stack pointer, as far as it takes to find out where that is: the
//! stream has addresses, not registers.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// How an instruction changes the stack pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// By so much, perhaps nothing.
    By(i64),
    /// It becomes what another register or memory holds: `longjmp`, an exception, a switch to
    /// another stack. What follows need not be in the same frame.
    Replaced,
    /// In a way that only values tell; within the frame.
    Within,
}

/// An access whose address tells where the stack is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tells {
    /// The first access is so far from the stack pointer before the instruction.
    First(i64),
    /// The last access is.
    Last(i64),
    /// The first access is below the frame pointer, if that is what `rbp` is.
    Frame,
    /// No access.
    Nothing,
}

/// What an instruction does to the stack pointer, and tells about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack {
    /// How it changes it.
    pub change: Change,
    /// Which access tells where it is.
    pub tells: Tells,
}

impl Stack {
    /// Of an instruction.
    #[must_use]
    pub fn of(instruction: &Instruction) -> Self {
        Self { change: change(instruction), tells: tells(instruction) }
    }
}

fn change(instruction: &Instruction) -> Change {
    let pushed = i64::from(instruction.stack_pointer_increment());
    let is_stack = |operand: u32| {
        instruction.op_kind(operand) == OpKind::Register
            && instruction.op_register(operand).full_register() == Register::RSP
    };
    match instruction.mnemonic() {
        Mnemonic::Leave | Mnemonic::Enter => Change::Within,
        Mnemonic::Pop if is_stack(0) => Change::Replaced,
        Mnemonic::Xchg if is_stack(0) || is_stack(1) => Change::Replaced,
        Mnemonic::Mov if is_stack(0) => {
            let from_frame = instruction.op1_kind() == OpKind::Register
                && instruction.op1_register() == Register::RBP;
            if from_frame { Change::Within } else { Change::Replaced }
        }
        Mnemonic::Lea if is_stack(0) && is_above_stack(instruction) => {
            Change::By(instruction.memory_displacement64().cast_signed())
        }
        Mnemonic::Add | Mnemonic::Sub if is_stack(0) && is_immediate(instruction.op1_kind()) => {
            let by = instruction.immediate(1).cast_signed();
            Change::By(if instruction.mnemonic() == Mnemonic::Add { by } else { -by })
        }
        Mnemonic::Push | Mnemonic::Cmp | Mnemonic::Test => Change::By(pushed),
        _ if instruction.op_count() > 0 && is_stack(0) => Change::Within,
        _ => Change::By(pushed),
    }
}

fn tells(instruction: &Instruction) -> Tells {
    let pushed = i64::from(instruction.stack_pointer_increment());
    let has_memory = (0..instruction.op_count())
        .any(|at| instruction.op_kind(at) == OpKind::Memory)
        && instruction.mnemonic() != Mnemonic::Lea;
    match instruction.mnemonic() {
        Mnemonic::Leave | Mnemonic::Enter | Mnemonic::Nop => Tells::Nothing,
        _ if pushed < 0 => Tells::Last(pushed),
        _ if pushed > 0 => Tells::First(0),
        _ if has_memory && is_above_stack(instruction) => {
            Tells::First(instruction.memory_displacement64().cast_signed())
        }
        _ if has_memory && is_in_frame(instruction) => Tells::Frame,
        _ => Tells::Nothing,
    }
}

/// Whether the memory operand is the stack pointer and a constant.
fn is_above_stack(instruction: &Instruction) -> bool {
    instruction.memory_base() == Register::RSP && instruction.memory_index() == Register::None
}

fn is_in_frame(instruction: &Instruction) -> bool {
    instruction.memory_base() == Register::RBP
        && instruction.memory_index() == Register::None
        && instruction.memory_displacement64().cast_signed() < 0
}

fn is_immediate(kind: OpKind) -> bool {
    matches!(kind, OpKind::Immediate8to64 | OpKind::Immediate32to64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn of(bytes: &[u8]) -> (Change, Tells) {
        let instruction = Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode();
        let stack = Stack::of(&instruction);
        (stack.change, stack.tells)
    }

    #[test]
    fn what_instructions_do_to_the_stack_pointer() {
        use Change::{By, Replaced, Within};
        let cases: [(&[u8], Change, Tells); 16] = [
            (&[0x55], By(-8), Tells::Last(-8)),                    // push rbp
            (&[0xff, 0x74, 0x24, 0x08], By(-8), Tells::Last(-8)),  // push [rsp+8]
            (&[0xe8, 0, 0, 0, 0], By(-8), Tells::Last(-8)),        // call
            (&[0x5b], By(8), Tells::First(0)),                     // pop rbx
            (&[0xc3], By(8), Tells::First(0)),                     // ret
            (&[0x5c], Replaced, Tells::First(0)),                  // pop rsp
            (&[0x54], By(-8), Tells::Last(-8)),                    // push rsp
            (&[0x4c, 0x89, 0xc4], Replaced, Tells::Nothing),       // mov rsp, r8
            (&[0x48, 0x89, 0xec], Within, Tells::Nothing),         // mov rsp, rbp
            (&[0x48, 0x8b, 0x67, 0x30], Replaced, Tells::Nothing), // mov rsp, [rdi+48]
            (&[0x48, 0x83, 0xec, 0x28], By(-40), Tells::Nothing),  // sub rsp, 40
            (&[0x48, 0x8d, 0x64, 0x24, 0x10], By(16), Tells::Nothing), // lea rsp, [rsp+16]
            (&[0x48, 0x8d, 0x65, 0xd8], Within, Tells::Nothing),   // lea rsp, [rbp-40]
            (&[0x48, 0x83, 0xe4, 0xf0], Within, Tells::Nothing),   // and rsp, -16
            (&[0x48, 0x89, 0x44, 0x24, 0x18], By(0), Tells::First(24)), // mov [rsp+24], rax
            (&[0x8b, 0x45, 0xfc], By(0), Tells::Frame),            // mov eax, [rbp-4]
        ];
        for (bytes, change, tells) in cases {
            assert_eq!(of(bytes), (change, tells), "{bytes:02x?}");
        }
    }
}
