//! **Inconsistent updates**: functions that write `x` of a rule `write(x) => any(y)` and leave `y`
//! alone, although nobody around them takes care of it.

use crate::access::Access;
use crate::baseline::Lost;
use crate::graph::{FunctionId, Variable};
use crate::manner::Manners;
use crate::names::Name;
use crate::peers;
use crate::rules::{Rule, Way};
use crate::standing::{Census, Context, Site, Standing, writes};
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
    /// That it is an update which the baseline had.
    pub lost: Option<Lost>,
}

impl Violation {
    /// A violation that no rule speaks for yet.
    pub(crate) fn new(function: FunctionId, missing: Variable) -> Self {
        Self {
            function,
            missing,
            broken: Vec::new(),
            is_update: false,
            violators: u32::MAX,
            weight: 0.0,
            exception: None,
            lost: None,
        }
    }
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
pub(crate) fn violations(context: Context, rules: &[Rule]) -> Vec<Violation> {
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
            let search = Search { context, x: rule.left[0].1, y: rule.right.1 };
            (index, search.guilty(rule))
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
            let violation =
                found.entry((it.function, y)).or_insert_with(|| Violation::new(it.function, y));
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
        let agreement = peers::agreement(context, it.function, it.missing, &written);
        let forgotten = f64::from(forgotten[&it.function]);
        it.weight *= broken.sqrt() * share * agreement / (forgotten * forgotten);
    });
    found.sort_by(by_rank);
    found
}

/// Likeliest bugs first: lost updates before all, those that are gone first; possible exceptions last,
/// forgotten updates before forgotten checks.
pub(crate) fn by_rank(left: &Violation, right: &Violation) -> Ordering {
    let class = |it: &Violation| match it.lost {
        Some(lost) => (false, lost.now > 0, false, false),
        None => (true, false, it.exception.is_some(), !it.is_update),
    };
    let place = |it: &Violation| (it.function, it.missing);
    let by_weight = right.weight.total_cmp(&left.weight);
    class(left).cmp(&class(right)).then(by_weight).then(place(left).cmp(&place(right)))
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

/// The search for those that break one rule.
struct Search<'a> {
    context: Context<'a>,
    x: Variable,
    y: Variable,
}

impl Search<'_> {
    /// The functions that break the rule.
    fn guilty(&self, rule: &Rule) -> Vec<Guilty> {
        let sites = Census::new(self.context, rule).sites();
        let is_guilty = |site: &&Site| site.standing == Standing::Breaks;
        if !sites.iter().any(|site| is_guilty(&site)) {
            return Vec::new();
        }
        let obey: Vec<_> = sites
            .iter()
            .filter(|site| self.context.graph.accesses_directly(site.function, self.y))
            .map(|site| self.manners(site.function))
            .collect();
        let guilty = sites.iter().filter(is_guilty).map(|site| Guilty {
            function: site.function,
            line: site.left_line,
            likeness: self.manners(site.function).likeness(&obey),
            exception: self.exception(site.function),
        });
        guilty.collect()
    }

    fn writes(&self, function: FunctionId) -> impl Iterator<Item = &Access> {
        writes(self.context, function, self.x)
    }

    fn manners(&self, function: FunctionId) -> Manners {
        Manners::of(self.writes(function), &self.context.tree.names)
    }

    /// The constant that the function writes to `x`, if others write it without `y`, too, and
    /// nobody writes it with `y`: then the value itself may be the exception.
    fn exception(&self, function: FunctionId) -> Option<(Name, u32)> {
        let value = self.only_value(function)?;
        let mut without = 0;
        let others = self.context.occurrences.functions(self.x);
        for other in others.filter(|other| *other != function) {
            if !self.writes(other).any(|write| write.value == Some(value)) {
                continue;
            }
            if !self.context.graph.entries(other, self.y).is_empty() {
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
