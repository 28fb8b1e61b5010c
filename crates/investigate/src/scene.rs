//! A moment of a recording: where it is, who called, and the registers.

use crate::case::Case;
use crate::crash::signal_name;
use crate::threads::Threads;
use base::{Address, Position, ProcessNumber, Tick, When};
use recording::log::{Ending, ThreadData};
use replay::StoppedProcess;
use serde::Serialize;
use std::collections::BTreeMap;
use symbols::{Memory, Program, Registers};

/// What is shown of a moment.
#[derive(Serialize)]
pub struct Seen {
    /// When it is, and which thread runs.
    #[serde(flatten)]
    pub when: When,
    /// The kernel's id of that thread.
    pub kernel_thread: i32,
    /// Where that is.
    pub place: String,
    /// The active calls, innermost first.
    pub stack: Vec<String>,
    /// General registers by name.
    pub registers: BTreeMap<&'static str, Address>,
    /// How the program ends, if it does here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
}

/// Frames shown.
const FRAMES: usize = 40;

const NAMES: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15",
];

/// Guest memory at the moment.
pub struct At<'a>(pub &'a StoppedProcess);

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
    /// Looks around where a process of a case stands.
    pub fn of(case: &Case, process: u32, standing: &StoppedProcess) -> anyhow::Result<Self> {
        let program = case.program(&standing.at.modules)?;
        let threads = Threads::of(case.recording(), process);
        Ok(Self::with(&program, &threads, ProcessNumber(process), standing))
    }

    /// The same, where the program is known.
    pub fn with(
        program: &Program,
        threads: &Threads,
        process: ProcessNumber,
        standing: &StoppedProcess,
    ) -> Self {
        let thread = &standing.at.thread;
        let registers = registers_of(thread);
        let stack = program.unwind_at_most(&registers, &At(standing), FRAMES);
        let name = |address: Address| program.symbolise(address).place().to_string();
        let names = stack.frames.iter().map(|frame| name(frame.code())).collect();
        let place = program.symbolise(Address(thread.pc)).place().to_string();
        let position = Position { tick: Tick(standing.at.time), pc: Address(thread.pc) };
        let number = threads.number(thread.number, position.tick);
        Self {
            when: When { process, thread: number, position },
            kernel_thread: thread.number,
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
}
