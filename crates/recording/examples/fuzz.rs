//! Feeds the reader broken recordings for as long as wanted, and fails if it panics, reads what was
//! never written, or takes a changed file for a whole one.
//!
//!     cargo run --release -p whydunit-recording --example fuzz [SECONDS [SEED]]
//!
//! No corpus: every file is made from a random script of writes and then changed in a few places.
//! Half of the changes put the right checksums over wrong content, to come behind the first gate;
//! of those only an orderly end is asked.

#[path = "../tests/support/mod.rs"]
mod support;

use recording::Recording;
use recording::format::{self, CHUNK_HEADER, ChunkHeader, FILE_HEADER, Kind};
use std::time::{Duration, Instant};
use support::{Act, Content, Run};

/// A generator of plain random numbers (splitmix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse().expect("a number"));
    let seconds = arguments.next().unwrap_or(10);
    let seed = arguments.next().unwrap_or_else(|| u64::from(std::process::id()));
    println!("seed {seed}");
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut dice, mut files, mut opened) = (Dice(seed), 0_u64, 0_u64);
    while Instant::now() < end {
        let (run, intact) = support::finished(&script(&mut dice));
        for _ in 0..200 {
            let mut bytes = intact.clone();
            let is_forged = dice.below(2) == 0;
            for _ in 0..=dice.below(3) {
                if is_forged { forge(&mut dice, &mut bytes) } else { damage(&mut dice, &mut bytes) }
            }
            files += 1;
            opened += u64::from(check(&bytes, &intact, &run, is_forged));
        }
    }
    println!("{files} files, {opened} of them opened as far as they were good; nothing wrong");
}

fn script(dice: &mut Dice) -> Vec<Act> {
    let mut acts = vec![Act::Process];
    for _ in 0..dice.below(8) {
        // More than a chunk, now and then: such files are slow to read.
        let longest = if dice.below(60) == 0 { 400_000 } else { [40, 3000][dice.below(2)] };
        let letters = [1, 4, 256][dice.below(3)];
        let content = Content { length: dice.below(longest), seed: dice.next() % 6, letters };
        acts.push(match dice.below(6) {
            0 => Act::Process,
            1 => Act::Blob(content),
            2 => Act::Flush,
            _ => Act::Log(dice.below(4), content),
        });
    }
    acts
}

/// Changes that a checksum notices.
fn damage(dice: &mut Dice, bytes: &mut Vec<u8>) {
    let length = bytes.len();
    let from = dice.below(length);
    let to = (from + 1 + dice.below(300)).min(length);
    match dice.below(5) {
        0 => bytes.truncate(from),
        1 => drop(bytes.drain(from..to)),
        2 => bytes[from..to].fill(0),
        3 => bytes.extend_from_within(from..to),
        _ if from < length => bytes[from] ^= 1 << dice.below(8),
        _ => {}
    }
}

/// A chunk with a wrong header or wrong content, and right checksums.
fn forge(dice: &mut Dice, bytes: &mut [u8]) {
    let headers = headers(bytes);
    let Some(mut header) = headers.get(dice.below(headers.len())).copied() else { return };
    let start = header.offset as usize;
    match dice.below(6) {
        0 => header.raw = dice.next() as u32 % (2 << 20),
        1 => header.process = dice.below(5) as u32,
        2 => header.position = dice.next() >> dice.below(64),
        3 => {
            let kinds =
                [Kind::Meta, Kind::Process, Kind::Log, Kind::Blob, Kind::Summary, Kind::Index];
            header.kind = kinds[dice.below(kinds.len())];
        }
        _ if header.stored > 0 => {
            let payload = &mut bytes[start + CHUNK_HEADER..header.end() as usize];
            let at = dice.below(payload.len());
            payload[at] ^= dice.next() as u8;
            header.checksum = format::checksum(payload);
        }
        _ => {}
    }
    bytes[start..start + CHUNK_HEADER].copy_from_slice(&header.encode());
}

fn headers(bytes: &[u8]) -> Vec<ChunkHeader> {
    let mut headers = Vec::new();
    let mut at = FILE_HEADER;
    while let Some(head) = bytes.get(at..at + CHUNK_HEADER) {
        let head = head.try_into().expect("its length");
        let Some(header) = ChunkHeader::decode(head) else { break };
        if header.offset != at as u64 || header.end() > bytes.len() as u64 {
            break;
        }
        headers.push(header);
        at = header.end() as usize;
    }
    headers
}

/// Says whether it could be opened.
fn check(bytes: &[u8], intact: &[u8], run: &Run, is_forged: bool) -> bool {
    if bytes == intact {
        return false;
    }
    if !is_forged {
        support::check_damaged(bytes, run);
    }
    let Ok(recording) = Recording::from_file(support::file(bytes)) else { return false };
    support::read_everything(&recording);
    true
}
