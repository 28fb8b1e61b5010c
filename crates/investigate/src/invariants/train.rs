//! Gathers runs to learn from: programs that are recorded one after the other and recordings that are there,
//! each replayed by itself, several at a time.

use super::learn;
use crate::case::Case;
use crate::notices::Notices;
use anyhow::{Context, bail, ensure};
use base::Ending;
use engine::config::Schedule;
use engine::host::{Job, Record};
use invariants::{Model, file};
use recording::{End, Recording};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Stands for an input in the arguments of a program.
const INPUT: &str = "{}";

/// A run to learn from.
#[derive(Clone)]
pub enum Source {
    /// A program that is run for the purpose.
    Program {
        /// How to run it.
        job: Box<Job>,
        /// What a reader knows it by.
        name: String,
    },
    /// A recording.
    Recording(PathBuf),
}

/// What came of training.
pub struct Trained {
    /// What was learned, merged.
    pub model: Model,
    /// Runs that were learned from.
    pub runs: usize,
    /// Runs that were left out, and why.
    pub left_out: Vec<(String, String)>,
    /// Instructions of all runs.
    pub steps: u64,
}

/// Reads a model.
pub fn load(path: &Path) -> anyhow::Result<Model> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    file::read(&bytes).map_err(|why| anyhow::anyhow!("{} {why}", path.display()))
}

/// Writes a model; nothing is left of it if that fails.
pub fn save(model: &Model, path: &Path) -> anyhow::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let cannot = || format!("cannot write {}", path.display());
    let mut fresh =
        tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new("."))).with_context(cannot)?;
    std::io::Write::write_all(&mut fresh, &file::write(model)).with_context(cannot)?;
    fresh.persist(path).with_context(cannot)?;
    Ok(())
}

/// The runs that a command names: recordings if all of it are, else a program with its inputs, each of them
/// under so many schedules.
pub fn sources(job: &Job, inputs: Option<&Path>, schedules: u32) -> anyhow::Result<Vec<Source>> {
    let words = [&job.program].into_iter().chain(&job.arguments);
    let is_recording = |word: &&OsString| Recording::open(Path::new(word)).is_ok();
    if inputs.is_none() && words.clone().all(|word| is_recording(&word)) {
        return Ok(words.map(|word| Source::Recording(word.into())).collect());
    }
    let mut sources = Vec::new();
    for (name, arguments) in argument_lists(job, inputs)? {
        for seed in 0..schedules.max(1) {
            let mut job = Job { arguments: arguments.clone(), ..job.clone() };
            let mut name = name.clone();
            if schedules > 1 {
                let schedule = Schedule::Random { seed: u64::from(seed) };
                job.record = Some(Record { schedule, ..Record::default() });
                name += &format!(" (schedule {seed})");
            }
            sources.push(Source::Program { job: Box::new(job), name });
        }
    }
    Ok(sources)
}

/// The arguments of each run: a file of a folder takes the place of `{}`, or stands behind the others; a
/// line of a list holds words of its own.
fn argument_lists(
    job: &Job,
    inputs: Option<&Path>,
) -> anyhow::Result<Vec<(String, Vec<OsString>)>> {
    let Some(inputs) = inputs else {
        return Ok(vec![(job.program.to_string_lossy().into_owned(), job.arguments.clone())]);
    };
    let cannot = || format!("cannot read {}", inputs.display());
    let each: Vec<Vec<OsString>> = if inputs.is_dir() {
        let entries = std::fs::read_dir(inputs).with_context(cannot)?;
        let mut files: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.is_file())
            .collect();
        files.sort();
        files.into_iter().map(|path| vec![path.into_os_string()]).collect()
    } else {
        let text = std::fs::read_to_string(inputs).with_context(cannot)?;
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        lines.map(|line| line.split_whitespace().map(OsString::from).collect()).collect()
    };
    ensure!(!each.is_empty(), "{} has no inputs", inputs.display());
    Ok(each
        .into_iter()
        .map(|words| {
            let name = words.join(OsStr::new(" ")).to_string_lossy().into_owned();
            let place = job.arguments.iter().position(|argument| argument == INPUT);
            let at = place.unwrap_or(job.arguments.len());
            let mut arguments = job.arguments.clone();
            arguments.splice(at..at + usize::from(place.is_some()), words);
            (name, arguments)
        })
        .collect())
}

