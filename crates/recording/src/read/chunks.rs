//! Chunks of an open file: read at a position, compared with their checksums.

use super::Completeness;
use crate::directory::Directory;
use crate::error::ReadError;
use crate::format::{CHUNK_HEADER, ChunkHeader, Kind, TRAILER, Trailer, checksum};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// An open file of a known length.
#[derive(Clone)]
pub(crate) struct Chunks {
    file: Arc<File>,
    pub length: u64,
}

/// Why there is no chunk.
#[derive(Debug)]
pub(crate) enum Fault {
    Io(io::Error),
    /// The file ends here, with its trailer or without one.
    End {
        usable: u64,
    },
    /// The file ends in the middle of it.
    Cut {
        usable: u64,
    },
    /// A checksum is wrong, or it is not what belongs here.
    Damaged {
        offset: u64,
        what: &'static str,
    },
}

impl Fault {
    pub fn completeness(&self) -> Completeness {
        match *self {
            Self::End { usable } | Self::Cut { usable } => Completeness::CutShort { usable },
            Self::Damaged { offset, what } => Completeness::Damaged { offset, what },
            Self::Io(_) => Completeness::Damaged { offset: 0, what: "something unreadable" },
        }
    }

    /// As an error of reading a log, of which `position` bytes come before.
    pub fn read_error(self, position: u64) -> ReadError {
        match self {
            Self::Io(error) => ReadError::Io(error),
            Self::End { usable: offset } | Self::Cut { usable: offset } => {
                ReadError::Damaged { offset, what: "the end of the file", position }
            }
            Self::Damaged { offset, what } => ReadError::Damaged { offset, what, position },
        }
    }
}

impl Chunks {
    pub fn of(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self { file: Arc::new(file), length })
    }

    /// Bytes of the file; the caller has made sure that they are inside.
    pub fn bytes(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }

    /// The header of the chunk at an offset. Its payload is inside of the file.
    pub fn header(&self, offset: u64) -> Result<ChunkHeader, Fault> {
        let left = self.length.saturating_sub(offset);
        if left < CHUNK_HEADER as u64 {
            return Err(Fault::Cut { usable: offset });
        }
        let mut bytes = [0; CHUNK_HEADER];
        self.file.read_exact_at(&mut bytes, offset).map_err(Fault::Io)?;
        let header = ChunkHeader::decode(&bytes).filter(|header| header.offset == offset);
        let header = header.ok_or(Fault::Damaged { offset, what: "the head of a chunk" })?;
        if header.end() > self.length {
            return Err(Fault::Cut { usable: offset });
        }
        Ok(header)
    }

    /// The stored bytes of a chunk. Its header is known already, perhaps from the index: the one
    /// in front of the bytes must say the same.
    pub fn payload(&self, header: &ChunkHeader) -> Result<Vec<u8>, Fault> {
        let offset = header.offset;
        if header.end() > self.length {
            return Err(Fault::Cut { usable: offset });
        }
        let mut bytes =
            self.bytes(offset, CHUNK_HEADER + header.stored as usize).map_err(Fault::Io)?;
        let payload = bytes.split_off(CHUNK_HEADER);
        if bytes != header.encode() || checksum(&payload) != header.checksum {
            return Err(Fault::Damaged { offset, what: named(header.kind) });
        }
        Ok(payload)
    }

    /// Checks the chunk at an offset, adds it to a directory, and gives the offset of the next.
    pub fn next(&self, offset: u64, directory: &mut Directory) -> Result<u64, Fault> {
        if offset == self.length || self.is_trailer(offset) {
            return Err(Fault::End { usable: offset });
        }
        let header = self.header(offset)?;
        self.payload(&header)?;
        let misplaced = Fault::Damaged { offset, what: "a chunk that does not belong there" };
        directory.add(header).ok_or(misplaced)?;
        Ok(header.end())
    }

    fn is_trailer(&self, offset: u64) -> bool {
        if self.length - offset != TRAILER as u64 {
            return false;
        }
        let bytes = self.bytes(offset, TRAILER).ok();
        let bytes: Option<[u8; TRAILER]> = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes.is_some_and(|bytes| Trailer::decode(&bytes).is_some())
    }
}

fn named(kind: Kind) -> &'static str {
    match kind {
        Kind::Meta => "the description of the run",
        Kind::Process => "the description of a process",
        Kind::Log => "a part of a log",
        Kind::Piece => "contents of a file",
        Kind::Blob => "the table of a file's contents",
        Kind::Summary => "the summary",
        Kind::Index => "the index",
    }
}
