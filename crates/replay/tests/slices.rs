//! Execution slices against the run that they were taken from: whichever executions are kept, at
//! the beginning and the end of every stretch all registers and all memory are the same.

mod support;

use engine::config::Schedule;
use events::decode::Event;
use events::plan::Execution;
use events::{Consumer, Decoder, Plan};
use recording::log::{Entry, entries, write_head};
use recording::{Recording, Summary, Writer};
use replay::slices::{Kept, SaveError, Saved, save, steps};
use replay::{Session, StoppedProcess, Timeline};
use std::path::Path;
use std::sync::{Arc, Mutex};
use support::{open, record};

/// Threads that share memory, a heap that grows, mappings that come and go, floating point, string
/// instructions, signals whose handlers run in the middle of things, and a crash.
const BUSY: &str = r#"
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
static volatile long shared, caught;
static double sums[64];
static __thread long own;
static void handler(int number) { caught += number; sums[caught & 63] += caught; }
static long fold(char *text, int length) {
    long sum = 0;
    for (int i = 0; i < length; i++) sum = sum * 31 + text[i];
    return sum;
}
static void *work(void *argument) {
    long seed = (long)argument;
    for (int i = 0; i < 60; i++) {
        char *block = malloc(100 + i * 40 + (i % 9 == 8 ? 200000 : 0));
        memset(block, i + (int)seed, 100 + i * 40);
        own += fold(block, 30);
        sums[i] += sqrt(own & 0xffff) / (seed + 1);
        shared = shared + (long)sums[i];
        if (i % 7 == 3) raise(SIGUSR1);
        if (i % 3) free(block);
    }
    return (void *)own;
}
int main(void) {
    signal(SIGUSR1, handler);
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, (void *)i);
    work((void *)5);
    char *map = mmap(0, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 40; i++) map[i * 1000] = i + time(0) % 2;
    map = mremap(map, 1 << 16, 1 << 20, MREMAP_MAYMOVE);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    shared += fold(map, 60000) + own;
    printf("%ld %f\n", shared, sums[5]);
    munmap(map, 1 << 20);
    *(volatile long *)16 = shared;
}
"#;

/// Addresses of the instructions that were executed, in order.
#[derive(Clone, Default)]
struct Executed {
    decoder: Arc<Mutex<Decoder>>,
    pcs: Arc<Mutex<Vec<u64>>>,
}

impl Consumer for Executed {
    fn records(&mut self, bytes: &[u8]) {
        let mut pcs = self.pcs.lock().expect("alive");
        let mut decoder = self.decoder.lock().expect("alive");
        let each = |event| {
            if let Event::Instruction { pc, .. } = event {
                pcs.push(pc);
            }
        };
        decoder.events(bytes, each).expect("whole records");
    }
}

fn executed(line: &mut Timeline) -> Vec<u64> {
    let consumer = Executed::default();
    let plan = Plan::observing(Execution::Blocks);
    line.observe(None, None, plan, Box::new(consumer.clone())).expect("observed");
    std::mem::take(&mut *consumer.pcs.lock().expect("alive"))
}

/// A generator of numbers that are the same each time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Keeps some executions of the program itself, up to `until`: about one of `one_of`.
fn some(pcs: &[u64], one_of: u64, until: u64, chance: &mut Chance) -> Kept {
    let own = 0x5555_5555_4000..0x5555_5556_0000;
    let mut kept = Kept { until, about: "what chance chose".into(), ..Kept::default() };
    for (moment, pc) in (0..until).zip(pcs).filter(|(_, pc)| own.contains(*pc)) {
        kept.statements.insert(*pc, (*pc / 24) as u32);
        if chance.below(one_of) == 0 {
            kept.moments.push(moment);
        }
    }
    kept
}

/// All memory of the guest's that it can write, as far as it is there in both.
fn assert_same(slice: &StoppedProcess, whole: &StoppedProcess, what: &str) {
    let (a, b) = (&slice.at.thread, &whole.at.thread);
    assert_eq!((a.number, a.pc, a.general), (b.number, b.pc, b.general), "{what}");
    assert_eq!((a.bases, &a.vector), (b.bases, &b.vector), "{what}");
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", whole.at.process)).expect("maps");
    let mut compared = 0;
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let (range, access) = (words.next().expect("a range"), words.next().expect("access"));
        let (start, end) = range.split_once('-').expect("a range");
        let number = |text: &str| u64::from_str_radix(text, 16).expect("a number");
        let (start, end) = (number(start), number(end));
        if !access.starts_with("rw") || start < 0x5000_0000_0000 {
            continue;
        }
        // Most of a thread's stack has never been touched.
        let start = start.max(end.saturating_sub(1 << 19));
        let bytes = (end - start) as usize;
        let (mut left, mut right) = (vec![0; bytes], vec![0; bytes]);
        assert_eq!(whole.read(start, &mut right), bytes);
        let got = slice.read(start, &mut left);
        let differs = left.iter().zip(&right).position(|(left, right)| left != right);
        let differs = differs.map(|at| start + at as u64);
        let stack = b.general[4];
        assert!(
            got == bytes && differs.is_none(),
            "{what}: {got} of {bytes} bytes at {start:#x}, {differs:x?} differs; stack {stack:#x}"
        );
        compared += bytes / 4096;
    }
    assert!(compared > 30, "{compared} pages");
}

