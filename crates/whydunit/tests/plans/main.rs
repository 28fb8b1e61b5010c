//! Plans on little programs: what probes and function probes tell, what ranges of code leave out,
//! what patches change, and plans that change while the program runs.

use events::decode::Record;
use events::patch::{Action, Patch, REGISTERS};
use events::plan::{
    Allocations, Execution, Heap, HeapFunction, HeapRole, Poison, Probe, Scope, Screen, Shadow,
    Stops, Syscalls,
};
use events::{Consumer, Decoder, Event, Plan};
use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

const TOOL: &str = env!("CARGO_BIN_EXE_whydunit");

/// A program with the addresses of its labels.
struct Program {
    folder: TempDir,
    path: PathBuf,
    labels: HashMap<String, u64>,
}

impl Program {
    fn build(source: &str, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("program");
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs/plans");
        let built = Command::new("gcc")
            .args(["-no-pie", "-O2"])
            .args(flags)
            .arg(sources.join(source))
            .arg("-o")
            .arg(&path)
            .status();
        assert!(built.expect("gcc").success());
        let symbols = Command::new("nm").arg(&path).output().expect("nm").stdout;
        let labels = String::from_utf8_lossy(&symbols)
            .lines()
            .filter_map(|line| {
                let mut words = line.split_whitespace();
                let address = u64::from_str_radix(words.next()?, 16).ok()?;
                Some((words.nth(1)?.to_owned(), address))
            })
            .collect();
        Self { folder, path, labels }
    }

    fn at(&self, label: &str) -> u64 {
        self.labels[label]
    }

    fn name_of(&self, address: u64) -> &str {
        let label = self.labels.iter().find(|(_, place)| **place == address);
        label.map_or("?", |(name, _)| name)
    }

    /// Runs it under the tool; its exit code and what standard error says.
    fn run(&self, options: &[&str]) -> (Option<i32>, String) {
        let done = Command::new(TOOL)
            .args(["run", "--rules", "none", "--exit-code=guest"])
            .args(options)
            .arg("--")
            .arg(&self.path)
            .stdin(Stdio::null())
            .output()
            .expect("the tool");
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    }

    /// The events of a run.
    fn events(&self, options: &[&str]) -> (Option<i32>, Vec<Event>) {
        self.some_events(options, |_| true)
    }

    fn some_events(
        &self,
        options: &[&str],
        wanted: fn(&Event) -> bool,
    ) -> (Option<i32>, Vec<Event>) {
        let file = self.folder.path().join("events");
        let name = file.to_string_lossy();
        let (code, _) = self.run(&[&["--save-events", &name], options].concat());
        let mut log =
            Log { decoder: Decoder::default(), events: Vec::new(), malformed: false, wanted };
        let input = BufReader::new(File::open(&file).expect("events"));
        events::file::feed(input, &mut log).expect("a stream");
        assert!(!log.malformed);
        (code, log.events)
    }

    /// The events of a run with a plan.
    fn planned(&self, plan: &Plan, options: &[&str]) -> (Option<i32>, Vec<Event>) {
        let file = self.write_plan("plan", plan);
        self.events(&[&["--plan", &file], options].concat())
    }

    fn write_plan(&self, name: &str, plan: &Plan) -> String {
        let file = self.folder.path().join(name);
        std::fs::write(&file, serde_json::to_vec(plan).expect("a plan")).expect("room");
        file.to_string_lossy().into_owned()
    }
}

struct Log {
    decoder: Decoder,
    events: Vec<Event>,
    malformed: bool,
    wanted: fn(&Event) -> bool,
}

impl Consumer for Log {
    fn records(&mut self, bytes: &[u8]) {
        let (events, wanted) = (&mut self.events, self.wanted);
        let decoded = self.decoder.events(bytes, |event| events.extend(Some(event).filter(wanted)));
        self.malformed |= decoded.is_err();
    }
}

/// Calls and returns as text; a return must belong to a call.
fn calls(program: &Program, events: &[Event]) -> Vec<String> {
    let mut under_way = HashMap::new();
    let mut lines = Vec::new();
    for event in events {
        match *event {
            Event::Enter { function, stack, arguments, .. } => {
                under_way.entry(stack).or_insert_with(Vec::new).push(function);
                let name = program.name_of(function);
                lines.push(format!("{name}({})", arguments[0]));
            }
            Event::Return { function, stack, value } => {
                assert_eq!(under_way.get_mut(&stack).and_then(Vec::pop), Some(function));
                lines.push(format!("{} = {}", program.name_of(function), value as i32));
            }
            _ => {}
        }
    }
    lines
}

