//! Violations as findings, in the one model that every renderer understands.

use crate::Analysis;
use crate::baseline::Lost;
use crate::explain;
use crate::explain::{Conformance, Site};
use crate::graph::{FunctionId, Variable};
use crate::rules::{Rule, Way};
use crate::violations::{Exception, Violation};
use base::{Confidence, Finding, Place, Step};
use rustc_hash::FxHashMap;
use std::fmt;

/// The kind of every finding of this analysis.
pub const KIND: &str = "inconsistent-update";

/// Supporters shown with a finding.
const EXAMPLES: usize = 3;

/// The rules `write => write`: where one holds, it tells more than `write => any`.
type Strict<'a> = FxHashMap<(Variable, Variable), &'a Rule>;

impl Analysis {
    /// The violations as findings, in their order: one for each function, with all that it lacks.
    /// Functions of one file that lack the same beside the same write have one cause, and are one
    /// finding.
    pub fn findings(&self) -> Vec<Finding> {
        let updates = self.rules.iter().filter(|rule| rule.is_simple(Way::Write, Way::Write));
        let strict = updates.map(|rule| ((rule.left[0].1, rule.right.1), rule)).collect();
        let mut groups: Vec<Group> = Vec::new();
        let mut group_of: FxHashMap<FunctionId, usize> = FxHashMap::default();
        let mut group_like: FxHashMap<_, usize> = FxHashMap::default();
        for violation in &self.violations {
            let file = self.tree.functions[violation.function as usize].file;
            let written = self.rules[violation.broken[0].0].left[0].1;
            let cause = (file, written, violation.missing, violation.lost.is_some());
            let known = group_of.get(&violation.function).or_else(|| group_like.get(&cause));
            let index = known.copied().unwrap_or(groups.len());
            group_of.insert(violation.function, index);
            group_like.entry(cause).or_insert(index);
            match groups.get_mut(index) {
                Some(group) if group.function == violation.function => {
                    group.violations.push(violation);
                }
                Some(group) => group.alike.push(violation),
                None => groups.push(Group::new(violation)),
            }
        }
        groups.iter().map(|group| self.finding(group, &strict)).collect()
    }

    fn finding(&self, group: &Group, strict: &Strict) -> Finding {
        let (group, alike) = (&group.violations, &group.alike);
        let first = group[0];
        let function = self.function_name(first.function);
        let path = self.path_of(first.function);
        let (rule, line) = first.broken[0];
        let written = self.graph.shown(&self.tree, self.rules[rule].left[0].1);
        let missing: Vec<_> =
            group.iter().map(|it| self.graph.shown(&self.tree, it.missing)).collect();
        let missing = listed(&missing);
        let place = |line: u32| Place::line(path, line).in_function(&function);
        let broken = group.iter().flat_map(|it| &it.broken);
        let mut evidence: Vec<Step> = broken
            .map(|(rule, line)| self.rule_step(&self.rules[*rule], strict).at(place(*line)))
            .collect();
        evidence.extend(group.iter().filter_map(|it| self.partial_step(it)));
        evidence.extend(self.examples(&self.rules[rule]));
        evidence.extend(group.iter().filter_map(|it| self.unset_step(it)));
        evidence.extend(group.iter().filter_map(|it| self.exception_step(it)));
        evidence.extend(group.iter().filter_map(|it| self.lost_step(it)));
        evidence.extend(self.alike_steps(alike));
        Finding {
            kind: KIND.to_string(),
            title: format!("{function} updates {written} but {}", complaint(first, &missing)),
            confidence: confidence(first),
            place: Some(place(line)),
            when: None,
            evidence,
        }
    }

    /// One step for each other function with the same cause.
    fn alike_steps(&self, alike: &[&Violation]) -> Vec<Step> {
        let mut seen = Vec::new();
        let mut steps = Vec::new();
        for violation in alike.iter().filter(|it| !it.broken.is_empty()) {
            if !seen.contains(&violation.function) {
                seen.push(violation.function);
                let function = self.function_name(violation.function);
                let path = self.path_of(violation.function);
                let place = Place::line(path, violation.broken[0].1).in_function(&function);
                steps.push(Step::new(format!("{function} does the same")).at(place));
            }
        }
        steps
    }

    fn rule_step(&self, rule: &Rule, strict: &Strict) -> Step {
        let rule = strict.get(&(rule.left[0].1, rule.right.1)).copied().unwrap_or(rule);
        if rule.is_stored {
            let (shown, support, all) = (self.shown(rule), rule.support, rule.left_support);
            return Step::new(format!(
                "{shown} held in {support} of {all} functions of the baseline"
            ));
        }
        Step::new(format!(
            "{} holds in {} of {} functions, {}",
            self.shown(rule),
            rule.support,
            rule.left_support,
            Rest::new(&explain::sites(self, rule)),
        ))
    }

    fn partial_step(&self, violation: &Violation) -> Option<Step> {
        let missing = self.graph.shown(&self.tree, violation.missing);
        let text = format!(
            "the function accesses {missing} elsewhere, for another object or in another branch"
        );
        violation.is_partial.then(|| Step::new(text))
    }