fn saved(file: &Path, kept: Kept, to: &Path) -> Saved {
    let session = Session::open(file).expect("a recording");
    let mut line = session.timeline(0).expect("a replay");
    save(&session, &mut line, kept, to, true).expect("saved")
}

/// Saves slices of a run and compares them with it; how many steps there were.
fn compare(seed: u64, schedule: Schedule) -> usize {
    let made = record("busy", BUSY, schedule);
    let mut whole = open(&made.file);
    let pcs = executed(&mut whole);
    let mut chance = Chance(seed);
    let mut count = 0;
    for (one_of, until) in [(15_000, u64::MAX), (3000, pcs.len() as u64 / 4)] {
        let until = until.min(pcs.len() as u64);
        let kept = some(&pcs, one_of, until, &mut chance);
        let what = format!("seed {seed}, one of {one_of}");
        count += compare_slice(&made.file, (&mut whole, pcs.len() as u64), kept, &what);
    }
    count
}

/// Saves a slice of a run and compares it with all of that; how many steps there were.
fn compare_slice(
    file: &Path,
    (whole, length): (&mut Timeline, u64),
    kept: Kept,
    what: &str,
) -> usize {
    let slice = file.with_extension("slice");
    let until = kept.until;
    let result = saved(file, kept, &slice);
    let recording = Recording::open(&slice).expect("a recording");
    let steps = steps(&recording).expect("readable");
    assert_eq!(steps.len(), result.stretches + 1);
    assert!(result.kept > 0 && result.kept + result.skipped <= until, "{result:?}");
    let mut line = open(&slice);
    for (number, step) in steps.iter().enumerate() {
        let what = format!("{what}, step {number}");
        let whole_start = match (step.end, until == length) {
            (None, true) => whole.seek_end(),
            _ => whole.seek(step.start),
        };
        let start = line.seek(step.start).expect("there");
        assert_same(&start, &whole_start.expect("there"), &what);
        if let Some(end) = step.end.filter(|_| number % 3 == 0) {
            let (end, whole_end) = (line.seek(end), whole.seek(end));
            assert_same(&end.expect("there"), &whole_end.expect("there"), &what);
        }
    }
    assert!(line.end().expect("an end").ended, "it goes as recorded all the way");
    steps.len()
}

#[test]
fn every_step_has_the_registers_and_the_memory_of_the_run() {
    let steps = compare(1, Schedule::Fair) + compare(2, Schedule::Random { seed: 3 });
    assert!(steps > 60, "{steps} steps");
}

/// A timer interrupts calls that do little but return.
const INTERRUPTED: &str = r#"
#include <signal.h>
#include <sys/time.h>
static volatile long caught, sum;
static void handler(int number) { caught += number > 0; }
static __attribute__((noinline)) void tiny(void) { __asm__ volatile(""); }
int main(void) {
    struct itimerval often = {{0, 2000}, {0, 2000}};
    signal(SIGALRM, handler);
    setitimer(ITIMER_REAL, &often, 0);
    while (caught < 120) { tiny(); tiny(); tiny(); tiny(); sum++; }
}
"#;

