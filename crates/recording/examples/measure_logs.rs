//! How fast recordings are written and read, and how small they are. The figures in
//! docs/performance.md come from
//!
//!     cargo run --release -p whydunit-recording --example measure_logs [FILE]
//!
//! The log is made up: records of a dozen bytes as system calls leave them, with the bytes of FILE
//! (this program, if none is given) as what was read. Processor time, minimum of five rounds.

use recording::{Meta, Origin, ProcessStart, Recording, Summary, Writer};
use std::time::Duration;

const ROUNDS: usize = 5;
/// One is over before the scheduler's clock moves.
const VERIFICATIONS: usize = 50;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).map(Into::into);
    let path = path.map_or_else(std::env::current_exe, Ok::<std::path::PathBuf, _>)?;
    let content = std::fs::read(path)?;
    let log = made_up_log(&content);
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("recording");
    let mut times = [Duration::MAX; 5];
    for _ in 0..ROUNDS {
        let mut note = |which: usize, begun: Duration| {
            times[which] = times[which].min(processor_time().saturating_sub(begun))
        };
        let mut writer = Writer::replace(&file, &Meta::default())?;
        writer.process(&start())?;
        let begun = processor_time();
        log.chunks(4096).try_for_each(|part| writer.log(0, part))?;
        writer.flush()?;
        note(0, begun);
        let begun = processor_time();
        let id = writer.blob(&content)?;
        note(1, begun);
        writer.finish(&Summary::default())?;
        let recording = Recording::open(&file)?;
        let begun = processor_time();
        assert_eq!(read(&recording)?, log.len());
        note(2, begun);
        let begun = processor_time();
        assert_eq!(recording.blob(id)?.len(), content.len());
        note(3, begun);
        let begun = processor_time();
        for _ in 0..VERIFICATIONS {
            recording.verify()?;
        }
        note(4, begun);
    }
    let stored = Recording::open(&file)?.file_length();
    let raw = log.len() + content.len();
    println!(
        "log {} bytes, contents {} bytes, file {stored} bytes: {:.2} of it",
        log.len(),
        content.len(),
        stored as f64 / raw as f64
    );
    let rows = [
        ("write a log", log.len()),
        ("write contents", content.len()),
        ("read a log", log.len()),
        ("read contents", content.len()),
        ("verify the file", stored as usize * VERIFICATIONS),
    ];
    for ((name, bytes), time) in rows.into_iter().zip(times) {
        println!("{name:<16} {:>6.0} MB/s", bytes as f64 / time.as_secs_f64() / 1e6);
    }
    Ok(())
}

/// What this process has had of the processor, by the scheduler's clock.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|word| word.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or_default())
}

fn start() -> ProcessStart {
    ProcessStart {
        process: 0,
        parent: None,
        pid: 1,
        number: None,
        origin: Origin::Exec,
        command: Vec::new(),
        time: 0,
    }
}

fn read(recording: &Recording) -> Result<usize, recording::ReadError> {
    let mut reader = recording.log(0)?;
    let mut length = 0;
    loop {
        let count = reader.fill()?.len();
        if count == 0 {
            return Ok(length);
        }
        length += count;
        reader.consume(count);
    }
}

/// Records of 16 bytes (kind, number, result, ticks), and after every eighth a read of 512 bytes.
fn made_up_log(content: &[u8]) -> Vec<u8> {
    let mut log = Vec::new();
    for (number, part) in content.chunks(512).enumerate() {
        for call in 0..8 {
            let ticks = (number * 8 + call) as u64 * 977;
            log.extend_from_slice(&[1, call as u8 * 7, 0, 0]);
            log.extend_from_slice(&(number as u32 % 50).to_le_bytes());
            log.extend_from_slice(&ticks.to_le_bytes());
        }
        log.extend_from_slice(part);
    }
    log
}
