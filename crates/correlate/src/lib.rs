//! Mines which variables of a C or C++ source tree belong together, and where an update forgot one.
//!
//! The tree need not build. [`analyse`] runs the whole chain:
//! `sources` finds files, `prepare` and `macros` make them palatable, `parse` and `declare` learn
//! the types, `collect` and its helpers note every access (`tree` drives these passes), `members`
//! splits what is popular, `graph` links callers to callees, `objects` follows the structs that they hand to each other, `mine`, `occurrences`, `rules` and `judge` find the correlations,
//! `conformance` says who obeys one and who does not, `violations` lists the functions that break one, which `manner`, `origins` and
//! `peers` help to rank. `report` turns
//! those into findings, `baseline` holds a tree against an earlier report, `database` keeps correlations on disk for later analyses, `suppress` holds
//! what the user has accepted, `statistics` counts what the rules are like.
//!
//! This crate knows nothing of processes and recordings, and never prints.
#![forbid(unsafe_code)]

pub mod access;
mod assignment;
pub mod baseline;
mod branches;
mod call;
mod collect;
pub mod conformance;
pub mod database;
mod declare;
pub mod explain;
mod expression;
pub mod graph;
mod judge;
pub mod library;
mod locals;
mod macros;
mod manner;
pub mod members;
pub mod mine;
pub mod names;
mod objects;
pub mod occurrences;
mod origins;
mod parse;
mod peers;
mod prepare;
mod reason;
pub mod report;
pub mod rules;
pub mod sources;
pub mod statistics;
pub mod suppress;
mod syntax;
pub mod tree;
pub mod types;
mod view;
pub mod violations;

use graph::Graph;
use library::Library;
use occurrences::Occurrences;
use rules::{BySize, Options, Rule};
use sources::Exclusions;
use std::fmt;
use std::path::PathBuf;
use tree::{Progress, Tree};
use violations::Violation;

/// What to analyse and how.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Files and folders to analyse.
    pub roots: Vec<PathBuf>,
    /// Files and folders that only lend their declarations.
    pub headers: Vec<PathBuf>,
    /// Folders below the roots that are not analysed.
    pub exclusions: Exclusions,
    /// What calls do that are not in the tree.
    pub library: Library,
    /// Thresholds.
    pub options: Options,
    /// Which of them depend on the size of the tree.
    pub by_size: BySize,
    /// Size in bytes beyond which a file is passed over.
    pub max_file_size: u64,
}

/// Why there is nothing to analyse.
#[derive(Debug, PartialEq, Eq)]
pub enum Error {
    /// A root is not there or cannot be read.
    Missing(PathBuf, String),
    /// No file of the roots is C or C++.
    Empty(Vec<PathBuf>),
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(path, reason) => write!(out, "{}: {reason}", path.display()),
            Self::Empty(roots) => {
                let roots: Vec<_> = roots.iter().map(|it| it.display().to_string()).collect();
                write!(out, "no C or C++ source file in {}", roots.join(", "))
            }
        }
    }
}

impl std::error::Error for Error {}

/// A tree with its correlations and violations.
pub struct Analysis {
    /// The tree.
    pub tree: Tree,
    /// Its functions, linked.
    pub graph: Graph,
    /// Who accesses what.
    pub occurrences: Occurrences,
    /// Correlations, best first.
    pub rules: Vec<Rule>,
    /// Violations, likeliest first.
    pub violations: Vec<Violation>,
    /// The thresholds used.
    pub options: Options,
}

/// Runs the whole analysis.
pub fn analyse(request: &Request, progress: &dyn Progress) -> Result<Analysis, Error> {
    for root in request.roots.iter().chain(&request.headers) {
        std::fs::metadata(root).map_err(|it| Error::Missing(root.clone(), it.to_string()))?;
    }
    let sources = sources::find(&request.roots, &request.headers, &request.exclusions);
    if sources.files.iter().all(|file| file.declarations_only) {
        return Err(Error::Empty(request.roots.clone()));
    }
    let tree = tree::read(sources, &request.library, request.max_file_size, progress);
    let options = request.by_size.apply(request.options, tree.functions.len());
    Ok(Analysis::new(tree, options, progress))
}

impl Analysis {
    /// Mines a tree that has been read.
    pub fn new(mut tree: Tree, options: Options, progress: &dyn Progress) -> Self {
        tree.members.split(&mut tree.functions, options.max_popularity);
        let graph = Graph::new(&tree);
        let occurrences = Occurrences::new(&graph, &options);
        let rules = rules::correlations(&tree, &graph, &occurrences, &options, progress);
        let mut analysis =
            Self { tree, graph, occurrences, rules, violations: Vec::new(), options };
        analysis.violations = violations::violations(analysis.context(), &analysis.rules);
        analysis
    }

    pub(crate) fn context(&self) -> conformance::Context<'_> {
        let Self { tree, graph, occurrences, options, .. } = self;
        conformance::Context { tree, graph, occurrences, options }
    }

    /// A rule in the notation of reports.
    pub fn shown(&self, rule: &Rule) -> String {
        rules::shown(&self.tree, &self.graph, rule)
    }

    /// Name of a function, with its class.
    pub fn function_name(&self, id: graph::FunctionId) -> String {
        let function = &self.tree.functions[id as usize];
        let name = self.tree.names.text(function.name);
        match function.class {
            Some(class) => format!("{}::{name}", self.tree.names.text(class)),
            None => name.to_string(),
        }
    }

    /// Path, as shown, of the file that holds a function.
    pub fn path_of(&self, id: graph::FunctionId) -> &str {
        &self.tree.paths[self.tree.functions[id as usize].file as usize]
    }
}
