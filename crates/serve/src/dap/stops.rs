//! Breakpoints of all kinds, as an editor sets them: always all of one kind at once.

use super::session::Session;
use anyhow::Context;
use base::PlaceName;
use investigate::debugging::Watch;
use investigate::debugging::conditions::Hits;
use investigate::debugging::points::Reason;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;

/// What an editor has set.
#[derive(Default)]
pub struct Stops {
    lines: HashMap<String, Vec<u32>>,
    functions: Vec<u32>,
    instructions: Vec<u32>,
    data: Vec<Watch>,
}

impl Stops {
    /// What the protocol calls a stop at a breakpoint.
    pub fn reason(&self, id: u32) -> &'static str {
        if self.functions.contains(&id) {
            "function breakpoint"
        } else if self.instructions.contains(&id) {
            "instruction breakpoint"
        } else {
            "breakpoint"
        }
    }
}

impl Session<'_, '_> {
    pub(super) fn set_lines(&mut self, given: &Value) -> anyhow::Result<Value> {
        let path = given["source"]["path"].as_str().or_else(|| given["source"]["name"].as_str());
        let path = path.context("the source has no path")?.to_owned();
        let old = self.stops.lines.remove(&path).unwrap_or_default();
        for id in old {
            self.debugger.remove_breakpoint(id);
        }
        let mut told = Vec::new();
        let mut ids = Vec::new();
        for wanted in given["breakpoints"].as_array().unwrap_or(&Vec::new()) {
            let line = wanted["line"].as_u64().and_then(|line| u32::try_from(line).ok());
            let line = line.context("a breakpoint has no line")?;
            told.push(match self.add_line(&path, line, wanted) {
                Ok((id, line)) => {
                    ids.push(id);
                    json!({ "id": id, "verified": true, "line": line })
                }
                Err(error) => {
                    json!({ "verified": false, "line": line, "message": format!("{error:#}") })
                }
            });
        }
        self.stops.lines.insert(path, ids);
        Ok(json!({ "breakpoints": told }))
    }

    /// A breakpoint at a line of a file; if the program knows no file of that path, of that name.
    fn add_line(&mut self, path: &str, line: u32, wanted: &Value) -> anyhow::Result<(u32, u32)> {
        let at = |file: &str| PlaceName::Line { file: file.to_owned(), line };
        let name = Path::new(path).file_name().map_or(path.into(), |name| name.to_string_lossy());
        let program = self.debugger.whole_program()?;
        let place = match program.resolve(&at(path)) {
            Ok(_) => at(path),
            Err(_) => at(&name),
        };
        let found = program.resolve(&place)?;
        let line = found.iter().find_map(|it| it.line.as_ref()).map_or(line, |it| it.line);
        Ok((self.add(&place, wanted)?, line))
    }

    fn add(&mut self, place: &PlaceName, wanted: &Value) -> anyhow::Result<u32> {
        let text = |name: &str| wanted[name].as_str().filter(|text| !text.trim().is_empty());
        let hits = text("hitCondition").map_or(Ok(Hits::All), Hits::parse)?;
        self.debugger.add_breakpoint(place, text("condition"), hits)
    }

    pub(super) fn set_functions(&mut self, given: &Value) -> anyhow::Result<Value> {
        let old = std::mem::take(&mut self.stops.functions);
        for id in old {
            self.debugger.remove_breakpoint(id);
        }
        let (ids, told) = self.add_all(given, |wanted| Some(wanted["name"].as_str()?.to_owned()));
        self.stops.functions = ids;
        Ok(told)
    }

    pub(super) fn set_instructions(&mut self, given: &Value) -> anyhow::Result<Value> {
        let old = std::mem::take(&mut self.stops.instructions);
        for id in old {
            self.debugger.remove_breakpoint(id);
        }
        let (ids, told) = self.add_all(given, |wanted| {
            let address = address(wanted["instructionReference"].as_str()?)?;
            let offset = wanted["offset"].as_i64().unwrap_or(0);
            Some(format!("*{:#x}", address.wrapping_add_signed(offset)))
        });
        self.stops.instructions = ids;
        Ok(told)
    }

