//! **Inconsistent updates**: functions that write `x` of a rule `write(x) => any(y)` and leave `y`
//! alone, although nobody around them takes care of it.

use crate::access::{Access, How, Kind, Owner};
use crate::baseline::Lost;
use crate::conformance::{Census, Conformance, Context, Site, writes};
use crate::graph::{FunctionId, Variable};
use crate::library::has_word;
use crate::manner::Manners;
use crate::names::Name;
use crate::origins::{self, Origins};
use crate::peers;
use crate::rules::{Rule, Way};
use crate::syntax::TypeName;
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
    /// Why it may be none.
    pub exception: Option<Exception>,
    /// Whether the missing variable keeps whatever was in the memory of a new object.
    pub is_unset: bool,
    /// Whether it accesses the variable elsewhere: for another object, or in another branch.
    pub is_partial: bool,
    /// Whether the function is part of the tests.
    pub is_test: bool,
    /// That it is an update which the baseline had.
    pub lost: Option<Lost>,
}

/// What sets a violator apart from those that obey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exception {
    /// A constant whose write goes without the missing variable elsewhere, too, and how often.
    Value(Name, u32),
    /// A constant that nobody writes together with the missing variable, though they write others.
    OtherValue(Name),
    /// It steps or empties the variable, or sets it to a constant, and hardly anybody who obeys does.
    Manner,
    /// It changes an object that exists, and those who obey fill in new ones.
    Existing,
    /// It sets this one variable of an object, and those who obey set several more.
    Single,
    /// Its object is all zero, and those who write the missing variable often write zero.
    ZeroMeant,
    /// It moves links, and the missing variable counts what is linked.
    Relink,
    /// It sets one link of a neighbour, and the missing variable is another link of it.
    Neighbour,
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
            is_unset: false,
            is_partial: false,
            is_test: false,
            lost: None,
        }
    }
}

/// How much more likely a bug is where the missing variable of a new object keeps what was in its memory
/// before: whoever reads it reads nonsense.
const UNSET: f64 = 3.0;

/// How much less likely one is where the missing variable is a function to call.
const CALLBACK: f64 = 0.25;

/// How much less two variables say that belong to two objects, or to two structs.
const APART: f64 = 0.25;

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
        .filter(|(_, rule)| {
            rule.is_simple(Way::Write, Way::Any) || rule.is_simple(Way::Write, Way::Write)
        })
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
        // Of a pair that has both forms, one counts: the weaker one for those that lack the variable, the
        // stronger one for those that lack it in one place.
        let is_any = rule.right.0 == Way::Any;
        *companions.entry(y).or_default() += u32::from(is_any);
        let guilty: Vec<_> = guilty.into_iter().filter(|it| it.is_partial != is_any).collect();
        let violators = guilty.len() as u32;
        for it in guilty {
            let new = || Violation { is_partial: true, ..Violation::new(it.function, y) };
            let violation = found.entry((it.function, y)).or_insert_with(new);
            violation.broken.push((index, it.line));
            violation.is_update |= strict.contains(&(x, y));
            violation.violators = violation.violators.min(violators);
            violation.weight +=
                trust(rule) * it.likeness * rule.confidence() / f64::from(violators.max(1));
            violation.exception = violation.exception.or(it.exception);
            violation.is_unset |= it.is_unset;
            violation.is_partial &= it.is_partial;
        }
    }
    let mut found: Vec<_> = found.into_values().collect();
    let mut forgotten: FxHashMap<FunctionId, u32> = FxHashMap::default();
    for violation in &found {
        *forgotten.entry(violation.function).or_default() += 1;
    }
    found.par_iter_mut().for_each(|it| {
        let broken = it.broken.len() as f64;
        let share = broken / f64::from(companions.get(&it.missing).copied().unwrap_or(1).max(1));
        let written: Vec<_> = it.broken.iter().map(|(rule, _)| rules[*rule].left[0].1).collect();
        let agreement = peers::agreement(context, it.function, it.missing, &written);
        let forgotten = f64::from(forgotten[&it.function]);
        it.weight *= broken.sqrt() * share * agreement / (forgotten * forgotten);
        it.weight *= match it.is_unset {
            true => UNSET,
            false if is_callback(context, it.missing) => CALLBACK,
            false => 1.0,
        };
        let owner = |variable| context.graph.struct_number(variable);
        let is_own = |written: &Variable| owner(*written) == owner(it.missing);
        it.weight *= if written.iter().any(is_own) { 1.0 } else { APART };
    });
    for it in &mut found {
        let file = context.tree.functions[it.function as usize].file;
        it.is_test = is_test(&context.tree.paths[file as usize]);
    }
    found.sort_by(by_rank);
    found
}

