//! The functions of a unit and the scopes inside a function: blocks and inlined calls with their
//! variables, nested as in the source.

use crate::address::FileAddress;
use crate::debug_info::{Attribute, CodeRange, DebugInfo, Entry};
use crate::demangle::demangle;
use crate::lines::LineTable;
use crate::module::{SourceFrame, SourceLine};
use crate::units::{EntryId, LoadedUnit};
use gimli::{UnitOffset, constants as dw};
use std::sync::Arc;

/// Scopes nested deeper than this are not looked into: only broken files have them.
const DEEPEST: usize = 1000;

/// A function with code of its own.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub entry: EntryId,
    pub ranges: Vec<(u64, u64)>,
}

impl Function {
    /// Where it is entered.
    pub fn start(&self) -> FileAddress {
        FileAddress(self.ranges.first().map_or(0, |range| range.0))
    }
}

/// The functions of a unit that have code.
#[derive(Default)]
pub(crate) struct Functions {
    /// By where they are entered.
    pub all: Vec<Function>,
    /// Start, end and index of every piece of code, by start.
    pieces: Vec<(u64, u64, u32)>,
}

impl Functions {
    fn new(mut all: Vec<Function>) -> Self {
        all.sort_by_key(Function::start);
        let mut pieces: Vec<_> = (0u32..)
            .zip(&all)
            .flat_map(|(index, function)| {
                function.ranges.iter().map(move |(start, end)| (*start, *end, index))
            })
            .collect();
        pieces.sort_unstable();
        Self { all, pieces }
    }

    fn at(&self, address: FileAddress) -> Option<&Function> {
        // Only functions inside functions overlap, so a short look back finds what covers.
        const LOOK_BACK: usize = 16;
        let end = self.pieces.partition_point(|piece| piece.0 <= address.0);
        let covering = self.pieces[..end].iter().rev().take(LOOK_BACK);
        let (.., index) = covering.into_iter().find(|piece| address.0 < piece.1)?;
        self.all.get(*index as usize)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ScopeKind {
    Function,
    Block,
    Inlined,
}

/// A scope and what is in it.
#[derive(Debug)]
pub(crate) struct Scope {
    pub entry: EntryId,
    pub kind: ScopeKind,
    /// Empty if the scope says nothing of its own.
    pub ranges: Vec<(u64, u64)>,
    pub variables: Vec<VariableEntry>,
    pub children: Vec<Scope>,
    /// Return address and entry of the calls made here.
    pub calls: Vec<(u64, EntryId)>,
}

/// A variable or parameter as it stands in the debug information.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VariableEntry {
    pub entry: EntryId,
    pub parameter: bool,
}

impl Scope {
    /// The scopes around `address`, this one first, the innermost last.
    pub fn around(&self, address: FileAddress) -> Vec<&Self> {
        let mut path = vec![self];
        let mut at = self;
        while let Some(inner) = at.children.iter().find(|child| child.covers(address)) {
            path.push(inner);
            at = inner;
        }
        path
    }

    /// Every scope, this one first.
    pub fn all(&self) -> Vec<&Self> {
        let mut all = vec![self];
        let mut next = 0;
        while let Some(scope) = all.get(next).copied() {
            all.extend(&scope.children);
            next += 1;
        }
        all
    }

    fn covers(&self, address: FileAddress) -> bool {
        // A block without ranges of its own has lost them to optimisation; it holds only
        // declarations then, which are harmless to see.
        within(&self.ranges, address)
    }
}

pub(crate) fn within(ranges: &[(u64, u64)], address: FileAddress) -> bool {
    ranges.iter().any(|(start, end)| (*start..*end).contains(&address.0))
}

impl DebugInfo {
    /// The unit whose code `address` is in.
    pub fn unit_at(&self, address: FileAddress) -> Option<Arc<LoadedUnit>> {
        let code = self.code_ranges();
        let end = code.partition_point(|range| range.start <= address.0);
        // Ranges of different units do not overlap in sound files, so a short look back does.
        let found = code[..end].iter().rev().take(16).find(|range| address.0 < range.end)?;
        self.full(self.own_unit(found.unit)?.id)
    }

