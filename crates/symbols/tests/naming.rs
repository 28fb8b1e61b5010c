//! Names of bytes: each must lead back to the byte when evaluated.

mod support;

use base::Address;
use support::{Stop, build, stop};
use symbols::{DebugFiles, Level, Program, Register, Scene};

#[test]
fn bytes_are_named_and_names_lead_back() {
    let built = build("values.c", &["-O0", "-g"]);
    let stopped = stop(&built, Stop { place: "stop_here", ..Stop::default() });
    let program = Program::open(stopped.core.modules(), &DebugFiles::default());
    let stack = program.unwind(&stopped.core.registers, &stopped.core);
    let thread_pointer = Some(stopped.core.thread_pointer);
    let scene = Scene { program: &program, memory: &stopped.core, stack: &stack, thread_pointer };
    let level = Level { frame: 1, inlined: 0 };
    let address = |expression: &str| {
        let value = scene.evaluate(level, expression).unwrap_or_else(|e| panic!("{e}"));
        value.held.address().unwrap_or_else(|| panic!("{expression} is not in memory"))
    };
    for (expression, expected) in [
        ("array[2]", "array[2]"),
        ("item->matrix[1][2]", "item->matrix[1][2]"),
        ("item->number.real", "item->number.word"),
        ("item->left", "item->left"),
        ("sized[1]", "sized[1]"),
        ("chain[1].next", "chain[1].next"),
        ("global_count", "global_count"),
        ("table[1].name[3]", "table[1].name[3]"),
        ("calls", "calls"),
        ("middle::result", "middle::result"),
    ] {
        let at = address(expression);
        let names = scene.names_of(level, at);
        let first = names.first().unwrap_or_else(|| panic!("{expression} has no name"));
        assert_eq!(first.expression, expected, "{names:?}");
        assert!(first.range.is_some_and(|range| range.contains(at)), "{names:?}");
        assert_eq!(address(&first.expression), first.range.map(|range| range.start).unwrap());
    }
    // Every byte of what a pointer parameter leads to, in the caller's frame.
    let start = address("*item");
    let item = scene.evaluate(level, "*item").expect("a value");
    for byte in 0..scene.size_of(item.module, &item.ty).expect("a size") {
        let at = Address(start.0 + byte);
        for naming in scene.names_of(level, at) {
            if let Ok(value) = scene.evaluate(level, &naming.expression)
                && let Some(found) = value.held.address()
            {
                let range = naming.range.expect("a range");
                assert!(range.contains(at) && found == range.start, "{naming:?} for {at}");
            }
        }
    }
}

#[test]
fn registers_are_named_by_what_they_hold() {
    let built = build("values.c", &["-O2", "-g"]);
    let stopped = stop(&built, Stop { place: "innermost", ..Stop::default() });
    let program = Program::open(stopped.core.modules(), &DebugFiles::default());
    let stack = program.unwind(&stopped.core.registers, &stopped.core);
    let scene =
        Scene { program: &program, memory: &stopped.core, stack: &stack, thread_pointer: None };
    for (register, expected) in [("rdi", "item"), ("rsi", "count"), ("xmm0", "ratio")] {
        let register = Register::named(register).expect("a register");
        let names = scene.names_of_register(Level::default(), register);
        let names: Vec<_> = names.iter().map(|naming| naming.expression.as_str()).collect();
        assert!(names.contains(&expected), "{register}: {names:?}");
    }
}

#[test]
fn stack_variables_have_their_extents() {
    let built = build("values.c", &["-O0", "-g"]);
    let values = [(2, "&item"), (2, "sizeof(item)"), (1, "&array"), (1, "sizeof(array)")];
    let stopped = stop(&built, Stop { place: "stop_here", skip: 0, values: &values });
    let program = Program::open(stopped.core.modules(), &DebugFiles::default());
    let stack = program.unwind(&stopped.core.registers, &stopped.core);
    let scene =
        Scene { program: &program, memory: &stopped.core, stack: &stack, thread_pointer: None };
    let number = |index: usize| -> u64 {
        let text = &stopped.values[index].2;
        match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).expect("a number"),
            None => text.parse().expect("a number"),
        }
    };
    for (frame, name, row) in [(2, "item", 0), (1, "array", 2)] {
        let objects = scene.stack_objects(Level { frame, inlined: 0 });
        let found = objects.iter().find(|object| object.name == name).expect("the variable");
        assert_eq!(found.range.start.0, number(row));
        assert_eq!(found.range.end.0 - found.range.start.0, number(row + 1));
    }
}
