//! **Inconsistent updates**: functions that write `x` of a rule `write(x) => any(y)` and leave `y`
//! alone, although nobody around them takes care of it.
//!
//! "Around" are two levels of callees and of callers. But a helper that everybody calls excuses
//! nobody: where the functions with the same excuse access `y` themselves all the same, the excuse
//! is void for that rule. The test is the rule itself, counted among those functions alone.

use crate::access::{Access, Kind};
use crate::graph::{FunctionId, Graph, Variable};
use crate::manner::Manners;
use crate::names::Name;
use crate::occurrences::Occurrences;
use crate::peers;
use crate::rules::{Options, Rule, Way};
use crate::tree::Tree;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Ordering;

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
    /// How much the rules broken weigh together; see [`violations`].
    pub weight: f64,
    /// A constant whose write goes without the missing variable elsewhere, too, and how often.
    pub exception: Option<(Name, u32)>,
}

/// Finds and ranks the violations of `rules`.
///
/// One function may break many rules about the same variable; they are one finding. It weighs the
/// more,
/// - the more direct supporters these rules have that write in the same manner, the fewer functions
///   break them, and the more rules are broken at once;
/// - the larger their share among all rules about that variable: who sets five of six fields forgot
///   one, who sets one of six meant just that one;
/// - the fewer other variables the function leaves out: who leaves out several is of another kind;
/// - the more of its peers access the variable.
pub fn violations(
    tree: &Tree,
    graph: &Graph,
    occurrences: &Occurrences,
    rules: &[Rule],
    options: &Options,
) -> Vec<Violation> {
    let strict: FxHashSet<(Variable, Variable)> = rules
        .iter()
        .filter(|rule| rule.is_simple(Way::Write, Way::Write))
        .map(|rule| (rule.left[0].1, rule.right.1))
        .collect();
    let searched: Vec<(usize, Vec<Guilty>)> = rules
        .par_iter()
        .enumerate()
        .filter(|(_, rule)| rule.is_simple(Way::Write, Way::Any))
        .map(|(index, rule)| {
            let variables = (rule.left[0].1, rule.right.1);
            (index, Search::new(tree, graph, occurrences, variables, options).guilty())
        })
        .collect();
    let mut companions: FxHashMap<Variable, u32> = FxHashMap::default();
    let mut found: FxHashMap<(FunctionId, Variable), Violation> = FxHashMap::default();
    for (index, guilty) in searched {
        let rule = &rules[index];
        let (x, y) = (rule.left[0].1, rule.right.1);
        *companions.entry(y).or_default() += 1;
        let violators = guilty.len() as u32;
        for it in guilty {
            let violation = found.entry((it.function, y)).or_insert_with(|| Violation {
                function: it.function,
                missing: y,
                broken: Vec::new(),
                is_update: false,
                violators,
                weight: 0.0,
                exception: None,
            });
            violation.broken.push((index, it.line));
            violation.is_update |= strict.contains(&(x, y));
            violation.violators = violation.violators.min(violators);
            violation.weight += f64::from(rule.direct) * it.likeness * rule.confidence()
                / f64::from(violators.max(1));
            violation.exception = violation.exception.or(it.exception);
        }
    }
    let mut found: Vec<_> = found.into_values().collect();
    let mut forgotten: FxHashMap<FunctionId, u32> = FxHashMap::default();
    for violation in &found {
        *forgotten.entry(violation.function).or_default() += 1;
    }
    found.par_iter_mut().for_each(|it| {
        let broken = it.broken.len() as f64;
        let share = broken / f64::from(companions[&it.missing]);
        let written: Vec<_> = it.broken.iter().map(|(rule, _)| rules[*rule].left[0].1).collect();
        let agreement = peers::agreement(graph, occurrences, it.function, it.missing, &written);
        let forgotten = f64::from(forgotten[&it.function]);
        it.weight *= broken.sqrt() * share * agreement / (forgotten * forgotten);
    });
    found.sort_by(by_rank);
    found
}

/// Likeliest bugs first: possible exceptions last, forgotten updates before forgotten checks.
fn by_rank(left: &Violation, right: &Violation) -> Ordering {
    let class = |it: &Violation| (it.exception.is_some(), !it.is_update);
    let place = |it: &Violation| (it.function, it.missing);
    let by_weight = right.weight.total_cmp(&left.weight);
    class(left).cmp(&class(right)).then(by_weight).then(place(left).cmp(&place(right)))
}

