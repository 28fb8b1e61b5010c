//! A slice as instructions: every execution in it, and every edge between two.

use super::execution::Execution;
use crate::assembly;
use analyze::dependence::control::Code;
use analyze::slice::graph::{Because, Kind};
use analyze::slice::{Slice, What};
use base::{Address, Place, ThreadNumber, Tick};
use serde::Serialize;
use symbols::program::CodePlace;

/// Bytes that no instruction has more of.
const LONGEST: usize = 15;

/// An execution.
#[derive(Serialize)]
pub struct Executed {
    /// Instructions of all threads executed before.
    pub step: u64,
    /// Ticks before, where they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tick: Option<Tick>,
    /// The thread.
    pub thread: ThreadNumber,
    /// The instruction.
    pub pc: Address,
    /// Which execution of the instruction it is.
    pub instance: i64,
    /// Where it is in the source.
    pub place: Place,
    /// The function by symbol table, and how far into it the instruction is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// The file that the code is from, and where in its addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// Its text, if the code is at hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
    /// The system call that it made, and the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_call: Option<String>,
}

/// A dependence between two of the executions, by number. User 0 is the question.
#[derive(Serialize)]
pub struct Edge {
    user: u32,
    on: u32,
    kind: &'static str,
    because: String,
}

/// A slice as instructions, the latest first.
#[derive(Serialize)]
pub struct Listed {
    /// The question, then executions.
    pub executions: Vec<Option<Executed>>,
    /// Dependences between them.
    pub edges: Vec<Edge>,
    /// Whether there are more than are listed.
    pub cut: bool,
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
            step: node.moment.0,
            tick: node.tick,
            thread: execution.thread(node.thread, node.tick.unwrap_or_default()),
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
    pub fn location(&self) -> String {
        let module = self.module.as_deref().unwrap_or("an unknown file");
        match (&self.place.file, &self.symbol) {
            (Some(_), _) => self.place.to_string(),
            (None, Some(symbol)) => format!("{symbol} in {module}"),
            (None, None) => module.into(),
        }
    }
}
