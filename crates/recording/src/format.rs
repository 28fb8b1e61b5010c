//! What the bytes of a recording are: header, chunk headers, trailer. Everything is little-endian
//! and nothing is padding: each structure ends in the checksum of its own bytes.
//!
//! A chunk header carries its own position in the file, so a chunk that was moved, repeated or left
//! behind by an earlier file is as bad as one with a wrong checksum.

/// The first bytes of a recording. Not text, and changed by whatever changes line ends.
pub const MAGIC: [u8; 8] = *b"\x89WDREC\r\n";
/// The first bytes of the trailer.
pub const TRAILER_MAGIC: [u8; 8] = *b"WDRECEND";
/// The version that is written, and the newest that is read.
pub const VERSION: u32 = 1;
/// Reads differently on a machine of the other byte order.
pub const ORDER: u32 = 0x0102_0304;

/// Length of the file header.
pub const FILE_HEADER: usize = 24;
/// Length of a chunk header.
pub const CHUNK_HEADER: usize = 48;
/// Length of the trailer.
pub const TRAILER: usize = 32;

/// A log is cut into chunks of this many bytes.
pub const LOG_CHUNK: usize = 256 << 10;
/// A blob is cut into pieces of this many bytes; only the last may be shorter.
pub const PIECE: usize = 1 << 20;
/// No other chunk is longer than this.
pub const LARGEST_CHUNK: usize = 64 << 20;
/// But for the index, which has a header for each of them.
pub const LARGEST_INDEX: usize = 1 << 30;

/// The checksum of everything: CRC-32 as in zlib.
pub fn checksum(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// What is in a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// [`crate::Meta`] as JSON; the first chunk of every file.
    Meta,
    /// [`crate::ProcessStart`] as JSON.
    Process,
    /// A stretch of a process's log.
    Log,
    /// A stretch of a mapped file.
    Piece,
    /// Which pieces make up a mapped file.
    Blob,
    /// [`crate::Summary`] as JSON.
    Summary,
    /// The headers of all chunks before it, but for pieces.
    Index,
}

impl Kind {
    const ALL: [(Self, [u8; 4]); 7] = [
        (Self::Meta, *b"META"),
        (Self::Process, *b"PROC"),
        (Self::Log, *b"LOG "),
        (Self::Piece, *b"PIEC"),
        (Self::Blob, *b"BLOB"),
        (Self::Summary, *b"SUMM"),
        (Self::Index, *b"INDX"),
    ];

    /// The most that a chunk of this kind holds, so that a reader knows before it allocates.
    pub fn limit(self) -> usize {
        match self {
            Self::Log => LOG_CHUNK,
            Self::Piece => PIECE,
            Self::Index => LARGEST_INDEX,
            _ => LARGEST_CHUNK,
        }
    }

    fn code(self) -> [u8; 4] {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or([0; 4], |(_, code)| *code)
    }

    fn of(code: [u8; 4]) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == code).map(|(kind, _)| *kind)
    }
}

/// How the bytes of a chunk are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// As they are.
    Plain,
    /// One Zstandard frame.
    Zstd,
}

/// The header of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkHeader {
    /// What is in it.
    pub kind: Kind,
    /// How.
    pub coding: Coding,
    /// Bytes behind the header.
    pub stored: u32,
    /// Bytes that they decode to.
    pub raw: u32,
    /// Of a process or log: the process. Zero in others.
    pub process: u32,
    /// Of a log: how much of the process's log is in earlier chunks. Zero in others.
    pub position: u64,
    /// Where in the file the header is.
    pub offset: u64,
    /// Checksum of the stored bytes.
    pub checksum: u32,
}

impl ChunkHeader {
    /// As it stands in the file.
    pub fn encode(&self) -> [u8; CHUNK_HEADER] {
        let mut bytes = Fields::default();
        bytes.put(&self.kind.code());
        bytes.put(&(self.coding as u32).to_le_bytes());
        bytes.put(&self.stored.to_le_bytes());
        bytes.put(&self.raw.to_le_bytes());
        bytes.put(&self.process.to_le_bytes());
        bytes.put(&self.position.to_le_bytes());
        bytes.put(&self.offset.to_le_bytes());
        bytes.put(&self.checksum.to_le_bytes());
        bytes.put(&0_u32.to_le_bytes());
        bytes.sealed()
    }

    /// Read back; `None` where it is no header that this version writes.
    pub fn decode(bytes: &[u8; CHUNK_HEADER]) -> Option<Self> {
        let mut fields = Taken::sealed(bytes)?;
        let kind = Kind::of(fields.take()?)?;
        let coding = match fields.u32()? {
            0 => Coding::Plain,
            1 => Coding::Zstd,
            _ => return None,
        };
        let (stored, raw, process) = (fields.u32()?, fields.u32()?, fields.u32()?);
        let (position, offset, checksum) = (fields.u64()?, fields.u64()?, fields.u32()?);
        let fits = raw as usize <= kind.limit()
            && if coding == Coding::Plain { stored == raw } else { stored < raw };
        let end = offset.checked_add(CHUNK_HEADER as u64 + u64::from(stored));
        let is_sound = fits
            && fields.u32()? == 0
            && end.is_some()
            // The position of a blob is its label, any number.
            && (kind == Kind::Blob || position.checked_add(u64::from(raw)).is_some());
        is_sound.then_some(Self { kind, coding, stored, raw, process, position, offset, checksum })
    }

