//! A diversion without alterations ends as the recording does, wherever it begins; one with alterations does
//! what a twin of the program does that is written so.

mod support;

use base::Moment;
use engine::config::Schedule;
use investigate::whatif::{Altered, Answer, Verdict, WhatIf};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use support::build;

/// More than any of these takes, on a machine with much else to do.
const TIME: Duration = Duration::from_secs(120);

/// Programs of the test bed: their flags, and whether their first process ends well.
const PROGRAMS: [(&str, &[&str], bool); 10] = [
    ("hello", &["-O1", "-Wl,--no-as-needed", "-lm"], true),
    ("flow_calls", &["-O2"], true),
    ("cpu_integer", &["-O1", "-mno-red-zone"], true),
    ("memory_mremap", &["-O1"], true),
    ("signal_jumps", &["-O1"], true),
    ("signal_faults", &["-O1", "-Wl,--no-as-needed", "-lm"], true),
    ("die_abrt", &["-O0"], false),
    ("die_segv", &["-O0"], false),
    ("die_fpe", &["-O0"], false),
    ("thread_locks", &["-O1"], true),
];

/// Numbers that are the same in each run of the tests.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % limit.max(1)
    }
}

#[test]
fn without_alterations_the_end_and_the_output_are_as_recorded() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs");
    let include = format!("-I{}", folder.display());
    let mut numbers = Numbers(18);
    for (name, flags, good) in PROGRAMS {
        let source = std::fs::read_to_string(folder.join(name).with_extension("c")).expect(name);
        let flags = [&[include.as_str()], flags].concat();
        let built = build(name, &source, &flags);
        let case = built.case(Schedule::Fair);
        let process = case.main_process();
        let end = case.timeline(process).expect("a line").end().expect("an end").time;
        let mut whatif = WhatIf::of(&case, process).expect("a case");
        for _ in 0..5 {
            let moment: Moment = format!("@{}", numbers.below(end)).parse().expect("a moment");
            let told = whatif.unaltered(&moment, TIME).expect("a diversion");
            let verdict = if good { Verdict::NoFailure } else { Verdict::SameFailure };
            assert_eq!(told.verdict, verdict, "{name} from {moment} on: {told:#?}");
            assert_eq!(told.difference, None, "{name} from {moment} on: {told:#?}");
        }
    }
}

const DECIDES: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static int limit = 3;
static int weigh(int n) {
    if (n > limit && n != 9)
        return 100;
    return n;
}
static void mark(int *sum) {
    *sum += 1000;
}
int main(void) {
    int sum = 0; setvbuf(stdout, NULL, _IOFBF, 4096);
    for (int i = 0; i < 6; i++) {
        sum += weigh(i);
        if (i == 4)
            mark(&sum);
        printf("%d: %d\n", i, sum);
    }
    if (sum > 1000)
        abort();
    printf("sum %d\n", sum);
    return 0;
}
"#;

/// What a program, run by itself, writes, and its exit code.
fn native(name: &str, source: &str) -> (String, Option<i32>) {
    let built = build(name, source, &["-O0"]);
    let output = Command::new(&built.program).output().expect("it runs");
    (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code())
}

/// The altered program must write what its twin writes, from where it was altered on, and end as it does.
fn check(name: &str, altered: &Altered, twin: (&str, &str)) -> Answer {
    assert!(DECIDES.contains(twin.0), "{name}");
    let (written, code) = native(name, &DECIDES.replacen(twin.0, twin.1, 1));
    let built = build(name, DECIDES, &["-O0"]);
    let case = built.case(Schedule::Fair);
    let mut whatif = WhatIf::of(&case, 0).expect("a case");
    let told = whatif.alter(altered, TIME).expect(name);
    // It writes when it ends, so all of the output is the diversion's.
    assert_eq!(told.output[0], written, "{name}: {told:#?}");
    assert_eq!(told.verdict == Verdict::NoFailure, code == Some(0), "{name}: {told:#?}");
    told
}

fn moment(text: &str) -> Moment {
    text.parse().expect(text)
}

