//! Reads what an ELF executable wants: where its segments go, where it starts, which loader it
//! names. Also what a `#!` line asks for.
//!
//! The host uses this to refuse unusable programs with a sentence, the runner to load them.
//! Nothing is mapped here.

use crate::layout;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A segment to map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Address the file asks for, before the load bias.
    pub address: u64,
    /// Bytes in memory.
    pub memory_size: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Bytes in the file.
    pub file_size: u64,
    /// `PROT_*` bits.
    pub protection: i32,
    /// Alignment it asks for.
    pub alignment: u64,
}

/// A program that can be loaded.
#[derive(Clone, Debug)]
pub struct Image {
    /// Whether it may be placed anywhere.
    pub relocatable: bool,
    /// Where execution starts, before the load bias.
    pub entry: u64,
    /// Address of the program headers in memory, before the load bias; zero if not loaded.
    pub headers_address: u64,
    /// Number of program headers.
    pub headers_count: u16,
    /// What to map, by rising address.
    pub segments: Vec<Segment>,
    /// The dynamic loader it names.
    pub interpreter: Option<PathBuf>,
    /// Whether its stack must be executable.
    pub executable_stack: bool,
}

/// Why a file cannot be run.
#[derive(Debug)]
pub enum Unusable {
    /// It could not be opened or read.
    Io(io::Error),
    /// No path was given.
    EmptyPath,
    /// It is a directory, a device …
    NotAFile(&'static str),
    /// The file lacks the permission to be executed.
    NotExecutable,
    /// Running it would change privileges.
    Setuid,
    /// It is no ELF file and no script.
    NotElf,
    /// It is an ELF file of another kind.
    WrongKind(String),
    /// It ends before what its headers promise.
    Truncated,
    /// Its headers contradict themselves.
    Malformed(&'static str),
    /// It wants memory at an address that the engine uses or nobody has.
    Place(u64),
    /// The loader or interpreter that it names cannot be used.
    Interpreter(PathBuf, Box<Unusable>),
    /// Scripts that name scripts that name scripts …
    TooManyInterpreters,
}

impl fmt::Display for Unusable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(out, "{}", describe(error)),
            Self::EmptyPath => out.write_str("the program's path is empty"),
            Self::NotAFile(what) => write!(out, "is {what}, not a program"),
            Self::NotExecutable => {
                out.write_str("is not executable; `chmod +x` it if it is a program")
            }
            Self::Setuid => out.write_str(
                "is setuid or setgid to someone else: it cannot be observed; run it as that user",
            ),
            Self::NotElf => out.write_str("is neither an ELF executable nor a `#!` script"),
            Self::WrongKind(found) => {
                write!(out, "is {found}; an x86-64 Linux executable is needed")
            }
            Self::Truncated => out.write_str("is a truncated ELF file"),
            Self::Malformed(what) => write!(out, "is a damaged ELF file: {what}"),
            Self::Place(address) => write!(
                out,
                "wants memory from {address:#x} on, which the engine uses or nobody has; \
                 a position-independent build can be moved"
            ),
            Self::Interpreter(path, why) => {
                write!(out, "needs the interpreter {}, which {why}", path.display())
            }
            Self::TooManyInterpreters => out.write_str("names more than four interpreters in turn"),
        }
    }
}

impl std::error::Error for Unusable {}

fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "does not exist".into(),
        io::ErrorKind::PermissionDenied => "cannot be read: permission denied".into(),
        _ => format!("cannot be read: {error}"),
    }
}

