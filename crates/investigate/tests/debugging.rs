//! A debugger goes the same way forwards and backwards, and both are the way of the trace.

mod support;

use base::StepCount as Step;
use base::{Moment, ThreadNumber, Tick};
use engine::config::Schedule;
use investigate::Case;
use investigate::debugging::{Debugger, Stop, Watch};
use investigate::slicing::{Execution, windows};
use replay::Instant;
use std::path::Path;
use std::process::Command;
use support::build;

/// Calls, a table of jumps, a handler, a jump out of a call, strings, system calls.
const MIXED: &str = r#"
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static jmp_buf back;
static volatile int handled;
static void handler(int signal) { handled += signal; }
static int deep(int n) { return n < 2 ? 1 : deep(n - 1) + deep(n - 2); }
static int pick(int n) {
    switch (n) {
    case 0: return 3; case 1: return 1; case 2: return 4; case 3: return 15;
    case 4: return 9; case 5: return 26; case 6: return 5; default: return n;
    }
}
int main(void) {
    int sum = 0;
    signal(SIGUSR1, handler);
    for (int i = 0; i < 6; i++) {
        sum += pick(i) + deep(i);
        if (i == 3) raise(SIGUSR1);
    }
    if (setjmp(back) == 0) longjmp(back, 1);
    char text[300];
    memset(text, 'x', sizeof text - 1);
    text[299] = 0;
    sum += getppid() > 0;
    return sum + (int)strlen(text) + handled == 0;
}
"#;

const THREADS: &str = r#"
#include <pthread.h>
static int total;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void add(int n) {
    pthread_mutex_lock(&lock);
    total += n;
    pthread_mutex_unlock(&lock);
}
static void *work(void *given) {
    for (int i = 0; i < 6; i++)
        add((int)(long)given);
    return 0;
}
int main(void) {
    pthread_t threads[3];
    for (long i = 0; i < 3; i++)
        pthread_create(&threads[i], 0, work, (void *)(i + 1));
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], 0);
    return total == 36 ? 0 : 1;
}
"#;

fn at<'case>(case: &'case Case, moment: &str) -> Debugger<'case> {
    let moment: Moment = moment.parse().expect(moment);
    Debugger::at(case, 0, &moment).expect("a debugger")
}

/// Steps forwards, then back; every position must be met again, in reverse.
fn there_and_back(debugger: &mut Debugger<'_>, thread: ThreadNumber, steps: usize) -> Vec<Instant> {
    let mut way = vec![debugger.instant()];
    for _ in 0..steps {
        if debugger.step(thread).expect("a step") != Stop::Moved {
            break;
        }
        way.push(debugger.instant());
    }
    for expected in way.iter().rev().skip(1) {
        if debugger.end().is_some() {
            break;
        }
        assert_eq!(debugger.step_back(thread).expect("a step back"), Stop::Moved);
        assert_eq!(debugger.instant(), *expected);
    }
    way
}

#[test]
fn single_steps_are_those_of_the_trace() {
    let built = build("mixed", MIXED, &["-O0"]);
    let case = built.case(Schedule::Fair);
    let execution = Execution::of(&case, 0, windows::MEMORY).expect("observed");
    let trace = &execution.trace;
    for (start, steps) in [("pick#3", 60), ("handler", 40), ("deep#9", 80)] {
        let mut debugger = at(&case, start);
        let way = there_and_back(&mut debugger, ThreadNumber::FIRST, steps);
        assert_eq!(way.len(), steps + 1, "{start}");
        let first = way[0];
        let pc = first.pc.map(base::Address);
        let (executed, _) = trace.at_tick(Tick(first.time), pc, None).expect("it is in the trace");
        let near = executed.moment.0.saturating_sub(1)..executed.moment.0 + 2;
        let is_first = |step: &u64| {
            let at = trace.position(Step(*step));
            at.is_some_and(|at| (at.tick.0, Some(at.pc.0)) == (first.time, first.pc))
        };
        let begin = near.into_iter().find(is_first).expect("the step that stands there");
        for (number, instant) in (begin..).zip(&way) {
            let expected = trace.position(Step(number)).expect("a step");
            assert_eq!(
                (instant.time, instant.pc),
                (expected.tick.0, Some(expected.pc.0)),
                "{start}"
            );
        }
    }
}

