//! One case: an instruction between neighbours, the ways out, and what the state must hold.

use super::builder::{InstructionBuilder, Mask, Patch, RSP};
use super::layout::{CODE, EXIT_SIZE, READ_ONLY, SCRATCH, STATE_IN};
use super::operands::{self, byte_register};
use super::special;
use iced_x86::{
    Code, Decoder, DecoderOptions, Encoder, FlowControl, Formatter, Instruction, IntelFormatter,
    MemoryOperand, OpKind, Register,
};

/// A random instruction case, laid out at a fixed address.
#[derive(Clone, Debug)]
pub struct Case {
    /// The instruction form it exercises.
    pub form: Code,
    /// Where its bytes lie.
    pub address: u64,
    /// Where it starts; behind its branch target, if that comes first.
    pub start: u64,
    /// Its code, all exits included.
    pub code: Vec<u8>,
    /// What the runtime makes the random state from.
    pub seed: u64,
    pub(super) flags: u32,
    pub(super) patches: Vec<Patch>,
    pub(super) masks: Vec<Mask>,
}

/// How often operands are drawn anew before a form is given up for this time.
const TRIES: u64 = 200;

impl Case {
    /// A case for `form` at `address`; none if no valid operands came up.
    #[must_use]
    pub fn draw(form: Code, address: u64, seed: u64) -> Option<Self> {
        (0..TRIES).find_map(|attempt| attempt_case(form, address, seed ^ (attempt << 48)))
    }

    /// The case's instructions in Intel syntax, one a line, with addresses.
    #[must_use]
    pub fn disassembly(&self) -> String {
        let mut decoder = Decoder::with_ip(64, &self.code, self.address, DecoderOptions::NONE);
        let mut formatter = IntelFormatter::new();
        let mut text = String::new();
        while decoder.can_decode() {
            let instruction = decoder.decode();
            let mut line = String::new();
            formatter.format(&instruction, &mut line);
            let mark = if instruction.ip() == self.start { '>' } else { ' ' };
            let from = (instruction.ip() - self.address) as usize;
            let bytes: String = self.code[from..from + instruction.len()]
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            text += &format!("  {mark} {:x}: {bytes:30} {line}\n", instruction.ip());
        }
        text
    }
}

fn attempt_case(form: Code, address: u64, seed: u64) -> Option<Case> {
    let mut builder = InstructionBuilder::new(seed);
    special::before(&mut builder, form)?;
    let mut instruction = operands::draw(&mut builder, form)?;
    special::after(&mut builder, &mut instruction)?;
    let mut code = Assembler { address, bytes: Vec::new() };
    let branches = is_branch(&instruction);
    let backward = branches && builder.random.chance(1, 2);
    let mut target = address;
    if backward {
        code.exit(1)?;
    }
    let start = code.here();
    let neighbours = builder.random.chance(1, 2);
    // The target is known only behind the branch, so a forward branch is encoded twice.
    let random = builder.random.clone();
    for _ in 0..2 {
        code.bytes.truncate((start - address) as usize);
        builder.random = random.clone();
        if neighbours {
            put_neighbours(&mut builder, &mut code, target_register(&instruction), false)?;
        }
        if branches {
            aim(&mut instruction, target);
        }
        let at = code.here();
        code.put(&instruction)?;
        check_form(&code, at, form)?;
        if neighbours {
            put_neighbours(&mut builder, &mut code, None, true)?;
        }
        code.exit(0)?;
        if branches && !backward {
            target = code.here();
            code.exit(1)?;
        }
    }
    if branches {
        aim_indirect(&mut builder, &instruction, target)?;
    }
    Some(finish(builder, form, code, start, seed))
}

fn finish(
    mut builder: InstructionBuilder,
    form: Code,
    code: Assembler,
    start: u64,
    seed: u64,
) -> Case {
    for number in 0..16 {
        if let Some(value) = builder.fixed[number] {
            builder.patch(STATE_IN + 8 * number as u64, &value.to_le_bytes());
        }
    }
    let InstructionBuilder { flags, patches, masks, .. } = builder;
    Case { form, address: code.address, start, code: code.bytes, seed, flags, patches, masks }
}

/// The encoder may pick another form for the same operands; that one gets cases of its own.
fn check_form(code: &Assembler, at: u64, form: Code) -> Option<()> {
    let bytes = &code.bytes[(at - code.address) as usize..];
    let decoded = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).decode();
    (decoded.code() == form).then_some(())
}

fn is_branch(instruction: &Instruction) -> bool {
    matches!(
        instruction.flow_control(),
        FlowControl::ConditionalBranch
            | FlowControl::UnconditionalBranch
            | FlowControl::Call
            | FlowControl::IndirectBranch
            | FlowControl::IndirectCall
            | FlowControl::Return
    )
}

fn aim(instruction: &mut Instruction, target: u64) {
    if instruction.op0_kind() == OpKind::NearBranch64 {
        instruction.set_near_branch64(target);
    }
}

/// The register an indirect branch goes through; it gets its value when the layout is known.
fn target_register(instruction: &Instruction) -> Option<usize> {
    let indirect = matches!(
        instruction.flow_control(),
        FlowControl::IndirectBranch | FlowControl::IndirectCall
    );
    (indirect && instruction.op0_kind() == OpKind::Register)
        .then(|| instruction.op0_register().number())
}

