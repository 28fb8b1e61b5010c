//! A recording of every version of the format, kept as text: what it held must be read for ever.
//! `BLESS=1 cargo test -p whydunit-recording --test golden` writes the one of today's version, if
//! there is none.

use recording::format::VERSION;
use recording::{
    Completeness, End, Meta, Origin, ProcessEnd, ProcessStart, Recording, Region, Summary, Writer,
};
use std::fmt::Write as _;
use std::io::{Read, Seek, Write as _};
use std::path::PathBuf;

const HEAD: &str = "\
# A recording of version VERSION of the format, in hexadecimal; written by
# BLESS=1 cargo test -p whydunit-recording --test golden
";

fn path(version: u32) -> PathBuf {
    let name = format!("tests/golden/version-{version}.txt");
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn meta() -> Meta {
    Meta {
        tool: "0.1.0".into(),
        recorded: 1_794_740_000,
        command: vec!["./teller".into(), b"\xff\xfe".as_slice().into()],
        directory: "/home/ada".into(),
        features: ["sse2", "avx2"].map(str::to_owned).to_vec(),
        processor: "Any Processor".into(),
        quirks: None,
        kernel: "6.1.0".into(),
        schedule: "pct:3,9".into(),
        cut: true,
        region: Some(Region { from: "main#1".into(), to: None }),
        slice: None,
    }
}

fn processes() -> [ProcessStart; 2] {
    let command = meta().command;
    let first = ProcessStart {
        process: 0,
        parent: None,
        pid: 77,
        number: None,
        origin: Origin::Exec,
        command,
        time: 0,
    };
    let origin = Origin::Fork { position: 300 };
    let second =
        ProcessStart { process: 1, parent: Some(0), pid: 78, origin, time: 9, ..first.clone() };
    [first, second]
}

fn logs() -> [Vec<u8>; 2] {
    let first = b"one two three ".repeat(40);
    let second = (0..60_u8).map(|byte| byte.wrapping_mul(167)).collect();
    [first, second]
}

fn content() -> Vec<u8> {
    b"contents of a file, again and again; ".repeat(12)
}

fn summary() -> Summary {
    let first = ProcessEnd {
        process: 0,
        end: End::Exited(3),
        threads: 4,
        system_calls: 55,
        signals: 2,
        switches: 66,
        instructions: Some(123_456),
    };
    let second =
        ProcessEnd { process: 1, end: End::Killed(11), threads: 1, ..ProcessEnd::default() };
    let notes = vec!["a note".into()];
    Summary { duration: 5_000_000, processes: vec![first, second], stopped: None, notes, events: 0 }
}

fn written() -> Vec<u8> {
    let file = tempfile::tempfile().expect("a file");
    let mut writer = Writer::new(file, &meta()).expect("begun");
    let [first, second] = processes();
    let [one, two] = logs();
    writer.process(&first).expect("written");
    writer.log(0, &one[..300]).expect("written");
    writer.flush().expect("written");
    writer.process(&second).expect("written");
    writer.log(1, &two).expect("written");
    writer.log(0, &one[300..]).expect("written");
    writer.blob(&content()).expect("written");
    let mut file = writer.finish(&summary()).expect("finished");
    file.rewind().expect("a position");
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).expect("bytes");
    bytes
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = HEAD.replace("VERSION", &VERSION.to_string());
    for line in bytes.chunks(32) {
        line.iter().for_each(|byte| write!(text, "{byte:02x}").expect("text"));
        text.push('\n');
    }
    text
}

fn bytes_of(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(|line| line.bytes())
        .map(|digit| (digit as char).to_digit(16).expect("a digit") as u8)
        .collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

#[test]
fn recordings_of_every_version_are_read() {
    if std::env::var_os("BLESS").is_some() && !path(VERSION).exists() {
        std::fs::write(path(VERSION), hexadecimal(&written())).expect("written");
    }
    for version in 1..=VERSION {
        let text = std::fs::read_to_string(path(version)).expect("a golden recording");
        let mut file = tempfile::tempfile().expect("a file");
        let bytes = bytes_of(&text);
        file.write_all(&bytes).expect("written");
        if version == VERSION {
            assert_eq!(kinds(&written()), kinds(&bytes));
        }
        check(&Recording::from_file(file).expect("opened"));
    }
}

fn check(recording: &Recording) {
    assert_eq!(recording.verify().expect("read"), Completeness::Whole);
    assert_eq!(*recording.meta(), meta());
    assert_eq!(*recording.processes(), processes());
    assert_eq!(recording.summary(), Some(&summary()));
    for (process, expected) in logs().iter().enumerate() {
        let mut found = Vec::new();
        let mut reader = recording.log(process as u32).expect("a log");
        reader.read_to_end(&mut found).expect("read");
        assert_eq!(found, *expected);
    }
    let blobs: Vec<_> = recording.blobs().collect();
    assert_eq!(blobs.len(), 1);
    assert_eq!(recording.blob(blobs[0].0).expect("contents"), content());
}

/// Compressed bytes are the library's affair, so only the kinds of chunks are compared.
fn kinds(bytes: &[u8]) -> Vec<&[u8]> {
    let known: [&[u8]; 7] = [b"META", b"PROC", b"LOG ", b"PIEC", b"BLOB", b"SUMM", b"INDX"];
    bytes.windows(4).filter(|four| known.contains(four)).collect()
}
