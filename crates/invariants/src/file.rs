//! A model as a file: eight bytes that say what it is, the version of the format, length and checksum of the
//! rest, and the rest. What is not whole is refused with a reason.

use crate::model::Model;
use std::fmt;

const MAGIC: [u8; 8] = *b"WHYMODEL";
/// Raised when the meaning of anything changes.
const VERSION: u32 = 1;
const HEAD: usize = 24;

/// Why a file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is something else.
    NotAModel,
    /// It has another version.
    Version(u32),
    /// It ends early.
    Truncated {
        /// Bytes that it should have.
        expected: u64,
        /// Bytes that it has.
        found: u64,
    },
    /// Its contents are not those that were written.
    Damaged,
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAModel => {
                out.write_str("is not a model; make one with `whydunit learn -o MODEL`")
            }
            Self::Version(version) => write!(
                out,
                "is a model of format {version}, and this whydunit reads format {VERSION}; learn it anew"
            ),
            Self::Truncated { expected, found } => {
                write!(out, "is cut off: it has {found} bytes of {expected}")
            }
            Self::Damaged => out.write_str("is damaged: its contents do not match their checksum"),
        }
    }
}

impl std::error::Error for Refused {}

/// The bytes of a model.
#[must_use]
pub fn write(model: &Model) -> Vec<u8> {
    let body = postcard::to_allocvec(model).expect("plain data");
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(crc32fast::hash(&body).to_le_bytes());
    bytes.extend((body.len() as u64).to_le_bytes());
    bytes.extend(body);
    bytes
}

/// Reads a model.
pub fn read(bytes: &[u8]) -> Result<Model, Refused> {
    let head = bytes.get(..HEAD).ok_or(Refused::NotAModel)?;
    if head[..8] != MAGIC {
        return Err(Refused::NotAModel);
    }
    let number =
        |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    if number(8) != VERSION {
        return Err(Refused::Version(number(8)));
    }
    let length = u64::from(number(16)) | u64::from(number(20)) << 32;
    let body = &bytes[HEAD..];
    if body.len() as u64 != length {
        let (expected, found) = (length.saturating_add(HEAD as u64), bytes.len() as u64);
        let is_short = found < expected;
        return Err(if is_short {
            Refused::Truncated { expected, found }
        } else {
            Refused::Damaged
        });
    }
    if crc32fast::hash(body) != number(12) {
        return Err(Refused::Damaged);
    }
    parse(body).ok_or(Refused::Damaged)
}

/// The model that a body holds, if it is one. Bodies with a right checksum come from anywhere, too.
fn parse(body: &[u8]) -> Option<Model> {
    let (model, rest) = postcard::take_from_bytes::<Model>(body).ok()?;
    rest.is_empty().then_some(())?;
    model.completed()
}

#[cfg(test)]
mod tests;
