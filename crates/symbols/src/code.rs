//! Code of the program: its functions, their lines and statements, by address.

use crate::address::{FileAddress, loaded_range};
use crate::debug_info::DebugInfo;
use crate::lines::LineRow;
use crate::module::{Module, SourceLine};
use crate::program::Program;
use crate::scope::Function;
use crate::symbol_table::SymbolKind;
use base::{Address, Range};
use gimli::constants as dw;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// A function of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionCode {
    /// Its name, demangled.
    pub name: String,
    /// Where it is entered.
    pub entry: Address,
    /// All its code; more than one range if the compiler put unlikely parts elsewhere.
    pub ranges: Vec<Range>,
    /// Whether debug information describes it, or only a symbol table.
    pub debug_info: bool,
}

/// A stretch of code that belongs to one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineCode {
    /// The code.
    pub range: Range,
    /// The line.
    pub line: SourceLine,
    /// Whether a statement begins here: a good place to stop.
    pub statement: bool,
}

impl Program {
    /// The function that `address` is in.
    #[must_use]
    pub fn function_at(&self, address: Address) -> Option<FunctionCode> {
        let (loaded, _) = self.locate(address)?;
        let (module, bias) = (loaded.module()?, loaded.bias());
        let at = FileAddress::unloaded(address, bias);
        if let Some(debug) = module.debug()
            && let Some((_, function)) = debug.function_at(at)
        {
            return described(debug, &function, module, bias);
        }
        let symbol = module.symbol_at(at)?;
        let entry = symbol.address.loaded(bias);
        let ranges = vec![Range::new(entry.0, symbol.size.max(at.0 - symbol.address.0 + 1))];
        Some(FunctionCode { name: symbol.demangled(), entry, ranges, debug_info: false })
    }

    /// The functions of a module (an index into [`Program::modules`]) by address: those with
    /// debug information, and those that only the symbol tables know.
    #[must_use]
    pub fn functions(&self, module: usize) -> Vec<FunctionCode> {
        let Some(loaded) = self.modules().get(module) else { return Vec::new() };
        let (Some(module), bias) = (loaded.module(), loaded.bias()) else { return Vec::new() };
        let mut functions = Vec::new();
        if let Some(debug) = module.debug() {
            for unit in debug.compilation_units() {
                let own = debug.functions(&unit);
                functions.extend(own.all.iter().filter_map(|f| described(debug, f, module, bias)));
            }
        }
        let known: HashSet<Address> = functions.iter().map(|function| function.entry).collect();
        for symbol in module.symbols().iter().filter(|s| s.kind == SymbolKind::Function) {
            let entry = symbol.address.loaded(bias);
            if !known.contains(&entry) {
                let ranges = vec![Range::new(entry.0, symbol.size)];
                let name = symbol.demangled();
                functions.push(FunctionCode { name, entry, ranges, debug_info: false });
            }
        }
        functions.sort_by_key(|function| function.entry);
        // Several names for one piece of code: the first is the symbol table's preference.
        functions.dedup_by_key(|function| function.entry);
        functions
    }

    /// The line of the code at `address`, with the stretch of code around it.
    #[must_use]
    pub fn line_at(&self, address: Address) -> Option<LineCode> {
        let (loaded, _) = self.locate(address)?;
        let debug = loaded.module()?.debug()?;
        let at = FileAddress::unloaded(address, loaded.bias());
        let unit = debug.unit_at(at)?;
        let table = debug.lines(&unit);
        let row = table.row_at(at)?;
        line_code(&table, row, loaded.bias())
    }

    /// The line table of a stretch of code, by address.
    #[must_use]
    pub fn lines_in(&self, range: Range) -> Vec<LineCode> {
        let find = || {
            let (loaded, _) = self.locate(range.start)?;
            let debug = loaded.module()?.debug()?;
            let start = FileAddress::unloaded(range.start, loaded.bias());
            let end = FileAddress::unloaded(range.end, loaded.bias());
            let unit = debug.unit_at(start)?;
            let table = debug.lines(&unit);
            let rows = table.rows_in(start.0, end.0).iter();
            Some(rows.filter_map(|row| line_code(&table, row, loaded.bias())).collect())
        };
        find().unwrap_or_default()
    }
}

fn line_code(table: &crate::lines::LineTable, row: &LineRow, bias: u64) -> Option<LineCode> {
    let range = loaded_range((row.address, row.end), bias);
    Some(LineCode { range, line: table.source(row)?, statement: row.statement })
}

fn described(
    debug: &DebugInfo,
    function: &Function,
    module: &Module,
    bias: u64,
) -> Option<FunctionCode> {
    let entry = function.start();
    let named = debug.function_name(function.entry);
    let name = named.or_else(|| Some(module.symbol_at(entry)?.demangled()))?;
    let ranges = function.ranges.iter().map(|range| loaded_range(*range, bias)).collect();
    Some(FunctionCode { name, entry: entry.loaded(bias), ranges, debug_info: true })
}

impl DebugInfo {
    /// Where the body of a function begins, once its frame and arguments are in place. Optimised
    /// code needs no such place: there, variables are described from the first instruction on.
    pub fn body(&self, function: &Function) -> FileAddress {
        let entry = function.start();
        let find = || {
            let unit = self.unit(function.entry.unit)?;
            if self.is_optimised(function) {
                return None;
            }
            let table = self.lines(&unit);
            let (start, end) = *function.ranges.first()?;
            let rows = table.rows_in(start, end);
            let marked = rows.iter().find(|row| row.prologue_end && row.address > start);
            // Without a mark the second line of the function is its body, by convention.
            let second = || rows.iter().find(|row| row.address > start && row.statement);
            marked.or_else(second).map(|row| FileAddress(row.address))
        };
        find().unwrap_or(entry)
    }

    /// Whether a parameter moves about while the function runs.
    fn is_optimised(&self, function: &Function) -> bool {
        let Some(scope) = self.scope(function.entry) else { return false };
        let Some(unit) = self.unit(function.entry.unit) else { return false };
        scope.variables.iter().filter(|variable| variable.parameter).any(|variable| {
            let entry = unit.unit.entry(gimli::UnitOffset(variable.entry.offset));
            let location = entry.ok().and_then(|entry| entry.attr_value(dw::DW_AT_location));
            location.is_some_and(|location| location.exprloc_value().is_none())
        })
    }
}
