//! The small language of **places**: `FILE:LINE`, `FUNCTION`, `*0xADDRESS`, and the code they
//! mean in a program.

use crate::address::{FileAddress, loaded_range};
use crate::debug_info::DebugInfo;
use crate::demangle::names;
use crate::lines::LineRow;
use crate::module::{Module, SourceLine};
use crate::program::Program;
use crate::scope::{Function, ScopeKind, within};
use crate::suggest::{hint, near};
use crate::symbol_table::SymbolKind;
use crate::units::{EntryId, LoadedUnit};
pub use base::PlaceName;
use base::{Address, Range};
use gimli::constants as dw;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// One piece of code that a place means. A place means several when a function is inlined or a
/// template instantiated more than once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeLocation {
    /// Where it begins: the statement, or the body of the function.
    pub address: Address,
    /// The first instruction of all: for a function its entry, else the same as `address`.
    pub entry: Address,
    /// All its code in that function or inlined copy: of the line, or of the function.
    pub ranges: Vec<Range>,
    /// The function, or the one that was inlined.
    pub function: Option<String>,
    /// The line; another one than asked for if that has no code.
    pub line: Option<SourceLine>,
    /// Whether it is an inlined copy.
    pub inlined: bool,
}

/// Why a place means nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaceError {
    /// No source file is called that.
    UnknownFile {
        /// The file.
        file: String,
        /// Files like it.
        near: Vec<String>,
    },
    /// There is no code from that line on.
    NoCode {
        /// The file.
        file: String,
        /// The line.
        line: u32,
        /// The last line that has code.
        last: u32,
    },
    /// No function is called that.
    UnknownFunction {
        /// The function.
        name: String,
        /// Functions like it.
        near: Vec<String>,
    },
    /// No code is loaded at that address.
    NotCode(Address),
    /// Lines were asked for and there is no debug information at all.
    NoDebugInfo,
}

impl fmt::Display for PlaceError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownFile { file, near } => {
                write!(out, "the program has no source file '{file}'{}", hint(near))
            }
            Self::NoCode { file, line, last } => {
                write!(out, "{file}:{line} has no code; the last line that has is {last}")
            }
            Self::UnknownFunction { name, near } => {
                write!(out, "the program has no function '{name}'{}", hint(near))
            }
            Self::NotCode(address) => write!(out, "there is no code at {address}"),
            Self::NoDebugInfo => out.write_str(
                "the program has no debug information, so its lines are not known; build it \
                 with -g, or name a FUNCTION or an *0xADDRESS",
            ),
        }
    }
}

impl std::error::Error for PlaceError {}

impl Program {
    /// The code that a place means: at least one location, by address.
    pub fn resolve(&self, place: &PlaceName) -> Result<Vec<CodeLocation>, PlaceError> {
        match place {
            PlaceName::Line { file, line } => self.resolve_line(file, *line),
            PlaceName::Function(name) => self.resolve_function(name),
            PlaceName::Address(address) => self.resolve_address(*address),
        }
    }

    fn resolve_address(&self, address: Address) -> Result<Vec<CodeLocation>, PlaceError> {
        if !self.is_code(address) {
            return Err(PlaceError::NotCode(address));
        }
        let line = self.line_at(address);
        let function = self.symbolise(address).frames.into_iter().next();
        Ok(vec![CodeLocation {
            address,
            entry: address,
            ranges: vec![Range::new(address.0, 1)],
            function: function.and_then(|frame| frame.function),
            line: line.map(|line| line.line),
            inlined: false,
        }])
    }

    fn with_debug(&self) -> impl Iterator<Item = (&Module, &DebugInfo, u64)> {
        self.modules().iter().filter_map(|loaded| {
            let module = loaded.module()?;
            Some((module, module.debug()?, loaded.bias()))
        })
    }

