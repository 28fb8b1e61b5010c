//! One notion of time: ticks counted from a trace are those that the engine counts, positions and steps
//! convert into each other, and a moment means the same position however it is written and whoever is asked,
//! the replay or the trace.

mod support;

use base::StepCount as Step;
use base::{Moment, Position, ThreadNumber, Tick};
use engine::config::Schedule;
use investigate::slicing::{Execution, windows};
use investigate::{Case, moments};
use replay::{Instant, Timeline};
use support::build;

/// Calls, recursion, tables of jumps, jumps out of calls, handlers, repeated strings.
const MIXED: &str = r#"
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
int main(void) {
    int values[64], sum = 0;
    signal(SIGUSR1, handler);
    for (int i = 0; i < 64; i++) {
        values[i] = pick(i % 9) * 37 % 11;
        if (i % 16 == 3) raise(SIGUSR1);
    }
    qsort(values, 64, sizeof(int), compare);
    if (setjmp(back) == 0) longjmp(back, 1);
    char text[300];
    memset(text, 'x', sizeof text - 1);
    text[299] = 0;
    for (int i = 0; i < 64; i++) sum += values[i] + deep(i % 7);
    printf("%d %zu %d\n", sum, strlen(text), handled);
    return 0;
}
"#;

const THREADS: &str = r#"
#include <pthread.h>
#include <stdio.h>
static int total;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void add(int n) {
    pthread_mutex_lock(&lock);
    total += n;
    pthread_mutex_unlock(&lock);
}
static void *work(void *given) {
    for (int i = 0; i < 200; i++)
        add((int)(long)given);
    return 0;
}
int main(void) {
    pthread_t threads[3];
    for (long i = 0; i < 3; i++)
        pthread_create(&threads[i], 0, work, (void *)(i + 1));
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], 0);
    printf("%d\n", total);
    return 0;
}
"#;

/// `twice` is inlined into both of its callers; the child is forked late.
const INLINED: &str = r#"
#include <sys/wait.h>
#include <unistd.h>
static volatile int sink;
static inline __attribute__((always_inline)) int twice(int n) {
    sink = n;
    return 2 * n;
}
static __attribute__((noinline)) int first(int n) { return twice(n) + 1; }
static __attribute__((noinline)) int second(int n) { return twice(n) - 1; }
int main(void) {
    int sum = 0;
    for (int i = 0; i < 5; i++)
        sum += first(i) * second(i);
    if (fork() == 0) {
        sum = first(sum);
        *(volatile int *)8 = sum;
    }
    wait(0);
    return sum & 1;
}
"#;

fn execution(case: &Case, process: u32) -> Execution {
    Execution::of(case, process, windows::MEMORY).expect("observed")
}

fn position_of(line: &mut Timeline, at: Instant) -> Position {
    let standing = line.seek(at).expect("reached");
    Position { tick: Tick(standing.at.time), pc: base::Address(standing.at.thread.pc) }
}

/// Holds a trace against the replay at many of its steps.
fn check_steps(case: &Case, process: u32) {
    let mut line = case.timeline(process).expect("a replay");
    let end = Tick(line.end().expect("an end").time);
    let execution = execution(case, process);
    let trace = &execution.trace;
    assert_eq!(trace.tick(), end, "ticks of the trace are those of the engine");
    let length = trace.len();
    for part in 0..40 {
        let step = length / 41 * part + part % 7;
        let position = trace.position(Step(step)).expect("a step of the run");
        let at = Instant { time: position.tick.0, pc: Some(position.pc.0) };
        assert_eq!(position_of(&mut line, at), position, "step {step} of {length}");
        let (executed, same) = trace.at_tick(position.tick, Some(position.pc), None).expect("it");
        assert_eq!(same, position);
        assert!(executed.moment <= Step(step), "the first execution there");
    }
}

#[test]
fn ticks_of_a_trace_are_those_of_the_engine() {
    for flags in ["-O0", "-O2"] {
        let built = build("mixed", MIXED, &[flags]);
        check_steps(&built.case(Schedule::Fair), 0);
    }
}

