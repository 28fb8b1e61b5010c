//! Finds functions by name in the files that a guest maps.

use base::ModuleMap;
use engine::host::Resolve;
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Endianness, Object, ObjectSymbol, SymbolKind};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// A function in a file: its name, and its offset there.
type Offsets = Vec<(String, u64)>;

/// Looks into each file once.
pub fn resolver() -> Resolve {
    let known: Mutex<HashMap<String, Offsets>> = Mutex::default();
    Resolve(Arc::new(move |_, map: &ModuleMap, names: &[String]| {
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.entry(map.path.clone()).or_insert_with(|| functions(&map.path, names));
        addresses(map, found)
    }))
}

/// The functions of these names that a mapping shows, by address.
pub fn in_map(map: &ModuleMap, names: &[String]) -> Vec<(u64, String)> {
    addresses(map, &functions(&map.path, names))
}

/// Where in memory those functions are that a mapping shows.
fn addresses(map: &ModuleMap, found: &Offsets) -> Vec<(u64, String)> {
    let end = map.offset + (map.end - map.start);
    let inside = found.iter().filter(|(_, offset)| (map.offset..end).contains(offset));
    let addresses: BTreeMap<u64, String> =
        inside.map(|(name, offset)| (map.start + (offset - map.offset), name.clone())).collect();
    addresses.into_iter().collect()
}

/// The functions of these names in a file; none if it cannot be read.
fn functions(path: &str, names: &[String]) -> Offsets {
    let Ok(bytes) = std::fs::read(path) else { return Vec::new() };
    let Ok(file) = ElfFile64::<Endianness>::parse(&*bytes) else { return Vec::new() };
    let wanted: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    let symbols = file.symbols().chain(file.dynamic_symbols());
    symbols
        .filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Text)
        .filter_map(|symbol| {
            let name = symbol.name().ok().filter(|name| wanted.contains(name))?;
            Some((name.to_owned(), file_offset(&file, symbol.address())?))
        })
        .collect()
}

/// Where in the file the segments put an address.
fn file_offset(file: &ElfFile64<'_, Endianness>, address: u64) -> Option<u64> {
    let endian = file.endian();
    file.elf_program_headers().iter().find_map(|header| {
        let start = header.p_vaddr(endian);
        let loaded = header.p_type(endian) == object::elf::PT_LOAD;
        let inside = (start..start.checked_add(header.p_filesz(endian))?).contains(&address);
        (loaded && inside).then(|| address - start + header.p_offset(endian))
    })
}
