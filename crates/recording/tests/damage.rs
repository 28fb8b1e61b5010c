//! Damage is noticed: files that were cut, changed or never finished are refused or read as far as
//! they are good, and say so. Nothing wrong is ever read, and nothing panics.

mod support;

use proptest::prelude::*;
use recording::format::{self, CHUNK_HEADER, ChunkHeader};
use recording::{Completeness, Meta, OpenError, Recording, Summary, WriteError, Writer};
use support::{Act, Content, Memory, acts, check_damaged, finished, reads_as_part_of, write};

const SMALL: Content = Content { length: 90, seed: 1, letters: 4 };

/// Two processes, logs in several chunks, blobs: every kind of chunk in about 2 KB.
fn small() -> Vec<Act> {
    let noise = Content { length: 50, seed: 2, letters: 256 };
    vec![
        Act::Process,
        Act::Log(0, SMALL),
        Act::Blob(noise),
        Act::Flush,
        Act::Process,
        Act::Log(1, noise),
        Act::Log(0, noise),
        Act::Blob(SMALL),
    ]
}

fn larger() -> Vec<Act> {
    let text = Content { length: 700_000, seed: 3, letters: 20 };
    vec![
        Act::Process,
        Act::Blob(text),
        Act::Log(0, text),
        Act::Process,
        Act::Log(1, text),
        Act::Flush,
    ]
}

#[test]
fn cut_at_every_byte() {
    let (run, bytes) = finished(&small());
    for length in 0..bytes.len() {
        check_damaged(&bytes[..length], &run);
    }
    let whole = Recording::from_file(support::file(&bytes)).expect("opened");
    assert!(reads_as_part_of(&whole, &run), "uncut it is whole");
}

#[test]
fn cut_at_every_1000th_byte() {
    let (run, bytes) = finished(&larger());
    assert!(bytes.len() > 500_000, "{}", bytes.len());
    for length in (0..bytes.len()).step_by(1000) {
        check_damaged(&bytes[..length], &run);
    }
}

#[test]
fn every_flipped_bit() {
    let (run, bytes) = finished(&small());
    for bit in 0..bytes.len() * 8 {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        check_damaged(&bytes, &run);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn flipped_bits_of_any_recording(
        acts in acts(300_000, 10),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0..8_u8), 1..4),
    ) {
        let (run, intact) = finished(&acts);
        let mut bytes = intact.clone();
        for (at, bit) in flips {
            bytes[at.index(intact.len())] ^= 1 << bit;
        }
        if bytes != intact {
            check_damaged(&bytes, &run);
        }
    }

    /// The fuzz driver: stretches moved, repeated, removed, overwritten, in any number.
    #[test]
    fn rearranged_files(
        changes in prop::collection::vec(
            (0..5_u8, any::<prop::sample::Index>(), any::<prop::sample::Index>(), 1..400_usize),
            1..6,
        ),
    ) {
        let (run, intact) = finished(&small());
        let mut bytes = intact.clone();
        for (kind, from, to, length) in changes {
            change(&mut bytes, kind, &from, &to, length);
        }
        if bytes != intact {
            check_damaged(&bytes, &run);
        }
    }

    #[test]
    fn bytes_that_are_no_recording(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(Recording::from_file(support::file(&bytes)).is_err());
    }

    /// Right checksums over wrong headers: refused or shortened by reason alone.
    #[test]
    fn forged_headers(which in any::<prop::sample::Index>(), field in 0..7_u8, value in any::<u64>()) {
        let (_, mut bytes) = finished(&small());
        let offsets = chunk_offsets(&bytes);
        let at = offsets[which.index(offsets.len())];
        let head: [u8; CHUNK_HEADER] = bytes[at..at + CHUNK_HEADER].try_into().expect("a header");
        let mut header = ChunkHeader::decode(&head).expect("a header");
        match field {
            0 => header.stored = value as u32,
            1 => header.raw = value as u32,
            2 => header.process = value as u32 % 4,
            3 => header.position = value,
            4 => header.offset = value % 4000,
            5 => (header.stored, header.raw) = (value as u32, value as u32),
            _ => header.checksum = value as u32,
        }
        bytes[at..at + CHUNK_HEADER].copy_from_slice(&header.encode());
        if let Ok(recording) = Recording::from_file(support::file(&bytes)) {
            support::read_everything(&recording);
        }
    }
}

fn change(
    bytes: &mut Vec<u8>,
    kind: u8,
    from: &prop::sample::Index,
    to: &prop::sample::Index,
    length: usize,
) {
    if bytes.is_empty() {
        return;
    }
    let begin = from.index(bytes.len());
    let end = (begin + length).min(bytes.len());
    let part = bytes[begin..end].to_vec();
    let to = to.index(bytes.len());
    match kind {
        0 => drop(bytes.drain(begin..end)),
        1 => drop(bytes.splice(to..to, part)),
        2 => {
            let end = (to + part.len()).min(bytes.len());
            bytes.splice(to..end, part);
        }
        3 => bytes[begin..end].fill(0),
        _ => bytes[begin..end].reverse(),
    }
}

