//! What a program does in ordinary runs, learned from recordings, and what another recording does that none of
//! them did.
//!
//! [`learn`] replays a recording and gives a model of it; [`check`] replays one against a model and gives its
//! anomalies; [`report`] makes findings of them. [`layout`] and [`names`] say of a program which code and data
//! are its own and what instructions are called; [`train`] gathers runs.

pub mod layout;
pub mod names;
mod prototypes;
pub mod report;
pub mod show;
pub mod train;

use crate::case::Case;
use crate::check::recorded;
use crate::error::fault_or_input;
use anyhow::ensure;
use events::Discard;
use invariants::learner::Learned;
use invariants::stream::{self, Stream};
use invariants::{Learner, Mode, Model};
use replay::Shown;
use std::path::Path;
use std::sync::Arc;
use symbols::Program;

/// What a replay has given, and the program that ran.
pub struct Watched {
    /// The model and the anomalies.
    pub learned: Learned,
    /// The program's files.
    pub program: Arc<Program>,
    /// Instructions that executed.
    pub steps: u64,
}

/// The file name of the program that a process runs.
pub fn program_name(case: &Case, process: u32) -> String {
    let maps = recorded::mapped(case.session(), process).unwrap_or_default();
    let name =
        |path: &str| Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned());
    maps.first().and_then(|map| name(&map.path)).unwrap_or_default()
}

/// What one process of a recording shows.
pub fn learn(case: &Case, process: u32) -> anyhow::Result<Watched> {
    watch(case, process, Model::new(program_name(case, process)), Mode::Training, 0.0)
}

/// What one process of a recording does that no run of the model did. Code that never ran counts as
/// `new_code`.
pub fn check(case: &Case, process: u32, model: &Model, new_code: f64) -> anyhow::Result<Watched> {
    let name = program_name(case, process);
    ensure!(
        name == model.program,
        "the model was learned from '{}', and this is '{name}'",
        model.program
    );
    watch(case, process, model.clone(), Mode::Checking, new_code)
}

fn watch(
    case: &Case,
    process: u32,
    model: Model,
    mode: Mode,
    new_code: f64,
) -> anyhow::Result<Watched> {
    let maps = recorded::mapped(case.session(), process)?;
    let program = Arc::new(case.program(&maps)?);
    let layout = layout::of(&program);
    let plan = stream::plan(&layout);
    let names = Box::new(names::Namer::new(program.clone()));
    let learner = Learner::new(model, mode, layout, names);
    let (stream, waiting) = Stream::new(learner, recorded::begin(case.session(), process)?);
    let mut stream = Some(stream);
    let mut make = |_| -> Box<dyn events::Consumer> {
        match stream.take() {
            Some(stream) => Box::new(stream),
            None => Box::new(Discard::default()),
        }
    };
    let replayed =
        case.session().replay(process, plan, Shown::Nothing, &mut make).map_err(fault_or_input)?;
    if let Some(divergence) = &replayed.divergence {
        case.notices().tell(&format!(
            "the replay diverged from the recording, and what came after is not part of this: {}",
            divergence.what
        ));
    }
    let ended = waiting.take();
    let ended = ended.ok_or_else(|| crate::OurFault("the replay gave no events".into()))?;
    ensure!(!ended.broken, crate::OurFault("the events of the replay make no sense".into()));
    let learned = ended.learner.finish(new_code);
    Ok(Watched { learned, program, steps: ended.steps })
}
