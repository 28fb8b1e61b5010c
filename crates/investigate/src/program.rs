//! The program's files, and where they are loaded: from the mappings of a process, or, of a program that
//! has not been started, from its file.

use anyhow::Context;
use base::{ModuleMap, Range};
use engine::layout::PIE_BASE;
use std::ffi::OsStr;
use std::path::PathBuf;
use symbols::{DebugFiles, Image, LoadedModule, Program};

/// Opens the files that are mapped.
pub fn program_of(maps: &[ModuleMap]) -> Program {
    Program::open(modules(maps), &DebugFiles::default())
}

/// A program that has not been started: its file, where the engine will load it. Its name is looked up as
/// a shell would.
pub fn executable(name: &OsStr) -> anyhow::Result<Program> {
    let path = engine::host::find_program(name)?;
    let image = Image::open(&path)
        .with_context(|| format!("{} has no places: it is not an ELF file", path.display()))?;
    let (lowest, highest) = extent(&image).unwrap_or((0, 0));
    // A file that can be loaded anywhere has addresses from zero on.
    let bias = if lowest == 0 { PIE_BASE } else { 0 };
    let range = Range::new(lowest + bias, highest - lowest);
    Ok(Program::open([LoadedModule { path, bias, range }], &DebugFiles::default()))
}

/// The first page and the end of a file's segments, in its own addresses.
fn extent(image: &Image) -> Option<(u64, u64)> {
    let segments = image.segments();
    let lowest = segments.iter().map(|segment| segment.address.0).min()? & !0xfff;
    let highest = segments.iter().map(|s| s.address.0.saturating_add(s.size)).max()?;
    Some((lowest, highest))
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
    let (lowest, highest) = extent(&image)?;
    let bias = first.start.wrapping_sub(first.offset).wrapping_sub(lowest);
    let end = last.end.max(bias.wrapping_add(highest));
    let range = Range::new(first.start, end.saturating_sub(first.start));
    Some(LoadedModule { path, bias, range })
}