    /// Where in the file the next chunk is.
    pub fn end(&self) -> u64 {
        self.offset + CHUNK_HEADER as u64 + u64::from(self.stored)
    }
}

/// What the first bytes of a file say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// A recording that this version reads.
    Recording,
    /// It does not start like one.
    Foreign,
    /// Made on a machine of the other byte order.
    OtherOrder,
    /// Made by a newer tool.
    Newer(u32),
    /// It starts like one, but its checksum is wrong.
    Damaged,
}

/// The file header.
pub fn file_header() -> [u8; FILE_HEADER] {
    let mut bytes = Fields::default();
    bytes.put(&MAGIC);
    bytes.put(&ORDER.to_le_bytes());
    bytes.put(&VERSION.to_le_bytes());
    bytes.put(&0_u32.to_le_bytes());
    bytes.sealed()
}

/// Judges the file header. What other versions and byte orders have in common with this one is
/// the checksum over the 20 bytes before it.
pub fn opening(bytes: &[u8; FILE_HEADER]) -> Opening {
    if bytes[..8] != MAGIC {
        return Opening::Foreign;
    }
    let word =
        |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let sum = checksum(&bytes[..FILE_HEADER - 4]);
    if word(8) == ORDER.swap_bytes() && word(20) == sum.swap_bytes() {
        return Opening::OtherOrder;
    }
    match (word(20) == sum && word(8) == ORDER, word(12), word(16)) {
        (true, VERSION, 0) => Opening::Recording,
        (true, version, _) if version > VERSION => Opening::Newer(version),
        _ => Opening::Damaged,
    }
}

/// The end of a finished recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailer {
    /// Where the index is.
    pub index: u64,
    /// Length of the whole file.
    pub length: u64,
}

impl Trailer {
    /// As it stands in the file.
    pub fn encode(&self) -> [u8; TRAILER] {
        let mut bytes = Fields::default();
        bytes.put(&TRAILER_MAGIC);
        bytes.put(&self.index.to_le_bytes());
        bytes.put(&self.length.to_le_bytes());
        bytes.put(&0_u32.to_le_bytes());
        bytes.sealed()
    }

    /// Read back, where it is one.
    pub fn decode(bytes: &[u8; TRAILER]) -> Option<Self> {
        let mut fields = Taken::sealed(bytes)?;
        let magic: [u8; 8] = fields.take()?;
        let trailer = Self { index: fields.u64()?, length: fields.u64()? };
        (magic == TRAILER_MAGIC && fields.u32()? == 0).then_some(trailer)
    }
}

/// A structure that is being put together.
#[derive(Default)]
struct Fields(Vec<u8>);

impl Fields {
    fn put(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// With its checksum at the end.
    fn sealed<const LENGTH: usize>(mut self) -> [u8; LENGTH] {
        let sum = checksum(&self.0);
        self.put(&sum.to_le_bytes());
        let mut bytes = [0; LENGTH];
        bytes.copy_from_slice(&self.0);
        bytes
    }
}

/// A structure that is being taken apart.
pub(crate) struct Taken<'a>(&'a [u8]);

impl<'a> Taken<'a> {
    /// Any bytes.
    pub fn of(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The bytes before the checksum, if that is right.
    fn sealed(bytes: &'a [u8]) -> Option<Self> {
        let (fields, sum) = bytes.split_last_chunk::<4>()?;
        (checksum(fields) == u32::from_le_bytes(*sum)).then_some(Self(fields))
    }

    /// The next bytes.
    pub fn take<const LENGTH: usize>(&mut self) -> Option<[u8; LENGTH]> {
        let (taken, rest) = self.0.split_first_chunk::<LENGTH>()?;
        self.0 = rest;
        Some(*taken)
    }

    /// The next number.
    pub fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    /// Whether all is taken.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_what_the_format_says() {
        let header = ChunkHeader {
            kind: Kind::Log,
            coding: Coding::Zstd,
            stored: 10,
            raw: 20,
            process: 3,
            position: 1 << 40,
            offset: 24,
            checksum: 7,
        };
        assert_eq!(ChunkHeader::decode(&header.encode()), Some(header));
        assert_eq!(header.end(), 24 + 48 + 10);
        assert_eq!(opening(&file_header()), Opening::Recording);
        let trailer = Trailer { index: 5, length: 6 };
        assert_eq!(Trailer::decode(&trailer.encode()), Some(trailer));
    }

    #[test]
    fn every_flipped_bit_of_a_structure_is_noticed() {
        let trailer = Trailer { index: 5, length: 6 }.encode();
        for bit in 0..TRAILER * 8 {
            let mut bytes = trailer;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Trailer::decode(&bytes), None, "bit {bit}");
        }
        for bit in 0..FILE_HEADER * 8 {
            let mut bytes = file_header();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(opening(&bytes), Opening::Foreign | Opening::Damaged), "bit {bit}");
        }
    }

    #[test]
    fn other_versions_and_byte_orders_are_told_apart() {
        let mut newer = file_header();
        newer[12] = 9;
        let sum = checksum(&newer[..20]).to_le_bytes();
        newer[20..].copy_from_slice(&sum);
        assert_eq!(opening(&newer), Opening::Newer(9));
        let mut other = file_header();
        other[8..12].reverse();
        other[12..16].reverse();
        let sum = checksum(&other[..20]).to_be_bytes();
        other[20..].copy_from_slice(&sum);
        assert_eq!(opening(&other), Opening::OtherOrder);
    }
}
