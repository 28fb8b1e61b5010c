//! Reads a core file: memory, registers of the first thread, and the mapped files.

use base::{Address, Range};
use object::LittleEndian;
use object::elf;
use object::read::elf::{FileHeader, ProgramHeader};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use symbols::{LoadedModule, Memory, Registers};

pub struct Core {
    segments: Vec<(u64, Vec<u8>)>,
    mapped: Vec<Mapped>,
    pub registers: Registers,
    pub thread_pointer: Address,
}

/// Part of a file in memory.
struct Mapped {
    start: u64,
    end: u64,
    offset: u64,
    path: PathBuf,
}

type Header = elf::FileHeader64<LittleEndian>;

impl Core {
    pub fn read(path: &Path) -> Self {
        let data = std::fs::read(path).expect("a core file");
        let data: &[u8] = &data;
        let header = Header::parse(data).expect("a core file");
        let mut core = Self {
            segments: Vec::new(),
            mapped: Vec::new(),
            registers: Registers::default(),
            thread_pointer: Address(0),
        };
        let mut general = None;
        let mut vectors = None;
        for part in header.program_headers(LittleEndian, data).expect("program headers") {
            if part.p_type(LittleEndian) == elf::PT_LOAD {
                let bytes = part.data(LittleEndian, data).expect("a segment");
                core.segments.push((part.p_vaddr(LittleEndian), bytes.to_vec()));
            }
            let Some(mut notes) = part.notes(LittleEndian, data).expect("notes") else { continue };
            while let Some(note) = notes.next().expect("a note") {
                match note.n_type(LittleEndian).0 {
                    1 if general.is_none() => general = Some(note.desc().to_vec()),
                    2 if vectors.is_none() => vectors = Some(note.desc().to_vec()),
                    0x4649_4c45 => core.mapped = files(note.desc()),
                    _ => {}
                }
            }
        }
        let general = general.expect("registers");
        let word = |index: usize| word(&general, 112 + index * 8);
        // The order of `user_regs_struct`, put into the order of the processor's encoding.
        let order = [10, 11, 12, 5, 19, 4, 13, 14, 9, 8, 7, 6, 3, 2, 1, 0];
        core.registers = Registers::from_encoding_order(&order.map(word), word(16));
        if let Some(vectors) = vectors {
            let lane = |index: usize| vectors[160 + index * 16..][..16].try_into().expect("xmm");
            core.registers = core.registers.with_vectors(std::array::from_fn(lane));
        }
        core.thread_pointer = Address(word(21));
        core
    }

    /// The ELF files that are mapped.
    pub fn modules(&self) -> Vec<LoadedModule> {
        let mut files: BTreeMap<&Path, (u64, u64, u64)> = BTreeMap::new();
        for part in &self.mapped {
            let start = part.start - part.offset.min(part.start);
            let entry = files.entry(&part.path).or_insert((part.start, part.end, start));
            *entry = (entry.0.min(part.start), entry.1.max(part.end), entry.2.min(start));
        }
        let loaded = |(path, (start, end, _)): (&&Path, &(u64, u64, u64))| {
            let image = symbols::Image::open(path).ok()?;
            let first = image.segments().first()?.address.0 & !0xfff;
            Some(LoadedModule {
                path: path.to_path_buf(),
                bias: start.wrapping_sub(first),
                range: Range::new(*start, end - start),
            })
        };
        files.iter().filter_map(loaded).collect()
    }

    fn byte(&self, address: u64) -> Option<u8> {
        let held = self.segments.iter().find_map(|(start, bytes)| {
            bytes.get(usize::try_from(address.checked_sub(*start)?).ok()?).copied()
        });
        held.or_else(|| {
            use std::os::unix::fs::FileExt;
            let part = self.mapped.iter().find(|m| m.start <= address && address < m.end)?;
            let mut byte = [0];
            let file = std::fs::File::open(&part.path).ok()?;
            file.read_exact_at(&mut byte, part.offset + (address - part.start)).ok()?;
            Some(byte[0])
        })
    }
}

impl Memory for Core {
    fn read(&self, address: Address, buffer: &mut [u8]) -> bool {
        buffer.iter_mut().enumerate().all(|(index, slot)| {
            let byte = self.byte(address.0.wrapping_add(index as u64));
            *slot = byte.unwrap_or(0);
            byte.is_some()
        })
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// The note that lists mapped files: a count, the page size, (start, end, page offset) each,
/// then the names.
fn files(note: &[u8]) -> Vec<Mapped> {
    let (count, page) = (word(note, 0) as usize, word(note, 8));
    let names = note[16 + count * 24..].split(|byte| *byte == 0);
    (0..count)
        .zip(names)
        .map(|(index, name)| Mapped {
            start: word(note, 16 + index * 24),
            end: word(note, 24 + index * 24),
            offset: word(note, 32 + index * 24) * page,
            path: PathBuf::from(String::from_utf8_lossy(name).into_owned()),
        })
        .collect()
}
