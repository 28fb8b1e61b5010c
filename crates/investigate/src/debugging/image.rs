//! What a debugger has to know of a process before anything else: its auxiliary vector and its program's file.

use crate::case::Case;
use crate::error::fault_or_input;
use anyhow::{Context, ensure};
use base::ModuleMap;
use replay::StoppedProcess;
use std::path::PathBuf;

/// Words that a stack may begin with before the auxiliary vector; more are no stack.
const MOST_WORDS: u64 = 1 << 22;

/// The auxiliary vector that a process was started with. A forked one has that of whom it was forked from.
pub fn auxiliary_vector(case: &Case, process: u32) -> anyhow::Result<Vec<u8>> {
    let path = case.session().path_to(process);
    let started = path.first().copied().unwrap_or(process);
    let mut line = case.timeline(started)?;
    let begin = line.begin().map_err(fault_or_input)?;
    let mut at = begin.at.thread.general[4];
    let arguments = word(&begin, at).context("the recording does not begin with a stack")?;
    ensure!(arguments < MOST_WORDS, "the recording does not begin where its program does");
    at += 8 * (arguments + 2);
    // The environment, up to its zero.
    while word(&begin, at).context("the environment has no end")? != 0 {
        at += 8;
    }
    at += 8;
    let mut vector = Vec::new();
    loop {
        let kind = word(&begin, at).context("the auxiliary vector has no end")?;
        let value = word(&begin, at + 8).context("the auxiliary vector has no end")?;
        vector.extend(kind.to_le_bytes());
        vector.extend(value.to_le_bytes());
        if kind == 0 {
            return Ok(vector);
        }
        at += 16;
    }
}

/// A word of memory.
pub(super) fn word(standing: &StoppedProcess, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    (standing.read(address, &mut bytes) == 8).then_some(u64::from_le_bytes(bytes))
}

/// Where a program begins, by its auxiliary vector.
const AT_ENTRY: u64 = 9;

/// The file of the program: the one that its entry lies in.
pub fn program_file(case: &Case, maps: &[ModuleMap], vector: &[u8]) -> anyhow::Result<PathBuf> {
    let mut pairs = vector.chunks_exact(16).map(|pair| {
        let number =
            |at: usize| pair[at..at + 8].iter().rev().fold(0, |n, b| n << 8 | u64::from(*b));
        (number(0), number(8))
    });
    let entry = pairs.find(|(kind, _)| *kind == AT_ENTRY).map_or(0, |(_, value)| value);
    let recorded = case.as_recorded(maps)?;
    let holds = |map: &&ModuleMap| (map.start..map.end).contains(&entry);
    let found = recorded.iter().find(holds).context("the program's file is not mapped here")?;
    Ok(PathBuf::from(&found.path))
}
