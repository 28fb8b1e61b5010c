//! What no debugger would send: malformed packets and messages, clients that disappear, recordings that are cut. The server
//! answers or ends with a sentence; it does not hang, and nothing of it is left.

mod support;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = r#"
#include <stdlib.h>
static int total;
static void add(int n) { total += n; }
int main(void) { for (int i = 0; i < 50; i++) add(i); if (total > 10) abort(); return 0; }
"#;

/// Longer than anything takes here on a machine with much else to do.
const PATIENCE: Duration = Duration::from_secs(300);

struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }
}

fn recording(folder: &Path) -> PathBuf {
    let (source, program) = (folder.join("adds.c"), folder.join("adds"));
    std::fs::write(&source, PROGRAM).expect("written");
    let gcc = Command::new("gcc").args(["-g", "-O0", "-o"]).args([&program, &source]).status();
    assert!(gcc.expect("gcc runs").success());
    let file = folder.join("adds.whydunit");
    let mut record = support::tool(&["record", "-q", "-o"]);
    record.arg(&file).arg("--").arg(&program).output().expect("it records");
    file
}

fn serve(folder: &Path, recording: &Path) -> (Child, UnixStream) {
    let socket = folder.join("socket");
    let mut tool = support::tool(&["debug", "--serve"]);
    tool.arg(&socket).arg(recording).stderr(Stdio::piped());
    let child = tool.spawn().expect("it starts");
    let began = Instant::now();
    loop {
        match UnixStream::connect(&socket) {
            Ok(stream) => return (child, stream),
            Err(_) if began.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(5)),
            Err(error) => panic!("nothing is served: {error}"),
        }
    }
}

