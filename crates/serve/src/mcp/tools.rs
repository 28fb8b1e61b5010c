//! The tools that an agent is offered.

use crate::commands::words;
use crate::recorder;
use anyhow::{Context, bail, ensure};
use base::Moment;
use investigate::debugging::Debugger;
use investigate::debugging::origin::Origin;
use investigate::{Case, Notices};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use symbols::{Level, Printing};

/// Characters of an answer.
const MOST: usize = 12_000;
/// Calls of a stack that are told.
const CALLS: usize = 20;
/// Steps back that `origin` makes at most.
const STEPS: u64 = 10;

/// An answer of bounded length.
pub fn bounded(text: String) -> String {
    match text.char_indices().nth(MOST) {
        None => text,
        Some((end, _)) => {
            let left = text.chars().count() - MOST;
            format!("{}\n… cut: {left} characters more; ask for less at a time", &text[..end])
        }
    }
}

fn tool(
    name: &'static str,
    about: &'static str,
    reads: bool,
    fields: Value,
    needed: &[&str],
) -> Tool {
    let schema = json!({
        "type": "object", "properties": fields, "required": needed, "additionalProperties": false,
    });
    let schema: JsonObject = schema.as_object().cloned().unwrap_or_default();
    let hints = ToolAnnotations::new().read_only(reads).destructive(false);
    Tool::new(name, about, Arc::new(schema)).with_annotations(hints)
}

/// The tools; those that run programs only if that is allowed.
pub fn all(allow_run: bool) -> Vec<Tool> {
    let text = |about: &str| json!({ "type": "string", "description": about });
    let recording = text("path of a recording made by `whydunit record`");
    let at =
        text("a moment: PLACE#N, PLACE (its last execution), start, crash, end, or @TICK:0xPC");
    let mut tools = vec![
        tool(
            "explain",
            "Why the recorded program ended as it did: how it ended, where, the chain of statements back to where the \
             wrong value was made, and rules it broke before. Begin here.",
            true,
            json!({ "recording": recording }),
            &["recording"],
        ),
        tool(
            "state",
            "What there was at a moment: the stack of calls, the local variables of the innermost call, and the values of \
             expressions of the program such as p->next->key.",
            true,
            json!({ "recording": recording, "at": at,
                    "expressions": { "type": "array", "items": { "type": "string" },
                                     "description": "expressions to evaluate there" } }),
            &["recording", "at"],
        ),
        tool(
            "origin",
            "Where a value came from: goes back from a moment to the write that made the value of an expression, and from \
             there to what that was made from, a few steps.",
            true,
            json!({ "recording": recording, "at": at, "expression": text("the value, such as node->count"),
                    "steps": { "type": "integer", "minimum": 1, "maximum": STEPS,
                               "description": "how many steps back, 3 if not said" } }),
            &["recording", "at", "expression"],
        ),
        tool(
            "whatif",
            "What the program would have done with one thing altered: a decision that goes the other way (switch), a \
             statement or call left out (suppress), or a value set. Says whether the failure goes away. Nothing is run \
             for real: what would act outside is refused.",
            true,
            json!({ "recording": recording,
                    "switch": text("FILE:LINE#N of a decision"),
                    "suppress": text("FILE:LINE#N of a statement, or FUNCTION#N of a call"),
                    "set": text("EXPRESSION=VALUE; needs `at`"), "at": at }),
            &["recording"],
        ),
        tool(
            "findings",
            "Memory errors and other broken rules in the recording, with their moments: out of bounds, use after free, \
             double free, uninitialised values.",
            true,
            json!({ "recording": recording }),
            &["recording"],
        ),
    ];
    if allow_run {
        tools.push(tool(
            "record",
            "Runs a program and records it to a file, for the other tools. The program really runs.",
            false,
            json!({ "program": text("the program"),
                    "arguments": { "type": "array", "items": { "type": "string" } },
                    "recording": text("path of the recording to make; an existing file is not overwritten"),
                    "folder": text("where to run it"),
                    "seconds": { "type": "integer", "minimum": 1, "description": "end it after so long, 60 if not said" } }),
            &["program", "recording"],
        ));
    }
    tools
}

/// Carries a tool out.
pub fn call(name: &str, given: &Value, allow_run: bool) -> anyhow::Result<String> {
    match name {
        "record" if allow_run => record(given),
        "record" => {
            bail!("programs may not be run; the user allows it with `whydunit mcp --allow-run`")
        }
        "explain" => {
            let file = recording(given)?;
            command(&["why", &file])
        }
        "findings" => findings(&recording(given)?),
        "whatif" => what_if(given),
        "state" => state(given),
        "origin" => origin(given),
        other => bail!("there is no tool {other}"),
    }
}

fn text<'a>(given: &'a Value, name: &str) -> anyhow::Result<&'a str> {
    given[name].as_str().with_context(|| format!("'{name}' is missing; it is a text"))
}

/// The recording that is asked about. What begins with a dash would be an option.
fn recording(given: &Value) -> anyhow::Result<String> {
    let file = text(given, "recording")?;
    ensure!(!file.starts_with('-'), "{file} is no recording");
    ensure!(
        Path::new(file).is_file(),
        "there is no file {file}; make one with `whydunit record -o {file} -- PROGRAM`"
    );
    Ok(file.to_owned())
}

/// What one of our commands says; what it says on the side only if it fails.
fn command(arguments: &[&str]) -> anyhow::Result<String> {
    let (output, error, code) = recorder::ask(arguments)?;
    ensure!(code != 2 && code != 70, "{}", error.trim_end());
    Ok(output)
}

