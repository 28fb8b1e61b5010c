//! **Inconsistent updates**: functions that write `x` of a rule `write(x) => any(y)` and leave `y`
//! alone, although nobody around them takes care of it.

use crate::access::Kind;
use crate::graph::{FunctionId, Graph, Variable};
use crate::names::Name;
use crate::rules::{Occurrences, Rule, Way};
use crate::tree::Tree;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// A function that forgot a variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// The function.
    pub function: FunctionId,
    /// What it did not access.
    pub missing: Variable,
    /// What it wrote instead: the rules broken, strongest first, each with the line of the write.
    pub broken: Vec<(usize, u32)>,
    /// Whether a `write => write` rule is among them.
    pub is_update: bool,
    /// Fewest violators of any rule broken.
    pub violators: u32,
    /// A constant whose write goes without the missing variable elsewhere, too, and how often.
    pub exception: Option<(Name, u32)>,
}

/// Finds and ranks the violations of `rules`.
pub fn violations(
    tree: &Tree,
    graph: &Graph,
    occurrences: &Occurrences,
    rules: &[Rule],
) -> Vec<Violation> {
    let strict: FxHashMap<(Variable, Variable), ()> = rules
        .iter()
        .filter(|rule| rule.is_simple(Way::Write, Way::Write))
        .map(|rule| ((rule.left[0].1, rule.right.1), ()))
        .collect();
    let mut found: FxHashMap<(FunctionId, Variable), Violation> = FxHashMap::default();
    for (index, rule) in rules.iter().enumerate() {
        if !rule.is_simple(Way::Write, Way::Any) {
            continue;
        }
        let (x, y) = (rule.left[0].1, rule.right.1);
        let search = Search { tree, graph, occurrences, x, y };
        let guilty = search.violators();
        let violators = guilty.len() as u32;
        for (function, line) in guilty {
            let violation = found.entry((function, y)).or_insert_with(|| Violation {
                function,
                missing: y,
                broken: Vec::new(),
                is_update: false,
                violators,
                exception: None,
            });
            violation.broken.push((index, line));
            violation.is_update |= strict.contains_key(&(x, y));
            violation.violators = violation.violators.min(violators);
            if violation.exception.is_none() {
                violation.exception = search.exception(function);
            }
        }
    }
    let mut found: Vec<_> = found.into_values().collect();
    found.sort_by_key(|it| rank_key(it, rules));
    found
}

/// Order of reports: no known exception, `write => write` first, few violators, many rules broken,
/// then the rank of the rule.
fn rank_key(it: &Violation, rules: &[Rule]) -> impl Ord + use<> {
    let best = it.broken.first().map_or(usize::MAX, |(rule, _)| *rule);
    let support: u32 = it.broken.iter().map(|(rule, _)| rules[*rule].support).sum();
    (
        it.exception.is_some(),
        !it.is_update,
        it.violators,
        Reverse(support),
        best,
        it.function,
        it.missing,
    )
}

struct Search<'a> {
    tree: &'a Tree,
    graph: &'a Graph,
    occurrences: &'a Occurrences,
    x: Variable,
    y: Variable,
}

impl Search<'_> {
    /// The functions that break the rule, each with the line of its write.
    fn violators(&self) -> Vec<(FunctionId, u32)> {
        let candidates = self.occurrences.of(self.x).iter();
        candidates
            .filter_map(|function| Some((*function, self.forgets(*function)?)))
            .filter(|(function, _)| !self.is_excused(*function))
            .collect()
    }

    /// The line of a write to `x` in a function that never touches `y`.
    fn forgets(&self, function: FunctionId) -> Option<u32> {
        let is_direct_write = |it: &&crate::graph::Entry| it.via == 0 && it.kind.meets(Kind::WRITE);
        let write = self.graph.entries(function, self.x).iter().find(is_direct_write)?;
        self.graph.entries(function, self.y).is_empty().then_some(write.line)
    }

    fn is_excused(&self, function: FunctionId) -> bool {
        let facts = &self.tree.functions[function as usize];
        if facts.is_macro
            || self.graph.touches_whole(facts, self.y)
            || self.graph.touches_whole(facts, self.x)
            || self.writes_are_dead(function)
        {
            return true;
        }
        // The access sets already hold one level of callees: those of a callee reach the second.
        let touches = |it: &FunctionId| !self.graph.entries(*it, self.y).is_empty();
        let direct = |it: &FunctionId| self.graph.accesses_directly(*it, self.y);
        let callers = &self.graph.callers[function as usize];
        self.graph.callees[function as usize].iter().any(touches)
            || callers.iter().any(direct)
            || callers.iter().any(|it| self.graph.callers[*it as usize].iter().any(direct))
    }

    /// The writes of a function to `x`.
    fn writes(&self, function: FunctionId) -> impl Iterator<Item = &crate::access::Access> {
        let (owner, field) = self.graph.variables[self.x.0 as usize];
        let accesses = self.tree.functions[function as usize].accesses.iter();
        accesses
            .filter(move |it| (it.owner, it.field) == (owner, field) && it.kind.meets(Kind::WRITE))
    }

    fn writes_are_dead(&self, function: FunctionId) -> bool {
        self.writes(function).all(|write| write.is_dead)
    }

    /// The constant that the function writes to `x`, if others write it without `y`, too, and
    /// nobody writes it with `y`: then the value itself may be the exception.
    fn exception(&self, function: FunctionId) -> Option<(Name, u32)> {
        let value = self.only_value(function)?;
        let mut without = 0;
        for other in self.occurrences.of(self.x).iter().filter(|other| **other != function) {
            if !self.writes(*other).any(|write| write.value == Some(value)) {
                continue;
            }
            if !self.graph.entries(*other, self.y).is_empty() {
                return None;
            }
            without += 1;
        }
        (without > 0).then_some((value, without))
    }

    fn only_value(&self, function: FunctionId) -> Option<Name> {
        let mut values = self.writes(function).map(|write| write.value);
        let first = values.next()??;
        values.all(|value| value == Some(first)).then_some(first)
    }
}
