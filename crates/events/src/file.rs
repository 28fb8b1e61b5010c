//! A stream in a file: a magic number and a version, then chunks of whole records, each with its
//! length and a checksum, then a length of 0. Without that the file is not complete: the disk was
//! full, or whoever wrote it was killed.

use crate::consume::Consumer;
use std::fmt;
use std::io::{self, Read, Write};

const MAGIC: &[u8; 8] = b"WDEVENTS";
/// To be raised with every change of the format; the tests know when there was one.
const VERSION: u32 = 10;
const LARGEST_CHUNK: u32 = 64 << 20;

/// Writes a stream.
pub struct Writer<W> {
    out: W,
    /// The first error; writing stops there.
    pub error: Option<io::Error>,
}

impl<W: Write> Writer<W> {
    /// Starts a file.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        Ok(Self { out, error: None })
    }

    fn chunk(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.out.write_all(&(bytes.len() as u32).to_le_bytes())?;
        self.out.write_all(&checksum(bytes).to_le_bytes())?;
        self.out.write_all(bytes)
    }
}

impl<W: Write + Send> Consumer for Writer<W> {
    fn records(&mut self, bytes: &[u8]) {
        if self.error.is_none() {
            self.error = self.chunk(bytes).err();
        }
    }

    fn end(&mut self) {
        if self.error.is_none() {
            let mark = self.out.write_all(&0u32.to_le_bytes());
            self.error = mark.and_then(|()| self.out.flush()).err();
        }
    }
}

/// Why a file could not be read to its end.
#[derive(Debug)]
pub enum ReadError {
    /// The system's word.
    Io(io::Error),
    /// It is no event stream.
    NotAStream,
    /// It was written by another version.
    Version(u32),
    /// It is damaged or cut off.
    Damaged,
}

impl fmt::Display for ReadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(out, "cannot be read: {error}"),
            Self::NotAStream => out.write_str("is not a file of events"),
            Self::Version(found) => write!(
                out,
                "holds events of format {found}; this version reads {VERSION}: save them again"
            ),
            Self::Damaged => out.write_str("is damaged or not complete: save the events again"),
        }
    }
}

impl std::error::Error for ReadError {}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof { Self::Damaged } else { Self::Io(error) }
    }
}

/// Feeds a file to a consumer.
pub fn feed(mut input: impl Read, consumer: &mut dyn Consumer) -> Result<(), ReadError> {
    let mut magic = [0; 8];
    input.read_exact(&mut magic).map_err(|_| ReadError::NotAStream)?;
    if &magic != MAGIC {
        return Err(ReadError::NotAStream);
    }
    let version = read_u32(&mut input)?;
    if version != VERSION {
        return Err(ReadError::Version(version));
    }
    loop {
        let length = read_u32(&mut input)?;
        if length == 0 {
            break;
        }
        if length > LARGEST_CHUNK {
            return Err(ReadError::Damaged);
        }
        let expected = read_u32(&mut input)?;
        let mut bytes = Vec::new();
        input.by_ref().take(u64::from(length)).read_to_end(&mut bytes)?;
        if bytes.len() != length as usize || checksum(&bytes) != expected {
            return Err(ReadError::Damaged);
        }
        consumer.records(&bytes);
    }
    consumer.end();
    Ok(())
}

