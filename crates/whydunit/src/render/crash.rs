//! A fatal signal of the guest, for a reader: place, registers, stack.

use engine::report::CrashReport;

const NAMES: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15",
];

/// Prints the report to standard error.
pub fn print(crash: &CrashReport) {
    eprintln!(
        "whydunit: process {} ended by signal {} at {:#x}, address {:#x}",
        crash.process, crash.signal, crash.pc, crash.address
    );
    for row in NAMES.iter().zip(crash.general).collect::<Vec<_>>().chunks(4) {
        let cells: Vec<String> =
            row.iter().map(|(name, value)| format!("{name:>3} {value:016x}")).collect();
        eprintln!("  {}", cells.join("  "));
    }
}
