//! One entry of every kind of a log, as bytes kept in a text: what was once written must be read for
//! ever. `BLESS=1 cargo test -p whydunit-recording --test log_golden` appends those that are new.

use recording::log::{
    Call, Ending, Entry, FileKey, FileView, Image, MappingData, Output, Position, SignalData, Skip,
    ThreadData, entries, write_head,
};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/log-1.txt")
}

/// One of each kind, in the order of their definition, with its payload.
fn kinds() -> Vec<(Entry, &'static [u8])> {
    let at = Position { time: 1 << 40, pc: 0x5555_5555_4321, check: 0xdead_beef };
    let view = FileView { key: FileKey(u64::MAX - 3), identity: 99, size: 5000, offset: 4096 };
    let mapping = MappingData {
        start: 0x1000,
        end: 0x3000,
        protection: 5,
        shared: true,
        path: Some("/lib/libc.so".into()),
        offset: 4096,
        view: Some(view),
    };
    let thread = ThreadData {
        number: 4321,
        general: std::array::from_fn(|index| 1 << (4 * index)),
        flags: 0x246,
        pc: 0x40_1000,
        bases: [7, 8],
        vector: vec![1, 2, 3],
        mask: 0x8000,
        signal_stack: (0x7000, -2, 8192),
        clear_tid: 0x9000,
        robust_list: 0xa000,
        call: Some((202, [1, 2, 3, 4, 5, 6], 77)),
    };
    let image = Image {
        time: 12,
        executable: "/bin/teller".into(),
        mappings: vec![mapping.clone()],
        heap: (1, 2),
        stack_room: 8 << 20,
        actions: vec![[0, 1, 2, 3], [4, 5, 6, 7]],
        threads: vec![thread.clone()],
        running: 4321,
        filters: b"[]".to_vec(),
    };
    let call = Call {
        number: 1,
        time: 300,
        answer: -11,
        check: 5,
        writes: vec![(0x2000, 3), (0x2100, 1)],
        output: Some(Output { stream: 2, order: 6 }),
    };
    let info = SignalData { raw: vec![11, 0, 0, 0], trap: (14, 6), cr2: 0x10 };
    let writes = vec![(0x2000, 2)];
    let skip = Skip {
        at,
        time: 1 << 41,
        instructions: 1234,
        thread,
        mapped: vec![mapping],
        writes: writes.clone(),
    };
    vec![
        (Entry::Image(Box::new(image)), b""),
        (Entry::Pages { start: 0x4000 }, b"page"),
        (Entry::Switch { thread: 4322, time: 9 }, b""),
        (Entry::Call(call), b"four"),
        (Entry::Mapped { path: "/tmp/file".into(), view }, b""),
        (Entry::Stop(at), b""),
        (Entry::Signal { at, info }, b""),
        (Entry::Answer { registers: vec![(0, 1), (3, u64::MAX)], flags: 0x202 }, b""),
        (Entry::Forked { thread: 4400 }, b""),
        (Entry::Exec, b""),
        (Entry::End(Ending::Signal(6)), b""),
        (Entry::Others { at: Some(at), writes: writes.clone() }, b"ab"),
        (Entry::Attached { length: 8192, protection: 3, writes: writes.clone() }, b"cd"),
        (Entry::Skip(Box::new(skip)), b"ef"),
        (Entry::Cut { identity: 99, size: 4097 }, b""),
    ]
}

fn frame(entry: &Entry, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_head(entry, payload.len() as u32, &mut bytes);
    bytes.extend(payload);
    bytes
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::new();
    bytes.iter().for_each(|byte| write!(text, "{byte:02x}").expect("text"));
    text
}

#[test]
fn entries_of_every_kind_are_read_and_written_as_ever() {
    let kept = std::fs::read_to_string(path()).unwrap_or_default();
    let mut lines: Vec<String> = kept.lines().map(str::to_owned).collect();
    if std::env::var_os("BLESS").is_some() {
        for (entry, payload) in kinds().iter().skip(lines.len()) {
            lines.push(hexadecimal(&frame(entry, payload)));
        }
        std::fs::write(path(), lines.join("\n") + "\n").expect("written");
    }
    assert_eq!(lines.len(), kinds().len(), "bless the new kinds");
    for (line, (entry, payload)) in lines.iter().zip(kinds()) {
        assert_eq!(*line, hexadecimal(&frame(&entry, payload)), "{entry:?}");
        let digits = |at: usize| u8::from_str_radix(&line[at..at + 2], 16).expect("digits");
        let bytes: Vec<u8> = (0..line.len()).step_by(2).map(digits).collect();
        let read: Vec<_> = entries(bytes.as_slice()).collect();
        assert_eq!(read, [(entry, payload.to_vec())]);
    }
}