    fn add_all(
        &mut self,
        given: &Value,
        place: impl Fn(&Value) -> Option<String>,
    ) -> (Vec<u32>, Value) {
        let (mut ids, mut told) = (Vec::new(), Vec::new());
        for wanted in given["breakpoints"].as_array().unwrap_or(&Vec::new()) {
            let added = (|| {
                let text = place(wanted).context("it does not say where")?;
                self.add(&text.parse()?, wanted)
            })();
            told.push(match added {
                Ok(id) => {
                    ids.push(id);
                    json!({ "id": id, "verified": true })
                }
                Err(error) => json!({ "verified": false, "message": format!("{error:#}") }),
            });
        }
        (ids, json!({ "breakpoints": told }))
    }

    pub(super) fn data_info(&mut self, given: &Value) -> anyhow::Result<Value> {
        let name = given["name"].as_str().context("there is no name")?;
        let reference = given["variablesReference"].as_i64();
        let (thread, level, text) = match reference.filter(|reference| *reference > 0) {
            Some(reference) => self.expression_of(reference, name)?,
            None => {
                let (thread, level) = self.handles.frame(given["frameId"].as_i64());
                (thread, level, name.to_owned())
            }
        };
        let held = self.debugger.with_scene(thread, |scene| {
            let value = scene.evaluate(level, &text)?;
            let size = scene.size_of(value.module, &value.ty).unwrap_or(8).max(1);
            anyhow::Ok((value.held.address(), size))
        })??;
        Ok(match held {
            (Some(address), size) => json!({
                "dataId": format!("{:#x},{size}", address.0), "description": text,
                "accessTypes": ["read", "write", "readWrite"], "canPersist": false,
            }),
            (None, _) => {
                json!({ "dataId": null, "description": format!("{text} is not in memory") })
            }
        })
    }

    pub(super) fn set_data(&mut self, given: &Value) -> anyhow::Result<Value> {
        for watch in std::mem::take(&mut self.stops.data) {
            self.debugger.remove_watch(watch);
        }
        let mut told = Vec::new();
        for wanted in given["breakpoints"].as_array().unwrap_or(&Vec::new()) {
            let id = wanted["dataId"].as_str().and_then(|id| id.split_once(','));
            let place = id.and_then(|(at, size)| Some((address(at)?, size.parse::<u64>().ok()?)));
            let Some((address, size)) = place.filter(|(_, size)| *size > 0) else {
                told.push(json!({ "verified": false, "message": "that names no memory" }));
                continue;
            };
            let access = wanted["accessType"].as_str().unwrap_or("write");
            let (reads, writes) = (access != "write", access != "read");
            let watch = Watch { address, size, reads, writes };
            self.debugger.add_watch(watch);
            self.stops.data.push(watch);
            told.push(json!({ "verified": true }));
        }
        Ok(json!({ "breakpoints": told }))
    }

    pub(super) fn set_exceptions(&mut self, given: &Value) -> anyhow::Result<Value> {
        let filters = given["filters"].as_array().cloned().unwrap_or_default();
        self.debugger
            .remove_points(|reason| matches!(reason, Reason::Finding(_) | Reason::Signal(_)));
        for filter in &filters {
            match filter.as_str() {
                Some("findings") => _ = self.debugger.stop_at_findings()?,
                Some("signals") => _ = self.debugger.stop_at_signals()?,
                _ => anyhow::bail!("there is no exception filter {filter}"),
            }
        }
        Ok(Value::Null)
    }
}

/// An address as a client writes it.
pub fn address(text: &str) -> Option<u64> {
    match text.trim().strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.trim().parse().ok(),
    }
}
