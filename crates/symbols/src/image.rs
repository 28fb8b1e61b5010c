//! One ELF file: what its headers say, with sections read (and decompressed) when asked for.
//!
//! Files are not mapped but read, section by section: a file that changes or shrinks under us is
//! then at worst a short read, never a fault, and only what a question needs is in memory.

use crate::address::FileAddress;
use crate::error::Error;
use object::read::elf::ElfFile64;
use object::read::{ReadCache, ReadRef};
use object::{Architecture, LittleEndian, Object, ObjectSection, ObjectSegment, elf};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The bytes of a section, shared by everything that reads from them.
pub type Bytes = Arc<[u8]>;

/// Sections that claim to be larger are refused: no real one is, broken headers are.
const LARGEST_SECTION: u64 = 1 << 33;

/// An ELF file for x86-64.
pub struct Image {
    path: PathBuf,
    source: Source,
    headers: Headers,
}

/// What the headers of a file say.
struct Headers {
    sections: Vec<Section>,
    segments: Vec<Segment>,
    build_id: Option<Vec<u8>>,
    debug_link: Option<DebugLink>,
    alternate_link: Option<AlternateLink>,
    tls: Option<TlsSegment>,
    dynamic: Option<FileAddress>,
    entry: FileAddress,
}

/// A section as its header describes it.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// Where it is in the loaded file; 0 for sections that are not loaded.
    pub address: FileAddress,
    /// Its size in memory.
    pub size: u64,
    /// Whether the processor may run it.
    pub executable: bool,
    /// Whether it is a part of the loaded program at all.
    pub loaded: bool,
    file_range: Option<(u64, u64)>,
    compressed: bool,
}

/// A part of the file that the loader maps.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// Where it starts.
    pub address: FileAddress,
    /// Its size in memory.
    pub size: u64,
    /// Whether the processor may run it.
    pub executable: bool,
    /// Whether the program may write to it.
    pub writable: bool,
    file_range: (u64, u64),
}

impl Segment {
    /// Where in the file it starts.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.file_range.0
    }
}

/// The name and checksum of a file with this one's debug information (`.gnu_debuglink`).
#[derive(Clone, Debug)]
pub struct DebugLink {
    /// A file name without folders.
    pub name: String,
    /// CRC-32 of that file.
    pub crc: u32,
}

/// The name and build-id of a file that holds debug information common to several
/// (`.gnu_debugaltlink`).
#[derive(Clone, Debug)]
pub struct AlternateLink {
    /// A path, relative ones from the folder of the file that has the link.
    pub path: PathBuf,
    /// The build-id of that file.
    pub build_id: Vec<u8>,
}

/// The template of the file's thread-local variables.
#[derive(Clone, Copy, Debug)]
pub struct TlsSegment {
    /// Its size in memory.
    pub size: u64,
    /// Its alignment.
    pub align: u64,
}

enum Source {
    File(File),
    Bytes(Bytes),
}

