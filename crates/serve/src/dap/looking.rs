//! What an editor shows: threads, calls, variables, memory, disassembly.

use super::session::Session;
use super::stops::address;
use anyhow::{Context, ensure};
use base::{Address, ThreadNumber};
use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};
use serde_json::{Value, json};
use symbols::types::{Count, Shape};
use symbols::{Level, Printing, Scene, Value as Held};

/// Calls that are told at once at most.
const MOST_CALLS: usize = 1000;
/// Members or elements that are told at once at most.
const MOST_CHILDREN: u64 = 1000;
/// Instructions that are told at once at most.
const MOST_INSTRUCTIONS: usize = 4096;
/// Bytes that are told at once at most.
const MOST_BYTES: usize = 1 << 20;

/// What the numbers mean that an editor was given, until the program moves.
#[derive(Default)]
pub struct Handles {
    frames: Vec<(ThreadNumber, Level)>,
    parts: Vec<Part>,
}

/// Something that can be unfolded.
#[derive(Clone)]
enum Part {
    Locals(Option<ThreadNumber>, Level),
    Registers(Option<ThreadNumber>),
    Value(Option<ThreadNumber>, Level, String),
}

impl Handles {
    /// The program has moved.
    pub fn forget(&mut self) {
        (self.frames, self.parts) = (Vec::new(), Vec::new());
    }

    /// The thread and call that a number means; the innermost of the running thread if there is none.
    pub fn frame(&self, number: Option<i64>) -> (Option<ThreadNumber>, Level) {
        let known = number.and_then(|number| usize::try_from(number - 1).ok());
        let frame = known.and_then(|index| self.frames.get(index));
        frame.map_or((None, Level::default()), |(thread, level)| (Some(*thread), *level))
    }

    fn part(&mut self, part: Part) -> usize {
        self.parts.push(part);
        self.parts.len()
    }
}

impl Session<'_, '_> {
    pub(super) fn threads(&mut self) -> anyhow::Result<Value> {
        let threads: Vec<Value> = self
            .debugger
            .threads()?
            .iter()
            .map(|(number, _)| json!({ "id": number.0, "name": format!("thread {number}") }))
            .collect();
        Ok(json!({ "threads": threads }))
    }

    pub(super) fn stack(&mut self, given: &Value) -> anyhow::Result<Value> {
        let thread = given["threadId"].as_u64().and_then(|number| u32::try_from(number).ok());
        let thread = ThreadNumber(thread.context("of which thread?")?);
        let start = given["startFrame"].as_u64().unwrap_or(0) as usize;
        let levels =
            given["levels"].as_u64().filter(|levels| *levels > 0).unwrap_or(MOST_CALLS as u64);
        let calls = self.debugger.with_scene(Some(thread), |scene| scene.calls())?;
        let total = calls.len();
        let mut frames = Vec::new();
        for call in calls.into_iter().skip(start).take((levels as usize).min(MOST_CALLS)) {
            self.handles.frames.push((thread, call.level));
            let mut frame = json!({
                "id": self.handles.frames.len(),
                "name": call.function.unwrap_or_else(|| format!("{}", call.pc)),
                "line": 0, "column": 0,
                "instructionPointerReference": format!("{}", call.pc),
            });
            if let Some(line) = call.line {
                let name = line.file.rsplit('/').next().unwrap_or(&line.file).to_owned();
                frame["source"] = json!({ "name": name, "path": line.file });
                frame["line"] = json!(line.line);
            }
            frames.push(frame);
        }
        Ok(json!({ "stackFrames": frames, "totalFrames": total }))
    }

    pub(super) fn scopes(&mut self, given: &Value) -> anyhow::Result<Value> {
        let (thread, level) = self.handles.frame(given["frameId"].as_i64());
        ensure!(thread.is_some(), "there is no such frame any more");
        let locals = self.handles.part(Part::Locals(thread, level));
        let registers = self.handles.part(Part::Registers(thread));
        Ok(json!({ "scopes": [
            { "name": "Locals", "presentationHint": "locals", "variablesReference": locals, "expensive": false },
            { "name": "Registers", "presentationHint": "registers", "variablesReference": registers, "expensive": false },
        ] }))
    }

    fn part(&self, reference: i64) -> anyhow::Result<Part> {
        let index = usize::try_from(reference - 1).ok();
        let part = index.and_then(|index| self.handles.parts.get(index));
        part.cloned().context("that is of a moment that has passed")
    }

    /// The expression of a variable or member that an editor was shown.
    pub(super) fn expression_of(
        &self,
        reference: i64,
        name: &str,
    ) -> anyhow::Result<(Option<ThreadNumber>, Level, String)> {
        Ok(match self.part(reference)? {
            Part::Locals(thread, level) => (thread, level, name.to_owned()),
            Part::Registers(thread) => (thread, Level::default(), format!("${name}")),
            Part::Value(thread, level, text) => (thread, level, child(&text, name)),
        })
    }

