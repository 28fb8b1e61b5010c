//! Two shifts that align a pointer: right by so many bits, then left again, as gcc does to what `alloca` gives
//! where it does not optimise. Each alone makes a number; both together keep what the pointer was made from.

use super::code::{Action, Code, Place};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};

/// Lets registers keep what they carry over such shifts. `bytes` are those of the instructions.
pub fn keep<'a>(codes: &mut [Code], bytes: impl Iterator<Item = &'a [u8]>) {
    let mut before = None;
    for (at, bytes) in bytes.enumerate().take(codes.len()) {
        let now = shift(bytes);
        if let (Some((false, register, by)), Some((true, same, again))) = (before, now)
            && (register, by) == (same, again)
        {
            for code in &mut codes[at - 1..=at] {
                let made = |action: &Action| *action == Action::Make(Place::Cell(register));
                code.actions.retain(|action| !made(action));
            }
        }
        before = now;
    }
}

/// Whether an instruction shifts a register to the left, which, and by how many bits.
fn shift(bytes: &[u8]) -> Option<(bool, u8, u64)> {
    // A prefix, the opcode, the register.
    const SHIFTS: [u8; 2] = [0xc1, 0xd1];
    SHIFTS.contains(bytes.get(1)?).then_some(())?;
    let instruction: Instruction = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
    let left = match instruction.mnemonic() {
        Mnemonic::Shl | Mnemonic::Sal => true,
        Mnemonic::Shr => false,
        _ => return None,
    };
    let wide = instruction.op0_kind() == OpKind::Register && instruction.op0_register().is_gpr64();
    let by = instruction.try_immediate(1).ok().filter(|_| wide)?;
    Some((left, instruction.op0_register().number() as u8, by))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::machine::bitwise::Constants;
    use crate::rules::machine::code::compile;
    use iced_x86::InstructionInfoFactory;

    #[test]
    fn only_shifts_there_and_back_keep_a_pointer() {
        let right = [0x48, 0xc1, 0xe8, 0x04]; // shr rax, 4
        let left = [0x48, 0xc1, 0xe0, 0x04]; // shl rax, 4
        let less = [0x48, 0xc1, 0xe0, 0x03]; // shl rax, 3
        let other = [0x48, 0xc1, 0xe2, 0x04]; // shl rdx, 4
        for (second, kept) in [(left, true), (less, false), (other, false), (right, false)] {
            let mut factory = InstructionInfoFactory::new();
            let all = [right, second];
            let mut codes: Vec<Code> = all
                .iter()
                .map(|bytes| compile(0, bytes, 0, &mut Constants::default(), &mut factory))
                .collect();
            keep(&mut codes, all.iter().map(|bytes| &bytes[..]));
            assert_eq!(codes.iter().all(|code| code.actions.is_empty()), kept, "{second:x?}");
        }
    }
}
