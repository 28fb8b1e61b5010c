//! Correlations on disk, for later analyses and for people.
//!
//! One JSON object a line, so that files can be compared and merged by line: first the format and
//! its version, then for each tree a line about it and its rules, sorted. Databases of different
//! trees merge by putting them together; a tree that is in both is taken from the newer one.

use crate::Analysis;
use crate::rules::Way;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The version that this code writes, and the newest that it reads.
pub const VERSION: u32 = 1;
const FORMAT: &str = "whydunit correlations";

#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
    version: u32,
}

/// What is known of a tree beside its rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeFacts {
    /// Name of the tree.
    pub tree: String,
    /// Files read.
    pub files: u64,
    /// Lines read.
    pub lines: u64,
    /// Functions found.
    pub functions: u64,
}

/// One side of a stored rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Side {
    /// How.
    pub way: Way,
    /// What, as reports name it.
    pub variable: String,
}

/// A stored rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StoredRule {
    /// Left side.
    pub left: Vec<Side>,
    /// Right side.
    pub right: Side,
    /// Functions that obey it.
    pub support: u32,
    /// Those that obey it by their own accesses.
    pub direct: u32,
    /// Functions with the left side.
    pub left_support: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Rule {
        of: String,
        #[serde(flatten)]
        rule: StoredRule,
    },
    Tree(TreeFacts),
}

/// The correlations of any number of trees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Database {
    /// Facts and sorted rules by the name of the tree.
    pub trees: BTreeMap<String, (TreeFacts, Vec<StoredRule>)>,
}

/// Why a file is no database.
#[derive(Debug, PartialEq, Eq)]
pub enum BadDatabase {
    /// The first line does not name the format.
    NotOne,
    /// It is of a version that this program does not know.
    Newer(u32),
    /// This line cannot be read.
    Line(usize, String),
}

impl fmt::Display for BadDatabase {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOne => out.write_str("not a correlation database"),
            Self::Newer(version) => write!(
                out,
                "written by a newer whydunit: version {version}, and this one reads {VERSION}"
            ),
            Self::Line(line, problem) => write!(out, "line {line}: {problem}"),
        }
    }
}

impl std::error::Error for BadDatabase {}

impl Database {
    /// The database of one analysis.
    pub fn of(analysis: &Analysis, tree: &str) -> Self {
        let side = |(way, variable): &(Way, _)| Side {
            way: *way,
            variable: analysis.graph.shown(&analysis.tree, *variable),
        };
        let mut rules: Vec<_> = analysis
            .rules
            .iter()
            .map(|rule| StoredRule {
                left: rule.left.iter().map(side).collect(),
                right: side(&rule.right),
                support: rule.support,
                direct: rule.direct,
                left_support: rule.left_support,
            })
            .collect();
        rules.sort();
        let facts = TreeFacts {
            tree: tree.to_string(),
            files: analysis.tree.files as u64,
            lines: analysis.tree.lines,
            functions: analysis.tree.functions.len() as u64,
        };
        Self { trees: BTreeMap::from([(tree.to_string(), (facts, rules))]) }
    }

    /// Takes in the trees of `newer`, which replace those of the same name.
    pub fn merge(&mut self, newer: Self) {
        self.trees.extend(newer.trees);
    }

    /// The text of the file.
    pub fn write(&self) -> String {
        let mut lines = vec![json(&Header { format: FORMAT.into(), version: VERSION })];
        for (name, (facts, rules)) in &self.trees {
            lines.push(json(facts));
            let rule =
                |rule: &StoredRule| json(&Line::Rule { of: name.clone(), rule: rule.clone() });
            lines.extend(rules.iter().map(rule));
        }
        lines.join("\n") + "\n"
    }

    /// Reads the text of a file, in full or not at all.
    pub fn read(text: &str) -> Result<Self, BadDatabase> {
        let mut lines = text.lines().enumerate();
        let header = lines.next().and_then(|(_, it)| serde_json::from_str::<Header>(it).ok());
        match header {
            Some(header) if header.format != FORMAT => return Err(BadDatabase::NotOne),
            None => return Err(BadDatabase::NotOne),
            Some(header) if header.version > VERSION => {
                return Err(BadDatabase::Newer(header.version));
            }
            Some(_) => {}
        }
        let mut database = Self::default();
        for (index, line) in lines {
            let bad = |problem: String| BadDatabase::Line(index + 1, problem);
            match serde_json::from_str(line).map_err(|error| bad(error.to_string()))? {
                Line::Tree(facts) => {
                    database.trees.insert(facts.tree.clone(), (facts, Vec::new()));
                }
                Line::Rule { of, rule } => {
                    let tree = database.trees.get_mut(&of);
                    tree.ok_or_else(|| bad(format!("a rule of an unknown tree `{of}`")))?
                        .1
                        .push(rule);
                }
            }
        }
        Ok(database)
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain data")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(tree: &str, support: u32) -> Database {
        let side = |variable: &str| Side { way: Way::Write, variable: variable.into() };
        let facts = TreeFacts { tree: tree.into(), files: 1, lines: 2, functions: 3 };
        let left = vec![side("S::a")];
        let rule =
            StoredRule { left, right: side("S::b"), support, direct: 5, left_support: support };
        Database { trees: BTreeMap::from([(tree.into(), (facts, vec![rule]))]) }
    }

    #[test]
    fn what_is_written_is_read_and_trees_merge() {
        let mut both = example("one", 10);
        both.merge(example("two", 20));
        both.merge(example("one", 11));
        assert_eq!(both.trees["one"].1[0].support, 11);
        assert_eq!(Database::read(&both.write()), Ok(both));
    }

    #[test]
    fn damage_is_refused_with_its_line() {
        let text = example("one", 10).write();
        assert_eq!(Database::read(""), Err(BadDatabase::NotOne));
        assert_eq!(Database::read("{}"), Err(BadDatabase::NotOne));
        let newer = text.replace("\"version\":1", "\"version\":9");
        assert_eq!(Database::read(&newer), Err(BadDatabase::Newer(9)));
        let cut = &text[..text.len() - 10];
        assert!(matches!(Database::read(cut), Err(BadDatabase::Line(3, _))));
    }
}
