//! Moments, checkpoints, windows and whole trees of recordings made here, of programs that gcc builds.

mod support;

use engine::config::Schedule;
use engine::report::{ProcessReplay, Replayed};
use events::count::{Counter, Counts};
use events::decode::Event;
use events::plan::{Poison, Scope, Screen};
use events::{Consumer, Decoder, Discard, Plan};
use recording::log::Ending;
use replay::{Instant, Session, Shown, Timeline, Window};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use support::{open, record};

const RACY: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static volatile long shared;
static int step(int i) { return i & 1 ? i * 3 + 1 : i / 2; }
static void *work(void *arg) {
    for (int i = 0; i < 3000; i++) { shared = shared + step(i); }
    return arg;
}
int main(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    char *block = malloc(100);
    printf("%ld %p\n", shared, (void *)block);
    *(volatile int *)8 = shared;
}
"#;

/// Collects events, without those that say how the stream is cut into superblocks.
#[derive(Clone, Default)]
struct Collect {
    decoder: Arc<Mutex<Decoder>>,
    events: Arc<Mutex<Vec<Event>>>,
}

impl Consumer for Collect {
    fn records(&mut self, bytes: &[u8]) {
        let mut events = self.events.lock().expect("alive");
        let mut decoder = self.decoder.lock().expect("alive");
        decoder.events(bytes, |event| events.push(event)).expect("whole records");
    }
}

impl Collect {
    fn take(&self) -> Vec<Event> {
        let mut events = std::mem::take(&mut *self.events.lock().expect("alive"));
        events.retain(|event| matches!(event, Event::Instruction { .. } | Event::Access { .. }));
        events
    }
}

fn plan() -> Plan {
    Plan::everything()
}

fn observe(line: &mut Timeline, from: Option<Instant>, to: Option<Instant>) -> Vec<Event> {
    let collect = Collect::default();
    line.observe(from, to, plan(), Box::new(collect.clone())).expect("observed");
    collect.take()
}

#[test]
fn windows_join_to_the_whole_wherever_they_are_cut() {
    let made = record("racy", RACY, Schedule::Random { seed: 5 });
    let mut line = open(&made.file);
    let whole = observe(&mut line, None, None);
    let end = line.end().expect("an end").time;
    assert!(whole.len() > 100_000, "{} events", whole.len());
    let cuts = [end / 7, end / 2, end - 5, end - 1];
    let mut joined = Vec::new();
    let mut from = None;
    for time in cuts {
        let to = line.seek(Instant { time, pc: None }).expect("reached").instant();
        joined.extend(observe(&mut line, from, Some(to)));
        from = Some(to);
    }
    joined.extend(observe(&mut line, from, None));
    assert_eq!(joined.len(), whole.len());
    assert!(joined == whole, "the same events");
}

/// What each thread did, in order.
fn by_thread(line: &mut Timeline, threads: Vec<u32>) -> BTreeMap<u32, Vec<Event>> {
    let collect = Collect::default();
    let scope = Scope { threads, ..Scope::default() };
    let plan = Plan { scope, ..Plan::everything() };
    line.observe(None, None, plan, Box::new(collect.clone())).expect("observed");
    let (mut found, mut thread) = (BTreeMap::<u32, Vec<Event>>::new(), 0);
    for event in collect.events.lock().expect("alive").drain(..) {
        match event {
            Event::Thread(next) => thread = next,
            Event::Instruction { .. } | Event::Access { .. } => {
                found.entry(thread).or_default().push(event);
            }
            _ => {}
        }
    }
    found
}

#[test]
fn a_plan_for_one_thread_shows_what_that_one_does() {
    let made = record("racy", RACY, Schedule::Random { seed: 8 });
    let mut line = open(&made.file);
    let all = by_thread(&mut line, Vec::new());
    assert_eq!(all.len(), 4);
    let (thread, events) = all.iter().nth(2).expect("a third");
    let alone = by_thread(&mut line, vec![*thread]);
    assert_eq!(alone.keys().collect::<Vec<_>>(), [thread]);
    assert!(alone[thread] == *events, "{} of {}", alone[thread].len(), events.len());
}

