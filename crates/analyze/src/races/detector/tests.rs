//! The oracle: every pair of accesses, ordered or not by reachability in the graph of the run.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// What a thread does in a generated run.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Access { address: u64, size: u64, write: bool },
    Acquire(u64),
    Release(u64),
    Start(Thread),
    Forget { address: u64, size: u64 },
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        6 => (0u64..24, 1u64..12, any::<bool>())
            .prop_map(|(address, size, write)| Deed::Access { address, size, write }),
        2 => (0u64..3).prop_map(Deed::Acquire),
        2 => (0u64..3).prop_map(Deed::Release),
        1 => (0u16..4).prop_map(Deed::Start),
        1 => (0u64..24, 1u64..12).prop_map(|(address, size)| Deed::Forget { address, size }),
    ]
}

/// Bytes on which two accesses are not ordered, by looking at every pair.
fn racy_bytes(run: &[(Thread, Deed)]) -> BTreeSet<u64> {
    let count = run.len();
    let mut before = vec![vec![false; count]; count];
    for later in 0..count {
        for earlier in 0..later {
            let edge = match (run[earlier], run[later]) {
                ((one, _), (other, _)) if one == other => true,
                ((_, Deed::Release(left)), (_, Deed::Acquire(taken))) => left == taken,
                ((one, Deed::Start(child)), (other, _)) => one != child && other == child,
                _ => false,
            };
            if edge {
                before[earlier][later] = true;
                for row in before.iter_mut().take(earlier) {
                    row[later] |= row[earlier];
                }
            }
        }
    }
    let mut found = BTreeSet::new();
    for byte in 0..40u64 {
        let touches = |address: u64, size: u64| (address..address + size).contains(&byte);
        for later in 0..count {
            for earlier in 0..later {
                let (one, other) = (run[earlier], run[later]);
                let (
                    Deed::Access { address, size, write },
                    Deed::Access { address: at, size: long, write: writes },
                ) = (one.1, other.1)
                else {
                    continue;
                };
                let forgotten = run[earlier..later].iter().any(
                    |(_, deed)| matches!(deed, Deed::Forget { address, size } if touches(*address, *size)),
                );
                let meets = touches(address, size) && touches(at, long) && (write || writes);
                if meets && !forgotten && one.0 != other.0 && !before[earlier][later] {
                    found.insert(byte);
                }
            }
        }
    }
    found
}

/// The same by the detector: each byte on its own, as only the first of an access is told.
fn detected_bytes(run: &[(Thread, Deed)]) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    for only in 0..40u64 {
        let mut detector = Detector::new();
        for (index, (thread, deed)) in run.iter().enumerate() {
            match *deed {
                Deed::Access { address, size, write } => {
                    if (address..address + size).contains(&only) {
                        let site = (index as u32, index as u64);
                        detector.access(*thread, (only, 1), write, site, |_, _| true);
                    }
                }
                Deed::Acquire(object) => detector.acquire(*thread, Object::Lock(object)),
                Deed::Release(object) => detector.release(*thread, Object::Lock(object)),
                Deed::Start(child) if child != *thread => detector.starts(*thread, child),
                Deed::Start(_) => {}
                Deed::Forget { address, size } => detector.forget(address, size),
            }
        }
        if !detector.races().is_empty() {
            found.insert(only);
        }
    }
    found
}

/// All accesses as they are: bytes that a race begins at.
fn reported(run: &[(Thread, Deed)]) -> BTreeSet<u64> {
    let mut detector = Detector::new();
    for (index, (thread, deed)) in run.iter().enumerate() {
        match *deed {
            Deed::Access { address, size, write } => {
                let site = (index as u32, index as u64);
                detector.access(*thread, (address, size), write, site, |_, _| true);
            }
            Deed::Acquire(object) => detector.acquire(*thread, Object::Lock(object)),
            Deed::Release(object) => detector.release(*thread, Object::Lock(object)),
            Deed::Start(child) if child != *thread => detector.starts(*thread, child),
            Deed::Start(_) => {}
            Deed::Forget { address, size } => detector.forget(address, size),
        }
    }
    detector.races().iter().map(|race| race.address).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn bytes_race_if_and_only_if_some_pair_is_not_ordered(
        run in prop::collection::vec((0u16..4, deed()), 0..60),
    ) {
        let expected = racy_bytes(&run);
        prop_assert_eq!(&detected_bytes(&run), &expected);
        let told = reported(&run);
        prop_assert!(told.is_subset(&expected), "{told:?} of {expected:?}");
        prop_assert_eq!(told.is_empty(), expected.is_empty());
    }
}

#[test]
fn a_lock_that_happened_to_order_is_no_protection() {
    let run = |mut detector: Detector, common: bool| {
        detector.access(0, (8, 4), true, (1, 1), |_, _| !common);
        detector.release(0, Object::Lock(64));
        detector.acquire(1, Object::Lock(64));
        detector.access(1, (8, 4), true, (2, 2), |_, _| !common);
        detector.races().len()
    };
    assert_eq!(run(Detector::new(), false), 0, "ordered in this run");
    assert_eq!(run(Detector::without_locks(), false), 1);
    assert_eq!(run(Detector::without_locks(), true), 0, "a lock was held at both");
}
