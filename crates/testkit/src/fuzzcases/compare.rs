//! Runs a program of cases natively and under a tool, and finds where they disagree.
//!
//! A tool that dies or hangs midway costs one case: it is found by running from there with every
//! record written at once, reported, and the comparison goes on behind it.

use super::program::Program;
use anyhow::{Context, bail};
use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A command that runs another: the program and its arguments are appended. Empty: natively.
#[derive(Clone, Debug, Default)]
pub struct Tool {
    /// The command and its own arguments.
    pub command: Vec<OsString>,
}

/// What a case left behind, in short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Number of the case.
    pub index: u32,
    /// The signal it raised, or zero.
    pub signal: u8,
    /// The exit it took.
    pub exit: u8,
    /// Of all registers and memory.
    pub digest: u64,
}

/// A case on which the tool disagrees with the processor.
#[derive(Clone, Debug)]
pub struct Disagreement {
    /// Number of the case.
    pub index: u32,
    /// What the processor did.
    pub native: Record,
    /// What the tool did; none if it died or hung there.
    pub tool: Option<Record>,
}

/// The outcome for one program.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// What the processor did, case by case.
    pub native: Vec<Record>,
    /// Where the tool differed.
    pub disagreements: Vec<Disagreement>,
}

/// How long a tool may take for a whole program before it counts as hung.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long for a few cases, and for a whole program natively.
const SHORT_PATIENCE: Duration = Duration::from_secs(20);
/// A tool that dies more often than this is not worth following further.
const MOST_DEATHS: usize = 200;

/// Compares `elf`, built from `program`, run natively and under `tool`.
///
/// # Errors
/// When the program does not run natively, or the tool cannot be started.
pub fn compare(program: &Program, elf: &Path, tool: &Tool) -> anyhow::Result<Comparison> {
    let native = run(&Tool::default(), elf, &[], SHORT_PATIENCE)?;
    if native.len() != program.cases.len() {
        bail!(
            "natively the cases stop after {} of {}: a defect of the generator",
            native.len(),
            program.cases.len()
        );
    }
    let mut comparison = Comparison { native, disagreements: Vec::new() };
    let mut theirs = run(tool, elf, &[], PATIENCE)?;
    let mut deaths = 0;
    while theirs.len() < comparison.native.len() && deaths < MOST_DEATHS {
        // Records are written in bundles: find the very case, then go on behind it.
        let reached = theirs.len();
        let slow = run(tool, elf, &range(reached, reached + 512), SHORT_PATIENCE)?;
        theirs.extend(slow.iter().copied());
        if slow.len() < 512 && theirs.len() < comparison.native.len() {
            deaths += 1;
            let died = theirs.len();
            let native = comparison.native[died];
            comparison.disagreements.push(Disagreement { index: native.index, native, tool: None });
            theirs.push(native);
        }
        let rest = run(tool, elf, &range(theirs.len(), comparison.native.len()), PATIENCE)?;
        theirs.extend(rest);
    }
    let pairs = comparison.native.iter().zip(&theirs).filter(|(one, other)| one != other);
    comparison.disagreements.extend(pairs.map(|(native, other)| Disagreement {
        index: native.index,
        native: *native,
        tool: Some(*other),
    }));
    comparison.disagreements.sort_by_key(|found| found.index);
    Ok(comparison)
}

fn range(from: usize, to: usize) -> Vec<OsString> {
    vec!["--range".into(), from.to_string().into(), to.to_string().into()]
}

/// The full state of case `index`, as lines of `name value`.
///
/// # Errors
/// When the tool cannot be started.
pub fn dump(elf: &Path, tool: &Tool, index: u32) -> anyhow::Result<String> {
    let arguments = ["--dump".into(), index.to_string().into()];
    let bytes = output(tool, elf, &arguments, SHORT_PATIENCE)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn run(
    tool: &Tool,
    elf: &Path,
    arguments: &[OsString],
    patience: Duration,
) -> anyhow::Result<Vec<Record>> {
    let bytes = output(tool, elf, arguments, patience)?;
    Ok(bytes.chunks_exact(16).map(record).collect())
}

fn record(bytes: &[u8]) -> Record {
    let word = |from: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[from + byte]));
    Record {
        index: word(0),
        signal: bytes[4],
        exit: bytes[5],
        digest: u64::from(word(8)) | u64::from(word(12)) << 32,
    }
}

/// What the program prints; it is killed when its time is up.
fn output(
    tool: &Tool,
    elf: &Path,
    arguments: &[OsString],
    patience: Duration,
) -> anyhow::Result<Vec<u8>> {
    let elf: PathBuf = elf.into();
    let mut words = tool.command.iter().cloned().chain([elf.into_os_string()]);
    let first = words.next().unwrap_or_default();
    let mut child = Command::new(&first)
        .args(words)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("starting {}", first.display()))?;
    let mut pipe = child.stdout.take().context("the pipe of a child")?;
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    });
    let deadline = Instant::now() + patience;
    while child.try_wait()?.is_none() {
        if Instant::now() > deadline {
            child.kill()?;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(reader.join().unwrap_or_default())
}
