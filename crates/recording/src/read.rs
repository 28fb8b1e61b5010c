//! Reads a recording. Safe Rust throughout, and no position is shared, so the same descriptor
//! serves threads and forks, in the host and in the runner.
//!
//! A finished file has an index. Without one, or where it is damaged, chunks are read one by one
//! up to the first that is damaged or missing; [`Recording::completeness`] tells which it was.

mod chunks;
mod log;

pub use log::LogReader;

use crate::blob::{BlobId, BlobTable};
use crate::compress::Decoder;
use crate::directory::Directory;
use crate::error::{OpenError, ReadError};
use crate::format::{
    self, CHUNK_HEADER, ChunkHeader, FILE_HEADER, Kind, Opening, TRAILER, Trailer,
};
use crate::meta::{Meta, ProcessStart, Summary};
use chunks::{Chunks, Fault};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

/// A recording, opened. Copies of the handle are cheap and share one descriptor.
#[derive(Clone)]
pub struct Recording(Arc<Opened>);

struct Opened {
    chunks: Chunks,
    directory: Directory,
    meta: Meta,
    processes: Vec<ProcessStart>,
    blobs: BTreeMap<BlobId, BlobTable>,
    /// By the numbers that logs use.
    labels: BTreeMap<u64, BlobId>,
    summary: Option<Summary>,
    completeness: Completeness,
}

/// Whether all of a run is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completeness {
    /// It was finished.
    Whole,
    /// It was finished before the program was, for this reason.
    Stopped(String),
    /// It ends in the middle: the recorder died, or the file was cut.
    CutShort {
        /// How much of the file can be used.
        usable: u64,
    },
    /// Something in it is damaged; what comes before can be used.
    Damaged {
        /// Where.
        offset: u64,
        /// What is there.
        what: &'static str,
    },
}

impl fmt::Display for Completeness {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => write!(out, "complete"),
            Self::Stopped(reason) => write!(out, "ends before the program did: {reason}"),
            Self::CutShort { usable } => write!(
                out,
                "cut short: the recorder did not finish, or the file was cut; its first {usable} \
                 bytes can be used"
            ),
            Self::Damaged { offset, what } => write!(
                out,
                "damaged: {what} at byte {offset} is not what was written; what comes before it can \
                 be used"
            ),
        }
    }
}