    fn resolve_line(&self, file: &str, line: u32) -> Result<Vec<CodeLocation>, PlaceError> {
        let mut units = Vec::new();
        for (_, debug, bias) in self.with_debug() {
            for index in 0..debug.unit_count() {
                let Some(unit) = debug.own_unit(index) else { continue };
                let files = matching_files(&unit, file);
                if !files.is_empty() {
                    units.push(Matching { debug, unit, files, bias });
                }
            }
        }
        if units.is_empty() {
            return Err(self.unknown_file(file));
        }
        // The line itself, or else the next one that has code, wherever the file is compiled.
        let next = units.iter().filter_map(|found| found.next_line(line)).min();
        let Some(next) = next else {
            let last = units.iter().filter_map(Matching::last_line).max().unwrap_or(0);
            return Err(PlaceError::NoCode { file: file.into(), line, last });
        };
        let mut found: Vec<CodeLocation> =
            units.iter().flat_map(|unit| unit.locations(next)).collect();
        found.sort_by_key(|location| location.address);
        found.dedup_by_key(|location| location.address);
        Ok(found)
    }

    fn unknown_file(&self, file: &str) -> PlaceError {
        if self.with_debug().next().is_none() {
            return PlaceError::NoDebugInfo;
        }
        let mut known: BTreeSet<String> = BTreeSet::new();
        for (_, debug, _) in self.with_debug() {
            for unit in (0..debug.unit_count()).filter_map(|index| debug.own_unit(index)) {
                let name = unit.unit.name.as_ref().and_then(crate::debug_info::text);
                known.extend(name.and_then(|name| Some(name.rsplit('/').next()?.to_owned())));
            }
        }
        let base = file.rsplit('/').next().unwrap_or(file);
        let near = near(base, known.iter().map(String::as_str));
        PlaceError::UnknownFile { file: file.into(), near }
    }

    fn resolve_function(&self, name: &str) -> Result<Vec<CodeLocation>, PlaceError> {
        let mut found = Vec::new();
        for loaded in self.modules() {
            let Some(module) = loaded.module() else { continue };
            found.extend(functions_named(module, name, loaded.bias()));
        }
        // An exact name is not also a part of longer ones.
        if found.iter().any(|location: &CodeLocation| location.function.as_deref() == Some(name)) {
            found.retain(|location| location.function.as_deref() == Some(name));
        }
        found.sort_by_key(|location| (location.entry, location.inlined));
        found.dedup_by_key(|location| location.entry);
        if found.is_empty() { Err(self.unknown_function(name)) } else { Ok(found) }
    }

    fn unknown_function(&self, name: &str) -> PlaceError {
        let mut known: BTreeSet<String> = BTreeSet::new();
        for loaded in self.modules() {
            let Some(module) = loaded.module() else { continue };
            if let Some(debug) = module.debug() {
                let functions = debug.names().functions.values().flatten();
                known.extend(functions.map(|function| function.name.to_string()));
            }
            let symbols = module.symbols().iter().filter(|s| s.kind == SymbolKind::Function);
            // Names of the C library begin with `_`; nobody means those.
            known.extend(symbols.filter(|s| !s.name.starts_with("__")).map(|s| s.demangled()));
        }
        let near = near(name, known.iter().map(String::as_str));
        PlaceError::UnknownFunction { name: name.into(), near }
    }
}

/// A unit that has code from a file, and the numbers of the file in its line table.
struct Matching<'a> {
    debug: &'a DebugInfo,
    unit: Arc<LoadedUnit>,
    files: Vec<u32>,
    bias: u64,
}