    /// All code by address, with the units it belongs to.
    pub fn code_ranges(&self) -> &[CodeRange] {
        self.caches.code.get_or_init(|| {
            let mut code = Vec::new();
            for index in 0..self.unit_count() {
                let Some(unit) = self.own_unit(index) else { continue };
                let ranges = self.ranges_of_unit(&unit);
                let range = |(start, end)| CodeRange { start, end, unit: index };
                code.extend(ranges.into_iter().map(range));
            }
            code.sort_by_key(|range| range.start);
            code
        })
    }

    fn ranges_of_unit(&self, unit: &Arc<LoadedUnit>) -> Vec<(u64, u64)> {
        // Type units have no code, but may share the line table of a unit that has.
        if !matches!(
            unit.unit.header.type_(),
            gimli::UnitType::Compilation | gimli::UnitType::Skeleton(_)
        ) {
            return Vec::new();
        }
        let root = unit.unit.entry(unit.unit.header.root_offset());
        let ranges = root.map(|root| unit.ranges(&root)).unwrap_or_default();
        if !ranges.is_empty() || unit.unit.line_program.is_none() {
            return ranges.into_iter().filter(|range| range.0 != 0).collect();
        }
        // Some assemblers state no ranges; their line tables do.
        let table = self.lines(unit);
        table.rows.iter().map(|row| (row.address, row.end)).filter(|(a, b)| a < b).collect()
    }

    /// The line table of a unit.
    pub fn lines(&self, unit: &Arc<LoadedUnit>) -> Arc<LineTable> {
        let id = unit.skeleton.as_ref().map_or(unit.id, |skeleton| skeleton.id);
        self.caches.lines.get(id, || LineTable::of(unit))
    }

    /// The functions of a unit that have code, by address.
    pub fn functions(&self, unit: &LoadedUnit) -> Arc<Functions> {
        self.caches.functions.get(unit.id, || Functions::new(functions(unit)))
    }

    /// The function that `address` is in.
    pub fn function_at(&self, address: FileAddress) -> Option<(Arc<LoadedUnit>, Function)> {
        let unit = self.unit_at(address)?;
        let found = self.functions(&unit).at(address)?.clone();
        Some((unit, found))
    }

    /// The scopes of the function at `entry`.
    pub fn scope(&self, entry: EntryId) -> Option<Arc<Scope>> {
        let unit = self.unit(entry.unit)?;
        Some(self.caches.scopes.get(entry, || parse(&unit, entry)))
    }

    /// The name of the function or inlined call at `entry`, qualified and demangled.
    pub fn function_name(&self, entry: EntryId) -> Option<String> {
        let linkage = [dw::DW_AT_linkage_name, dw::DW_AT_MIPS_linkage_name];
        if let Some((unit, value)) = self.attribute(entry, &linkage) {
            return unit.string(value).map(|name| demangle(&name));
        }
        let (unit, named, value) = self.attribute_at(entry, &[dw::DW_AT_name])?;
        Some(self.prefix(&unit, named) + &unit.string(value)?)
    }

    /// The calls that are active at `address`, inlined ones first.
    pub fn frames(&self, address: FileAddress) -> Vec<SourceFrame> {
        let Some(unit) = self.unit_at(address) else { return Vec::new() };
        let table = self.lines(&unit);
        let row = table.row_at(address).filter(|row| row.line > 0);
        let mut line = row.and_then(|row| table.source(row));
        let function = self.function_at(address).and_then(|(_, f)| self.scope(f.entry));
        let Some(function) = function else {
            return Vec::from_iter(
                line.map(|line| SourceFrame { function: None, line: Some(line) }),
            );
        };
        let mut frames = Vec::new();
        let path = function.around(address);
        for scope in path.iter().rev().filter(|scope| scope.kind != ScopeKind::Block) {
            let function = self.function_name(scope.entry);
            // What an inlined call is to its caller is the line that it stands on.
            let caller = self.call_line(&table, scope);
            frames.push(SourceFrame { function, line: std::mem::replace(&mut line, caller) });
        }
        frames
    }

    /// The line that an inlined call stands on.
    fn call_line(&self, table: &LineTable, scope: &Scope) -> Option<SourceLine> {
        let (_, entry) = self.entry(scope.entry)?;
        let number = |name| match entry.attr_value(name)? {
            Attribute::FileIndex(index) => u32::try_from(index).ok(),
            value => u32::try_from(value.udata_value()?).ok(),
        };
        let column = number(dw::DW_AT_call_column).unwrap_or(0);
        let line = number(dw::DW_AT_call_line).filter(|line| *line > 0)?;
        table.line_of(number(dw::DW_AT_call_file)?, line, column)
    }

