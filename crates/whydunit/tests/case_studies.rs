//! Five bugs (stack smashing, double free, heap overflow, dangling pointer, NULL), each found in gdb with our commands.
//! `tests/programs/debug/NAME.gdb` has the commands, and behind `#>` what must be answered, in this order.

mod support;

fn study(name: &str) {
    let folder = support::root().join("tests/programs/debug");
    let source = folder.join(format!("{name}.c"));
    let flags = ["-g", "-O0", "-w", "-fno-stack-protector", "-U_FORTIFY_SOURCE"];
    let program = support::build_file(&source, &format!("study-{name}"), &flags);
    let kept = tempfile::tempdir().expect("a folder");
    let recording = kept.path().join("recording");
    let mut record = support::tool(&["record", "-q", "-o"]);
    record.arg(&recording).arg("--").arg(&program).output().expect("recorded");
    let script = std::fs::read_to_string(folder.join(format!("{name}.gdb"))).expect("a script");
    let mut debug = support::tool(&["debug", "--batch"]);
    for line in script.lines().filter(|line| !line.starts_with('#')) {
        // What is said is told from what was said before by its command.
        debug.arg("--ex").arg(format!("echo \\n> {line}\\n")).arg("--ex").arg(line);
    }
    let output = debug.arg(&recording).output().expect("gdb");
    let text = support::text(&output) + &support::errors(&output);
    let (mut rest, mut command) = (text.as_str(), "");
    for line in script.lines().filter(|line| !line.starts_with("# ")) {
        let wanted = match line.strip_prefix("#> ") {
            Some(wanted) => wanted.to_owned(),
            None => {
                command = line;
                format!("\n> {line}\n")
            }
        };
        let at = rest.find(&wanted);
        let at = at.unwrap_or_else(|| panic!("{name}, {command}: no '{wanted}' in\n{text}"));
        let said = &rest[..at];
        if line.starts_with("#> ") {
            assert!(
                !said.contains("\n> "),
                "{name}, {command}: '{wanted}' comes too late in\n{text}"
            );
        }
        rest = &rest[at + wanted.len()..];
    }
}

#[test]
fn stack_smashing() {
    study("smashed");
}

#[test]
fn double_free() {
    study("twice");
}

#[test]
fn heap_overflow() {
    study("overflow");
}

#[test]
fn dangling_pointer() {
    study("dangling");
}

#[test]
fn null_pointer() {
    study("nothing");
}
