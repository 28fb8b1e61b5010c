//! A slice as instructions: every execution in it, and every edge between two.

use super::execution::Execution;
use crate::render::assembly;
use analyze::dependence::control::Code;
use analyze::slice::graph::{Because, Kind};
use analyze::slice::{Slice, What};
use base::{Address, Place};
use serde::Serialize;
use std::fmt::Write;
use symbols::program::CodePlace;

/// Bytes that no instruction has more of.
const LONGEST: usize = 15;

/// An execution.
#[derive(Serialize)]
struct Executed {
    /// Instructions of all threads executed before.
    moment: u64,
    thread: u32,
    pc: Address,
    /// Which execution of the instruction it is.
    instance: i64,
    place: Place,
    /// The function by symbol table, and how far into it the instruction is.
    #[serde(skip_serializing_if = "Option::is_none")]
    symbol: Option<String>,
    /// The file that the code is from, and where in its addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    module: Option<String>,
    /// Its text, if the code is at hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    instruction: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_call: Option<String>,
}

/// A dependence between two of the executions, by number. User 0 is the question.
#[derive(Serialize)]
struct Edge {
    user: u32,
    on: u32,
    kind: &'static str,
    because: String,
}

/// A slice as instructions, the latest first.
#[derive(Serialize)]
pub struct Listed {
    executions: Vec<Option<Executed>>,
    edges: Vec<Edge>,
    cut: bool,
}

/// All of a slice.
pub fn list(execution: &Execution, answer: &Slice) -> Listed {
    let executed = answer.nodes.iter().map(|node| {
        let pc = Address(execution.trace.blocks.statics[node.instruction? as usize].pc);
        let system_call = match node.what {
            What::Syscall { number, answer, .. } => {
                let name = analyze::dependence::system_calls::name(number);
                Some(format!("{name} = {answer}"))
            }
            _ => None,
        };
        let known = execution.program.symbolise(pc);
        Some(Executed {
            moment: node.moment.0,
            thread: node.thread,
            pc,
            instance: node.instance,
            place: known.place(),
            symbol: known.symbol.as_ref().map(|(name, offset)| format!("{name}+{offset:#x}")),
            module: module(execution, &known),
            instruction: instruction(execution, pc),
            system_call,
        })
    });
    let edges = answer.edges.iter().map(|edge| Edge {
        user: edge.user,
        on: edge.on,
        kind: match edge.kind {
            Kind::Value => "value",
            Kind::Address => "address",
            Kind::Control => "control",
        },
        because: because(edge.because),
    });
    Listed { executions: executed.collect(), edges: edges.collect(), cut: answer.cut }
}

/// The first lines of a list, for a program that has no source to be shown, and what shows all.
pub fn nearest(listed: &str, shown: usize, all: &str) -> String {
    let mut out = String::from("  (no source; time, thread, address#execution, instruction)\n");
    out.extend(listed.lines().take(shown).map(|line| format!("  {line}\n")));
    if let more @ 1.. = listed.lines().count().saturating_sub(shown) {
        out += &format!("  {more} more instructions; {all}\n");
    }
    out
}

fn instruction(execution: &Execution, pc: Address) -> Option<String> {
    let mut code = [0; LONGEST];
    let length = execution.program.read(pc.0, &mut code);
    assembly::first(&code[..length], pc.0)
}

/// `libc.so.6+0x9d8a3`.
fn module(execution: &Execution, place: &CodePlace) -> Option<String> {
    let file = place.module.as_ref()?.file_name()?.to_string_lossy();
    let (loaded, _) = execution.program.locate(place.address)?;
    Some(format!("{file}+{}", Address(place.address.0.wrapping_sub(loaded.bias()))))
}

fn because(because: Because) -> String {
    match because {
        Because::Branch => "branch".into(),
        Because::Call => "call".into(),
        Because::Memory { address, bytes } => format!("[{}, {bytes}]", Address(address)),
        Because::Parts(parts) => parts.name().map_or_else(String::new, |name| format!("${name}")),
    }
}

impl Executed {
    /// Where it is, in what the program's authors or at least its linker call it.
    fn location(&self) -> String {
        let module = self.module.as_deref().unwrap_or("an unknown file");
        match (&self.place.file, &self.symbol) {
            (Some(_), _) => self.place.to_string(),
            (None, Some(symbol)) => format!("{symbol} in {module}"),
            (None, None) => module.into(),
        }
    }
}

impl Listed {
    /// One execution a line.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for executed in self.executions.iter().flatten() {
            let Executed { moment, thread, pc, instance, .. } = executed;
            let instruction = executed.instruction.as_deref().unwrap_or("?");
            let _ = write!(out, "@{moment} /{thread} *{pc}#{instance}  {instruction}");
            let call = executed.system_call.iter().map(|call| format!("; {call}"));
            out.extend(call.chain([format!("   {}\n", executed.location())]));
        }
        out
    }

    /// With the edges.
    pub fn json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string(self)? + "\n")
    }
}
