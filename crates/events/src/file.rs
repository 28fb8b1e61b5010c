//! A stream in a file: a magic number and a version, then chunks of whole records, each with its
//! length and a checksum.

use crate::consume::Consumer;
use std::io::{self, Read, Write};

const MAGIC: &[u8; 8] = b"WDEVENTS";
const VERSION: u32 = 3;
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
            self.error = self.out.flush().err();
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
    let version = read_u32(&mut input)?.ok_or(ReadError::Damaged)?;
    if version != VERSION {
        return Err(ReadError::Version(version));
    }
    while let Some(length) = read_u32(&mut input)? {
        if length > LARGEST_CHUNK {
            return Err(ReadError::Damaged);
        }
        let expected = read_u32(&mut input)?.ok_or(ReadError::Damaged)?;
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

/// A number, or `None` at the end of the file.
fn read_u32(input: &mut impl Read) -> Result<Option<u32>, ReadError> {
    let mut bytes = [0; 4];
    match input.read(&mut bytes)? {
        0 => Ok(None),
        count => {
            input.read_exact(&mut bytes[count..])?;
            Ok(Some(u32::from_le_bytes(bytes)))
        }
    }
}

/// FNV-1a: enough to notice damage.
fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}
