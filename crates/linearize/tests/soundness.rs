//! The judge of proof and search: random small specifications, with operations that never end,
//! steps that never come, roles, threads, zero and negative numbers. What is *proved* has no
//! counterexample, by an oracle that follows all interleavings of up to three operations, and by the
//! search with up to four; and search and oracle agree on every specification small enough to be looked
//! at whole. All of them stop after a number of steps, not of seconds: the same seed gives the same
//! counts everywhere.
//!
//! `SPECIFICATIONS=1000 SEED=7 cargo test --release -p whydunit-linearize --test soundness` looks at
//! others (seeds up to 255); `benches/linearize/random` looks at 20,000.

#[path = "support/generate.rs"]
mod generate;
#[path = "support/oracle.rs"]
mod oracle;

use generate::{Choices, specification};
use linearize::explore::search::{Bound, Searched, search};
use linearize::language::read;
use linearize::model::Program;
use linearize::proof::{Ending, find};
use linearize::symbolic::claims::Effort;
use oracle::{Found, Histories, Limit, unexplained};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use spec::Source;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// How many specifications are looked at if nothing else is asked.
const SPECIFICATIONS: u32 = 250;

/// What each part may spend on one specification.
const QUESTIONS: usize = 4_000;
const STATES: usize = 2_000;
/// The same for histories of four operations, of what is proved.
const DEEP_STATES: usize = 500;
/// Two operations are looked at whole if possible, three as far as this goes.
const WHOLE: Limit = Limit { states: 3_000, steps: 150_000 };
const SAMPLE: Limit = Limit { states: 300, steps: 6_000 };

/// How many of each kind there were.
#[derive(Default)]
struct Counts {
    proved: Cell<u32>,
    interesting: Cell<u32>,
    proved_if_all_end: Cell<u32>,
    proof_cut: Cell<u32>,
    refuted: Cell<u32>,
    refuted_by_pending: Cell<u32>,
    compared: Cell<u32>,
    undecided: Cell<u32>,
    /// Milliseconds of proof, search and oracle.
    spent: [Cell<u128>; 3],
}

fn count(counter: &Cell<u32>) {
    counter.set(counter.get() + 1);
}

fn timed<T>(spent: &Cell<u128>, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let done = work();
    spent.set(spent.get() + began.elapsed().as_micros());
    done
}

fn fail(message: String) -> TestCaseError {
    TestCaseError::fail(message)
}