/// Where an access to the missing variable may be instead.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Excuse {
    Callees,
    Callers,
}

/// A function that breaks a rule.
struct Guilty {
    function: FunctionId,
    /// Line of its write.
    line: u32,
    /// How alike its writes are to those of the supporters.
    likeness: f64,
    exception: Option<(Name, u32)>,
}

struct Search<'a> {
    tree: &'a Tree,
    graph: &'a Graph,
    occurrences: &'a Occurrences,
    x: Variable,
    y: Variable,
    /// Excuses that count for this rule.
    excuses: Vec<Excuse>,
}

impl<'a> Search<'a> {
    fn new(
        tree: &'a Tree,
        graph: &'a Graph,
        occurrences: &'a Occurrences,
        (x, y): (Variable, Variable),
        options: &Options,
    ) -> Self {
        let mut search = Self { tree, graph, occurrences, x, y, excuses: Vec::new() };
        let counts = |excuse: &Excuse| !search.is_void(*excuse, options);
        search.excuses = [Excuse::Callees, Excuse::Callers].into_iter().filter(counts).collect();
        search
    }

    /// Whether the functions with an excuse obey the rule by their own accesses all the same.
    fn is_void(&self, excuse: Excuse, options: &Options) -> bool {
        let (mut obey, mut all) = (0, 0);
        for function in self.occurrences.functions(self.x) {
            if self.own_write(function).is_some() && self.has(function, excuse) {
                all += 1;
                obey += u32::from(self.graph.accesses_directly(function, self.y));
            }
        }
        obey >= options.min_direct_support
            && f64::from(obey) >= options.min_confidence * f64::from(all)
    }

    fn has(&self, function: FunctionId, excuse: Excuse) -> bool {
        let direct = |it: &FunctionId| self.graph.accesses_directly(*it, self.y);
        match excuse {
            // An access set holds one level of callees, so that of a callee reaches the second.
            Excuse::Callees => self.graph.callees[function as usize]
                .iter()
                .any(|it| *it != function && !self.graph.entries(*it, self.y).is_empty()),
            Excuse::Callers => {
                let callers = &self.graph.callers[function as usize];
                callers.iter().any(direct)
                    || callers.iter().any(|it| self.graph.callers[*it as usize].iter().any(direct))
            }
        }
    }

    /// The functions that break the rule.
    fn guilty(&self) -> Vec<Guilty> {
        let (obey, others): (Vec<_>, Vec<_>) = self
            .occurrences
            .functions(self.x)
            .filter_map(|function| Some((function, self.own_write(function)?)))
            .partition(|(function, _)| self.graph.accesses_directly(*function, self.y));
        let guilty: Vec<_> =
            others.into_iter().filter(|(function, _)| !self.is_excused(*function)).collect();
        if guilty.is_empty() {
            return Vec::new();
        }
        let obey: Vec<_> = obey.into_iter().map(|(function, _)| self.manners(function)).collect();
        let guilty = guilty.into_iter().map(|(function, line)| Guilty {
            function,
            line,
            likeness: self.manners(function).likeness(&obey),
            exception: self.exception(function),
        });
        guilty.collect()
    }

    fn manners(&self, function: FunctionId) -> Manners {
        Manners::of(self.writes(function), &self.tree.names)
    }

    /// The line of the function's own first write to `x`.
    fn own_write(&self, function: FunctionId) -> Option<u32> {
        let entries = self.graph.entries(function, self.x).iter();
        let mut writes = entries.filter(|it| it.via == 0 && it.kind.meets(Kind::WRITE));
        writes.next().map(|write| write.line)
    }

    fn is_excused(&self, function: FunctionId) -> bool {
        let facts = &self.tree.functions[function as usize];
        facts.is_macro
            || self.graph.touches_whole(facts, self.y)
            || self.graph.touches_whole(facts, self.x)
            || self.writes_are_dead(function)
            || self.excuses.iter().any(|excuse| self.has(function, *excuse))
    }

    /// The writes of a function to `x`.
    fn writes(&self, function: FunctionId) -> impl Iterator<Item = &Access> {
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
        for other in self.occurrences.functions(self.x).filter(|other| *other != function) {
            if !self.writes(other).any(|write| write.value == Some(value)) {
                continue;
            }
            if !self.graph.entries(other, self.y).is_empty() {
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
