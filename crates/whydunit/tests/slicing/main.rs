//! Slices of real streams compared with those of a slow reference: all executions in them, of all
//! three kinds, for generated programs built without and with optimisation.

mod generate;
mod reference;
#[path = "../support/mod.rs"]
mod support;

use analyze::dependence::Trace;
use analyze::dependence::control::Control;
use analyze::dependence::trace::{Item, Past};
use analyze::semantics::Parts;
use analyze::slice::{Follow, Members, Question, Wants};
use base::StepCount;
use events::Consumer;
use reference::{Limits, Options, Reference, Seed};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use symbols::{DebugFiles, LoadedModule, Program};

/// Keeps the chunks of a stream.
#[derive(Default)]
struct Chunks(Vec<Vec<u8>>);

impl Consumer for Chunks {
    fn records(&mut self, bytes: &[u8]) {
        self.0.push(bytes.to_vec());
    }
}

/// What slices are made from.
const PLAN: &str = r#"{"observe": {"execution": "Addresses", "syscalls": "Ranges"}}"#;

/// Runs a program and keeps its stream.
fn stream(program: &Path) -> Vec<Vec<u8>> {
    let (file, plan) = (program.with_extension("events"), program.with_extension("plan"));
    std::fs::write(&plan, PLAN).expect("a plan");
    let run = support::tool(&["run", "--save-events"])
        .arg(&file)
        .arg("--plan")
        .arg(&plan)
        .arg("--")
        .arg(program)
        .output()
        .expect("the tool");
    assert!(run.status.success(), "{}", support::errors(&run));
    let mut chunks = Chunks::default();
    let opened = std::io::BufReader::new(std::fs::File::open(&file).expect("events"));
    events::file::feed(opened, &mut chunks).expect("a whole file");
    std::fs::remove_file(&file).expect("removed");
    chunks.0
}

fn trace(stream: &[Vec<u8>]) -> Trace {
    let mut trace = Trace::default();
    stream.iter().for_each(|chunk| trace.records(chunk));
    trace.end();
    assert!(!trace.broken);
    trace
}

/// Where programs are built.
fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("slicing");
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn build(name: &str, file: &Path, flags: &[&str]) -> PathBuf {
    let program = folder().join(name);
    let built = Command::new("gcc")
        .args(["-w", "-g", "-static", "-nostdlib", "-no-pie", "-fno-stack-protector"])
        .args(["-fno-builtin", "-fno-tree-loop-distribute-patterns"])
        .args(flags)
        .arg(file)
        .arg("-o")
        .arg(&program)
        .output()
        .expect("a compiler");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    program
}

fn opened(program: &Path) -> Program {
    let module = LoadedModule {
        path: program.to_owned(),
        bias: 0,
        range: base::Range::new(0x40_0000, 0x100_0000),
    };
    Program::open([module], &DebugFiles::default())
}

/// Where the program's last `write` had its bytes.
fn written(trace: &Trace) -> (u64, u64) {
    let mut last = None;
    trace.forward(|_, item| {
        if let Item::Syscall { number: 1, arguments, .. } = item {
            last = Some((arguments[1], arguments[2]));
        }
    });
    last.expect("the program writes its results")
}

/// A program that ran, looked at in both ways.
struct Case {
    name: String,
    stream: Vec<Vec<u8>>,
    trace: Trace,
    control: Control,
}

const KINDS: [Follow; 3] = [Follow::Thin, Follow::Data, Follow::Full];

impl Case {
    fn of(program: &Path) -> Self {
        let stream = stream(program);
        let trace = trace(&stream);
        let control = Control::of(&trace, &opened(program));
        Self { name: program.display().to_string(), stream, trace, control }
    }

