//! `whydunit expose`: records a program under one schedule after the other, until it fails.

use super::run::Guest;
use crate::exit::Exit;
use crate::render::{self, Output};
use anyhow::Context;
use engine::config::SwitchPoint;
use investigate::expose::{self, Answer, Attempt, Limits, Tried, Tries};
use recording::{End, Recording};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Arguments of `whydunit expose`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  whydunit expose -- ./prog input               until it crashes, hangs, or ends or writes otherwise
  whydunit expose --runs 1000 -o bug.whydunit -- ./prog input
  whydunit expose --until 'grep -q lost \"$OUTPUT\"' -- ./prog
  whydunit why prog.whydunit                    then: why did it fail?

Exit codes: 0 no run failed; 1 one did, and its recording is kept; 2 wrong arguments or input;
70 a fault of our own. More in docs/expose.md.")]
pub struct Expose {
    /// Most runs
    #[arg(long, default_value_t = 200)]
    runs: u64,
    /// Longest time, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    time: u64,
    /// A command for the shell that succeeds if a run is what is looked for; what the run wrote is in the
    /// file $OUTPUT, its exit code (128 and the signal, if one ended it) in $STATUS
    #[arg(long, value_name = "TEST")]
    until: Option<String>,
    /// A run that takes longer than this many seconds hangs
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    hang: u64,
    /// Runs at the same time; as many as there are processors if not given
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Most runs to find one that fails with fewer switches of threads
    #[arg(long, value_name = "N", default_value_t = 30)]
    shorten: u64,
    /// Print the answer as JSON to standard output
    #[arg(long)]
    json: bool,
    /// Where the recording goes; `PROG.whydunit` if not given
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite a file that is there
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    guest: Guest,
}

impl Expose {
    /// Looks for a failure.
    pub fn run(self) -> anyhow::Result<Exit> {
        let mut output = Output::answer(None, self.json)?;
        let file = self.output.clone().unwrap_or_else(|| self.guest.default_file());
        anyhow::ensure!(
            self.force || !file.exists(),
            "{} is there already; --force overwrites it, -o names another file",
            file.display()
        );
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let limits = Limits {
            runs: self.runs,
            time: Duration::from_secs(self.time),
            at_once: self.jobs.unwrap_or(cores),
            shorten: self.shorten,
        };
        let answer = expose::search(&self, limits, &file, &render::notices())?;
        match answer {
            Answer::Nothing(runs) => {
                if self.json {
                    let result = json!({ "runs": runs, "failed": null });
                    output.write(&report::json::result("expose", result))?;
                }
                render::note(&format!("{runs} runs, and none failed"));
                Ok(Exit::Clean)
            }
            Answer::Exposed(exposed) => {
                let text = match self.json {
                    true => {
                        let result =
                            json!({ "runs": exposed.run, "failed": exposed, "file": file });
                        report::json::result("expose", result)
                    }
                    false => report::expose::text(&exposed, &file),
                };
                output.write(&text)?;
                Ok(Exit::Findings)
            }
        }
    }

    fn test(&self, output: &Path, end: End) -> anyhow::Result<Option<bool>> {
        let Some(test) = &self.until else { return Ok(None) };
        let status = match end {
            End::Exited(code) => code,
            End::Killed(signal) => 128 + signal,
            End::Unknown | End::Replaced => -1,
        };
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(test).env("OUTPUT", output).env("STATUS", status.to_string());
        shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Some(shell.status().context("no shell for the test")?.success()))
    }
}

impl Tries for Expose {
    fn attempt(&self, attempt: &Attempt, file: &Path) -> anyhow::Result<Tried> {
        let output = file.with_extension("output");
        let written = File::create(&output)?;
        let mut command = Command::new("/proc/self/exe");
        command.args(["record", "--quiet", "--force", "--exit-code=guest", "--schedule"]);
        command.arg(replay::schedule_text(attempt.schedule));
        command.arg("-o").arg(file);
        if attempt.cut {
            command.arg("--cut");
        }
        if !attempt.switch_points.is_empty() {
            command.arg("--switch-points").arg(points(&attempt.switch_points));
        }
        command.arg("--").args(self.guest.command());
        command.stdin(Stdio::null()).stdout(written.try_clone()?).stderr(written);
        let mut child = command.spawn().context("cannot start a recording")?;
        let hung = ended_late(&mut child, Duration::from_secs(self.hang))?;
        let recording = Recording::open(file);
        let recording = match recording {
            Ok(recording) => recording,
            Err(error) => {
                let mut said = String::new();
                File::open(&output)?.read_to_string(&mut said)?;
                return Err(error)
                    .with_context(|| format!("no recording was made: {}", said.trim()));
            }
        };
        let ends = recording.summary().map_or(&[][..], |summary| &summary.processes);
        // The last program that the first process became.
        let end = ends.iter().map(|process| process.end).find(|end| *end != End::Replaced);
        let end = end.unwrap_or_default();
        let wanted = self.test(&output, end)?;
        Ok(Tried { end, hung, output: std::fs::read(&output)?, wanted })
    }
}

/// Waits for a recording to end; one that takes too long is ended.
fn ended_late(child: &mut Child, limit: Duration) -> anyhow::Result<bool> {
    const LOOK: Duration = Duration::from_millis(5);
    const PATIENCE: Duration = Duration::from_secs(5);
    let begun = Instant::now();
    let mut asked = false;
    while child.try_wait()?.is_none() {
        if begun.elapsed() > limit && !asked {
            asked = true;
            let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            if let Some(id) = id {
                // It has not been waited for, so the number is still its own.
                let _ = kill_process(id, Signal::TERM);
            }
        }
        if begun.elapsed() > limit + PATIENCE {
            child.kill()?;
        }
        std::thread::sleep(LOOK);
    }
    Ok(asked)
}

/// Places where a schedule may stop threads, as `whydunit record` takes them.
fn points(points: &[SwitchPoint]) -> String {
    let one =
        |point: &SwitchPoint| format!("{:#x}{}", point.pc, if point.holds { "+" } else { "" });
    points.iter().map(one).collect::<Vec<_>>().join(",")
}

/// The same as they are read.
pub fn parse_points(text: &str) -> Result<Vec<SwitchPoint>, String> {
    let one = |word: &str| {
        let (address, holds) =
            word.strip_suffix('+').map_or((word, false), |address| (address, true));
        let digits = address.strip_prefix("0x").ok_or("an address begins with 0x")?;
        let pc = u64::from_str_radix(digits, 16).map_err(|error| error.to_string())?;
        Ok(SwitchPoint { pc, holds })
    };
    text.split(',').map(one).collect()
}
