//! Runs drawn at random, by several threads over a few bytes, against a reference that keeps every event.

use super::*;
use crate::anomaly::Flow;
use crate::model::SiteKey;
use crate::uses::{Origin, Use};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const BASE: u64 = 0x60_0000;

struct ByPc;

impl Names for ByPc {
    fn site(&mut self, pc: u64) -> Site {
        let line = LineKey { module: "prog".into(), function: "f".into(), line: Some(pc as i32) };
        Site { key: SiteKey { line, rank: 0 }, file: None, line: None }
    }

    fn variable(&mut self, _: u64) -> Option<String> {
        None
    }

    fn function(&mut self, _: u64) -> Option<String> {
        None
    }
}

#[derive(Clone, Copy, Debug)]
struct Act {
    pc: u64,
    write: bool,
    address: u64,
    size: u64,
    value: u64,
    thread: u32,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    // A few reads and writes at fixed instructions, over a few bytes.
    let act = (
        0u64..6,
        any::<bool>(),
        0u64..6,
        prop_oneof![Just(1u64), Just(2), Just(4)],
        0u64..5,
        1u32..4,
    );
    vec(
        act.prop_map(|(pc, write, offset, size, value, thread)| {
            let pc = pc + if write { 100 } else { 0 };
            Act { pc, write, address: BASE + offset, size, value, thread }
        }),
        1..60,
    )
}

fn layout() -> Layout {
    let shared = BASE..BASE + 16;
    Layout { data: vec![shared], ..Layout::default() }
}

fn learner(model: Model, mode: Mode) -> Learner {
    Learner::new(model, mode, layout(), Box::new(ByPc))
}

fn play(learner: &mut Learner, acts: &[Act]) {
    for (step, act) in (0..).zip(acts) {
        let now = Occurrence { tick: step, pc: act.pc, thread: act.thread, step };
        let site = learner.site(act.pc);
        let who = Actor { site, by: By::Own, thread: act.thread, now };
        let access = Access { address: act.address, size: act.size, value: Some(act.value) };
        if act.write { learner.write(who, access) } else { learner.read(who, access) }
    }
}

fn trained(runs: &[Vec<Act>]) -> Model {
    runs.iter().fold(Model::new("prog"), |model, run| {
        let mut learner = learner(model, Mode::Training);
        play(&mut learner, run);
        learner.finish(1.0).model
    })
}

/// What a run shows of a read, from the history of every byte.
#[derive(Clone, Debug, Default, PartialEq)]
struct Reference {
    count: u64,
    dset: BTreeSet<Option<u64>>,
    local: u64,
    remote: u64,
    followed: u64,
    unfollowed: u64,
}

fn reference(run: &[Act]) -> BTreeMap<u64, Reference> {
    let mut reads: BTreeMap<u64, Reference> = BTreeMap::new();
    for (index, act) in run.iter().enumerate().filter(|(_, act)| !act.write) {
        let covers = |one: &Act, byte: u64| (one.address..one.address + one.size).contains(&byte);
        let read = reads.entry(act.pc).or_default();
        read.count += 1;
        let (mut foreign, mut known, mut followed) = (false, false, true);
        for byte in act.address..act.address + act.size {
            let written = run[..index].iter().rposition(|one| one.write && covers(one, byte));
            read.dset.insert(written.map(|at| run[at].pc));
            if let Some(at) = written {
                known = true;
                foreign |= run[at].thread != act.thread;
            }
            let since = written.map_or(0, |at| at + 1);
            let again = |one: &Act| !one.write && one.thread == act.thread && covers(one, byte);
            followed &= run[since..index].iter().any(again);
        }
        read.remote += u64::from(foreign);
        read.local += u64::from(known && !foreign);
        read.followed += u64::from(followed);
        read.unfollowed += u64::from(!followed);
    }
    reads
}

fn writer(model: &Model, site: SiteId) -> Option<u64> {
    (site != SiteId::EXTERNAL).then(|| model.point(site).site.key.line.line.expect("a line") as u64)
}

fn read_of(model: &Model, pc: u64) -> Option<&Use> {
    let is_it = |point: &&crate::model::Point| point.site.key.line.line == Some(pc as i32);
    model.points.iter().find(is_it)?.reads.as_ref()
}