#[test]
fn a_decision_that_is_turned_around_is_a_condition_that_is_negated() {
    let switch = |text: &str| Altered::Switch(moment(text));
    check("decides", &switch("decides.c:17#5"), ("if (i == 4)", "if (0)"));
    check("decides", &switch("decides.c:21"), ("if (sum > 1000)", "if (0)"));
    // Of a condition in parts it is the one that decided.
    check(
        "decides",
        &switch("decides.c:6#5"),
        ("if (n > limit && n != 9)", "if (n > limit && n != 9 && n != 4)"),
    );
}

#[test]
fn what_is_left_out_is_as_if_it_were_not_there() {
    let suppress = |text: &str| Altered::Suppress(moment(text));
    check("decides", &suppress("decides.c:11"), ("    *sum += 1000;\n", ""));
    check("decides", &suppress("mark#1"), ("            mark(&sum);\n", "            ;\n"));
    check("decides", &suppress("decides.c:18#1"), ("            mark(&sum);\n", "            ;\n"));
}

#[test]
fn a_value_that_is_set_is_the_one_that_is_read() {
    let set = |text: &str, at: &str| Altered::Set { assignment: text.into(), at: moment(at) };
    check("decides", &set("limit=50", "main#1"), ("limit = 3", "limit = 50"));
    check(
        "decides",
        &set("sum=7", "decides.c:21"),
        ("if (sum > 1000)", "sum = 7; if (sum > 1000)"),
    );
}

const ACTS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <fcntl.h>
#include <unistd.h>
static volatile int mode;
int main(int argc, char **argv) {
    int given = argc - 1;
    if (given == 1)
        for (;;)
            mode++;
    if (given == 2)
        *(volatile int *)8 = 1;
    if (given == 3) {
        int file = open("made-by-a-diversion", O_CREAT | O_WRONLY, 0600);
        int made = socket(AF_INET, SOCK_STREAM, 0);
        printf("%d %d\n", file < 0, made < 0);
        return 0;
    }
    if (given == 4)
        for (;;)
            mode += *(volatile char *)malloc(1 << 24) = 1;
    puts("nothing");
    return 1;
}
"#;

#[test]
fn what_never_ends_crashes_or_acts_outside_is_held_and_told() {
    let built = build("acts", ACTS, &["-O0"]);
    let case = built.case(Schedule::Fair);
    let mut whatif = WhatIf::of(&case, 0).expect("a case");
    let mut with = |value: u32, time: Duration| {
        let altered =
            Altered::Set { assignment: format!("given={value}"), at: moment("acts.c:10") };
        whatif.alter(&altered, time).expect("a diversion")
    };
    let endless = with(1, Duration::from_millis(300));
    assert_eq!(endless.verdict, Verdict::OtherEnd);
    assert_eq!(endless.end.words, "no end within the budget");
    let crashed = with(2, TIME);
    assert_eq!(crashed.verdict, Verdict::OtherEnd);
    assert_eq!(crashed.end.words, "SIGSEGV ends it");
    assert_eq!(crashed.end.place.and_then(|place| place.line), Some(14));
    let acted = with(3, TIME);
    assert_eq!(acted.output[0], "1 1\n");
    let refused: Vec<&str> = acted.refused.iter().map(|(what, _)| what.as_str()).collect();
    assert_eq!(refused, ["refused: openat of made-by-a-diversion", "refused: socket"]);
    assert!(!Path::new("made-by-a-diversion").exists());
    let greedy = with(4, TIME);
    assert_eq!(greedy.end.words, "SIGSEGV ends it", "{greedy:#?}");
    assert!(greedy.refused.iter().any(|(what, _)| what.contains("more memory")), "{greedy:#?}");
    let same = with(0, TIME);
    assert_eq!(same.verdict, Verdict::SameFailure);
    assert_eq!(same.difference, None);
}

#[test]
fn a_search_finds_the_decision_that_leads_to_the_failure() {
    let built = build("decides", DECIDES, &["-O0"]);
    let case = built.case(Schedule::Fair);
    let found = investigate::whatif::search::search(&case, 0, TIME).expect("a search");
    let lines: Vec<Option<u32>> = found.critical.iter().map(|answer| answer.place.line).collect();
    assert!(lines.contains(&Some(21)), "{found:#?}");
    assert_eq!(found.tried, found.critical.len() + found.same + found.other);
}
