//! Control that was led astray: reported at the store that did it, by default; and programs that send their
//! control to unusual places on purpose, of which nothing is reported.

mod support;

use serde_json::Value;
use std::path::Path;
use support::{build_file, errors, root, run, text};

/// The kind of finding, and the ways of `hijack/ways.c` that it is found for.
const WAYS: [(&str, &[&str]); 4] = [
    (
        "overwritten-return-address",
        &[
            "return-store",
            "return-index",
            "return-memcpy",
            "return-strcpy",
            "return-memset",
            "return-read",
            "return-byte",
            "return-caller",
            "return-loop",
            "return-snprintf",
            "return-nowhere",
            "return-noncanonical",
        ],
    ),
    ("overwritten-frame-pointer", &["frame-store", "frame-memcpy", "frame-pivot"]),
    (
        "overwritten-code-pointer",
        &[
            "pointer-stack",
            "pointer-data",
            "pointer-bss",
            "pointer-heap",
            "pointer-table",
            "pointer-linked",
            "pointer-end",
            "pointer-registered",
        ],
    ),
    ("overwritten-jump-buffer", &["jump-static", "jump-local"]),
];

/// Kinds and lines of what was found about control.
fn found(program: &Path, arguments: &[&str]) -> (Vec<(String, u64)>, String) {
    let program = program.to_str().expect("a path");
    let output = run(&[&["run", "--json", "--", program], arguments].concat());
    let said = text(&output);
    // What the program itself prints comes first.
    let start = said.find('{').unwrap_or_else(|| panic!("{said}\n{}", errors(&output)));
    let report: Value = serde_json::from_str(&said[start..])
        .unwrap_or_else(|error| panic!("{error}: {said}\n{}", errors(&output)));
    let findings = report["findings"].as_array().expect("findings").iter();
    let about = findings.filter_map(|finding| {
        let kind = finding["kind"].as_str()?.to_owned();
        let line = finding["place"]["line"].as_u64().unwrap_or(0);
        kind.starts_with("overwritten-").then_some((kind, line))
    });
    (about.collect(), said)
}

#[test]
fn the_store_that_led_control_astray_is_reported() {
    let source = root().join("tests/programs/hijack/ways.c");
    let program = build_file(
        &source,
        "hijack-ways",
        &[
            "-g",
            "-w",
            "-O0",
            "-fno-stack-protector",
            "-no-pie",
            "-D_FORTIFY_SOURCE=0",
            "-Wl,-z,norelro,-z,lazy",
        ],
    );
    let lines = std::fs::read_to_string(&source).expect("the source");
    let mut wrong = Vec::new();
    for (kind, ways) in WAYS {
        for way in ways {
            let at = lines.lines().position(|line| line.ends_with(&format!("// {way}")));
            let expected = (kind.to_owned(), at.expect("a marked line") as u64 + 1);
            let (all, said) = found(&program, &[way]);
            if all != [expected.clone()] {
                wrong.push(format!("{way}: {all:?} in place of {expected:?}\n{said}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn control_that_goes_to_unusual_places_on_purpose_is_not_reported() {
    let programs: [(&str, &[&str]); 12] = [
        ("flow_calls.c", &["-O1"]),
        ("flow_contexts.c", &["-O1"]),
        ("flow_coroutines.S", &["-nostdlib", "-static"]),
        ("flow_exceptions.cpp", &["-O1"]),
        ("flow_interpreter.c", &["-O1"]),
        ("flow_return_stack.c", &["-O1"]),
        ("flow_returns.S", &["-nostdlib", "-static"]),
        ("jit_simple.c", &["-O1"]),
        ("jit_stack.c", &["-O1"]),
        ("hello.c", &["-O0"]),
        ("cpu_ifunc.c", &["-O1"]),
        ("die_segv.c", &["-O1"]),
    ];
    for (name, flags) in programs {
        let source = root().join("tests/programs").join(name);
        let head = std::fs::read_to_string(&source).expect("the source");
        // How it is built says its head.
        let built = head.lines().find_map(|line| {
            line.trim_start_matches(['/', '#', ' ']).strip_prefix("build:").map(str::to_owned)
        });
        let own: Vec<&str> = built.as_deref().map_or(flags.to_vec(), |it| it.split(' ').collect());
        let own: Vec<&str> = own.into_iter().filter(|flag| !flag.is_empty()).collect();
        let program = build_file(&source, &format!("hijack-{name}"), &[&["-g"], &own[..]].concat());
        let (all, said) = found(&program, &[]);
        assert!(all.is_empty(), "{name}: {all:?}\n{said}");
    }
}
