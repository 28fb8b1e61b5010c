//! Both directions of compression, each by the library that suits its process.
//!
//! The host encodes with the C library. The runner, where libc's heap must not be touched, only
//! decodes, in safe Rust. Measured by `cargo run --release -p whydunit-recording --example measure_logs`.

use crate::format::Coding;
use ruzstd::decoding::FrameDecoder;

/// The fastest level that is not a special mode.
const LEVEL: i32 = 1;

/// Makes chunks smaller.
pub(crate) struct Encoder {
    context: zstd::bulk::Compressor<'static>,
    buffer: Vec<u8>,
}

impl Encoder {
    pub fn new() -> std::io::Result<Self> {
        Ok(Self { context: zstd::bulk::Compressor::new(LEVEL)?, buffer: Vec::new() })
    }

    /// The bytes to store: encoded if that is shorter.
    pub fn encode<'a>(&'a mut self, raw: &'a [u8]) -> (Coding, &'a [u8]) {
        self.buffer.clear();
        self.buffer.reserve(zstd::zstd_safe::compress_bound(raw.len()));
        match self.context.compress_to_buffer(raw, &mut self.buffer) {
            Ok(length) if length < raw.len() => (Coding::Zstd, &self.buffer[..length]),
            _ => (Coding::Plain, raw),
        }
    }
}

/// Gives chunks back. Keeps its tables from one to the next.
pub(crate) struct Decoder(FrameDecoder);

impl Decoder {
    pub fn new() -> Self {
        Self(FrameDecoder::new())
    }

    /// Decodes exactly `raw` bytes, or says no.
    pub fn decode(&mut self, stored: Vec<u8>, coding: Coding, raw: usize) -> Option<Vec<u8>> {
        if coding == Coding::Plain {
            return (stored.len() == raw).then_some(stored);
        }
        let mut bytes = vec![0; raw];
        let length = self.0.decode_all(&stored, &mut bytes).ok()?;
        (length == raw).then_some(bytes)
    }
}
