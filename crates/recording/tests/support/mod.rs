//! What the tests share: a script of writes, the run that it should read back as, and a check that
//! whatever is read of a damaged copy is a part of that run.
#![allow(dead_code, reason = "every test file uses a part")]

use proptest::prelude::*;
use recording::{
    BlobId, Completeness, End, Meta, Origin, ProcessEnd, ProcessStart, ReadError, Recording, Sink,
    Summary, WriteError, Writer,
};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Seek, Write};

/// One call of the writer.
#[derive(Clone, Debug)]
pub enum Act {
    /// The next process.
    Process,
    /// Bytes for one of the processes there are.
    Log(usize, Content),
    /// Contents of a file.
    Blob(Content),
    Flush,
}

/// Bytes, told shortly.
#[derive(Clone, Copy, Debug)]
pub struct Content {
    pub length: usize,
    pub seed: u64,
    /// How many different bytes: few compress well, 256 do not.
    pub letters: u16,
}

impl Content {
    pub fn bytes(self) -> Vec<u8> {
        let mut state = self.seed | 1;
        let mut bytes = Vec::with_capacity(self.length);
        for _ in 0..self.length {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            bytes.push(((state >> 33) % u64::from(self.letters.max(1))) as u8);
        }
        bytes
    }
}

/// Contents of up to `longest` bytes; a few are far shorter.
pub fn contents(longest: usize) -> impl Strategy<Value = Content> {
    let lengths = prop_oneof![0..=longest, 0..=longest.min(40)];
    let letters = prop_oneof![Just(1_u16), Just(4), Just(256)];
    (lengths, 0..6_u64, letters).prop_map(|(length, seed, letters)| Content {
        length,
        seed,
        letters,
    })
}

pub fn acts(longest: usize, count: usize) -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        2 => Just(Act::Process),
        8 => (0..5_usize, contents(longest)).prop_map(|(which, content)| Act::Log(which, content)),
        2 => contents(longest * 2).prop_map(Act::Blob),
        1 => Just(Act::Flush),
    ];
    prop::collection::vec(act, 0..count)
}

/// What should be read back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    pub meta: Meta,
    pub processes: Vec<ProcessStart>,
    pub logs: Vec<Vec<u8>>,
    pub blobs: BTreeMap<BlobId, Vec<u8>>,
    pub summary: Summary,
}

pub fn meta() -> Meta {
    Meta {
        tool: "0.1.0".into(),
        recorded: 1_700_000_000,
        command: vec!["ls".into(), b"a\xffb".as_slice().into()],
        directory: "/tmp".into(),
        features: vec!["sse2".into(), "avx2".into()],
        schedule: "random:7".into(),
        ..Meta::default()
    }
}

/// Does what the acts say; the run is what was asked for, even where a write failed.
pub fn write<S: Sink>(sink: S, acts: &[Act]) -> (Run, Result<Writer<S>, WriteError>) {
    let mut run = Run { meta: meta(), ..Run::default() };
    let mut writer = match Writer::new(sink, &run.meta) {
        Ok(writer) => writer,
        Err(error) => return (run, Err(error)),
    };
    let mut first = None;
    for act in acts {
        let done = apply(&mut writer, &mut run, act);
        if let Err(error) = done {
            first = first.or(Some(error));
        }
    }
    (run, first.map_or(Ok(writer), Err))
}

/// One act.
pub fn apply<S: Sink>(writer: &mut Writer<S>, run: &mut Run, act: &Act) -> Result<(), WriteError> {
    match act {
        Act::Process => {
            let process = run.processes.len() as u32;
            let parent = process.checked_sub(1);
            let origin = match parent {
                None => Origin::Exec,
                Some(parent) => Origin::Fork { position: run.logs[parent as usize].len() as u64 },
            };
            let command = run.meta.command.clone();
            let pid = 100 + process as i32;
            let start =
                ProcessStart { process, parent, pid, number: None, origin, command, time: 5 };
            writer.process(&start)?;
            run.processes.push(start);
            run.logs.push(Vec::new());
        }
        Act::Log(_, _) if run.processes.is_empty() => {}
        Act::Log(which, content) => {
            let (process, bytes) = (which % run.processes.len(), content.bytes());
            run.logs[process].extend_from_slice(&bytes);
            writer.log(process as u32, &bytes)?;
            assert_eq!(writer.position(process as u32), Some(run.logs[process].len() as u64));
        }
        Act::Blob(content) => {
            let content = content.bytes();
            run.blobs.insert(BlobId::of(&content), content.clone());
            let id = writer.blob(&content)?;
            assert_eq!(id, BlobId::of(&content));
        }
        Act::Flush => writer.flush()?,
    }
    Ok(())
}

