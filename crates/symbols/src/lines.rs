//! The line table of a unit: which source line each address belongs to, and where statements
//! begin.

use crate::address::FileAddress;
use crate::debug_info::Reader;
use crate::module::SourceLine;
use crate::units::LoadedUnit;
use std::sync::Arc;

/// Rows beyond this many are not read: no unit has them, broken programs do.
const MOST_ROWS: usize = 1 << 24;

/// One row: it holds from its address up to that of the next row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineRow {
    pub address: u64,
    pub end: u64,
    pub file: u32,
    pub line: u32,
    pub column: u32,
    pub statement: bool,
    pub prologue_end: bool,
}

/// The line table of one unit, rows by address.
pub(crate) struct LineTable {
    pub files: Vec<Arc<str>>,
    pub rows: Vec<LineRow>,
}

impl LineTable {
    /// The table of `unit`; for a split unit its skeleton's.
    pub fn of(unit: &LoadedUnit) -> Self {
        let unit = unit.skeleton.as_deref().unwrap_or(unit);
        let files = file_names(unit);
        let Some(program) = unit.unit.line_program.clone() else {
            return Self { files, rows: Vec::new() };
        };
        let mut raw = program.rows();
        let mut rows: Vec<LineRow> = Vec::new();
        let mut start = 0;
        // A sequence that starts at 0 belongs to code that the linker dropped.
        while let Ok(Some((_, row))) = raw.next_row() {
            let address = row.address();
            if let Some(last) = rows[start..].last_mut() {
                last.end = address;
            }
            if row.end_sequence() {
                let dead = rows.get(start).is_some_and(|first| first.address == 0);
                rows.truncate(if dead { start } else { rows.len() });
                start = rows.len();
                continue;
            }
            if rows.len() >= MOST_ROWS {
                break;
            }
            rows.push(LineRow {
                address,
                end: address,
                file: u32::try_from(row.file_index()).unwrap_or(u32::MAX),
                line: row.line().map_or(0, |line| u32::try_from(line.get()).unwrap_or(0)),
                column: match row.column() {
                    gimli::ColumnType::LeftEdge => 0,
                    gimli::ColumnType::Column(column) => u32::try_from(column.get()).unwrap_or(0),
                },
                statement: row.is_stmt(),
                prologue_end: row.prologue_end(),
            });
        }
        // What follows the last end of a sequence is not closed and has no extent.
        rows.truncate(start);
        // Stable: rows of one address keep the order of the program, in which the last one wins.
        rows.sort_by_key(|row| row.address);
        Self { files, rows }
    }

    /// The row that covers `address`.
    pub fn row_at(&self, address: FileAddress) -> Option<&LineRow> {
        let end = self.rows.partition_point(|row| row.address <= address.0);
        self.rows[..end].iter().rev().take(8).find(|row| address.0 < row.end)
    }

    /// The rows that start in `[start, end)`.
    pub fn rows_in(&self, start: u64, end: u64) -> &[LineRow] {
        let first = self.rows.partition_point(|row| row.address < start);
        let last = self.rows.partition_point(|row| row.address < end);
        self.rows.get(first..last).unwrap_or_default()
    }

    /// The source line of a row.
    pub fn source(&self, row: &LineRow) -> Option<SourceLine> {
        self.line_of(row.file, row.line, row.column)
    }

    /// A line of the file with that number in the table.
    pub fn line_of(&self, file: u32, line: u32, column: u32) -> Option<SourceLine> {
        Some(SourceLine { file: self.file(file)?.to_string(), line, column })
    }

    fn file(&self, index: u32) -> Option<&Arc<str>> {
        self.files.get(index as usize).filter(|name| !name.is_empty())
    }
}

/// The source files that the line table of `unit` names, with their folders.
pub(crate) fn file_names(unit: &LoadedUnit) -> Vec<Arc<str>> {
    let unit = unit.skeleton.as_deref().unwrap_or(unit);
    let Some(program) = &unit.unit.line_program else { return Vec::new() };
    let header = program.header();
    let first = if header.version() >= 5 { 0 } else { 1 };
    let mut names = vec![Arc::from(""); first];
    names.extend(header.file_names().iter().map(|file| Arc::from(path(unit, header, file))));
    names
}

fn path(
    unit: &LoadedUnit,
    header: &gimli::LineProgramHeader<Reader>,
    file: &gimli::FileEntry<Reader>,
) -> String {
    let mut path = String::new();
    let comp_dir = unit.unit.comp_dir.as_ref().and_then(crate::debug_info::text);
    push(&mut path, &comp_dir.unwrap_or_default());
    if file.directory_index() != 0 || header.version() >= 5 {
        let folder = file.directory(header).and_then(|value| unit.string(value));
        push(&mut path, &folder.unwrap_or_default());
    }
    push(&mut path, &unit.string(file.path_name()).unwrap_or_default());
    path
}

/// Appends a part to a path as a shell would read it: an absolute part starts anew.
fn push(path: &mut String, part: &str) {
    if part.starts_with('/') {
        path.clear();
    } else if !path.is_empty() && !path.ends_with('/') && !part.is_empty() {
        path.push('/');
    }
    path.push_str(part);
}
