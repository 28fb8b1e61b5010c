//! The namespaces and classes around an entry, for names that are not mangled.

use crate::debug_info::DebugInfo;
use crate::units::{EntryId, LoadedUnit};
use gimli::constants as dw;

/// The named scopes of a unit that are not functions: where each starts and ends.
pub(crate) struct Prefixes(Vec<(usize, usize, Box<str>)>);

impl Prefixes {
    fn of(unit: &LoadedUnit) -> Self {
        let mut scopes: Vec<(usize, usize, Box<str>)> = Vec::new();
        let mut open: Vec<(isize, usize)> = Vec::new();
        unit.visit(is_scope, |met| {
            while let Some((_, index)) = open.pop_if(|(outer, _)| *outer >= met.depth) {
                scopes[index].1 = met.id.offset;
            }
            let Some(entry) = met.entry.filter(|entry| entry.has_children()) else { return };
            let anonymous = entry.tag() == dw::DW_TAG_namespace;
            let name = unit.name(entry);
            let name = name.or_else(|| anonymous.then(|| "(anonymous namespace)".into()));
            if let Some(name) = name {
                open.push((met.depth, scopes.len()));
                scopes.push((met.id.offset, usize::MAX, name.into()));
            }
        });
        Self(scopes)
    }

    /// `a::b::` for what is at `offset` in the class `b` of the namespace `a`.
    fn at(&self, offset: usize) -> String {
        let around = self.0.iter().take_while(|(start, ..)| *start < offset);
        around.filter(|(_, end, _)| offset < *end).map(|(.., name)| format!("{name}::")).collect()
    }
}

fn is_scope(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        dw::DW_TAG_namespace
            | dw::DW_TAG_structure_type
            | dw::DW_TAG_class_type
            | dw::DW_TAG_union_type
            | dw::DW_TAG_enumeration_type
    )
}

impl DebugInfo {
    /// The names of the scopes around an entry, each followed by `::`.
    pub fn prefix(&self, unit: &LoadedUnit, entry: EntryId) -> String {
        if !unit.is_cpp() && !unit.is_rust() {
            return String::new();
        }
        self.caches.prefixes.get(unit.id, || Prefixes::of(unit)).at(entry.offset)
    }
}