fn record(given: &Value) -> anyhow::Result<String> {
    let (program, file) = (text(given, "program")?, text(given, "recording")?);
    ensure!(!Path::new(file).exists(), "{file} is there already, and is not overwritten");
    ensure!(!file.starts_with('-'), "{file} is no name for a recording");
    let arguments = given["arguments"].as_array().cloned().unwrap_or_default();
    let arguments: Vec<String> =
        arguments.iter().filter_map(|it| it.as_str().map(str::to_owned)).collect();
    let seconds = given["seconds"].as_u64().unwrap_or(60);
    let limits = (given["folder"].as_str(), Some(seconds));
    let (output, error) = recorder::record_to(file, program, &arguments, limits)?;
    let ended = Case::open(Path::new(file), Notices::none())?;
    let end = ended.end_of(ended.failed_process());
    Ok(format!(
        "recorded to {file}; its end: {end:?}\nstandard output:\n{output}\nstandard error:\n{error}"
    ))
}

fn findings(file: &str) -> anyhow::Result<String> {
    let case = Case::open(Path::new(file), Notices::none())?;
    let process = case.process(None)?;
    let mut debugger = Debugger::at(&case, process, &"start".parse()?)?;
    let all = debugger.findings()?;
    let mut told = format!("{} findings\n", all.len());
    for (index, finding) in all.iter().enumerate() {
        let _ = writeln!(told, "{}", words::finding(index + 1, finding));
        for step in &finding.evidence {
            let place =
                step.place.as_ref().map_or_else(String::new, |place| format!(", at {place}"));
            let _ = writeln!(told, "        {}{place}", step.text);
        }
    }
    Ok(told)
}

fn what_if(given: &Value) -> anyhow::Result<String> {
    let file = recording(given)?;
    let mut arguments = vec!["whatif".to_owned()];
    let mut alterations = 0;
    for name in ["switch", "suppress", "set"] {
        if let Some(value) = given[name].as_str() {
            arguments.push(format!("--{name}={value}"));
            alterations += 1;
        }
    }
    ensure!(alterations == 1, "say one of switch, suppress and set");
    if let (Some(at), true) = (given["at"].as_str(), given["set"].is_string()) {
        arguments.push(format!("--at={at}"));
    }
    arguments.push(file);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    command(&arguments)
}

/// Opens a recording at a moment, and looks.
fn at_moment<R>(
    given: &Value,
    look: impl FnOnce(&mut Debugger<'_>) -> anyhow::Result<R>,
) -> anyhow::Result<R> {
    let file = recording(given)?;
    let moment: Moment = text(given, "at")?.parse()?;
    let case = Case::open(Path::new(&file), Notices::none())?;
    let process = case.process(None)?;
    look(&mut Debugger::at(&case, process, &moment)?)
}

fn state(given: &Value) -> anyhow::Result<String> {
    let expressions = given["expressions"].as_array().cloned().unwrap_or_default();
    at_moment(given, |debugger| {
        let mut told = format!("moment {}\n", words::moment(debugger));
        let running = debugger.running();
        let threads: Vec<String> =
            debugger.threads()?.iter().map(|(number, _)| number.to_string()).collect();
        let _ = writeln!(told, "thread {running} runs; threads: {}", threads.join(", "));
        let seen = debugger.with_scene(None, |scene| {
            let mut seen = String::from("stack:\n");
            for (index, call) in scene.each_call().take(CALLS).enumerate() {
                let place = call
                    .line
                    .map_or_else(|| call.pc.to_string(), |it| format!("{}:{}", it.file, it.line));
                let _ = writeln!(
                    seen,
                    "  {index}  {} at {place}",
                    call.function.unwrap_or_else(|| "?".into())
                );
            }
            seen += "variables of the innermost call:\n";
            for local in scene.locals(Level::default()).iter().filter(|local| !local.hidden) {
                let value = scene.print(&scene.value_of(local), &Printing::SHORT);
                let _ = writeln!(seen, "  {} = {value}", local.name);
            }
            for text in expressions.iter().filter_map(Value::as_str) {
                let value = match scene.evaluate(Level::default(), text) {
                    Ok(value) => scene.print(&value, &Printing::default()),
                    Err(error) => error.to_string(),
                };
                let _ = writeln!(seen, "{text} = {value}");
            }
            seen
        })?;
        Ok(told + &seen)
    })
}

fn origin(given: &Value) -> anyhow::Result<String> {
    let expression = text(given, "expression")?.to_owned();
    let steps = given["steps"].as_u64().unwrap_or(3).clamp(1, STEPS);
    at_moment(given, |debugger| {
        let mut told = String::new();
        for step in 0..steps {
            let before = debugger.instant();
            let found = match step {
                0 => debugger.origin(Level::default(), &expression)?,
                _ => debugger.origin_of_this()?,
            };
            match found {
                Origin::Here { value, before } => {
                    let place = debugger.place()?;
                    let what = if value.is_empty() {
                        "made from a value".into()
                    } else {
                        format!("{expression} = {value}")
                    };
                    let before =
                        before.map_or_else(String::new, |it| format!(", which held {it} before"));
                    let _ = writeln!(
                        told,
                        "{what}: written at {place}{before}, moment {}",
                        words::moment(debugger)
                    );
                }
                Origin::Loaded { value } => {
                    let _ = writeln!(
                        told,
                        "{value} nobody wrote it: it is as it was when the program was loaded"
                    );
                    break;
                }
            }
            if debugger.instant() == before {
                break;
            }
        }
        Ok(told)
    })
}
