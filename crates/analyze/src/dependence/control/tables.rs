//! Jump tables: where the indirect jump of a `switch` can lead, also if it did not in this run.
//!
//! Compilers make few kinds: a table of addresses (`jmp [table+rax*8]`) or of distances from its own start
//! (`movsxd rax,[rdx+rax*4]; add rax,rdx; jmp rax`), behind a comparison or a mask that bounds the index.
//! What is read as a table is believed only if every target that was seen stands in it.

use super::Code;
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use std::collections::BTreeSet;

/// Instructions before the jump that are looked at.
const LOOKED_AT: usize = 24;
/// Entries of a table, at most.
const MOST_ENTRIES: u64 = 4096;

/// A table that a jump takes its target from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Table {
    address: u64,
    /// Whether it has distances from its start; else addresses.
    relative: bool,
    entries: u64,
}

/// Where the jump at an address can lead by its table; nothing if it has none that was recognised. `before`
/// gives the instruction that runs into another one.
pub fn targets(
    code: &dyn Code,
    before: &dyn Fn(u64) -> Option<u64>,
    jump: u64,
    seen: &BTreeSet<u64>,
) -> Option<BTreeSet<u64>> {
    let mut run = vec![decode(code, jump)?];
    let mut at = jump;
    while let Some(previous) = before(at).filter(|_| run.len() < LOOKED_AT) {
        run.push(decode(code, previous)?);
        at = previous;
    }
    let targets = entries(code, table(&run)?)?;
    seen.is_subset(&targets).then_some(targets)
}

fn decode(code: &dyn Code, pc: u64) -> Option<Instruction> {
    let mut bytes = [0; 15];
    let count = code.read(pc, &mut bytes);
    let found = Decoder::with_ip(64, &bytes[..count], pc, DecoderOptions::NONE).decode();
    (!found.is_invalid()).then_some(found)
}

/// The table of a jump. `run` has the jump and what runs into it, backwards.
fn table(run: &[Instruction]) -> Option<Table> {
    let jump = run.first()?;
    if jump.op0_kind() == OpKind::Memory {
        let (address, relative) = (scaled(jump, &run[1..], 8)?, false);
        return Some(Table { address, relative, entries: bound(&run[1..])? });
    }
    let target = (jump.op0_kind() == OpKind::Register).then(|| jump.op0_register())?;
    let made = run.iter().skip(1).position(|before| writes(before, target))? + 1;
    let (maker, earlier) = (&run[made], &run[made + 1..]);
    let (address, relative) = match maker.mnemonic() {
        Mnemonic::Mov => (scaled(maker, earlier, 8)?, false),
        Mnemonic::Add if maker.op1_kind() == OpKind::Register => {
            let start = |register| constant(register, earlier);
            (start(maker.op1_register()).or_else(|| start(target))?, true)
        }
        _ => return None,
    };
    Some(Table { address, relative, entries: bound(earlier)? })
}

/// The start of the table that an instruction takes an entry of so many bytes from.
fn scaled(instruction: &Instruction, earlier: &[Instruction], bytes: u32) -> Option<u64> {
    let scales = instruction.memory_index() != Register::None
        && instruction.memory_index_scale() == bytes
        && (0..instruction.op_count()).any(|at| instruction.op_kind(at) == OpKind::Memory);
    let start = match instruction.memory_base() {
        Register::None => 0,
        base => constant(base, earlier)?,
    };
    scales.then(|| start.wrapping_add(instruction.memory_displacement64()))
}

/// The address that a register was last made to be, backwards from here.
fn constant(register: Register, earlier: &[Instruction]) -> Option<u64> {
    let maker = earlier.iter().find(|before| writes(before, register))?;
    match maker.mnemonic() {
        Mnemonic::Lea if maker.is_ip_rel_memory_operand() => Some(maker.memory_displacement64()),
        Mnemonic::Mov if is_immediate(maker.op1_kind()) => Some(maker.immediate(1)),
        _ => None,
    }
}

/// How many entries there are, by the last comparison or mask before the jump.
fn bound(earlier: &[Instruction]) -> Option<u64> {
    let mut exclusive = None;
    for before in earlier {
        match before.mnemonic() {
            Mnemonic::Ja => exclusive = Some(false),
            Mnemonic::Jae => exclusive = Some(true),
            Mnemonic::Cmp if is_immediate(before.op1_kind()) => {
                let last = before.immediate(1);
                let count = if exclusive? { last } else { last.checked_add(1)? };
                return Some(count).filter(|count| (1..=MOST_ENTRIES).contains(count));
            }
            Mnemonic::And if exclusive.is_none() && is_immediate(before.op1_kind()) => {
                let count = before.immediate(1).checked_add(1)?;
                return Some(count).filter(|count| (1..=MOST_ENTRIES).contains(count));
            }
            _ => {}
        }
    }
    None
}

