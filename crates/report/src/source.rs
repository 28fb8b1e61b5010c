//! Lines of source files, if they are at hand, and names of files as a reader would write them.

pub use investigate::paths::shortened;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};

/// Lines shown before the one in question.
const BEFORE: u32 = 3;
/// Lines shown after it.
const AFTER: u32 = 2;
/// Files are read no further than this.
const LARGEST: u64 = 64 << 20;
/// Characters shown of a line.
const WIDEST: usize = 120;

/// The lines around `line` of a file, with their numbers; empty if they cannot be read.
pub fn excerpt(file: &str, line: u32) -> Vec<(u32, String)> {
    around(file, line, BEFORE, AFTER)
}

/// The same with as many lines before and after it as are asked for.
pub fn around(file: &str, line: u32, before: u32, after: u32) -> Vec<(u32, String)> {
    let Ok(opened) = File::open(file) else { return Vec::new() };
    if !opened.metadata().is_ok_and(|meta| meta.is_file()) {
        return Vec::new();
    }
    let first = line.saturating_sub(before).max(1);
    let mut lines = Vec::new();
    for (bytes, number) in BufReader::new(opened.take(LARGEST)).split(b'\n').zip(1..) {
        let Ok(bytes) = bytes else { break };
        if number > line.saturating_add(after) {
            break;
        }
        if number >= first {
            lines.push((number, shown(&bytes)));
        }
    }
    // A file shorter than the line is not the one the program was made from.
    if lines.iter().any(|(number, _)| *number == line) { lines } else { Vec::new() }
}

/// A line without what would disturb a terminal.
fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_end().replace('\t', "    ");
    text.chars().filter(|c| !c.is_control()).take(WIDEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_has_the_line_or_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.c");
        std::fs::write(&path, "one\ntwo\n\tthree\x1b[1m\nfour\nfive\nsix\n").expect("written");
        let file = path.to_string_lossy();
        let lines = excerpt(&file, 3);
        let numbers: Vec<u32> = lines.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5]);
        assert_eq!(lines[2].1, "    three[1m");
        assert!(excerpt(&file, 7).is_empty() && excerpt(&file, 0).is_empty());
        assert!(excerpt("/no/such/file.c", 1).is_empty() && excerpt("/", 1).is_empty());
    }
}
