//! Values of real programs at a stop, compared with gdb's reading of the same moment.

mod support;

use support::canonical::canonical;
use support::{Stop, Stopped, build, stop};
use symbols::{DebugFiles, Level, Lost, Printing, Program, Scene, Stack};

/// A stopped program that can be asked.
struct Asked {
    stopped: Stopped,
    program: Program,
    stack: Stack,
}

impl Asked {
    fn new(stopped: Stopped) -> Self {
        let program = Program::open(stopped.core.modules(), &DebugFiles::default());
        let stack = program.unwind(&stopped.core.registers, &stopped.core);
        Self { stopped, program, stack }
    }

    fn scene(&self) -> Scene<'_> {
        Scene {
            program: &self.program,
            memory: &self.stopped.core,
            stack: &self.stack,
            thread_pointer: Some(self.stopped.core.thread_pointer),
        }
    }

    /// The call that gdb calls frame number `number`: inlined ones count.
    fn level(&self, number: usize) -> Level {
        self.scene().calls()[number].level
    }

    fn canonical(&self, number: usize, expression: &str) -> String {
        let scene = self.scene();
        match scene.evaluate(self.level(number), expression) {
            Ok(value) => canonical(&scene, &value),
            Err(error) => format!("<error: {error}>"),
        }
    }

    fn print(&self, number: usize, expression: &str) -> String {
        let scene = self.scene();
        match scene.evaluate(self.level(number), expression) {
            Ok(value) => scene.print(&value, &Printing::default()),
            Err(error) => format!("<error: {error}>"),
        }
    }
}

/// Stops the program and compares all values with gdb's.
fn check(name: &str, flags: &[&str], values: &[(usize, &str)]) -> Asked {
    check_with(name, flags, values, &[])
}

/// The same, given what the values are for sure.
fn check_with(
    name: &str,
    flags: &[&str],
    values: &[(usize, &str)],
    truth: &[(usize, String, String)],
) -> Asked {
    let built = build(name, flags);
    let asked = Asked::new(stop(&built, Stop { place: "stop_here", skip: 0, values }));
    assert_eq!(asked.stopped.values.len(), values.len());
    let mut differences = Vec::new();
    for (level, expression, expected) in &asked.stopped.values {
        let ours = asked.canonical(*level, expression);
        let lost = expected.contains("optimi") && ours.contains("optimised out");
        // gdb follows arguments through fewer calls; what we know must then be the truth.
        let truth = truth.iter().find(|row| row.1 == *expression).map(|row| &row.2);
        let known = expected.contains("optimi") && truth == Some(&ours);
        if ours != *expected && !known && !lost {
            differences.push(format!("#{level} {expression}: gdb {expected}, ours {ours}"));
        }
    }
    assert!(differences.is_empty(), "{name} {flags:?}:\n{}", differences.join("\n"));
    asked
}

/// Frame numbers: 0 `stop_here`, 1 `innermost`, 2 `middle`, 3 `main`.
const C_VALUES: [(usize, &str); 61] = [
    (1, "count"),
    (1, "ratio"),
    (1, "tag"),
    (1, "local"),
    (1, "array"),
    (1, "array[3]"),
    (1, "sized"),
    (1, "sized[2]"),
    (1, "at"),
    (1, "at->key"),
    (1, "at->next->key"),
    (1, "*at->next->next"),
    (1, "at->next[1].key"),
    (1, "wide"),
    (1, "narrow"),
    (1, "small"),
    (1, "large"),
    (1, "mode"),
    (1, "calls"),
    (1, "*item"),
    (1, "item->name"),
    (1, "item->number.bytes[3]"),
    (1, "item->left"),
    (1, "item->bits.low"),
    (1, "item->bits.middle"),
    (1, "item->bits.high"),
    (1, "item->bits.flag"),
    (1, "item->matrix[1][2]"),
    (1, "item->matrix[1]"),
    (1, "*item->title"),
    (1, "item->title[2]"),
    (1, "item->color"),
    (2, "item"),
    (2, "&item"),
    (2, "&item.number.bytes[1]"),
    (2, "item.title"),
    (2, "depth"),
    (3, "argc"),
    (3, "argv[0][0]"),
    (1, "global_count"),
    (1, "hidden_total"),
    (1, "words"),
    (1, "chain"),
    (1, "chain[1].next->key"),
    (1, "table[1].bits"),
    (1, "table"),
    (1, "&table[1].matrix[0][2]"),
    (1, "innermost::calls"),
    (2, "innermost::calls + 1"),
    (1, "(long)small"),
    (1, "(unsigned char)small"),
    (1, "(char)large"),
    (1, "(struct node *)&chain[1]"),
    (1, "((struct node *)item)->key"),
    (1, "at + 1"),
    (1, "&chain[2] - at"),
    (1, "count * 2 + array[1] % 2"),
    (1, "ratio / 2"),
    (1, "at == &chain[0] && count != 3"),
    (1, "sizeof(*item)"),
    (0, "sink"),
];

