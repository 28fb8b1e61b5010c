//! The guest's memory as a crash report has it.

use base::Address;
use base::crash::{Chunk, CrashReport};
use symbols::Memory;

/// The stretches of memory that the runner kept.
pub struct Kept<'a>(pub &'a [Chunk]);

impl Memory for Kept<'_> {
    fn read(&self, address: Address, buffer: &mut [u8]) -> bool {
        let held = self.0.iter().find_map(|chunk| {
            let from = usize::try_from(address.0.checked_sub(chunk.start)?).ok()?;
            chunk.bytes.get(from..from.checked_add(buffer.len())?)
        });
        held.map(|bytes| buffer.copy_from_slice(bytes)).is_some()
    }
}

/// The general registers that point to memory that is there, by the processor's number: the runner has kept
/// some of what is behind each.
pub fn pointers(report: &CrashReport) -> Vec<u8> {
    let kept = Kept(&report.memory);
    let points = |value: u64| kept.read(Address(value), &mut [0]);
    (0u8..).zip(report.general).filter(|(_, value)| points(*value)).map(|(at, _)| at).collect()
}

/// The code from `address` on, at most one instruction of it.
pub fn code_at(report: &CrashReport, address: u64) -> Vec<u8> {
    let kept = Kept(&report.memory);
    let fits = |length: &usize| {
        let mut bytes = vec![0; *length];
        kept.read(Address(address), &mut bytes).then_some(bytes)
    };
    (1..=15).rev().find_map(|length| fits(&length)).unwrap_or_default()
}
