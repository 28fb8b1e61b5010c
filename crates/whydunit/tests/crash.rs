//! Crashes of real programs: what is said of the cause, the place and the stack.

mod support;

use support::{assert_in_order, build, errors, run, text};

/// Runs a program and checks parts of the report, in order, and the exit code.
fn check(program: &std::path::Path, arguments: &[&str], parts: &[&str]) -> String {
    let program = program.to_string_lossy();
    let words = [&["run", "--rules", "none", "--", &program], arguments].concat();
    let output = run(&words);
    let report = errors(&output);
    assert_eq!(output.status.code(), Some(1), "{words:?}\n{report}");
    assert_in_order(&report, parts);
    report
}

/// Kind, cause, and what else must be told. All have debug information.
const KINDS: &[(&str, &str, &[&str])] = &[
    (
        "null_read",
        "SIGSEGV: it read 4 bytes at 0x0, a null pointer",
        &["`mov eax, [rax]`", "pointer = 0x0"],
    ),
    (
        "null_member",
        "SIGSEGV: it wrote 8 bytes at 0x8, close to zero",
        &["`mov [rax+8], rdx`", "rax = 0x0", "node = 0x0"],
    ),
    (
        "null_call",
        "SIGSEGV: it jumped to 0x0, a call through a null",
        &["no instruction at 0x0", "#0 0x0, where no file"],
    ),
    ("wild_read", "SIGSEGV: it read 1 byte at 0x123456789000, where nothing is mapped", &[]),
    ("read_only", "SIGSEGV: it wrote 1 byte at 0x", &["where the memory is read-only (/"]),
    ("no_access", "SIGSEGV: it wrote 1 byte at 0x", &["where no access is allowed"]),
    ("execute_data", "SIGSEGV: it jumped to 0x", &["where the memory may not be executed"]),
    ("not_canonical", "SIGSEGV: it used 0xdeadbeefdeadbeef as a pointer, which is no address", &[]),
    (
        "misaligned",
        "SIGSEGV: its instruction needs an address aligned to 16 bytes",
        &["`movaps xmm0, [rax+8]`"],
    ),
    ("privileged", "SIGSEGV: it executed an instruction that only the kernel may", &["`hlt`"]),
    ("divide_by_zero", "SIGFPE: it divided an integer by zero", &["`idiv ecx`"]),
    (
        "divide_too_large",
        "SIGFPE: it divided integers and the quotient is too large",
        &["smallest = -2147483648"],
    ),
    ("unreachable", "SIGILL: it executed `ud2`", &[]),
    ("breakpoint", "SIGTRAP: it reached a breakpoint instruction", &["`int3`"]),
    ("behind_file", "SIGBUS: it used address 0x", &["behind the end of /tmp/whydunit-crash-"]),
    ("aborts", "SIGABRT: it called abort", &["abort"]),
    ("asserts", "SIGABRT: an assertion failed", &["assert_fail"]),
    (
        "mid_instruction",
        "SIGSEGV: it came into the middle of an instruction of spans, by a damaged return address",
        &["`mov eax, [rax]`"],
    ),
    ("malloc_gives_up", "SIGABRT: the C library found the heap damaged inside malloc", &[]),
    ("frees_twice", "SIGABRT: the C library found the heap damaged inside ", &["free"]),
    ("raises", "SIGSEGV: the program sent it to itself", &["raise"]),
    ("copies", "SIGSEGV: it wrote 32 bytes at 0x40, close to zero", &["rdi = 0x40"]),
    ("large_frame", "SIGSEGV: its stack of 8 MiB is full", &[]),
];

/// Lines of the longest function of `kinds.c`.
const LONGEST: usize = 8;

/// The line that a report is about.
fn place_line(report: &str) -> usize {
    let (_, rest) = report.split_once("\n  at tests/programs/crash/kinds.c:").expect("a place");
    rest.split(' ').next().and_then(|line| line.parse().ok()).expect("a line")
}

/// The line of `kinds.c` that defines a function.
fn line_of(function: &str) -> usize {
    let source = std::fs::read_to_string(support::root().join("tests/programs/crash/kinds.c"));
    let source = source.expect("the source");
    let defined =
        source.lines().position(|line| line.starts_with(&format!("static void {function}(void)")));
    defined.expect("a definition") + 1
}

#[test]
fn every_kind_of_crash_has_its_cause_place_and_stack() {
    for (name, flags) in [("kinds", &["-g", "-O0"][..]), ("kinds-fixed", &["-g", "-O0", "-no-pie"])]
    {
        let program = build("kinds.c", name, flags);
        for (kind, cause, more) in KINDS {
            let title = format!("whydunit: {name} was ended by {cause}");
            let report = check(&program, &[kind], &[&title]);
            assert_in_order(&report, more);
            let (line, first) = (place_line(&report), line_of(kind));
            assert!((first..first + LONGEST).contains(&line), "{kind} is not at line {line}");
            let parts = [
                "at tests/programs/crash/kinds.c:",
                &format!("({kind})"),
                &format!("\n  > {line:>5} | "),
                &format!("{kind} at tests/programs/crash/kinds.c:{line}"),
                "outer(kind=0x",
                "<kinds",
                "main(argc=2, argv=0x",
            ];
            assert_in_order(&report, &parts);
            // Where a signal was sent the registers are those of whoever sent it.
            let faulted = !cause.starts_with("SIGABRT") && *kind != "raises";
            assert_eq!(report.contains("  registers\n"), faulted, "{kind}:\n{report}");
        }
    }
}

