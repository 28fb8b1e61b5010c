//! Real sources with pieces deleted, doubled, swapped and spliced from one another: every case is
//! survived, in bounded work, and whatever is reported lies inside the file.
//!
//! The sources are the C and C++ programs of this repository, or the tree that
//! `WHYDUNIT_FUZZ_SOURCES` names; `WHYDUNIT_FUZZ_CASES` and `WHYDUNIT_FUZZ_SEED` make longer and
//! other runs. A failure names its seed and keeps its files.

use correlate::library::Library;
use correlate::tree::Silent;
use correlate::{Analysis, Request, analyse};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Files that are analysed together, as a tree.
const BATCH: usize = 20;
/// Longest piece of a source that a case starts from: long enough for several functions.
const LONGEST: usize = 4000;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A small generator (xorshift*), so that a seed means the same on every machine.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        random.below(2);
        random
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        high as usize % bound.max(1)
    }

    /// A few neighbouring elements of `length`; short ranges are likelier.
    fn range(&mut self, length: usize) -> Range<usize> {
        let start = self.below(length + 1);
        let most = [1, 3, 10, 100][self.below(4)];
        start..(start + self.below(most + 1)).min(length)
    }
}

fn sources() -> Vec<Vec<u8>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root =
        std::env::var_os("WHYDUNIT_FUZZ_SOURCES").map_or_else(|| here.join("../.."), PathBuf::from);
    let found = walkdir::WalkDir::new(root).sort_by_file_name().into_iter().filter_entry(|it| {
        it.file_name() != "target" // what a build leaves behind differs from machine to machine
    });
    let is_source = |path: &Path| {
        path.extension().is_some_and(|it| ["c", "h", "cpp", "cc"].iter().any(|one| it == *one))
    };
    let texts = found
        .filter_map(Result::ok)
        .filter(|it| it.file_type().is_file() && is_source(it.path()))
        .filter_map(|it| std::fs::read(it.path()).ok());
    texts.filter(|text| !text.is_empty()).collect()
}

/// Words, numbers, blanks and single other bytes.
fn tokens(text: &[u8]) -> Vec<&[u8]> {
    let class = |byte: &u8| match byte {
        b'_' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => 0,
        b' ' | b'\t' => 1,
        _ => 2,
    };
    text.chunk_by(|left, right| class(left) == class(right) && class(left) != 2).collect()
}

fn piece<'t>(sources: &'t [Vec<u8>], random: &mut Random) -> &'t [u8] {
    let text = &sources[random.below(sources.len())];
    let start = if text.len() > LONGEST { random.below(text.len() - LONGEST) } else { 0 };
    &text[start..(start + LONGEST).min(text.len())]
}

/// What breaks a parser's expectations most, wherever it appears.
const SHARP: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    "\"",
    "'",
    "/*",
    "*/",
    "\\\n",
    "#if 0\n",
    "#else\n",
    "#endif\n",
    "#define ",
    "#",
    "=",
    "->",
    "struct ",
    "typedef ",
    ";",
    ",",
    "\n}",
    "::",
    "template<",
    "\0",
    "\u{feff}",
    "R\"(",
    "??=",
    "<%",
    "case ",
    "sizeof(",
    "operator",
    "__attribute__((",
    "asm(",
    "0x",
    "...",
];

fn case(sources: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut all = tokens(piece(sources, random));
    for _ in 0..=random.below(8) {
        let range = random.range(all.len());
        let at = random.below(all.len() + 1);
        match random.below(6) {
            0 => drop(all.drain(range)),
            1 => {
                let copy = all[range].to_vec();
                all.splice(at..at, copy);
            }
            2 => {
                let other = tokens(piece(sources, random));
                let taken = other[random.range(other.len())].to_vec();
                all.splice(range, taken);
            }
            3 => all[range].reverse(),
            4 => all.insert(at, SHARP[random.below(SHARP.len())].as_bytes()),
            _ => all.truncate(at.max(1)),
        }
    }
    all.concat()
}

fn analysed(folder: &Path, library: &Library) -> Result<Analysis, String> {
    let request = Request {
        roots: vec![folder.to_path_buf()],
        library: library.clone(),
        max_file_size: 1 << 20,
        ..Request::default()
    };
    analyse(&request, &Silent).map_err(|error| error.to_string())
}

/// Analyses a batch; says what is wrong, if anything.
fn judge(folder: &Path, texts: &[Vec<u8>], library: &Library) -> Result<(), String> {
    let analysis = analysed(folder, library)?;
    for function in &analysis.tree.functions {
        let path = &analysis.tree.paths[function.file as usize];
        let number: usize = path[1..path.find('.').unwrap_or(1)].parse().unwrap_or(usize::MAX);
        let lines = texts.get(number).map_or(0, |text| text.split(|it| *it == b'\n').count());
        let last = function.accesses.iter().map(|it| it.line).max().unwrap_or(function.line);
        if last.max(function.line) as usize > lines {
            return Err(format!("{path} has {lines} lines, an access is in line {last}"));
        }
    }
    Ok(())
}

#[test]
fn damaged_sources_are_survived() {
    let sources = sources();
    assert!(sources.len() > 50, "only {} sources", sources.len());
    let library = Library::builtin();
    let (cases, first) = (setting("WHYDUNIT_FUZZ_CASES", 4000), setting("WHYDUNIT_FUZZ_SEED", 1));
    for seed in first..first + cases.div_ceil(BATCH as u64) {
        let mut random = Random::new(seed);
        let texts: Vec<_> = (0..BATCH).map(|_| case(&sources, &mut random)).collect();
        let folder = tempfile::tempdir().expect("a folder");
        for (number, text) in texts.iter().enumerate() {
            let ending = ["c", "h", "cpp"][number % 3];
            std::fs::write(folder.path().join(format!("f{number}.{ending}")), text).unwrap();
        }
        let outcome = std::panic::catch_unwind(|| judge(folder.path(), &texts, &library));
        let problem = match outcome {
            Ok(Ok(())) => continue,
            Ok(Err(problem)) => problem,
            Err(_) => "a panic".to_string(),
        };
        panic!("WHYDUNIT_FUZZ_SEED={seed}: {problem}; see {}", folder.keep().display());
    }
}
