//! A debugger as a session: conditions, calls, slices, origins, checkpoints, and runs that leave the recording.

mod support;

use base::{Ending, PlaceName};
use engine::config::Schedule;
use investigate::Case;
use investigate::debugging::altering::{How, Which};
use investigate::debugging::conditions::{CallTest, Hits};
use investigate::debugging::lines::Stride;
use investigate::debugging::origin::Origin;
use investigate::debugging::points::Reason;
use investigate::debugging::{Debugger, Stop, Watch};
use investigate::slicing::Query;
use replay::diversion::DiversionEnd;
use support::build;
use symbols::Level;

/// Line numbers matter: places below name them.
const PROGRAM: &str = r#"#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct node { int key; struct node *next; };
static struct node *head;
static int total, handled;
static void handler(int signal) { handled = signal; }
static int weigh(int key) {
    int weight = key * 3;
    return weight + 1;
}
static void add(int key) {
    struct node *node = malloc(sizeof *node);
    node->key = key;
    node->next = head;
    head = node;
    if (key > 3)
        total += weigh(key);
}
int main(void) {
    signal(SIGUSR1, handler);
    for (int i = 0; i < 8; i++)
        add(i);
    raise(SIGUSR1);
    char *copy = malloc(16);
    strcpy(copy, "some text");
    free(copy);
    printf("%d\n", total), fflush(stdout);
    int *wrong = total > 50 ? 0 : &total;
    return *wrong;
}
"#;

fn place(text: &str) -> PlaceName {
    text.parse().expect(text)
}

fn at<'case>(case: &'case Case, moment: &str) -> Debugger<'case> {
    Debugger::at(case, 0, &moment.parse().expect(moment)).expect("a debugger")
}

fn on(debugger: &mut Debugger<'_>) -> Stop {
    debugger.resume(&mut || false).expect("on")
}

fn back(debugger: &mut Debugger<'_>) -> Stop {
    debugger.resume_back(&mut || false).expect("back")
}

fn value(debugger: &mut Debugger<'_>, text: &str) -> String {
    debugger.print(None, Level::default(), text).expect(text)
}

fn line(debugger: &mut Debugger<'_>) -> u32 {
    debugger.place().expect("a place").line.expect("a line")
}

#[test]
fn conditions_and_counts_stop_both_ways_at_the_same_moments() {
    let built = build("session", PROGRAM, &["-O0"]);
    let case = built.case(Schedule::Fair);
    let rows: [(&str, Option<&str>, Hits, &[&str]); 5] = [
        ("session.c:15", Some("key % 3 == 1"), Hits::All, &["1", "4", "7"]),
        ("session.c:15", None, Hits::Exactly(6), &["5"]),
        ("session.c:15", None, Hits::From(7), &["6", "7"]),
        ("session.c:15", None, Hits::Every(3), &["2", "5"]),
        ("session.c:15", Some("key > 2"), Hits::Every(2), &["3", "5", "7"]),
    ];
    for (where_, condition, hits, expected) in rows {
        let mut debugger = at(&case, "start");
        let id = debugger.add_breakpoint(&place(where_), condition, hits).expect("a breakpoint");
        let (mut met, mut moments) = (Vec::new(), Vec::new());
        while on(&mut debugger) == Stop::Condition(id) {
            met.push(value(&mut debugger, "key"));
            moments.push(debugger.instant());
        }
        assert_eq!(met, expected, "{condition:?} {hits:?}");
        for moment in moments.iter().rev() {
            assert_eq!(back(&mut debugger), Stop::Condition(id));
            assert_eq!(debugger.instant(), *moment);
        }
        assert_eq!(back(&mut debugger), Stop::Beginning);
    }
    let mut debugger = at(&case, "start");
    let id =
        debugger.add_breakpoint(&place("weigh"), Some("nobody == 1"), Hits::All).expect("added");
    assert_eq!(on(&mut debugger), Stop::Condition(id), "what cannot be told stops");
    assert!(debugger.conditional()[0].trouble.as_deref().is_some_and(|why| why.contains("nobody")));
}

