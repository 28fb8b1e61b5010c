//! Puts a program into the guest's address space: its segments, its dynamic loader, and the
//! initial stack with arguments, environment and auxiliary vector.

use super::memory::{Mapping, Memory};
use crate::config::Layout;
use crate::image::{Image, Resolved, Segment};
use crate::layout;
use crate::sys;
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::rc::Rc;

const PAGE: u64 = 4096;

/// Why a program could not be placed.
#[derive(Debug)]
pub enum LoadError {
    /// It wants addresses that the engine or another part of it uses.
    Occupied(u64),
    /// The kernel would not map it.
    Kernel(i32),
    /// A file could not be opened.
    Open(std::io::Error),
}

/// A program ready to start.
pub struct Loaded {
    /// First instruction.
    pub entry: u64,
    /// Entries of the auxiliary vector that depend on the program.
    pub auxiliary: Vec<(u64, u64)>,
}

/// What the program is given.
pub struct Arguments {
    /// `argv`.
    pub arguments: Vec<Vec<u8>>,
    /// `envp`.
    pub environment: Vec<Vec<u8>>,
    /// Path that the program was started by.
    pub path: Vec<u8>,
    /// Auxiliary vector as the kernel gave it to the runner.
    pub auxiliary: Vec<(u64, u64)>,
}

/// Maps the program and its loader.
pub fn load(program: &Resolved, memory: &mut Memory, moved: Layout) -> Result<Loaded, LoadError> {
    let base = if program.image.relocatable { layout::PIE_BASE + moved.program } else { 0 };
    let end = map_image(&program.path, &program.image, base, memory)?;
    let heap = end + moved.heap;
    memory.heap = heap..heap;
    memory.lowered = moved.mappings;
    let mut entry = base + program.image.entry;
    let mut auxiliary = vec![
        (libc::AT_PHDR, base + program.image.headers_address),
        (libc::AT_PHENT, 56),
        (libc::AT_PHNUM, u64::from(program.image.headers_count)),
        (libc::AT_ENTRY, entry),
    ];
    if let Some((path, image)) = &program.interpreter {
        let (low, high) = span(image);
        let bias = if image.relocatable {
            let place = memory.place(0, high - low).ok_or(LoadError::Kernel(libc::ENOMEM))?;
            place - low
        } else {
            0
        };
        map_image(path, image, bias, memory)?;
        entry = bias + image.entry;
        auxiliary.push((libc::AT_BASE, bias));
    } else {
        auxiliary.push((libc::AT_BASE, 0));
    }
    Ok(Loaded { entry, auxiliary })
}

fn span(image: &Image) -> (u64, u64) {
    let first = image.segments.first().map_or(0, |segment| segment.address);
    let last = image.segments.last().map_or(0, |segment| segment.address + segment.memory_size);
    (first & !(PAGE - 1), last.next_multiple_of(PAGE))
}

/// Maps every segment; the page-aligned end of the last one.
fn map_image(path: &Path, image: &Image, bias: u64, memory: &mut Memory) -> Result<u64, LoadError> {
    let file = File::open(path).map_err(LoadError::Open)?;
    let absolute = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let name: Rc<str> = absolute.to_string_lossy().into();
    let (low, high) = span(image);
    let reserved = low + bias..high + bias;
    if image.relocatable && !memory.is_free(&reserved) {
        return Err(LoadError::Occupied(reserved.start));
    }
    for segment in &image.segments {
        let start = (segment.address + bias) & !(PAGE - 1);
        let end = (segment.address + bias + segment.memory_size).next_multiple_of(PAGE);
        if layout::belongs_to_engine(&(start..end)) {
            return Err(LoadError::Occupied(start));
        }
        map_segment(&file, &name, segment, bias, memory)?;
    }
    Ok(high + bias)
}

fn map_segment(
    file: &File,
    name: &Rc<str>,
    segment: &Segment,
    bias: u64,
    memory: &mut Memory,
) -> Result<(), LoadError> {
    let start = (segment.address + bias) & !(PAGE - 1);
    let skipped = (segment.address + bias) - start;
    let file_end = segment.address + bias + segment.file_size;
    let memory_end = (segment.address + bias + segment.memory_size).next_multiple_of(PAGE);
    let mapped_end = if segment.file_size == 0 { start } else { file_end.next_multiple_of(PAGE) };
    let writable = segment.protection & libc::PROT_WRITE != 0;
    if mapped_end > start {
        let offset = segment.offset - skipped;
        // SAFETY: `map_image` checked that the range is free.
        unsafe {
            sys::map_fixed(
                start,
                mapped_end - start,
                segment.protection,
                libc::MAP_PRIVATE,
                file.as_raw_fd(),
                offset,
            )
        }
        .map_err(LoadError::Kernel)?;
        let file = Some(name.clone());
        let mapping =
            Mapping { protection: segment.protection, file, offset, ..Mapping::default() };
        memory.insert(start..mapped_end, mapping);
        if writable && segment.memory_size > segment.file_size {
            // SAFETY: the rest of the last page of a private writable mapping.
            unsafe {
                std::ptr::write_bytes(file_end as *mut u8, 0, (mapped_end - file_end) as usize)
            };
        }
    }
    if memory_end > mapped_end {
        map_zeros(mapped_end, memory_end - mapped_end, segment.protection, memory)?;
    }
    Ok(())
}