    pub(super) fn variables(&mut self, given: &Value) -> anyhow::Result<Value> {
        let reference = given["variablesReference"].as_i64().context("of what?")?;
        let part = self.part(reference)?;
        let (start, count) = (given["start"].as_u64().unwrap_or(0), given["count"].as_u64());
        let count = count.filter(|count| *count > 0).unwrap_or(MOST_CHILDREN).min(MOST_CHILDREN);
        let (thread, level, names) = match &part {
            Part::Registers(thread) => return self.registers(*thread),
            Part::Locals(thread, level) => {
                let names = self.debugger.with_scene(*thread, |scene| {
                    let locals = scene.locals(*level).into_iter().filter(|local| !local.hidden);
                    locals.map(|local| (local.name.clone(), local.name)).collect::<Vec<_>>()
                })?;
                (*thread, *level, names)
            }
            Part::Value(thread, level, text) => {
                let names = self.debugger.with_scene(*thread, |scene| {
                    let value = scene.evaluate(*level, text)?;
                    anyhow::Ok(children(scene, &value, (start, count)))
                })??;
                let named = names.into_iter().map(|name| (name.clone(), child(text, &name)));
                (*thread, *level, named.collect())
            }
        };
        let mut told = Vec::new();
        for (name, text) in names {
            let mut value = self.value(thread, level, &text).unwrap_or_else(
                |error| json!({ "result": format!("{error:#}"), "variablesReference": 0 }),
            );
            value["value"] = value["result"].take();
            value.as_object_mut().map(|value| value.remove("result"));
            value["name"] = json!(name);
            value["evaluateName"] = json!(text);
            told.push(value);
        }
        Ok(json!({ "variables": told }))
    }

    fn registers(&mut self, thread: Option<ThreadNumber>) -> anyhow::Result<Value> {
        const NAMES: [&str; 16] = [
            "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11",
            "r12", "r13", "r14", "r15",
        ];
        let all = self.debugger.threads()?;
        let own = thread.unwrap_or_else(|| self.debugger.running());
        let (_, data) = all.iter().find(|(number, _)| *number == own).context("no such thread")?;
        let pairs = NAMES.into_iter().zip(data.general);
        let all = pairs.chain([("rip", data.pc), ("eflags", data.flags)]);
        let told: Vec<Value> = all
            .map(|(name, value)| {
                json!({ "name": name, "value": format!("{value:#x}"), "variablesReference": 0,
                        "evaluateName": format!("${name}"), "memoryReference": format!("{value:#x}") })
            })
            .collect();
        Ok(json!({ "variables": told }))
    }

    /// The value of an expression, as `evaluate` has it.
    pub(super) fn value(
        &mut self,
        thread: Option<ThreadNumber>,
        level: Level,
        text: &str,
    ) -> anyhow::Result<Value> {
        let (shown, kind, address, inside, indexed) =
            self.debugger.with_scene(thread, |scene| {
                let value = scene.evaluate(level, text)?;
                let (inside, indexed) = unfolds(scene, &value);
                let kind = scene.type_name(value.module, &value.ty);
                let shown = scene.print(&value, &Printing::SHORT);
                anyhow::Ok((shown, kind, points_to(scene, &value), inside, indexed))
            })??;
        let reference = match inside {
            true => self.handles.part(Part::Value(thread, level, text.to_owned())),
            false => 0,
        };
        let mut told = json!({ "result": shown, "type": kind, "variablesReference": reference });
        if let Some(count) = indexed {
            told["indexedVariables"] = json!(count);
        }
        if let Some(address) = address {
            told["memoryReference"] = json!(format!("{address}"));
        }
        Ok(told)
    }

    pub(super) fn set_expression(&mut self, given: &Value) -> anyhow::Result<Value> {
        let text = given["expression"].as_str().context("there is no expression")?;
        let value = given["value"].as_str().context("there is no value")?;
        let (_, level) = self.handles.frame(given["frameId"].as_i64());
        ensure!(level == Level::default(), "only what the innermost call sees can be set");
        self.debugger.set(&format!("{text}={value}"))?;
        Ok(json!({ "value": value }))
    }

    pub(super) fn read_memory(&mut self, given: &Value) -> anyhow::Result<Value> {
        let at =
            given["memoryReference"].as_str().and_then(address).context("that is no address")?;
        let at = at.wrapping_add_signed(given["offset"].as_i64().unwrap_or(0));
        let count = given["count"].as_u64().unwrap_or(0).min(MOST_BYTES as u64) as usize;
        let mut bytes = vec![0; count];
        let got = self.debugger.read(at, &mut bytes);
        Ok(json!({
            "address": format!("{at:#x}"), "data": base64(&bytes[..got]),
            "unreadableBytes": count - got,
        }))
    }