impl From<io::Error> for Unusable {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// What kind of program a file is.
pub enum Program {
    /// An ELF executable.
    Elf(Box<Image>),
    /// A script: its interpreter and the one argument that its first line may give.
    Script {
        /// Path of the interpreter.
        interpreter: PathBuf,
        /// Everything behind it on the first line.
        argument: Option<Vec<u8>>,
    },
}

/// A program with all `#!` lines followed.
pub struct Resolved {
    /// The ELF file to load.
    pub path: PathBuf,
    /// Its image.
    pub image: Image,
    /// The image of the dynamic loader that it names.
    pub interpreter: Option<(PathBuf, Image)>,
    /// What replaces the first argument: interpreter, its argument, the script's path.
    pub prepended: Vec<Vec<u8>>,
}

/// Follows `#!` lines from `path` to an ELF executable and the loader that it names.
pub fn resolve(path: &Path) -> Result<Resolved, Unusable> {
    let mut path = path.to_owned();
    let mut prepended: Vec<Vec<u8>> = Vec::new();
    for depth in 0..5 {
        let opened = check_file(&path).and_then(|file| read_program(&file));
        let program = match opened {
            Err(why) if depth > 0 => return Err(Unusable::Interpreter(path, Box::new(why))),
            other => other?,
        };
        match program {
            Program::Elf(image) => {
                let interpreter = image.interpreter.clone().map(read_interpreter).transpose()?;
                check_places(&image)?;
                return Ok(Resolved { path, image: *image, interpreter, prepended });
            }
            Program::Script { interpreter, argument } => {
                use std::os::unix::ffi::OsStrExt;
                let mut front = vec![interpreter.as_os_str().as_bytes().to_vec()];
                front.extend(argument);
                front.push(path.as_os_str().as_bytes().to_vec());
                // The outer script's first argument was its own path; it stands in `front` now.
                front.extend(prepended.into_iter().skip(1));
                prepended = front;
                path = interpreter;
            }
        }
    }
    Err(Unusable::TooManyInterpreters)
}

/// Whether the guest can have the addresses that the program is made for.
fn check_places(image: &Image) -> Result<(), Unusable> {
    let base = if image.relocatable { layout::PIE_BASE } else { 0 };
    for segment in &image.segments {
        let start = (segment.address + base) & !0xfff;
        let end = (segment.address + base + segment.memory_size).next_multiple_of(0x1000);
        if end > layout::MAPPINGS_TOP || layout::belongs_to_engine(&(start..end)) {
            return Err(Unusable::Place(start));
        }
    }
    Ok(())
}

fn read_interpreter(path: PathBuf) -> Result<(PathBuf, Image), Unusable> {
    let image = File::open(&path)
        .map_err(Unusable::from)
        .and_then(|file| read_program(&file))
        .and_then(|program| match program {
            Program::Elf(image) => Ok(*image),
            Program::Script { .. } => Err(Unusable::NotElf),
        })
        .map_err(|why| Unusable::Interpreter(path.clone(), Box::new(why)))?;
    Ok((path, image))
}

/// Opens a file that is to be executed.
fn check_file(path: &Path) -> Result<File, Unusable> {
    if path.as_os_str().is_empty() {
        return Err(Unusable::EmptyPath);
    }
    let meta = std::fs::metadata(path)?;
    let kind = meta.file_type();
    use std::os::unix::fs::FileTypeExt;
    if kind.is_dir() {
        return Err(Unusable::NotAFile("a directory"));
    } else if kind.is_block_device() || kind.is_char_device() {
        return Err(Unusable::NotAFile("a device"));
    } else if !kind.is_file() {
        return Err(Unusable::NotAFile("a socket or pipe"));
    }
    if meta.mode() & 0o111 == 0 {
        return Err(Unusable::NotExecutable);
    }
    // SAFETY: neither call touches memory.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    let changes_user = meta.mode() & libc::S_ISUID != 0 && meta.uid() != user;
    let changes_group = meta.mode() & libc::S_ISGID != 0 && meta.gid() != group;
    if changes_user || changes_group {
        return Err(Unusable::Setuid);
    }
    Ok(File::open(path)?)
}

const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const MAX_HEADERS: u16 = 1024;

/// Reads what kind of program an open file is.
pub fn read_program(mut file: &File) -> Result<Program, Unusable> {
    let mut start = [0; 256];
    let mut length = 0;
    while length < start.len() {
        match file.read(&mut start[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    let start = &start[..length];
    if start.starts_with(b"#!") {
        return script(start);
    }
    if !start.starts_with(b"\x7fELF") {
        return Err(Unusable::NotElf);
    }
    if start.len() < HEADER {
        return Err(Unusable::Truncated);
    }
    check_kind(start)?;
    image(file, start).map(|image| Program::Elf(Box::new(image)))
}

fn script(start: &[u8]) -> Result<Program, Unusable> {
    let line = start[2..].split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.trim_ascii();
    let split = line.iter().position(|byte| *byte == b' ' || *byte == b'\t').unwrap_or(line.len());
    let (interpreter, rest) = line.split_at(split);
    if interpreter.is_empty() {
        return Err(Unusable::NotElf);
    }
    use std::os::unix::ffi::OsStringExt;
    let argument = rest.trim_ascii();
    Ok(Program::Script {
        interpreter: PathBuf::from(std::ffi::OsString::from_vec(interpreter.to_vec())),
        argument: (!argument.is_empty()).then(|| argument.to_vec()),
    })
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn check_kind(header: &[u8]) -> Result<(), Unusable> {
    let wrong = |found: &str| Err(Unusable::WrongKind(found.into()));
    match (header[4], header[5]) {
        (2, 1) => {}
        (1, _) => return wrong("a 32-bit ELF file"),
        (2, 2) => return wrong("a big-endian ELF file"),
        _ => return Err(Unusable::Malformed("unknown class or byte order")),
    }
    match half(header, 18) {
        62 => {}
        183 => return wrong("an ELF file for AArch64"),
        243 => return wrong("an ELF file for RISC-V"),
        other => return wrong(&format!("an ELF file for another processor (machine {other})")),
    }
    match half(header, 16) {
        2 | 3 => Ok(()),
        1 => wrong("an object file, not yet linked"),
        4 => wrong("a core dump"),
        _ => Err(Unusable::Malformed("unknown file type")),
    }
}

fn image(file: &File, header: &[u8]) -> Result<Image, Unusable> {
    let count = half(header, 56);
    if usize::from(half(header, 54)) != PROGRAM_HEADER || count == 0 || count > MAX_HEADERS {
        return Err(Unusable::Malformed("unusable program headers"));
    }
    let mut table = vec![0; usize::from(count) * PROGRAM_HEADER];
    read_exactly(file, &mut table, long(header, 32))?;
    let mut image = Image {
        relocatable: half(header, 16) == 3,
        entry: long(header, 24),
        headers_address: 0,
        headers_count: count,
        segments: Vec::new(),
        interpreter: None,
        executable_stack: true,
    };
    let file_length = file.metadata()?.len();
    for entry in table.chunks_exact(PROGRAM_HEADER) {
        program_header(file, file_length, entry, &mut image)?;
    }
    finish(image, long(header, 32))
}

fn program_header(
    file: &File,
    file_length: u64,
    entry: &[u8],
    image: &mut Image,
) -> Result<(), Unusable> {
    let (offset, file_size) = (long(entry, 8), long(entry, 32));
    match word(entry, 0) {
        1 => {
            if offset.checked_add(file_size).is_none_or(|end| end > file_length) {
                return Err(Unusable::Truncated);
            }
            image.segments.push(Segment {
                address: long(entry, 16),
                memory_size: long(entry, 40),
                offset,
                file_size,
                protection: protection(word(entry, 4)),
                alignment: long(entry, 48),
            });
        }
        3 => image.interpreter = Some(interpreter_path(file, offset, file_size)?),
        0x6474_e551 => image.executable_stack = word(entry, 4) & 1 != 0,
        _ => {}
    }
    Ok(())
}

fn protection(flags: u32) -> i32 {
    let bit = |flag: u32, bit: i32| if flags & flag != 0 { bit } else { 0 };
    bit(4, libc::PROT_READ) | bit(2, libc::PROT_WRITE) | bit(1, libc::PROT_EXEC)
}

fn interpreter_path(file: &File, offset: u64, size: u64) -> Result<PathBuf, Unusable> {
    if size < 2 || size > libc::PATH_MAX as u64 {
        return Err(Unusable::Malformed("unusable interpreter name"));
    }
    let mut name = vec![0; size as usize];
    read_exactly(file, &mut name, offset)?;
    if name.pop() != Some(0) {
        return Err(Unusable::Malformed("unusable interpreter name"));
    }
    use std::os::unix::ffi::OsStringExt;
    Ok(PathBuf::from(std::ffi::OsString::from_vec(name)))
}

fn read_exactly(file: &File, buffer: &mut [u8], offset: u64) -> Result<(), Unusable> {
    file.read_exact_at(buffer, offset).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => Unusable::Truncated,
        _ => Unusable::Io(error),
    })
}

/// Checks that the segments make sense together.
fn finish(mut image: Image, headers_offset: u64) -> Result<Image, Unusable> {
    image.segments.sort_by_key(|segment| segment.address);
    if image.segments.is_empty() {
        return Err(Unusable::Malformed("nothing to load"));
    }
    let mut previous_end = 0;
    for segment in &image.segments {
        let end = segment.address.checked_add(segment.memory_size);
        if segment.file_size > segment.memory_size || end.is_none_or(|end| end > 1 << 47) {
            return Err(Unusable::Malformed("a segment does not fit"));
        }
        if segment.address & 0xfff != segment.offset & 0xfff {
            return Err(Unusable::Malformed("a segment is not aligned as its file offset"));
        }
        if segment.address < previous_end {
            return Err(Unusable::Malformed("segments overlap"));
        }
        previous_end = end.unwrap_or(u64::MAX);
        let in_file = segment.offset..segment.offset + segment.file_size;
        if in_file.contains(&headers_offset) {
            image.headers_address = segment.address + (headers_offset - segment.offset);
        }
    }
    Ok(image)
}
