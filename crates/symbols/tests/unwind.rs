//! Stacks of real programs, compared frame by frame with gdb's, and stacks of garbage.

mod support;

use base::{Address, Range};
use proptest::prelude::*;
use support::{Built, Stop, Stopped, build, stop};
use symbols::{DebugFiles, FoundBy, LoadedModule, Memory, Program, Registers};

/// Function and line of every frame, inlined ones too, out to `main`.
fn ours(stopped: &Stopped) -> Vec<(String, u32)> {
    let program = Program::open(stopped.core.modules(), &DebugFiles::default());
    let stack = program.unwind(&stopped.core.registers, &stopped.core);
    let mut frames = Vec::new();
    for frame in &stack.frames {
        let place = program.symbolise(frame.code());
        if place.frames.is_empty() {
            frames.push(("?".into(), 0));
        }
        for source in place.frames {
            let line = source.line.map_or(0, |line| line.line);
            frames.push((source.function.unwrap_or_else(|| "?".into()), line));
        }
    }
    frames
}

fn gdbs(stopped: &Stopped) -> Vec<(String, u32)> {
    let frame = |frame: &support::OracleFrame| (frame.function.clone(), frame.line);
    stopped.frames.iter().map(frame).collect()
}

/// Names of libc's own functions differ between symbol tables (several names an address) and its
/// lines are not there; only their number counts.
fn comparable(frames: Vec<(String, u32)>) -> Vec<(String, u32)> {
    let mut out: Vec<(String, u32)> = Vec::new();
    for (name, line) in frames {
        let done = name == "main";
        out.push(if line == 0 { ("library".into(), 0) } else { (name, line) });
        if done {
            break;
        }
    }
    out
}

fn check(built: &Built, at: Stop<'_>) -> Stopped {
    let stopped = stop(built, at);
    let (ours, gdbs) = (comparable(ours(&stopped)), comparable(gdbs(&stopped)));
    assert!(gdbs.len() > 1, "gdb found no stack: {gdbs:?}");
    assert_eq!(ours, gdbs);
    stopped
}

#[test]
fn stacks_are_those_of_gdb() {
    for flags in [
        &["-O0", "-g"][..],
        &["-O2", "-g", "-gdwarf-4"],
        &["-O2", "-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"],
        &["-O1", "-g", "-no-pie", "-fomit-frame-pointer", "-static"],
    ] {
        for kind in ["-DKIND=0", "-DKIND=1", "-DKIND=2"] {
            let built = build("calls.c", &[flags, &[kind]].concat());
            check(&built, Stop { place: "stop_here", ..Stop::default() });
        }
        for kind in ["-DKIND=3", "-DKIND=4"] {
            let built = build("calls.c", &[flags, &[kind]].concat());
            check(&built, Stop::default());
        }
    }
}

#[test]
fn a_call_through_null_says_how_its_caller_was_found() {
    let built = build("calls.c", &["-O0", "-g", "-DKIND=3"]);
    let stopped = check(&built, Stop::default());
    let program = Program::open(stopped.core.modules(), &DebugFiles::default());
    let stack = program.unwind(&stopped.core.registers, &stopped.core);
    assert_eq!(stack.frames[0].pc, Address(0));
    assert_eq!(stack.frames[1].found_by, FoundBy::TopOfStack);
    assert_eq!(stack.frames[2].found_by, FoundBy::CallFrameInfo);
}

#[test]
fn without_rules_the_frame_pointers_are_followed() {
    let flags = ["-O0", "-DKIND=0", "-static", "-fno-asynchronous-unwind-tables"];
    let built = build("calls.c", &flags);
    support::run(
        std::process::Command::new("objcopy")
            .args(["--remove-section=.eh_frame", "--remove-section=.eh_frame_hdr"])
            .arg(&built.program),
    );
    let stopped = stop(&built, Stop { place: "stop_here", ..Stop::default() });
    let program = Program::open(stopped.core.modules(), &DebugFiles::default());
    let stack = program.unwind(&stopped.core.registers, &stopped.core);
    let names: Vec<_> = stack
        .frames
        .iter()
        .filter_map(|frame| program.symbolise(frame.code()).frames.pop()?.function)
        .take(7)
        .collect();
    let expected =
        ["stop_here", "recurse", "recurse", "recurse", "recurse", "alloca_frame", "main"];
    assert_eq!(names, expected);
    assert!(stack.frames[1..6].iter().all(|frame| frame.found_by == FoundBy::FramePointer));
}

#[test]
fn calls_into_the_linkage_table_are_unwound_and_named() {
    let built = build("calls.c", &["-O0", "-g", "-DKIND=4", "-no-pie"]);
    let program_module =
        symbols::Module::open(&built.program, &DebugFiles::default()).expect("a module");
    let stub = program_module
        .symbols()
        .iter()
        .find(|symbol| symbol.name == "abort@plt")
        .expect("a stub for abort");
    let place = format!("*{}", stub.address);
    let stopped = stop(&built, Stop { place: &place, ..Stop::default() });
    let frames = ours(&stopped);
    let names: Vec<_> = frames.iter().map(|(name, _)| name.as_str()).take(3).collect();
    assert_eq!(names, ["abort@plt", "fail", "main"]);
}

/// A stack of chosen words, and the code of this very test program around it.
struct Garbage {
    base: u64,
    words: Vec<u64>,
}

impl Memory for Garbage {
    fn read(&self, address: Address, buffer: &mut [u8]) -> bool {
        buffer.iter_mut().enumerate().all(|(index, slot)| {
            let at = address.0.wrapping_add(index as u64).wrapping_sub(self.base);
            let word = self.words.get(usize::try_from(at / 8).unwrap_or(usize::MAX));
            *slot = word.map_or(0, |word| word.to_le_bytes()[(at % 8) as usize]);
            word.is_some()
        })
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever is on the stack, unwinding ends, moves up the stack and stays in it.
    #[test]
    fn garbage_is_survived(
        words in prop::collection::vec(
            prop_oneof![any::<u64>(), 0x10_0000u64..0x80_0000, 0x7000_0000u64..0x7000_2000],
            1..600,
        ),
        rip in prop_oneof![any::<u64>(), 0x10_0000u64..0x80_0000],
        registers in prop::array::uniform16(
            prop_oneof![any::<u64>(), 0x7000_0000u64..0x7000_2000],
        ),
    ) {
        let path = std::env::current_exe().expect("this program");
        let modules = [LoadedModule { path, bias: 0, range: Range::new(0x10_0000, 0x70_0000) }];
        let program = Program::open(modules, &DebugFiles::new([""; 0]));
        let memory = Garbage { base: 0x7000_0000, words };
        let mut registers = registers;
        registers[4] = 0x7000_0000;
        let registers = Registers::from_encoding_order(&registers, rip);
        let stack = program.unwind(&registers, &memory);
        prop_assert!(stack.frames.len() <= memory.words.len() + 2);
    }
}