#[test]
fn windows_in_parallel_are_those_one_after_the_other() {
    let made = record("racy", RACY, Schedule::Random { seed: 8 });
    let mut line = open(&made.file);
    line.space_checkpoints(3000);
    let whole = observe(&mut line, None, None);
    let end = line.end().expect("an end").time;
    let cuts: Vec<Option<Instant>> = (1..6)
        .map(|part| Instant { time: end * part / 6, pc: None })
        .map(|cut| Some(line.seek(cut).expect("reached").instant()))
        .collect();
    let bounds = [vec![None], cuts, vec![None]].concat();
    let collected: Vec<Collect> = bounds[1..].iter().map(|_| Collect::default()).collect();
    let windows = bounds.windows(2).zip(&collected).map(|(bound, collect)| Window {
        from: bound[0],
        to: bound[1],
        plan: plan(),
        consumer: Box::new(collect.clone()),
    });
    let stopped = line.observe_all(windows.collect()).expect("observed");
    assert_eq!(stopped.iter().filter(|stopped| stopped.ended).count(), 1);
    let joined: Vec<Event> = collected.iter().flat_map(Collect::take).collect();
    assert!(joined == whole, "{} and {} events", joined.len(), whole.len());
}

#[test]
fn a_moment_is_the_same_from_either_side() {
    let made = record("racy", RACY, Schedule::Random { seed: 6 });
    let mut line = open(&made.file);
    let end = line.end().expect("an end").clone();
    assert_eq!((end.ended, end.ending), (true, Some(recording::log::Ending::Signal(11))));
    let times: Vec<u64> = (1..12).map(|part| end.time * part / 12).collect();
    let forwards: Vec<_> = times
        .iter()
        .map(|time| line.seek(Instant { time: *time, pc: None }).expect("there").at.thread)
        .collect();
    for (time, thread) in times.iter().zip(&forwards).rev() {
        let again = line.seek(Instant { time: *time, pc: Some(thread.pc) }).expect("there");
        assert_eq!(&again.at.thread, thread, "at {time}");
    }
    let crash = line.seek_end().expect("the end");
    assert_eq!(crash.at.thread, end.thread);
    let mut code = [0; 8];
    assert_eq!(crash.read(crash.at.thread.pc, &mut code), 8);
}

#[test]
fn executions_of_a_place_are_counted() {
    let made = record("racy", RACY, Schedule::Random { seed: 7 });
    let mut line = open(&made.file);
    let whole = observe(&mut line, None, None);
    let mut counts = BTreeMap::new();
    for event in &whole {
        if let Event::Instruction { pc, .. } = event {
            *counts.entry(*pc).or_insert(0u64) += 1;
        }
    }
    let often = *counts.iter().max_by_key(|(_, count)| **count).expect("some").0;
    let seldom = *counts.iter().find(|(_, count)| (3..50).contains(*count)).expect("some").0;
    for pc in [often, seldom] {
        assert_eq!(line.count_hits(&[pc], None).expect("counted"), counts[&pc]);
        let third = line.seek_hit(&[pc], None, 3).expect("reached");
        assert_eq!((third.at.thread.pc, third.at.hits), (pc, 3));
        let before = observe(&mut line, None, Some(third.instant()));
        let met = before
            .iter()
            .filter(|event| matches!(event, Event::Instruction { pc: it, .. } if *it == pc));
        assert_eq!(met.count(), 2);
    }
}

#[test]
fn checkpoints_are_bounded() {
    let made = record("racy", RACY, Schedule::Fair);
    let mut line = open(&made.file);
    line.limit_checkpoints(4);
    line.space_checkpoints(500);
    let end = line.end().expect("an end").time;
    let kept: Vec<u64> = line.checkpoints().collect();
    assert!((2..=4).contains(&kept.len()), "{kept:?} of {end}");
    assert_eq!(kept[0], 0);
    let mut line = open(&made.file);
    line.limit_memory(1);
    line.space_checkpoints(500);
    assert_eq!(line.end().expect("an end").time, end);
    assert_eq!(line.checkpoints().collect::<Vec<_>>(), [0], "no room for another");
}