    fn unset_step(&self, violation: &Violation) -> Option<Step> {
        let missing = self.graph.shown(&self.tree, violation.missing);
        let text =
            format!("the object is new: {missing} keeps what was in its memory (uninitialised)");
        violation.is_unset.then(|| Step::new(text))
    }

    fn exception_step(&self, violation: &Violation) -> Option<Step> {
        let missing = self.graph.shown(&self.tree, violation.missing);
        let text = |value| self.tree.names.text(value);
        Some(Step::new(match violation.exception? {
            Exception::Value(value, others) => format!(
                "writing {} goes without {missing} in {others} other functions, too, and nowhere \
                 with it: the value may be the exception",
                text(value)
            ),
            Exception::OtherValue(value) => format!(
                "nobody who accesses {missing} writes {}: the value may be the exception",
                text(value)
            ),
            Exception::Manner => format!(
                "hardly anybody who accesses {missing} writes the other variable like this (steps it, \
                 empties it, sets a constant): the manner may be the exception"
            ),
            Exception::Existing => format!(
                "those who access {missing} fill in new objects, and this function changes one that exists: \
                 that may be the exception"
            ),
            Exception::Single => format!(
                "those who access {missing} set several variables of the object, and this function sets one: \
                 that may be the exception"
            ),
            Exception::ZeroMeant => format!(
                "the struct is zeroed, and {missing} is often set to zero elsewhere: zero may be meant"
            ),
            Exception::Neighbour => {
                format!("a neighbour in a list may get one new link, and keep {missing}")
            }
            Exception::Relink => {
                format!("{missing} counts what is linked, and this function may only move links")
            }
        }))
    }

    fn lost_step(&self, violation: &Violation) -> Option<Step> {
        let Lost { before, now } = violation.lost?;
        let missing = self.graph.shown(&self.tree, violation.missing);
        let times = |count: u32| match count {
            0 => "nowhere".to_string(),
            1 => "in one place".to_string(),
            _ => format!("in {count} places"),
        };
        Some(Step::new(format!(
            "the function wrote {missing} {} in the baseline, and {} now",
            times(before),
            times(now)
        )))
    }

    fn examples(&self, rule: &Rule) -> Vec<Step> {
        let sites = explain::sites(self, rule);
        let direct =
            sites.into_iter().filter(|it| it.conformance == Conformance::Obeys { direct: true });
        direct
            .take(EXAMPLES)
            .map(|site| {
                let function = self.function_name(site.function);
                let place = Place::line(self.path_of(site.function), site.left_line);
                Step::new(format!("{function} does both")).at(place.in_function(function))
            })
            .collect()
    }
}

/// The violations of one finding.
struct Group<'a> {
    /// The function that it is about.
    function: FunctionId,
    /// What that function lacks.
    violations: Vec<&'a Violation>,
    /// What others lack for the same cause.
    alike: Vec<&'a Violation>,
}

impl<'a> Group<'a> {
    fn new(first: &'a Violation) -> Self {
        Self { function: first.function, violations: vec![first], alike: Vec::new() }
    }
}

/// The functions with the left side of a rule that do not obey it: how many break it, and how many of
/// those that count are excused.
struct Rest {
    breaking: usize,
    partial: usize,
    excused: usize,
}

impl Rest {
    fn new(sites: &[Site]) -> Self {
        let count = |wanted: &dyn Fn(&Conformance) -> bool| {
            sites.iter().filter(|it| it.is_counted() && wanted(&it.conformance)).count()
        };
        Self {
            breaking: count(&|it| *it == Conformance::Breaks),
            partial: sites.iter().filter(|it| it.alone.is_some()).count(),
            excused: count(&|it| matches!(it, Conformance::Excused(_))),
        }
    }
}

impl fmt::Display for Rest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "is broken in {}", self.breaking)?;
        if self.partial > 0 {
            write!(out, ", in one place of {}", self.partial)?;
        }
        match self.excused {
            0 => Ok(()),
            excused => write!(out, ", excused in {excused}"),
        }
    }
}

/// Names in a sentence.
fn listed(names: &[String]) -> String {
    const MOST: usize = 3;
    match names {
        [] => String::new(),
        [only] => only.clone(),
        [all @ .., last] if names.len() <= MOST => format!("{} nor {last}", all.join(", ")),
        _ => format!("{} nor {} more", names[..MOST].join(", "), names.len() - MOST),
    }
}

/// What a function does about the variables that it should update.
fn complaint(violation: &Violation, missing: &str) -> String {
    match violation.lost {
        Some(Lost { now: 0, .. }) => format!("no longer updates {missing}"),
        Some(_) => format!("updates {missing} in fewer places than before"),
        None if violation.is_partial => format!("here not {missing}"),
        None => format!("neither updates nor checks {missing}"),
    }
}

fn confidence(violation: &Violation) -> Confidence {
    match violation {
        Violation { lost: Some(Lost { now: 0, .. }), .. } => Confidence::High,
        Violation { lost: Some(_), .. } => Confidence::Medium,
        Violation { exception: Some(_), .. } => Confidence::Low,
        Violation { is_partial: true, .. } => Confidence::Medium,
        Violation { is_update: true, violators: 1, .. } => Confidence::High,
        Violation { is_update: true, .. } => Confidence::Medium,
        _ => Confidence::Low,
    }
}
