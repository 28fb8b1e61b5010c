//! What the processes of a recording wrote to standard output and error, put back into the order in
//! which they wrote it.

use std::fs::File;
use std::io::{self, Read, Seek, Write};

/// Outputs of several processes, each replayed by itself.
#[derive(Default)]
pub struct Outputs {
    /// Number in the recording, stream, bytes.
    all: Vec<(u64, u8, Vec<u8>)>,
}

impl Outputs {
    /// Takes what a replay has written to a file.
    pub fn take(&mut self, file: &mut File) -> io::Result<()> {
        file.rewind()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let mut rest = bytes.as_slice();
        while let Some((head, after)) = rest.split_first_chunk::<16>() {
            let (order, length) = head.split_at(8);
            let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
            let (order, length) = (word(order), word(length));
            let (stream, length) = ((length >> 56) as u8, (length << 8 >> 8) as usize);
            let (output, after) = after.split_at(length.min(after.len()));
            self.all.push((order, stream, output.to_vec()));
            rest = after;
        }
        file.set_len(0)?;
        file.rewind()
    }

    /// What was written to one stream.
    #[must_use]
    pub fn of(mut self, stream: u8) -> Vec<u8> {
        self.all.sort_by_key(|(order, ..)| *order);
        let own = self.all.into_iter().filter(|(_, other, _)| *other == stream);
        own.flat_map(|(.., bytes)| bytes).collect()
    }

    /// All of them, in order: stream and bytes.
    #[must_use]
    pub fn into_pieces(mut self) -> Vec<(u8, Vec<u8>)> {
        self.all.sort_by_key(|(order, ..)| *order);
        self.all.into_iter().map(|(_, stream, bytes)| (stream, bytes)).collect()
    }

    /// Writes them all; a reader that has gone away is no error.
    pub fn write(mut self, out: &mut dyn Write, error: &mut dyn Write) -> io::Result<()> {
        self.all.sort_by_key(|(order, ..)| *order);
        for (_, stream, bytes) in &self.all {
            let to: &mut dyn Write = if *stream == 1 { out } else { error };
            match to.write_all(bytes).and_then(|()| to.flush()) {
                Err(broken) if broken.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                other => other?,
            }
        }
        Ok(())
    }
}
