//! **Baselines**: what an earlier report knew of a tree, held against the tree of today.
//!
//! A change can delete the very update that made a rule meet its thresholds, and then the rules of the
//! changed tree do not complain. So the rules of the baseline are applied as they were stored. The
//! baseline also knows how often each function wrote the variables of its `write => write` rules: a
//! function that still writes `x` and writes `y` less often than before has **lost an update**, even if
//! it still reads `y` or sets the whole struct. If a function around it writes `y` more often than
//! before, the update has moved, and is not lost.
//!
//! Rules that only the changed tree has are held against functions that changed, or are new.

use crate::Analysis;
use crate::access::{Access, Kind};
use crate::explain::parse_rule;
use crate::graph::{FunctionId, Variable};
use crate::rules::{Rule, Way};
use crate::violations::{self, Violation};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A rule as reports have it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KnownRule {
    /// In the notation of reports.
    pub rule: String,
    /// Functions that obeyed it.
    pub support: u32,
    /// Those that obeyed it by their own accesses.
    pub direct: u32,
    /// Functions with the left side.
    pub left_support: u32,
    /// Direct supporters whose accesses name the same object.
    #[serde(default)]
    pub same_object: u32,
}

/// A violation that was there before.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct KnownViolation {
    /// File of the function.
    pub file: String,
    /// The function.
    pub function: String,
    /// What it lacks.
    pub missing: String,
}

/// What a function wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownFunction {
    /// File.
    pub file: String,
    /// Name.
    pub function: String,
    /// Hash of its text.
    pub hash: String,
    /// How often it wrote each variable of a `write => write` rule.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub writes: BTreeMap<String, u32>,
}

/// What an earlier report knew.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// Its rules.
    #[serde(default)]
    pub rules: Vec<KnownRule>,
    /// Its violations.
    #[serde(default)]
    pub violations: Vec<KnownViolation>,
    /// Its functions that write any variable.
    #[serde(default)]
    pub functions: Vec<KnownFunction>,
}

/// An update that a function made in the baseline and makes no more, or less often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// How often it wrote the variable.
    pub before: u32,
    /// How often it does.
    pub now: u32,
}

type Writes = FxHashMap<Variable, u32>;

impl Baseline {
    /// What is known of an analysed tree.
    pub fn of(analysis: &Analysis) -> Self {
        let rules = analysis.rules.iter().map(|rule| KnownRule {
            rule: analysis.shown(rule),
            support: rule.support,
            direct: rule.direct,
            left_support: rule.left_support,
            same_object: rule.same_object,
        });
        Self {
            rules: rules.collect(),
            violations: analysis.violations.iter().map(|it| known(analysis, it)).collect(),
            functions: functions(analysis),
        }
    }
}

fn known(analysis: &Analysis, violation: &Violation) -> KnownViolation {
    KnownViolation {
        file: analysis.path_of(violation.function).to_string(),
        function: analysis.function_name(violation.function),
        missing: analysis.graph.shown(&analysis.tree, violation.missing),
    }
}

/// The functions that write anything, each once: alternatives of one name in a file are one.
fn functions(analysis: &Analysis) -> Vec<KnownFunction> {
    let updates: FxHashSet<Variable> = analysis
        .rules
        .iter()
        .filter(|rule| rule.is_simple(Way::Write, Way::Write))
        .flat_map(|rule| [rule.left[0].1, rule.right.1])
        .collect();
    let mut known: BTreeMap<(String, String), (u64, BTreeMap<String, u32>)> = BTreeMap::new();
    for id in 0..analysis.tree.functions.len() as FunctionId {
        let writes = writes(analysis, id);
        if writes.is_empty() {
            continue;
        }
        let key = (analysis.path_of(id).to_string(), analysis.function_name(id));
        let (hash, counts) = known.entry(key).or_default();
        *hash ^= analysis.tree.functions[id as usize].hash;
        for (variable, count) in writes.into_iter().filter(|(it, _)| updates.contains(it)) {
            *counts.entry(analysis.graph.shown(&analysis.tree, variable)).or_default() += count;
        }
    }
    known
        .into_iter()
        .map(|((file, function), (hash, writes))| KnownFunction {
            file,
            function,
            hash: format!("{hash:016x}"),
            writes,
        })
        .collect()
}

/// The file and the name of a function.
fn place(analysis: &Analysis, function: FunctionId) -> (String, String) {
    (analysis.path_of(function).to_string(), analysis.function_name(function))
}