impl Matching<'_> {
    fn lines(&self) -> Vec<u32> {
        let table = self.debug.lines(&self.unit);
        let rows = table.rows.iter().filter(|row| self.matches(row));
        rows.map(|row| row.line).collect()
    }

    fn matches(&self, row: &LineRow) -> bool {
        row.statement && row.line > 0 && self.files.contains(&row.file)
    }

    fn next_line(&self, line: u32) -> Option<u32> {
        self.lines().into_iter().filter(|found| *found >= line).min()
    }

    fn last_line(&self) -> Option<u32> {
        self.lines().into_iter().max()
    }

    /// The code of a line, one location for each function and inlined copy that has some.
    fn locations(&self, line: u32) -> Vec<CodeLocation> {
        let table = self.debug.lines(&self.unit);
        let mut groups: BTreeMap<(u64, Option<EntryId>), Vec<LineRow>> = BTreeMap::new();
        for row in table.rows.iter().filter(|row| row.line == line && self.matches(row)) {
            let at = FileAddress(row.address);
            let function = self.debug.function_at(at);
            let (start, scope) = match &function {
                Some((_, function)) => (function.start().0, self.scope_at(function, at)),
                None => (row.address, None),
            };
            groups.entry((start, scope)).or_default().push(*row);
        }
        groups.into_iter().filter_map(|((_, scope), rows)| self.location(scope, &rows)).collect()
    }

    /// The function or inlined call that `at` is in.
    fn scope_at(&self, function: &Function, at: FileAddress) -> Option<EntryId> {
        let scope = self.debug.scope(function.entry)?;
        let path = scope.around(at);
        path.iter().rev().find(|scope| scope.kind != ScopeKind::Block).map(|scope| scope.entry)
    }

    /// The code of a row. Several statements may begin at one address in optimised code; only
    /// the last of them has an extent of its own there, which they all share.
    fn range(&self, row: &LineRow) -> Range {
        let table = self.debug.lines(&self.unit);
        let shared = table.row_at(FileAddress(row.address)).map_or(row.end, |last| last.end);
        loaded_range((row.address, row.end.max(shared)), self.bias)
    }

    fn location(&self, scope: Option<EntryId>, rows: &[LineRow]) -> Option<CodeLocation> {
        let first = rows.iter().min_by_key(|row| row.address)?;
        let table = self.debug.lines(&self.unit);
        let at = FileAddress(first.address);
        let function = self.debug.function_at(at).map(|(_, function)| function);
        let inlined = scope.is_some() && scope != function.as_ref().map(|f| f.entry);
        // At the very start of a function its variables are not there yet.
        let start = match &function {
            Some(function) if !inlined && function.start() == at => self.debug.body(function),
            _ => at,
        };
        let mut ranges: Vec<Range> = rows.iter().map(|row| self.range(row)).collect();
        ranges.sort_by_key(|range| range.start);
        Some(CodeLocation {
            address: start.loaded(self.bias),
            entry: at.loaded(self.bias),
            ranges,
            function: scope.and_then(|scope| self.debug.function_name(scope)),
            line: table.source(first),
            inlined,
        })
    }
}

/// The numbers of the files in the unit's line table whose paths end in `wanted`.
fn matching_files(unit: &LoadedUnit, wanted: &str) -> Vec<u32> {
    let Some(program) = &unit.unit.line_program else { return Vec::new() };
    let base = wanted.rsplit('/').next().unwrap_or(wanted);
    // Most units do not have the file; their paths need not be put together to see that.
    let header = program.header();
    let possible = header.file_names().iter().any(|file| {
        let name = unit.dwarf.attr_string(&unit.unit, file.path_name());
        name.is_ok_and(|name| name.bytes().ends_with(base.as_bytes()))
    });
    if !possible {
        return Vec::new();
    }
    let files = crate::lines::file_names(unit);
    let matching = |path: &str| {
        path.strip_suffix(wanted.trim_start_matches("./")).is_some_and(|before| {
            before.is_empty() || before.ends_with('/') || wanted.starts_with('/')
        })
    };
    (0u32..).zip(&files).filter(|(_, path)| matching(path)).map(|(index, _)| index).collect()
}