fn map_zeros(
    start: u64,
    length: u64,
    protection: i32,
    memory: &mut Memory,
) -> Result<(), LoadError> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: the caller checked that the range is free.
    unsafe { sys::map_fixed(start, length, protection, flags, -1, 0) }
        .map_err(LoadError::Kernel)?;
    memory.insert(start..start + length, Mapping { protection, ..Mapping::default() });
    Ok(())
}

/// Auxiliary entries that would lead the guest past the engine.
fn hidden(kind: u64) -> bool {
    const AT_RSEQ_FEATURE_SIZE: u64 = 27;
    const AT_RSEQ_ALIGN: u64 = 28;
    matches!(kind, libc::AT_SYSINFO_EHDR | AT_RSEQ_FEATURE_SIZE | AT_RSEQ_ALIGN)
}

/// The initial stack.
pub struct InitialStack {
    /// Stack pointer to start with.
    pub pointer: u64,
    /// Where the arguments' strings are.
    pub arguments: Range<u64>,
    /// Where the environment's strings are.
    pub environment: Range<u64>,
}

/// Writes the initial stack at the top of the main thread's stack. The auxiliary vector in
/// `given` becomes the guest's.
///
/// # Safety
/// The stack mapping must be the process's own main stack, with nothing on it still in use.
pub unsafe fn build_stack(top: u64, given: &mut Arguments, loaded: &Loaded) -> InitialStack {
    let mut writer = StackWriter { pointer: top - 8 };
    let path = writer.string(&given.path);
    let strings_end = writer.pointer;
    let environment: Vec<u64> =
        given.environment.iter().rev().map(|text| writer.string(text)).rev_collect();
    let environment_start = writer.pointer;
    let arguments: Vec<u64> =
        given.arguments.iter().rev().map(|text| writer.string(text)).rev_collect();
    let arguments_start = writer.pointer;
    let platform = writer.string(b"x86_64");
    let random = given.auxiliary.iter().find(|(kind, _)| *kind == libc::AT_RANDOM);
    let mut seed = [0u8; 16];
    if let Some((_, address)) = random {
        // SAFETY: the kernel put sixteen bytes there; the caller copied nothing over them yet,
        // or saved them in `auxiliary` as an address of its own.
        seed = unsafe { *(*address as *const [u8; 16]) };
    }
    let random = writer.bytes(&seed);

    let mut auxiliary: Vec<(u64, u64)> = Vec::new();
    for (kind, value) in &given.auxiliary {
        if hidden(*kind) {
            continue;
        }
        let replaced = loaded.auxiliary.iter().find(|(own, _)| own == kind);
        let value = match *kind {
            libc::AT_EXECFN => path,
            libc::AT_RANDOM => random,
            libc::AT_PLATFORM => platform,
            _ => replaced.map_or(*value, |(_, value)| *value),
        };
        auxiliary.push((*kind, value));
    }
    auxiliary.push((0, 0));
    given.auxiliary.clone_from(&auxiliary);

    let words = 1 + arguments.len() + 1 + environment.len() + 1 + 2 * auxiliary.len();
    let start = (writer.pointer - 8 * words as u64) & !15;
    let mut table = vec![arguments.len() as u64];
    table.extend(arguments);
    table.push(0);
    table.extend(environment);
    table.push(0);
    table.extend(auxiliary.iter().flat_map(|(kind, value)| [*kind, *value]));
    // SAFETY: the caller's promise; the kernel grows the stack on demand.
    unsafe { std::ptr::copy_nonoverlapping(table.as_ptr(), start as *mut u64, table.len()) };
    InitialStack {
        pointer: start,
        arguments: arguments_start..environment_start,
        environment: environment_start..strings_end,
    }
}

struct StackWriter {
    pointer: u64,
}

impl StackWriter {
    fn bytes(&mut self, bytes: &[u8]) -> u64 {
        self.pointer -= bytes.len() as u64;
        // SAFETY: `build_stack`'s caller owns the stack.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.pointer as *mut u8, bytes.len());
        }
        self.pointer
    }

    fn string(&mut self, text: &[u8]) -> u64 {
        self.bytes(&[0]);
        self.bytes(text)
    }
}

/// Collects what was made in reverse order.
trait ReverseCollect<T> {
    fn rev_collect(self) -> Vec<T>;
}

impl<T, I: Iterator<Item = T>> ReverseCollect<T> for I {
    fn rev_collect(self) -> Vec<T> {
        let mut all: Vec<T> = self.collect();
        all.reverse();
        all
    }
}
