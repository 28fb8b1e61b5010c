//! The index of a module's debug information by name: functions, variables with static storage,
//! and types. Made in one pass over all units the first time a name is asked for, on as many
//! cores as there are.

use crate::address::FileAddress;
use crate::debug_info::{Attribute, DebugInfo, Entry};
use crate::demangle::names;
use crate::units::{EntryId, LoadedUnit};
use gimli::{Operation, constants as dw};
use std::collections::HashMap;
use std::sync::Arc;

/// A variable with static storage.
#[derive(Clone, Debug)]
pub(crate) struct StaticVariable {
    pub entry: EntryId,
    /// With its namespaces and classes, and the function for a function's own static.
    pub name: Box<str>,
    /// Where it is; `None` for thread-locals and for constants without storage.
    pub address: Option<FileAddress>,
    pub in_function: bool,
}

/// A function, whether it has code of its own or was only inlined.
#[derive(Clone, Debug)]
pub(crate) struct NamedFunction {
    pub entry: EntryId,
    pub name: Box<str>,
}

/// Everything with a name, keyed by the last part of it.
#[derive(Default)]
pub(crate) struct Names {
    pub functions: HashMap<Box<str>, Vec<NamedFunction>>,
    pub types: HashMap<Box<str>, Vec<(Box<str>, EntryId)>>,
    pub variables: Vec<StaticVariable>,
    by_name: HashMap<Box<str>, Vec<u32>>,
    /// Indices into `variables`, by address.
    pub by_address: Vec<u32>,
}

impl Names {
    /// The static variables that `wanted` names, in whole or by its last parts.
    pub fn variables_named<'a>(
        &'a self,
        wanted: &'a str,
    ) -> impl Iterator<Item = &'a StaticVariable> {
        let rows = self.by_name.get(last_part(wanted)).into_iter().flatten();
        rows.map(|row| &self.variables[*row as usize])
            .filter(move |variable| names(wanted, &variable.name))
    }

    /// The types that `wanted` names.
    pub fn types_named<'a>(&'a self, wanted: &'a str) -> impl Iterator<Item = EntryId> + 'a {
        let rows = self.types.get(last_part(wanted)).into_iter().flatten();
        rows.filter(move |(name, _)| names(wanted, name)).map(|(_, entry)| *entry)
    }

    /// The functions that `wanted` names.
    pub fn functions_named<'a>(
        &'a self,
        wanted: &'a str,
    ) -> impl Iterator<Item = &'a NamedFunction> {
        let rows = self.functions.get(last_part(wanted)).into_iter().flatten();
        rows.filter(move |function| names(wanted, &function.name))
    }

    fn merge(&mut self, other: Self) {
        for (key, rows) in other.functions {
            self.functions.entry(key).or_default().extend(rows);
        }
        for (key, rows) in other.types {
            self.types.entry(key).or_default().extend(rows);
        }
        self.variables.extend(other.variables);
    }

    fn finish(mut self) -> Self {
        for (row, variable) in (0u32..).zip(&self.variables) {
            self.by_name.entry(last_part(&variable.name).into()).or_default().push(row);
            if variable.address.is_some() {
                self.by_address.push(row);
            }
        }
        self.by_address.sort_by_key(|row| self.variables[*row as usize].address);
        self
    }
}

/// `b` of `a::b` and of `a::b<c::d>`.
fn last_part(name: &str) -> &str {
    let plain = match name.find(['<', '(']) {
        Some(at) if at > 0 && !name.contains("operator") => &name[..at],
        _ => name,
    };
    plain.rsplit("::").next().unwrap_or(plain)
}

impl DebugInfo {
    /// The index by name.
    pub fn names(&self) -> &Names {
        self.caches.names.get_or_init(|| {
            let units = self.units.own_and_alternate();
            let cores = std::thread::available_parallelism().map_or(1, usize::from).min(8);
            // Interleaved, because neighbouring units tend to be of like size.
            let share = |first: usize| {
                let mut part = Names::default();
                for unit in units.iter().skip(first).step_by(cores) {
                    if let Some(unit) = self.full(*unit) {
                        index_unit(self, &unit, &mut part);
                    }
                }
                part
            };
            let mut all = Names::default();
            std::thread::scope(|scope| {
                let share = &share;
                let workers: Vec<_> =
                    (1..cores).map(|first| scope.spawn(move || share(first))).collect();
                all.merge(share(0));
                for worker in workers {
                    all.merge(worker.join().unwrap_or_default());
                }
            });
            all.finish()
        })
    }
}

fn index_unit(debug: &DebugInfo, unit: &Arc<LoadedUnit>, out: &mut Names) {
    // Names of the namespaces, classes and functions around, with their depths.
    let mut around: Vec<(isize, Part)> = Vec::new();
    unit.visit(is_named, |met| {
        while around.last().is_some_and(|(outer, _)| *outer >= met.depth) {
            around.pop();
        }
        let Some(entry) = met.entry else { return };
        index_entry(&Indexed { debug, unit, entry, id: met.id }, &around, out);
        if entry.has_children()
            && let Some(part) = part_of(unit, entry, met.id)
        {
            around.push((met.depth, part));
        }
    });
}

