//! The guest's memory and files as a crash report has them.

use base::{Address, Range};
use engine::report::{Chunk, CrashReport, ModuleMap};
use std::path::PathBuf;
use symbols::{DebugFiles, Image, LoadedModule, Memory, Program};

/// The stretches of memory that the runner kept.
pub struct Kept<'a>(pub &'a [Chunk]);

impl Memory for Kept<'_> {
    fn read(&self, address: Address, buffer: &mut [u8]) -> bool {
        let held = self.0.iter().find_map(|chunk| {
            let from = usize::try_from(address.0.checked_sub(chunk.start)?).ok()?;
            chunk.bytes.get(from..from.checked_add(buffer.len())?)
        });
        held.map(|bytes| buffer.copy_from_slice(bytes)).is_some()
    }
}

/// The code from `address` on, at most one instruction of it.
pub fn code_at(report: &CrashReport, address: u64) -> Vec<u8> {
    let kept = Kept(&report.memory);
    let fits = |length: &usize| {
        let mut bytes = vec![0; *length];
        kept.read(Address(address), &mut bytes).then_some(bytes)
    };
    (1..=15).rev().find_map(|length| fits(&length)).unwrap_or_default()
}

/// Opens the files of the guest.
pub fn program(report: &CrashReport) -> Program {
    program_of(&report.modules)
}

/// Opens the files that are mapped.
pub fn program_of(maps: &[ModuleMap]) -> Program {
    Program::open(modules(maps), &DebugFiles::default())
}

/// A file counts once for every time it was loaded: its parts follow each other in memory, and
/// each time begin with the first byte of the file.
fn modules(maps: &[ModuleMap]) -> Vec<LoadedModule> {
    let mut groups: Vec<Vec<&ModuleMap>> = Vec::new();
    for map in maps {
        match groups.last_mut() {
            Some(group) if group[0].path == map.path && map.offset != 0 => group.push(map),
            _ => groups.push(vec![map]),
        }
    }
    groups.iter().filter_map(|group| module(group)).collect()
}

fn module(parts: &[&ModuleMap]) -> Option<LoadedModule> {
    let (first, last) = (parts.first()?, parts.last()?);
    let path = PathBuf::from(&first.path);
    // Files that are mapped as data are not modules.
    let image = Image::open(&path).ok()?;
    let lowest = image.segments().iter().map(|segment| segment.address.0).min()? & !0xfff;
    let highest =
        image.segments().iter().map(|s| s.address.0.saturating_add(s.size)).max().unwrap_or(0);
    let bias = first.start.wrapping_sub(first.offset).wrapping_sub(lowest);
    let end = last.end.max(bias.wrapping_add(highest));
    let range = Range::new(first.start, end.saturating_sub(first.start));
    Some(LoadedModule { path, bias, range })
}
