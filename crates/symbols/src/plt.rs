//! Names for the stubs of the procedure linkage table, which no symbol table lists: each jumps
//! through a slot of the global offset table, and the slot's relocation has the name.

use crate::image::Image;
use object::{LittleEndian, Object, ObjectSymbol, ObjectSymbolTable, SymbolIndex, elf};
use std::collections::HashMap;

/// `jmp *displacement(%rip)`
const JUMP: [u8; 2] = [0xff, 0x25];

/// Address, size and name (`puts@plt`) of every stub.
pub(crate) fn stubs(image: &Image) -> Vec<(u64, u64, String)> {
    let sections = [(".plt", 16), (".plt.sec", 16), (".plt.got", 8), (".plt.bnd", 8)];
    let slots = slots(image);
    let mut stubs = Vec::new();
    for (name, entry) in sections {
        let (Some(section), Some(code)) = (image.section(name), image.contents(name)) else {
            continue;
        };
        for (index, stub) in code.chunks_exact(entry).enumerate() {
            let start = section.address.0.wrapping_add((index * entry) as u64);
            if let Some(name) = target(stub, start).and_then(|slot| slots.get(&slot)) {
                stubs.push((start, entry as u64, format!("{name}@plt")));
            }
        }
    }
    stubs
}

/// The slot that a stub at `start` jumps through.
fn target(stub: &[u8], start: u64) -> Option<u64> {
    let at = stub.windows(2).position(|pair| pair == JUMP)?;
    let displacement = stub.get(at + 2..at + 6)?;
    let displacement = i32::from_le_bytes(displacement.try_into().ok()?);
    let next = start.wrapping_add(at as u64 + 6);
    Some(next.wrapping_add_signed(i64::from(displacement)))
}

/// The symbol that each slot of the global offset table is filled with.
fn slots(image: &Image) -> HashMap<u64, String> {
    let relocations: Vec<_> = [".rela.plt", ".rela.dyn"]
        .iter()
        .filter_map(|name| image.contents(name))
        .flat_map(|bytes| relocations(&bytes))
        .collect();
    let named = image.with_elf(|file| {
        let symbols = file.dynamic_symbol_table();
        let name = |index| {
            let symbol = symbols.as_ref()?.symbol_by_index(SymbolIndex(index)).ok()?;
            Some(symbol.name().ok()?.to_owned())
        };
        relocations.iter().filter_map(|(slot, index)| Some((*slot, name(*index)?))).collect()
    });
    named.unwrap_or_default()
}

/// Slot and symbol index of the relocations that fill slots with functions.
fn relocations(bytes: &[u8]) -> Vec<(u64, usize)> {
    let Ok((entries, _)) = object::slice_from_bytes::<elf::Rela64<LittleEndian>>(
        bytes,
        bytes.len() / size_of::<elf::Rela64<LittleEndian>>(),
    ) else {
        return Vec::new();
    };
    entries
        .iter()
        .filter(|entry| {
            matches!(
                entry.r_type(LittleEndian, false),
                elf::R_X86_64_JUMP_SLOT | elf::R_X86_64_GLOB_DAT
            )
        })
        .map(|entry| (entry.r_offset.get(LittleEndian), entry.r_sym(LittleEndian, false) as usize))
        .collect()
}