#[test]
fn proof_and_search_agree_with_the_definition() {
    let asked = std::env::var("SPECIFICATIONS").ok().and_then(|text| text.parse().ok());
    let cases = asked.unwrap_or(SPECIFICATIONS);
    let counts = Counts::default();
    let slowest = Cell::new(0);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let seed = std::env::var("SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let bytes = proptest::collection::vec(proptest::num::u8::ANY, 20..160);
    let result = runner.run(&bytes, |bytes| {
        let text = specification(&mut Choices::new(&bytes));
        let source = Source::new("random", text.clone());
        let program = read(&source).map_err(|errors| fail(errors.render(&source, false)))?;
        let began = Instant::now();
        let proved = check_proofs(&program, &text, &counts)?;
        let checked = check_search(&program, &text, proved, &counts);
        slowest.set(slowest.get().max(began.elapsed().as_millis()));
        checked
    });
    let seconds = |part: usize| counts.spent[part].get() as f64 / 1e6;
    println!(
        "seed {seed}: {cases} specifications: proved {} ({} with several sub-operations), proved if \
         all operations end {}, refuted {} ({} only by operations that never end), compared whole {}, \
         not compared {}, proofs cut {}; seconds: proof {:.1}, search {:.1}, oracle {:.1}; \
         slowest {} ms",
        counts.proved.get(),
        counts.interesting.get(),
        counts.proved_if_all_end.get(),
        counts.refuted.get(),
        counts.refuted_by_pending.get(),
        counts.compared.get(),
        counts.undecided.get(),
        counts.proof_cut.get(),
        seconds(0),
        seconds(1),
        seconds(2),
        slowest.get(),
    );
    if let Err(error) = result {
        panic!("{error}");
    }
    // The test is worth something only if all kinds occur often.
    assert!(counts.interesting.get() > cases / 20, "too few proofs");
    assert!(counts.refuted.get() > cases / 40, "too few refutations");
    assert!(counts.refuted_by_pending.get() > cases / 400, "too few that never end");
    assert!(counts.compared.get() > cases / 4, "too few comparisons");
}

fn is_proved(program: &Program, ending: Ending, counts: &Counts) -> bool {
    let effort = Effort::questions(QUESTIONS);
    let proved = timed(&counts.spent[0], || find(program, ending, &effort).is_empty());
    if effort.is_spent() && !proved {
        count(&counts.proof_cut);
    }
    proved
}

fn ask(program: &Program, operations: usize, which: Histories, counts: &Counts) -> Found {
    let limit = if operations > 2 { SAMPLE } else { WHOLE };
    timed(&counts.spent[2], || unexplained(program, operations, limit, which))
}

/// What is proved has no counterexample, by either reading of what operations that never end mean.
fn check_proofs(program: &Program, text: &str, counts: &Counts) -> Result<bool, TestCaseError> {
    let proved = is_proved(program, Ending::Open, counts);
    let if_all_end = proved || is_proved(program, Ending::Assumed, counts);
    if proved {
        count(&counts.proved);
        if program.operations.iter().any(|operation| operation.steps.len() > 1) {
            count(&counts.interesting);
        }
    } else if if_all_end {
        count(&counts.proved_if_all_end);
    } else {
        return Ok(false);
    }
    let which = if proved { Histories::All } else { Histories::Ended };
    // Of two operations all histories are asked for below.
    for operations in if proved { 3..4 } else { 2..4 } {
        if let Found::Violation(history) = ask(program, operations, which, counts) {
            return Err(fail(format!("proved, but {history}\n{text}")));
        }
    }
    Ok(proved)
}

fn look(program: &Program, operations: usize, counts: &Counts) -> Searched {
    let time = Duration::from_secs(3600);
    let states = if operations > 2 { DEEP_STATES } else { STATES };
    let bound = Bound { operations, values: 2, states, time, ..Bound::default() };
    timed(&counts.spent[1], || search(program, bound))
}

/// Search and oracle find counterexamples in the same specifications.
fn check_search(
    program: &Program,
    text: &str,
    proved: bool,
    counts: &Counts,
) -> Result<(), TestCaseError> {
    if proved && look(program, 4, counts).counterexample.is_some() {
        return Err(fail(format!("proved and refuted\n{text}")));
    }
    let searched = look(program, 2, counts);
    let found = searched.counterexample.is_some();
    if found {
        count(&counts.refuted);
    }
    match ask(program, 2, Histories::All, counts) {
        Found::Violation(history) if proved => Err(fail(format!("proved, but {history}\n{text}"))),
        // A search that was cut off may have missed it.
        Found::Violation(_) if !found && searched.operations < 2 => {
            count(&counts.undecided);
            Ok(())
        }
        Found::Violation(history) if !found => {
            Err(fail(format!("the search overlooks {history}\n{text}")))
        }
        Found::Violation(_) => {
            count(&counts.compared);
            if matches!(ask(program, 2, Histories::Ended, counts), Found::None) {
                count(&counts.refuted_by_pending);
            }
            Ok(())
        }
        Found::None if found => {
            let history = serde_json::to_string(&searched.counterexample).unwrap_or_default();
            Err(fail(format!("the search invents {history}\n{text}")))
        }
        Found::None => {
            count(&counts.compared);
            Ok(())
        }
        Found::TooMany => {
            count(&counts.undecided);
            Ok(())
        }
    }
}
