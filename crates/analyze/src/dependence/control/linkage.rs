//! Jumps that the linker put there: they connect parts of a program and decide nothing.
//!
//! A PLT jumps through a word that the linker filled in. The first entry of a PLT that is bound late leads
//! to the loader's code that looks the function up and then jumps there. The loader jumps to the start of
//! the program when it is done.

use super::Code;
use super::finder::ControlStep;
use crate::semantics::Form;
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// Instructions of the loader's code that binds a function, at most.
const LONGEST_BINDER: usize = 256;

/// The jumps among `jumps` that are the linker's. Of a PLT they use nothing (`stubs`).
pub fn find(
    code: &dyn Code,
    steps: &FxHashMap<u64, ControlStep>,
    jumps: &FxHashMap<u64, BTreeSet<u64>>,
    stubs: &FxHashSet<u64>,
) -> FxHashSet<u64> {
    let mut found = stubs.clone();
    for (jump, targets) in jumps {
        if stubs.contains(jump) && before(steps, *jump).is_some_and(|pc| pushes_word(code, pc)) {
            found.extend(targets.iter().filter_map(|binder| end_of(steps, *binder)));
        } else if targets.iter().all(|target| starts_program(code, *target)) {
            found.insert(*jump);
        }
    }
    found
}

/// The instruction that runs into the one at an address.
pub fn before(steps: &FxHashMap<u64, ControlStep>, pc: u64) -> Option<u64> {
    let runs_into = |at: &u64| {
        let step = steps.get(at);
        step.is_some_and(|step| {
            let runs_on = matches!(step.form, Form::Plain | Form::Branch(_)) || step.form.is_call();
            step.next == pc && runs_on
        })
    };
    (pc.saturating_sub(15)..pc).find(runs_into)
}

/// The jump at the end of straight code.
fn end_of(steps: &FxHashMap<u64, ControlStep>, start: u64) -> Option<u64> {
    let mut at = start;
    for _ in 0..LONGEST_BINDER {
        let step = steps.get(&at)?;
        match step.form {
            Form::IndirectJump => return Some(at),
            Form::Plain | Form::Call(_) | Form::IndirectCall => at = step.next,
            _ => return None,
        }
    }
    None
}

fn decode(code: &dyn Code, pc: u64) -> Instruction {
    let mut bytes = [0; 15];
    let count = code.read(pc, &mut bytes);
    Decoder::with_ip(64, &bytes[..count], pc, DecoderOptions::NONE).decode()
}

/// Whether the first entry of a PLT begins like that: it pushes a word of the linker's.
fn pushes_word(code: &dyn Code, pc: u64) -> bool {
    let instruction = decode(code, pc);
    instruction.mnemonic() == Mnemonic::Push && instruction.is_ip_rel_memory_operand()
}

/// Whether a program starts here: the outermost frame has no frame pointer, by convention.
fn starts_program(code: &dyn Code, pc: u64) -> bool {
    let mut first = decode(code, pc);
    if first.mnemonic() == Mnemonic::Endbr64 {
        first = decode(code, first.next_ip());
    }
    first.mnemonic() == Mnemonic::Xor
        && first.op0_kind() == OpKind::Register
        && first.op1_kind() == OpKind::Register
        && first.op0_register() == Register::EBP
        && first.op1_register() == Register::EBP
}