#[test]
fn without_debug_information_symbols_and_files_remain() {
    let member = "SIGSEGV: it wrote 8 bytes at 0x8, close to zero";
    let plain = build("kinds.c", "kinds-plain", &["-O0"]);
    let parts = [
        member,
        "at null_member (*0x",
        "`mov [rax+8], rdx`",
        "#0 null_member+0x",
        " in kinds-plain+0x",
        "#1 outer+0x",
        "#2 main+0x",
        "kinds-plain has no debug information: build it with -g",
    ];
    check(&plain, &["null_member"], &parts);
    let statically = build("kinds.c", "kinds-static", &["-O0", "-static"]);
    check(
        &statically,
        &["null_member"],
        &[member, "#0 null_member+0x", "#1 outer+0x", "#2 main+0x", "_start+0x"],
    );
    let stripped = build("kinds.c", "kinds-stripped", &["-O0", "-s"]);
    let parts = [
        member,
        "at *0x",
        "#0 0x",
        " in kinds-stripped+0x",
        "#2 0x",
        "kinds-stripped has neither symbols nor debug information: build it with -g",
    ];
    check(&stripped, &["null_member"], &parts);
    check(
        &stripped,
        &["asserts"],
        &["SIGABRT: an assertion failed", "at *0x", "kinds-stripped has neither"],
    );
    let both = build(
        "kinds.c",
        "kinds-bare",
        &["-O0", "-s", "-static", "-fno-asynchronous-unwind-tables", "-fno-omit-frame-pointer"],
    );
    check(
        &both,
        &["divide_by_zero"],
        &["SIGFPE: it divided an integer by zero", "#0 0x", "#1 0x", "#2 0x", "registers"],
    );
}