/// A signal that comes right behind a return is not part of the stretch that the return ends.
#[test]
fn a_signal_may_come_where_a_stretch_ends() {
    let made = record("interrupted", INTERRUPTED, Schedule::Fair);
    let mut whole = open(&made.file);
    let pcs = executed(&mut whole);
    // The handler is where a return leads that a signal follows: to one of few places, seldom.
    let own = |pc: &u64| (0x5555_5555_4000..0x5555_5556_0000).contains(pc);
    let mut ways: std::collections::BTreeMap<(u64, u64), Vec<u64>> = Default::default();
    for (moment, pair) in (0u64..).zip(pcs.windows(2)) {
        if own(&pair[0]) && own(&pair[1]) && pair[0].abs_diff(pair[1]) > 15 {
            ways.entry((pair[0], pair[1])).or_default().push(moment);
        }
    }
    let seldom = ways.iter().filter(|(_, moments)| moments.len() < 100);
    let mut moments: Vec<u64> = seldom.clone().flat_map(|(_, moments)| moments.clone()).collect();
    let mut to: std::collections::BTreeMap<u64, usize> = Default::default();
    for ((_, target), moments) in seldom {
        *to.entry(*target).or_default() += moments.len();
    }
    let handler = to.iter().max_by_key(|(_, times)| **times).map(|(pc, _)| *pc).expect("signals");
    moments.sort_unstable();
    moments.truncate(60);
    let end = whole.seek_end().expect("the end");
    let returns = moments.iter().filter(|moment| {
        let (at, mut code) = (**moment as usize, [0]);
        end.read(pcs[at], &mut code);
        code == [0xc3] && pcs[at + 1] == handler
    });
    assert!(returns.count() > 0, "no signal came right behind a return");
    let statements = pcs.iter().filter(|pc| own(pc)).map(|pc| (*pc, *pc as u32)).collect();
    let until = moments.last().expect("signals") + 1000;
    let kept = Kept { moments, statements, until, about: "interrupted".into(), ..Kept::default() };
    let steps = compare_slice(&made.file, (&mut whole, pcs.len() as u64), kept, "interrupted");
    assert!(steps > 10, "{steps} steps");
}

#[test]
fn a_slice_without_statements_is_not_saved() {
    let made = record("busy", BUSY, Schedule::Fair);
    let session = Session::open(&made.file).expect("a recording");
    let mut line = session.timeline(0).expect("a replay");
    let to = made.file.with_extension("slice");
    let kept = Kept { moments: vec![5, 10], until: 1000, ..Kept::default() };
    let refused = save(&session, &mut line, kept, &to, true);
    assert!(matches!(refused, Err(SaveError::Nothing)));
    assert!(!to.exists());
}

/// Changes an entry somewhere.
fn spoil(entry: &mut Entry, payload: &mut Vec<u8>, chance: &mut Chance) {
    let odd = [0, 1, 0x1000, 0x7000_0000, 0x5555_5555_4000, 1 << 47, u64::MAX];
    let number = |chance: &mut Chance| match chance.below(2) {
        0 => odd[chance.below(odd.len() as u64) as usize],
        _ => chance.below(1 << 40),
    };
    let Entry::Skip(skip) = entry else { return };
    match chance.below(8) {
        0 => skip.at.pc = number(chance),
        1 => skip.at.time = number(chance),
        2 => skip.time = number(chance),
        3 => skip.thread.pc = number(chance),
        4 => skip.thread.number = number(chance) as i32,
        5 => skip.thread.general[chance.below(16) as usize] = number(chance),
        6 => payload.truncate(chance.below(payload.len() as u64 + 1) as usize),
        _ => {
            let (address, length) = (number(chance), number(chance));
            skip.writes.push((address, length));
            skip.mapped.push(recording::log::MappingData {
                start: address,
                end: length,
                protection: 7,
                ..Default::default()
            });
        }
    }
}

/// Logs that no recorder writes, under checksums that hold: a replay ends with a result or a reason.
#[test]
fn broken_slices_end_with_a_reason() {
    let made = record("busy", BUSY, Schedule::Fair);
    let slice = made.file.with_extension("slice");
    let pcs = executed(&mut open(&made.file));
    let mut chance = Chance(11);
    saved(&made.file, some(&pcs, 2000, pcs.len() as u64, &mut chance), &slice);
    let whole = Recording::open(&slice).expect("a recording");
    let all: Vec<(Entry, Vec<u8>)> = entries(whole.log(0).expect("a log")).collect();
    let broken = made.file.with_extension("broken");
    let mut refused = 0;
    for _ in 0..40 {
        let mut writer = Writer::replace(&broken, whole.meta()).expect("a file");
        writer.process(&whole.processes()[0]).expect("written");
        let skips = all.iter().filter(|(entry, _)| matches!(entry, Entry::Skip(_))).count();
        let mut until = chance.below(skips as u64);
        for (entry, payload) in &all {
            let (mut entry, mut payload) = (entry.clone(), payload.clone());
            if matches!(entry, Entry::Skip(_)) {
                if until == 0 {
                    spoil(&mut entry, &mut payload, &mut chance);
                }
                until = until.wrapping_sub(1);
            }
            let mut frame = Vec::new();
            write_head(&entry, payload.len() as u32, &mut frame);
            frame.extend(payload);
            writer.log(0, &frame).expect("written");
        }
        writer.finish(&Summary::default()).expect("written");
        let session = Session::open(&broken).expect("the file itself is sound");
        refused += match session.timeline(0) {
            Ok(mut line) => u32::from(line.end().is_err()),
            Err(_) => 1,
        };
    }
    assert!(refused > 20, "{refused} of 40 were refused");
}