#[test]
fn c_values_are_those_of_gdb() {
    for flags in [&["-O0", "-gdwarf-5"][..], &["-O0", "-gdwarf-4"], &["-O0", "-g", "-static"]] {
        let asked = check("values.c", flags, &C_VALUES);
        // gdb cannot read thread-locals of static programs.
        assert_eq!(asked.print(1, "per_thread"), "100", "{flags:?}");
    }
    check("values.c", &["-O0", "-g"], &[(1, "per_thread")]);
}

#[test]
fn optimised_c_values_are_those_of_gdb() {
    let truth = check("values.c", &["-O0", "-g"], &C_VALUES);
    for flags in [&["-O2", "-gdwarf-5"][..], &["-O2", "-gdwarf-4"], &["-O1", "-g"]] {
        check_with("values.c", flags, &C_VALUES, &truth.stopped.values);
    }
}

const CPP_VALUES: [(usize, &str); 24] = [
    (1, "factor"),
    (1, "result"),
    (1, "this->id"),
    (1, "id"),
    (1, "weight"),
    (1, "rank"),
    (1, "inside"),
    (1, "inside.content"),
    (1, "reference"),
    (1, "rival.id"),
    (1, "rival.weight"),
    (1, "shop::open_count"),
    (1, "open_count"),
    (1, "shop::item::total"),
    (1, "shop::box<int>::made"),
    (1, "gem.d"),
    (1, "gem.deep"),
    (1, "gem.l"),
    (1, "gem"),
    (1, "sink"),
    (2, "price"),
    (2, "first.id"),
    (2, "second.weight"),
    (1, "*this"),
];

#[test]
fn cpp_values_are_those_of_gdb() {
    for flags in [&["-O0", "-gdwarf-5"][..], &["-O0", "-gdwarf-4", "-fdebug-types-section"]] {
        let asked = check("values.cpp", flags, &CPP_VALUES);
        assert_eq!(asked.print(2, "first.name"), "\"lamp\"");
        assert_eq!(asked.print(1, "rival.name"), "\"a name that is too long to be kept in place\"");
        assert_eq!(asked.print(2, "first.sizes"), "{3, 1, 4, 1, 5}");
        assert_eq!(asked.print(2, "first.sizes[2]"), "4");
        assert_eq!(asked.print(1, "rank"), "high");
        assert_eq!(asked.print(1, "hidden_count"), "4");
    }
    check("values.cpp", &["-O2", "-g"], &CPP_VALUES[..3]);
}

#[test]
fn rust_values_print_as_rust() {
    for flags in [&["-g", "-Cdebuginfo=2"][..], &["-Cdebuginfo=2", "-Cdwarf-version=5"]] {
        let built = build("values.rs", flags);
        let asked = Asked::new(stop(&built, Stop { place: "stop_here", ..Stop::default() }));
        let scene = asked.scene();
        let look = scene
            .calls()
            .iter()
            .position(|call| call.function.as_deref().is_some_and(|name| name.ends_with("look")));
        let look = look.expect("the function that was stopped");
        for (expression, expected) in [
            ("some", "Some(5)"),
            ("none", "None"),
            ("nothing", "None"),
            ("circle", "Circle(Point {x: 1, y: -2}, 0.5)"),
            ("empty", "Empty"),
            ("tuple", "(1, -2, 'é', true)"),
            ("tuple.1", "-2"),
            ("pair", "Pair(3, 'z')"),
            ("array", "[Point {x: 4, y: 5}, Point {x: 6, y: 7}]"),
            ("array[1].y", "7"),
            ("failed", "Err(\"bad\")"),
            ("*shape", "Named {name: \"box\", sides: [10, 20, 30]}"),
            ("shape.sides[1]", "20"),
            ("shape.name", "\"box\""),
            ("numbers", "[1, -2]"),
            ("numbers[1]", "-2"),
            ("word", "\"wörd\""),
            ("GREETING", "\"hello\""),
            ("COUNTER", "7"),
            ("circle.Circle.0.y", "-2"),
            ("boxed.0", ""),
        ] {
            let printed = asked.print(look, expression);
            if expression == "boxed.0" {
                assert!(printed.starts_with("0x"), "{printed}");
            } else {
                assert_eq!(printed, expected, "{expression}");
            }
        }
        assert_eq!(asked.print(look, "*boxed.0"), "9");
    }
}

