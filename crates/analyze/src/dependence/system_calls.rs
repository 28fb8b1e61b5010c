//! What system calls define and from what, for slices.
//!
//! What a call reads and writes is in the table of [`syscalls`]; here is what a slice adds to it. What a
//! call **answers** is made from its numbers (sizes, flags, signals) and from the texts and buffers that it
//! is given; pointers and descriptors say where those are, so they are addresses. What it brings into
//! **memory** comes from outside: the arguments only say from where and to where.

use crate::semantics::Parts;
use syscalls::{Argument, Before, NoMemory, Range, number};

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

/// Registers that hold the arguments, by the processor's number.
const ARGUMENTS: [u8; 6] = [7, 6, 2, 10, 8, 9];

/// The registers that a system call takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Takes {
    /// Numbers that its answer is made from.
    pub values: Parts,
    /// Pointers and descriptors: where something is.
    pub places: Parts,
}

/// The registers that a call takes.
#[must_use]
pub fn takes(call: u64, answer: i64) -> Takes {
    let known = syscalls::get(call).map_or(&[Argument::Number; 6][..], |call| call.arguments);
    // Where the kernel finds room is its own choice.
    let is_room = matches!(call, number::mmap | number::mremap | number::brk | number::shmat);
    let mut takes = Takes::default();
    for (register, argument) in ARGUMENTS.into_iter().zip(known) {
        let parts = Parts::general(register, 0, 8);
        match is_number(*argument) && !(is_room && answer >= 0) {
            true => takes.values |= parts,
            false => takes.places |= parts,
        }
    }
    takes
}

fn is_number(argument: Argument) -> bool {
    use Argument as A;
    matches!(argument, A::Size | A::Number | A::Flags | A::Mode | A::Signal | A::Pid)
}

/// The name of a system call, or its number.
#[must_use]
pub fn name(number: u64) -> String {
    syscalls::name(number).map_or_else(|| format!("system call {number}"), str::to_owned)
}