/// What one run taught, and how many steps it had.
type Learned = anyhow::Result<(Model, u64)>;

/// Learns from all of these that end well. `good` judges a run that has ended by its exit code; `progress`
/// hears of every one that is done.
pub fn train(
    sources: Vec<Source>,
    good: &(dyn Fn(&str, Ending) -> bool + Sync),
    progress: &(dyn Fn(&str) + Sync),
    notices: &Notices,
) -> anyhow::Result<Trained> {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let (send, receive) = mpsc::sync_channel::<(usize, String, Case)>(workers);
    let receive = Mutex::new(receive);
    let results: Mutex<Vec<(usize, Learned)>> = Mutex::default();
    let mut left_out = Vec::new();
    thread::scope(|scope| -> anyhow::Result<()> {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let next = receive.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((number, name, case)) = next else { break };
                    let learned = learn(&case, case.main_process());
                    let learned = learned.map(|watched| (watched.learned.model, watched.steps));
                    progress(&name);
                    let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                    results.push((number, learned.with_context(|| name.clone())));
                }
            });
        }
        for (number, source) in sources.into_iter().enumerate() {
            let (name, case) = open(source, notices)?;
            match ending(&case) {
                Ok(ending) if good(&name, ending) => {
                    if send.send((number, name, case)).is_err() {
                        break;
                    }
                }
                Ok(ending) => left_out.push((name, ended(ending))),
                Err(why) => left_out.push((name, why.to_string())),
            }
        }
        drop(send);
        Ok(())
    })?;
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(number, _)| *number);
    merged(results.into_iter().map(|(_, result)| result), left_out)
}

fn merged(
    results: impl Iterator<Item = anyhow::Result<(Model, u64)>>,
    left_out: Vec<(String, String)>,
) -> anyhow::Result<Trained> {
    let mut trained: Option<Trained> = None;
    for result in results {
        let (model, steps) = result?;
        match &mut trained {
            Some(trained) => {
                add(&mut trained.model, &model)?;
                trained.runs += 1;
                trained.steps += steps;
            }
            None => trained = Some(Trained { model, runs: 1, left_out: Vec::new(), steps }),
        }
    }
    let Some(trained) = trained else {
        let why = left_out.first().map_or("there was none", |(_, why)| why.as_str());
        bail!("no run ended well, so there is nothing to learn: {why}")
    };
    Ok(Trained { left_out, ..trained })
}

/// Adds a model to another of the same program.
pub fn add(model: &mut Model, other: &Model) -> anyhow::Result<()> {
    ensure!(
        model.program == other.program,
        "one model is of '{}', the other of '{}'",
        model.program,
        other.program
    );
    model.merge(other);
    Ok(())
}

fn open(source: Source, notices: &Notices) -> anyhow::Result<(String, Case)> {
    Ok(match source {
        Source::Program { job, name } => (name, Case::record(*job, notices.clone())?),
        Source::Recording(path) => {
            (path.display().to_string(), Case::open(&path, notices.clone())?)
        }
    })
}

fn ending(case: &Case) -> anyhow::Result<Ending> {
    match case.end_of(case.main_process()) {
        End::Exited(code) => Ok(Ending::Exit(code)),
        End::Killed(signal) => Ok(Ending::Signal(signal)),
        _ => bail!("nobody knows how it ended"),
    }
}

fn ended(ending: Ending) -> String {
    match ending {
        Ending::Exit(code) => format!("exit code {code}"),
        Ending::Signal(signal) => format!("ended by {}", crate::crash::signal_name(signal)),
    }
}