/// It ends by itself, without a fault of its own, and says why in a sentence if it says anything.
fn ends(mut child: Child, what: &str) {
    let began = Instant::now();
    let status = loop {
        match child.try_wait().expect("it can be asked") {
            Some(status) => break status,
            None if began.elapsed() > PATIENCE => {
                child.kill().expect("killed");
                panic!("{what}: it hangs");
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let mut said = String::new();
    child.stderr.take().map(|mut it| it.read_to_string(&mut said)).transpose().expect("text");
    assert!(matches!(status.code(), Some(0 | 2)), "{what}: {status:?}: {said}");
    assert!(!said.contains("panicked"), "{what}: {said}");
}

fn framed(body: &[u8]) -> Vec<u8> {
    let sum = body.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
    [b"$", body, format!("#{sum:02x}").as_bytes()].concat()
}

const PACKETS: [&str; 34] = [
    "qSupported:multiprocess+;swbreak+",
    "QStartNoAckMode",
    "?",
    "g",
    "G00",
    "m401000,40",
    "m0,ffffffffffffffff",
    "M401000,4:00000000",
    "X401000,0:",
    "Z0,401136,1",
    "Z0,401136,1;X3,220127",
    "Z1,0,0;X",
    "z0,401136,1",
    "Z2,404010,4",
    "Z4,ffffffffffffffff,ffffffff",
    "z2,404010,4",
    "vCont?",
    "vCont;s:p1.1;c",
    "vCont;r401000,401100:1",
    "bs",
    "bc",
    "c",
    "s",
    "Hgp1.1",
    "Hc-1",
    "T1",
    "qfThreadInfo",
    "qRcmd,7765656b",
    "qRcmd,736565203f",
    "qXfer:auxv:read::0,ffffff",
    "qXfer:features:read:target.xml:fffff,10",
    "QCatchSyscalls:1;1;3c",
    "QPassSignals:e;zz;14",
    "P0=00",
];

#[test]
fn malformed_packets_are_answered_or_end_the_session() {
    let folder = tempfile::tempdir().expect("a folder");
    let recording = recording(folder.path());
    let rounds =
        std::env::var("WHYDUNIT_HOSTILE").ok().and_then(|it| it.parse().ok()).unwrap_or(12);
    for round in 0..rounds {
        let mut dice = Dice(round);
        let (child, mut stream) = serve(folder.path(), &recording);
        stream.set_read_timeout(Some(Duration::from_millis(20))).expect("a limit");
        for _ in 0..40 {
            let mut packet = framed(PACKETS[dice.roll(PACKETS.len())].as_bytes());
            match dice.roll(4) {
                0 => {
                    let (at, byte) = (dice.roll(packet.len()), dice.roll(256) as u8);
                    packet[at] = byte;
                }
                1 => {
                    let mut body = packet[1..packet.len() - 3].to_vec();
                    let (at, byte) = (dice.roll(body.len()), dice.roll(256) as u8);
                    body[at] = byte;
                    packet = framed(&body);
                }
                2 => packet.truncate(dice.roll(packet.len())),
                _ => {}
            }
            if stream.write_all(&packet).is_err() {
                break;
            }
            // What it says does not matter, but it must not wait for somebody to read it.
            let mut answer = [0; 4096];
            let _ = stream.read(&mut answer);
        }
        drop(stream);
        ends(child, &format!("round {round}"));
        let _ = std::fs::remove_file(folder.path().join("socket"));
    }
}

#[test]
fn a_client_that_disappears_at_any_time_ends_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let recording = recording(folder.path());
    for last in ["", "?", "c", "bc", "vCont;s:p1.1", "qRcmd,7768790a"] {
        let (child, mut stream) = serve(folder.path(), &recording);
        stream.write_all(&framed(b"qSupported:multiprocess+")).expect("sent");
        stream.write_all(&framed(last.as_bytes())).expect("sent");
        drop(stream);
        ends(child, last);
        let _ = std::fs::remove_file(folder.path().join("socket"));
    }
}

#[test]
fn a_recording_that_is_cut_is_debugged_to_its_end_or_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = std::fs::read(recording(folder.path())).expect("a recording");
    for part in [1, 10, 50, 90, 99] {
        let cut = folder.path().join(format!("cut-{part}.whydunit"));
        std::fs::write(&cut, &whole[..whole.len() * part / 100]).expect("written");
        let mut debug = support::tool(&["debug", "--batch", "--ex", "bt", "--ex", "reverse-stepi"]);
        let output = debug.arg(&cut).stdin(Stdio::null()).output().expect("it runs");
        let text = support::errors(&output);
        assert!(
            matches!(output.status.code(), Some(0 | 2)),
            "{part} %: {:?} {text}",
            output.status
        );
        assert!(output.status.success() || !text.trim().is_empty(), "{part} %: no word");
        assert!(!text.contains("panicked"), "{part} %: {text}");
    }
}

/// A message of an editor or an agent, somewhere changed.
fn changed(dice: &mut Dice, text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..dice.roll(4) {
        let (at, byte) = (dice.roll(bytes.len()), dice.roll(256) as u8);
        bytes[at] = byte;
    }
    bytes
}

fn talks(arguments: &[&str], messages: &[Vec<u8>], what: &str) {
    let mut tool = support::tool(arguments);
    tool.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = tool.spawn().expect("it starts");
    let mut input = child.stdin.take().expect("an input");
    let mut output = child.stdout.take().expect("an output");
    let reader = std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
    for message in messages {
        if input.write_all(message).is_err() {
            break;
        }
    }
    drop(input);
    ends(child, what);
    let _ = reader.join();
}

#[test]
fn malformed_messages_of_editors_and_agents_end_in_no_fault() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = recording(folder.path());
    let dap = [
        r#"{"seq":1,"type":"request","command":"initialize","arguments":{"adapterID":"x"}}"#.to_owned(),
        format!(r#"{{"seq":2,"type":"request","command":"attach","arguments":{{"recording":"{}"}}}}"#, file.display()),
        r#"{"seq":3,"type":"request","command":"setFunctionBreakpoints","arguments":{"breakpoints":[{"name":"add"}]}}"#.into(),
        r#"{"seq":4,"type":"request","command":"continue","arguments":{"threadId":1}}"#.into(),
        r#"{"seq":5,"type":"request","command":"stackTrace","arguments":{"threadId":1,"levels":-1}}"#.into(),
        r#"{"seq":6,"type":"request","command":"readMemory","arguments":{"memoryReference":"0x0","count":99999999999}}"#.into(),
        r#"{"seq":7,"type":"request","command":"evaluate","arguments":{"expression":"total","frameId":1}}"#.into(),
    ];
    let mcp = [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.into(),
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#.into(),
        format!(r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"explain","arguments":{{"recording":"{}"}}}}}}"#, file.display()),
    ];
    for round in 0..8 {
        let mut dice = Dice(100 + round);
        let framed = |body: Vec<u8>| {
            [format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes(), body].concat()
        };
        let messages: Vec<Vec<u8>> =
            dap.iter().map(|text| framed(changed(&mut dice, text))).collect();
        talks(&["dap"], &messages, &format!("dap, round {round}"));
        let lines = mcp.iter().map(|text| [changed(&mut dice, text), b"\n".to_vec()].concat());
        talks(&["mcp"], &lines.collect::<Vec<_>>(), &format!("mcp, round {round}"));
    }
}
