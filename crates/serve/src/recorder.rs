//! Our own tool as a process of its own: standard output belongs to a protocol here, and what a program writes, or a
//! command has to say, must not come between.

use anyhow::{Context, bail};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A recording that goes away with this.
pub struct Recorded {
    folder: TempDir,
    /// What the program wrote to standard output.
    pub output: String,
    /// What it wrote to standard error, and what was said about recording it.
    pub error: String,
}

impl Recorded {
    /// The recording.
    pub fn file(&self) -> PathBuf {
        self.folder.path().join("recording")
    }
}

/// The tool.
fn tool() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Records a program to a folder of its own.
pub fn record(
    program: &str,
    arguments: &[String],
    folder: Option<&str>,
    seconds: Option<u64>,
) -> anyhow::Result<Recorded> {
    let kept = tempfile::tempdir().context("no folder for a recording")?;
    let file = kept.path().join("recording");
    let (output, error) =
        record_to(&file.to_string_lossy(), program, arguments, (folder, seconds))?;
    Ok(Recorded { folder: kept, output, error })
}

/// Records a program to a file. What it wrote.
pub fn record_to(
    file: &str,
    program: &str,
    arguments: &[String],
    (folder, seconds): (Option<&str>, Option<u64>),
) -> anyhow::Result<(String, String)> {
    let mut command = tool();
    command.args(["record", "-q", "-o", file]);
    if let Some(seconds) = seconds {
        command.args(["--timeout", &seconds.to_string()]);
    }
    if let Some(folder) = folder {
        command.current_dir(folder);
    }
    let done = command.arg("--").arg(program).args(arguments).output();
    let done = done.context("the recorder cannot be started")?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (output, error) = (text(&done.stdout), text(&done.stderr));
    if !std::path::Path::new(file).exists() {
        bail!("{program} was not recorded: {}", error.trim_end());
    }
    Ok((output, error))
}

/// The answer of one of our commands, as text: what it says, and what it says besides.
pub fn ask(arguments: &[&str]) -> anyhow::Result<(String, String, i32)> {
    let done = tool().args(arguments).output().context("the tool cannot be started")?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((text(&done.stdout), text(&done.stderr), done.status.code().unwrap_or(70)))
}