/// How often a function writes each variable itself.
fn writes(analysis: &Analysis, function: FunctionId) -> Writes {
    let mut writes = Writes::default();
    let is_write = |access: &&Access| access.kind.meets(Kind::WRITE);
    for access in analysis.tree.functions[function as usize].accesses.iter().filter(is_write) {
        *writes.entry(analysis.graph.number(access)).or_default() += 1;
    }
    writes
}

impl Analysis {
    /// Applies the rules of a baseline, and keeps only the violations that are new; returns how many
    /// were there before.
    pub fn against(&mut self, baseline: &Baseline) -> usize {
        let before = Before::new(self, baseline);
        let mined = self.rules.len();
        let stored = before.stored_rules(self, baseline);
        let is_stored: FxHashSet<usize> = stored.known.iter().copied().collect();
        self.rules.extend(stored.gone);
        self.violations = violations::violations(self.context(), &self.rules);
        before.find_lost(self, &is_stored, mined);
        let all: FxHashSet<&KnownViolation> = baseline.violations.iter().collect();
        let found = self.violations.len();
        let mut kept = std::mem::take(&mut self.violations);
        kept.retain(|it| it.lost.is_some() || !all.contains(&known(self, it)));
        let dropped = found - kept.len();
        // What only the rules of the changed tree say is news only about functions that changed.
        let by_stored = |it: &Violation| {
            it.broken.iter().any(|(rule, _)| *rule >= mined || is_stored.contains(rule))
        };
        kept.retain(|it| by_stored(it) || before.is_changed(it.function));
        kept.sort_by(violations::by_rank);
        self.violations = kept;
        dropped
    }
}

/// The rules of a baseline in the changed tree.
struct Stored {
    /// Those that the changed tree has as well, by number.
    known: Vec<usize>,
    /// Those that it does not have.
    gone: Vec<Rule>,
}

/// The baseline in terms of the changed tree.
struct Before {
    variables: FxHashMap<String, Variable>,
    /// What each function wrote; none if it is new.
    writes: Vec<Option<Writes>>,
    is_changed: Vec<bool>,
}

impl Before {
    fn new(analysis: &Analysis, baseline: &Baseline) -> Self {
        let all = (0..analysis.graph.variables.len() as u32).map(Variable);
        let named = all.map(|it| (analysis.graph.shown(&analysis.tree, it), it));
        let variables: FxHashMap<String, Variable> = named.collect();
        let mut by_place = FxHashMap::default();
        let mut by_name: FxHashMap<&str, Vec<&KnownFunction>> = FxHashMap::default();
        for known in &baseline.functions {
            by_place.insert((known.file.as_str(), known.function.as_str()), known);
            by_name.entry(known.function.as_str()).or_default().push(known);
        }
        let mut hashes: FxHashMap<(&str, String), u64> = FxHashMap::default();
        for (id, function) in analysis.tree.functions.iter().enumerate() {
            let id = id as FunctionId;
            if !writes(analysis, id).is_empty() {
                let place = (analysis.path_of(id), analysis.function_name(id));
                *hashes.entry(place).or_default() ^= function.hash;
            }
        }
        let mut before = Self { variables, writes: Vec::new(), is_changed: Vec::new() };
        for id in 0..analysis.tree.functions.len() as FunctionId {
            let (file, name) = (analysis.path_of(id), analysis.function_name(id));
            // A function that moved to another file is known by its name, if nobody else has it.
            let known = by_place.get(&(file, name.as_str())).copied().or_else(|| {
                match by_name.get(name.as_str()).map(Vec::as_slice) {
                    Some([only]) => Some(*only),
                    _ => None,
                }
            });
            let hash = hashes.get(&(file, name)).map(|hash| format!("{hash:016x}"));
            before.is_changed.push(known.map(|it| &it.hash) != hash.as_ref());
            before.writes.push(known.map(|it| before.known_writes(it)));
        }
        before
    }

    fn known_writes(&self, known: &KnownFunction) -> Writes {
        let counts = known.writes.iter();
        counts.filter_map(|(name, count)| Some((*self.variables.get(name)?, *count))).collect()
    }

    fn is_changed(&self, function: FunctionId) -> bool {
        self.is_changed[function as usize]
    }

