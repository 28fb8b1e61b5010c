//! Broken files: whatever bits are flipped, nothing panics and nothing hangs. Every question that
//! the crate answers is asked of each broken file.

mod support;

use base::{Address, Range};
use proptest::prelude::*;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use support::build;
use symbols::unwind::StackEnd;
use symbols::{
    DebugFiles, FoundBy, Frame, Image, Level, LoadedModule, Memory, Module, PlaceName, Printing,
    Program, Register, Registers, Scene, Stack,
};

/// A sound program and the parts of it that are worth breaking.
struct Subject {
    bytes: Vec<u8>,
    sections: Vec<(usize, usize)>,
    expressions: &'static [&'static str],
}

const C_VALUES: &[&str] =
    &["*item", "sized", "at->next->key", "table", "per_thread", "words", "&chain[1]", "mode"];
const CPP_VALUES: &[&str] = &["*this", "gem", "first", "rival.name", "shop::box<int>::made"];
const RUST_VALUES: &[&str] = &["shape", "circle", "numbers", "failed", "boxed.0", "GREETING"];

fn subjects() -> &'static [Subject] {
    static SUBJECTS: OnceLock<Vec<Subject>> = OnceLock::new();
    SUBJECTS.get_or_init(|| {
        [
            ("values.c", &["-O2", "-gdwarf-5"][..], C_VALUES),
            ("values.c", &["-O1", "-gdwarf-4", "-fdebug-types-section"], C_VALUES),
            ("values.cpp", &["-O0", "-g"], CPP_VALUES),
            ("values.rs", &["-Cdebuginfo=2", "-Cprefer-dynamic"], RUST_VALUES),
        ]
        .map(|(name, flags, expressions)| subject(name, flags, expressions))
        .into()
    })
}

fn subject(name: &str, flags: &[&str], expressions: &'static [&'static str]) -> Subject {
    let built = build(name, flags);
    let bytes = std::fs::read(&built.program).expect("the program");
    let text =
        support::run(std::process::Command::new("readelf").args(["-S", "-W"]).arg(&built.program));
    let mut sections = vec![(0, 64), (64, 600)];
    for line in text.lines() {
        let line = line.split(']').nth(1).unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [name, _, _, offset, size, ..] = words[..]
            && [".debug", ".eh_frame", ".symtab", ".strtab", ".dynsym", ".rela", ".plt", ".dynamic"]
                .iter()
                .any(|start| name.starts_with(start))
        {
            let number = |digits| usize::from_str_radix(digits, 16).expect("a number");
            sections.push((number(offset), number(size)));
        }
    }
    assert!(sections.len() > 8, "{text}");
    // The table of section headers is at the end.
    sections.push((bytes.len().saturating_sub(1500), 1500));
    sections.retain(|(_, size)| *size > 0);
    Subject { bytes, sections, expressions }
}

/// Memory that is there everywhere, full of words that look like addresses of the program.
struct Everywhere;

impl Memory for Everywhere {
    fn read(&self, address: Address, buffer: &mut [u8]) -> bool {
        for (index, byte) in buffer.iter_mut().enumerate() {
            let at = address.0.wrapping_add(index as u64);
            *byte = [0x40, 0x12, 0, 0, 0, 0, 0, 0][(at % 8) as usize] ^ (at >> 9) as u8 & 0x30;
        }
        address.0 < 1 << 47
    }
}

/// Asks everything; the number of answers that say something.
fn exercise(bytes: Vec<u8>, expressions: &[&str]) -> usize {
    let Ok(image) = Image::from_bytes(Path::new("/nonexistent/broken"), Arc::from(bytes)) else {
        return 0;
    };
    let range = Range::new(0x1000, 0x100_0000);
    let loaded = LoadedModule { path: "/nonexistent/broken".into(), bias: 0, range };
    let module = Module::new(image, &DebugFiles::new([""; 0]));
    let program = Program::of_modules([(loaded, module)]);
    let objects = program.objects(0);
    let owners = objects.iter().take(10).filter_map(|o| program.object_at(o.range.start));
    let owners = owners.count();
    let stops = stops(&program);
    let asked = stops.into_iter().take(60);
    owners + asked.map(|stop| ask(&program, Address(stop), expressions)).sum::<usize>()
}