#[test]
fn the_same_with_threads_and_processes() {
    let built = build("threads", THREADS, &["-O1"]);
    for seed in [1, 2] {
        check_steps(&built.case(Schedule::Random { seed }), 0);
    }
    drop(built);
    let built = build("inlined", INLINED, &["-O1"]);
    let case = built.case(Schedule::Fair);
    check_steps(&case, 0);
    check_steps(&case, 1);
}

/// The position that a moment means to the replay, and to the trace; and the thread.
fn both(case: &Case, process: u32, text: &str) -> (Position, Position, ThreadNumber) {
    let moment: Moment = text.parse().expect(text);
    let mut line = case.timeline(process).expect("a replay");
    let standing = moments::seek(case, process, &mut line, &moment).expect(text);
    let tick = Tick(standing.at.time);
    let replayed = Position { tick, pc: base::Address(standing.at.thread.pc) };
    let execution = execution(case, process);
    let found = execution.moment(&moment).expect(text);
    let traced = match &found.executed {
        Some(_) => execution.trace.position(found.moment).expect(text),
        None => Position { tick: execution.trace.tick(), pc: replayed.pc },
    };
    (replayed, traced, execution.thread(found.thread, tick))
}

#[test]
fn a_moment_means_the_same_however_it_is_written() {
    let built = build("inlined", INLINED, &["-O1"]);
    let case = built.case(Schedule::Fair);
    // The line of `twice` is executed ten times, in two copies; the process asked about is the child.
    let child = case.failed_process();
    assert_eq!(child, 1);
    let rows: [(u32, &[&str]); 5] = [
        (0, &["inlined.c:6#4", "inlined.c:6#-7", "inlined.c:6#4/1"]),
        (0, &["inlined.c:6", "inlined.c:6#last", "inlined.c:6#10", "second#5"]),
        (0, &["first#3", "inlined.c:6#5"]),
        (child, &["inlined.c:6", "inlined.c:6#-1/1", "first"]),
        (child, &["crash", "end"]),
    ];
    for (process, forms) in rows {
        let (expected, ..) = both(&case, process, forms[0]);
        let exact = [format!("{expected}"), format!("{expected}/1")];
        for form in forms.iter().copied().chain(exact.iter().map(String::as_str)) {
            if form.starts_with('@') && forms.contains(&"crash") {
                continue;
            }
            let (replayed, traced, thread) = both(&case, process, form);
            assert_eq!((replayed.tick, traced.tick), (expected.tick, expected.tick), "{form}");
            assert_eq!(replayed, traced, "{form}");
            assert_eq!(thread, ThreadNumber::FIRST);
        }
    }
}

#[test]
fn threads_have_numbers_that_moments_can_name() {
    let built = build("threads", THREADS, &["-O1"]);
    let case = built.case(Schedule::Random { seed: 3 });
    for number in 2..=4 {
        for form in [format!("add#200/{number}"), format!("add/{number}")] {
            let (replayed, traced, thread) = both(&case, 0, &form);
            assert_eq!(replayed, traced, "{form}");
            assert_eq!(thread, ThreadNumber(number), "{form}");
        }
    }
    let execution = execution(&case, 0);
    let error = |text: &str| {
        let moment: Moment = text.parse().expect(text);
        let mut line = case.timeline(0).expect("a replay");
        let replayed = moments::seek(&case, 0, &mut line, &moment).err().expect("no such moment");
        let traced = execution.moment(&moment).err().expect("no such moment");
        assert_eq!(replayed.to_string(), traced.to_string());
        traced.to_string()
    };
    assert_eq!(error("add#601"), "add was executed 600 times, so there is no add#601");
    assert_eq!(error("add/1"), "add was never executed by thread 1");
    assert_eq!(error("add/9"), "there is no thread /9: the process has 4");
    assert_eq!(error("crash"), "the program did not crash; `end` means its end");
    assert!(error("@999999999999").starts_with("the recording ends at @"));
}
