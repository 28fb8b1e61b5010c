//! From closed sets to **correlations**: rules `A1(x) => A2(y)` and `A1(x) & A1(y) & … => A2(z)`, with A
//! in read, write, any, counted over the functions of the tree.
//!
//! A rule needs direct supporters, functions that make both accesses themselves. So candidates are
//! mined from direct accesses alone, with the direct support as the threshold: no rule is lost, and
//! the much larger access sets are only consulted to count.

use crate::access::Kind;
use crate::conformance::Context;
use crate::graph::{Entry, Graph, Variable};
use crate::judge::Judge;
use crate::mine::{ClosedSet, Item, Transactions, closed_from};
use crate::occurrences::Occurrences;
use crate::tree::{Progress, Stage, Tree};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::fmt;

/// Thresholds. The defaults are those of the reference; see [`BySize`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// Functions that must obey a rule.
    pub min_support: u32,
    /// Functions that must obey it by their own accesses.
    pub min_direct_support: u32,
    /// Share of the functions with the left side that must have the right side.
    pub min_confidence: f64,
    /// Statements that may lie between two accesses that are together.
    pub max_distance: u32,
    /// Functions that may access a variable before it counts as popular and is left out.
    pub max_popularity: u32,
    /// Variables that the left side of a rule may have, at most [`MOST_LEFT`].
    #[serde(default = "default_max_left")]
    pub max_left: u32,
}

/// Most variables on the left side of a rule, whatever the options say: the number of sets to look at
/// grows with every one.
pub const MOST_LEFT: usize = 5;

fn default_max_left() -> u32 {
    Options::default().max_left
}

impl Default for Options {
    fn default() -> Self {
        Self {
            min_support: 10,
            min_direct_support: 5,
            min_confidence: 0.8,
            max_distance: 10,
            max_popularity: 400,
            max_left: 2,
        }
    }
}

/// Which thresholds are lowered in a small tree: what belongs together in one occurs seldom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BySize {
    /// [`Options::min_support`].
    pub support: bool,
    /// [`Options::min_direct_support`].
    pub direct_support: bool,
    /// [`Options::min_confidence`].
    pub confidence: bool,
}

impl BySize {
    /// Trees with fewer functions than this are small.
    pub const SMALL: usize = 10_000;

    /// All.
    pub const ALL: Self = Self { support: true, direct_support: true, confidence: true };

    /// The thresholds for a tree of so many functions.
    #[must_use]
    pub fn apply(self, options: Options, functions: usize) -> Options {
        let small = functions < Self::SMALL;
        let Options { min_support, min_direct_support, min_confidence, .. } = options;
        let lower = |given, by_size, low| if small && by_size { low } else { given };
        Options {
            min_support: lower(min_support, self.support, 4),
            min_direct_support: lower(min_direct_support, self.direct_support, 3),
            min_confidence: if small && self.confidence { 0.65 } else { min_confidence },
            ..options
        }
    }
}

/// The A of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// A write.
    Write,
    /// A read.
    Read,
    /// Either, or its address taken.
    Any,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Write, Self::Read, Self::Any];

    /// The accesses that count.
    pub fn mask(self) -> Kind {
        match self {
            Self::Write => Kind::WRITE,
            Self::Read => Kind::READ,
            Self::Any => Kind::WRITE | Kind::READ | Kind::ADDRESS,
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Write => "write",
            Self::Read => "read",
            Self::Any => "any",
        })
    }
}

/// A correlation.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// One access or more, all of the same way.
    pub left: Vec<(Way, Variable)>,
    /// The access that goes with them.
    pub right: (Way, Variable),
    /// Functions that obey it.
    pub support: u32,
    /// Those that obey it by their own accesses.
    pub direct: u32,
    /// Functions with the left side.
    pub left_support: u32,
    /// Direct supporters whose two accesses name the same object.
    pub same_object: u32,
    /// Whether the counts are those of a baseline: the tree itself no longer yields the rule.
    pub is_stored: bool,
}

impl Rule {
    /// A rule that nobody has counted yet.
    pub fn uncounted(left: Vec<(Way, Variable)>, right: (Way, Variable)) -> Self {
        let (support, direct, left_support, same_object) = (0, 0, 0, 0);
        Self { left, right, support, direct, left_support, same_object, is_stored: false }
    }

    /// Share of the functions with the left side that obey.
    pub fn confidence(&self) -> f64 {
        f64::from(self.support) / f64::from(self.left_support.max(1))
    }

    /// Whether it is common and sure enough.
    pub fn meets(&self, options: &Options) -> bool {
        self.support >= options.min_support
            && self.direct >= options.min_direct_support
            && self.confidence() >= options.min_confidence
    }

    /// Whether the left side is one variable, accessed in this way.
    pub fn is_simple(&self, left: Way, right: Way) -> bool {
        matches!(self.left[..], [(way, _)] if way == left) && self.right.0 == right
    }

    /// Order of reports: the trustworthy first. With much support the confidence says more, with
    /// little the support itself.
    fn rank_key(&self) -> (bool, Reverse<u64>, Reverse<u32>) {
        const MUCH: u32 = 20;
        let confidence = (self.confidence() * 1e6) as u64;
        if self.support >= MUCH {
            (false, Reverse(confidence), Reverse(self.support))
        } else {
            (true, Reverse(u64::from(self.support)), Reverse(confidence as u32))
        }
    }
}

