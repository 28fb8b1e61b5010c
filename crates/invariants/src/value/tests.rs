//! Hypotheses against all values that they have seen, and the figures that the reference prints.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

fn number(bits: u64) -> Value {
    Value::Number { bits, size: 4 }
}

/// What the values so far accept, bit by bit, straight from the definition.
fn accepted(seen: &[u64]) -> (u64, impl Fn(u64) -> bool) {
    let first = seen[0];
    let constant = (0..64).filter(|bit| seen.iter().all(|value| (value ^ first) >> bit & 1 == 0));
    let mask = constant.fold(0u64, |mask, bit| mask | 1 << bit);
    (mask, move |value: u64| (value ^ first) & mask == 0)
}

fn fed(values: &[u64]) -> Hypothesis {
    let mut hypothesis = Hypothesis::default();
    values.iter().for_each(|value| {
        hypothesis.take(number(*value));
    });
    hypothesis
}

#[test]
fn the_drops_are_those_of_the_reference() {
    // Samples, what it always was, what it is, and the change of confidence, from its figure 2.
    for (samples, always, now, drop) in
        [(281_661, 1, 2, 211_245.75), (21_473, 0, 1, 10_736.5), (309_439, 0, 1, 154_719.5)]
    {
        let mut hypothesis =
            Hypothesis { numbers: Some(Numbers::new(always, 4)), ..Hypothesis::default() };
        hypothesis.numbers.as_mut().expect("numbers").count = samples;
        let violation = hypothesis.take(number(now)).expect("a violation");
        assert_eq!((violation.rule, violation.drop, violation.count), (Rule::Bits, drop, samples));
        assert_eq!(hypothesis.take(number(now)), None, "only the first time");
    }
}

#[test]
fn null_is_a_kind_of_its_own() {
    let mut hypothesis = Hypothesis::default();
    (0..100).for_each(|_| assert_eq!(hypothesis.take(number(0)), None));
    let violation = hypothesis.take(Value::Object(Kind(3))).expect("a violation");
    assert_eq!((violation.rule, violation.drop), (Rule::Kinds, 50.0));
    assert_eq!(hypothesis.take(Value::Object(Kind(3))), None);
    assert!(hypothesis.take(Value::Object(Kind(4))).is_some());
}

#[test]
fn numbers_have_the_sign_of_their_size() {
    assert_eq!(signed(0xff, 1), -1);
    assert_eq!(signed(0xff, 2), 255);
    assert_eq!(signed(u64::MAX, 8), -1);
    assert_eq!(signed(0x8000_0000, 4), i64::from(i32::MIN));
}

proptest! {
    #[test]
    fn a_violation_is_a_new_bit_a_new_bound_or_a_new_value_of_few(values in vec(0u64..40, 1..60)) {
        let mut hypothesis = Hypothesis::default();
        for (index, value) in values.iter().enumerate() {
            let seen = &values[..index];
            let violation = hypothesis.take(number(*value));
            let Some(_) = seen.first() else {
                prop_assert_eq!(violation, None);
                continue;
            };
            let (mask, accepts) = accepted(seen);
            let (low, high) = (*seen.iter().min().expect("one"), *seen.iter().max().expect("one"));
            let width = |low: u64, high: u64| (high - low + 1) as f64;
            let cost = |before: f64, after: f64| index as f64 / before - index as f64 / after;
            let interval = cost(width(low, high), width(low.min(*value), high.max(*value)));
            let mut distinct = seen.to_vec();
            distinct.sort_unstable();
            distinct.dedup();
            let few = distinct.len() as f64;
            let fresh = distinct.len() <= FEW && !distinct.contains(value);
            let set = if fresh { cost(few, few + 1.0) } else { 0.0 };
            let expected = !accepts(*value) || interval >= LEAST || set >= LEAST;
            prop_assert_eq!(violation.is_some(), expected, "{:?} then {}", seen, value);
            if let Some(violation) = violation.filter(|_| !accepts(*value)) {
                let accepted_before = 2f64.powi(mask.count_zeros() as i32);
                let (after, _) = self::accepted(&values[..=index]);
                let accepted_after = 2f64.powi(after.count_zeros() as i32);
                let drop = index as f64 / accepted_before - index as f64 / accepted_after;
                prop_assert!(violation.drop >= drop);
                prop_assert!(violation.rule != Rule::Bits || violation.drop == drop);
            }
        }
    }

    #[test]
    fn merged_hypotheses_are_those_of_all_runs(
        runs in vec(vec(any::<u8>(), 1..20), 1..6),
        probe in any::<u64>(),
    ) {
        let runs: Vec<Vec<u64>> = runs.iter().map(|run| run.iter().map(|v| u64::from(*v)).collect()).collect();
        let whole = fed(&runs.concat());
        let mut merged = fed(&runs[0]);
        runs[1..].iter().for_each(|run| merged.merge(&fed(run)));
        prop_assert_eq!(&merged, &whole);
        prop_assert_eq!(merged.accepts(number(probe)), whole.accepts(number(probe)));
        let mut turned = fed(runs.last().expect("a run"));
        runs[..runs.len() - 1].iter().for_each(|run| turned.merge(&fed(run)));
        prop_assert_eq!(turned.accepts(number(probe)), whole.accepts(number(probe)));
        prop_assert_eq!(turned.count(), whole.count());
    }

    #[test]
    fn a_counter_violates_ever_more_rarely(length in 1u64..5000) {
        let mut hypothesis = Hypothesis::default();
        let by_bits = |violation: Violation| violation.rule == Rule::Bits;
        let violations = (0..length).filter(|value| hypothesis.take(number(*value)).is_some_and(by_bits));
        prop_assert!(violations.count() <= 64);
    }
}
