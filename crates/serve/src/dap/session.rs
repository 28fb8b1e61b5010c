//! A session with an editor: what it asks for is looked up, and movements are made.

use super::looking::Handles;
use super::stops::Stops;
use super::wire::{Request, Wire};
use crate::commands::{self, words};
use anyhow::Context;
use base::{Ending, ThreadNumber};
use investigate::debugging::lines::Stride;
use investigate::debugging::points::Reason;
use investigate::debugging::{Debugger, Stop};
use serde_json::{Value, json};

/// One editor and what it looks at.
pub struct Session<'case, 'out> {
    pub(super) debugger: Debugger<'case>,
    wire: Wire<'out>,
    pub(super) stops: Stops,
    pub(super) handles: Handles,
}

/// Whether to go on serving.
enum Then {
    On,
    Leave,
}

impl<'case, 'out> Session<'case, 'out> {
    pub fn new(debugger: Debugger<'case>, wire: Wire<'out>) -> Self {
        Self { debugger, wire, stops: Stops::default(), handles: Handles::default() }
    }

    /// Serves requests until the editor leaves.
    pub fn run(mut self) -> anyhow::Result<()> {
        while let Some(request) = self.wire.next()? {
            if let Then::Leave = self.serve(&request)? {
                return Ok(());
            }
        }
        Ok(())
    }

    fn serve(&mut self, request: &Request) -> anyhow::Result<Then> {
        match request.command.as_str() {
            "disconnect" | "terminate" => {
                self.wire.answer(request, Value::Null)?;
                self.wire.event("terminated", json!({}))?;
                return Ok(Then::Leave);
            }
            "configurationDone" => {
                self.wire.answer(request, Value::Null)?;
                let stop = self.debugger.end().unwrap_or(Stop::Moved);
                self.tell(&stop, "entry")?;
            }
            "pause" => {
                self.wire.answer(request, Value::Null)?;
                self.tell(&Stop::Interrupted, "pause")?;
            }
            "continue" | "reverseContinue" | "next" | "stepIn" | "stepOut" | "stepBack" => {
                self.movement(request)?;
            }
            "evaluate" | "whydunit/origin" => match self.evaluate(&request.arguments) {
                Ok((body, moved)) => {
                    self.wire.answer(request, body)?;
                    if moved {
                        self.tell(&Stop::Moved, "goto")?;
                    }
                }
                Err(error) => self.wire.refuse(request, &format!("{error:#}"))?,
            },
            _ => match self.look_up(request) {
                Ok(body) => self.wire.answer(request, body)?,
                Err(error) => self.wire.refuse(request, &format!("{error:#}"))?,
            },
        }
        Ok(Then::On)
    }

    fn look_up(&mut self, request: &Request) -> anyhow::Result<Value> {
        let given = &request.arguments;
        match request.command.as_str() {
            "setBreakpoints" => self.set_lines(given),
            "setFunctionBreakpoints" => self.set_functions(given),
            "setInstructionBreakpoints" => self.set_instructions(given),
            "dataBreakpointInfo" => self.data_info(given),
            "setDataBreakpoints" => self.set_data(given),
            "setExceptionBreakpoints" => self.set_exceptions(given),
            "threads" => self.threads(),
            "stackTrace" => self.stack(given),
            "scopes" => self.scopes(given),
            "variables" => self.variables(given),
            "setExpression" => self.set_expression(given),
            "disassemble" => self.disassemble(given),
            "readMemory" => self.read_memory(given),
            other => anyhow::bail!("{other} is not supported"),
        }
    }

    /// A command of ours in the console, or the value of an expression.
    fn evaluate(&mut self, given: &Value) -> anyhow::Result<(Value, bool)> {
        let text = given["expression"].as_str().context("there is no expression")?.trim();
        let (thread, level) = self.handles.frame(given["frameId"].as_i64());
        let first = text.split_whitespace().next().unwrap_or_default();
        let is_command = commands::COMMANDS.iter().any(|known| known.name == first);
        if (given["context"] == "repl" && is_command) || first == "origin" {
            let said = commands::run(&mut self.debugger, level, text);
            return Ok((json!({ "result": said.text, "variablesReference": 0 }), said.moved));
        }
        Ok((self.value(thread, level, text)?, false))
    }

    fn movement(&mut self, request: &Request) -> anyhow::Result<()> {
        let given = &request.arguments;
        let thread = given["threadId"].as_u64().and_then(|number| u32::try_from(number).ok());
        let thread = thread.map_or_else(|| self.debugger.running(), ThreadNumber);
        let single = given["granularity"] == "instruction";
        self.wire.answer(
            request,
            match request.command.as_str() {
                "continue" => json!({ "allThreadsContinued": true }),
                _ => Value::Null,
            },
        )?;
        self.handles.forget();
        let Self { debugger, wire, .. } = self;
        let mut patience = || wire.wants_pause();
        let moved = match request.command.as_str() {
            "continue" => debugger.resume(&mut patience),
            "reverseContinue" => debugger.resume_back(&mut patience),
            "stepBack" if single => debugger.step_back(thread),
            "next" | "stepIn" | "stepOut" if single => debugger.step(thread),
            "next" => debugger.step_line(thread, (Stride::Over, false), &mut patience),
            "stepIn" => debugger.step_line(thread, (Stride::Into, false), &mut patience),
            "stepOut" => debugger.step_line(thread, (Stride::Out, false), &mut patience),
            _ => debugger.step_line(thread, (Stride::Over, true), &mut patience),
        };
        match moved {
            Ok(stop) => self.tell(&stop, "step"),
            Err(error) => {
                let output = format!("whydunit: {error:#}\n");
                self.wire.event("output", json!({ "category": "important", "output": output }))?;
                self.tell(&Stop::Moved, "pause")
            }
        }
    }

    /// Says that and why the program stands still.
    fn tell(&mut self, stop: &Stop, usual: &str) -> anyhow::Result<()> {
        let reason = match stop {
            Stop::Moved => usual,
            Stop::Breakpoint => "breakpoint",
            Stop::Condition(id) => self.stops.reason(*id),
            Stop::Watched(_) => "data breakpoint",
            Stop::Point(Reason::Finding(_) | Reason::Signal(_)) => "exception",
            Stop::Point(_) => "breakpoint",
            Stop::Interrupted => "pause",
            Stop::Beginning => "entry",
            Stop::End(Some(Ending::Signal(_))) | Stop::Diverted(_) => "exception",
            Stop::End(_) => "exit",
        };
        let text = words::stop(&mut self.debugger, stop).or_else(|| match stop {
            Stop::End(Some(Ending::Signal(signal))) => {
                Some(format!("{} ends the program", investigate::crash::signal_name(*signal)))
            }
            Stop::Beginning => Some("nothing is before this".into()),
            _ => None,
        });
        let mut body = json!({
            "reason": reason, "threadId": self.debugger.running().0, "allThreadsStopped": true,
        });
        if let Stop::Condition(id) = stop {
            body["hitBreakpointIds"] = json!([id]);
        }
        if let Some(text) = text {
            let first = text.lines().next().unwrap_or_default().to_owned();
            body["description"] = json!(first);
            body["text"] = json!(first);
            let output = format!("{text}\n");
            self.wire.event("output", json!({ "category": "console", "output": output }))?;
        }
        self.handles.forget();
        self.wire.event("stopped", body)
    }
}
