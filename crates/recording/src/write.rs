//! Writes a recording: chunk by chunk, each whole before the next, so that whatever ends the
//! recorder leaves a file that can be read up to its last chunk.
//!
//! For the host only: compression is the C library's. The reader beside it is [`crate::read`].

use crate::blob::{BlobId, BlobTable};
use crate::compress::Encoder;
use crate::error::WriteError;
use crate::format::{self, ChunkHeader, Coding, Kind, LOG_CHUNK, PIECE, TRAILER, Trailer};
use crate::meta::{Meta, ProcessStart, Summary};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Where a recording goes: a file, or a stand-in for one in tests.
pub trait Sink: Write {
    /// Cuts off what was written after the first `length` bytes, and goes on there.
    fn cut(&mut self, length: u64) -> io::Result<()>;
    /// Waits until what was written would survive the machine.
    fn settle(&mut self) -> io::Result<()>;
}

impl Sink for File {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)?;
        self.seek(SeekFrom::Start(length)).map(drop)
    }

    fn settle(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// The part of a log that is not in the file yet.
#[derive(Default)]
struct Stream {
    /// How much is in the file.
    position: u64,
    waiting: Vec<u8>,
}

/// A recording that is being written.
///
/// After an error nothing more is taken but [`Writer::finish`], which cuts a half-written chunk off
/// and closes what is before it.
pub struct Writer<S: Sink = File> {
    out: Output<S>,
    encoder: Encoder,
    streams: BTreeMap<u32, Stream>,
    pieces: HashMap<[u8; 32], u64>,
    blobs: HashMap<BlobId, BlobTable>,
}

impl Writer {
    /// Starts a recording in a new file that only its user can read.
    pub fn create(path: &Path, meta: &Meta) -> Result<Self, WriteError> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        match file {
            Ok(file) => Self::new(file, meta),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(WriteError::Exists(path.to_owned()))
            }
            Err(error) => Err(WriteError::Io(error)),
        }
    }

    /// The same; a file of that name is removed first, so that nobody who has it open sees the new
    /// one, and no link is followed.
    pub fn replace(path: &Path, meta: &Meta) -> Result<Self, WriteError> {
        match fs::symlink_metadata(path) {
            Ok(found) if found.is_file() => fs::remove_file(path).map_err(WriteError::Io)?,
            Ok(_) => return Err(WriteError::NotAFile(path.to_owned())),
            Err(_) => {}
        }
        Self::create(path, meta)
    }
}

impl<S: Sink> Writer<S> {
    /// Starts a recording in an empty sink.
    pub fn new(sink: S, meta: &Meta) -> Result<Self, WriteError> {
        let mut writer = Self {
            out: Output { sink, length: 0, headers: Vec::new(), failed: false },
            encoder: Encoder::new().map_err(WriteError::Io)?,
            streams: BTreeMap::new(),
            pieces: HashMap::new(),
            blobs: HashMap::new(),
        };
        writer.out.put(&format::file_header(), &[])?;
        writer.out.json(Kind::Meta, 0, meta)?;
        Ok(writer)
    }

    /// Announces a process; its log may follow.
    pub fn process(&mut self, start: &ProcessStart) -> Result<(), WriteError> {
        if self.streams.contains_key(&start.process) {
            return Err(WriteError::Process(start.process));
        }
        self.out.json(Kind::Process, start.process, start)?;
        self.streams.insert(start.process, Stream::default());
        Ok(())
    }

    /// Appends to the log of a process. Bytes wait until there are enough for a chunk.
    pub fn log(&mut self, process: u32, mut bytes: &[u8]) -> Result<(), WriteError> {
        loop {
            let stream = self.streams.get_mut(&process).ok_or(WriteError::Process(process))?;
            let room = LOG_CHUNK - stream.waiting.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            stream.waiting.extend_from_slice(now);
            if stream.waiting.len() < LOG_CHUNK {
                return if self.out.failed { Err(WriteError::Failed) } else { Ok(()) };
            }
            self.flush_log(process)?;
            bytes = later;
        }
    }

    /// How much of a process's log was taken so far.
    pub fn position(&self, process: u32) -> Option<u64> {
        self.streams.get(&process).map(|stream| stream.position + stream.waiting.len() as u64)
    }

    /// Keeps some content, if it is not kept yet.
    pub fn blob(&mut self, content: &[u8]) -> Result<BlobId, WriteError> {
        let id = BlobId::of(content);
        if self.blobs.contains_key(&id) {
            return Ok(id);
        }
        self.blob_from(content)
    }

    /// Keeps what a reader gives, without ever holding more than a piece of it.
    pub fn blob_from(&mut self, mut content: impl Read) -> Result<BlobId, WriteError> {
        let mut hash = blake3::Hasher::new();
        let (mut length, mut pieces, mut piece) = (0, Vec::new(), Vec::new());
        loop {
            piece.clear();
            let limit = PIECE as u64;
            content.by_ref().take(limit).read_to_end(&mut piece).map_err(WriteError::Io)?;
            if piece.is_empty() {
                break;
            }
            hash.update(&piece);
            length += piece.len() as u64;
            pieces.push(self.piece(&piece)?);
        }
        let id = BlobId(*hash.finalize().as_bytes());
        if !self.blobs.contains_key(&id) {
            let table = BlobTable { id, length, pieces };
            self.out.plain(Kind::Blob, (0, 0), &table.encode())?;
            self.blobs.insert(id, table);
        }
        Ok(id)
    }