/// Whether a variable is a function to call: one that is not wanted is rightly left out.
fn is_callback(context: Context, variable: Variable) -> bool {
    match context.graph.variables[variable.0 as usize] {
        (Owner::Struct(id), field) => context.tree.types.is_callback(id, field),
        _ => false,
    }
}

/// How much the direct supporters of a rule say: those that access both variables of one object more
/// than those that access two objects, which may meet by chance.
fn trust(rule: &Rule) -> f64 {
    let same = f64::from(rule.same_object.min(rule.direct));
    same + APART * (f64::from(rule.direct) - same)
}

/// Whether a file belongs to tests, by the names of its folders and its own.
fn is_test(path: &str) -> bool {
    let mut parts = path.split('/').rev();
    let file = parts.next().unwrap_or_default();
    let stem = file.split('.').next().unwrap_or_default();
    let mut words = stem.split(['_', '-']);
    words.any(|word| matches!(word, "test" | "tests" | "unittest"))
        || parts.any(|part| matches!(part, "test" | "tests" | "testing" | "unittest" | "selftests"))
}

/// Likeliest bugs first: lost updates before all, those that are gone first; possible exceptions last,
/// forgotten updates before forgotten checks, code of tests after all other.
pub(crate) fn by_rank(left: &Violation, right: &Violation) -> Ordering {
    let class = |it: &Violation| match it.lost {
        Some(lost) => (false, lost.now > 0, false, false, false),
        None => {
            let is_unset = it.is_unset && it.is_update;
            let exception = it.exception.is_some();
            (true, it.is_test, exception, !is_unset, !it.is_update)
        }
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
    exception: Option<Exception>,
    is_unset: bool,
    is_partial: bool,
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
        let is_guilty =
            |site: &&Site| site.conformance == Conformance::Breaks || site.alone.is_some();
        if !sites.iter().any(|site| is_guilty(&site)) {
            return Vec::new();
        }
        let obey: Vec<_> = sites
            .iter()
            .map(|site| site.function)
            .filter(|it| self.context.graph.accesses_directly(*it, self.y))
            .collect();
        let manners: Vec<_> = obey.iter().map(|it| self.manners(*it)).collect();
        let origins: Vec<_> = obey.iter().map(|it| self.origins(*it)).collect();
        let certainty = self.certainty(&obey);
        let guilty = sites.iter().filter(is_guilty).map(|site| Guilty {
            function: site.function,
            line: site.alone.unwrap_or(site.left_line),
            is_partial: site.alone.is_some(),
            likeness: self.manners_at(site).likeness(&manners)
                * self.origins_at(site).likeness(&origins)
                * certainty,
            is_unset: site.alone.is_none()
                && origins::is_unset(self.context, site.function, self.x, self.y),
            exception: self
                .zero_meant(site.function, &obey)
                .or_else(|| self.value_exception(site.function))
                .or_else(|| self.manner_exception(self.manners_at(site), &manners))
                .or_else(|| self.other_value(site.function, &obey))
                .or_else(|| self.relink(site.function, &obey))
                .or_else(|| self.neighbour(site))
                .or_else(|| self.existing(self.origins_at(site), &origins))
                .or_else(|| self.single(site, &obey)),
        });
        guilty.collect()
    }

    fn writes(&self, function: FunctionId) -> impl Iterator<Item = &Access> {
        writes(self.context, function, self.x)
    }

    /// Whether the function sets nothing else in an object that exists, and hardly anybody who obeys sets
    /// just these two variables.
    fn single(&self, site: &Site, obey: &[FunctionId]) -> Option<Exception> {
        const FEW: usize = 3;
        const HARDLY: usize = 5;
        let is_alone = |function: FunctionId, write: &Access| {
            let facts = &self.context.tree.functions[function as usize];
            let (x, y) = (
                self.context.graph.variables[self.x.0 as usize],
                self.context.graph.variables[self.y.0 as usize],
            );
            !facts.accesses.iter().any(|it| {
                let variable = (it.owner, it.field);
                let is_other = variable != x && variable != y && it.kind.meets(Kind::WRITE);
                is_other
                    && it.base == write.base
                    && !facts.are_alternatives(write.place(), it.place())
            })
        };
        let own = self.blamed(site).all(|it| is_alone(site.function, it));
        let is_new = self.origins_at(site).is_new();
        let has_y = |function: FunctionId, write: &Access| {
            let entries = self.context.graph.entries(function, self.y).iter();
            entries.clone().any(|it| it.via == 0 && it.base == write.base)
        };
        let is_pair = |it: FunctionId, write: &Access| is_alone(it, write) && has_y(it, write);
        let alike = obey.iter().filter(|it| self.writes(**it).any(|write| is_pair(**it, write)));
        let is_single = own && !is_new && obey.len() >= FEW && HARDLY * alike.count() < obey.len();
        is_single.then_some(Exception::Single)
    }

    /// The writes that a violator is blamed for.
    fn blamed(&self, site: &Site) -> impl Iterator<Item = &Access> {
        let alone = site.alone;
        let writes = self.writes(site.function);
        writes.filter(move |write| alone.is_none_or(|line| write.line == line))
    }

    fn manners_at(&self, site: &Site) -> Manners {
        Manners::of(self.blamed(site), &self.context.tree.names)
    }

    fn origins_at(&self, site: &Site) -> Origins {
        Origins::of(self.blamed(site))
    }

    fn origins(&self, function: FunctionId) -> Origins {
        Origins::of(self.writes(function))
    }

    /// Whether the function changes objects that exist, and hardly anybody else does.
    fn existing(&self, own: Origins, others: &[Origins]) -> Option<Exception> {
        const FEW: usize = 3;
        const MOST: usize = 5;
        let known: Vec<_> = others.iter().filter(|it| it.is_known()).collect();
        let alike = known.iter().filter(|it| it.existed()).count();
        let is_alone = known.len() >= FEW && MOST * alike < known.len();
        (is_alone && own.existed() && !own.is_new()).then_some(Exception::Existing)
    }

    fn manners(&self, function: FunctionId) -> Manners {
        Manners::of(self.writes(function), &self.context.tree.names)
    }

    /// The constant that the function writes to `x`, if others write it without `y`, too, and
    /// nobody writes it with `y`: then the value itself may be the exception.
    fn value_exception(&self, function: FunctionId) -> Option<Exception> {
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
        (without > 0).then_some(Exception::Value(value, without))
    }

    /// Whether the missing variable is zero already, because the function zeroes the struct, and zero
    /// is what those who set it often set it to.
    fn zero_meant(&self, function: FunctionId, obey: &[FunctionId]) -> Option<Exception> {
        const OFTEN: usize = 5;
        if self.context.graph.touches_whole(self.context.tree, function, self.y)
            != Some(How::Zeroed)
        {
            return None;
        }
        let set: Vec<Manners> = obey
            .iter()
            .map(|it| Manners::of(writes(self.context, *it, self.y), &self.context.tree.names))
            .filter(|manners| *manners != Manners::default())
            .collect();
        let zero = set.iter().filter(|manners| manners.empties()).count();
        (zero > 0 && OFTEN * zero >= set.len()).then_some(Exception::ZeroMeant)
    }

    /// Whether hardly anybody who obeys writes `x` in the manner of this function, which steps or
    /// empties it, or sets it to a constant.
    fn manner_exception(&self, own: Manners, others: &[Manners]) -> Option<Exception> {
        const FEW: usize = 4;
        const HARDLY: usize = 10;
        let alike = others.iter().filter(|it| it.meets(own)).count();
        let is_alone = others.len() >= FEW && HARDLY * alike < others.len();
        // Who clears one field of a value is to clear the others, even if all others only fill it in.
        let owner = |variable: Variable| self.context.graph.variables[variable.0 as usize].0;
        let is_one_value =
            matches!(owner(self.x), Owner::Member(_)) && owner(self.x) == owner(self.y);
        (is_alone && own.is_special() && !is_one_value).then_some(Exception::Manner)
    }

    /// The name that the function sets `x` to, if `x` is a tag: those who obey set it to names as well,
    /// but nobody to this one.
    fn other_value(&self, function: FunctionId, obey: &[FunctionId]) -> Option<Exception> {
        const FEW: usize = 3;
        let value = self.only_value(function)?;
        if !self.context.tree.names.text(value).contains(|it: char| it.is_ascii_alphabetic()) {
            return None;
        }
        let named = |it: &Access| it.value.is_some();
        let tags = obey.iter().filter(|it| self.writes(**it).any(named)).count();
        let same = obey.iter().any(|it| self.writes(*it).any(|write| write.value == Some(value)));
        let is_tag = tags >= FEW && 2 * tags > obey.len() && !same;
        is_tag.then_some(Exception::OtherValue(value))
    }

    /// Whether `y` is a count that those who obey step, and the function only moves links: by its name
    /// and its calls it neither adds nor takes away.
    fn relink(&self, function: FunctionId, obey: &[FunctionId]) -> Option<Exception> {
        // What adds or takes away says so in its name, or calls what does.
        const OWN: [&str; 7] = ["add", "put", "link", "new", "create", "get", "init"];
        const CALLED: [&str; 13] = [
            "insert", "append", "prepend", "push", "enqueue", "remove", "delete", "del", "pop",
            "take", "dequeue", "unlink", "free",
        ];
        let Context { tree, graph, .. } = self.context;
        let (owner, field) = graph.variables[self.x.0 as usize];
        let Owner::Struct(id) = owner else { return None };
        let typed = tree.types.structure(id).fields.get(&field)?;
        const LINKS: [&str; 14] = [
            "next", "prev", "previous", "head", "tail", "first", "last", "link", "left", "right",
            "parent", "child", "root", "forward",
        ];
        let links = has_word(tree.names.text(field), &LINKS);
        if !typed.is_pointer || typed.base == TypeName::Scalar || !links {
            return None;
        }
        const FEW: usize = 3;
        let counts = |it: &FunctionId| {
            let mut writes = writes(self.context, *it, self.y).peekable();
            writes.peek()?;
            Some(writes.any(|write| write.kind.meets(Kind::READ)))
        };
        let updates: Vec<bool> = obey.iter().filter_map(counts).collect();
        let counting = updates.iter().filter(|steps| **steps).count();
        let is_count = counting >= FEW && 2 * counting > updates.len();
        let facts = &tree.functions[function as usize];
        let mut called = facts.calls.iter().map(|call| call.name).chain([facts.name]);
        let changes = has_word(tree.names.text(facts.name), &OWN)
            || called.any(|name| has_word(tree.names.text(name), &CALLED));
        (is_count && !changes).then_some(Exception::Relink)
    }

    /// Whether both variables are links of one struct, which the function sets together elsewhere: where a
    /// node is put between two others, these get one new link each.
    fn neighbour(&self, site: &Site) -> Option<Exception> {
        let Context { tree, graph, .. } = self.context;
        let is_link = |variable: Variable| match graph.variables[variable.0 as usize] {
            (Owner::Struct(id), field) => tree.types.is_link(id, field),
            _ => false,
        };
        let is_meant = site.alone.is_some() && is_link(self.x) && is_link(self.y);
        is_meant.then_some(Exception::Neighbour)
    }

    /// The share of those who obey that access `y` wherever they write `x`; others do on a condition of
    /// their own, so that it may as well be left out. From nearly 0 to 1.
    fn certainty(&self, obey: &[FunctionId]) -> f64 {
        const REST: f64 = 0.1;
        let is_certain = |function: &&FunctionId| {
            let facts = &self.context.tree.functions[**function as usize];
            let entries = self.context.graph.entries(**function, self.y);
            self.writes(**function).any(|write| {
                entries.iter().any(|it| it.via == 0 && facts.is_around(it.branch, write.branch))
            })
        };
        let certain = obey.iter().filter(is_certain).count() as f64;
        (certain / obey.len().max(1) as f64 + REST) / (1.0 + REST)
    }

    fn only_value(&self, function: FunctionId) -> Option<Name> {
        let mut values = self.writes(function).map(|write| write.value);
        let first = values.next()??;
        values.all(|value| value == Some(first)).then_some(first)
    }
}