    fn reference(&self, options: Options) -> Reference<'_> {
        Reference::of(&self.stream, &self.control, options)
    }

    /// A question with what reference and tool are both told.
    fn question<'q>(
        &'q self,
        (thread, moment): (u32, u64),
        wants: Wants,
        follow: Follow,
        options: &Options,
        limits: &Limits,
    ) -> Question<'q> {
        let mut question = Question::new(thread, StepCount(moment), wants, follow);
        question.control = Some(&self.control);
        question.nodes = 1 << 24;
        question.bypass = options.bypass;
        question.prune_parts = options.prune_parts;
        question.prune_memory.clone_from(&options.prune_memory);
        question.constants.clone_from(&options.constants);
        question.threads.clone_from(&limits.threads);
        question.depth = limits.depth.unwrap_or(u32::MAX);
        question
    }

    /// Compares the slices of a value at the end; how many instructions they have.
    fn backward(
        &self,
        reference: &Reference<'_>,
        wanted: (u64, u64),
        options: &Options,
        limits: &Limits,
    ) -> usize {
        let mut total = 0;
        for follow in KINDS {
            let wants = Wants { memory: vec![wanted], ..Wants::default() };
            let end = (1, self.trace.len());
            let within: Option<Members> = limits.within.as_ref().map(members);
            let mut question = self.question(end, wants, follow, options, limits);
            question.within = within.as_ref();
            let slice = question.answer(&self.trace);
            let expected = reference.slice(&[wanted], follow, limits);
            let executed = slice.nodes.iter().skip(1).filter(|node| node.instruction.is_some());
            let found: BTreeSet<u64> = executed.map(|node| node.moment.0).collect();
            let what = format!("slice of [{:#x},{}], {limits:?}", wanted.0, wanted.1);
            self.same(reference, &format!("{follow:?} {what}"), &expected, &found);
            assert_eq!(found.len() as u64, slice.executions(), "every execution is counted once");
            if limits.depth.is_none() {
                // Without edges it is the same slice.
                question.nodes = 0;
                assert_eq!(question.answer(&self.trace).counts, slice.counts);
            }
            total += expected.len();
        }
        total
    }

    /// Compares what came of a value; how many instructions that has.
    fn forward(&self, seed: &Seed, options: &Options, limits: &Limits) -> usize {
        let options = Options { seed: Some(seed.clone()), ..options.clone() };
        let reference = self.reference(options.clone());
        let (results, bytes) = written(&self.trace);
        let mut total = 0;
        for follow in KINDS {
            let wants =
                Wants { parts: seed.parts, memory: seed.memory.clone(), ..Wants::default() };
            let at = (seed.thread, seed.moment);
            let mut question = self.question(at, wants, follow, &options, limits);
            let (slice, members) = question.forward(&self.trace);
            let expected = reference.forward(follow, limits);
            let found: BTreeSet<u64> = members.iter().map(|moment| moment.0).collect();
            let what = format!("{follow:?} forward from {seed:?}, {limits:?}");
            self.same(&reference, &what, &expected, &found);
            assert_eq!(found.len() as u64, slice.executions(), "every execution is counted once");
            assert_eq!(found.len() + 1, slice.nodes.len(), "every execution has a node");
            if limits.depth.is_none() {
                question.nodes = 0;
                assert_eq!(question.forward(&self.trace).1, members);
            }
            // What lies between the seed and some result.
            let result = (results + (seed.moment % (bytes / 8)) * 8, 8);
            let chop = Limits { within: Some(expected), ..limits.clone() };
            self.backward(&reference, result, &options, &chop);
            total += found.len();
        }
        total
    }

    fn same(
        &self,
        reference: &Reference<'_>,
        what: &str,
        expected: &BTreeSet<u64>,
        found: &BTreeSet<u64>,
    ) {
        let which = |moments: &mut dyn Iterator<Item = &u64>| -> Vec<String> {
            moments.take(12).map(|m| format!("{m}@{:#x}", reference.pc(*m))).collect()
        };
        assert!(
            expected == found,
            "{} {what} of {}: missing {:?}, too many {:?}",
            self.name,
            expected.len(),
            which(&mut expected.difference(found)),
            which(&mut found.difference(expected)),
        );
    }

    /// What an instruction defines, at so many parts of eight of the way, as something to ask
    /// about.
    fn seed(&self, eighths: u64) -> Seed {
        let before = StepCount(self.trace.len() * eighths / 8 + eighths);
        let executed = self.trace.last_executed(None, before).expect("executed");
        let meaning = &self.trace.blocks.statics[executed.instruction as usize].meaning;
        let written = meaning.writes().filter_map(|slot| {
            let bytes = meaning.memory[usize::from(slot)].bytes;
            Some((executed.addresses[usize::from(slot)]?, u64::from(bytes)))
        });
        let memory: Vec<(u64, u64)> = written.collect();
        let nothing = memory.is_empty() && meaning.defines.is_empty();
        let parts = if nothing { Parts::general(0, 0, 8) } else { meaning.defines };
        Seed { thread: executed.thread, moment: executed.moment.0 + 1, parts, memory }
    }
}

/// Memory of a program that cannot be written to.
fn constants(program: &Path) -> Vec<(u64, u64)> {
    let program = opened(program);
    analyze::slice::constants(&program)
}

fn members(moments: &BTreeSet<u64>) -> Members {
    let mut members = Members::default();
    moments.iter().for_each(|moment| members.add(StepCount(*moment)));
    members
}