fn chunk_offsets(bytes: &[u8]) -> Vec<usize> {
    let mut offsets = Vec::new();
    let mut at = format::FILE_HEADER;
    while let Some(head) = bytes.get(at..at + CHUNK_HEADER) {
        let Some(header) = ChunkHeader::decode(head.try_into().expect("its length")) else { break };
        offsets.push(at);
        at = header.end() as usize;
    }
    offsets
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_full_disk_leaves_what_was_written(acts in acts(100_000, 10), share in 0.0..1.0_f64) {
        let (_, all) = finished(&acts);
        let room = (all.len() as f64 * share) as usize;
        let sink = Memory { bytes: Vec::new(), room };
        let mut writer = match Writer::new(sink, &support::meta()) {
            Ok(writer) => writer,
            Err(error) => {
                prop_assert!(matches!(error, WriteError::Full { .. }), "{error}");
                return Ok(());
            }
        };
        let mut run = support::Run { meta: support::meta(), ..Default::default() };
        let mut failures = Vec::new();
        for act in &acts {
            failures.extend(support::apply(&mut writer, &mut run, act).err());
        }
        let is_reported = |(number, error): (usize, &WriteError)| match error {
            WriteError::Full { .. } => number == 0,
            WriteError::Failed => number > 0,
            _ => false,
        };
        prop_assert!(failures.iter().enumerate().all(is_reported), "{failures:?}");
        let stopped = (!failures.is_empty()).then(|| "no space left".to_owned());
        run.summary = Summary { stopped: stopped.clone(), ..Summary::default() };
        match writer.finish(&run.summary) {
            Ok(sink) => {
                let recording = Recording::from_file(support::file(&sink.bytes)).expect("opened");
                prop_assert_eq!(reads_as_part_of(&recording, &run), stopped.is_none());
                prop_assert_eq!(recording.summary(), Some(&run.summary));
            }
            Err(error) => prop_assert!(matches!(error, WriteError::Full { .. }), "{error}"),
        }
    }
}

#[test]
fn a_disk_that_is_full_for_good_leaves_a_readable_prefix() {
    let (run, all) = finished(&larger());
    for room in (300..all.len()).step_by(all.len() / 60) {
        let path = tempfile::NamedTempFile::new().expect("a file");
        let (_, written) = write(SharedDisk { path: path.path().to_owned(), room }, &larger());
        assert!(written.is_err() || room > all.len() - 2000);
        let found = std::fs::read(path.path()).expect("bytes");
        let recording = Recording::from_file(support::file(&found)).expect("opened");
        assert!(!reads_as_part_of(&recording, &run));
        assert!(matches!(recording.completeness(), Completeness::CutShort { .. }));
    }
}

/// A disk that keeps what came before the error, as a real one does when nobody finishes.
struct SharedDisk {
    path: std::path::PathBuf,
    room: usize,
}

impl std::io::Write for SharedDisk {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = bytes.len().min(self.room);
        if count == 0 && !bytes.is_empty() {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        self.room -= count;
        let mut file = std::fs::OpenOptions::new().append(true).open(&self.path)?;
        file.write_all(&bytes[..count]).map(|()| count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl recording::Sink for SharedDisk {
    fn cut(&mut self, _: u64) -> std::io::Result<()> {
        Err(std::io::ErrorKind::StorageFull.into())
    }

    fn settle(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn every_refusal_says_what_was_found_and_what_is_needed() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = |bytes: &[u8]| {
        let path = folder.path().join("file");
        std::fs::write(&path, bytes).expect("written");
        Recording::open(&path).err().expect("refused").to_string()
    };
    let sealed = |change: &dyn Fn(&mut [u8])| {
        let mut header = format::file_header();
        change(&mut header);
        let sum = format::checksum(&header[..20]).to_le_bytes();
        header[20..].copy_from_slice(&sum);
        [&header[..], &[0; 100]].concat()
    };
    let mut other_order = format::file_header();
    other_order[8..12].reverse();
    let sum = format::checksum(&other_order[..20]).to_be_bytes();
    other_order[20..].copy_from_slice(&sum);
    for (bytes, words) in [
        (&b""[..], "is empty"),
        (b"hello, world\n", "is not a recording"),
        (b"\x7fELF", "is not a recording"),
        (&format::MAGIC, "only 8 bytes are left"),
        (&format::file_header(), "only 24 bytes are left"),
        (&sealed(&|header| header[12] = 2), "has version 2 of the format; this tool reads up to"),
        (&other_order, "other byte order"),
        (&sealed(&|header| header[16] = 1), "is damaged: the file header"),
        (&sealed(&|_| {}), "is damaged: the description of the run at byte 24"),
    ] {
        let said = refused(bytes);
        assert!(said.contains(words), "{said}");
    }
    assert!(matches!(Recording::open(folder.path()), Err(OpenError::NotAFile)));
    let missing = folder.path().join("none");
    assert!(matches!(Recording::open(&missing), Err(OpenError::Io(_))));
    let other = OpenError::OtherUser { owner: 1000, mode: 0o600 }.to_string();
    assert!(other.contains("user 1000") && other.contains("0600"), "{other}");
}

#[test]
fn fields_of_a_later_version_are_passed_over() {
    let text = r#"{"tool":"9","colour":"blue","command":["x"]}"#;
    let meta: Meta = serde_json::from_str(text).expect("read");
    assert_eq!((meta.tool.as_str(), meta.command.len(), meta.recorded), ("9", 1, 0));
}
