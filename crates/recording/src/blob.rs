//! Contents of mapped files: named by what they are, cut into pieces that can be read alone.
//!
//! A name is the BLAKE3 hash of the whole content, so it stays true when logs are copied from one
//! recording to another. Pieces are kept once each, whichever blobs have them.

use crate::format::{PIECE, Taken};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The name of a blob: the BLAKE3 hash of its content.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BlobId(pub [u8; 32]);

impl BlobId {
    /// The name of some content.
    pub fn of(content: &[u8]) -> Self {
        Self(*blake3::hash(content).as_bytes())
    }
}

impl fmt::Display for BlobId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl fmt::Debug for BlobId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// Where the pieces of a blob are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlobTable {
    pub id: BlobId,
    pub length: u64,
    /// Offsets of their chunks in the file.
    pub pieces: Vec<u64>,
}

impl BlobTable {
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.id.0.to_vec();
        bytes.extend_from_slice(&self.length.to_le_bytes());
        for piece in &self.pieces {
            bytes.extend_from_slice(&piece.to_le_bytes());
        }
        bytes
    }

    /// Read back; `None` where the numbers do not agree.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields = Taken::of(bytes);
        let (id, length) = (BlobId(fields.take()?), fields.u64()?);
        let mut pieces = Vec::new();
        while !fields.is_empty() {
            pieces.push(fields.u64()?);
        }
        let agrees = pieces.len() as u64 == length.div_ceil(PIECE as u64);
        agrees.then_some(Self { id, length, pieces })
    }

    /// The length of a piece.
    pub fn piece_length(&self, index: usize) -> usize {
        let before = (index as u64).saturating_mul(PIECE as u64);
        self.length.saturating_sub(before).min(PIECE as u64) as usize
    }
}