/// Compares slices of a program that leaves numbers, and what came of some of its values; how many
/// instructions they have.
fn compare(program: &Path, bypass: bool) -> usize {
    let case = Case::of(program);
    let (results, bytes) = written(&case.trace);
    let constants = if bypass { constants(program) } else { Vec::new() };
    let options = Options { bypass, constants, ..Options::default() };
    let reference = case.reference(options.clone());
    let all = Limits::default();
    let mut total = 0;
    for number in 0..bytes / 8 {
        total += case.backward(&reference, (results + number * 8, 8), &options, &all);
    }
    for eighths in [1, 3, 6] {
        total += case.forward(&case.seed(eighths), &options, &all);
    }
    total + limited(&case, &options)
}

/// The same with limits: depth, threads, values that are left out.
fn limited(case: &Case, options: &Options) -> usize {
    let (results, bytes) = written(&case.trace);
    let result = (results + bytes / 16 * 8, 8);
    let (seed, pruned) = (case.seed(2), case.seed(5));
    let mut total = 0;
    let near = Limits { depth: Some(7), ..Limits::default() };
    let threads = Limits { threads: vec![seed.thread], ..Limits::default() };
    for limits in [&near, &threads] {
        let reference = case.reference(options.clone());
        total += case.backward(&reference, result, options, limits);
        total += case.forward(&seed, options, limits);
    }
    let (prune_parts, prune_memory) = (Parts::general(0, 0, 4), pruned.memory);
    let options = Options { prune_parts, prune_memory, ..options.clone() };
    let reference = case.reference(options.clone());
    total += case.backward(&reference, result, &options, &Limits::default());
    total + case.forward(&seed, &options, &Limits::default())
}

/// A past that keeps all streams, to be asked for windows again.
struct Kept(Vec<Vec<Vec<u8>>>);

impl Past for Kept {
    fn again(&mut self, window: usize) -> Result<Vec<Vec<u8>>, String> {
        Ok(self.0[window].clone())
    }
}

/// The stream of a program that runs so often in a row: every run is a window.
fn windowed(stream: &[Vec<u8>], windows: usize, most_bytes: u64) -> Trace {
    let past = Kept(vec![stream.to_vec(); windows]);
    let mut trace = Trace::windowed(most_bytes, Box::new(past));
    for _ in 0..windows {
        stream.iter().for_each(|chunk| trace.records(chunk));
        trace.end_window();
    }
    trace
}

#[test]
fn what_is_dropped_is_the_same_when_it_is_made_again() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs/slices/memory.c");
    let program = build("windows", &file, &["-O1"]);
    let stream = stream(&program);
    let (all, few) = (windowed(&stream, 4, u64::MAX), windowed(&stream, 4, 1));
    assert_eq!((all.len(), all.bytes()), (few.len(), few.bytes()));
    assert_eq!((all.kept(), few.kept()), (all.bytes(), 0));
    let control = Control::of(&all, &opened(&program));
    let (results, bytes) = written(&all);
    for number in 0..bytes / 8 {
        for moment in [all.len(), all.len() / 2] {
            let wants = Wants { memory: vec![(results + number * 8, 8)], ..Wants::default() };
            let mut question = Question::new(1, StepCount(moment), wants, Follow::Full);
            question.control = Some(&control);
            let (one, other) = (question.answer(&all), question.answer(&few));
            assert_eq!(one.nodes, other.nodes);
            assert_eq!((one.edges, one.counts), (other.edges, other.counts));
            let (one, other) = (question.forward(&all), question.forward(&few));
            assert_eq!((one.0.nodes, one.1), (other.0.nodes, other.1));
        }
    }
    assert!(few.made_again() > 4 && few.failure().is_none());
    assert_eq!(all.made_again(), 0);
}

/// A recording that is longer than one window, asked with much memory and with little.
#[test]
fn a_recording_gives_the_same_slice_with_any_memory() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs/slices/long_run.c");
    let (program, recording) = (folder().join("long_run"), folder().join("long_run.recording"));
    let built = Command::new("gcc").args(["-g", "-O1", "-o"]).args([&program, &file]).status();
    assert!(built.expect("a compiler").success());
    let recorded = support::tool(&["record", "--force", "-o"])
        .arg(&recording)
        .arg("--")
        .arg(&program)
        .arg("2500000")
        .output()
        .expect("the tool");
    assert!(recording.exists(), "{}", support::errors(&recorded));
    for kind in ["thin", "full"] {
        let answers: Vec<String> = ["2G", "4M"]
            .iter()
            .map(|memory| {
                let arguments = ["slice", "--json", "--kind", kind, "--memory", memory];
                let asked = support::tool(&arguments).arg(&recording).output().expect("the tool");
                assert!(asked.status.success(), "{}", support::errors(&asked));
                String::from_utf8(asked.stdout).expect("text")
            })
            .collect();
        assert!(answers[0].contains("long_run.c"), "{}", answers[0]);
        assert!(answers[0] == answers[1], "{kind}: the answers differ");
    }
}

