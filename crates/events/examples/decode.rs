//! How fast a stored stream is decoded: `decode FILE`, see `benches/events/run`.
//!
//! The file is read before the clock starts. The work done on an event is a sum that depends on all
//! of it, so that nothing can be left out.

use events::{Consumer, Decoder, Event};
use std::time::Instant;

/// All chunks of a stream.
#[derive(Default)]
struct Chunks(Vec<Vec<u8>>);

impl Consumer for Chunks {
    fn records(&mut self, bytes: &[u8]) {
        self.0.push(bytes.to_vec());
    }
}

fn main() {
    let path = std::env::args().nth(1).expect("usage: decode FILE");
    let file = std::fs::File::open(&path).expect("the file of events");
    let mut chunks = Chunks::default();
    events::file::feed(std::io::BufReader::new(file), &mut chunks).expect("a stream");
    let bytes: usize = chunks.0.iter().map(Vec::len).sum();
    let mut best = f64::INFINITY;
    let (mut count, mut sum) = (0u64, 0u64);
    for _ in 0..3 {
        let mut decoder = Decoder::default();
        (count, sum) = (0, 0);
        let begun = Instant::now();
        for chunk in &chunks.0 {
            let done = decoder.events(chunk, |event| {
                count += 1;
                sum = sum.wrapping_add(match event {
                    Event::Instruction { pc, .. } => pc,
                    Event::Access { address, size, write } => {
                        address.wrapping_add(u64::from(size)) ^ u64::from(write)
                    }
                    _ => 1,
                });
            });
            done.expect("well formed");
        }
        best = best.min(begun.elapsed().as_secs_f64());
    }
    println!(
        "{count} events in {bytes} bytes: {:.0} million events/s, {:.2} GB/s (sum {sum:x})",
        count as f64 / best / 1e6,
        bytes as f64 / best / 1e9
    );
}