impl Recording {
    /// Opens a recording.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let found = fs::metadata(path)?;
        if !found.is_file() {
            return Err(OpenError::NotAFile);
        }
        match File::open(path) {
            Ok(file) => Self::from_file(file),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let mode = found.permissions().mode() & 0o7777;
                Err(OpenError::OtherUser { owner: found.uid(), mode })
            }
            Err(error) => Err(OpenError::Io(error)),
        }
    }

    /// Opens a recording from a descriptor.
    pub fn from_file(file: File) -> Result<Self, OpenError> {
        let chunks = Chunks::of(file)?;
        check_opening(&chunks)?;
        if let Some(directory) = indexed(&chunks)
            && let Some(opened) = Opened::read(&chunks, directory, None)
        {
            return Ok(Self(Arc::new(opened)));
        }
        let (directory, fault) = scan(&chunks)?;
        let refusal = match fault {
            _ if directory.meta.is_some() => {
                OpenError::Damaged { offset: FILE_HEADER as u64, what: "a description" }
            }
            Fault::Damaged { offset, .. } => {
                OpenError::Damaged { offset, what: "the description of the run" }
            }
            _ => OpenError::TooShort { length: chunks.length },
        };
        Opened::read(&chunks, directory, Some(fault)).map(|it| Self(Arc::new(it))).ok_or(refusal)
    }

    /// What was known when recording began.
    pub fn meta(&self) -> &Meta {
        &self.0.meta
    }

    /// What was known when recording ended, if it was finished.
    pub fn summary(&self) -> Option<&Summary> {
        self.0.summary.as_ref()
    }

    /// The processes, in the order of their beginning.
    pub fn processes(&self) -> &[ProcessStart] {
        &self.0.processes
    }

    /// Whether all of the run is there, as far as opening could tell.
    pub fn completeness(&self) -> &Completeness {
        &self.0.completeness
    }

    /// Whether all of the run is there, as far as opening could tell.
    pub fn is_complete(&self) -> bool {
        self.0.completeness == Completeness::Whole
    }

    /// Reads every byte of the file and compares all checksums.
    pub fn verify(&self) -> io::Result<Completeness> {
        let (_, fault) = scan(&self.0.chunks)?;
        Ok(match (&self.0.completeness, fault) {
            (found @ (Completeness::Whole | Completeness::Stopped(_)), Fault::End { .. }) => {
                found.clone()
            }
            (_, fault) => fault.completeness(),
        })
    }

    /// Length of the file.
    pub fn file_length(&self) -> u64 {
        self.0.chunks.length
    }

    /// The log of a process, from its beginning.
    pub fn log(&self, process: u32) -> Result<LogReader, ReadError> {
        if !self.0.directory.logs.contains_key(&process) {
            return Err(ReadError::NoProcess(process));
        }
        Ok(LogReader::new(self.clone(), process))
    }

    /// Whether there is anything of a process: one that is killed while it starts leaves an empty log.
    pub fn has_begun(&self, process: u32) -> bool {
        self.log(process).is_ok_and(|log| crate::log::entries(log).next().is_some())
    }

    /// Length of the log of a process.
    pub fn log_length(&self, process: u32) -> Option<u64> {
        self.0.directory.logs.get(&process).map(|log| log.length)
    }

    /// The contents of mapped files that are kept, with their lengths.
    pub fn blobs(&self) -> impl Iterator<Item = (BlobId, u64)> + '_ {
        self.0.blobs.values().map(|table| (table.id, table.length))
    }

    /// Some content by the number that logs use for it.
    pub fn labelled(&self, label: u64) -> Option<BlobId> {
        self.0.labels.get(&label).copied().filter(|_| label != 0)
    }

    /// Some content, whole.
    pub fn blob(&self, id: BlobId) -> Result<Vec<u8>, ReadError> {
        let table = self.0.blobs.get(&id).ok_or(ReadError::NoBlob(id))?;
        let mut content = Vec::new();
        for index in 0..table.pieces.len() {
            content.extend_from_slice(&self.blob_piece(id, index)?);
        }
        if BlobId::of(&content) != id {
            let offset = table.pieces.first().copied().unwrap_or_default();
            return Err(ReadError::Damaged { offset, what: "contents of a file", position: 0 });
        }
        Ok(content)
    }

    /// One piece of some content: bytes from `index *` [`format::PIECE`] on.
    pub fn blob_piece(&self, id: BlobId, index: usize) -> Result<Vec<u8>, ReadError> {
        let table = self.0.blobs.get(&id).ok_or(ReadError::NoBlob(id))?;
        let offset = *table.pieces.get(index).ok_or(ReadError::NoBlob(id))?;
        let damaged = ReadError::Damaged { offset, what: "contents of a file", position: 0 };
        match self.0.chunks.header(offset) {
            Ok(header)
                if header.kind == Kind::Piece
                    && header.raw as usize == table.piece_length(index) =>
            {
                let stored = self.0.chunks.payload(&header).map_err(|fault| fault.read_error(0))?;
                Decoder::new().decode(stored, header.coding, header.raw as usize).ok_or(damaged)
            }
            Err(Fault::Io(error)) => Err(ReadError::Io(error)),
            _ => Err(damaged),
        }
    }
}

