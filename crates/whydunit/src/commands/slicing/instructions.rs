//! A slice as instructions: every execution in it, and every edge between two.

use super::execution::Execution;
use analyze::slice::graph::{Because, Kind};
use analyze::slice::{Slice, What};
use base::{Address, Place};
use serde::Serialize;
use std::fmt::Write;

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
        Some(Executed {
            moment: node.moment.0,
            thread: node.thread,
            pc,
            instance: node.instance,
            place: execution.program.symbolise(pc).place(),
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

fn because(because: Because) -> String {
    match because {
        Because::Branch => "branch".into(),
        Because::Call => "call".into(),
        Because::Memory { address, bytes } => format!("[{}, {bytes}]", Address(address)),
        Because::Parts(parts) => parts.name().map_or_else(String::new, |name| format!("${name}")),
    }
}

impl Listed {
    /// One execution a line.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for executed in self.executions.iter().flatten() {
            let Executed { moment, thread, pc, instance, place, system_call } = executed;
            let call = system_call.as_deref().unwrap_or_default();
            let _ = writeln!(out, "@{moment} /{thread} *{pc}#{instance}  {place} {call}");
        }
        out
    }

    /// With the edges.
    pub fn json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string(self)? + "\n")
    }
}