/// A summary that belongs to the run.
pub fn summary(run: &Run) -> Summary {
    let ends = run.processes.iter().map(|start| ProcessEnd {
        process: start.process,
        end: if start.process == 0 { End::Exited(3) } else { End::Killed(11) },
        threads: 2,
        ..ProcessEnd::default()
    });
    Summary { duration: 12, processes: ends.collect(), ..Summary::default() }
}

/// A finished recording and what is in it.
pub fn finished(acts: &[Act]) -> (Run, Vec<u8>) {
    let (mut run, writer) = write(Memory::default(), acts);
    run.summary = summary(&run);
    let sink = writer.expect("written").finish(&run.summary).expect("finished");
    (run, sink.bytes)
}

/// Bytes as a file that has no name.
pub fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(bytes).expect("written");
    file.rewind().expect("a position");
    file
}

/// Asserts that whatever can be read is a part of the run, and says whether it is all of it and
/// called so.
pub fn reads_as_part_of(recording: &Recording, run: &Run) -> bool {
    let mut all = recording.is_complete();
    assert_eq!(*recording.meta(), run.meta);
    let processes = recording.processes();
    assert!(run.processes.starts_with(processes));
    all &= processes.len() == run.processes.len();
    for start in processes {
        let expected = &run.logs[start.process as usize];
        let mut found = Vec::new();
        let mut reader = recording.log(start.process).expect("a log");
        loop {
            match reader.fill() {
                Ok([]) => break,
                Ok(bytes) => {
                    found.extend_from_slice(bytes);
                    let count = bytes.len();
                    reader.consume(count);
                }
                Err(ReadError::Damaged { position, .. }) => {
                    assert_eq!(position, found.len() as u64);
                    break;
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert!(expected.starts_with(&found), "process {}", start.process);
        all &= found.len() == expected.len();
    }
    let mut kept = 0;
    for (id, length) in recording.blobs() {
        let expected = &run.blobs[&id];
        assert_eq!(length, expected.len() as u64);
        match recording.blob(id) {
            Ok(content) => {
                assert!(content == *expected);
                kept += 1;
            }
            Err(ReadError::Damaged { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    all &= kept == run.blobs.len();
    if let Some(summary) = recording.summary() {
        assert_eq!(*summary, run.summary);
    }
    all && recording.summary().is_some()
}

/// Opens damaged bytes: refused, or told to be damaged, and never wrong.
pub fn check_damaged(bytes: &[u8], run: &Run) {
    let Ok(recording) = Recording::from_file(file(bytes)) else { return };
    let all = reads_as_part_of(&recording, run);
    let verified = recording.verify().expect("a file");
    assert_ne!(verified, Completeness::Whole, "the damage was not noticed");
    assert!(!all || recording.is_complete(), "all of it, and not called so");
}

/// A forged file may say anything; reading all of it must only end.
pub fn read_everything(recording: &Recording) {
    for start in recording.processes() {
        let mut reader = recording.log(start.process).expect("a log");
        let mut buffer = [0; 4096];
        while let Ok(1..) = io::Read::read(&mut reader, &mut buffer) {}
        let _ = reader.seek(reader.length() / 2);
    }
    for (id, _) in recording.blobs() {
        let _ = recording.blob(id);
    }
    recording.verify().expect("a file");
}

/// A disk in memory, of a given size.
#[derive(Clone, Debug)]
pub struct Memory {
    pub bytes: Vec<u8>,
    pub room: usize,
}

impl Default for Memory {
    fn default() -> Self {
        Self { bytes: Vec::new(), room: usize::MAX }
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(self.room - self.bytes.len());
        if count == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.bytes.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for Memory {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.bytes.truncate(length as usize);
        Ok(())
    }

    fn settle(&mut self) -> io::Result<()> {
        Ok(())
    }
}
