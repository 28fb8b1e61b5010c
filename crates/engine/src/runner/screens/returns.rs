//! Returns that go where no call comes back to: the return address was overwritten, or the program switches
//! stacks or contexts.
//!
//! There is no test for it in translated code, so it costs nothing where returns are ordinary. The first time
//! that an indirect branch leads to an address the dispatcher comes by, and looks. A return that is made to
//! go behind another call is not noticed.

use crate::runner::engine::Engine;
use crate::runner::guest;
use events::suspicion::Suspicion;
use iced_x86::{Decoder, DecoderOptions};

/// Lengths of a call.
const CALLS: std::ops::RangeInclusive<u64> = 2..=8;
/// `mov rax, 15; syscall` returns from a handler.
const RESTORER: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];

impl Engine {
    /// An indirect branch has led to what is the pc now, and to the dispatcher.
    pub fn look_at_return(&mut self) {
        let registers = &self.cpu.registers;
        let (target, slot) = (registers.pc, registers.general[4].wrapping_sub(8));
        // What a return has read still stands where it was.
        let returned = guest::read_u64(slot) == Some(target);
        if returned && !is_behind_call(target) && !is_restorer(target) {
            self.suspect(target, Suspicion::Returned { slot });
        }
    }
}

/// Whether the instruction before an address is a call.
fn is_behind_call(target: u64) -> bool {
    CALLS.into_iter().any(|length| {
        let mut code = [0; 8];
        let (start, code) = (target.wrapping_sub(length), &mut code[..length as usize]);
        if guest::read_some(start, code) < code.len() {
            return false;
        }
        let instruction = Decoder::with_ip(64, code, start, DecoderOptions::NONE).decode();
        let calls = instruction.is_call_near() || instruction.is_call_near_indirect();
        calls && instruction.next_ip() == target
    })
}

/// Whether a handler returns by what is at an address.
fn is_restorer(target: u64) -> bool {
    let mut code = [0; RESTORER.len()];
    guest::read_some(target, &mut code) == code.len() && code == RESTORER
}
