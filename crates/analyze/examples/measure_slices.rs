//! Measures slices of a saved stream: `measure_slices EVENTS MILLIONS [FULL]`. Takes the first so many
//! million instructions as the window, and prints as JSON the time to prepare it, the bytes kept
//! for an instruction, the peak memory of the process, and the times of slices of the last 20
//! values read from memory, thin and full (of full ones only `FULL`, if that is given). Times are
//! those of the processor, which on an idle machine are those of the clock: everything here runs on
//! one thread.

use analyze::dependence::Trace;
use analyze::dependence::control::{Code, Control, NoCode};
use analyze::dependence::trace::{Item, address};
use analyze::slice::{Follow, Question, Wants};
use base::StepCount;
use events::Consumer;
use std::fs::File;
use std::io::{BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A window: the start of a stream.
struct Window {
    trace: Trace,
    limit: u64,
    spent: f64,
    full: Arc<AtomicBool>,
}

/// A file that ends when the window is full.
struct Until {
    file: BufReader<File>,
    full: Arc<AtomicBool>,
}

impl Read for Until {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.full.load(Ordering::Relaxed) { Ok(0) } else { self.file.read(into) }
    }
}

impl Consumer for Window {
    fn records(&mut self, bytes: &[u8]) {
        if self.trace.len() < self.limit {
            let start = seconds();
            self.trace.records(bytes);
            self.spent += seconds() - start;
        } else {
            self.full.store(true, Ordering::Relaxed);
        }
    }
}

/// The last reads of memory: thread, moment behind the reading instruction, address, bytes.
fn last_reads(trace: &Trace, count: usize) -> Vec<(u32, u64, u64, u64)> {
    let mut found = Vec::new();
    let mut back = trace.backward();
    while let Some((when, item)) = back.previous() {
        let Item::Path { exit, payload, .. } = item else { continue };
        let exit = &trace.blocks.exits[exit as usize];
        let block = &trace.blocks.blocks[exit.block as usize];
        for access in block.accesses.iter().rev() {
            if access.write || access.index >= exit.executed {
                continue;
            }
            if let Some(address) = address(access, payload, when.bases) {
                let moment = when.moment.0 + u64::from(access.index);
                found.push((when.thread, moment, address, u64::from(access.size)));
            }
            if found.len() == count {
                return found;
            }
        }
    }
    found
}

/// Time that this thread has had on a processor.
fn seconds() -> f64 {
    let status = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = status.split_whitespace().next().and_then(|number| number.parse().ok());
    nanoseconds.unwrap_or(0.0) / 1e9
}

fn peak_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or(0) / 1024
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, events, millions, rest @ ..] = &arguments[..] else {
        return Err("usage: measure EVENTS MILLIONS [FULL]".into());
    };
    let most_full = rest.first().map_or(Ok(usize::MAX), |number| number.parse())?;
    let limit = (millions.parse::<f64>()? * 1e6) as u64;
    let full = Arc::new(AtomicBool::new(false));
    let mut window = Window { trace: Trace::default(), limit, spent: 0.0, full: full.clone() };
    let file = Until { file: BufReader::new(File::open(events)?), full };
    // A stream that was cut off is as good as its part.
    let _ = events::file::feed(file, &mut window);
    window.trace.end();
    let Window { trace, spent, .. } = window;
    let start = seconds();
    let control = Control::of(&trace, &NoCode as &dyn Code);
    let control_time = seconds() - start;
    let reads = last_reads(&trace, 20);
    let mut results = Vec::new();
    for follow in [Follow::Thin, Follow::Full] {
        let (mut times, mut sizes) = (Vec::new(), Vec::new());
        let most = if follow == Follow::Full { most_full } else { usize::MAX };
        for (thread, moment, address, bytes) in reads.iter().take(most) {
            let wants = Wants { memory: vec![(*address, *bytes)], ..Wants::default() };
            let mut question = Question::new(*thread, StepCount(*moment), wants, follow);
            question.control = Some(&control);
            question.nodes = 1000;
            let start = seconds();
            let slice = question.answer(&trace);
            times.push(seconds() - start);
            sizes.push(slice.executions());
        }
        times.sort_by(f64::total_cmp);
        sizes.sort_unstable();
        let middle = times.len() / 2;
        let median = times.get(middle).copied().unwrap_or(0.0);
        let most = times.last().copied().unwrap_or(0.0);
        let size = sizes.get(middle).copied().unwrap_or(0);
        results.push(format!(
            "\"{follow:?}\": {{\"slices\": {}, \"median_s\": {median:.4}, \"max_s\": {most:.4}, \
             \"median_size\": {size}}}",
            times.len()
        ));
    }
    println!(
        "{{\"instructions\": {}, \"broken\": {}, \"prepare_s\": {:.3}, \"control_s\": {:.3}, \
         \"bytes_per_instruction\": {:.3}, \"peak_mb\": {}, {}}}",
        trace.len(),
        trace.broken,
        spent,
        control_time,
        trace.bytes() as f64 / trace.len().max(1) as f64,
        peak_megabytes(),
        results.join(", ")
    );
    Ok(())
}
