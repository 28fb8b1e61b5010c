//! Places, lines and functions, compared with gdb, addr2line, readelf and nm.

mod support;

use base::{Address, Range};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use support::{Built, build, run};
use symbols::{DebugFiles, LoadedModule, PlaceName, Program};

/// The program as if loaded where its file says.
fn unloaded(path: &Path) -> Program {
    let module =
        LoadedModule { path: path.into(), bias: 0, range: Range::new(0x1000, 0x1000_0000) };
    Program::open([module], &DebugFiles::new([""; 0]))
}

fn addresses(program: &Program, place: &str) -> BTreeSet<u64> {
    let place: PlaceName = place.parse().expect("a place");
    let found = program.resolve(&place).unwrap_or_else(|error| panic!("{place}: {error}"));
    found.iter().map(|location| location.address.0).collect()
}

/// Where gdb puts its breakpoints for a place.
fn breakpoints(built: &Built, place: &str) -> BTreeSet<u64> {
    let text = run(Command::new("gdb")
        .args(["-batch", "-nx", "-ex", &format!("break {place}"), "-ex", "info breakpoints"])
        .arg(&built.program));
    let word = |line: &str| {
        let at = line.find("0x0000")?;
        let digits = line[at + 2..].split_whitespace().next()?;
        u64::from_str_radix(digits, 16).ok()
    };
    let places: BTreeSet<u64> = text.lines().filter_map(word).collect();
    assert!(!places.is_empty(), "{place}: {text}");
    places
}

const PLACES: [&str; 16] = [
    "main",
    "loops",
    "second",
    "shop::add",
    "add",
    "shop::twice",
    "shop::counter::step",
    "step",
    "places.cpp:6",
    "places.cpp:7",
    "places.cpp:8",
    "places.cpp:12",
    "places.cpp:29",
    "places.cpp:32",
    "places.cpp:34",
    "programs/places.cpp:30",
];

#[test]
fn places_are_where_gdb_stops() {
    for flags in [&["-O0", "-g"][..], &["-O0", "-gdwarf-4"]] {
        let built = build("places.cpp", flags);
        let program = unloaded(&built.program);
        for place in PLACES {
            assert_eq!(addresses(&program, place), breakpoints(&built, place), "{place} {flags:?}");
        }
    }
}

#[test]
fn places_of_optimised_code_hold_what_gdb_stops_at() {
    let built = build("places.cpp", &["-O2", "-g"]);
    let program = unloaded(&built.program);
    for place in ["main", "loops", "second", "shop::add", "places.cpp:12", "places.cpp:34"] {
        let name: PlaceName = place.parse().expect("a place");
        let ours = program.resolve(&name).expect("code");
        for stop in breakpoints(&built, place) {
            let held = ours.iter().any(|location| {
                location.address.0 == stop
                    || location.ranges.iter().any(|range| range.contains(Address(stop)))
            });
            assert!(held, "{place}: gdb stops at {stop:#x}, ours {ours:?}");
        }
    }
}

#[test]
fn places_that_do_not_exist_say_what_does() {
    let built = build("places.cpp", &["-O0", "-g"]);
    let program = unloaded(&built.program);
    for (place, expected) in [
        ("lops", "the program has no function 'lops'; did you mean 'loops'?"),
        ("places.cpp:4000", "places.cpp:4000 has no code; the last line that has is 44"),
        ("place.cpp:3", "the program has no source file 'place.cpp'; did you mean 'places.cpp'?"),
        ("*0x10", "there is no code at 0x10"),
    ] {
        let name: PlaceName = place.parse().expect("a place");
        let error = program.resolve(&name).expect_err(place);
        assert_eq!(error.to_string(), expected);
    }
    run(Command::new("strip").arg(&built.program));
    let stripped = unloaded(&built.program);
    let error = stripped.resolve(&"places.cpp:3".parse().expect("a place")).expect_err("no lines");
    assert!(error.to_string().starts_with("the program has no debug information"), "{error}");
}

