//! Where a program makes room on its stack while it runs (`alloca`, arrays of variable length), found in its
//! code: the instruction that rounds the size that was asked for, and the one behind which the room is there.
//! And where functions store the addresses of the blocks that they make.
//!
//! Compilers add what rounding takes and cut the lowest bits off, or divide by sixteen where nothing is
//! optimised; gcc adds eight more where it aligns the address by itself afterwards. What is not recognised gets no
//! probe, and its room the bounds that the stack pointer tells.

use analyze::rules::machine::dynamic::Probe;
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use std::ops::Range;
use symbols::symbol_table::{Symbol, SymbolKind, SymbolTable};
use symbols::{FileAddress, Image};

/// Functions that are larger are looked at only so far.
const LONGEST: u64 = 64 << 10;
/// Instructions between the rounding and the room, and between the room and its address.
const NEAR: usize = 32;
/// The alignment of rooms.
const ALIGNMENT: u64 = 16;
/// What gcc adds where it aligns the address itself.
const REALIGNED: u64 = 8;

/// The probes of a file, by address there.
pub fn of(image: &Image, table: &SymbolTable) -> Vec<(u64, Probe)> {
    let mut functions: Vec<Range<u64>> = functions(table).map(|function| code(&function)).collect();
    functions.sort_unstable_by_key(|code| (code.start, code.end));
    let mut found = Vec::new();
    for section in image.sections().iter().filter(|section| section.executable) {
        let Some(bytes) = image.bytes_at(section.address, section.size) else { continue };
        let (mut done, start) = (0, section.address.0);
        for at in (0..bytes.len()).filter(|at| moves_stack(&bytes[*at..])) {
            let address = start + at as u64;
            let after = functions.partition_point(|code| code.start <= address);
            let Some(function) = after.checked_sub(1).map(|index| &functions[index]) else {
                continue;
            };
            if !function.contains(&address) || done > address || function.start < start {
                continue;
            }
            done = function.end;
            let (from, to) = ((function.start - start) as usize, (function.end - start) as usize);
            let inside = &bytes[from..to.min(bytes.len())];
            found.extend(in_function(&decoded(inside, function.start)));
        }
    }
    found
}

/// Where functions of these names store the blocks that they make.
pub fn stores(image: &Image, table: &SymbolTable, names: &[&str]) -> Vec<(u64, Probe)> {
    let named = functions(table).filter(|function| names.contains(&function.name));
    let mut found: Vec<(u64, Probe)> =
        named.flat_map(|function| stored(image, &function)).collect();
    found.sort_unstable_by_key(|(at, _)| *at);
    found.dedup();
    found
}

fn stored(image: &Image, function: &Symbol<'_>) -> Vec<(u64, Probe)> {
    let code = code(function);
    let Some(bytes) = image.bytes_at(function.address, code.end - code.start) else {
        return Vec::new();
    };
    let is_store = |one: &&Instruction| {
        one.mnemonic() == Mnemonic::Mov
            && one.op0_kind() == OpKind::Memory
            && one.memory_displacement64() == 0
            && one.memory_index() == Register::None
            && !matches!(one.memory_base(), Register::RSP | Register::RIP)
            && one.op1_register().is_gpr64()
    };
    let all = decoded(&bytes, code.start);
    let stores = all.iter().filter(is_store);
    stores.map(|one| (one.ip(), Probe::Stores(number(one.op1_register())))).collect()
}

fn functions(table: &SymbolTable) -> impl Iterator<Item = Symbol<'_>> {
    table.iter().filter(|symbol| symbol.kind == SymbolKind::Function && symbol.size > 0)
}

fn code(function: &Symbol<'_>) -> Range<u64> {
    let FileAddress(start) = function.address;
    start..start.saturating_add(function.size.min(LONGEST))
}

/// Whether bytes begin with `sub rsp, register` or `mov rsp, register`.
fn moves_stack(bytes: &[u8]) -> bool {
    matches!(bytes, [0x48 | 0x4c, 0x29 | 0x89, last, ..] if last & 0xc7 == 0xc4)
}

fn decoded(bytes: &[u8], start: u64) -> Vec<Instruction> {
    Decoder::with_ip(64, bytes, start, DecoderOptions::NONE).iter().collect()
}

fn number(register: Register) -> u8 {
    register.full_register().number() as u8
}

/// The probes of one function's code.
fn in_function(code: &[Instruction]) -> Vec<(u64, Probe)> {
    let mut found = Vec::new();
    for (at, one) in code.iter().enumerate() {
        let [to, from] = [one.op0_register(), one.op1_register()];
        if one.mnemonic() != Mnemonic::Sub || !to.is_gpr64() || !from.is_gpr64() {
            continue;
        }
        // clang calculates in a copy of the stack pointer, which it moves there at once.
        let before = &code[at.saturating_sub(NEAR)..at];
        let copied = to != Register::RSP
            && last_change(before, to).is_some_and(|(_, made)| {
                made.mnemonic() == Mnemonic::Mov && made.op1_register() == Register::RSP
            });
        let kept = |next: &Instruction| {
            next.mnemonic() == Mnemonic::Mov
                && next.op0_register() == Register::RSP
                && next.op1_register() == to
        };
        let behind = &code[at + 1..(at + 1 + NEAR).min(code.len())];
        if to != Register::RSP && !(copied && behind.iter().take(4).any(kept)) {
            continue;
        }
        found.push((one.next_ip(), Probe::Makes(number(to))));
        let Some((rounds, register)) = rounding(before, from) else { continue };
        let realigned = to == Register::RSP && is_realigned(behind);
        let added = ALIGNMENT - 1 + if realigned { REALIGNED } else { 0 };
        let probe = (rounds, Probe::Rounds { register: number(register), added });
        // Two rooms of one size are rounded once.
        if !found.contains(&probe) {
            found.push(probe);
        }
    }
    found
}

