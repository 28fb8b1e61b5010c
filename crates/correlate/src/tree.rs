//! Reads a whole source tree: three parallel passes over the files.
//!
//! 1. *Macros*: what the preprocessor lines say, so that later passes can blank attributes.
//! 2. *Declarations*: structs, typedefs, globals, return types.
//! 3. *Accesses*: what each function reads and writes, with all types known.
//!
//! Files are parsed twice rather than kept as trees, which take many times the memory of the text.
//! The first time costs little: bodies of functions are blanked before.

use crate::access::{Function, Resolution};
use crate::collect::Walker;
use crate::declare::{Declarations, declare};
use crate::library::Library;
use crate::macros::{self, MacroBody, Macros};
use crate::members::Members;
use crate::names::Names;
use crate::parse::parse;
use crate::prepare::{
    Define, Notes, Rewrites, Suppression, Wanted, prepare, prepare_with_notes, shrink,
};
use crate::sources::{self, Language, Skipped, SourceFile, Sources};
use crate::types::{FileFacts, FileId, Types};
use crate::view::View;
use rayon::prelude::*;
use std::path::PathBuf;

/// A tree with every access of every function.
pub struct Tree {
    /// All identifiers.
    pub names: Names,
    /// All types.
    pub types: Types,
    /// All macros.
    macros: Macros,
    /// Structs that are members of others, and whose fields are told apart by that.
    pub members: Members,
    /// All functions, in file order.
    pub functions: Vec<Function>,
    /// Paths as shown, by file number.
    pub paths: Vec<String>,
    /// Where the files are, by file number.
    pub locations: Vec<PathBuf>,
    /// Suppression comments by file number.
    pub suppressions: Vec<(FileId, Suppression)>,
    /// How fields were attributed.
    pub resolution: Resolution,
    /// What was passed over.
    pub skipped: Vec<Skipped>,
    /// Lines read, those of `--headers` not counted.
    pub lines: u64,
    /// Files read.
    pub files: usize,
}

impl Tree {
    /// Reads one file again as if it had this text, and returns its functions: what a change would
    /// make of them. Declarations and macros stay those that the tree was read with.
    pub fn reread(&self, file: FileId, text: &[u8], library: &Library) -> Vec<Function> {
        let language = sources::language(&self.locations[file as usize], text);
        let mut text = prepare(text, language, &self.macros.rewrites);
        shrink(&mut text, Wanted::Functions);
        let collector =
            Collector { names: &self.names, types: &self.types, macros: &self.macros, library };
        collector.functions(file, Some((text, language))).0
    }

    /// Puts other functions in the place of those of a file; returns the former ones.
    pub fn replace(&mut self, file: FileId, functions: Vec<Function>) -> Vec<Function> {
        let start = self.functions.partition_point(|it| it.file < file);
        let end = self.functions.partition_point(|it| it.file <= file);
        self.functions.splice(start..end, functions).collect()
    }
}

/// Where the work is, for a progress bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// First pass.
    Macros,
    /// Second pass.
    Declarations,
    /// Third pass.
    Accesses,
    /// Finding correlations and violations.
    Mining,
}

/// Told whenever work advances; called from many threads.
pub trait Progress: Sync {
    /// A stage begins, of so many steps.
    fn begin(&self, stage: Stage, steps: usize);
    /// One step is done.
    fn step(&self);
}

/// Progress that nobody watches.
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _: Stage, _: usize) {}
    fn step(&self) {}
}

#[derive(Default)]
struct FirstLook {
    notes: Notes,
    /// Whether anything is left of the file once comments and directives are gone.
    has_code: bool,
    lines: u64,
}

/// Reads the tree.
pub fn read(sources: Sources, library: &Library, most_bytes: u64, progress: &dyn Progress) -> Tree {
    let names = Names::default();
    let mut skipped = sources.skipped;
    let files = sources.files;
    let looks = first_pass(&files, library, most_bytes, progress, &mut skipped);
    let has_code: Vec<_> = looks.iter().map(|look| look.has_code).collect();
    let (facts, defines, suppressions, lines) = split_looks(&files, looks);
    let macros = macros::learn(&defines, &library.rewrites, &names);
    drop(defines);
    let reader =
        Reader { files: &files, has_code: &has_code, rewrites: &macros.rewrites, most_bytes };

    progress.begin(Stage::Declarations, files.len());
    let declarations = reader.declarations(&names, progress);
    let (declarations, slow): (Vec<_>, Vec<_>) = declarations.into_iter().unzip();
    skipped.extend(slow.into_iter().flatten());
    let paths: Vec<String> = facts.iter().map(|fact| fact.path.clone()).collect();
    let types = Types::new(facts, declarations);

    progress.begin(Stage::Accesses, files.len());
    let collector = Collector { names: &names, types: &types, macros: &macros, library };
    let (functions, resolution) = reader.accesses(&collector, progress);
    skipped.sort_by(|left, right| left.path.cmp(&right.path));
    let locations: Vec<_> = files.into_iter().map(|file| file.path).collect();
    Tree {
        names,
        types,
        macros,
        members: Members::default(),
        functions,
        paths,
        files: locations.len(),
        locations,
        suppressions,
        resolution,
        skipped,
        lines,
    }
}

