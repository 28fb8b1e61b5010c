//! Where the functions of the C library are that have a contract (`contracts`).
//!
//! Most have several implementations, of which the loader takes one: the symbol is that of a function which
//! chooses. Files without a full symbol table do not name them, but whoever chooses has the addresses of all
//! in its code.

use iced_x86::{Decoder, DecoderOptions, Mnemonic, OpKind, Register};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use symbols::symbol_table::{Symbol, SymbolKind, SymbolTable};
use symbols::{FileAddress, Image};

/// Bytes that an implementation has at most: where nothing else is known to begin.
const LONGEST: u64 = 8 << 10;
/// Bytes of the code that chooses.
const LONGEST_CHOICE: u64 = 4 << 10;

/// The functions with contracts in a file, by name, with the addresses of their code there.
pub fn of(image: &Image, table: &SymbolTable) -> Vec<(String, Range<u64>)> {
    let functions = || table.iter().filter(|symbol| symbol.kind == SymbolKind::Function);
    let mut found: BTreeMap<u64, BTreeSet<&str>> = BTreeMap::new();
    for symbol in functions().filter(|symbol| contracts::named(symbol.name).is_some()) {
        let all = match symbol.chooses {
            true => choices(image, &symbol),
            false => vec![symbol.address.0],
        };
        for address in all {
            found.entry(address).or_default().insert(symbol.name);
        }
    }
    let starts: BTreeSet<u64> =
        functions().map(|symbol| symbol.address.0).chain(found.keys().copied()).collect();
    let mut all = Vec::new();
    for (address, names) in found {
        let next = starts.range(address + 1..).next().copied().unwrap_or(u64::MAX);
        let end = next.min(address.saturating_add(LONGEST));
        all.extend(names.into_iter().map(|name| (name.to_owned(), address..end)));
    }
    all
}

/// The code that a function can choose: whatever it takes the address of.
pub fn choices(image: &Image, symbol: &Symbol<'_>) -> Vec<u64> {
    let size = symbol.size.min(LONGEST_CHOICE);
    let Some(code) = image.bytes_at(symbol.address, size) else { return Vec::new() };
    let mut decoder = Decoder::with_ip(64, &code, symbol.address.0, DecoderOptions::NONE);
    let taken = decoder.iter().filter(|instruction| {
        instruction.mnemonic() == Mnemonic::Lea
            && instruction.op1_kind() == OpKind::Memory
            && instruction.memory_base() == Register::RIP
    });
    let targets = taken.map(|instruction| instruction.memory_displacement64());
    targets.filter(|target| image.is_code(FileAddress(*target))).collect()
}