#[test]
fn calls_and_returns_pair_up_through_recursion_tail_calls_and_longjmp() {
    let program = Program::build("calls.c", &["-fno-inline", "-fno-ipa-cp", "-fno-ipa-sra"]);
    let functions = ["factorial", "leaves", "jumps_to"].map(|name| program.at(name)).to_vec();
    let plan = Plan { stops: Stops::at_functions(functions), ..Plan::default() };
    for superblock in ["64", "3"] {
        let (code, events) = program.planned(&plan, &["--superblock", superblock]);
        assert_eq!(code, Some(8));
        let expected = [
            "leaves(0)",
            "leaves = 5",
            "leaves(1)",
            "leaves(2)",
            "leaves = 7",
            "factorial(3)",
            "factorial(2)",
            "factorial(1)",
            "factorial = 1",
            "factorial = 2",
            "factorial = 6",
            "jumps_to(1)",
            "factorial(2)",
            "factorial(1)",
            "factorial = 1",
            "factorial = 2",
            "jumps_to = 2",
        ];
        assert_eq!(calls(&program, &events), expected);
    }
}

/// Every call has its entry and its return, with what it was given and gave back; calls of the handler
/// are inside others or between them.
fn check_interrupted(events: &[Event]) {
    const FROM_HANDLER: i64 = 7;
    let mut under_way: Vec<(u64, i64)> = Vec::new();
    let mut next = 1000;
    for event in events {
        match *event {
            Event::Enter { stack, arguments, .. } => {
                let argument = arguments[0] as i64;
                under_way.push((stack, argument));
                if argument >= 1000 {
                    assert_eq!(argument, next);
                    next += 1;
                } else if argument != FROM_HANDLER {
                    assert_eq!(-argument, next - 1000);
                }
            }
            Event::Return { stack, value, .. } => {
                let (entered, argument) = under_way.pop().expect("a call under way");
                assert_eq!((entered, argument * 3 + 1), (stack, value as i64));
            }
            _ => {}
        }
    }
    assert!(under_way.is_empty());
    assert!(next > 1000);
}

#[test]
fn calls_are_told_once_whenever_signals_come() {
    let program = Program::build("interrupted_calls.c", &["-static"]);
    let stops = Stops::at_functions(vec![program.at("work")]);
    let shadow = Screen::Shadow(Shadow { reads: 1, writes: 1, paint: Vec::new() });
    let role = HeapRole::Measure;
    let name = "work".to_owned();
    let followed = HeapFunction { name, role, family: 1, zeroed: false, at: None };
    let heap = Screen::Heap(Heap { functions: vec![followed], provenance: true });
    for plan in [
        Plan { stops: stops.clone(), ..Plan::default() },
        Plan { stops: stops.clone(), ..Plan::observing(Execution::Blocks) },
        Plan { stops, ..Plan::screening(shadow) },
        Plan { stops: Stops::at_names(vec!["work".to_owned()]), ..Plan::screening(heap) },
    ] {
        for superblock in ["64", "1"] {
            let options =
                ["--plan", &program.write_plan("plan", &plan), "--superblock", superblock];
            let is_call =
                |event: &Event| matches!(event, Event::Enter { .. } | Event::Return { .. });
            let (code, events) = program.some_events(&options, is_call);
            assert_eq!(code, Some(8));
            check_interrupted(&events);
        }
    }
}

#[test]
fn functions_are_found_by_name_in_libraries() {
    let program = Program::build("calls.c", &[]);
    let options = ["--function", "malloc", "--function", "realloc", "--function", "free"];
    let (code, events) = program.events(&options);
    assert_eq!(code, Some(8));
    let enters: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Enter { function, stack, arguments, .. } => {
                Some((*function, *stack, *arguments))
            }
            _ => None,
        })
        .collect();
    let malloc = enters.iter().find(|(_, _, arguments)| arguments[0] == 100).expect("malloc(100)");
    let answer = |stack: u64, function: u64| {
        events.iter().find_map(|event| match event {
            Event::Return { function: of, stack: at, value } if (*of, *at) == (function, stack) => {
                Some(*value)
            }
            _ => None,
        })
    };
    let block = answer(malloc.1, malloc.0).expect("malloc returns");
    let moved = |arguments: &[u64; 6]| arguments[..2] == [block, 5000];
    let realloc = enters.iter().find(|(_, _, arguments)| moved(arguments)).expect("realloc");
    let bigger = answer(realloc.1, realloc.0).expect("realloc returns");
    assert!(enters.iter().any(|(_, _, arguments)| arguments[0] == bigger), "free");
}

