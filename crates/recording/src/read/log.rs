//! Reads the log of a process: on and on, or from any position.

use super::Recording;
use crate::compress::Decoder;
use crate::error::ReadError;
use std::io::{self, Read};

/// A place in the log of a process. One chunk is decoded at a time.
pub struct LogReader {
    recording: Recording,
    process: u32,
    decoder: Decoder,
    /// Number of the next chunk.
    next: usize,
    /// The chunk before it, decoded, and where in the log it begins.
    chunk: Vec<u8>,
    begin: u64,
    /// How much of the chunk is consumed.
    consumed: usize,
}

impl LogReader {
    pub(super) fn new(recording: Recording, process: u32) -> Self {
        Self {
            recording,
            process,
            decoder: Decoder::new(),
            next: 0,
            chunk: Vec::new(),
            begin: 0,
            consumed: 0,
        }
    }

    /// The process whose log it is.
    pub fn process(&self) -> u32 {
        self.process
    }

    /// How much of the log comes before.
    pub fn position(&self) -> u64 {
        self.begin + self.consumed as u64
    }

    /// Length of the log, as far as it is there.
    pub fn length(&self) -> u64 {
        self.recording.log_length(self.process).unwrap_or_default()
    }

    /// The bytes that come next, at least one of them unless the log is at its end.
    pub fn fill(&mut self) -> Result<&[u8], ReadError> {
        if self.consumed == self.chunk.len() {
            self.load_next()?;
        }
        Ok(&self.chunk[self.consumed..])
    }

    /// Moves on over bytes that [`LogReader::fill`] gave.
    pub fn consume(&mut self, count: usize) {
        self.consumed = (self.consumed + count).min(self.chunk.len());
    }

    /// Reads exactly that many bytes.
    pub fn read_exact(&mut self, mut into: &mut [u8]) -> Result<(), ReadError> {
        while !into.is_empty() {
            let bytes = self.fill()?;
            if bytes.is_empty() {
                return Err(ReadError::End { length: self.length() });
            }
            let count = bytes.len().min(into.len());
            into[..count].copy_from_slice(&bytes[..count]);
            into = &mut into[count..];
            self.consume(count);
        }
        Ok(())
    }

    /// Moves to a position; the end of the log is one.
    pub fn seek(&mut self, position: u64) -> Result<(), ReadError> {
        let end = self.begin + self.chunk.len() as u64;
        if (self.begin..end).contains(&position) {
            self.consumed = (position - self.begin) as usize;
            return Ok(());
        }
        let length = self.length();
        if position > length {
            return Err(ReadError::End { length });
        }
        let log = self.recording.0.directory.logs.get(&self.process);
        let at = log.and_then(|log| log.chunk_at(position));
        self.chunk.clear();
        (self.begin, self.consumed) = (position, 0);
        let Some(at) = at else {
            self.next = log.map_or(0, |log| log.chunks.len());
            return Ok(());
        };
        self.next = at;
        self.load_next()?;
        self.consumed = (position - self.begin) as usize;
        Ok(())
    }

    /// Decodes the next chunk; at the end there is none, and nothing changes.
    fn load_next(&mut self) -> Result<(), ReadError> {
        let opened = &self.recording.0;
        let chunk =
            opened.directory.logs.get(&self.process).and_then(|log| log.chunks.get(self.next));
        let Some(header) = chunk else { return Ok(()) };
        let fault = |fault: super::Fault| fault.read_error(header.position);
        let what = "a part of a log";
        let damaged = ReadError::Damaged { offset: header.offset, what, position: header.position };
        let stored = opened.chunks.payload(header).map_err(fault)?;
        let raw = self.decoder.decode(stored, header.coding, header.raw as usize);
        self.chunk = raw.ok_or(damaged)?;
        (self.begin, self.consumed) = (header.position, 0);
        self.next += 1;
        Ok(())
    }
}

impl Read for LogReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill()?;
        let count = bytes.len().min(into.len());
        into[..count].copy_from_slice(&bytes[..count]);
        self.consume(count);
        Ok(count)
    }
}