/// Forks that are forked from and end in any order; and some that are killed while they wait.
const TREES: [(&str, &str); 2] = [
    (
        "forks",
        r#"
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static int tree(int depth) {
    int sum = depth;
    for (int i = 0; i < depth; i++)
        if (fork() == 0)
            _exit(tree(depth - 1) & 63);
    for (int status; wait(&status) > 0; sum += WEXITSTATUS(status)) getppid();
    return sum;
}
int main(void) { printf("%d\n", tree(3)); }
"#,
    ),
    ("killed", include_str!("../../../tests/programs/replay/process_killed_waiting.c")),
];

/// A counter whose sums can be had afterwards.
struct Counting(i32, Counter, Arc<Mutex<Vec<(i32, Counts)>>>);

impl Consumer for Counting {
    fn records(&mut self, bytes: &[u8]) {
        self.1.records(bytes);
    }

    fn end(&mut self) {
        self.2.lock().expect("a lock").push((self.0, self.1.total()));
    }
}

/// Replays and counts: each process, how it went, and what it executed.
fn counted(session: &Session, process: u32, children: bool) -> Vec<(u32, Replayed, Counts)> {
    let sums = Arc::new(Mutex::new(Vec::new()));
    let mut make = |runner| -> Box<dyn Consumer> {
        Box::new(Counting(runner, Counter::default(), sums.clone()))
    };
    let plan = Plan::everything().with_forks();
    let replays = session.replay_processes(process, children, plan, Shown::Nothing, &mut make);
    let mut sums: BTreeMap<i32, Counts> = sums.lock().expect("a lock").drain(..).collect();
    let with_counts = |replay: ProcessReplay| {
        let counts = sums.remove(&replay.runner).expect("counts of each process");
        (replay.process, replay.replayed, counts)
    };
    replays.expect("replayed").into_iter().map(with_counts).collect()
}

#[test]
fn a_tree_is_what_its_processes_are() {
    for (name, source) in TREES {
        for seed in 1..=4 {
            let made = record(name, source, Schedule::Random { seed });
            let session = Session::open(&made.file).expect("a recording");
            let mut tree = counted(&session, 0, true);
            tree.sort_by_key(|(process, ..)| *process);
            let begun = session.recording().processes().iter().map(|start| start.process);
            let begun: Vec<u32> =
                begun.filter(|process| session.recording().has_begun(*process)).collect();
            assert!(begun.len() > 2, "{name} {seed}: {begun:?}");
            let numbers: Vec<u32> = tree.iter().map(|(process, ..)| *process).collect();
            assert_eq!(numbers, begun, "{name} {seed}");
            for one in tree {
                let (process, replayed, counts) = &one;
                assert_eq!(replayed.divergence, None, "{name} {seed}, process {process}");
                // One that is killed may have executed none.
                let killed = !matches!(replayed.ending, Some(Ending::Exit(_)));
                assert!(killed || counts.instructions > 0, "{name} {seed}, process {process}");
                let alone = counted(&session, *process, false);
                assert_eq!(alone, [one], "{name} {seed}");
            }
        }
    }
}

/// The parent does something else before it forks, if what nobody wrote is something else.
const ASTRAY: &str = r#"
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) static int unwritten(void) {
    volatile int words[48];
    return words[40] == 0x5ca1ab1e;
}
int main(void) {
    for (int i = unwritten(); i; i--) getuid();
    if (fork() == 0) _exit(getppid() < 0);
    wait(0);
}
"#;

#[test]
fn a_replay_that_goes_astray_on_the_way_to_a_process_says_so() {
    let made = record("astray", ASTRAY, Schedule::Fair);
    let session = Session::open(&made.file).expect("a recording");
    for process in [0, 1] {
        let plan = Plan::screening(Screen::Poison(Poison::default()));
        let mut make = |_| -> Box<dyn Consumer> { Box::new(Discard::default()) };
        let replayed = session.replay(process, plan, Shown::Nothing, &mut make).expect("replayed");
        assert!(replayed.divergence.is_some(), "process {process}");
    }
}
