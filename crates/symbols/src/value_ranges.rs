//! Where in its function a variable can be had: for telling a user what to do about a value that
//! is optimised out at the moment asked for.

use crate::registers::Register;
use crate::scene::Scene;
use crate::units::EntryId;
use base::{Address, Range};
use gimli::{Operation, constants as dw};

/// A stretch of code in which a variable has a known place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownRange {
    /// The code.
    pub code: Range,
    /// The register that holds it there, if one does.
    pub register: Option<Register>,
}

pub(crate) fn known(scene: &Scene<'_>, module: usize, entry: EntryId) -> Vec<KnownRange> {
    const MOST: usize = 1 << 12;
    let find = || {
        let debug = scene.debug(module)?;
        let bias = scene.program.modules().get(module)?.bias();
        let (unit, value) = debug.attribute(entry, &[dw::DW_AT_location])?;
        let list = unit.dwarf.attr_locations(&unit.unit, value).ok()??;
        let range = |found: gimli::LocationListEntry<_>| {
            let mut operations = found.data.operations(unit.unit.encoding());
            let register = match operations.next() {
                Ok(Some(Operation::Register { register })) => Some(Register(register.0)),
                Ok(None) => return None,
                _ => None,
            };
            let start = Address(found.range.begin.wrapping_add(bias));
            let end = Address(found.range.end.wrapping_add(bias));
            Some(KnownRange { code: Range { start, end }, register })
        };
        Some(list.take(MOST).map_while(Result::ok).filter_map(range).collect())
    };
    find().unwrap_or_default()
}