fn first_pass(
    files: &[SourceFile],
    library: &Library,
    most_bytes: u64,
    progress: &dyn Progress,
    skipped: &mut Vec<Skipped>,
) -> Vec<FirstLook> {
    progress.begin(Stage::Macros, files.len());
    let looks: Vec<Result<FirstLook, Skipped>> = files
        .par_iter()
        .map(|file| {
            let look = first_look(file, library, most_bytes);
            progress.step();
            look.map_err(|reason| Skipped { path: file.shown.clone(), reason })
        })
        .collect();
    let unwrap = |look: Result<FirstLook, Skipped>| {
        look.unwrap_or_else(|reason| {
            skipped.push(reason);
            FirstLook::default()
        })
    };
    looks.into_iter().map(unwrap).collect()
}

fn first_look(file: &SourceFile, library: &Library, most: u64) -> Result<FirstLook, String> {
    let text = sources::read(&file.path, most)?;
    let language = sources::language(&file.path, &text);
    let (code, mut notes) = prepare_with_notes(&text, language, &library.rewrites);
    notes.defines.retain(macros::is_interesting);
    let lines = text.iter().filter(|byte| **byte == b'\n').count() as u64;
    Ok(FirstLook {
        notes,
        has_code: !code.trim_ascii().is_empty(),
        lines: if file.declarations_only { 0 } else { lines },
    })
}

type Split = (Vec<FileFacts>, Vec<Vec<Define>>, Vec<(FileId, Suppression)>, u64);

fn split_looks(files: &[SourceFile], looks: Vec<FirstLook>) -> Split {
    let (mut facts, mut defines, mut suppressions, mut lines) = (vec![], vec![], vec![], 0);
    for (index, (file, look)) in files.iter().zip(looks).enumerate() {
        facts.push(FileFacts {
            path: file.shown.clone(),
            is_header: sources::is_header(&file.path),
            includes: look.notes.includes,
        });
        defines.push(look.notes.defines);
        let id = index as FileId;
        suppressions.extend(look.notes.suppressions.into_iter().map(|it| (id, it)));
        lines += look.lines;
    }
    (facts, defines, suppressions, lines)
}

struct Reader<'a> {
    files: &'a [SourceFile],
    has_code: &'a [bool],
    rewrites: &'a Rewrites,
    most_bytes: u64,
}

impl Reader<'_> {
    /// What the parser gets to see of a file. A file that the first pass could not read was
    /// reported by it.
    fn text(&self, index: usize, wanted: Wanted) -> Option<(Vec<u8>, Language)> {
        if !self.has_code[index] {
            return None;
        }
        let path = &self.files[index].path;
        let text = sources::read(path, self.most_bytes).ok()?;
        let language = sources::language(path, &text);
        let mut text = prepare(&text, language, self.rewrites);
        shrink(&mut text, wanted);
        Some((text, language))
    }

    fn declarations(
        &self,
        names: &Names,
        progress: &dyn Progress,
    ) -> Vec<(Declarations, Option<Skipped>)> {
        let declarations = |(index, file): (usize, &SourceFile)| {
            let Some((text, language)) = self.text(index, Wanted::Declarations) else {
                return Default::default();
            };
            match parse(&text, language) {
                Some(tree) => (declare(tree.root_node(), &text, names), None),
                None => {
                    let reason = "parsing took too long: is it C at all?".to_string();
                    let skipped = Skipped { path: file.shown.clone(), reason };
                    (Declarations::default(), Some(skipped))
                }
            }
        };
        let counted = |entry| {
            let found = declarations(entry);
            progress.step();
            found
        };
        self.files.par_iter().enumerate().map(counted).collect()
    }

    fn accesses(
        &self,
        collector: &Collector,
        progress: &dyn Progress,
    ) -> (Vec<Function>, Resolution) {
        let collect = |(index, file): (usize, &SourceFile)| {
            progress.step();
            if file.declarations_only {
                return Default::default();
            }
            collector.functions(index as FileId, self.text(index, Wanted::Functions))
        };
        let parts: Vec<_> = self.files.par_iter().enumerate().map(collect).collect();
        let mut total = Resolution::default();
        let mut all = Vec::with_capacity(parts.iter().map(|(part, _)| part.len()).sum());
        for (functions, resolution) in parts {
            total.add(resolution);
            all.extend(functions);
        }
        (all, total)
    }
}

/// The third pass over any file, given all that the others have learned.
struct Collector<'a> {
    names: &'a Names,
    types: &'a Types,
    macros: &'a Macros,
    library: &'a Library,
}

impl Collector<'_> {
    /// The macro bodies and functions of a file.
    fn functions(
        &self,
        file: FileId,
        text: Option<(Vec<u8>, Language)>,
    ) -> (Vec<Function>, Resolution) {
        let view = View::new(self.types, self.macros, file);
        let mut functions = Vec::new();
        let mut resolution = Resolution::default();
        let mut walk = |text: &[u8], language, body: Option<&MacroBody>| {
            let Some(tree) = parse(text, language) else { return };
            let mut walker = Walker::new(text, self.names, &view, self.library, file);
            match body {
                Some(body) => walker.macro_body(body, tree.root_node()),
                None => walker.scope(tree.root_node()),
            }
            resolution.add(walker.resolution);
            functions.append(&mut walker.functions);
        };
        for body in self.macros.bodies_of(file as usize) {
            walk(body.source.as_bytes(), Language::C, Some(body));
        }
        if let Some((text, language)) = text {
            walk(&text, language, None);
        }
        (functions, resolution)
    }
}