fn is_immediate(kind: OpKind) -> bool {
    use OpKind as K;
    let narrow = matches!(kind, K::Immediate8 | K::Immediate16 | K::Immediate32 | K::Immediate64);
    narrow
        || matches!(kind, K::Immediate8to16 | K::Immediate8to32 | K::Immediate8to64)
        || kind == K::Immediate32to64
}

/// Whether an instruction makes a register, as its first operand.
fn writes(instruction: &Instruction, register: Register) -> bool {
    let compares =
        matches!(instruction.mnemonic(), Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push);
    let widens =
        instruction.mnemonic() == Mnemonic::Cdqe && register.full_register() == Register::RAX;
    let first = instruction.op_count() > 0 && instruction.op0_kind() == OpKind::Register;
    widens
        || first
            && !compares
            && instruction.op0_register().full_register() == register.full_register()
}

/// The targets in a table; nothing if one of them has no code.
fn entries(code: &dyn Code, table: Table) -> Option<BTreeSet<u64>> {
    let size = if table.relative { 4 } else { 8 };
    let mut targets = BTreeSet::new();
    for number in 0..table.entries {
        let mut bytes = [0; 8];
        let at = table.address.wrapping_add(number * size as u64);
        if code.read(at, &mut bytes[..size]) < size {
            return None;
        }
        let entry = u64::from_le_bytes(bytes);
        let target = match table.relative {
            true => table.address.wrapping_add_signed((entry as u32 as i32).into()),
            false => entry,
        };
        decode(code, target)?;
        targets.insert(target);
    }
    Some(targets)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: u64 = 0x1000;
    const DATA: u64 = 0x2000;

    /// Some code, all of it `nop` where nothing is said, and a table.
    struct Memory {
        code: Vec<u8>,
        data: Vec<u8>,
    }

    impl Code for Memory {
        fn read(&self, address: u64, buffer: &mut [u8]) -> usize {
            let part = |start: u64, bytes: &[u8]| {
                let from = usize::try_from(address.checked_sub(start)?).ok()?;
                Some(bytes.get(from..)?.to_vec())
            };
            let found = part(DATA, &self.data).or_else(|| part(CODE, &self.code));
            let found = found.unwrap_or_default();
            let count = found.len().min(buffer.len());
            buffer[..count].copy_from_slice(&found[..count]);
            count
        }
    }

    /// The targets of the jump that ends these instructions.
    fn found(parts: &[&[u8]], data: Vec<u8>, seen: u64) -> Option<Vec<u64>> {
        let mut starts: Vec<(u64, u64)> = Vec::new();
        let mut at = CODE;
        for part in parts {
            starts.push((at + part.len() as u64, at));
            at += part.len() as u64;
        }
        let mut code = parts.concat();
        code.resize(0x800, 0x90);
        let before = |pc| starts.iter().find(|(next, _)| *next == pc).map(|(_, at)| *at);
        let jump = starts.last().expect("a jump").1;
        let memory = Memory { code, data };
        Some(targets(&memory, &before, jump, &BTreeSet::from([seen]))?.into_iter().collect())
    }

    #[test]
    fn tables_of_addresses_and_of_distances_are_read() {
        let addresses: Vec<u8> =
            [0x1100u64, 0x1200, 0x1100].iter().flat_map(|entry| entry.to_le_bytes()).collect();
        let absolute: [&[u8]; 3] = [
            &[0x83, 0xf8, 0x02],                         // cmp eax,2
            &[0x77, 0x20],                               // ja
            &[0xff, 0x24, 0xc5, 0x00, 0x20, 0x00, 0x00], // jmp [rax*8+0x2000]
        ];
        assert_eq!(found(&absolute, addresses.clone(), 0x1200), Some(vec![0x1100, 0x1200]));
        assert_eq!(found(&absolute, addresses.clone(), 0x1300), None, "a target that is not in it");
        let masked: [&[u8]; 2] = [&[0x83, 0xe0, 0x01], absolute[2]]; // and eax,1
        assert_eq!(found(&masked, addresses.clone(), 0x1100), Some(vec![0x1100, 0x1200]));
        assert_eq!(found(&absolute[2..], addresses, 0x1100), None, "without a bound");
        let distances: Vec<u8> =
            [-0xf00i32, -0xe00].iter().flat_map(|entry| entry.to_le_bytes()).collect();
        let relative: [&[u8]; 6] = [
            &[0x83, 0xff, 0x01],                         // cmp edi,1
            &[0x77, 0x20],                               // ja
            &[0x48, 0x8d, 0x15, 0xf4, 0x0f, 0x00, 0x00], // lea rdx,[rip+..] = 0x2000
            &[0x48, 0x63, 0x04, 0xba],                   // movsxd rax,[rdx+rdi*4]
            &[0x48, 0x01, 0xd0],                         // add rax,rdx
            &[0x3e, 0xff, 0xe0],                         // notrack jmp rax
        ];
        assert_eq!(found(&relative, distances, 0x1200), Some(vec![0x1100, 0x1200]));
    }
}