/// Finds the correlations of a linked tree, best first.
pub fn correlations(
    tree: &Tree,
    graph: &Graph,
    occurrences: &Occurrences,
    options: &Options,
    progress: &dyn Progress,
) -> Vec<Rule> {
    let items: Vec<Variable> = (0..graph.variables.len() as u32)
        .map(Variable)
        .filter(|variable| !occurrences.of(*variable).is_empty())
        .collect();
    let rows = direct_rows(graph, &items);
    let transactions = Transactions::new(&rows, items.len());
    let context = Context { tree, graph, occurrences, options };
    let judge = Judge { context };
    let mining = Mining { items, transactions, judge, progress };
    let rounds = options.max_left.clamp(1, MOST_LEFT as u32) as usize;
    progress.begin(Stage::Mining, rounds * mining.items.len());
    let mut rules = confirmed(context, mining.for_each(Mining::pairs));
    for length in 2..=options.max_left.min(MOST_LEFT as u32) as usize {
        let explained = Explained::new(&rules);
        let several = mining.for_each(|mining, first| mining.several(first, length, &explained));
        rules.extend(confirmed(context, several));
    }
    rules.par_sort_unstable_by(|left, right| {
        let by_rank = left.rank_key().cmp(&right.rank_key());
        by_rank.then_with(|| (&left.left, left.right).cmp(&(&right.left, right.right)))
    });
    // Two variables that always go together name the same closed set twice.
    rules.dedup();
    rules
}

/// The candidates that meet the thresholds when they are counted in full.
fn confirmed(context: Context, mut rules: Vec<Rule>) -> Vec<Rule> {
    rules.par_iter_mut().filter(|it| it.left[0].0 == Way::Write).for_each(|it| context.recount(it));
    rules.retain(|rule| rule.meets(context.options));
    rules
}

/// The directly accessed items of each function that is not a copy.
fn direct_rows(graph: &Graph, items: &[Variable]) -> Vec<Vec<Item>> {
    let row = |(_, set): (usize, &Vec<Entry>)| {
        let direct = set.iter().filter(|entry| entry.via == 0);
        let mut row: Vec<Item> = direct
            .filter_map(|entry| items.binary_search(&entry.variable).ok())
            .map(|item| item as Item)
            .collect();
        row.dedup();
        row
    };
    let sets = graph.sets.par_iter().enumerate();
    sets.filter(|(id, _)| !graph.is_copy[*id]).map(row).collect()
}

/// Which left sides are known to imply which right sides.
struct Explained(FxHashMap<Variable, Vec<Vec<Variable>>>);

impl Explained {
    fn new(rules: &[Rule]) -> Self {
        let mut explained: FxHashMap<_, Vec<Vec<_>>> = FxHashMap::default();
        for rule in rules {
            let left = rule.left.iter().map(|(_, variable)| *variable).collect();
            explained.entry(rule.right.1).or_default().push(left);
        }
        for lists in explained.values_mut() {
            lists.sort_unstable();
            lists.dedup();
        }
        Self(explained)
    }

    /// Whether a part of `left` implies `right` already.
    fn covers(&self, left: &[Variable], right: Variable) -> bool {
        let known = self.0.get(&right).map(Vec::as_slice).unwrap_or_default();
        known.iter().any(|part| part.iter().all(|it| left.contains(it)))
    }
}

struct Mining<'a> {
    items: Vec<Variable>,
    transactions: Transactions<'a>,
    judge: Judge<'a>,
    progress: &'a dyn Progress,
}

impl Mining<'_> {
    fn for_each(&self, rules_from: impl Fn(&Self, Item) -> Vec<Rule> + Sync) -> Vec<Rule> {
        let counted = |first| {
            let rules = rules_from(self, first);
            self.progress.step();
            rules
        };
        (0..self.items.len() as Item).into_par_iter().flat_map_iter(counted).collect()
    }

    fn closed_from(&self, first: Item, longest: usize, visit: &mut dyn FnMut(&ClosedSet)) {
        let support = self.judge.context.options.min_direct_support.max(1);
        closed_from(&self.transactions, first, support, longest, &mut |set, _| visit(set));
    }

    fn variable(&self, item: Item) -> Variable {
        self.items[item as usize]
    }

    /// The rules about one variable on the left whose closed set has a generator from `first`.
    fn pairs(&self, first: Item) -> Vec<Rule> {
        let mut rules = Vec::new();
        let mut pair = |left, right| {
            let (left, right) = (self.variable(left), self.variable(right));
            self.judge.pair(left, right, &mut rules);
            // A pair inside the closure of its greater item alone is met from that side, too.
            self.judge.pair(right, left, &mut rules);
        };
        self.closed_from(first, 2, &mut |set| match set.generator[..] {
            [only] => set.items.iter().filter(|it| **it != only).for_each(|it| pair(only, *it)),
            [left, right] => pair(left, right),
            _ => {}
        });
        rules
    }

    /// The rules about `length` variables on the left, where no fewer of them say as much.
    fn several(&self, first: Item, length: usize, explained: &Explained) -> Vec<Rule> {
        let mut rules = Vec::new();
        self.closed_from(first, length, &mut |set| {
            if set.generator.len() != length {
                return;
            }
            let left: Vec<_> = set.generator.iter().map(|it| self.variable(*it)).collect();
            let others = set.items.iter().filter(|it| !set.generator.contains(it));
            let unexplained: Vec<_> = others
                .map(|it| self.variable(*it))
                .filter(|right| !explained.covers(&left, *right))
                .collect();
            if unexplained.is_empty() {
                return;
            }
            let all = self.judge.all_of(&left);
            for right in unexplained {
                self.judge.several(&left, &all, right, &mut rules);
            }
        });
        rules
    }
}

/// A rule in the notation of reports: `write(S::a) => any(S::b)`.
pub fn shown(tree: &Tree, graph: &Graph, rule: &Rule) -> String {
    let side =
        |(way, variable): &(Way, Variable)| format!("{way}({})", graph.shown(tree, *variable));
    let left: Vec<_> = rule.left.iter().map(side).collect();
    format!("{} => {}", left.join(" & "), side(&rule.right))
}