#[test]
fn a_probe_tells_registers_each_time_before_its_place_executes() {
    let program = Program::build("decide.s", &["-nostdlib", "-static"]);
    let options = ["--probe", &format!("{:#x}", program.at("again"))];
    for superblock in ["64", "1"] {
        let (code, events) =
            program.events(&[&options[..], &["--superblock", superblock]].concat());
        assert_eq!(code, Some(33));
        let values = |register: &str| -> Vec<u64> {
            let wanted = REGISTERS.iter().position(|name| *name == register).expect("a register");
            let is_it = |event: &Event| match event {
                Event::Register { register, value } if *register as usize == wanted => Some(*value),
                _ => None,
            };
            events.iter().filter_map(is_it).collect()
        };
        assert_eq!(values("rbx"), [0, 1, 2]);
        assert_eq!(values("rcx"), [3, 2, 1]);
    }
}

#[test]
fn patches_change_what_they_say() {
    let program = Program::build("decide.s", &["-nostdlib", "-static"]);
    let place = |label: &str| format!("{:#x}", program.at(label));
    let cell = program.at("cell");
    for (patch, expected) in [
        (format!("{}: flip", place("choose")), 77),
        (format!("{}#2: flip", place("choose")), 77),
        (format!("{}#4: flip", place("choose")), 33),
        (format!("{}: skip", place("again")), 30),
        (format!("{}#3: skip", place("again")), 32),
        (format!("{}: skip", place("sum")), 23),
        (format!("{}: flip", place("hop")), 73),
        (format!("{}: set $rbx=50", place("sum")), 80),
        (format!("*{}#2: set $rbx=99", place("again")), 77),
        (format!("{}: set [{cell:#x},4]=5", place("get")), 18),
    ] {
        for superblock in ["64", "1"] {
            let options = ["--patch", &patch, "--superblock", superblock];
            assert_eq!(program.run(&options).0, Some(expected), "{patch}, {superblock}");
        }
    }
    let (code, errors) = program.run(&["--patch", "main: jump"]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("a patch is"), "{errors}");
    let (code, errors) = program.run(&["--patch", &format!("{}: flip", place("sum"))]);
    assert_eq!(code, Some(33));
    assert!(errors.contains("no conditional branch"), "{errors}");
}

#[test]
fn a_flipped_branch_shows_as_it_went() {
    let program = Program::build("decide.s", &["-nostdlib", "-static"]);
    let choose = program.at("choose");
    let patch = format!("{choose:#x}#2: flip");
    let (_, events) = program.events(&["--observe", "blocks", "--patch", &patch]);
    let outcomes: Vec<bool> = events
        .iter()
        .filter_map(|event| match event {
            Event::Instruction { pc, taken, .. } if *pc == choose => Some(*taken),
            _ => None,
        })
        .collect();
    assert_eq!(outcomes, [false, true]);
}

/// Instructions with their accesses, only those in a range.
fn inside(events: &[Event], range: &std::ops::Range<u64>) -> Vec<Event> {
    let mut kept = Vec::new();
    let mut keeping = false;
    for event in events {
        match event {
            Event::Instruction { pc, .. } => keeping = range.contains(pc),
            Event::Access { .. } => {}
            _ => continue,
        }
        if keeping {
            kept.push(*event);
        }
    }
    kept
}

#[test]
fn ranges_of_code_leave_out_just_the_rest() {
    let program = Program::build("calls.c", &["-static", "-fno-inline"]);
    let start = program.at("factorial");
    let range = start..start + 64;
    let (_, all) = program.planned(&Plan::everything(), &[]);
    let scope = Scope { code: vec![range.clone()], ..Scope::default() };
    let plan = Plan { scope, ..Plan::everything() };
    let (code, some) = program.planned(&plan, &[]);
    assert_eq!(code, Some(8));
    let expected = inside(&all, &range);
    assert!(expected.len() > 20);
    assert_eq!(inside(&some, &range), expected);
    let outside =
        |event: &Event| matches!(event, Event::Instruction { pc, .. } if !range.contains(pc));
    assert_eq!(some.iter().filter(|event| outside(event)).count(), 0);
}

