//! What the engine says: its saved events, one entry an instruction.

use anyhow::{Context, ensure};
use events::{Consumer, Decoder, Event};
use std::ffi::OsString;
use std::fs::File;
use std::io::BufReader;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};

/// The tool under test.
pub const TOOL: &str = env!("CARGO_BIN_EXE_whydunit");

/// An access: address, bytes, whether it writes.
pub type Access = (u64, u32, bool);

/// A system call: number, arguments, answer.
pub type Call = (u64, [u64; 6], i64);

/// An instruction that executed, or began to.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Where it is.
    pub pc: u64,
    /// One of the `KIND_*` constants of `events::shape`.
    pub kind: u8,
    /// For a conditional branch: whether it was taken.
    pub taken: bool,
    /// Whether it ran to its end.
    pub completed: bool,
    accesses: (usize, usize),
    call: Option<usize>,
}

/// A whole run.
#[derive(Default)]
pub struct Log {
    /// Instructions in order.
    pub entries: Vec<Entry>,
    accesses: Vec<Access>,
    /// System calls in order.
    pub calls: Vec<Call>,
    /// The exit code, or 128 and the signal that ended it.
    pub ending: i32,
    decoder: Option<Decoder>,
    malformed: bool,
    /// Only instructions here are kept, if given.
    wanted: Option<Range<u64>>,
}

impl Log {
    /// Runs a program under the engine with its events saved; what it did in `wanted`, or all.
    pub fn of(
        program: &Path,
        superblock: usize,
        wanted: Option<Range<u64>>,
    ) -> anyhow::Result<Self> {
        let file = program.with_extension(format!("{superblock}.events"));
        let mut command = Command::new(TOOL);
        command.args(arguments(program, superblock, &file)).stdout(Stdio::null());
        let status = command.status()?;
        let ending = status.code().context("the tool was killed")?;
        let mut log = Self { decoder: Some(Decoder::default()), wanted, ending, ..Self::default() };
        let input = BufReader::new(File::open(&file)?);
        events::file::feed(input, &mut log)
            .map_err(|error| anyhow::anyhow!("{}: {error:?}", file.display()))?;
        ensure!(!log.malformed, "{} is malformed", file.display());
        std::fs::remove_file(&file).context("removing the events")?;
        log.drop_what_did_not_happen();
        Ok(log)
    }

    /// The accesses of an entry.
    pub fn accesses(&self, entry: &Entry) -> &[Access] {
        &self.accesses[entry.accesses.0..entry.accesses.1]
    }

    /// The system call of an entry.
    pub fn call(&self, entry: &Entry) -> Option<&Call> {
        entry.call.map(|index| &self.calls[index])
    }

    fn add(&mut self, event: Event) {
        match event {
            Event::Instruction { pc, kind, taken } => {
                self.begin(pc);
                let last = self.entries.last_mut().expect("just begun");
                (last.completed, last.kind, last.taken) = (true, kind, taken);
            }
            Event::Interrupted { pc } => self.begin(pc),
            Event::Access { address, size, write } => {
                self.accesses.push((address, size, write));
                if let Some(last) = self.entries.last_mut() {
                    last.accesses.1 = self.accesses.len();
                }
            }
            Event::Syscall { number, arguments, answer } => {
                if let Some(last) = self.entries.last_mut() {
                    last.call = Some(self.calls.len());
                }
                self.calls.push((number, arguments, answer));
            }
            _ => {}
        }
    }

    /// An instruction begins, unless it goes on: the engine had to look after a page that it
    /// writes to, and nobody else saw it stop.
    fn begin(&mut self, pc: u64) {
        let goes_on = self.entries.last().is_some_and(|last| !last.completed && last.pc == pc);
        if goes_on {
            return;
        }
        if let (Some(last), Some(wanted)) = (self.entries.last(), &self.wanted)
            && !wanted.contains(&last.pc)
        {
            self.accesses.truncate(last.accesses.0);
            self.entries.pop();
        }
        let end = self.accesses.len();
        let (kind, taken, completed, accesses) = (0, false, false, (end, end));
        self.entries.push(Entry { pc, kind, taken, completed, accesses, call: None });
    }

    /// An instruction that was interrupted before its first access has done nothing.
    fn drop_what_did_not_happen(&mut self) {
        self.entries.retain(|entry| entry.completed || entry.accesses.0 != entry.accesses.1);
    }
}

impl Consumer for Log {
    fn records(&mut self, bytes: &[u8]) {
        let mut decoder = self.decoder.take().expect("put back below");
        self.malformed |= decoder.events(bytes, |event| self.add(event)).is_err();
        self.decoder = Some(decoder);
    }
}

/// The command that runs a program with its events saved.
pub fn arguments(program: &Path, superblock: usize, file: &Path) -> Vec<OsString> {
    let limit = superblock.to_string();
    let words = ["run", "--observe", "memory", "--exit-code=guest", "--superblock", &limit];
    let mut arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
    arguments.extend(["--save-events".into(), file.into(), "--".into(), program.into()]);
    arguments
}

/// What `whydunit count` says of a program.
pub fn counts(program: &Path, superblock: usize) -> anyhow::Result<events::count::Counts> {
    let file = program.with_extension(format!("{superblock}.counts"));
    let limit = superblock.to_string();
    let words = ["count", "--json", "--exit-code=guest", "--superblock", &limit, "--output"];
    let status = Command::new(TOOL)
        .args(words)
        .arg(&file)
        .arg("--")
        .arg(program)
        .stdout(Stdio::null())
        .status()?;
    ensure!(status.code().is_some(), "the tool was killed");
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&file)?)?;
    Ok(serde_json::from_value(report["result"]["total"].clone())?)
}

/// Runs a program under the tool with a plan; its events go to the consumer.
pub fn observe(
    program: &Path,
    superblock: usize,
    plan: &Path,
    consumer: &mut dyn Consumer,
) -> anyhow::Result<()> {
    let file = program.with_extension("observed");
    let limit = superblock.to_string();
    let status = Command::new(TOOL)
        .args(["run", "--exit-code=guest", "--superblock", &limit, "--plan"])
        .arg(plan)
        .arg("--save-events")
        .arg(&file)
        .arg("--")
        .arg(program)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    ensure!(status.code().is_some_and(|code| code != 70), "the tool failed: {status}");
    events::file::feed(BufReader::new(File::open(&file)?), consumer)
        .map_err(|error| anyhow::anyhow!("{error:?}"))
}