    /// The name of a variable, member or type, as declared.
    pub fn entry_name(&self, entry: EntryId) -> Option<String> {
        let (unit, value) = self.attribute(entry, &[dw::DW_AT_name])?;
        unit.string(value)
    }
}

fn functions(unit: &LoadedUnit) -> Vec<Function> {
    let mut functions = Vec::new();
    unit.visit(
        |tag| tag == dw::DW_TAG_subprogram,
        |met| {
            let ranges = met.entry.map(|entry| unit.ranges(entry)).unwrap_or_default();
            if ranges.first().is_some_and(|range| range.0 != 0) {
                functions.push(Function { entry: met.id, ranges });
            }
        },
    );
    functions
}

fn parse(unit: &LoadedUnit, function: EntryId) -> Scope {
    let new = |offset: usize, kind, ranges| Scope {
        entry: EntryId { unit: unit.id, offset },
        kind,
        ranges,
        variables: Vec::new(),
        children: Vec::new(),
        calls: Vec::new(),
    };
    let root = new(function.offset, ScopeKind::Function, Vec::new());
    let Ok(mut entries) = unit.unit.entries_raw(Some(UnitOffset(function.offset))) else {
        return root;
    };
    let mut entry = Entry::null();
    // Open scopes with the depth of their entries; closed ones move into their parents.
    let mut open: Vec<(isize, Scope)> = Vec::new();
    while !entries.is_empty() {
        match entries.read_entry(&mut entry) {
            Ok(true) => {}
            Ok(false) if entries.next_depth() > 0 => continue,
            _ => break,
        }
        let depth = entry.depth();
        if depth <= 0 && !open.is_empty() {
            break;
        }
        while open.last().is_some_and(|(outer, _)| *outer >= depth) && open.len() > 1 {
            close(&mut open);
        }
        // What is deeper belongs to local types and functions, not to this scope.
        if open.last().is_some_and(|(outer, _)| *outer + 1 != depth) {
            continue;
        }
        let id = EntryId { unit: unit.id, offset: entry.offset().0 };
        let kind = match entry.tag() {
            _ if depth == 0 => ScopeKind::Function,
            dw::DW_TAG_lexical_block | dw::DW_TAG_try_block | dw::DW_TAG_catch_block => {
                ScopeKind::Block
            }
            dw::DW_TAG_inlined_subroutine => ScopeKind::Inlined,
            tag => {
                if let Some((_, scope)) = open.last_mut() {
                    add(scope, unit, &entry, tag, id);
                }
                continue;
            }
        };
        if open.len() < DEEPEST {
            open.push((depth, new(id.offset, kind, unit.ranges(&entry))));
        }
    }
    while open.len() > 1 {
        close(&mut open);
    }
    open.pop().map_or(root, |(_, scope)| scope)
}

fn close(open: &mut Vec<(isize, Scope)>) {
    let Some((_, scope)) = open.pop() else { return };
    if let Some((_, outer)) = open.last_mut() {
        outer.children.push(scope);
    }
}

fn add(scope: &mut Scope, unit: &LoadedUnit, entry: &Entry, tag: gimli::DwTag, id: EntryId) {
    match tag {
        dw::DW_TAG_variable => scope.variables.push(VariableEntry { entry: id, parameter: false }),
        dw::DW_TAG_formal_parameter => {
            scope.variables.push(VariableEntry { entry: id, parameter: true });
        }
        dw::DW_TAG_call_site | dw::DW_TAG_GNU_call_site => {
            let at = entry
                .attr_value(dw::DW_AT_call_return_pc)
                .or_else(|| entry.attr_value(dw::DW_AT_low_pc));
            if let Some(address) = at.and_then(|value| address(unit, value)) {
                scope.calls.push((address, id));
            }
        }
        _ => {}
    }
}

pub(crate) fn address(unit: &LoadedUnit, value: Attribute) -> Option<u64> {
    unit.dwarf.attr_address(&unit.unit, value).ok().flatten()
}