impl Image {
    /// Opens the ELF file at `path`.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let unreadable = |cause| Error::Unreadable { path: path.into(), cause };
        let file = File::open(path).map_err(unreadable)?;
        if !file.metadata().map_err(unreadable)?.is_file() {
            return Err(Error::not_elf(path, "not a regular file"));
        }
        Self::parse(path, Source::File(file))
    }

    /// Reads an ELF file that is already in memory; `path` is what messages call it.
    pub fn from_bytes(path: &Path, bytes: Bytes) -> Result<Self, Error> {
        Self::parse(path, Source::Bytes(bytes))
    }

    fn parse(path: &Path, source: Source) -> Result<Self, Error> {
        let headers = Headers::read(path, &source)?;
        Ok(Self { path: path.into(), source, headers })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All sections.
    #[must_use]
    pub fn sections(&self) -> &[Section] {
        &self.headers.sections
    }

    /// The segments that the loader maps.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.headers.segments
    }

    /// The build-id, if the file has one.
    #[must_use]
    pub fn build_id(&self) -> Option<&[u8]> {
        self.headers.build_id.as_deref()
    }

    /// The link to a file with this one's debug information.
    #[must_use]
    pub fn debug_link(&self) -> Option<&DebugLink> {
        self.headers.debug_link.as_ref()
    }

    /// The link to a file with debug information common to several.
    #[must_use]
    pub fn alternate_link(&self) -> Option<&AlternateLink> {
        self.headers.alternate_link.as_ref()
    }

    /// The template of thread-local variables.
    #[must_use]
    pub fn tls(&self) -> Option<TlsSegment> {
        self.headers.tls
    }

    /// Where the dynamic section is.
    #[must_use]
    pub fn dynamic(&self) -> Option<FileAddress> {
        self.headers.dynamic
    }

    /// Where the program starts.
    #[must_use]
    pub fn entry(&self) -> FileAddress {
        self.headers.entry
    }

    /// The first section of that name.
    #[must_use]
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.headers.sections.iter().find(|section| section.name == name)
    }

    /// Whether a section of that name has contents in this file.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.section_or_z(name).is_some_and(|section| section.file_range.is_some())
    }

    /// The contents of the section of that name, decompressed; `None` if the file has none, or
    /// not in a readable form.
    #[must_use]
    pub fn contents(&self, name: &str) -> Option<Bytes> {
        let section = self.section_or_z(name)?;
        let (offset, size) = section.file_range?;
        if section.compressed || section.name != name {
            return self.decompressed(name);
        }
        self.source.bytes(offset, size)
    }

    /// The file's own bytes at an address of a loaded segment.
    #[must_use]
    pub fn bytes_at(&self, address: FileAddress, size: u64) -> Option<Bytes> {
        let segment = self.headers.segments.iter().find(|segment| {
            address.0.checked_sub(segment.address.0).is_some_and(|at| at < segment.file_range.1)
        })?;
        let at = address.0 - segment.address.0;
        let size = size.min(segment.file_range.1 - at);
        self.source.bytes(segment.file_range.0.checked_add(at)?, size)
    }

    /// Whether the processor may run the code at `address`.
    #[must_use]
    pub fn is_code(&self, address: FileAddress) -> bool {
        self.headers.segments.iter().any(|segment| {
            segment.executable
                && address.0.checked_sub(segment.address.0).is_some_and(|at| at < segment.size)
        })
    }

    /// CRC-32 of the whole file, as debug links have it.
    pub(crate) fn crc(&self) -> Option<u32> {
        let mut hasher = crc32fast::Hasher::new();
        let mut buffer = vec![0; 1 << 16];
        let mut at = 0;
        loop {
            let count = self.source.read_at(&mut buffer, at).ok()?;
            if count == 0 {
                return Some(hasher.finalize());
            }
            hasher.update(&buffer[..count]);
            at += count as u64;
        }
    }

    /// Runs `work` on the parsed file; for tables that are read once, such as symbols.
    pub(crate) fn with_elf<T>(&self, work: impl FnOnce(&Elf<'_>) -> T) -> Option<T> {
        let cache = ReadCache::new(Cursor { source: &self.source, at: 0 });
        let file = parse_elf(&self.path, &cache).ok()?;
        Some(work(&file))
    }

    fn section_or_z(&self, name: &str) -> Option<&Section> {
        let old_style = name.strip_prefix('.').map(|rest| format!(".z{rest}"));
        self.section(name).or_else(|| self.section(&old_style?))
    }

    fn decompressed(&self, name: &str) -> Option<Bytes> {
        self.with_elf(|file| {
            let data = file.section_by_name(name)?.compressed_data().ok()?;
            // Deflate and zstd shrink by 1000 and a little more at the very best.
            let plausible = (data.data.len() as u64 + 64).saturating_mul(1 << 14);
            if data.uncompressed_size > plausible.min(LARGEST_SECTION) {
                return None;
            }
            Some(Arc::from(data.decompress().ok()?))
        })?
    }
}

