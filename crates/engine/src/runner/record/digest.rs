//! Digests of a thread's state: what replay compares at every system call, signal and switch.
//!
//! Registers, the top of the stack, and what the guest hands to the outside world. Not a hash of all
//! memory: that would cost more than the run. A difference in memory that matters shows in one of
//! these sooner or later; one that does not matter is none.

use crate::runner::cpu::Registers;
use syscalls::Peek;

/// Bytes at the stack pointer that count.
const STACK: usize = 64;
/// Bytes of a buffer that count.
const BUFFER: usize = 4096;

fn mix(hash: u64, word: u64) -> u64 {
    const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;
    (hash ^ word).wrapping_mul(PRIME).rotate_left(29)
}

fn mix_bytes(mut hash: u64, bytes: &[u8]) -> u64 {
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = mix(hash, u64::from_le_bytes(word));
    }
    hash
}

fn fold(hash: u64) -> u32 {
    (hash ^ hash >> 32) as u32
}

fn registers_and_stack(registers: &Registers, memory: &dyn Peek) -> u64 {
    let hash = registers.general.iter().fold(registers.pc, |hash, word| mix(hash, *word));
    let mut stack = [0; STACK];
    if memory.read(registers.general[4], &mut stack) { mix_bytes(hash, &stack) } else { hash }
}

/// Of a thread between two instructions. Flags do not count: where nobody will read them the
/// counting of ticks uses them.
pub fn state(registers: &Registers, memory: &dyn Peek) -> u32 {
    fold(registers_and_stack(registers, memory))
}

/// Of a thread that makes a system call, and of what it hands over.
pub fn call(registers: &Registers, number: u64, arguments: [u64; 6], memory: &dyn Peek) -> u32 {
    let mut hash = mix(registers_and_stack(registers, memory), number);
    if matches!(number as i64, libc::SYS_write | libc::SYS_pwrite64 | libc::SYS_sendto) {
        let mut buffer = [0; BUFFER];
        let length = (arguments[2] as usize).min(BUFFER);
        if memory.read(arguments[1], &mut buffer[..length]) {
            hash = mix_bytes(hash, &buffer[..length]);
        }
    }
    fold(hash)
}
