//! The judge of proof and search: random small specifications, with operations that never end,
//! steps that never come, zero and negative numbers. What is *proved* has no counterexample among
//! all interleavings of up to three operations, and the search agrees with the oracle on every
//! specification small enough to be looked at whole.
//!
//! `SPECIFICATIONS=20000 cargo test --release -p whydunit-linearize --test soundness` looks at more,
//! `SEED=1` (up to 255) at others.

#[path = "support/generate.rs"]
mod generate;
#[path = "support/oracle.rs"]
mod oracle;

use generate::{Choices, specification};
use linearize::explore::search::{Bound, search};
use linearize::language::read;
use linearize::model::Program;
use linearize::proof::{Ending, find};
use oracle::{Found, Histories, unexplained};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use spec::Source;
use std::cell::Cell;
use std::time::Duration;

/// How many specifications are looked at if nothing else is asked.
const SPECIFICATIONS: u32 = 300;

/// How many of each kind there were.
#[derive(Default)]
struct Counts {
    proved: Cell<u32>,
    interesting: Cell<u32>,
    proved_if_all_end: Cell<u32>,
    refuted: Cell<u32>,
    refuted_by_pending: Cell<u32>,
    compared: Cell<u32>,
}

fn count(counter: &Cell<u32>) {
    counter.set(counter.get() + 1);
}

fn fail(message: String) -> TestCaseError {
    TestCaseError::fail(message)
}

#[test]
fn proof_and_search_agree_with_the_definition() {
    let asked = std::env::var("SPECIFICATIONS").ok().and_then(|text| text.parse().ok());
    let cases = asked.unwrap_or(SPECIFICATIONS);
    let counts = Counts::default();
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let seed = std::env::var("SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let bytes = proptest::collection::vec(proptest::num::u8::ANY, 20..160);
    let result = runner.run(&bytes, |bytes| {
        let text = specification(&mut Choices::new(&bytes));
        let source = Source::new("random", text.clone());
        let program = read(&source).map_err(|errors| fail(errors.render(&source, false)))?;
        let proved = check_proofs(&program, &text, &counts)?;
        check_search(&program, &text, proved, &counts)
    });
    println!(
        "{cases} specifications: proved {} ({} of them with several sub-operations), proved if all \
         operations end {}, refuted {} ({} of them only by operations that never end), compared \
         whole {}",
        counts.proved.get(),
        counts.interesting.get(),
        counts.proved_if_all_end.get(),
        counts.refuted.get(),
        counts.refuted_by_pending.get(),
        counts.compared.get(),
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

/// What is proved has no counterexample, by either reading of what operations that never end mean.
fn check_proofs(program: &Program, text: &str, counts: &Counts) -> Result<bool, TestCaseError> {
    let proved = find(program, Ending::Open, None).is_empty();
    let if_all_end = find(program, Ending::Assumed, None).is_empty();
    if proved && !if_all_end {
        return Err(fail(format!("proved, but not if all operations end\n{text}")));
    }
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
    for (operations, states) in [(2, 4_000), (3, 2_500)] {
        if let Found::Violation(history) = unexplained(program, operations, states, which) {
            return Err(fail(format!("proved, but {history}\n{text}")));
        }
    }
    Ok(proved)
}

/// Search and oracle find counterexamples in the same specifications.
fn check_search(
    program: &Program,
    text: &str,
    proved: bool,
    counts: &Counts,
) -> Result<(), TestCaseError> {
    let time = Duration::from_secs(60);
    let bound = Bound { operations: 2, values: 2, states: 20_000, time, ..Bound::default() };
    let searched = search(program, bound);
    let found = searched.counterexample.is_some();
    if found && proved {
        return Err(fail(format!("proved and refuted\n{text}")));
    }
    if found {
        count(&counts.refuted);
    }
    match unexplained(program, 2, 4_000, Histories::All) {
        Found::Violation(history) if !found => {
            Err(fail(format!("the search overlooks {history}\n{text}")))
        }
        Found::Violation(_) => {
            count(&counts.compared);
            if matches!(unexplained(program, 2, 4_000, Histories::Ended), Found::None) {
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
        Found::TooMany => Ok(()),
    }
}