/// The functions of a module that `wanted` names, out of line and inlined.
fn functions_named(module: &Module, wanted: &str, bias: u64) -> Vec<CodeLocation> {
    let mut found = Vec::new();
    let mut starts: BTreeSet<FileAddress> = BTreeSet::new();
    let last = wanted.rsplit("::").next().unwrap_or(wanted);
    let last = last.split(['<', '(']).next().unwrap_or(last);
    for symbol in module.symbols().iter().filter(|s| s.kind == SymbolKind::Function) {
        // Demangling is slow; a symbol that does not even contain the word is not it.
        if symbol.name.contains(last) && names(wanted, &symbol.demangled()) {
            starts.insert(symbol.address);
        }
    }
    let Some(debug) = module.debug() else {
        found.extend(starts.iter().filter_map(|start| by_symbol(module, *start, bias)));
        return found;
    };
    let mut abstract_entries = BTreeSet::new();
    for function in debug.names().functions_named(wanted) {
        let Some((unit, entry)) = debug.entry(function.entry) else { continue };
        match unit.ranges(&entry).first() {
            Some((start, _)) => {
                starts.insert(FileAddress(*start));
            }
            None => {
                abstract_entries.insert(function.entry);
            }
        }
    }
    for start in starts {
        match debug.function_at(start).filter(|(_, function)| function.start() == start) {
            Some((_, function)) => found.extend(out_of_line(debug, &function, bias)),
            None => found.extend(by_symbol(module, start, bias)),
        }
    }
    if !abstract_entries.is_empty() {
        found.extend(inlined_copies(debug, &abstract_entries, bias));
    }
    found
}

fn by_symbol(module: &Module, start: FileAddress, bias: u64) -> Option<CodeLocation> {
    let symbol = module.symbol_at(start)?;
    let address = start.loaded(bias);
    Some(CodeLocation {
        address,
        entry: address,
        ranges: vec![Range::new(address.0, symbol.size)],
        function: Some(symbol.demangled()),
        line: None,
        inlined: false,
    })
}

fn out_of_line(debug: &DebugInfo, function: &Function, bias: u64) -> Option<CodeLocation> {
    let body = debug.body(function);
    Some(CodeLocation {
        address: body.loaded(bias),
        entry: function.start().loaded(bias),
        ranges: function.ranges.iter().map(|range| loaded_range(*range, bias)).collect(),
        function: debug.function_name(function.entry),
        line: source_line(debug, body),
        inlined: false,
    })
}

fn source_line(debug: &DebugInfo, at: FileAddress) -> Option<SourceLine> {
    let unit = debug.unit_at(at)?;
    let table = debug.lines(&unit);
    table.source(table.row_at(at)?)
}

/// The inlined copies of functions, from a pass over the whole debug information.
fn inlined_copies(debug: &DebugInfo, wanted: &BTreeSet<EntryId>, bias: u64) -> Vec<CodeLocation> {
    let mut found = Vec::new();
    for unit in debug.compilation_units() {
        for (entry, ranges) in inlined_in(debug, &unit, wanted) {
            let Some(start) = first_address(&unit, entry, &ranges) else { continue };
            found.push(CodeLocation {
                address: start.loaded(bias),
                entry: start.loaded(bias),
                ranges: ranges.iter().map(|range| loaded_range(*range, bias)).collect(),
                function: debug.function_name(entry),
                line: source_line(debug, start),
                inlined: true,
            });
        }
    }
    found
}

/// Where an inlined call is entered: stated, or the lowest of its code.
fn first_address(unit: &LoadedUnit, entry: EntryId, ranges: &[(u64, u64)]) -> Option<FileAddress> {
    let entry = unit.unit.entry(gimli::UnitOffset(entry.offset)).ok()?;
    let stated = entry.attr_value(dw::DW_AT_entry_pc).and_then(|value| match value {
        // An offset from the start, says DWARF 5.
        value if value.udata_value().is_some() => {
            ranges.first()?.0.checked_add(value.udata_value()?)
        }
        value => crate::scope::address(unit, value),
    });
    let stated = stated.map(FileAddress).filter(|at| within(ranges, *at));
    stated.or_else(|| ranges.iter().map(|range| FileAddress(range.0)).min())
}

fn inlined_in(
    debug: &DebugInfo,
    unit: &LoadedUnit,
    wanted: &BTreeSet<EntryId>,
) -> Vec<(EntryId, Vec<(u64, u64)>)> {
    let mut found = Vec::new();
    unit.visit(
        |tag| tag == dw::DW_TAG_inlined_subroutine,
        |met| {
            let Some(entry) = met.entry else { return };
            let origin = debug.origin(unit, entry);
            if origin.is_some_and(|origin| wanted.contains(&origin)) {
                found.push((met.id, unit.ranges(entry)));
            }
        },
    );
    found.retain(|(_, ranges)| !ranges.is_empty());
    found
}
