//! From closed sets to **correlations**: rules `A1(x) => A2(y)` and `A1(x) & A1(y) => A2(z)`, with A
//! in read, write, any, counted over the functions of the tree.
//!
//! A rule needs direct supporters, functions that make both accesses themselves. So candidates are
//! mined from direct accesses alone, with the direct support as the threshold: no rule is lost, and
//! the much larger access sets are only consulted to count.

use crate::access::Kind;
use crate::graph::{Entry, FunctionId, Graph, Variable};
use crate::mine::{Item, Transactions, closed_from};
use crate::tree::{Progress, Stage, Tree};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::fmt;

/// Thresholds. The defaults are those of the reference.
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
}

impl Default for Options {
    fn default() -> Self {
        Self {
            min_support: 10,
            min_direct_support: 5,
            min_confidence: 0.8,
            max_distance: 10,
            max_popularity: 400,
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
    /// One or two accesses.
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
}

impl Rule {
    /// Share of the functions with the left side that obey.
    pub fn confidence(&self) -> f64 {
        f64::from(self.support) / f64::from(self.left_support.max(1))
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

/// Which functions access each variable, copies and popular variables left out.
pub struct Occurrences {
    functions: Vec<Vec<FunctionId>>,
}

impl Occurrences {
    /// Indexes the access sets.
    pub fn new(graph: &Graph, options: &Options) -> Self {
        let mut functions = vec![Vec::new(); graph.variables.len()];
        for (id, set) in graph.sets.iter().enumerate().filter(|(id, _)| !graph.is_copy[*id]) {
            let mut last = None;
            for entry in set {
                if last.replace(entry.variable) != Some(entry.variable) {
                    functions[entry.variable.0 as usize].push(id as FunctionId);
                }
            }
        }
        for list in &mut functions {
            let usable = options.min_support as usize..=options.max_popularity as usize;
            if !usable.contains(&list.len()) {
                *list = Vec::new();
            }
        }
        Self { functions }
    }

    /// The functions that access a variable; none if it is too rare or too popular.
    pub fn of(&self, variable: Variable) -> &[FunctionId] {
        &self.functions[variable.0 as usize]
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
    let judge = Judge { tree, graph, occurrences, options };
    progress.begin(Stage::Mining, items.len());
    let mut rules: Vec<Rule> = (0..items.len() as Item)
        .into_par_iter()
        .flat_map_iter(|first| {
            let rules = rules_from(first, &items, &transactions, &judge);
            progress.step();
            rules
        })
        .collect();
    rules.sort_by(|left, right| {
        let key = |rule: &Rule| (rule.rank_key(), rule.left.clone(), rule.right);
        key(left).cmp(&key(right))
    });
    // Two variables that always go together name the same closed set twice.
    rules.dedup();
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

/// The rules of the pairs and triples whose least item is `first`.
fn rules_from(
    first: Item,
    items: &[Variable],
    transactions: &Transactions,
    judge: &Judge,
) -> Vec<Rule> {
    let mut pairs = Vec::new();
    let mut triples = Vec::new();
    let support = judge.options.min_direct_support.max(1);
    closed_from(transactions, first, support, 2, &mut |set, _| match set.generator[..] {
        [only] => pairs.extend(set.items.iter().filter(|it| **it != only).map(|it| (only, *it))),
        [left, right] => {
            pairs.push((left, right));
            let others = set.items.iter().filter(|it| !set.generator.contains(it));
            triples.extend(others.map(|third| (left, right, *third)));
        }
        _ => {}
    });
    let variable = |item: Item| items[item as usize];
    let mut rules = Vec::new();
    for (left, right) in pairs {
        judge.pair(variable(left), variable(right), &mut rules);
        // A pair inside the closure of its greater item alone is met from that side, too.
        judge.pair(variable(right), variable(left), &mut rules);
    }
    for (left, right, third) in triples {
        judge.triple([variable(left), variable(right)], variable(third), &mut rules);
    }
    rules
}

/// How often the nine forms of a rule hold.
#[derive(Default)]
struct Tally {
    left: [u32; 3],
    support: [[u32; 3]; 3],
    direct: [[u32; 3]; 3],
    same_object: [[u32; 3]; 3],
}

struct Judge<'a> {
    tree: &'a Tree,
    graph: &'a Graph,
    occurrences: &'a Occurrences,
    options: &'a Options,
}

impl Judge<'_> {
    fn pair(&self, x: Variable, y: Variable, rules: &mut Vec<Rule>) {
        let mut tally = Tally::default();
        for function in self.occurrences.of(x) {
            let right = self.graph.entries(*function, y);
            self.count(*function, &[self.graph.entries(*function, x)], right, y, &mut tally);
        }
        self.keep(&[x], y, &tally, rules);
    }

    fn triple(&self, left: [Variable; 2], right: Variable, rules: &mut Vec<Rule>) {
        if left.iter().any(|it| self.explains(*it, right)) {
            return;
        }
        let mut tally = Tally::default();
        for function in self.occurrences.of(left[0]) {
            let sides = left.map(|it| self.graph.entries(*function, it));
            if !sides[1].is_empty() {
                let right_entries = self.graph.entries(*function, right);
                self.count(*function, &sides, right_entries, right, &mut tally);
            }
        }
        self.keep(&left, right, &tally, rules);
    }

    /// Whether one variable alone already implies the right side, in any form.
    fn explains(&self, left: Variable, right: Variable) -> bool {
        let mut rules = Vec::new();
        self.pair(left, right, &mut rules);
        !rules.is_empty()
    }

    fn keep(&self, left: &[Variable], right: Variable, tally: &Tally, rules: &mut Vec<Rule>) {
        for (i, left_way) in Way::ALL.into_iter().enumerate() {
            for (j, right_way) in Way::ALL.into_iter().enumerate() {
                let rule = Rule {
                    left: left.iter().map(|it| (left_way, *it)).collect(),
                    right: (right_way, right),
                    support: tally.support[i][j],
                    direct: tally.direct[i][j],
                    left_support: tally.left[i],
                    same_object: tally.same_object[i][j],
                };
                if rule.support >= self.options.min_support
                    && rule.direct >= self.options.min_direct_support
                    && rule.confidence() >= self.options.min_confidence
                {
                    rules.push(rule);
                }
            }
        }
    }

    /// Counts one function for or against a rule.
    fn count(
        &self,
        function: FunctionId,
        left: &[&[Entry]],
        right: &[Entry],
        missing: Variable,
        tally: &mut Tally,
    ) {
        let outcome = together(left, right, self.options.max_distance);
        // A function that sets the whole struct has accessed every field of it, yet says nothing
        // about which fields belong together: it counts neither for nor against.
        let is_neutral = outcome.is_copied
            || right.is_empty()
                && self.graph.touches_whole(&self.tree.functions[function as usize], missing);
        for (i, way) in Way::ALL.into_iter().enumerate() {
            let has = |side: &&[Entry]| side.iter().any(|entry| entry.kind.meets(way.mask()));
            if !left.iter().all(has) {
                continue;
            }
            let any = outcome.met[i].iter().any(|met| *met);
            if is_neutral && !any {
                continue;
            }
            tally.left[i] += 1;
            for j in 0..3 {
                tally.support[i][j] += u32::from(outcome.met[i][j]);
                tally.direct[i][j] += u32::from(outcome.direct[i][j]);
                tally.same_object[i][j] += u32::from(outcome.same_object[i][j]);
            }
        }
    }
}

/// In which of the nine forms one function obeys.
#[derive(Default)]
pub(crate) struct Outcome {
    pub met: [[bool; 3]; 3],
    pub direct: [[bool; 3]; 3],
    pub same_object: [[bool; 3]; 3],
    /// Both sides come out of the same callee: a copy of what the callee already counts for.
    pub is_copied: bool,
}

/// Which accesses of the right side are together with the left side.
pub(crate) fn together(left: &[&[Entry]], right: &[Entry], max_distance: u32) -> Outcome {
    let mut outcome = Outcome::default();
    let near = |a: &Entry, b: &Entry| a.statement.abs_diff(b.statement) <= max_distance;
    let [first, others @ ..] = left else { return outcome };
    for a in *first {
        if !others.iter().all(|side| side.iter().any(|b| near(a, b))) {
            continue;
        }
        for b in right.iter().filter(|b| near(a, b)) {
            if a.via != 0 && a.via == b.via {
                outcome.is_copied = true;
                continue;
            }
            note(&mut outcome, a, b);
        }
    }
    outcome
}

fn note(outcome: &mut Outcome, a: &Entry, b: &Entry) {
    let direct = a.via == 0 && b.via == 0;
    let same_object = direct && a.base == b.base;
    for (i, _) in Way::ALL.iter().enumerate().filter(|(_, left)| a.kind.meets(left.mask())) {
        for (j, right) in Way::ALL.into_iter().enumerate() {
            if b.kind.meets(right.mask()) {
                outcome.met[i][j] = true;
                outcome.direct[i][j] |= direct;
                outcome.same_object[i][j] |= same_object;
            }
        }
    }
}

/// A rule in the notation of reports: `write(S::a) => any(S::b)`.
pub fn shown(tree: &Tree, graph: &Graph, rule: &Rule) -> String {
    let side =
        |(way, variable): &(Way, Variable)| format!("{way}({})", graph.shown(tree, *variable));
    let left: Vec<_> = rule.left.iter().map(side).collect();
    format!("{} => {}", left.join(" & "), side(&rule.right))
}
