//! What a screen has met that may be wrong, in words.

use analyze::rules::stream::Suspicion;
use base::Address;
use events::plan::{BETWEEN, CALL, FREED, STRAY, TAIL, UNWRITTEN};
use symbols::Program;

/// What was met, and where first.
pub fn sentence(Suspicion { pc, bits }: Suspicion, program: &Program) -> String {
    format!("{} at {}", what(bits), place(pc, program))
}

fn what(bits: u8) -> &'static str {
    match bits {
        UNWRITTEN => "a value that nobody wrote is used",
        STRAY => "an address is in another block than its pointer",
        CALL => "an allocator is called",
        _ if bits & FREED != 0 => "freed memory is accessed",
        _ if bits & (BETWEEN | TAIL) != 0 => "memory beside a block is accessed",
        _ => "memory is accessed",
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