    fn stored_rules(&self, analysis: &Analysis, baseline: &Baseline) -> Stored {
        let mined = analysis.rules.iter().enumerate();
        let mined: FxHashMap<_, usize> =
            mined.map(|(index, rule)| ((rule.left.clone(), rule.right), index)).collect();
        let mut stored = Stored { known: Vec::new(), gone: Vec::new() };
        for known in &baseline.rules {
            let find = |name: &str| self.variables.get(name).copied().ok_or(());
            let Ok((left, right)) = parse_rule(&known.rule, || (), find) else { continue };
            match mined.get(&(left.clone(), right)) {
                Some(index) => stored.known.push(*index),
                None => stored.gone.push(Rule {
                    left,
                    right,
                    support: known.support,
                    direct: known.direct,
                    left_support: known.left_support,
                    same_object: known.same_object,
                    is_stored: true,
                }),
            }
        }
        stored
    }

    /// Adds the updates that were lost to the violations.
    fn find_lost(&self, analysis: &mut Analysis, stored: &FxHashSet<usize>, mined: usize) {
        let mut rules: FxHashMap<Variable, Vec<usize>> = FxHashMap::default();
        for (index, rule) in analysis.rules.iter().enumerate() {
            let is_stored = index >= mined || stored.contains(&index);
            if is_stored && rule.is_simple(Way::Write, Way::Write) {
                rules.entry(rule.right.1).or_default().push(index);
            }
        }
        let mut together: FxHashMap<(String, String), Writes> = FxHashMap::default();
        for function in 0..analysis.tree.functions.len() as FunctionId {
            let counts = together.entry(place(analysis, function)).or_default();
            for (variable, count) in writes(analysis, function) {
                *counts.entry(variable).or_default() += count;
            }
        }
        for function in 0..analysis.tree.functions.len() as FunctionId {
            let Some(before) = &self.writes[function as usize] else { continue };
            if !self.is_changed(function) || before.is_empty() {
                continue;
            }
            // Alternatives of one name in a file are one in the baseline.
            let Some(now) = together.get(&place(analysis, function)) else { continue };
            for (y, count) in before {
                let lost = Lost { before: *count, now: now.get(y).copied().unwrap_or(0) };
                if lost.now >= lost.before || self.has_moved(analysis, function, *y) {
                    continue;
                }
                let broken: Vec<usize> = rules.get(y).into_iter().flatten().copied().collect();
                let broken = broken.into_iter().filter(|rule| {
                    let x = analysis.rules[*rule].left[0].1;
                    let then = before.get(&x).copied().unwrap_or(0);
                    let still = now.get(&x).copied().unwrap_or(0);
                    then > 0 && still > 0 && (still >= then || lost.now == 0)
                });
                let broken: Vec<usize> = broken.collect();
                if !broken.is_empty() {
                    note(analysis, function, *y, &broken, lost);
                }
            }
        }
    }

    /// Whether a function around this one writes `y` more often than before.
    fn has_moved(&self, analysis: &Analysis, function: FunctionId, y: Variable) -> bool {
        let graph = &analysis.graph;
        let gained = |it: &FunctionId| {
            let now = writes(analysis, *it).get(&y).copied().unwrap_or(0);
            let before = self.writes[*it as usize].as_ref();
            *it != function && now > before.and_then(|it| it.get(&y)).copied().unwrap_or(0)
        };
        [&graph.callees, &graph.callers].into_iter().any(|links| {
            let near = &links[function as usize];
            near.iter().any(|it| gained(it) || links[*it as usize].iter().any(gained))
        })
    }
}

/// Notes a lost update, with the violation that it is already or as one of its own.
fn note(analysis: &mut Analysis, function: FunctionId, y: Variable, broken: &[usize], lost: Lost) {
    let same = |it: &&mut Violation| it.function == function && it.missing == y;
    if let Some(violation) = analysis.violations.iter_mut().find(same) {
        violation.lost = Some(lost);
        return;
    }
    let weight = broken.iter().map(|rule| {
        let rule = &analysis.rules[*rule];
        f64::from(rule.direct) * rule.confidence()
    });
    let line = |rule: &usize| {
        let x = analysis.rules[*rule].left[0].1;
        let entries = analysis.graph.entries(function, x).iter();
        let mut own = entries.filter(|it| it.via == 0 && it.kind.meets(Kind::WRITE));
        (*rule, own.next().map_or(0, |it| it.line))
    };
    let violation = Violation {
        weight: weight.sum(),
        broken: broken.iter().map(line).collect(),
        is_update: true,
        lost: Some(lost),
        ..Violation::new(function, y)
    };
    analysis.violations.push(violation);
}