fn read_u32(input: &mut impl Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    input.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

/// FNV-1a: enough to notice damage.
fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::list::{self, Buffer, BufferList};
    use crate::record::{self, Entry};
    use crate::shape::{Access, Exit, Instruction, Segment, Shape, Source};
    use crate::suspicion::{Access as Touch, Memory, Suspicion, Use};

    #[derive(Default)]
    struct Collect(Vec<u8>, bool);

    impl Consumer for Collect {
        fn records(&mut self, bytes: &[u8]) {
            self.0.extend_from_slice(bytes);
        }
        fn end(&mut self) {
            self.1 = true;
        }
    }

    fn saved(chunks: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes).expect("a vector takes everything");
        for chunk in chunks {
            writer.records(chunk);
        }
        writer.end();
        assert!(writer.error.is_none());
        bytes
    }

    #[test]
    fn what_was_saved_is_fed() {
        let mut all = Collect::default();
        let file = saved(&[b"one", b"", b"three"]);
        feed(file.as_slice(), &mut all).expect("readable");
        assert_eq!((all.0.as_slice(), all.1), (b"onethree".as_slice(), true));
    }

    #[test]
    fn a_file_that_was_cut_off_or_damaged_is_refused() {
        let file = saved(&[b"one", b"three"]);
        for length in 0..file.len() {
            let mut all = Collect::default();
            let read = feed(&file[..length], &mut all);
            let reason = read.expect_err("refused");
            assert!(matches!(reason, ReadError::NotAStream | ReadError::Damaged), "{reason}");
            assert!(!all.1, "cut to {length} bytes");
        }
        for at in 0..file.len() {
            let mut file = file.clone();
            file[at] ^= 4;
            assert!(feed(file.as_slice(), &mut Collect::default()).is_err(), "byte {at}");
        }
    }

    #[test]
    fn another_version_is_named() {
        let mut file = saved(&[]);
        file[8] = 99;
        let reason = feed(file.as_slice(), &mut Collect::default()).expect_err("refused");
        assert!(reason.to_string().starts_with("holds events of format 99; this version reads "));
    }

    /// Bytes of everything that readers must agree on with writers.
    fn sample() -> Vec<u8> {
        let numbers = [record::FIRST_EXIT, record::FIELD as u32, record::REPEAT_FIELDS as u32];
        let access = |source, segment| Access {
            index: 1,
            write: true,
            segment,
            from_source: true,
            narrow: true,
            size: 3,
            source,
            value: Some(13),
        };
        let shape = Shape {
            first_exit: 20,
            instructions: vec![Instruction { pc: 5, length: 2, kind: 4, ..Instruction::default() }],
            accesses: vec![
                access(Source::Constant(7), Segment::Flat),
                access(Source::Field { field: 8, offset: -9 }, Segment::Fs),
                access(Source::Repeat { field: 10 }, Segment::Gs),
                access(Source::Explicit, Segment::Flat),
            ],
            exits: vec![Exit { executed: 1, fields: 11, taken: true }],
            fields_before: vec![12],
        };
        let mut bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        bytes.extend(list::define(&shape));
        bytes.extend(list::partial(20, 1, &[1, 2, 3, 4, 5, 6], &[7]));
        bytes.extend(list::accesses(&[(true, 8, 9), (false, 10, 11)]));
        bytes.extend(list::probe(12, 5, &[13, 14]));
        let mut buffers = BufferList::default();
        buffers.add(&Buffer {
            address: 15,
            length: 2,
            write: true,
            bytes: Some(&[16, 17]),
            absent: None,
        });
        buffers.add(&Buffer {
            address: 18,
            length: 19,
            write: false,
            bytes: None,
            absent: Some(20),
        });
        bytes.extend(buffers.finish());
        entries().iter().for_each(|entry| entry.write(&mut bytes));
        bytes
    }

    fn entries() -> Vec<Entry> {
        let (arguments, access) = ([1, 2, 3, 4, 5, 6], Touch { address: 7, size: 8, write: true });
        let outside = |memory| Suspicion::OutsideBlocks { access, memory };
        let suspicions = [
            Suspicion::Painted { access, bits: 9 },
            outside(Memory::Freed),
            outside(Memory::Beside),
            outside(Memory::Tail),
            Suspicion::InvalidCall { argument: 10, recounted: false },
            Suspicion::InvalidCall { argument: 10, recounted: true },
            Suspicion::OutOfObject { pointer: 11, address: 12 },
            Suspicion::Unwritten(Use::Compared),
            Suspicion::Unwritten(Use::Handed(13)),
            Suspicion::Unwritten(Use::Decisive),
        ];
        let mut entries = vec![
            Entry::Thread { thread: 14, bases: record::Bases { fs: 15, gs: 16 } },
            Entry::Syscall { number: 17, arguments, answer: -18 },
            Entry::Flush,
            Entry::Cut { pc: 19, made: 20 },
            Entry::Enter { function: 21, back: 22, stack: 23, arguments },
            Entry::Back { pc: 24, stack: 25, value: 26 },
            Entry::Plan(27),
            Entry::Fork(28),
            Entry::Handler { pc: 29, stack: 30, frame: 31 },
        ];
        entries.extend(suspicions.map(|suspicion| Entry::Suspect { pc: 32, time: 33, suspicion }));
        entries
    }

    #[test]
    fn a_change_of_the_format_is_a_new_version() {
        let found = (VERSION, checksum(&sample()));
        assert_eq!(
            found,
            (10, 1_610_355_031),
            "the format has changed: raise VERSION, then put both here"
        );
    }
}