    /// Lets some content that is kept be found by a number, not zero, that logs use for it.
    pub fn label(&mut self, id: BlobId, label: u64) -> Result<(), WriteError> {
        match self.blobs.get(&id) {
            Some(table) => self.out.plain(Kind::Blob, (0, label), &table.encode()),
            None => Ok(()),
        }
    }

    /// Hands all that waits to the system: it survives the end of this process.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        let waiting = self.streams.iter().filter(|(_, stream)| !stream.waiting.is_empty());
        let waiting: Vec<u32> = waiting.map(|(process, _)| *process).collect();
        waiting.into_iter().try_for_each(|process| self.flush_log(process))?;
        self.out.flush()
    }

    /// Hands all that waits to the disk: it survives the end of the machine.
    pub fn sync(&mut self) -> Result<(), WriteError> {
        self.flush()?;
        self.out.settle()
    }

    /// Bytes in the file so far.
    pub fn written(&self) -> u64 {
        self.out.length
    }

    /// Ends the recording. After an error, too: then what came before it is closed, with a summary
    /// that should say in `stopped` why there is no more, unless not even that can be written.
    pub fn finish(mut self, summary: &Summary) -> Result<S, WriteError> {
        if self.out.failed {
            self.out.recover()?;
        } else {
            self.flush()?;
        }
        self.out.json(Kind::Summary, 0, summary)?;
        self.out.close()?;
        Ok(self.out.sink)
    }

    fn flush_log(&mut self, process: u32) -> Result<(), WriteError> {
        let stream = self.streams.get_mut(&process).ok_or(WriteError::Process(process))?;
        let encoded = self.encoder.encode(&stream.waiting);
        let place = (process, stream.position);
        self.out.chunk(Kind::Log, place, encoded, stream.waiting.len())?;
        stream.position += stream.waiting.len() as u64;
        stream.waiting.clear();
        Ok(())
    }

    /// Where a piece is; it is written if it is new.
    fn piece(&mut self, piece: &[u8]) -> Result<u64, WriteError> {
        let hash = *blake3::hash(piece).as_bytes();
        if let Some(offset) = self.pieces.get(&hash) {
            return Ok(*offset);
        }
        let encoded = self.encoder.encode(piece);
        let offset = self.out.chunk(Kind::Piece, (0, 0), encoded, piece.len())?;
        self.pieces.insert(hash, offset);
        Ok(offset)
    }
}

/// The file, as chunks see it.
struct Output<S> {
    sink: S,
    /// Its length, all of it whole chunks.
    length: u64,
    /// All headers but those of pieces.
    headers: Vec<ChunkHeader>,
    failed: bool,
}

impl<S: Sink> Output<S> {
    fn json(&mut self, kind: Kind, process: u32, value: &impl Serialize) -> Result<(), WriteError> {
        let text = serde_json::to_vec(value).map_err(|error| WriteError::Io(error.into()))?;
        self.plain(kind, (process, 0), &text)
    }

    fn plain(&mut self, kind: Kind, place: (u32, u64), bytes: &[u8]) -> Result<(), WriteError> {
        if bytes.len() > kind.limit() {
            return Err(WriteError::TooLong { what: "a chunk", length: bytes.len() });
        }
        self.chunk(kind, place, (Coding::Plain, bytes), bytes.len()).map(drop)
    }

    /// Appends a chunk and gives its offset. `process` and `position` are zero where they do not
    /// apply.
    fn chunk(
        &mut self,
        kind: Kind,
        (process, position): (u32, u64),
        (coding, bytes): (Coding, &[u8]),
        raw: usize,
    ) -> Result<u64, WriteError> {
        let header = ChunkHeader {
            kind,
            coding,
            stored: bytes.len() as u32,
            raw: raw as u32,
            process,
            position,
            offset: self.length,
            checksum: format::checksum(bytes),
        };
        self.put(&header.encode(), bytes)?;
        if kind != Kind::Piece {
            self.headers.push(header);
        }
        Ok(header.offset)
    }

    /// The index and the trailer.
    fn close(&mut self) -> Result<(), WriteError> {
        let index = self.length;
        let headers: Vec<u8> = self.headers.iter().flat_map(ChunkHeader::encode).collect();
        self.plain(Kind::Index, (0, 0), &headers)?;
        let trailer = Trailer { index, length: self.length + TRAILER as u64 };
        self.put(&trailer.encode(), &[])?;
        self.flush()?;
        self.settle()
    }

    /// Appends to the file; all or, after an error, nothing that counts.
    fn put(&mut self, head: &[u8], body: &[u8]) -> Result<(), WriteError> {
        if self.failed {
            return Err(WriteError::Failed);
        }
        let written = self.sink.write_all(head).and_then(|()| self.sink.write_all(body));
        written.map_err(|error| self.failure(error))?;
        self.length += (head.len() + body.len()) as u64;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        self.sink.flush().map_err(|error| self.failure(error))
    }

    fn settle(&mut self) -> Result<(), WriteError> {
        self.sink.settle().map_err(|error| self.failure(error))
    }

    /// Cuts off what the failed write left behind, which also makes room for the end.
    fn recover(&mut self) -> Result<(), WriteError> {
        self.sink.cut(self.length).map_err(WriteError::Io)?;
        self.failed = false;
        Ok(())
    }

    fn failure(&mut self, error: io::Error) -> WriteError {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        self.failed = true;
        match error.kind() {
            StorageFull | QuotaExceeded | FileTooLarge => WriteError::Full { written: self.length },
            _ => WriteError::Io(error),
        }
    }
}
