//! The judge of the proof: random small specifications, and for each that is *proved*, every
//! interleaving of up to three operations, checked by an oracle that knows no reductions.

#[path = "support/generate.rs"]
mod generate;
#[path = "support/oracle.rs"]
mod oracle;

use generate::{Choices, specification};
use linearize::explore::search::{Bound, search};
use linearize::language::read;
use linearize::proof::invariants::believe;
use linearize::proof::prove;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use spec::Source;
use std::cell::Cell;

const SPECIFICATIONS: u32 = 12_000;

#[test]
fn what_is_proved_has_no_counterexample_in_all_interleavings() {
    let (proved, refuted, unsettled) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let interesting = Cell::new(0);
    let config = Config { cases: SPECIFICATIONS, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let bytes = proptest::collection::vec(proptest::num::u8::ANY, 20..160);
    let result = runner.run(&bytes, |bytes| {
        let text = specification(&mut Choices::new(&bytes));
        let source = Source::new("random", text.clone());
        let program = read(&source).map_err(|errors| {
            proptest::test_runner::TestCaseError::fail(errors.render(&source, false))
        })?;
        let (claims, _) = believe(&program);
        if !prove(&program, &claims).is_empty() {
            let bound = Bound { operations: 2, values: 2, states: 2_000 };
            let found = search(&program, bound).counterexample.is_some();
            let count = if found { &refuted } else { &unsettled };
            count.set(count.get() + 1);
            return Ok(());
        }
        proved.set(proved.get() + 1);
        if program.operations.iter().any(|operation| operation.steps.len() > 1) {
            interesting.set(interesting.get() + 1);
        }
        for (operations, states) in [(2, 4_000), (3, 2_500)] {
            if let Some(history) = oracle::unexplained(&program, operations, states) {
                let message = format!("proved, but {history}\n{text}");
                return Err(proptest::test_runner::TestCaseError::fail(message));
            }
        }
        Ok(())
    });
    println!(
        "proved {} ({} of them with several sub-operations), refuted {}, neither {}",
        proved.get(),
        interesting.get(),
        refuted.get(),
        unsettled.get()
    );
    if let Err(error) = result {
        panic!("{error}");
    }
    // The test is worth something only if all kinds occur often.
    assert!(interesting.get() > SPECIFICATIONS / 10 && refuted.get() > SPECIFICATIONS / 50);
}