proptest! {
    #[test]
    fn what_is_learned_is_what_the_history_of_every_byte_says(runs in vec(acts(), 1..5)) {
        let model = trained(&runs);
        let references: Vec<_> = runs.iter().map(|run| reference(run)).collect();
        let pcs: BTreeSet<u64> = references.iter().flat_map(|one| one.keys().copied()).collect();
        for pc in pcs {
            let of_runs: Vec<&Reference> = references.iter().filter_map(|one| one.get(&pc)).collect();
            let learned = read_of(&model, pc).expect("a read");
            prop_assert_eq!(learned.count, of_runs.iter().map(|one| one.count).sum::<u64>());
            let expected: BTreeSet<_> = of_runs.iter().flat_map(|one| one.dset.clone()).collect();
            let dset: BTreeSet<_> =
                learned.definitions.iter().map(|pair| writer(&model, pair.site)).collect();
            prop_assert_eq!(dset, expected);
            for pair in &learned.definitions {
                let by = writer(&model, pair.site);
                let runs = of_runs.iter().filter(|one| one.dset.contains(&by)).count();
                prop_assert_eq!(pair.runs as usize, runs);
            }
            let runs = |test: &dyn Fn(&Reference) -> bool| of_runs.iter().filter(|one| test(one)).count() as u32;
            prop_assert_eq!(learned.origins.local, runs(&|one| one.local > 0 && one.remote == 0));
            prop_assert_eq!(learned.origins.remote, runs(&|one| one.local == 0 && one.remote > 0));
            prop_assert_eq!(learned.origins.mixed, runs(&|one| one.local > 0 && one.remote > 0));
            prop_assert_eq!(learned.followed, runs(&|one| one.unfollowed == 0));
            prop_assert_eq!(learned.unfollowed, runs(&|one| one.unfollowed > 0));
        }
    }

    #[test]
    fn a_run_of_the_training_violates_nothing(runs in vec(acts(), 1..5), at in any::<prop::sample::Index>()) {
        let model = trained(&runs);
        let mut learner = learner(model, Mode::Checking);
        play(&mut learner, &runs[at.index(runs.len())]);
        let anomalies = learner.finish(1.0).anomalies;
        let unsupported = |what: &What| matches!(what, What::Flow { flows, .. }
            if flows.iter().all(|(flow, _)| *flow != Flow::Definition));
        // An invariant that nineteen of twenty runs support may be violated by the twentieth.
        let told: Vec<_> = anomalies.iter().filter(|one| !unsupported(&one.what)).collect();
        prop_assert!(told.is_empty(), "{:?}", told);
    }

    #[test]
    fn definitions_outside_the_dset_are_found_unless_pruned(
        runs in vec(acts(), 1..5),
        run in acts(),
    ) {
        let model = trained(&runs);
        let before = model.clone();
        let mut learner = learner(model, Mode::Checking);
        play(&mut learner, &run);
        let learned = learner.finish(1.0);
        let mut expected: BTreeSet<u64> = BTreeSet::new();
        for (pc, reference) in reference(&run) {
            let Some(known) = read_of(&before, pc) else { continue };
            let dset: BTreeSet<_> =
                known.definitions.iter().map(|pair| writer(&before, pair.site)).collect();
            let exercised = |by: &Option<u64>| by.is_none_or(|by| {
                let is_it = |point: &&crate::model::Point| point.site.key.line.line == Some(by as i32);
                before.points.iter().find(is_it).is_some_and(|point| point.writes.is_some())
            });
            let fresh = reference.dset.iter().any(|by| !dset.contains(by) && exercised(by));
            if fresh && known.count >= 3 && dset.len() <= 12 {
                expected.insert(pc);
            }
        }
        let has_definition = |one: &&Anomaly| matches!(&one.what, What::Flow { flows, .. }
            if flows.iter().any(|(flow, _)| *flow == Flow::Definition));
        let found: BTreeSet<u64> = learned
            .anomalies
            .iter()
            .filter(has_definition)
            .filter_map(|one| writer(&learned.model, one.site))
            .collect();
        prop_assert_eq!(found, expected);
    }
}

fn act(pc: u64, write: bool, value: u64, thread: u32) -> Act {
    Act { pc, write, address: BASE, size: 4, value, thread }
}

#[test]
fn another_threads_value_violates_what_was_local() {
    let good =
        vec![act(100, true, 1, 1), act(1, false, 1, 1), act(100, true, 2, 2), act(1, false, 2, 2)];
    let model = trained(&vec![good; 4]);
    let bad = [act(100, true, 1, 1), act(100, true, 1, 2), act(1, false, 1, 1)];
    let mut learner = learner(model, Mode::Checking);
    play(&mut learner, &bad);
    let anomalies = learner.finish(1.0).anomalies;
    let flows = anomalies.iter().find_map(|one| match &one.what {
        What::Flow { flows, .. } => Some(flows.clone()),
        _ => None,
    });
    // Eight reads in training, violated once; the writer is one of the DSet.
    assert_eq!(flows, Some(vec![(Flow::Origin(Origin::Remote), 8.0)]), "{anomalies:?}");
}

#[test]
fn a_value_that_was_always_read_is_missed_when_it_is_overwritten() {
    let good =
        vec![act(100, true, 1, 1), act(1, false, 1, 1), act(101, true, 2, 1), act(2, false, 2, 1)];
    let model = trained(&vec![good; 4]);
    let bad = [act(100, true, 1, 1), act(101, true, 2, 1), act(2, false, 2, 1)];
    let mut learner = learner(model, Mode::Checking);
    play(&mut learner, &bad);
    let anomalies = learner.finish(1.0).anomalies;
    let lost = anomalies.iter().find(|one| matches!(one.what, What::Lost { used: 4, .. }));
    assert_eq!(lost.map(|one| (one.confidence, one.count)), Some((4.0, 1)), "{anomalies:?}");
}