impl Opened {
    /// Reads what the directory points to; `None` if any of it is not as it should be.
    fn read(chunks: &Chunks, directory: Directory, fault: Option<Fault>) -> Option<Self> {
        let meta = json(chunks, directory.meta.as_ref()?)?;
        let mut processes: Vec<ProcessStart> = Vec::new();
        for header in &directory.processes {
            let start: ProcessStart = json(chunks, header)?;
            (start.process == header.process).then(|| processes.push(start))?;
        }
        let (mut blobs, mut labels) = (BTreeMap::new(), BTreeMap::new());
        for header in &directory.blobs {
            let table = BlobTable::decode(&chunks.payload(header).ok()?)?;
            labels.insert(header.position, table.id);
            blobs.insert(table.id, table);
        }
        let summary: Option<Summary> = match &directory.summary {
            Some(header) => Some(json(chunks, header)?),
            None => None,
        };
        let stopped = summary.as_ref().and_then(|summary| summary.stopped.clone());
        let completeness = match (fault, stopped) {
            (Some(fault), _) => fault.completeness(),
            (None, Some(reason)) => Completeness::Stopped(reason),
            (None, None) => Completeness::Whole,
        };
        let chunks = chunks.clone();
        Some(Self { chunks, directory, meta, processes, blobs, labels, summary, completeness })
    }
}

fn json<T: DeserializeOwned>(chunks: &Chunks, header: &ChunkHeader) -> Option<T> {
    serde_json::from_slice(&chunks.payload(header).ok()?).ok()
}

fn check_opening(chunks: &Chunks) -> Result<(), OpenError> {
    let length = chunks.length;
    if length == 0 {
        return Err(OpenError::Empty);
    }
    let start = chunks.bytes(0, length.min(FILE_HEADER as u64) as usize)?;
    let shared = start.len().min(format::MAGIC.len());
    let Ok(start) = <[u8; FILE_HEADER]>::try_from(start.as_slice()) else {
        let is_ours = start[..shared] == format::MAGIC[..shared];
        return Err(if is_ours {
            OpenError::TooShort { length }
        } else {
            OpenError::NotARecording
        });
    };
    match format::opening(&start) {
        Opening::Recording if length < (FILE_HEADER + CHUNK_HEADER) as u64 => {
            Err(OpenError::TooShort { length })
        }
        Opening::Recording => Ok(()),
        Opening::Foreign => Err(OpenError::NotARecording),
        Opening::OtherOrder => Err(OpenError::OtherOrder),
        Opening::Newer(found) => Err(OpenError::Newer { found, newest: format::VERSION }),
        Opening::Damaged => Err(OpenError::Damaged { offset: 0, what: "the file header" }),
    }
}

/// The directory by the index, where there is one that is whole.
fn indexed(chunks: &Chunks) -> Option<Directory> {
    let at = chunks.length.checked_sub(TRAILER as u64)?;
    let trailer: [u8; TRAILER] = chunks.bytes(at, TRAILER).ok()?.try_into().ok()?;
    let trailer = Trailer::decode(&trailer)?;
    let index = chunks.header(trailer.index).ok()?;
    if trailer.length != chunks.length || index.kind != Kind::Index || index.end() != at {
        return None;
    }
    let headers = chunks.payload(&index).ok()?;
    let (headers, rest) = headers.as_chunks::<CHUNK_HEADER>();
    let mut directory = Directory::default();
    for header in headers {
        let header = ChunkHeader::decode(header)?;
        (header.end() <= trailer.index).then_some(())?;
        directory.add(header)?;
    }
    (rest.is_empty() && directory.summary.is_some()).then_some(directory)
}

/// The directory by reading the file up to its first fault; the end is one, too.
fn scan(chunks: &Chunks) -> io::Result<(Directory, Fault)> {
    let mut directory = Directory::default();
    let mut offset = FILE_HEADER as u64;
    loop {
        match chunks.next(offset, &mut directory) {
            Ok(end) => offset = end,
            Err(Fault::Io(error)) => return Err(error),
            Err(fault) => return Ok((directory, fault)),
        }
    }
}