#[test]
fn another_plan_comes_into_force_while_the_guest_runs_in_a_loop() {
    let program = Program::build("spin.s", &["-nostdlib", "-static"]);
    let spin = program.at("spin");
    let action = Action::SetMemory { address: program.at("flag"), size: 4, value: 1 };
    let patches = vec![Patch { pc: spin, execution: Some(3), action }];
    let stops = Stops { probes: vec![Probe { pc: spin, registers: 1 }], ..Stops::default() };
    let next = program.write_plan("next", &Plan { patches, stops, ..Plan::default() });
    let (code, events) = program.events(&["--next-plan", &next]);
    assert_eq!(code, Some(5));
    let probe = Event::Probe { pc: spin };
    let told: Vec<Event> = events
        .into_iter()
        .filter(|event| matches!(event, Event::Plan(_)) || *event == probe)
        .collect();
    assert_eq!(told, [Event::Plan(1), probe, probe, probe]);
}

/// What system calls read and wrote: the call, whether it wrote, where, and the bytes.
type Buffers = Vec<(u64, bool, u64, Vec<u8>)>;

#[derive(Default)]
struct Kernel {
    decoder: Decoder,
    pending: Vec<(bool, u64, Vec<u8>)>,
    calls: Buffers,
}

impl Consumer for Kernel {
    fn records(&mut self, bytes: &[u8]) {
        let (pending, calls) = (&mut self.pending, &mut self.calls);
        let done = self.decoder.records(bytes, |record| match record {
            Record::Buffers(buffers) => {
                for buffer in buffers {
                    let buffer = buffer.expect("whole");
                    let bytes = buffer.bytes.expect("bytes").to_vec();
                    assert_eq!(bytes.len() as u64, buffer.length);
                    pending.push((buffer.write, buffer.address, bytes));
                }
            }
            Record::Syscall(number, ..) => {
                let own = pending.drain(..);
                calls.extend(own.map(|(write, at, bytes)| (number, write, at, bytes)));
            }
            _ => {}
        });
        assert_eq!(done, Ok(()));
    }
}

#[test]
fn system_calls_tell_what_they_read_and_wrote() {
    let program = Program::build("buffers.c", &[]);
    let plan = Plan::default().with_syscalls(Syscalls::Bytes);
    let file = program.folder.path().join("events");
    let options =
        ["--plan", &program.write_plan("plan", &plan), "--save-events", &file.to_string_lossy()];
    assert_eq!(program.run(&options).0, Some(0));
    let mut kernel = Kernel::default();
    let input = BufReader::new(File::open(&file).expect("events"));
    events::file::feed(input, &mut kernel).expect("a stream");
    let (hello, got, path) = (program.at("hello"), program.at("got"), program.at("path"));
    const READ: u64 = 0;
    const WRITE: u64 = 1;
    const WRITEV: u64 = 20;
    const OPENAT: u64 = 257;
    for expected in [
        (WRITE, false, hello, b"hello".to_vec()),
        (WRITEV, false, hello, b"he".to_vec()),
        (WRITEV, false, hello + 3, b"lo".to_vec()),
        (OPENAT, false, path, b"/dev/null\0".to_vec()),
        (READ, true, got, b"hellohelo".to_vec()),
    ] {
        let about =
            |call: &&(u64, bool, u64, Vec<u8>)| call.0 == expected.0 && call.2 == expected.2;
        assert_eq!(kernel.calls.iter().filter(about).collect::<Vec<_>>(), [&expected]);
    }
    let pipe = kernel.calls.iter().find(|call| matches!(call.0, 22 | 293)).expect("pipe");
    assert!(pipe.1 && pipe.3.len() == 8);
}

/// What cannot be had together is refused before the program starts, by name.
#[test]
fn plans_whose_parts_are_in_conflict_are_refused() {
    let program = Program::build("decide.s", &["-nostdlib", "-static"]);
    let table = || Screen::Allocations(Allocations::default());
    let pair = vec![Screen::Heap(Heap::default()), Screen::Shadow(Shadow::default())];
    for (plan, words) in [
        (Plan { screens: pair, ..Plan::default() }, ["heap screen", "shadow screen"]),
        (
            Plan { screens: vec![table()], ..Plan::observing(Execution::Blocks) },
            ["allocations screen", "Blocks"],
        ),
        (Plan::screening(Screen::Poison(Poison::default())), ["poison screen", "replays"]),
    ] {
        let file = program.write_plan("plan", &plan);
        for option in ["--plan", "--next-plan"] {
            let (code, errors) = program.run(&[option, &file]);
            assert_eq!(code, Some(2), "{errors}");
            assert!(words.iter().all(|word| errors.contains(word)), "{errors}");
        }
    }
    let file = program.folder.path().join("older");
    std::fs::write(&file, r#"{"blocks":true}"#).expect("room");
    let (code, errors) = program.run(&["--plan", &file.to_string_lossy()]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("blocks"), "{errors}");
}