#[test]
fn calls_stop_where_they_are_made() {
    // A compiler that knows strcpy would not call it.
    let built = build("session", PROGRAM, &["-O0", "-fno-builtin"]);
    let case = built.case(Schedule::Fair);
    let mut debugger = at(&case, "session.c:27#1");
    let copy: u64 = {
        let text = value(&mut debugger, "(unsigned long)copy");
        text.parse().expect("a number")
    };
    let written = Watch { address: copy + 5, size: 1, reads: false, writes: true };
    let rows = [
        ("weigh", CallTest::Argument(1, 5), 19),
        ("free", CallTest::Argument(1, copy), 28),
        ("malloc", CallTest::Returns(copy), 26),
        ("malloc", CallTest::Argument(1, 16), 14),
        ("weigh", CallTest::Any, 19),
    ];
    for (function, test, expected) in rows {
        let mut debugger = at(&case, "main#1");
        let id = debugger.add_call(function, test).expect("a breakpoint");
        assert_eq!(on(&mut debugger), Stop::Condition(id), "{function} {test:?}");
        assert_eq!(line(&mut debugger), expected, "{function} {test:?}");
        let first = debugger.instant();
        let next = on(&mut debugger);
        assert!(next != Stop::Condition(id) || debugger.instant() != first, "it goes on");
        debugger.seek(&"end".parse().expect("a moment")).expect("there");
        let mut last = None;
        while back(&mut debugger) == Stop::Condition(id) {
            last = Some(debugger.instant());
        }
        // Those before main are of the loader.
        let mut debugger = at(&case, "main#1");
        let main = debugger.instant();
        assert!(last.is_some_and(|last| last <= first || last.time < main.time));
        debugger.seek(&"end".parse().expect("a moment")).expect("there");
    }
    let mut debugger = at(&case, "session.c:27#1");
    let id = debugger.add_call("strcpy", CallTest::Touches(written)).expect("a breakpoint");
    assert_eq!(on(&mut debugger), Stop::Condition(id));
    assert_eq!(line(&mut debugger), 27);
}

#[test]
fn system_calls_and_signals_are_moments_to_stop_at() {
    let built = build("session", PROGRAM, &["-O0"]);
    let case = built.case(Schedule::Fair);
    let mut debugger = at(&case, "main#1");
    const WRITE: u64 = 1;
    let id = debugger.add_system_calls(vec![WRITE]).expect("a breakpoint");
    assert_eq!(debugger.stop_at_signals().expect("read"), 1);
    assert_eq!(on(&mut debugger), Stop::Point(Reason::Signal(10)));
    assert_eq!(on(&mut debugger), Stop::Condition(id));
    assert_eq!(debugger.thread().general[0], WRITE);
    assert!(matches!(on(&mut debugger), Stop::End(Some(Ending::Signal(11)))));
    assert_eq!(back(&mut debugger), Stop::Condition(id));
    assert_eq!(back(&mut debugger), Stop::Point(Reason::Signal(10)));
    assert_eq!(value(&mut debugger, "handled"), "0");
}

#[test]
fn a_value_is_followed_back_to_where_it_was_made() {
    let built = build("session", PROGRAM, &["-O0"]);
    let case = built.case(Schedule::Fair);
    let mut debugger = at(&case, "crash");
    let origin = debugger.origin(Level::default(), "wrong").expect("an origin");
    assert!(matches!(origin, Origin::Here { .. }), "{origin:?}");
    assert_eq!(line(&mut debugger), 30);
    let origin = debugger.origin(Level::default(), "total").expect("an origin");
    assert!(matches!(&origin, Origin::Here { value, .. } if value == "70"), "{origin:?}");
    assert_eq!(line(&mut debugger), 19);
    debugger.origin_of_this().expect("what it was made of");
    assert!([19, 11].contains(&line(&mut debugger)));
    let mut debugger = at(&case, "main#1");
    let origin = debugger.origin(Level::default(), "total").expect("an origin");
    assert_eq!(origin, Origin::Loaded { value: "0".into() });
}

