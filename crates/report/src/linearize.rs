//! Verdicts about specifications, as [`text`], as [`json`] and as [`findings`].

pub mod findings;
pub mod json;
pub mod text;

use linearize::Judgement;
use linearize::model::Program;
use linearize::proof::pairs::Pair;
use spec::{Diagnostics, Source};
use std::time::Duration;

/// One file and what came of it.
pub struct Judged {
    /// The file.
    pub source: Source,
    /// What came of it, or what is wrong with it.
    pub outcome: Result<Outcome, Diagnostics>,
    /// How long that took.
    pub took: Duration,
}

/// What came of a specification that could be read.
pub struct Outcome {
    /// The specification.
    pub program: Program,
    /// What is said of it.
    pub judgement: Judgement,
    /// All pairs of prefixes, if they are to be shown.
    pub pairs: Option<Vec<Pair>>,
}