impl Headers {
    fn read(path: &Path, source: &Source) -> Result<Self, Error> {
        let cache = ReadCache::new(Cursor { source, at: 0 });
        let file = parse_elf(path, &cache)?;
        let debug_link = file.gnu_debuglink().ok().flatten();
        let alternate_link = file.gnu_debugaltlink().ok().flatten();
        let tls = program_header(&file, elf::PT_TLS);
        let dynamic = program_header(&file, elf::PT_DYNAMIC);
        Ok(Self {
            sections: file.sections().map(|section| section_of(&section)).collect(),
            segments: file.segments().map(|segment| segment_of(&segment)).collect(),
            build_id: file.build_id().ok().flatten().map(<[u8]>::to_vec),
            debug_link: debug_link.map(|(name, crc)| DebugLink { name: lossy(name), crc }),
            alternate_link: alternate_link.map(|(path, id)| AlternateLink {
                path: PathBuf::from(lossy(path)),
                build_id: id.to_vec(),
            }),
            tls: tls.map(|(_, size, align)| TlsSegment { size, align: align.max(1) }),
            dynamic: dynamic.map(|(address, _, _)| FileAddress(address)),
            entry: FileAddress(file.entry()),
        })
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The parsed file that [`Image::with_elf`] lends out.
pub(crate) type Elf<'a> = ElfFile64<'a, LittleEndian, &'a ReadCache<Cursor<'a>>>;

fn parse_elf<'a>(path: &Path, cache: &'a ReadCache<Cursor<'a>>) -> Result<Elf<'a>, Error> {
    if let Ok(start) = cache.read_bytes_at(0, 20)
        && start.starts_with(b"\x7fELF")
        && (start[4], start[5]) != (2, 1)
    {
        let machine = "a 32-bit or big-endian machine".into();
        return Err(Error::WrongMachine { path: path.into(), machine });
    }
    let file = Elf::parse(cache).map_err(|cause| Error::not_elf(path, cause))?;
    if file.architecture() != Architecture::X86_64 {
        let machine = format!("{:?}", file.architecture());
        return Err(Error::WrongMachine { path: path.into(), machine });
    }
    Ok(file)
}

fn section_of<'a>(section: &impl ObjectSection<'a>) -> Section {
    let flags = match section.flags() {
        object::SectionFlags::Elf { sh_flags, .. } => sh_flags.0,
        _ => 0,
    };
    Section {
        name: lossy(section.name_bytes().unwrap_or_default()),
        address: FileAddress(section.address()),
        size: section.size(),
        executable: flags & elf::SHF_EXECINSTR.0 != 0,
        loaded: flags & elf::SHF_ALLOC.0 != 0,
        file_range: section.file_range(),
        compressed: flags & elf::SHF_COMPRESSED.0 != 0,
    }
}

fn segment_of<'a>(segment: &impl ObjectSegment<'a>) -> Segment {
    Segment {
        address: FileAddress(segment.address()),
        size: segment.size(),
        executable: segment.permissions().executable(),
        writable: segment.permissions().writable(),
        file_range: segment.file_range(),
    }
}

/// Address, size and alignment of the first program header of a kind.
fn program_header(file: &Elf<'_>, kind: elf::ProgramType) -> Option<(u64, u64, u64)> {
    use object::read::elf::ProgramHeader;
    let endian = LittleEndian;
    file.elf_program_headers()
        .iter()
        .find(|header| header.p_type(endian) == kind)
        .map(|header| (header.p_vaddr(endian), header.p_memsz(endian), header.p_align(endian)))
}

impl Source {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read_at(buffer, offset),
            Self::Bytes(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                let count = buffer.len().min(bytes.len() - start);
                buffer[..count].copy_from_slice(&bytes[start..start + count]);
                Ok(count)
            }
        }
    }

    fn length(&self) -> io::Result<u64> {
        match self {
            Self::File(file) => Ok(file.metadata()?.len()),
            Self::Bytes(bytes) => Ok(bytes.len() as u64),
        }
    }

    fn bytes(&self, offset: u64, size: u64) -> Option<Bytes> {
        let end = offset.checked_add(size)?;
        if end > self.length().ok()? || size > LARGEST_SECTION {
            return None;
        }
        let mut bytes: Bytes = std::iter::repeat_n(0, usize::try_from(size).ok()?).collect();
        let mut rest = Arc::get_mut(&mut bytes)?;
        let mut at = offset;
        while !rest.is_empty() {
            let count = self.read_at(rest, at).ok().filter(|count| *count > 0)?;
            rest = &mut rest[count..];
            at += count as u64;
        }
        Some(bytes)
    }
}

/// Lets `object` read through a [`Source`].
pub(crate) struct Cursor<'a> {
    source: &'a Source,
    at: u64,
}

impl io::Read for Cursor<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read_at(buffer, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl io::Seek for Cursor<'_> {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        let (from, by) = match to {
            io::SeekFrom::Start(at) => (at, 0),
            io::SeekFrom::End(by) => (self.source.length()?, by),
            io::SeekFrom::Current(by) => (self.at, by),
        };
        self.at = from.checked_add_signed(by).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