/// Every address of the line table: function and line as binutils' addr2line has them.
#[test]
fn every_line_is_that_of_addr2line() {
    for (name, flags) in [
        ("places.cpp", &["-O2", "-gdwarf-5"][..]),
        ("values.c", &["-O2", "-gdwarf-4"]),
        ("values.cpp", &["-O1", "-g"]),
        ("values.rs", &["-Copt-level=2", "-Cdebuginfo=2"]),
    ] {
        let built = build(name, flags);
        let program = unloaded(&built.program);
        let mut wanted = BTreeSet::new();
        for function in program.functions(0).iter().filter(|function| function.debug_info) {
            for range in &function.ranges {
                wanted.extend(program.lines_in(*range).iter().map(|line| line.range.start.0));
            }
        }
        let wanted: Vec<u64> = wanted.into_iter().take(3000).collect();
        assert!(wanted.len() > 20, "{name}: only {} addresses", wanted.len());
        let list: String = wanted.iter().map(|address| format!("{address:#x}\n")).collect();
        let file = built.folder.path().join("addresses");
        std::fs::write(&file, list).expect("a list");
        let text = run(Command::new("addr2line")
            .args(["-a", "-i", "-e"])
            .arg(&built.program)
            .stdin(std::fs::File::open(&file).expect("a list")));
        let expected = by_address(&text);
        for address in wanted {
            let ours: Vec<String> = program
                .symbolise(Address(address))
                .frames
                .iter()
                .map(|frame| match &frame.line {
                    Some(line) => format!("{}:{}", base_name(&line.file), line.line),
                    None => "??:?".into(),
                })
                .collect();
            assert_eq!(ours, expected[&address], "{name} {address:#x}");
        }
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// `FILE:LINE` of each call at each address, in addr2line's output.
fn by_address(text: &str) -> BTreeMap<u64, Vec<String>> {
    let mut map: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    let mut at = 0;
    for line in text.lines() {
        if let Some(digits) = line.strip_prefix("0x") {
            at = u64::from_str_radix(digits, 16).expect("an address");
            map.entry(at).or_default();
        } else {
            let place = line.split(" (disc").next().unwrap_or(line);
            let known = !place.ends_with(":?") && !place.ends_with(":0");
            let place = if known { base_name(place) } else { "??:?" };
            map.entry(at).or_default().push(place.into());
        }
    }
    map
}

/// Statement starts as readelf decodes the line table.
#[test]
fn statements_begin_where_readelf_says() {
    let built = build("places.cpp", &["-O1", "-g"]);
    let program = unloaded(&built.program);
    let text = run(Command::new("readelf").arg("--debug-dump=decodedline").arg(&built.program));
    let mut expected: BTreeSet<(u64, u32)> = BTreeSet::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [_, number, address, rest @ ..] = &words[..]
            && rest.contains(&"x")
            && let Ok(number) = number.parse()
            && let Some(digits) = address.strip_prefix("0x")
        {
            expected.insert((u64::from_str_radix(digits, 16).expect("an address"), number));
        }
    }
    let mut ours = BTreeSet::new();
    for function in program.functions(0).iter().filter(|function| function.debug_info) {
        for range in &function.ranges {
            for line in program.lines_in(*range).iter().filter(|line| line.statement) {
                ours.insert((line.range.start.0, line.line.line));
            }
        }
    }
    assert!(expected.len() > 20);
    assert_eq!(ours, expected);
}

#[test]
fn functions_and_objects_are_those_of_nm() {
    for (name, flags) in [("values.c", &["-O2", "-g"][..]), ("values.c", &["-O0"])] {
        let built = build(name, flags);
        let program = unloaded(&built.program);
        let text = run(Command::new("nm").args(["-S", "--defined-only"]).arg(&built.program));
        let functions = program.functions(0);
        let objects = program.objects(0);
        let mut checked = 0;
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [address, size, kind, name] = words[..] else { continue };
            let number = |digits| u64::from_str_radix(digits, 16).expect("a number");
            let range = Range::new(number(address), number(size));
            match kind {
                "T" | "t" => {
                    let found = functions.iter().find(|function| function.entry == range.start);
                    let found = found.unwrap_or_else(|| panic!("{name} is missing"));
                    assert_eq!((found.name.as_str(), found.ranges[0]), (name, range));
                    checked += 1;
                }
                "D" | "d" | "B" | "b" | "R" if !name.contains("per_thread") => {
                    let found = objects.iter().find(|object| object.range.start == range.start);
                    let found = found.unwrap_or_else(|| panic!("{name} is missing"));
                    assert_eq!(found.range, range, "{name}");
                    let last = Address(range.end.0 - 1);
                    assert_eq!(program.object_at(last).as_ref(), Some(found), "{name}");
                    checked += 1;
                }
                _ => {}
            }
        }
        assert!(checked > 10, "only {checked} symbols");
    }
}
