//! Which chunks a recording has: built alike from the index of a finished file and from a scan of
//! an unfinished one, as both are a sequence of chunk headers.

use crate::format::{ChunkHeader, Kind};
use std::collections::BTreeMap;

/// The chunks of a recording, by what they are. Pieces are found through blobs.
#[derive(Default)]
pub(crate) struct Directory {
    pub meta: Option<ChunkHeader>,
    pub processes: Vec<ChunkHeader>,
    pub logs: BTreeMap<u32, Log>,
    pub blobs: Vec<ChunkHeader>,
    pub summary: Option<ChunkHeader>,
}

/// The chunks of a process's log, in order and without a gap.
#[derive(Default)]
pub(crate) struct Log {
    pub chunks: Vec<ChunkHeader>,
    pub length: u64,
}

impl Directory {
    /// Adds the next chunk; `None` where no writer would have put it there.
    pub fn add(&mut self, header: ChunkHeader) -> Option<()> {
        let comes_first = header.kind == Kind::Meta;
        let comes_after_summary = header.kind == Kind::Index;
        if self.meta.is_none() != comes_first || self.summary.is_some() != comes_after_summary {
            return None;
        }
        match header.kind {
            Kind::Meta => self.meta = Some(header),
            Kind::Process => {
                let is_new = self.logs.insert(header.process, Log::default()).is_none();
                is_new.then(|| self.processes.push(header))?;
            }
            Kind::Log => {
                let log = self.logs.get_mut(&header.process)?;
                (log.length == header.position && header.raw > 0).then_some(())?;
                log.length += u64::from(header.raw);
                log.chunks.push(header);
            }
            Kind::Blob => self.blobs.push(header),
            Kind::Summary => self.summary = Some(header),
            Kind::Piece | Kind::Index => {}
        }
        Some(())
    }
}

impl Log {
    /// Which chunk has the byte at a position.
    pub fn chunk_at(&self, position: u64) -> Option<usize> {
        if position >= self.length {
            return None;
        }
        self.chunks.partition_point(|chunk| chunk.position <= position).checked_sub(1)
    }
}