/// The last instruction that changes a register, and how many stand before it.
fn last_change(code: &[Instruction], register: Register) -> Option<(usize, &Instruction)> {
    let changes = |(_, one): &(usize, &Instruction)| {
        let reads_only = matches!(one.mnemonic(), Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push);
        let first = one.op0_kind() == OpKind::Register
            && one.op0_register().full_register() == register.full_register();
        // What calls and divisions leave is nobody's.
        let others = match one.mnemonic() {
            Mnemonic::Call => true,
            Mnemonic::Div => matches!(register, Register::RAX | Register::RDX),
            _ => false,
        };
        others || first && !reads_only
    };
    code.iter().enumerate().rev().find(changes)
}

/// The instruction that rounds what is then in a register, and the register that it rounds.
fn rounding(code: &[Instruction], register: Register) -> Option<(u64, Register)> {
    let (at, one) = last_change(code, register)?;
    let before = &code[..at];
    let constant = || one.try_immediate(one.op_count() - 1).ok();
    match one.mnemonic() {
        Mnemonic::And if one.op_count() == 2 => {
            let wide = one.op0_register().is_gpr64();
            let mask = constant()?;
            let cuts = mask as i64 == -(ALIGNMENT as i64)
                || !wide && mask as u32 == (ALIGNMENT as u32).wrapping_neg();
            cuts.then_some((one.ip(), one.op0_register()))
        }
        Mnemonic::Mov if one.op1_register().is_gpr64() => rounding(before, one.op1_register()),
        Mnemonic::Shl if constant() == Some(u64::from(ALIGNMENT.trailing_zeros())) => {
            divided(before, register)
        }
        Mnemonic::Imul if one.op_count() == 3 && constant() == Some(ALIGNMENT) => {
            divided(before, one.op1_register())
        }
        _ => None,
    }
}

/// A division by sixteen whose quotient is then in a register.
fn divided(code: &[Instruction], register: Register) -> Option<(u64, Register)> {
    let (_, one) = last_change(code, register)?;
    let shift = u64::from(ALIGNMENT.trailing_zeros());
    if one.mnemonic() == Mnemonic::Shr {
        let cuts = one.op0_register().is_gpr64() && one.try_immediate(1).ok() == Some(shift);
        return cuts.then_some((one.ip(), one.op0_register()));
    }
    let divides = one.mnemonic() == Mnemonic::Div && register.full_register() == Register::RAX;
    (divides && one.op0_register().is_gpr64()).then_some((one.ip(), Register::RAX))
}

/// Whether the address of the room is aligned by code behind the instruction that makes it.
fn is_realigned(code: &[Instruction]) -> bool {
    let another = |one: &&Instruction| {
        one.op0_register() == Register::RSP && one.op1_register() != Register::None
    };
    let mut copy = Register::None;
    for one in code.iter().take_while(|one| !another(one)) {
        let adds = |by: u64| one.try_immediate(1).is_ok_and(|value| value == by);
        match one.mnemonic() {
            Mnemonic::Lea
                if one.memory_base() == Register::RSP
                    && one.memory_displacement64() == ALIGNMENT - 1 =>
            {
                return true;
            }
            Mnemonic::Mov if one.op1_register() == Register::RSP => copy = one.op0_register(),
            Mnemonic::Add if one.op0_register() == copy && adds(ALIGNMENT - 1) => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const TEXT: &str = "#include <alloca.h>\nvoid use(void *);\n\
        void asked(long n) { char *p = alloca(n); use(p); }\n\
        void array(int n) { double v[n + 1]; use(v); }\n\
        void both(int n) { int v[n]; char *w = alloca(n * 3 + 1); use(v); use(w); }\n\
        void none(int n) { char v[40]; use(v); if (n) __builtin_memset(v, 0, n); use(v); }\n";

    fn probes(compiler: &str, level: &str) -> Vec<(String, Vec<Probe>)> {
        let folder = tempfile::tempdir().expect("a folder");
        let (source, object) = (folder.path().join("a.c"), folder.path().join("a.o"));
        std::fs::write(&source, TEXT).expect("a file");
        let mut command = Command::new(compiler);
        command.args([level, "-shared", "-fPIC", "-o"]).arg(&object).arg(&source);
        assert!(command.status().expect("a compiler").success());
        let image = Image::open(&object).expect("an image");
        let table = SymbolTable::of(&image, None);
        let found = of(&image, &table);
        let named = ["asked", "array", "both", "none"].map(|name| {
            let function = table.iter().find(|symbol| symbol.name == name).expect("it is there");
            let inside = found.iter().filter(|(at, _)| code(&function).contains(at));
            (name.to_owned(), inside.map(|(_, probe)| *probe).collect())
        });
        named.into()
    }

    #[test]
    fn rooms_are_found_in_what_compilers_make() {
        for level in ["-O0", "-O1", "-O2"] {
            for (name, found) in probes("gcc", level) {
                let added: Vec<u64> = found
                    .iter()
                    .filter_map(|probe| match probe {
                        Probe::Rounds { added, .. } => Some(*added),
                        _ => None,
                    })
                    .collect();
                let expected: &[u64] = match name.as_str() {
                    "asked" => &[23],
                    "array" => &[15],
                    "both" => &[15, 23],
                    _ => &[],
                };
                assert_eq!(added, expected, "{name} {level}: {found:?}");
                let made = found.iter().filter(|probe| matches!(probe, Probe::Makes(_))).count();
                assert_eq!(made, expected.len(), "{name} {level}: {found:?}");
            }
        }
    }
}
