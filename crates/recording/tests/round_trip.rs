//! What is written is read back, from any position, whether or not the recording was finished.

mod support;

use proptest::prelude::*;
use recording::{Completeness, Meta, ReadError, Recording, Summary, WriteError, Writer};
use std::os::unix::fs::PermissionsExt;
use support::{Act, Content, acts, finished, reads_as_part_of, write};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_finished_recording_is_read_back_whole(acts in acts(600_000, 14)) {
        let (run, bytes) = finished(&acts);
        let recording = Recording::from_file(support::file(&bytes)).expect("opened");
        prop_assert!(reads_as_part_of(&recording, &run));
        prop_assert_eq!(recording.verify().expect("verified"), Completeness::Whole);
    }

    #[test]
    fn an_unfinished_one_is_read_up_to_its_last_flush(acts in acts(600_000, 14)) {
        let (run, writer) = write(support::Memory::default(), &acts);
        let mut writer = writer.expect("written");
        writer.flush().expect("flushed");
        let written = writer.written();
        let bytes = finished_bytes_before(&acts, written);
        let recording = Recording::from_file(support::file(&bytes)).expect("opened");
        prop_assert!(!reads_as_part_of(&recording, &run), "it is called complete");
        prop_assert_eq!(recording.completeness(), &Completeness::CutShort { usable: written });
        for (log, start) in run.logs.iter().zip(recording.processes()) {
            prop_assert_eq!(recording.log_length(start.process), Some(log.len() as u64));
        }
    }

    #[test]
    fn a_log_is_read_from_any_position(
        content in support::contents(1_500_000),
        seeks in prop::collection::vec((0.0..1.1_f64, 0..70_000_usize), 1..30),
    ) {
        let (run, bytes) = finished(&[Act::Process, Act::Log(0, content)]);
        let recording = Recording::from_file(support::file(&bytes)).expect("opened");
        let mut reader = recording.log(0).expect("a log");
        let log = &run.logs[0];
        for (share, count) in seeks {
            let position = (log.len() as f64 * share) as usize;
            if position > log.len() {
                let refused = reader.seek(position as u64);
                prop_assert!(matches!(refused, Err(ReadError::End { .. })), "past the end");
                continue;
            }
            reader.seek(position as u64).expect("a position");
            prop_assert_eq!(reader.position(), position as u64);
            let mut found = vec![0; count.min(log.len() - position)];
            reader.read_exact(&mut found).expect("bytes");
            prop_assert!(found == log[position..position + found.len()]);
            prop_assert_eq!(reader.position(), (position + found.len()) as u64);
        }
    }
}

/// The file after these acts and a flush: the finished one up to there, as nothing is rewritten.
fn finished_bytes_before(acts: &[Act], written: u64) -> Vec<u8> {
    let (_, bytes) = finished(acts);
    bytes[..written as usize].to_vec()
}

#[test]
fn equal_contents_and_equal_pieces_are_kept_once() {
    let content = Content { length: 3_000_000, seed: 1, letters: 256 };
    let (_, once) = finished(&[Act::Blob(content)]);
    let (_, twice) = finished(&[Act::Blob(content), Act::Blob(content)]);
    assert_eq!(once.len(), twice.len());
    let shorter = Content { length: 2 << 20, ..content };
    let (run, shared) = finished(&[Act::Blob(content), Act::Blob(shorter)]);
    assert!(shared.len() < once.len() + 500, "its two pieces are there already");
    let recording = Recording::from_file(support::file(&shared)).expect("opened");
    assert!(reads_as_part_of(&recording, &run));
}

#[test]
fn threads_share_a_handle() {
    let acts: Vec<Act> = (0..4)
        .flat_map(|seed| {
            let content = Content { length: 900_000, seed, letters: 40 };
            [Act::Process, Act::Log(seed as usize, content)]
        })
        .collect();
    let (run, bytes) = finished(&acts);
    let recording = Recording::from_file(support::file(&bytes)).expect("opened");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert!(reads_as_part_of(&recording.clone(), &run)));
        }
    });
}

#[test]
fn a_file_is_private_and_not_overwritten_unless_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.wdr");
    let writer = Writer::create(&path, &Meta::default()).expect("created");
    writer.finish(&Summary::default()).expect("finished");
    let mode = std::fs::metadata(&path).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = Writer::create(&path, &Meta::default());
    assert!(matches!(again, Err(WriteError::Exists(_))));
    Writer::replace(&path, &Meta::default()).expect("replaced");
    let open = Recording::open(&path).expect("opened");
    assert!(!open.is_complete() && open.summary().is_none());
    assert!(matches!(
        Writer::replace(folder.path(), &Meta::default()),
        Err(WriteError::NotAFile(_))
    ));
}

#[test]
fn a_process_needs_one_start() {
    let mut writer = Writer::new(support::Memory::default(), &Meta::default()).expect("begun");
    assert!(matches!(writer.log(3, b"x"), Err(WriteError::Process(3))));
    let (_, writer) = write(support::Memory::default(), &[Act::Process]);
    let mut writer = writer.expect("written");
    let (run, _) = write(support::Memory::default(), &[Act::Process]);
    assert!(matches!(writer.process(&run.processes[0]), Err(WriteError::Process(0))));
}

#[test]
fn contents_are_found_by_the_numbers_of_logs() {
    let mut writer = Writer::new(support::Memory::default(), &Meta::default()).expect("begun");
    let (one, two) = (writer.blob(b"one").expect("kept"), writer.blob(b"two").expect("kept"));
    for (id, label) in [(one, 7), (two, 8), (one, u64::MAX)] {
        writer.label(id, label).expect("labelled");
    }
    let bytes = writer.finish(&Summary::default()).expect("finished").bytes;
    let recording = Recording::from_file(support::file(&bytes)).expect("opened");
    let found = [7, 8, u64::MAX, 0, 9].map(|label| recording.labelled(label));
    assert_eq!(found, [Some(one), Some(two), Some(one), None, None]);
    assert_eq!(recording.blobs().count(), 2, "labels are no contents of their own");
    assert_eq!(recording.blob(one).expect("contents"), b"one");
    assert_eq!(recording.verify().expect("verified"), Completeness::Whole);
}