/// What a scope contributes to the names of what is in it.
enum Part {
    Named(String),
    Function(EntryId),
}

struct Indexed<'a> {
    debug: &'a DebugInfo,
    unit: &'a LoadedUnit,
    entry: &'a Entry,
    id: EntryId,
}

fn is_named(tag: gimli::DwTag) -> bool {
    matches!(tag, dw::DW_TAG_variable | dw::DW_TAG_subprogram | dw::DW_TAG_namespace)
        || is_type(tag)
}

fn is_type(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        dw::DW_TAG_structure_type
            | dw::DW_TAG_class_type
            | dw::DW_TAG_union_type
            | dw::DW_TAG_enumeration_type
            | dw::DW_TAG_typedef
            | dw::DW_TAG_base_type
            | dw::DW_TAG_interface_type
    )
}

fn part_of(unit: &LoadedUnit, entry: &Entry, id: EntryId) -> Option<Part> {
    match entry.tag() {
        dw::DW_TAG_subprogram => Some(Part::Function(id)),
        dw::DW_TAG_namespace => {
            Some(Part::Named(unit.name(entry).unwrap_or_else(|| "(anonymous namespace)".into())))
        }
        tag if is_type(tag) => unit.name(entry).map(Part::Named),
        _ => None,
    }
}

fn index_entry(found: &Indexed<'_>, around: &[(isize, Part)], out: &mut Names) {
    let declaration = found.entry.has_attr(dw::DW_AT_declaration);
    match found.entry.tag() {
        dw::DW_TAG_variable => {
            if let Some(variable) = static_variable(found, around) {
                out.variables.push(variable);
            }
        }
        dw::DW_TAG_subprogram => {
            let code = [dw::DW_AT_low_pc, dw::DW_AT_ranges, dw::DW_AT_inline];
            // A copy of an abstract function is found through the latter.
            let copy = found.entry.has_attr(dw::DW_AT_abstract_origin);
            if declaration || copy || !code.iter().any(|name| found.entry.has_attr(*name)) {
                return;
            }
            let full = found.debug.function_name(found.id);
            let Some(name) = full.map(|name| qualified(found.debug, &name, around)) else { return };
            let key = last_part(&name).into();
            let function = NamedFunction { entry: found.id, name: name.into() };
            out.functions.entry(key).or_default().push(function);
        }
        tag if is_type(tag) && !declaration => {
            let Some(name) = found.unit.name(found.entry) else { return };
            let name = qualified(found.debug, &name, around);
            let rows = out.types.entry(last_part(&name).into()).or_default();
            // Every unit of a C program repeats the types of its headers; a few are enough.
            if rows.len() < 64 {
                rows.push((name.into(), found.id));
            }
        }
        _ => {}
    }
}

fn static_variable(found: &Indexed<'_>, around: &[(isize, Part)]) -> Option<StaticVariable> {
    let in_function = around.iter().any(|(_, part)| matches!(part, Part::Function(_)));
    let address = match found.entry.attr_value(dw::DW_AT_location) {
        Some(value) => static_address(found.unit, &value)?,
        None if in_function || found.entry.has_attr(dw::DW_AT_declaration) => return None,
        // A constant, or optimised out as a whole: still a name that a user may ask for.
        None => None,
    };
    if address == Some(FileAddress(0)) {
        return None;
    }
    let linkage = found.entry.attr_value(dw::DW_AT_linkage_name);
    let linkage = linkage.and_then(|value| found.unit.string(value));
    let name = match linkage {
        Some(name) if name.starts_with("_Z") || name.starts_with("_R") => {
            crate::demangle::demangle(&name)
        }
        _ => qualified(found.debug, &found.debug.entry_name(found.id)?, around),
    };
    Some(StaticVariable { entry: found.id, name: name.into(), address, in_function })
}

/// The address that a location names without knowing a frame: `Some(None)` for thread-locals,
/// `None` for what lives on a stack or in registers.
fn static_address(unit: &LoadedUnit, location: &Attribute) -> Option<Option<FileAddress>> {
    let mut operations = location.exprloc_value()?.operations(unit.unit.encoding());
    let first = operations.next().ok()??;
    let second = operations.next().ok()?;
    if matches!(second, Some(Operation::TLS)) {
        return Some(None);
    }
    match first {
        Operation::Address { address } => Some(Some(FileAddress(address))),
        Operation::AddressIndex { index } => {
            Some(Some(FileAddress(unit.dwarf.address(&unit.unit, index).ok()?)))
        }
        _ => None,
    }
}

/// The name with those of the scopes around it, unless it has them already.
fn qualified(debug: &DebugInfo, name: &str, around: &[(isize, Part)]) -> String {
    if name.contains("::") {
        return name.into();
    }
    let mut full = String::new();
    for (_, part) in around {
        match part {
            Part::Named(part) => full.push_str(part),
            Part::Function(entry) => match debug.function_name(*entry) {
                // A demangled function brings its own scopes along.
                Some(function) if function.contains("::") => full = function,
                Some(function) => full.push_str(&function),
                None => continue,
            },
        }
        full.push_str("::");
    }
    full + name
}
