//! Where the accesses of a superblock are relative to each other, and where its flags are dead: what
//! every screen that tests accesses starts from.

use super::accesses::{Accesses, Form, Operand};
use super::facts::{ALL_FLAGS, ARITHMETIC_FLAGS};
use super::observe::derived;
use super::superblock::{Guest, Role, Superblock};
use iced_x86::{Mnemonic, Register};

/// The part of an address that is not known, in terms of values that registers had: two places
/// with the same origin differ by a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// None: the address is a constant.
    Nothing,
    /// One value.
    Value(u32),
    /// Two, the second one scaled.
    Sum(Option<u32>, u32, u8),
}

/// An access and where it is relative to its origin.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Which instruction makes it.
    pub index: u16,
    /// What its address is relative to.
    pub origin: Origin,
    /// How far.
    pub offset: i64,
    /// The access.
    pub operand: Operand,
}

/// What registers hold, in terms of values that they had.
type Values = [(u32, i64); 16];

/// All accesses of a superblock, in order; and which instructions make which values by adding to a
/// pointer, of those for which `makes_sum` names the register.
pub fn places(
    superblock: &Superblock,
    makes_sum: impl Fn(&Guest) -> Option<u8>,
) -> (Vec<Place>, Vec<(u16, u32)>) {
    let mut values: Values = std::array::from_fn(|register| (register as u32, 0));
    let mut fresh = 16;
    let (mut places, mut sums) = (Vec::new(), Vec::new());
    for (index, guest) in superblock.guests.iter().enumerate() {
        if let Accesses::List(list) = &guest.accesses {
            for operand in list {
                let (origin, offset) = origin(operand.form, &values);
                places.push(Place { index: index as u16, origin, offset, operand: *operand });
            }
        }
        if guest.role == Role::Call {
            // Whatever the callee does, and to the shadow as well.
            values = std::array::from_fn(|register| (fresh + register as u32, 0));
            fresh += 16;
            continue;
        }
        let kept = derived(guest).map(|(to, from, by)| {
            let (value, offset) = values[from as usize];
            (to, (value, offset.wrapping_add(by)))
        });
        for register in (0..16u8).filter(|register| guest.facts.writes.has(*register)) {
            values[register as usize] = (fresh, 0);
            fresh += 1;
        }
        if let Some((to, value)) = kept {
            values[to as usize] = value;
        } else if let Some(to) = makes_sum(guest) {
            sums.push((index as u16, values[to as usize].0));
        }
    }
    (places, sums)
}

fn origin(form: Form, values: &Values) -> (Origin, i64) {
    match form {
        Form::Constant(address) => (Origin::Nothing, address as i64),
        Form::Base(base, displacement) => {
            let (value, offset) = values[base as usize];
            (Origin::Value(value), offset.wrapping_add(displacement))
        }
        Form::Sum(base, index, scale, displacement) => {
            let (value, offset) = values[index as usize];
            let scaled = offset.wrapping_mul(i64::from(scale));
            let (base, offset) = match base.map(|base| values[base as usize]) {
                Some((value, offset)) => (Some(value), offset.wrapping_add(scaled)),
                None => (None, scaled),
            };
            (Origin::Sum(base, value, scale), offset.wrapping_add(i64::from(displacement)))
        }
    }
}

/// For each instruction, whether nobody reads the arithmetic flags that it starts with.
pub fn dead_flags(superblock: &Superblock) -> Vec<bool> {
    let mut flags = ALL_FLAGS;
    let mut dead: Vec<bool> = superblock
        .guests
        .iter()
        .rev()
        .map(|guest| {
            if !matches!(guest.role, Role::Plain | Role::FollowedJump | Role::FollowedCall) {
                flags = ALL_FLAGS;
            }
            let written = if may_keep_flags(guest) { 0 } else { guest.facts.flags_written };
            flags = flags & !written | guest.facts.flags_read;
            flags & ARITHMETIC_FLAGS == 0
        })
        .collect();
    dead.reverse();
    dead
}

/// Instructions that write flags only if their count is not zero.
fn may_keep_flags(guest: &Guest) -> bool {
    use Mnemonic as M;
    let instruction = &guest.instruction;
    let by_register =
        [1, 2].iter().any(|operand| instruction.op_register(*operand) == Register::CL);
    let shifts = matches!(
        instruction.mnemonic(),
        M::Shl | M::Sal | M::Shr | M::Sar | M::Rol | M::Ror | M::Rcl | M::Rcr | M::Shld | M::Shrd
    );
    shifts && by_register || instruction.is_string_instruction()
}
