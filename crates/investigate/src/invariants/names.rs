//! What instructions are called, so that a rebuilt program has the same names: by the function, the line within
//! it, and their rank among the instructions of the line.

use base::{Address, Range};
use iced_x86::{Decoder, DecoderOptions};
use invariants::learner::Names;
use invariants::model::{LineKey, Site, SiteKey};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use symbols::{FunctionCode, LineCode, Program};

/// Functions are read no further than this.
const LARGEST: u64 = 1 << 20;

/// Names instructions of a program, a function at a time.
pub struct Namer {
    program: Arc<Program>,
    sites: FxHashMap<u64, Site>,
}

/// What the line table says of a stretch of code.
struct Row {
    range: Range,
    /// The innermost function that is inlined there, if one is.
    inlined: Option<String>,
    file: String,
    line: u32,
}

impl Namer {
    /// For a program.
    #[must_use]
    pub fn new(program: Arc<Program>) -> Self {
        Self { program, sites: FxHashMap::default() }
    }

    fn name_function(&mut self, pc: u64) {
        let Some(function) = self.program.function_at(Address(pc)) else { return };
        let module = self.module(pc);
        let mut rows: Vec<Row> =
            function.ranges.iter().flat_map(|range| self.rows(*range, &function)).collect();
        rows.sort_by_key(|row| row.range.start);
        let mut first: BTreeMap<Option<&str>, u32> = BTreeMap::new();
        for row in &rows {
            let line = first.entry(row.inlined.as_deref()).or_insert(row.line);
            *line = row.line.min(*line);
        }
        let mut ranks: BTreeMap<LineKey, u32> = BTreeMap::new();
        for range in &function.ranges {
            for pc in instructions(&self.program, *range) {
                let before = rows.partition_point(|row| row.range.start <= Address(pc));
                let row = rows[..before].last().filter(|row| row.range.contains(Address(pc)));
                let inlined = row.and_then(|row| row.inlined.as_deref());
                let name = match inlined {
                    Some(inner) => format!("{inner} in {}", function.name),
                    None => function.name.clone(),
                };
                let start = first.get(&inlined).copied().unwrap_or_default();
                let within = row.map(|row| row.line.saturating_sub(start) as i32);
                let line = LineKey { module: module.clone(), function: name, line: within };
                let rank = ranks.entry(line.clone()).or_default();
                let offset = pc.wrapping_sub(function.entry.0) as u32;
                let key = SiteKey { line, rank: if row.is_some() { *rank } else { offset } };
                *rank += 1;
                let (file, line) = (row.map(|row| row.file.clone()), row.map(|row| row.line));
                self.sites.insert(pc, Site { key, file, line });
            }
        }
    }

    fn module(&self, pc: u64) -> String {
        let loaded = self.program.locate(Address(pc)).map(|(module, _)| module.loaded());
        let name = loaded.and_then(|loaded| loaded.path.file_name());
        name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    fn rows(&self, range: Range, function: &FunctionCode) -> Vec<Row> {
        let row = |code: LineCode| {
            let frames = self.program.symbolise(code.range.start).frames;
            let inlined = (frames.len() > 1).then(|| frames.first()?.function.clone()).flatten();
            let inlined = inlined.filter(|name| *name != function.name);
            Row { range: code.range, inlined, file: code.line.file, line: code.line.line }
        };
        self.program
            .lines_in(range)
            .into_iter()
            .filter(|code| code.line.line > 0)
            .map(row)
            .collect()
    }
}

/// Where the instructions of a stretch of code begin.
fn instructions(program: &Program, range: Range) -> Vec<u64> {
    let size = (range.end.0 - range.start.0).min(LARGEST);
    let mut bytes = vec![0; size as usize];
    if !program.code_bytes(range.start, &mut bytes) {
        return Vec::new();
    }
    let decoder = Decoder::with_ip(64, &bytes, range.start.0, DecoderOptions::NONE);
    decoder.into_iter().map(|instruction| instruction.ip()).collect()
}

impl Names for Namer {
    fn site(&mut self, pc: u64) -> Site {
        if !self.sites.contains_key(&pc) {
            self.name_function(pc);
        }
        let unnamed = || {
            let symbol = self.program.symbol_at(Address(pc));
            let (function, offset) = symbol.unwrap_or_else(|| (String::new(), pc));
            let line = LineKey { module: self.module(pc), function, line: None };
            Site { key: SiteKey { line, rank: offset as u32 }, file: None, line: None }
        };
        let site = self.sites.get(&pc).cloned().unwrap_or_else(unnamed);
        self.sites.entry(pc).or_insert(site).clone()
    }

    fn variable(&mut self, address: u64) -> Option<String> {
        Some(self.program.object_at(Address(address))?.name)
    }

    fn function(&mut self, address: u64) -> Option<String> {
        let function = self.program.function_at(Address(address))?;
        (function.entry == Address(address)).then_some(function.name)
    }
}
