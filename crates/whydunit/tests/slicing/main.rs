//! Slices of real streams compared with those of a slow reference: all executions in them, of all
//! three kinds, for generated programs built without and with optimisation.

mod generate;
mod reference;
#[path = "../support/mod.rs"]
mod support;

use analyze::dependence::control::Control;
use analyze::dependence::trace::Item;
use analyze::dependence::{Moment, Trace};
use analyze::slice::{Follow, Question, Wants};
use events::Consumer;
use reference::Reference;
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

/// Runs a program and keeps its stream.
fn stream(program: &Path) -> Vec<Vec<u8>> {
    let file = program.with_extension("events");
    let run = support::tool(&["run", "--observe", "memory", "--save-events"])
        .arg(&file)
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

fn build(name: &str, source: &str, flags: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("slicing");
    std::fs::create_dir_all(&folder).expect("a folder");
    let (file, program) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&file, source).expect("written");
    let built = Command::new("gcc")
        .args(["-w", "-g", "-static", "-nostdlib", "-no-pie", "-fno-stack-protector"])
        .args(flags)
        .arg(&file)
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

/// The moments of a slice.
fn slice(
    trace: &Trace,
    control: &Control,
    wanted: (u64, u64),
    follow: Follow,
    bypass: bool,
) -> BTreeSet<u64> {
    let wants = Wants { memory: vec![wanted], ..Wants::default() };
    let mut question = Question::new(1, Moment(trace.len()), wants, follow);
    question.control = Some(control);
    question.nodes = 1 << 24;
    question.bypass = bypass;
    let slice = question.answer(trace);
    assert!(!slice.cut);
    let executed = slice.nodes.iter().skip(1).filter(|node| node.instruction.is_some());
    let moments: BTreeSet<u64> = executed.map(|node| node.moment.0).collect();
    let counted: u64 = slice.counts.values().sum();
    assert_eq!(moments.len() as u64, counted, "every execution is counted once");
    // Without edges it is the same slice.
    question.nodes = 0;
    assert_eq!(question.answer(trace).counts, slice.counts);
    moments
}

/// Compares all slices of a program that leaves `values` numbers; how many instructions they have.
fn compare(program: &Path, bypass: bool) -> usize {
    let stream = stream(program);
    let trace = trace(&stream);
    let opened = opened(program);
    let control = Control::of(&trace, &opened);
    let reference = Reference::of(&stream, &control, bypass);
    let (results, bytes) = written(&trace);
    let mut total = 0;
    for number in 0..bytes / 8 {
        for follow in [Follow::Thin, Follow::Data, Follow::Full] {
            let wanted = (results + number * 8, 8);
            let expected = reference.slice(&[wanted], follow);
            let found = slice(&trace, &control, wanted, follow, bypass);
            total += expected.len();
            if found != expected {
                let which = |moments: &mut dyn Iterator<Item = &u64>| -> Vec<String> {
                    let pcs = moments.take(12).map(|m| format!("{m}@{:#x}", reference.pc(*m)));
                    pcs.collect()
                };
                panic!(
                    "{} value {number} {follow:?} of {}: missing {:?}, too many {:?}",
                    program.display(),
                    expected.len(),
                    which(&mut expected.difference(&found)),
                    which(&mut found.difference(&expected)),
                );
            }
        }
    }
    total
}

const LEVELS: [&[&str]; 3] = [&["-O0"], &["-O1"], &["-O2"]];
const PROGRAMS: usize = 50;

fn generated(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let level = LEVELS[seed as usize % 3];
        let source = generate::file(seed, PROGRAMS);
        let program = build(&format!("generated-{seed}"), &source, level);
        let executions = compare(&program, seed % 4 != 3);
        assert!(executions > PROGRAMS * 20, "seed {seed}: {executions} executions are too few");
    }
}

// 21 files of 50 programs, in parts that can run at the same time.
#[test]
fn generated_programs_at_all_levels_first_part() {
    generated(0..11);
}

#[test]
fn generated_programs_at_all_levels_second_part() {
    generated(11..21);
}
