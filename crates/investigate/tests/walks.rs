//! Random walks of a debugger: whichever way it goes, it stands at the same moments. `WHYDUNIT_WALKS` says how many
//! movements are made; few if nobody says.

mod support;

use base::{Moment, ThreadNumber};
use engine::config::Schedule;
use investigate::debugging::{Debugger, Instant, Stop, Watch};
use std::process::Command;
use support::{Built, build};

/// Loops, recursion, a handler, text functions: writes to `total` from everywhere.
const PLAIN: &str = r#"
#include <signal.h>
#include <string.h>
static long total;
static char text[64];
static void handler(int signal) { total += signal; }
static long deep(int n) { total++; return n < 2 ? 1 : deep(n - 1) + deep(n - 2); }
static void fill(int n) {
    memset(text, 'a' + n % 26, sizeof text - 1);
    total += (long)strlen(text);
}
int main(void) {
    signal(SIGUSR1, handler);
    for (int i = 0; i < 300; i++) {
        fill(i);
        total += deep(i % 9);
        if (i % 50 == 7) raise(SIGUSR1);
    }
    return total == 0;
}
"#;

const THREADS: &str = r#"
#include <pthread.h>
static long total;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void fill(int n) {
    pthread_mutex_lock(&lock);
    total += n;
    pthread_mutex_unlock(&lock);
}
static long deep(int n) { return n < 2 ? 1 : deep(n - 1) + deep(n - 2); }
static void *work(void *given) {
    for (int i = 0; i < 100; i++) fill((int)((long)given + deep(i % 7)));
    return 0;
}
int main(void) {
    pthread_t threads[3];
    for (long i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    return total == 0;
}
"#;

struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

fn total(built: &Built) -> u64 {
    let output = Command::new("nm").arg(&built.program).output().expect("nm runs");
    let text = String::from_utf8(output.stdout).expect("text");
    let line = text.lines().find(|line| line.ends_with(" total")).expect("there");
    u64::from_str_radix(line.split(' ').next().expect("an address"), 16).expect("a number")
}

/// What there is to compare: when, which thread, its registers, the variable.
fn state(debugger: &Debugger<'_>, address: u64) -> (Instant, ThreadNumber, [u64; 16], [u8; 8]) {
    let mut bytes = [0; 8];
    debugger.read(address, &mut bytes);
    (debugger.instant(), debugger.running(), debugger.thread().general, bytes)
}

/// A stretch of single steps of one thread, there and back.
fn steps(debugger: &mut Debugger<'_>, address: u64, count: u64) -> u64 {
    let thread = debugger.running();
    let mut way = vec![state(debugger, address)];
    for _ in 0..count {
        if debugger.step(thread).expect("a step") != Stop::Moved {
            break;
        }
        way.push(state(debugger, address));
    }
    if debugger.end().is_some() {
        return way.len() as u64;
    }
    for expected in way.iter().rev().skip(1) {
        assert_eq!(debugger.step_back(thread).expect("a step back"), Stop::Moved);
        assert_eq!(state(debugger, address), *expected);
    }
    2 * way.len() as u64
}

/// A stretch of stops at breakpoints or writes, there and back. Going backwards the instruction that writes comes
/// next, so there only what was held before is compared.
fn stops(debugger: &mut Debugger<'_>, address: u64, count: u64, watches: bool) -> u64 {
    let mut way = Vec::new();
    let mut held = vec![state(debugger, address).3];
    for _ in 0..count {
        let stop = debugger.resume(&mut || false).expect("on");
        if !matches!(stop, Stop::Breakpoint | Stop::Watched(_)) {
            break;
        }
        way.push(state(debugger, address));
        held.push(state(debugger, address).3);
    }
    let made = way.len() as u64;
    if watches {
        for expected in held.iter().rev().skip(1) {
            assert!(matches!(debugger.resume_back(&mut || false).expect("back"), Stop::Watched(_)));
            assert_eq!(state(debugger, address).3, *expected);
        }
        return 2 * made;
    }
    for expected in way.iter().rev().skip(1) {
        assert_eq!(debugger.resume_back(&mut || false).expect("back"), Stop::Breakpoint);
        assert_eq!(state(debugger, address), *expected);
    }
    2 * made
}

fn walk(name: &str, source: &str, schedule: Schedule, moves: u64) {
    let built = build(name, source, &["-O1", "-no-pie", "-fno-inline"]);
    let case = built.case(schedule);
    let address = total(&built);
    let mut dice = Dice(moves ^ source.len() as u64);
    let mut made = 0;
    while made < moves {
        let place = ["fill", "deep"][dice.roll(2) as usize];
        let moment: Moment = format!("{place}#{}", 1 + dice.roll(290)).parse().expect("a moment");
        let mut debugger = Debugger::at(&case, 0, &moment).expect("a debugger");
        made += match dice.roll(3) {
            0 => steps(&mut debugger, address, 1 + dice.roll(25)),
            1 => {
                let program = debugger.program().expect("a program");
                let place = ["fill", "deep"][dice.roll(2) as usize].parse().expect("a place");
                for pc in investigate::moments::addresses(&program, &place).expect("code") {
                    debugger.set_breakpoint(pc, true);
                }
                stops(&mut debugger, address, 1 + dice.roll(8), false)
            }
            _ => {
                debugger.add_watch(Watch { address, size: 8, reads: false, writes: true });
                stops(&mut debugger, address, 1 + dice.roll(6), true)
            }
        }
        .max(1);
    }
    println!("{name}: {made} movements");
}

fn moves() -> u64 {
    std::env::var("WHYDUNIT_WALKS").ok().and_then(|text| text.parse().ok()).unwrap_or(60)
}

#[test]
fn walks_of_one_thread() {
    walk("plain", PLAIN, Schedule::Fair, moves());
}

#[test]
fn walks_of_several_threads() {
    walk("threads", THREADS, Schedule::Random { seed: 11 }, moves());
}
