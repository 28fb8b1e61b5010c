//! `whydunit info` on recordings made by hand: what is told, in which form, and what is refused.

mod support;

use recording::{End, Meta, Origin, ProcessEnd, ProcessStart, Region, Summary, Writer};
use std::path::{Path, PathBuf};
use support::{errors, run, text};

/// A program that forks; the child runs another program, which crashes.
fn recording(folder: &Path, name: &str, summary: Option<Summary>) -> PathBuf {
    let path = folder.join(name);
    let meta = Meta {
        slice: None,
        tool: "0.1.0".into(),
        recorded: 1_794_740_000,
        command: vec!["./teller".into(), "two words".into()],
        directory: "/home/ada".into(),
        features: ["sse2", "avx2"].map(str::to_owned).to_vec(),
        processor: "Any Processor".into(),
        quirks: None,
        kernel: "6.1.0".into(),
        schedule: "pct:3,9".into(),
        cut: true,
        region: Some(Region { from: "main#1".into(), to: None }),
    };
    let mut writer = Writer::create(&path, &meta).expect("created");
    let start = |process: u32, parent, origin, command: &str| ProcessStart {
        process,
        parent,
        pid: 70 + process as i32,
        number: None,
        origin,
        command: vec![command.into()],
        time: 0,
    };
    writer.process(&start(0, None, Origin::Exec, "./teller")).expect("written");
    writer.process(&start(1, Some(0), Origin::Fork { position: 4 }, "./teller")).expect("written");
    writer.process(&start(2, Some(1), Origin::Exec, "/bin/crash")).expect("written");
    for process in 0..3 {
        writer.log(process, &[7; 1500]).expect("written");
    }
    writer.blob(&[1; 5000]).expect("written");
    match summary {
        Some(summary) => drop(writer.finish(&summary).expect("finished")),
        None => writer.flush().expect("flushed"),
    }
    path
}

fn summary() -> Summary {
    let end = |process, end, threads, instructions| ProcessEnd {
        process,
        end,
        threads,
        system_calls: 10,
        signals: 0,
        switches: threads - 1,
        instructions,
    };
    let processes = vec![
        end(0, End::Exited(3), 4, Some(1000)),
        end(1, End::Replaced, 1, Some(50)),
        end(2, End::Killed(11), 1, Some(7)),
    ];
    Summary {
        duration: 5_250_000,
        processes,
        stopped: None,
        notes: vec!["a note".into()],
        events: 0,
    }
}

const WHOLE: &str = "\
state        complete
command      ./teller 'two words'
folder       /home/ada
recorded     2026-11-15 10:53:20 UTC by whydunit 0.1.0, Linux 6.1.0, format 1
took         5.2 ms
ended        exit 3
schedule     pct:3,9, with switches inside of blocks
region       from main#1 to the end
needs        a processor with sse2 avx2 (recorded on Any Processor)
contents     3 processes, 6 threads, 30 system calls, 1057 instructions, 4.5 kB of logs, 1 mapped file of 5.0 kB
note         a note
processes
  0 ./teller: exit 3, 4 threads, 10 system calls, 3 switches, 1000 instructions, 1.5 kB of log
    1 fork: became another program, 1 thread, 10 system calls, 50 instructions, 1.5 kB of log
      2 /bin/crash: SIGSEGV, 1 thread, 10 system calls, 7 instructions, 1.5 kB of log
";

#[test]
fn a_whole_recording_is_told_on_a_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = recording(folder.path(), "run.wdu", Some(summary()));
    let output = run(&["info", path.to_str().expect("a name")]);
    assert_eq!((errors(&output).as_str(), output.status.code()), ("", Some(0)));
    let said = text(&output);
    let (first, rest) = said.split_once('\n').expect("lines");
    assert!(first.starts_with("recording    /") && first.contains("run.wdu, "), "{first}");
    assert_eq!(rest, WHOLE);
}

#[test]
fn json_has_all_of_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = recording(folder.path(), "run.wdu", Some(summary()));
    let output = run(&["info", "--json", path.to_str().expect("a name")]);
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&told["tool"], &told["command"]), (&"whydunit".into(), &"info".into()));
    let told = &told["result"];
    assert_eq!(told["complete"], true);
    assert_eq!(told["command"][1], "two words");
    assert_eq!(told["totals"]["instructions"], 1057);
    assert_eq!(told["processes"][1]["origin"]["fork"]["position"], 4);
    assert_eq!(told["processes"][2]["ended"]["end"]["killed"], 11);
    assert_eq!(told["bytes"], std::fs::metadata(&path).expect("a file").len());
}

#[test]
fn what_is_not_whole_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let stopped = Summary { stopped: Some("no space left".into()), ..summary() };
    let stopped = recording(folder.path(), "stopped", Some(stopped));
    let unfinished = recording(folder.path(), "unfinished", None);
    let damaged = recording(folder.path(), "damaged", Some(summary()));
    let mut bytes = std::fs::read(&damaged).expect("bytes");
    // In the log of the first process: opening does not read it, verifying does.
    let middle = bytes.windows(4).position(|four| four == b"LOG ").expect("a log") + 50;
    bytes[middle] ^= 4;
    std::fs::write(&damaged, bytes).expect("written");
    for (path, words) in [
        (stopped, "ends before the program did: no space left"),
        (unfinished, "cut short"),
        (damaged, "damaged: a part of a log at byte "),
    ] {
        let output = run(&["info", path.to_str().expect("a name")]);
        assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
        assert!(text(&output).contains(words), "{}", text(&output));
    }
}

#[test]
fn what_is_no_recording_is_refused_in_a_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("text");
    std::fs::write(&path, "hello\n").expect("written");
    for (path, words) in [
        (path.as_path(), "text is not a recording"),
        (folder.path(), "is not a regular file"),
        (Path::new("/nonexistent"), "/nonexistent cannot be read: No such file"),
    ] {
        let output = run(&["info", path.to_str().expect("a name")]);
        assert_eq!(output.status.code(), Some(2));
        let said = errors(&output);
        assert!(said.starts_with("whydunit: ") && said.lines().count() == 1, "{said}");
        assert!(said.contains(words), "{said}");
        assert!(output.stdout.is_empty());
    }
}