    pub(super) fn disassemble(&mut self, given: &Value) -> anyhow::Result<Value> {
        let at =
            given["memoryReference"].as_str().and_then(address).context("that is no address")?;
        let at = at.wrapping_add_signed(given["offset"].as_i64().unwrap_or(0));
        let before = given["instructionOffset"].as_i64().unwrap_or(0);
        let count =
            given["instructionCount"].as_u64().unwrap_or(0).min(MOST_INSTRUCTIONS as u64) as usize;
        let back = usize::try_from(-before).unwrap_or(0).min(MOST_INSTRUCTIONS);
        let program = self.debugger.program()?;
        // Backwards it cannot be decoded, so it begins where the function does.
        let entry = program.function_at(Address(at)).map(|function| function.entry.0);
        let from = if back > 0 { entry.filter(|entry| *entry <= at).unwrap_or(at) } else { at };
        let all = self.decoded(from, at, count + back + before.max(0) as usize);
        let index = all.iter().position(|(pc, ..)| *pc >= at).unwrap_or(0) as i64 + before;
        let mut told = Vec::new();
        for index in index..index + count as i64 {
            let known = usize::try_from(index).ok().and_then(|index| all.get(index));
            let Some((pc, bytes, text)) = known else {
                told.push(json!({ "address": "0x0", "instruction": "(bad)", "presentationHint": "invalid" }));
                continue;
            };
            let mut line = json!({ "address": format!("{pc:#x}"), "instruction": text, "instructionBytes": bytes });
            if let Some(found) = program.line_at(Address(*pc)) {
                line["line"] = json!(found.line.line);
                line["location"] = json!({ "path": found.line.file });
            }
            told.push(line);
        }
        Ok(json!({ "instructions": told }))
    }

    /// Instructions from an address, so many behind another one.
    fn decoded(&self, from: u64, at: u64, behind: usize) -> Vec<(u64, String, String)> {
        const LONGEST: usize = 15;
        let length = (at - from) as usize + LONGEST * (behind + 1);
        let mut bytes = vec![0; length.min(MOST_BYTES)];
        let got = self.debugger.read(from, &mut bytes);
        let (mut formatter, mut all, mut left) = (IntelFormatter::new(), Vec::new(), behind);
        let mut decoder = Decoder::with_ip(64, &bytes[..got], from, DecoderOptions::NONE);
        while decoder.can_decode() && left > 0 {
            let instruction = decoder.decode();
            let mut text = String::new();
            formatter.format(&instruction, &mut text);
            let start = (instruction.ip() - from) as usize;
            let own = bytes[start..start + instruction.len()].iter();
            let shown = own.map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
            left -= usize::from(instruction.ip() >= at);
            all.push((instruction.ip(), shown, text));
        }
        all
    }
}

/// The expression of a member or element.
fn child(text: &str, name: &str) -> String {
    match name {
        _ if name.starts_with('[') => format!("({text}){name}"),
        "*" => format!("*({text})"),
        name => format!("({text}).{name}"),
    }
}

/// Whether there is something inside a value, and how many elements if they have numbers.
fn unfolds(scene: &Scene<'_>, value: &Held) -> (bool, Option<u64>) {
    let (module, _, found) = scene.stripped(value.module, &value.ty);
    match &found.shape {
        Shape::Record(_) => match scene.sequence(value) {
            Some(sequence) => (sequence.count > 0, Some(sequence.count)),
            None => (!scene.member_names(value).is_empty(), None),
        },
        Shape::Array { counts, .. } => match counts.first() {
            Some(Count::Fixed(count)) => (*count > 0, Some(*count)),
            _ => (false, None),
        },
        Shape::Pointer { to } | Shape::Reference { to } => {
            let inner = scene.stripped(module, to).2;
            let there = points_to(scene, value).is_some_and(|address| address.0 != 0);
            (there && !matches!(inner.shape, Shape::Void | Shape::Function { .. }), None)
        }
        _ => (false, None),
    }
}

/// The names of what is inside a value.
fn children(scene: &Scene<'_>, value: &Held, (start, count): (u64, u64)) -> Vec<String> {
    let (module, _, found) = scene.stripped(value.module, &value.ty);
    if let (_, Some(all)) = unfolds(scene, value) {
        return (start..all.min(start.saturating_add(count)))
            .map(|index| format!("[{index}]"))
            .collect();
    }
    if let Shape::Pointer { to } | Shape::Reference { to } = &found.shape {
        let is_record = matches!(scene.stripped(module, to).2.shape, Shape::Record(_));
        let inner = scene.dereference(value).ok().flatten();
        return match inner.filter(|_| is_record) {
            Some(inner) => scene.member_names(&inner),
            None => vec!["*".into()],
        };
    }
    scene.member_names(value)
}

/// The address that a pointer holds, or where a value is.
fn points_to(scene: &Scene<'_>, value: &Held) -> Option<Address> {
    let (_, _, found) = scene.stripped(value.module, &value.ty);
    if matches!(found.shape, Shape::Pointer { .. } | Shape::Reference { .. }) {
        let bytes = scene.bytes(value).ok()?;
        return Some(Address(u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?)));
    }
    value.held.address()
}

/// Bytes as the protocol carries them.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits = three.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - three.len()));
        for digit in 0..4 {
            let there = digit <= three.len();
            let index = (bits >> (18 - 6 * digit)) as usize & 63;
            text.push(if there { char::from(DIGITS[index]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn bytes_are_carried_as_everybody_does() {
        let rows =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        for (bytes, expected) in rows {
            assert_eq!(base64(bytes.as_bytes()), expected);
        }
    }
}
