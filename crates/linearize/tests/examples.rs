//! The structures of the reference, and mutants of them.

use linearize::explore::machine::Memory;
use linearize::explore::search::{Bound, search};
use linearize::language::read;
use linearize::model::Program;
use linearize::{Verdict, judge};
use spec::Source;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Files of the examples and whether they are proved. The first 13 are those of the reference
/// (Table 6.2), which proves the same.
const STRUCTURES: &[(&str, bool)] = &[
    ("ms_queue", true),
    ("two_lock_queue", true),
    ("dglm_queue", true),
    ("herlihy_wing_queue", false),
    ("treiber_stack", true),
    ("elimination_stack", true),
    ("timestamped_stack", true),
    ("lazy_set", true),
    ("vy_cas_set", true),
    ("vy_dcas_set", true),
    ("orvyy_set", true),
    ("pair_snapshot", true),
    ("rdcss", true),
    ("baskets_queue", true),
    ("chase_lev_deque", true),
    ("clh_lock", true),
    ("double_checked_locking", true),
    ("double_collect", true),
    ("exchanger", false),
    ("fenced_register", false),
    ("fetch_and_add_sum", true),
    ("harris_michael_set", true),
    ("lamport_ring", true),
    ("llsc_counter", true),
    ("max_register", true),
    ("mcs_lock", true),
    ("ms_queue_steps", true),
    ("peterson_lock", true),
    ("reader_writer_lock", true),
    ("replicated_register", true),
    ("seqlock", true),
    ("sticky_bit", true),
    ("tagged_treiber_stack", true),
    ("tas_lock", true),
    ("ticket_lock", true),
    ("vyukov_queue", true),
    ("walking_set", false),
];

/// A mutant whose shortest counterexample has eight operations and takes more states than the others.
const LONG: (&str, usize) = ("double_collect_no_versions.lin", 1_500_000);

/// States alone bound these tests, so that they find the same on a slow machine.
const BOUND: Bound = Bound {
    operations: 12,
    values: 2,
    states: 300_000,
    time: Duration::from_secs(600),
    bytes: 1 << 30,
    memory: Memory { buffers: false, reuse: false },
};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/linearize")
}

fn load(path: &Path) -> Program {
    let text = std::fs::read_to_string(path).unwrap();
    let source = Source::new(path.display().to_string(), text);
    read(&source).unwrap_or_else(|errors| panic!("{}", errors.render(&source, false)))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "lin")).collect();
    files.sort();
    files
}

#[test]
fn every_structure_is_listed() {
    let mut listed: Vec<_> =
        STRUCTURES.iter().map(|(name, _)| folder().join(format!("{name}.lin"))).collect();
    listed.sort();
    assert_eq!(files(&folder()), listed);
}

#[test]
fn the_structures_are_proved_with_every_invariant_believed() {
    for (name, proved) in STRUCTURES {
        let program = load(&folder().join(format!("{name}.lin")));
        let judgement = judge(&program, Bound { operations: 3, ..BOUND });
        assert!(judgement.refused.is_empty(), "{name}: {:?}", judgement.refused);
        match judgement.verdict {
            Verdict::Proved => assert!(proved, "{name} is proved now: say so"),
            Verdict::NotProved { obstacles, searched, .. } => {
                assert!(!proved, "{name}: {obstacles:?}");
                assert_eq!(searched.operations, 3);
            }
            Verdict::Refuted { searched, .. } => panic!("{name}: {:?}", searched.counterexample),
        }
    }
}

/// A proof of operations that cannot run would be worth nothing; so they do run, in each role,
/// and no history of theirs is a counterexample.
#[test]
fn the_structures_run_and_have_no_counterexample() {
    for (name, _) in STRUCTURES {
        let program = load(&folder().join(format!("{name}.lin")));
        let searched = search(&program, Bound { operations: 2, ..BOUND });
        assert!(searched.counterexample.is_none(), "{name}: {:?}", searched.counterexample);
        assert_eq!(searched.operations, 2, "{name}");
        assert!(searched.histories > 1, "{name}: only {} histories", searched.histories);
    }
}

#[test]
fn every_mutant_is_refuted() {
    let mutants = files(&folder().join("mutants"));
    assert!(mutants.len() >= 25, "only {} mutants", mutants.len());
    for path in mutants {
        let states = if path.ends_with(LONG.0) { LONG.1 } else { BOUND.states };
        let judgement = judge(&load(&path), Bound { states, ..BOUND });
        let Verdict::Refuted { searched, .. } = judgement.verdict else {
            panic!("{}: {:?}", path.display(), judgement.verdict);
        };
        let history = searched.counterexample.expect("a refutation has a history");
        assert!(history.calls.len() >= 2, "{}", path.display());
    }
}

/// The page's specifications are read and proved, and it counts as the tests do.
#[test]
fn the_page_says_what_is_true() {
    let page = std::fs::read_to_string(folder().join("../../docs/linearize.md")).unwrap();
    let stack = page.split("```").find(|block| block.contains("Push(int val)")).unwrap();
    let stack = stack.strip_prefix("text").unwrap_or(stack);
    let object = page.split('`').find(|part| part.starts_with("abstract {")).unwrap();
    let counter = format!("{object} int c; Next() 1 c = c + 1; return c;");
    for text in [stack, &counter] {
        let source = Source::new("page", text);
        let program =
            read(&source).unwrap_or_else(|errors| panic!("{}", errors.render(&source, false)));
        let verdict = judge(&program, Bound { operations: 3, ..BOUND }).verdict;
        assert!(matches!(verdict, Verdict::Proved), "{verdict:?}\n{text}");
    }
    let (right, wrong) = (STRUCTURES.len(), files(&folder().join("mutants")).len());
    let proved = STRUCTURES.iter().filter(|(_, proved)| *proved).count();
    for said in [
        format!("| {right} right | {proved} ({} %)", 100 * proved / right),
        format!("| {wrong} wrong | 0 | {wrong} ("),
        format!("the 13 structures of the reference (its Table 6.1) and {} others", right - 13),
        format!("`mutants/` has {wrong}"),
        LONG.0.to_owned(),
    ] {
        assert!(page.contains(&said), "the page does not say {said:?}");
    }
}
