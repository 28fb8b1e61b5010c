//! Figures about the correlations of a tree as a whole: how they are distributed over variables and
//! forms, and how far their number depends on the thresholds.

use crate::Analysis;
use crate::access::Owner;
use crate::graph::{FunctionId, Variable};
use crate::rules::{Options, Rule, Way};
use crate::tree::Progress;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use std::collections::BTreeMap;

/// How correlations are distributed. Where the form is not named, rules `any(x) => any(y)` count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Distribution {
    /// Pairs of variables that a rule relates, in one direction or both.
    pub pairs: usize,
    /// Those that it relates in both directions.
    pub symmetric: usize,
    /// Variables in these pairs.
    pub variables: usize,
    /// Structs whose fields they are.
    pub structs: usize,
    /// How many variables have so many peers.
    pub peers: BTreeMap<usize, usize>,
    /// How many rules with one variable on the left have each form, such as `write => any`.
    pub forms: BTreeMap<String, usize>,
    /// How many rules have so many variables on the left.
    pub left: BTreeMap<usize, usize>,
}

/// The distribution of the correlations of a tree.
pub fn distribution(analysis: &Analysis) -> Distribution {
    let mut peers: FxHashMap<Variable, FxHashSet<Variable>> = FxHashMap::default();
    let mut directed: FxHashSet<(Variable, Variable)> = FxHashSet::default();
    let mut found = Distribution::default();
    for rule in &analysis.rules {
        *found.left.entry(rule.left.len()).or_default() += 1;
        let [(left, x)] = rule.left[..] else { continue };
        let (right, y) = rule.right;
        *found.forms.entry(format!("{left} => {right}")).or_default() += 1;
        if (left, right) == (Way::Any, Way::Any) {
            directed.insert((x, y));
            peers.entry(x).or_default().insert(y);
            peers.entry(y).or_default().insert(x);
        }
    }
    let in_order = |(x, y): &&(Variable, Variable)| x < y || !directed.contains(&(*y, *x));
    found.pairs = directed.iter().filter(in_order).count();
    found.symmetric = directed.len() - found.pairs;
    found.variables = peers.len();
    let owner = |variable: &Variable| match analysis.graph.variables[variable.0 as usize].0 {
        Owner::Struct(id) => Some(analysis.tree.types.structure(id).name),
        Owner::Opaque(name) => Some(name),
        Owner::Member(id) => {
            Some(analysis.tree.types.structure(analysis.tree.members.get(id).outer).name)
        }
        Owner::Global | Owner::Static(_) => None,
    };
    found.structs = peers.keys().filter_map(owner).collect::<FxHashSet<_>>().len();
    for known in peers.values() {
        *found.peers.entry(known.len()).or_default() += 1;
    }
    found
}

/// What is found with one threshold changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Setting {
    /// The threshold, as its option is called.
    pub option: &'static str,
    /// Its value.
    pub value: f64,
    /// Rules `any(x) => any(y)`.
    pub rules: usize,
    /// Rules `write(x) => any(y)`, which findings come from.
    pub write_rules: usize,
    /// Functions with a finding.
    pub findings: usize,
    /// Those of them that have one with all thresholds as they were given.
    pub kept: usize,
}

const CONFIDENCES: [f64; 6] = [0.5, 0.6, 0.7, 0.8, 0.9, 1.0];
const SUPPORTS: [u32; 6] = [5, 8, 10, 15, 20, 30];
const DIRECT_SUPPORTS: [u32; 6] = [3, 5, 10, 15, 20, 30];

/// Changes one threshold at a time and mines the tree anew. The analysis that comes back is that of the
/// options given.
pub fn sensitivity(analysis: Analysis, progress: &dyn Progress) -> (Analysis, Vec<Setting>) {
    let given = analysis.options;
    let known = guilty(&analysis);
    let mut settings = Vec::new();
    let mut tree = analysis.tree;
    for (option, value, options) in variations(given) {
        let varied = Analysis::new(tree, options, progress);
        let found = guilty(&varied);
        let count = |left, right| {
            varied.rules.iter().filter(|rule: &&Rule| rule.is_simple(left, right)).count()
        };
        settings.push(Setting {
            option,
            value,
            rules: count(Way::Any, Way::Any),
            write_rules: count(Way::Write, Way::Any),
            findings: found.len(),
            kept: found.intersection(&known).count(),
        });
        tree = varied.tree;
    }
    (Analysis::new(tree, given, progress), settings)
}

fn guilty(analysis: &Analysis) -> FxHashSet<FunctionId> {
    analysis.violations.iter().map(|it| it.function).collect()
}

fn variations(given: Options) -> Vec<(&'static str, f64, Options)> {
    let mut all = Vec::new();
    for min_confidence in CONFIDENCES {
        let options = Options { min_confidence, ..given };
        all.push(("--min-confidence", min_confidence, options));
    }
    for min_support in SUPPORTS {
        let options = Options { min_support, ..given };
        all.push(("--min-support", f64::from(min_support), options));
    }
    for min_direct_support in DIRECT_SUPPORTS {
        let options = Options { min_direct_support, ..given };
        all.push(("--min-direct-support", f64::from(min_direct_support), options));
    }
    all
}
