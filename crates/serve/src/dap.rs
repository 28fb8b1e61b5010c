//! The Debug Adapter Protocol: an editor debugs a recording, forwards and backwards, over standard input and output.
//!
//! - [`wire`]: messages and their framing; whatever comes in, it is answered or refused with a sentence;
//! - [`session`]: requests that open, move and end;
//! - [`stops`]: breakpoints of all kinds; [`looking`]: threads, calls, variables, memory, disassembly.

mod looking;
mod session;
mod stops;
mod wire;

use crate::recorder;
use investigate::debugging::Debugger;
use investigate::{Case, Notices};
use serde_json::{Value, json};
use session::Session;
use std::io::{BufRead, Write};
use wire::{Incoming, Request, Wire};

/// What to debug, as `launch` or `attach` says it.
struct Launch {
    case: Case,
    process: u32,
    moment: base::Moment,
    /// What the program wrote when it was recorded.
    output: Vec<(&'static str, String)>,
    /// As long as it lives there is the recording.
    _folder: Option<recorder::Recorded>,
}

/// Serves one editor until it leaves.
pub fn serve(input: impl BufRead + Send + 'static, output: &mut dyn Write) -> anyhow::Result<()> {
    let mut wire = Wire::new(Incoming::read(input), output);
    let Some(launch) = begin(&mut wire)? else { return Ok(()) };
    let debugger = Debugger::at(&launch.case, launch.process, &launch.moment);
    let debugger = match debugger {
        Ok(debugger) => debugger,
        Err(error) => return wire.event("terminated", json!({})).and(Err(error)),
    };
    for (category, text) in &launch.output {
        wire.event("output", json!({ "category": category, "output": text }))?;
    }
    wire.event("initialized", json!({}))?;
    Session::new(debugger, wire).run()
}

/// Until it is known what to debug. Nothing if the editor leaves before.
fn begin(wire: &mut Wire<'_>) -> anyhow::Result<Option<Launch>> {
    while let Some(request) = wire.next()? {
        match request.command.as_str() {
            "initialize" => wire.answer(&request, capabilities())?,
            "launch" | "attach" => match open(&request) {
                Ok(launch) => {
                    wire.answer(&request, Value::Null)?;
                    return Ok(Some(launch));
                }
                Err(error) => wire.refuse(&request, &format!("{error:#}"))?,
            },
            "disconnect" | "terminate" => {
                wire.answer(&request, Value::Null)?;
                return Ok(None);
            }
            other => wire.refuse(&request, &format!("{other} comes before launch or attach"))?,
        }
    }
    Ok(None)
}

fn open(request: &Request) -> anyhow::Result<Launch> {
    let given = &request.arguments;
    let text = |name: &str| given[name].as_str().filter(|text| !text.is_empty());
    let (recorded, file) = match (text("recording"), text("program")) {
        (Some(file), _) => (None, std::path::PathBuf::from(file)),
        (None, Some(program)) => {
            let arguments = given["args"].as_array().cloned().unwrap_or_default();
            let arguments: Vec<String> =
                arguments.iter().filter_map(|it| it.as_str().map(str::to_owned)).collect();
            let recorded = recorder::record(program, &arguments, text("cwd"), None)?;
            let file = recorded.file();
            (Some(recorded), file)
        }
        (None, None) => anyhow::bail!(
            "say what to debug: \"recording\": a file of `whydunit record`, or \"program\" with \"args\""
        ),
    };
    let case = Case::open(&file, Notices::none())?;
    let number = given["process"].as_u64().and_then(|number| u32::try_from(number).ok());
    let process = case.process(number)?;
    let moment = match text("at") {
        Some(moment) => moment.parse()?,
        None => case.first_moment(process),
    };
    let output = recorded
        .iter()
        .flat_map(|it| [("stdout", it.output.clone()), ("stderr", it.error.clone())]);
    let output = output.filter(|(_, text)| !text.is_empty()).collect();
    Ok(Launch { case, process, moment, output, _folder: recorded })
}

fn capabilities() -> Value {
    json!({
        "supportsConfigurationDoneRequest": true,
        "supportsFunctionBreakpoints": true,
        "supportsConditionalBreakpoints": true,
        "supportsHitConditionalBreakpoints": true,
        "supportsInstructionBreakpoints": true,
        "supportsDataBreakpoints": true,
        "supportsEvaluateForHovers": true,
        "supportsStepBack": true,
        "supportsSteppingGranularity": true,
        "supportsDisassembleRequest": true,
        "supportsReadMemoryRequest": true,
        "supportsSetExpression": true,
        "supportsTerminateRequest": true,
        "supportsLoadedSourcesRequest": false,
        "exceptionBreakpointFilters": [
            { "filter": "findings", "label": "Findings", "default": false,
              "description": "Stops where a rule is broken: use after free, out of bounds, double free …" },
            { "filter": "signals", "label": "Signals", "default": false,
              "description": "Stops where a signal comes to its handler" },
        ],
    })
}