#[test]
fn breakpoints_are_met_in_reverse_order_going_back() {
    let built = build("mixed", MIXED, &["-O0"]);
    let case = built.case(Schedule::Fair);
    let mut debugger = at(&case, "start");
    let program = case.program(at(&case, "end").modules()).expect("a program");
    for place in ["deep", "pick"] {
        let addresses = investigate::moments::addresses(&program, &place.parse().expect("a place"));
        for pc in addresses.expect("code") {
            debugger.set_breakpoint(pc, true);
        }
    }
    let mut met = Vec::new();
    while debugger.resume(&mut || false).expect("on") == Stop::Breakpoint {
        met.push(debugger.instant());
    }
    // pick for each of six, deep(0) to deep(5): 1, 1, 3, 5, 9, 15 calls.
    assert_eq!(met.len(), 6 + 34);
    for expected in met.iter().rev() {
        assert_eq!(debugger.resume_back(&mut || false).expect("back"), Stop::Breakpoint);
        assert_eq!(debugger.instant(), *expected);
    }
    assert_eq!(debugger.resume_back(&mut || false).expect("back"), Stop::Beginning);
}

/// The address of a variable of a program that is not relocated.
fn address_of(program: &Path, variable: &str) -> u64 {
    let output = Command::new("nm").arg(program).output().expect("nm runs");
    let text = String::from_utf8(output.stdout).expect("text");
    let line = text.lines().find(|line| line.ends_with(&format!(" {variable}"))).expect("there");
    u64::from_str_radix(line.split(' ').next().expect("an address"), 16).expect("a number")
}

#[test]
fn a_watched_variable_stops_at_every_write_both_ways() {
    let built = build("threads", THREADS, &["-O1", "-no-pie"]);
    let case = built.case(Schedule::Random { seed: 7 });
    let mut debugger = at(&case, "main#1");
    let address = address_of(&built.program, "total");
    let watch = Watch { address, size: 4, reads: false, writes: true };
    debugger.add_watch(watch);
    let value = |debugger: &Debugger<'_>| {
        let mut bytes = [0; 4];
        assert_eq!(debugger.read(address, &mut bytes), 4);
        i32::from_le_bytes(bytes)
    };
    let mut values = vec![value(&debugger)];
    while let Stop::Watched(watched) = debugger.resume(&mut || false).expect("on") {
        assert!(watched.write);
        values.push(value(&debugger));
    }
    assert_eq!(values.len(), 19);
    assert!(values.windows(2).all(|pair| (1..=3).contains(&(pair[1] - pair[0]))), "{values:?}");
    for expected in values.iter().rev().skip(1) {
        assert!(matches!(debugger.resume_back(&mut || false).expect("back"), Stop::Watched(_)));
        assert_eq!(value(&debugger), *expected, "before the write");
    }
    assert!(debugger.remove_watch(watch));
}

#[test]
fn a_thread_is_stepped_by_itself() {
    let built = build("threads", THREADS, &["-O1"]);
    let case = built.case(Schedule::Random { seed: 3 });
    for thread in [2, 3, 4] {
        let mut debugger = at(&case, &format!("add#3/{thread}"));
        assert_eq!(debugger.running(), ThreadNumber(thread));
        let way = there_and_back(&mut debugger, ThreadNumber(thread), 30);
        assert!(way.len() > 20);
        assert!(debugger.threads().expect("threads").iter().any(|(number, _)| number.0 == thread));
    }
}

/// Pcs and registers of single steps, as far as they go.
fn stepped(debugger: &mut Debugger<'_>, steps: usize) -> Vec<(u64, [u64; 16])> {
    let thread = debugger.running();
    let mut way = Vec::new();
    for _ in 0..steps {
        if debugger.step(thread).expect("a step") != Stop::Moved {
            break;
        }
        let data = debugger.thread();
        way.push((data.pc, data.general));
    }
    way
}