#[test]
fn exactly_the_executions_of_a_slice_stop() {
    let built = build("session", PROGRAM, &["-O0"]);
    let case = built.case(Schedule::Fair);
    let mut debugger = at(&case, "main#1");
    let mut query = Query::new(analyze::slice::Follow::Data);
    query.at = Some("session.c:29#1".parse().expect("a moment"));
    query.values = vec!["total".into()];
    let id = debugger.slice(query).expect("a slice");
    let slice = &debugger.slices()[0];
    let number = slice.view.statements.iter().position(|it| it.place.line == Some(19));
    let number = number.expect("the statement that adds") + 1;
    let executions = slice.steps.iter().filter(|(_, of)| of + 1 == number).count();
    // Once for each of 4 to 7; after the call of weigh it goes on in another frame of the slice.
    let stops = debugger.stop_in_slice(id, Some(&[number])).expect("breakpoints");
    assert_eq!(stops, executions);
    let mut moments = Vec::new();
    while let Stop::Point(Reason::Slice { slice, statement }) = on(&mut debugger) {
        assert_eq!((slice, statement), (id, number));
        assert_eq!(line(&mut debugger), 19);
        moments.push((debugger.instant(), value(&mut debugger, "key")));
    }
    assert_eq!(moments.len(), executions);
    let mut keys: Vec<&str> = moments.iter().map(|(_, key)| key.as_str()).collect();
    keys.dedup();
    assert_eq!(keys, ["4", "5", "6", "7"], "not those of 0 to 3");
    for (moment, _) in moments.iter().rev() {
        assert!(matches!(back(&mut debugger), Stop::Point(_)));
        assert_eq!(debugger.instant(), *moment);
    }
    debugger.forget_slice(id).expect("forgotten");
    assert!(debugger.points().is_empty());
}

#[test]
fn steps_of_a_slice_are_the_same_both_ways() {
    let built = build("session", PROGRAM, &["-O0"]);
    let case = built.case(Schedule::Fair);
    let mut debugger = at(&case, "main#1");
    let mut query = Query::new(analyze::slice::Follow::Full);
    query.at = Some("crash".parse().expect("a moment"));
    let id = debugger.slice(query).expect("a slice");
    let mut way = Vec::new();
    while debugger.step_slice(Some(id), false).expect("a step") == Stop::Moved {
        assert!(debugger.statement_here(id).is_some());
        way.push(debugger.instant());
    }
    assert!(way.len() > 20, "{}", way.len());
    for expected in way.iter().rev().skip(1) {
        assert_eq!(debugger.step_slice(Some(id), true).expect("a step back"), Stop::Moved);
        assert_eq!(debugger.instant(), *expected);
    }
}

#[test]
fn executions_have_the_same_numbers_behind_a_rollback() {
    let built = build("session", PROGRAM, &["-O0"]);
    let case = built.case(Schedule::Fair);
    let mut debugger = at(&case, "session.c:15#4");
    let pcs = debugger.addresses(&place("session.c:15")).expect("code");
    assert_eq!(debugger.instance(&pcs).expect("counted"), 3, "three are behind it");
    let id = debugger.checkpoint().expect("kept");
    debugger.seek(&"session.c:15#7".parse().expect("a moment")).expect("there");
    assert_eq!(debugger.instance(&pcs).expect("counted"), 6);
    debugger.rollback(id).expect("back");
    assert_eq!(debugger.instance(&pcs).expect("counted"), 3);
    assert_eq!(value(&mut debugger, "key"), "3");
    debugger.forget_checkpoint(id).expect("gone");
    assert!(debugger.rollback(id).is_err());
}