#[test]
fn frame_pointers_lead_on_where_call_frame_information_is_missing() {
    let flags =
        ["-g", "-O0", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-exceptions"];
    let program = build("kinds.c", "kinds-pointers", &flags);
    check(&program, &["null_member"], &["#0 null_member at", "#1 outer(kind=", "#2 main(argc=2"]);
}

#[test]
fn a_full_stack_shows_the_recursion_folded() {
    let program = build("kinds.c", "kinds-deep", &["-g", "-O0"]);
    let full = "SIGSEGV: its stack of 8 MiB is full: endless recursion";
    check(
        &program,
        &["recursion"],
        &[full, "#1 recurses(depth=", "… the same call again, ", "… and more, further up"],
    );
    check(&program, &["mutual"], &[full, "… these 2 calls again, "]);
    for kind in ["recursion", "mutual"] {
        let report = check(&program, &[kind], &[]);
        assert!(report.lines().count() < 40, "more than a screen:\n{report}");
    }
}

#[test]
fn a_ruined_stack_is_reported_as_such() {
    let program = build("kinds.c", "kinds-ruined", &["-g", "-O0"]);
    let parts = [
        "at 0x10, close to zero",
        "#0 lost_stack at",
        "… its caller could not be found",
        "rsp 0000000000005000",
    ];
    check(&program, &["lost_stack"], &parts);
    check(&program, &["stack_at_top"], &["#0 stack_at_top at", "rsp fffffffffffffff0"]);
    check(
        &program,
        &["overwrites_return"],
        &["its return address was overwritten", "`ret`", "rbp 4141414141414141"],
    );
}

#[test]
fn a_smashed_frame_is_found_by_its_guard() {
    let program = build("kinds.c", "kinds-smashed", &["-g", "-O0", "-fstack-protector-all"]);
    let cause = "SIGABRT: a function found its stack frame overwritten";
    check(&program, &["smashes"], &[cause, "(smashes)", "buffer = \"xxxx", "smashes at", "outer("]);
}

#[test]
fn a_thread_is_named() {
    let program = build("thread.c", "thread", &["-g", "-O0", "-pthread"]);
    let parts = [
        "it read 4 bytes at 0x0",
        "thread.c:13 (work)",
        "in a thread that is not the first (bookkeeper)",
        "#0 work(job=0x",
        "#1 worker(job=0x",
    ];
    check(&program, &[], &parts);
}

/// Where the run is recorded, threads have the numbers that other commands take.
#[test]
fn a_thread_has_its_number() {
    let program = build("thread.c", "thread-numbered", &["-g", "-O0", "-pthread"]);
    let output = run(&["run", "--", &program.to_string_lossy()]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("in thread 2 (bookkeeper)"), "{told}");
}

#[test]
fn the_stack_goes_on_through_a_signal_handler() {
    let program = build("handler.c", "handler", &["-g", "-O0"]);
    let parts =
        ["#0 on_signal(number=10) at", "(a signal arrived here", "interrupted at", "main(argc="];
    check(&program, &[], &parts);
    check(&program, &["on a stack of its own"], &parts);
}

#[test]
fn children_are_reported_even_if_many_crash_at_once() {
    let program = build("child.c", "child", &["-g", "-O0"]);
    check(
        &program,
        &[],
        &[
            "it wrote 4 bytes at 0x0",
            "in a process that another one started",
            "#0 child(pointer=0x0)",
        ],
    );
    let output = run(&["run", "--rules", "none", "--json", "--", &program.to_string_lossy(), "12"]);
    let report: serde_json::Value = serde_json::from_str(&text(&output)).expect("JSON");
    assert_eq!(report["findings"].as_array().map(Vec::len), Some(12));
    assert_eq!(report["result"]["ending"]["exit-code"], 0);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn inlined_calls_are_shown_as_such() {
    let program = build("inlined.c", "inlined", &["-g", "-O2"]);
    let parts = [
        "it read 4 bytes at 0x8",
        "(weight_of)",
        "item = 0x0",
        "#0 weight_of(item=0x0) (inlined) at",
        "#1 heaviest(first=0x0, count=3) at",
        "#2 main",
    ];
    check(&program, &[], &parts);
}

#[test]
fn cpp_is_told_in_its_own_names() {
    let program = build("classes.cpp", "classes", &["-g", "-O0"]);
    check(
        &program,
        &["null"],
        &["SIGSEGV: it read 8 bytes at 0x0", "shop::Basket::total(this=0x0) at", "main(argc=2"],
    );
    check(
        &program,
        &["throws"],
        &[
            "SIGABRT: an exception was not caught",
            "shop::Basket::check",
            "__cxa_throw",
            "shop::Basket::check(",
            "main(argc=2",
        ],
    );
    check(
        &program,
        &["pure"],
        &[
            "SIGABRT: a pure virtual function was called",
            "shop::Shape::describe(",
            "shop::Circle::Circle(",
            "main(argc=2",
        ],
    );
}

#[test]
fn rust_is_told_in_its_own_names() {
    let program = build("rusty.rs", "rusty", &["-g"]);
    check(
        &program,
        &["null"],
        &[
            "SIGSEGV: it read 8 bytes at 0x18, close to zero",
            "(rusty::field)",
            "rusty::field(pointer=0x18) at",
            "rusty::balance(account=0x0) at",
            "rusty::main at",
        ],
    );
    check(
        &program,
        &["panic"],
        &[
            "SIGABRT: a Rust function that must not unwind panicked",
            "rusty::callback(index=7) at",
            "rusty::main at",
        ],
    );
    check(&program, &["deep"], &["SIGABRT: its stack is full", "rusty::descend(depth=", "again, "]);
}

#[test]
fn json_has_the_finding_and_the_registers() {
    let program = build("kinds.c", "kinds-json", &["-g", "-O0"]);
    let output =
        run(&["run", "--rules", "none", "--json", "--", &program.to_string_lossy(), "null_member"]);
    assert_eq!(output.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_str(&text(&output)).expect("JSON");
    assert_eq!(report["result"]["ending"]["signal"], "SIGSEGV");
    let finding = &report["findings"][0];
    assert_eq!(
        (&finding["kind"], &finding["confidence"]),
        (&"fatal-signal".into(), &"certain".into())
    );
    assert_eq!(finding["place"]["function"], "null_member");
    assert_eq!(finding["crash"]["registers"]["rax"], 0);
    assert_eq!(finding["crash"]["stack"][1]["function"], "outer");
    assert_eq!(finding["crash"]["instruction"]["accesses"][0]["address"], 8);
    assert!(finding["evidence"].as_array().is_some_and(|steps| steps.len() > 4));
}

#[test]
fn the_exit_code_is_the_guests_if_asked_for() {
    let program = build("kinds.c", "kinds-exit", &["-g", "-O0"]);
    let program = program.to_string_lossy();
    let code = |arguments: &[&str]| run(arguments).status.code();
    assert_eq!(code(&["run", "--exit-code=guest", "--", &program, "null_read"]), Some(128 + 11));
    assert_eq!(code(&["run", "--exit-code=guest", "--", &program, "none"]), Some(3));
    assert_eq!(code(&["run", "--", &program, "none"]), Some(0));
    assert_eq!(code(&["count", "--", &program, "aborts"]), Some(1));
}

#[test]
fn a_signal_that_leaves_no_report_is_named() {
    let output = run(&["run", "--", "sh", "-c", "kill -TERM $$"]);
    assert_eq!(errors(&output), "whydunit: sh was ended by SIGTERM\n");
    assert_eq!(output.status.code(), Some(1));
}
