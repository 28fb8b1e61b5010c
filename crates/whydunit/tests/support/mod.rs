//! What tests of the command line share: building little programs and running the tool on them.
#![allow(dead_code, reason = "every test file uses a part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The root of the source tree.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the source tree")
}

/// Builds a program of `tests/programs/crash`; `name` tells this build from others.
pub fn build(source: &str, name: &str, flags: &[&str]) -> PathBuf {
    build_file(&root().join("tests/programs/crash").join(source), name, flags)
}

/// Builds any program.
pub fn build_file(source: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let compiler = match source.extension().and_then(|end| end.to_str()) {
        Some("cpp") => "g++",
        Some("rs") => "rustc",
        _ => "gcc",
    };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("programs");
    std::fs::create_dir_all(&folder).expect("a folder");
    // Tests run at the same time: nobody must execute a half-written file.
    let by = format!("{}-{:?}", std::process::id(), std::thread::current().id());
    let (program, fresh) = (folder.join(name), folder.join(format!("{name}-{by}")));
    let built = Command::new(compiler).arg(source).arg("-o").arg(&fresh).args(flags).output();
    let built = built.expect("a compiler");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    std::fs::rename(&fresh, &program).expect("renamed");
    program
}

/// The tool with arguments, in the root of the source tree.
pub fn tool(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whydunit"));
    command.args(arguments).current_dir(root()).env_remove("RUST_BACKTRACE").env_remove("CC");
    command
}

/// Runs the tool to its end.
pub fn run(arguments: &[&str]) -> Output {
    tool(arguments).output().expect("the tool")
}

/// What went to standard error.
pub fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What went to standard output.
pub fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Every part is in the text, each behind the one before. Where lines are broken does not matter: that depends on
/// how long paths are.
pub fn assert_in_order(text: &str, parts: &[&str]) {
    let flat = |text: &str| {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let end = if text.ends_with(' ') { " " } else { "" };
        let start = if text.starts_with(' ') { " " } else { "" };
        format!("{start}{words}{end}")
    };
    let all = flat(text);
    let mut rest = all.as_str();
    for part in parts {
        match rest.find(&flat(part)) {
            Some(at) => rest = &rest[at + flat(part).len()..],
            None => panic!("{part:?} is missing, or not behind the others, in\n{text}"),
        }
    }
}