const LEVELS: [&[&str]; 3] = [&["-O0"], &["-O1"], &["-O2"]];
const PROGRAMS: usize = 50;

fn generated(seeds: std::ops::Range<u64>, threads: bool) {
    for seed in seeds {
        let level = LEVELS[seed as usize % 3];
        let name = format!("generated-{seed}");
        let file = folder().join(format!("{name}.c"));
        std::fs::write(&file, generate::file(seed, PROGRAMS, threads)).expect("written");
        let program = build(&name, &file, level);
        let executions = compare(&program, seed % 4 != 3);
        assert!(executions > PROGRAMS * 20, "seed {seed}: {executions} executions are too few");
    }
}

// 21 files of 50 programs, and 6 in which two threads run them, in parts that can run at the same
// time.
#[test]
fn generated_programs_at_all_levels_first_part() {
    generated(0..11, false);
}

#[test]
fn generated_programs_at_all_levels_second_part() {
    generated(11..21, false);
}

#[test]
fn generated_programs_with_threads() {
    generated(100..106, true);
}

/// Every value of the programs of a file that somebody wrote, at all levels.
fn written_by_hand(name: &str, programs: usize) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = here.join("../../tests/programs/slices").join(name).with_extension("c");
    let source = std::fs::read_to_string(&file).expect("the programs");
    let there = source.lines().filter(|line| line.starts_with("PROGRAM ")).count();
    assert_eq!(there, programs, "{name}.c");
    for level in LEVELS {
        let program = build(&format!("{name}{}", level[0]), &file, level);
        assert!(compare(&program, true) > 0);
        assert!(compare(&program, false) > 0);
    }
}

#[test]
fn programs_about_flow() {
    written_by_hand("flow", 15);
}

#[test]
fn programs_about_calls() {
    written_by_hand("calls", 14);
}

#[test]
fn programs_about_memory() {
    written_by_hand("memory", 18);
}

#[test]
fn programs_about_arithmetic() {
    written_by_hand("arithmetic", 19);
}

#[test]
fn programs_about_signals() {
    written_by_hand("signals", 7);
}

#[test]
fn programs_about_threads() {
    written_by_hand("threads", 8);
}

#[test]
fn programs_about_jumps_out_of_calls() {
    written_by_hand("jumps", 17);
}

/// Programs whose result is made from what a function named `chosen` makes, or is not if their name says
/// so: the judge shares the graph of control flow with the tool, this test does not.
fn hangs_on_what_was_chosen(name: &str, follows: &[Follow]) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = here.join("../../tests/programs/slices").join(name).with_extension("c");
    let source = std::fs::read_to_string(&file).expect("the programs");
    let names: Vec<&str> = source
        .lines()
        .filter_map(|line| line.strip_prefix("PROGRAM ")?.split_once('('))
        .map(|(name, _)| name)
        .collect();
    for level in LEVELS {
        let program = build(&format!("chosen-{name}{}", level[0]), &file, level);
        let options =
            Options { bypass: true, constants: constants(&program), ..Options::default() };
        let (case, program) = (Case::of(&program), opened(&program));
        let (results, bytes) = written(&case.trace);
        assert_eq!(bytes, names.len() as u64 * 8);
        for (number, name) in (0u64..).zip(&names) {
            for follow in follows {
                let wants = Wants { memory: vec![(results + number * 8, 8)], ..Wants::default() };
                let end = (1, case.trace.len());
                let limits = Limits::default();
                let slice =
                    case.question(end, wants, *follow, &options, &limits).answer(&case.trace);
                let is_chosen = slice.counts.keys().any(|(_, id)| {
                    let pc = case.trace.blocks.statics[*id as usize].pc;
                    let place = program.symbolise(base::Address(pc)).place();
                    place.function.as_deref() == Some("chosen")
                });
                let what = format!("{name} at {}, {follow:?}", level[0]);
                assert_eq!(is_chosen, !name.ends_with("_not"), "{what}");
            }
        }
    }
}

#[test]
fn an_indirect_jump_that_went_one_way_is_a_decision() {
    hangs_on_what_was_chosen("indirect", &[Follow::Full]);
}

#[test]
fn a_system_call_is_made_from_what_it_is_given() {
    hangs_on_what_was_chosen("kernel", &[Follow::Thin]);
}

#[test]
fn an_entry_of_a_constant_table_stands_for_its_index() {
    hangs_on_what_was_chosen("constant", &[Follow::Thin]);
}

#[test]
fn programs_about_constant_tables() {
    written_by_hand("constant", 4);
}

#[test]
fn programs_about_indirect_jumps() {
    written_by_hand("indirect", 6);
}

#[test]
fn programs_about_system_calls() {
    written_by_hand("kernel", 4);
}
