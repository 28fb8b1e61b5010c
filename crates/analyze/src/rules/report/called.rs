//! The name by which a function of the C library was called: one implementation has several, and what the
//! program wrote is the one that its reader knows.

use base::Address;
use symbols::Program;

/// A direct call has this first byte, and how far it goes from its end in the other four.
const CALL: u8 = 0xe8;
const BYTES: usize = 5;

/// What the call instruction at an address names, if that is a function with a contract.
pub fn name(call: u64, program: &Program) -> Option<String> {
    let mut code = [0; BYTES];
    if !program.code_bytes(Address(call), &mut code) || code[0] != CALL {
        return None;
    }
    let distance = i32::from_le_bytes([code[1], code[2], code[3], code[4]]);
    let target = call.wrapping_add(BYTES as u64).wrapping_add_signed(i64::from(distance));
    let (name, _) = program.symbol_at(Address(target))?;
    let name = name.strip_suffix("@plt").unwrap_or(&name);
    contracts::named(name).map(|contract| contract.name.to_owned())
}
