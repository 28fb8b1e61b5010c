//! What a screen has met that may be wrong, in words.

use analyze::rules::stream::Suspicion;
use base::Address;
use events::suspicion::{self, Memory};
use symbols::Program;

/// Something in a process that may be wrong.
#[derive(Clone, Debug)]
pub struct SuspicionReport {
    /// The process, as the kernel numbers it.
    pub process: i32,
    /// Which of the programs that it executed one after the other, from 0.
    pub program: usize,
    /// Where and when.
    pub suspicion: Suspicion,
    /// What and where, in words.
    pub words: String,
}

impl SuspicionReport {
    /// What was met, and where.
    pub fn new(suspicion: Suspicion, program: &Program) -> Self {
        let words = format!("{} at {}", what(suspicion.met), place(suspicion.pc, program));
        Self { process: 0, program: 0, suspicion, words }
    }

    /// The same about a program of a process.
    pub fn of(self, process: i32, program: usize) -> Self {
        Self { process, program, ..self }
    }
}

fn what(met: suspicion::Suspicion) -> &'static str {
    use suspicion::Suspicion as Met;
    match met {
        Met::Unwritten(_) => "a value that nobody wrote is used",
        Met::OutOfObject { .. } => "an address is in another block than its pointer",
        Met::InvalidCall { .. } => "an allocator is called",
        Met::Returned { .. } => "a return goes where no call comes back to",
        Met::OutsideBlocks { memory: Memory::Freed, .. } => "freed memory is accessed",
        Met::OutsideBlocks { .. } => "memory beside a block is accessed",
        Met::Painted { .. } => "memory is accessed",
    }
}

fn place(pc: u64, program: &Program) -> String {
    let code = program.symbolise(Address(pc));
    if !code.frames.is_empty() {
        return code.place().to_string();
    }
    let function = code.symbol.map(|(name, _)| name);
    match (function, code.module.as_ref().and_then(|path| path.file_name())) {
        (Some(function), Some(file)) => format!("{function} in {}", file.display()),
        (None, Some(file)) => format!("{pc:#x} in {}", file.display()),
        _ => format!("{pc:#x}"),
    }
}