#[test]
fn an_altered_run_can_be_stopped_looked_at_and_left() {
    let built = build("session", PROGRAM, &["-O0"]);
    let case = built.case(Schedule::Fair);
    let mut debugger = at(&case, "main#1");
    let began = debugger.instant();
    debugger.alter(How::Switch, &place("session.c:18"), Which::Nth(6)).expect("armed");
    let id = debugger.add_breakpoint(&place("session.c:29"), None, Hits::All).expect("added");
    assert_eq!(on(&mut debugger), Stop::Condition(id));
    assert!(debugger.is_away());
    assert_eq!(value(&mut debugger, "total"), "54", "16 less");
    assert!(matches!(on(&mut debugger), Stop::Diverted(DiversionEnd::Ended(Ending::Signal(11)))));
    assert_eq!(debugger.told().expect("told").output[0], "54\n");
    assert_eq!(back(&mut debugger), Stop::Moved, "back in the recording");
    assert!(!debugger.is_away() && debugger.instant() > began);
    assert_eq!(value(&mut debugger, "key"), "5");
    // All of them: nothing is added, and the failure is gone.
    debugger.seek(&"main#1".parse().expect("a moment")).expect("there");
    debugger.remove_breakpoint(id);
    debugger.alter(How::Suppress, &place("session.c:19"), Which::All).expect("armed");
    assert!(matches!(on(&mut debugger), Stop::Diverted(DiversionEnd::Ended(Ending::Exit(0)))));
    // A value.
    debugger.seek(&"session.c:30#1".parse().expect("a moment")).expect("there");
    debugger.set("total=7").expect("set");
    assert_eq!(value(&mut debugger, "total"), "7", "it is seen at once");
    assert!(matches!(on(&mut debugger), Stop::Diverted(DiversionEnd::Ended(Ending::Exit(7)))));
}

#[test]
fn lines_are_stepped_there_and_back() {
    let built = build("session", PROGRAM, &["-O0"]);
    let case = built.case(Schedule::Fair);
    let mut debugger = at(&case, "session.c:14#5");
    let thread = debugger.running();
    let mut way = vec![line(&mut debugger)];
    let go = |debugger: &mut Debugger<'_>, stride, back| {
        let stop = debugger.step_line(thread, (stride, back), &mut || false).expect("a step");
        assert_eq!(stop, Stop::Moved, "{stride:?}");
        line(debugger)
    };
    for _ in 0..5 {
        way.push(go(&mut debugger, Stride::Over, false));
    }
    assert_eq!(way, [14, 15, 16, 17, 18, 19]);
    assert_eq!(go(&mut debugger, Stride::Into, false), 10, "past the prologue of weigh");
    assert_eq!(go(&mut debugger, Stride::Out, false), 19);
    assert_eq!(go(&mut debugger, Stride::Over, false), 20);
    assert_eq!(go(&mut debugger, Stride::Over, true), 19, "over the call of weigh");
    assert_eq!(value(&mut debugger, "total"), "0");
    let back: Vec<u32> = (0..5).map(|_| go(&mut debugger, Stride::Over, true)).collect();
    assert_eq!(back, [18, 17, 16, 15, 14]);
    assert_eq!(go(&mut debugger, Stride::Out, true), 24, "to the call of add");
}

#[test]
fn a_long_way_can_be_interrupted() {
    const LONG: &str = "int main(void) {\n    volatile long sum = 0;\n    for (long i = 0; i < 60000000; i++)\n        sum += i;\n    return sum == 0;\n}\n";
    let built = build("long", LONG, &["-O1"]);
    let case = built.case(Schedule::Fair);
    let mut debugger = at(&case, "main#1");
    let mut asked = 0;
    let stop = debugger.resume(&mut || {
        asked += 1;
        asked > 2
    });
    assert_eq!(stop.expect("on"), Stop::Interrupted);
    let middle = debugger.instant();
    assert!(debugger.end().is_none());
    assert!(matches!(on(&mut debugger), Stop::End(_)));
    assert_eq!(debugger.resume_back(&mut || true).expect("back"), Stop::Interrupted);
    assert!(middle < debugger.instant());
}
