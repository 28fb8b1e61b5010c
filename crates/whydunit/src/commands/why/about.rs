//! Questions of `whydunit why` that are not about the end: why was this written, why was that not executed?

use crate::exit::Exit;
use crate::render::Output as Destination;
use analyze::slice::explain::Explanation;
use base::{Place, PlaceName, Position};
use investigate::Case;
use investigate::diagnosis::{Shown, Wanted};
use investigate::outputs::{Origin, Output, OutputMatch};
use investigate::whynot::NotExecuted;
use report::style::Style;
use serde::Serialize;

/// What to ask about in place of the end.
#[derive(clap::Args)]
pub struct About {
    /// Explain the last output of this text
    #[arg(long = "output", value_name = "TEXT", conflicts_with_all = ["output_byte", "line", "not"])]
    output_text: Option<String>,
    /// Explain this byte of the output, counted from 0
    #[arg(long, value_name = "N", conflicts_with_all = ["line", "not"])]
    output_byte: Option<u64>,
    /// Explain this line of the output, counted from 1
    #[arg(long, value_name = "N", conflicts_with = "not")]
    line: Option<u64>,
    /// The descriptor that was written to; standard output if none is given
    #[arg(long, value_name = "N")]
    fd: Option<u64>,
    /// Explain why this place was never executed
    #[arg(long, value_name = "PLACE")]
    not: Option<PlaceName>,
}

#[derive(Serialize)]
struct OutputReport<'a> {
    output: &'a OutputMatch,
    shown: &'a [Shown],
    #[serde(flatten)]
    explanation: &'a Explanation,
}

#[derive(Serialize)]
struct NotReport<'a> {
    place: String,
    decision: &'a Place,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<Position>,
    #[serde(skip_serializing_if = "Option::is_none")]
    went: Option<&'a Place>,
    calls: &'a [Place],
    shown: &'a [Shown],
    #[serde(flatten)]
    explanation: &'a Explanation,
}

impl About {
    /// Whether anything but the end is asked about.
    pub fn is_asked(&self) -> bool {
        self.not.is_some() || self.output().is_some()
    }

    fn output(&self) -> Option<Output> {
        let text = self.output_text.clone().map(Output::Text);
        text.or(self.output_byte.map(Output::Byte)).or(self.line.map(Output::Line))
    }

    /// Answers.
    pub fn answer(
        &self,
        case: &Case,
        process: u32,
        (wanted, json): (Wanted<'_>, bool),
        mut destination: Destination,
    ) -> anyhow::Result<Exit> {
        let style = destination.style();
        let out = match (&self.not, self.output()) {
            (Some(place), _) => not_executed(case, process, (wanted, json), place, style)?,
            (None, Some(output)) => {
                written(case, process, (wanted, json), (&output, self.fd), style)?
            }
            (None, None) => String::new(),
        };
        destination.write(&out)?;
        Ok(Exit::Clean)
    }
}

fn written(
    case: &Case,
    process: u32,
    (wanted, json): (Wanted<'_>, bool),
    output: (&Output, Option<u64>),
    style: Style,
) -> anyhow::Result<String> {
    let origin = Origin::of(case, process, wanted, output)?;
    Ok(match json {
        true => report::json::result(
            "why",
            &OutputReport {
                output: &origin.found,
                shown: &origin.shown,
                explanation: &origin.explanation,
            },
        ),
        false => report::about::written(&origin, style),
    })
}

fn not_executed(
    case: &Case,
    process: u32,
    (wanted, json): (Wanted<'_>, bool),
    place: &PlaceName,
    style: Style,
) -> anyhow::Result<String> {
    let found = NotExecuted::of(case, process, wanted, place)?;
    let name = place.to_string();
    Ok(match json {
        true => report::json::result(
            "why",
            &NotReport {
                place: name,
                decision: &found.decision,
                position: found.position,
                went: found.went.as_ref(),
                calls: &found.calls,
                shown: &found.shown,
                explanation: &found.explanation,
            },
        ),
        false => report::about::not_executed(&name, &found, style),
    })
}
