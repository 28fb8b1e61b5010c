//! What system calls define, for slices: a call is where a slice ends, an input.
//!
//! What a call writes is in the table of [`syscalls`]; here is what a slice adds to it.

use syscalls::{Before, NoMemory, Range};

/// Registers that the kernel sets when it calls a signal handler: the three arguments, and rax. By
/// the processor's number.
pub const HANDLER_REGISTERS: [u8; 4] = [0, 2, 6, 7];

/// The ranges that a system call defined, as address and length, as far as its arguments and answer
/// alone tell: what it wrote, and what it mapped anew.
#[must_use]
pub fn written(number: u64, arguments: &[u64; 6], answer: i64) -> Vec<(u64, u64)> {
    let mut ranges = Vec::new();
    syscalls::written(number, *arguments, answer, &Before::default(), &NoMemory, &mut ranges);
    ranges.extend(syscalls::mapped(number, arguments, answer));
    ranges.into_iter().map(|Range { address, length }| (address, length)).collect()
}

/// The name of a system call, or its number.
#[must_use]
pub fn name(number: u64) -> String {
    syscalls::name(number).map_or_else(|| format!("system call {number}"), str::to_owned)
}