#[test]
fn printed_values_read_like_the_source() {
    let built = build("values.c", &["-O0", "-g"]);
    let asked = Asked::new(stop(&built, Stop { place: "stop_here", ..Stop::default() }));
    for (number, expression, expected) in [
        (1, "tag", "120 'x'"),
        (1, "mode", "READ | RUN"),
        (1, "item->color", "BLUE"),
        (1, "item->name", "\"middle\""),
        (1, "item->bits", "{low = 5, middle = -9, high = 123456789012, flag = true}"),
        (1, "chain[2]", "{key = 3, next = 0x0}"),
        (1, "narrow", "1.75"),
        (1, "table[0].matrix", "{{0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}}"),
        (1, "local", "1000"),
        (1, "$rsp == $rsp", "1"),
        (1, "[&array[1],4]", "2"),
    ] {
        assert_eq!(asked.print(number, expression), expected, "{expression}");
    }
    assert!(asked.print(1, "item->title").ends_with(" \"beta\""));
    assert!(asked.print(1, "item->function").ends_with(" <twice>"));
    assert!(asked.print(1, "at").ends_with(" <chain>"));
}

#[test]
fn mistakes_are_answered_with_what_was_meant() {
    let built = build("values.c", &["-O0", "-g"]);
    let asked = Asked::new(stop(&built, Stop { place: "stop_here", ..Stop::default() }));
    for (expression, expected) in [
        ("cuont", "there is no variable 'cuont' here; did you mean 'count'?"),
        ("globl_count", "there is no variable 'globl_count' here; did you mean 'global_count'?"),
        ("zebra", "there is no variable 'zebra' here"),
        ("item->nmae", "'record' has no member 'nmae'; did you mean 'name'?"),
        ("(struct nod *)at", "there is no type 'nod'; did you mean 'node'?"),
        ("count->key", "cannot take a member of 'count', which is of type 'int'"),
        ("*count", "cannot follow 'count', which is of type 'int'"),
        ("count[1]", "cannot take an element of 'count', which is of type 'int'"),
        ("1 / 0", "a division by zero has no value"),
        ("at->next->next->next->key", "<memory at 0x0 cannot be read>"),
    ] {
        let printed = match asked.scene().evaluate(asked.level(1), expression) {
            Err(error) => error.to_string(),
            Ok(value) => asked.scene().print(&value, &Printing::default()),
        };
        assert!(printed.contains(expected), "{expression}: {printed}");
    }
}

#[test]
fn what_is_optimised_out_says_so_and_where_it_was() {
    let built = build("lost.c", &["-O2", "-g"]);
    let asked = Asked::new(stop(&built, Stop { place: "stop_here", ..Stop::default() }));
    let scene = asked.scene();
    let locals = scene.locals(asked.level(1));
    let lost = locals.into_iter().find(|variable| variable.name == "doomed");
    let lost = lost.expect("the variable that is dropped before the call");
    assert_eq!(scene.value_of(&lost).held.why_lost(), Some(&Lost::OptimisedOut));
    let error = scene.evaluate(asked.level(1), "doomed + 1").expect_err("no value");
    assert_eq!(error.to_string(), "'doomed' is not to be had: optimised out");
    assert_eq!(scene.print(&scene.value_of(&lost), &Printing::default()), "<optimised out>");
    let ranges = scene.known_ranges(&lost);
    assert!(ranges.iter().any(|range| range.register.is_some()), "{lost:?}: {ranges:?}");
}