/// Puts the target where an indirect branch finds it; now and then a target that faults.
fn aim_indirect(
    builder: &mut InstructionBuilder,
    instruction: &Instruction,
    target: u64,
) -> Option<()> {
    let astray = [0, 0x8000_0000_0000, SCRATCH + 64, READ_ONLY, 0x2800_0000];
    let target = if builder.random.chance(1, 16) { builder.random.pick(&astray) } else { target };
    match instruction.flow_control() {
        FlowControl::Return => {
            let stack = builder.fixed[RSP]?;
            builder.patch(stack, &target.to_le_bytes());
        }
        FlowControl::IndirectBranch | FlowControl::IndirectCall => {
            match target_register(instruction) {
                Some(number) => builder.fix(number, target)?,
                None => builder.patch(builder.spot, &target.to_le_bytes()),
            }
        }
        _ => {}
    }
    Some(())
}

/// A few instructions that any program has around any other: they make flags and registers live
/// or dead, read and write memory. Before the case's instruction they spare what it relies on.
fn put_neighbours(
    builder: &mut InstructionBuilder,
    code: &mut Assembler,
    spared: Option<usize>,
    after: bool,
) -> Option<()> {
    for _ in 0..builder.random.below(4) {
        let to = builder.random.below(16) as u32;
        let relied_on = builder.fixed[to as usize].is_some() || spared == Some(to as usize);
        if to as usize == RSP || !after && relied_on {
            continue;
        }
        let instruction = neighbour(builder, to, after)?;
        code.put(&instruction)?;
    }
    Some(())
}

fn neighbour(builder: &mut InstructionBuilder, to: u32, after: bool) -> Option<Instruction> {
    let random = &mut builder.random;
    let from = random.below(16) as u32;
    let (wide, half) = (Register::RAX + to, Register::EAX + to);
    let (wide_from, half_from) = (Register::RAX + from, Register::EAX + from);
    let word = SCRATCH + 8 * random.below(64);
    let rip = MemoryOperand::with_base_displ(Register::RIP, word as i64);
    let based = MemoryOperand::with_base_index_scale_displ_size(
        wide_from,
        Register::RAX + random.pick(&[0, 1, 3, 6, 9, 13]),
        random.pick(&[1, 2, 4, 8]),
        i64::from(random.word() as i8),
        1,
    );
    let number = random.biased();
    let made = match random.below(if after { 13 } else { 12 }) {
        0 => Instruction::with2(Code::Mov_r32_imm32, half, number as u32),
        1 => Instruction::with2(Code::Add_r64_rm64, wide, wide_from),
        2 => Instruction::with2(Code::Xor_r32_rm32, half, half),
        3 => Instruction::with1(Code::Inc_rm64, wide),
        4 => Instruction::with2(Code::Lea_r64_m, wide, based),
        5 => Instruction::with2(Code::Cmp_r64_rm64, wide, wide_from),
        6 => Instruction::with2(Code::Test_rm32_r32, half, half_from),
        7 => Instruction::with2(Code::Adc_r64_rm64, wide, wide_from),
        8 => Instruction::with2(Code::Shl_rm64_imm8, wide, number as u32 & 63),
        9 => Instruction::with2(Code::Mov_r64_rm64, wide, rip),
        10 => Instruction::with1(random.pick(&SETS), byte_register(to)),
        11 => Instruction::with2(random.pick(&MOVES), wide, wide_from),
        _ => Instruction::with2(Code::Add_rm64_r64, rip, wide_from),
    };
    made.ok()
}

const SETS: [Code; 6] = [
    Code::Sete_rm8,
    Code::Setb_rm8,
    Code::Seto_rm8,
    Code::Setp_rm8,
    Code::Setg_rm8,
    Code::Setbe_rm8,
];
const MOVES: [Code; 4] =
    [Code::Cmove_r64_rm64, Code::Cmovb_r64_rm64, Code::Cmovl_r64_rm64, Code::Cmovs_r64_rm64];

/// Bytes at an address.
struct Assembler {
    address: u64,
    bytes: Vec<u8>,
}

impl Assembler {
    fn here(&self) -> u64 {
        self.address + self.bytes.len() as u64
    }

    fn put(&mut self, instruction: &Instruction) -> Option<()> {
        let mut encoder = Encoder::new(64);
        encoder.encode(instruction, self.here()).ok()?;
        self.bytes.append(&mut encoder.take_buffer());
        Some(())
    }

    /// A jump to exit `number`.
    fn exit(&mut self, number: u64) -> Option<()> {
        let jump = Instruction::with_branch(Code::Jmp_rel32_64, CODE + EXIT_SIZE * number).ok()?;
        self.put(&jump)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(form: Code) -> Case {
        Case::draw(form, CODE + 64, 5).expect("operands")
    }

    #[test]
    fn the_same_seed_draws_the_same_case() {
        let (one, other) = (some(Code::Add_rm64_r64), some(Code::Add_rm64_r64));
        assert_eq!(one.code, other.code);
        assert_ne!(one.code, Case::draw(Code::Add_rm64_r64, CODE + 64, 6).expect("operands").code);
    }

    #[test]
    fn every_case_holds_its_form_and_ends_in_an_exit() {
        for form in [Code::Add_rm64_r64, Code::Movsq_m64_m64, Code::Je_rel8_64, Code::Retnq] {
            let case = some(form);
            let mut decoder = Decoder::with_ip(64, &case.code, case.address, DecoderOptions::NONE);
            let codes: Vec<_> = decoder.iter().map(|instruction| instruction.code()).collect();
            assert!(codes.contains(&form), "{form:?}\n{}", case.disassembly());
            assert!(codes.contains(&Code::Jmp_rel32_64));
        }
    }
}
