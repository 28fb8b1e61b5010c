//! A moment of a recording: where it is, who called, and the registers.

use super::crash::{program_of, signal_name};
use base::Address;
use recording::log::{Ending, ThreadData};
use replay::Standing;
use serde::Serialize;
use std::collections::BTreeMap;
use symbols::{Memory, Program, Registers};

/// What is shown of a moment.
#[derive(Serialize)]
pub struct Seen {
    time: u64,
    thread: i32,
    pc: Address,
    place: String,
    stack: Vec<String>,
    registers: BTreeMap<&'static str, Address>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<String>,
}

/// Frames shown.
const FRAMES: usize = 40;

const NAMES: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15",
];

/// Guest memory at the moment.
pub struct At<'a>(pub &'a Standing);

impl Memory for At<'_> {
    fn read(&self, address: Address, into: &mut [u8]) -> bool {
        self.0.read(address.0, into) == into.len()
    }
}

/// The registers of a thread.
pub fn registers_of(thread: &ThreadData) -> Registers {
    /// Where XSAVE puts the first vector register.
    const VECTORS: usize = 160;
    let registers = Registers::from_encoding_order(&thread.general, thread.pc);
    let (mut vectors, stored) = ([[0; 16]; 16], thread.vector.get(VECTORS..).unwrap_or_default());
    for (vector, stored) in vectors.iter_mut().zip(stored.chunks_exact(16)) {
        vector.copy_from_slice(stored);
    }
    registers.with_vectors(vectors)
}

impl Seen {
    /// Looks around.
    pub fn of(standing: &Standing) -> Self {
        Self::with(&program_of(&standing.at.modules), standing)
    }

    /// The same, where the program is known.
    pub fn with(program: &Program, standing: &Standing) -> Self {
        let thread = &standing.at.thread;
        let registers = registers_of(thread);
        let stack = program.unwind_at_most(&registers, &At(standing), FRAMES);
        let name = |address: Address| program.symbolise(address).place().to_string();
        let names = stack.frames.iter().map(|frame| name(frame.code())).collect();
        let place = program.symbolise(Address(thread.pc)).place().to_string();
        Self {
            time: standing.at.time,
            thread: thread.number,
            pc: Address(thread.pc),
            place,
            stack: names,
            registers: NAMES.into_iter().zip(thread.general.map(Address)).collect(),
            end: standing.at.ended.then(|| match standing.at.ending {
                Some(Ending::Exit(code)) => format!("the program exits with {code}"),
                Some(Ending::Signal(signal)) => format!("{} ends the program", signal_name(signal)),
                None => "the recording ends here".into(),
            }),
        }
    }

    /// As text.
    pub fn text(&self) -> String {
        let mut text =
            format!("@{} in thread {}: {} ({})\n", self.time, self.thread, self.place, self.pc);
        if let Some(end) = &self.end {
            text += &format!("  {end}\n");
        }
        for (number, frame) in self.stack.iter().enumerate() {
            text += &format!("  #{number} {frame}\n");
        }
        text
    }

    /// As JSON.
    pub fn json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string(self)? + "\n")
    }
}
