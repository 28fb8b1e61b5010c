//! Objects and their extents: variables with static storage, and those of a frame. For telling
//! whose byte an address is, and where its object ends.

use crate::address::FileAddress;
use crate::debug_info::DebugInfo;
use crate::program::Program;
use crate::scene::{Level, Scene};
use crate::symbol_table::SymbolKind;
use crate::types::{MemberOffset, Shape, TypeRef};
use crate::value::{Held, Home};
use base::{Address, Range};
use serde::{Deserialize, Serialize};

/// A named piece of memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    /// Its name.
    pub name: String,
    /// Its bytes.
    pub range: Range,
}

impl Program {
    /// The objects with static storage of a module (an index into [`Program::modules`]), by
    /// address: from debug information, completed by the symbol tables.
    #[must_use]
    pub fn objects(&self, module: usize) -> Vec<Object> {
        let Some(loaded) = self.modules().get(module) else { return Vec::new() };
        let (Some(own), bias) = (loaded.module(), loaded.bias()) else { return Vec::new() };
        let mut objects = Vec::new();
        if let Some(debug) = own.debug() {
            let names = debug.names();
            for row in &names.by_address {
                let variable = &names.variables[*row as usize];
                let Some(address) = variable.address else { continue };
                let ty = debug.type_of(variable.entry);
                let size = match ty {
                    crate::types::TypeRef::Entry(entry) => debug.size_of_entry(entry),
                    _ => None,
                };
                // Only the linker knows how long an array of unstated length became.
                let known = || own.symbols().object_at(address).map(|symbol| symbol.size);
                let Some(size) = size.or_else(known) else { continue };
                let range = Range::new(address.loaded(bias).0, size);
                objects.push(Object { name: variable.name.to_string(), range });
            }
        }
        for symbol in own.symbols().iter().filter(|s| s.kind == SymbolKind::Object && s.size > 0) {
            let range = Range::new(symbol.address.loaded(bias).0, symbol.size);
            objects.push(Object { name: symbol.demangled(), range });
        }
        // Stable: what debug information says of an address comes before what a symbol says.
        objects.sort_by_key(|object| object.range.start);
        objects.dedup_by(|later, first| later.range.start == first.range.start);
        objects
    }

    /// The object with static storage that holds the byte at `address`.
    #[must_use]
    pub fn object_at(&self, address: Address) -> Option<Object> {
        let (loaded, _) = self.locate(address)?;
        let module = loaded.module()?;
        let at = FileAddress::unloaded(address, loaded.bias());
        let from_debug = || {
            let debug = module.debug()?;
            let names = debug.names();
            let end = names
                .by_address
                .partition_point(|row| names.variables[*row as usize].address <= Some(at));
            names.by_address[..end].iter().rev().take(16).find_map(|row| {
                let variable = &names.variables[*row as usize];
                let crate::types::TypeRef::Entry(ty) = debug.type_of(variable.entry) else {
                    return None;
                };
                let size = debug.size_of_entry(ty)?;
                let range = Range::new(variable.address?.loaded(loaded.bias()).0, size);
                range.contains(address).then(|| Object { name: variable.name.to_string(), range })
            })
        };
        from_debug().or_else(|| {
            let symbol = module.symbols().object_at(at)?;
            let range = Range::new(symbol.address.loaded(loaded.bias()).0, symbol.size);
            Some(Object { name: symbol.demangled(), range })
        })
    }
}

/// Levels of a type that are looked through.
const DEEPEST: usize = 16;

impl Program {
    /// Whether a variable with static storage has an atomic type where the byte at `address` is: `_Atomic`
    /// of C, `std::atomic` of C++, or one of Rust's.
    #[must_use]
    pub fn is_atomic(&self, address: Address) -> bool {
        let Some(loaded) = self.locate(address).map(|(loaded, _)| loaded) else { return false };
        let Some(debug) = loaded.module().and_then(|module| module.debug()) else { return false };
        let at = FileAddress::unloaded(address, loaded.bias());
        let names = debug.names();
        let end = names
            .by_address
            .partition_point(|row| names.variables[*row as usize].address <= Some(at));
        names.by_address[..end].iter().rev().take(16).any(|row| {
            let variable = &names.variables[*row as usize];
            let Some(start) = variable.address else { return false };
            atomic_at(debug, &debug.type_of(variable.entry), at.0 - start.0, DEEPEST)
        })
    }
}

/// Whether a byte of a type is part of something atomic.
fn atomic_at(debug: &DebugInfo, ty: &TypeRef, offset: u64, deepest: usize) -> bool {
    let TypeRef::Entry(entry) = ty else { return false };
    let Some(deeper) = deepest.checked_sub(1) else { return false };
    let known = debug.entry_type(*entry);
    if known.size.or_else(|| debug.size_of_entry(*entry)).is_none_or(|size| offset >= size) {
        return false;
    }
    match &known.shape {
        Shape::Alias { qualifier: "_Atomic", .. } => true,
        Shape::Alias { to, .. } => atomic_at(debug, to, offset, deeper),
        Shape::Array { element: TypeRef::Entry(element), .. } => {
            let size = debug.size_of_entry(*element).unwrap_or(0).max(1);
            atomic_at(debug, &TypeRef::Entry(*element), offset % size, deeper)
        }
        Shape::Record(record) => {
            let name = known.name.as_deref().unwrap_or("");
            let is_atomic = name.starts_with("atomic<")
                || name.starts_with("__atomic_base<")
                || known.rust && name.starts_with("Atomic");
            is_atomic
                || record.members.iter().any(|member| match member.offset {
                    MemberOffset::Bits(bits) if bits / 8 <= offset => {
                        atomic_at(debug, &member.ty, offset - bits / 8, deeper)
                    }
                    _ => false,
                })
        }
        _ => false,
    }
}

impl Scene<'_> {
    /// The variables of a call that are in memory, with their extents there.
    #[must_use]
    pub fn stack_objects(&self, level: Level) -> Vec<Object> {
        let mut objects = Vec::new();
        for variable in self.locals(level) {
            let value = self.value_of(&variable);
            let size = self.size_of(value.module, &value.ty);
            match (&value.held, size) {
                (Held::Memory(address), Some(size)) => {
                    let range = Range::new(address.0, size);
                    objects.push(Object { name: variable.name, range });
                }
                (Held::Pieces(pieces), _) => {
                    // A variable that is only partly in memory has those parts there.
                    for piece in pieces {
                        if let Home::Memory(address) = piece.home {
                            let range = Range::new(address.0, piece.bits.div_ceil(8));
                            objects.push(Object { name: variable.name.clone(), range });
                        }
                    }
                }
                _ => {}
            }
        }
        objects.sort_by_key(|object| object.range.start);
        objects
    }
}
