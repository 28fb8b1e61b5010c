//! What the tests share: compiling small programs, stopping them under gdb, and reading the core
//! file that gdb leaves, so that answers can be compared with gdb's own.
#![allow(dead_code, reason = "each test binary uses its own part")]

pub mod canonical;
pub mod core_file;

use core_file::Core;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A folder that goes away with the test, holding one compiled program.
pub struct Built {
    pub folder: TempDir,
    pub program: PathBuf,
}

/// The path of a program's source below `tests/programs`.
pub fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// Compiles `tests/programs/NAME` with gcc, g++ or rustc, by its extension.
pub fn build(name: &str, flags: &[&str]) -> Built {
    let folder = tempfile::tempdir().expect("a folder for the program");
    let program = folder.path().join("program");
    let source = source(name);
    let mut command = match source.extension().and_then(|e| e.to_str()) {
        Some("rs") => {
            let mut command = Command::new("rustc");
            command.args(["--edition", "2024"]);
            command
        }
        Some("cpp") => Command::new("g++"),
        _ => Command::new("gcc"),
    };
    command.current_dir(folder.path()).arg(&source).arg("-o").arg(&program).args(flags);
    run(&mut command);
    Built { folder, program }
}

/// Runs a command that must succeed, and returns what it printed.
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{command:?}\n{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

/// A frame as gdb sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OracleFrame {
    pub function: String,
    pub file: String,
    pub line: u32,
    pub pc: u64,
}

/// A stopped program: its core file and gdb's answers.
pub struct Stopped {
    pub core: Core,
    pub frames: Vec<OracleFrame>,
    /// Frame level, expression, value in the canonical form of `oracle.py`.
    pub values: Vec<(usize, String, String)>,
}

/// Where gdb stops the program.
#[derive(Clone, Copy, Default)]
pub struct Stop<'a> {
    /// A breakpoint; empty to run until a signal.
    pub place: &'a str,
    /// How often to continue from it.
    pub skip: u32,
    /// Frame level and expression to evaluate there.
    pub values: &'a [(usize, &'a str)],
}

/// Runs `program` under gdb up to the stop.
pub fn stop(built: &Built, stop: Stop<'_>) -> Stopped {
    let core = built.folder.path().join("core.file");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/oracle.py");
    let values: Vec<String> =
        stop.values.iter().map(|(level, value)| format!("{level}\t{value}")).collect();
    let text = run(Command::new("gdb")
        .args(["-batch", "-nx", "-x"])
        .arg(script)
        .arg(&built.program)
        .current_dir(built.folder.path())
        .env("ORACLE_BREAK", stop.place)
        .env("ORACLE_CONTINUE", stop.skip.to_string())
        .env("ORACLE_VALUES", values.join("\n"))
        .env("ORACLE_CORE", &core));
    assert!(core.exists(), "gdb wrote no core file: {text}");
    let mut stopped = Stopped { core: Core::read(&core), frames: Vec::new(), values: Vec::new() };
    for line in text.lines() {
        match line.split('\t').collect::<Vec<_>>()[..] {
            ["FRAME", function, file, line, pc] => stopped.frames.push(OracleFrame {
                function: function.into(),
                file: file.into(),
                line: line.parse().expect("a line"),
                pc: u64::from_str_radix(pc.trim_start_matches("0x"), 16).expect("a pc"),
            }),
            ["VALUE", level, expression, value] => {
                let level = level.parse().expect("a level");
                stopped.values.push((level, expression.into(), value.into()));
            }
            _ => {}
        }
    }
    assert!(!stopped.frames.is_empty(), "gdb saw no frames: {text}");
    stopped
}
