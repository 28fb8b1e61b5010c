//! A program of cases: lays them out, writes the tables that the runtime reads, and builds a
//! static ELF without a libc from both.

use super::case::Case;
use super::forms::Forms;
use super::layout::{self, CODE, EXIT_SIZE, EXITS};
use crate::random::Random;
use anyhow::{Context, bail};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const RUNTIME: &str = include_str!("runtime/runtime.c");
const ENTER: &str = include_str!("runtime/enter.S");

/// Cases at their addresses, not yet built.
#[derive(Clone, Debug)]
pub struct Program {
    /// In the order they run.
    pub cases: Vec<Case>,
}

impl Program {
    /// `count` cases that go round all `forms` in a random order.
    #[must_use]
    pub fn draw(forms: &Forms, count: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut address = CODE + 64;
        let mut cases = Vec::new();
        let mut round = forms.codes().to_vec();
        let mut drawn_this_round = 1;
        while cases.len() < count && drawn_this_round > 0 {
            drawn_this_round = 0;
            random.shuffle(&mut round);
            for form in &round {
                let Some(case) = Case::draw(*form, address, random.word()) else { continue };
                drawn_this_round += 1;
                address = (address + case.code.len() as u64).next_multiple_of(16);
                cases.push(case);
                if cases.len() == count {
                    break;
                }
            }
        }
        Self { cases }
    }

    /// Builds the program in `folder`; returns the path of the ELF file.
    ///
    /// # Errors
    /// When a file cannot be written or gcc fails.
    pub fn build(&self, folder: &Path) -> anyhow::Result<PathBuf> {
        let write = |name: &str, bytes: &[u8]| {
            std::fs::write(folder.join(name), bytes)
                .with_context(|| format!("writing {}", folder.join(name).display()))
        };
        write("layout.h", layout::header().as_bytes())?;
        write("runtime.c", RUNTIME.as_bytes())?;
        write("enter.S", ENTER.as_bytes())?;
        write("code.bin", &self.code())?;
        let (index, table) = self.tables();
        write("index.bin", &index)?;
        write("table.bin", &table)?;
        write("cases.S", self.assembly().as_bytes())?;
        compile(folder)?;
        Ok(folder.join("cases"))
    }

    fn code(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for case in &self.cases {
            bytes.resize((case.address - CODE - 64) as usize, 0xcc);
            bytes.extend_from_slice(&case.code);
        }
        bytes
    }

    /// The runtime's `case_index` and `case_table`.
    fn tables(&self) -> (Vec<u8>, Vec<u8>) {
        let (mut index, mut table) = (Vec::new(), Vec::new());
        for case in &self.cases {
            index.extend_from_slice(&(table.len() as u32).to_le_bytes());
            table.extend_from_slice(&case.seed.to_le_bytes());
            table.extend_from_slice(&(case.start as u32).to_le_bytes());
            table.extend_from_slice(&case.flags.to_le_bytes());
            table.extend_from_slice(&(case.patches.len() as u16).to_le_bytes());
            table.extend_from_slice(&(case.masks.len() as u16).to_le_bytes());
            table.extend_from_slice(&[0; 4]);
            for patch in &case.patches {
                put_piece(&mut table, patch.address, patch.bytes.len() as u64);
                table.extend_from_slice(&patch.bytes);
                table.resize(table.len().next_multiple_of(8), 0);
            }
            for mask in &case.masks {
                put_piece(&mut table, mask.address, mask.length);
            }
        }
        (index, table)
    }

    fn assembly(&self) -> String {
        let mut text = String::from("    .section .cases, \"ax\", @progbits\n");
        for number in 0..EXITS {
            let _ = write!(
                text,
                "    .org {}\n    movb ${number}, exit_taken\n    jmp capture_state\n",
                number * EXIT_SIZE
            );
        }
        let _ = write!(
            text,
            "    .org 64\n    .incbin \"code.bin\"\n\
             \x20   .section .rodata\n    .balign 8\n\
             \x20   .globl case_count, case_index, case_table\n\
             case_count:\n    .long {}\n    .balign 8\n\
             case_index:\n    .incbin \"index.bin\"\n    .balign 8\n\
             case_table:\n    .incbin \"table.bin\"\n\
             \x20   .section .note.GNU-stack, \"\", @progbits\n",
            self.cases.len()
        );
        text
    }
}

fn put_piece(table: &mut Vec<u8>, address: u64, length: u64) {
    table.extend_from_slice(&(address as u32).to_le_bytes());
    table.extend_from_slice(&(length as u32).to_le_bytes());
}

fn compile(folder: &Path) -> anyhow::Result<()> {
    let output = Command::new("gcc")
        .current_dir(folder)
        .args(["-O2", "-g0", "-ffreestanding", "-fno-stack-protector", "-fcf-protection=none"])
        .args(["-fno-tree-loop-distribute-patterns", "-mno-avx", "-fno-pie", "-no-pie"])
        .args(["-nostdlib", "-static", "-Wall", "-Wextra", "-Werror", "-Wl,--build-id=none"])
        .arg(format!("-Wl,--section-start=.cases={CODE:#x}"))
        .args(["-o", "cases", "runtime.c", "enter.S", "cases.S"])
        .output()
        .context("running gcc, which the tests need")?;
    if !output.status.success() {
        bail!("gcc failed on the generated program:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