#[test]
fn single_steps_of_a_diversion_are_those_of_the_recording() {
    let built = build("mixed", MIXED, &["-O0", "-no-pie"]);
    let case = built.case(Schedule::Fair);
    let address = address_of(&built.program, "handled");
    // Through jumps of a table, into a handler and out of it, out of a call, over string instructions.
    for (start, steps) in [("pick#3", 200), ("mixed.c:22#4", 250), ("mixed.c:24", 250)] {
        let mut recorded = at(&case, start);
        let expected = stepped(&mut recorded, steps);
        assert_eq!(expected.len(), steps, "{start}");
        let mut altered = at(&case, start);
        let mut same = [0; 4];
        assert_eq!(altered.read(address, &mut same), 4);
        assert!(altered.write(address, &same), "{start}");
        let got = stepped(&mut altered, steps);
        assert!(altered.is_away());
        let first = expected.iter().zip(&got).position(|(expected, got)| expected != got);
        assert_eq!((first, got.len()), (None, steps), "{start}");
    }
}

#[test]
fn a_thread_of_a_diversion_is_stepped_by_itself() {
    let built = build("threads", THREADS, &["-O1", "-no-pie"]);
    let case = built.case(Schedule::Random { seed: 3 });
    let address = address_of(&built.program, "total");
    let mut debugger = at(&case, "add#3/2");
    let mut same = [0; 4];
    debugger.read(address, &mut same);
    assert!(debugger.write(address, &same));
    for step in 0..80 {
        let thread = ThreadNumber(2 + step % 2);
        match debugger.step(thread).expect("a step") {
            Stop::Moved => {}
            other => panic!("step {step} of {thread}: {other:?}"),
        }
        let lives =
            debugger.threads().expect("threads").iter().any(|(number, _)| *number == thread);
        assert!(debugger.running() == thread || !lives, "step {step} of {thread}");
    }
}

#[test]
fn a_step_stops_at_watched_memory_and_within_code_at_breakpoints() {
    let built = build("mixed", MIXED, &["-O0", "-no-pie"]);
    let case = built.case(Schedule::Fair);
    let address = address_of(&built.program, "handled");
    let mut debugger = at(&case, "handler#1");
    debugger.add_watch(Watch { address, size: 4, reads: false, writes: true });
    let (thread, everywhere) = (debugger.running(), 0..u64::MAX);
    let stop = debugger.step_within(thread, everywhere.clone(), &mut || false).expect("a step");
    assert!(matches!(stop, Stop::Watched(watched) if watched.write), "{stop:?}");
    let mut debugger = at(&case, "pick#2");
    let program = debugger.program().expect("a program");
    let deep = investigate::moments::addresses(&program, &"deep".parse().expect("a place"));
    for pc in deep.expect("code") {
        debugger.set_breakpoint(pc, true);
    }
    let stop = debugger.step_within(thread, everywhere, &mut || false).expect("a step");
    assert_eq!(stop, Stop::Breakpoint);
    assert_eq!(debugger.place().expect("a place").function.as_deref(), Some("deep"));
}

/// `got` is written by an instruction, then by the kernel, then by an instruction.
const KERNEL: &str = r#"
#include <unistd.h>
static long got = 0;
int main(void) {
    int ends[2];
    long sent = 42, sum = 0;
    if (pipe(ends) || write(ends[1], &sent, sizeof sent) != sizeof sent) return 1;
    got = 1;
    for (int i = 0; i < 1000; i++) sum += i;
    if (read(ends[0], &got, sizeof got) != sizeof got) return 1;
    for (int i = 0; i < 1000; i++) sum += i;
    got += sum;
    return got == 999042 ? 0 : 2;
}
"#;

#[test]
fn what_the_kernel_writes_stops_a_watch_too() {
    let built = build("kernel", KERNEL, &["-O0", "-no-pie"]);
    let case = built.case(Schedule::Fair);
    let address = address_of(&built.program, "got");
    let value = |debugger: &Debugger<'_>| {
        let mut bytes = [0; 8];
        assert_eq!(debugger.read(address, &mut bytes), 8);
        i64::from_le_bytes(bytes)
    };
    let mut debugger = at(&case, "main#1");
    debugger.add_watch(Watch { address, size: 8, reads: false, writes: true });
    let mut values = Vec::new();
    while let Stop::Watched(_) = debugger.resume(&mut || false).expect("on") {
        values.push(value(&debugger));
    }
    assert_eq!(values, [1, 42, 999_042]);
    let mut values = Vec::new();
    while let Stop::Watched(_) = debugger.resume_back(&mut || false).expect("back") {
        values.push(value(&debugger));
    }
    assert_eq!(values, [42, 1, 0]);
}