/// Addresses to ask at: in functions, at places, and anywhere.
fn stops(program: &Program) -> Vec<u64> {
    let functions = program.functions(0);
    let mut stops: Vec<u64> =
        functions.iter().take(40).map(|function| function.entry.0.wrapping_add(9)).collect();
    stops.extend((0x1000..0x2000).step_by(333));
    for name in ["main", "innermost", "look", "shop::item::price", "values.c:60", "values.cpp:60"] {
        let place: PlaceName = name.parse().expect("a place");
        for location in program.resolve(&place).unwrap_or_default().iter().take(4) {
            stops.push(location.address.0);
            let lines = location.ranges.iter().flat_map(|range| program.lines_in(*range));
            stops.extend(lines.take(8).map(|line| line.range.start.0));
        }
    }
    stops.sort_unstable();
    stops.dedup();
    stops
}

fn ask(program: &Program, stop: Address, expressions: &[&str]) -> usize {
    let mut answers = program.symbolise(stop).frames.len()
        + usize::from(program.function_at(stop).is_some())
        + usize::from(program.line_at(stop).is_some());
    let registers =
        Registers::from_encoding_order(&[0x7ffe_0000; 16], stop.0).with_vectors([[0x40; 16]; 16]);
    let unwound = program.unwind_at_most(&registers, &Everywhere, 8);
    let frame = |exact| Frame {
        pc: stop,
        registers: registers.clone(),
        cfa: Some(Address(0x7ffe_0100)),
        found_by: FoundBy::Registers,
        exact,
    };
    let made = Stack { frames: vec![frame(true), frame(false)], end: StackEnd::Lost };
    let level = Level::default();
    for stack in [&unwound, &made] {
        let thread_pointer = Some(Address(0x7ffe_8000));
        let scene = Scene { program, memory: &Everywhere, stack, thread_pointer };
        for local in scene.locals(level).iter().take(30) {
            let printed = scene.print(&scene.value_of(local), &Printing::SHORT);
            answers += usize::from(!printed.starts_with('<')) + scene.known_ranges(local).len();
        }
        for expression in expressions {
            if let Ok(value) = scene.evaluate(level, expression) {
                let printed = scene.print(&value, &Printing::SHORT);
                let name = scene.type_name(value.module, &value.ty);
                answers += usize::from(!printed.is_empty() && !name.is_empty());
            }
        }
        answers += scene.names_of_register(level, Register(0)).len();
    }
    let scene = Scene { program, memory: &Everywhere, stack: &made, thread_pointer: None };
    answers + scene.stack_objects(level).len() + scene.names_of(level, Address(0x7ffe_00f0)).len()
}

#[test]
fn sound_files_answer() {
    for subject in subjects() {
        let answers = exercise(subject.bytes.clone(), subject.expressions);
        assert!(answers > 200, "only {answers} answers");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn broken_files_are_survived(
        which in 0usize..4,
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u32>(), any::<u8>()), 1..24),
    ) {
        let subject = &subjects()[which];
        let mut bytes = subject.bytes.clone();
        for (section, offset, change) in flips {
            let (start, size) = subject.sections[section.index(subject.sections.len())];
            // Small numbers are likely where they matter: sizes, counts, forms, operations.
            if let Some(byte) = bytes.get_mut(start + offset as usize % size) {
                *byte = if change & 1 == 0 { change >> 1 } else { *byte ^ (1 << (change >> 1 & 7)) };
            }
        }
        exercise(bytes, subject.expressions);
    }

    #[test]
    fn cut_files_are_survived(which in 0usize..4, end in any::<prop::sample::Index>()) {
        let subject = &subjects()[which];
        let bytes = subject.bytes[..end.index(subject.bytes.len())].to_vec();
        exercise(bytes, subject.expressions);
    }
}
