//! Violations as findings, in the one model that every renderer understands.

use crate::Analysis;
use crate::explain;
use crate::graph::Variable;
use crate::rules::{Rule, Way};
use crate::violations::Violation;
use base::{Confidence, Finding, Place, Step};
use rustc_hash::FxHashMap;

/// The kind of every finding of this analysis.
pub const KIND: &str = "inconsistent-update";

/// Supporters shown with a finding.
const EXAMPLES: usize = 3;

/// The rules `write => write`: where one holds, it tells more than `write => any`.
type Strict<'a> = FxHashMap<(Variable, Variable), &'a Rule>;

impl Analysis {
    /// The violations as findings, in their order.
    pub fn findings(&self) -> Vec<Finding> {
        let updates = self.rules.iter().filter(|rule| rule.is_simple(Way::Write, Way::Write));
        let strict = updates.map(|rule| ((rule.left[0].1, rule.right.1), rule)).collect();
        self.violations.iter().map(|violation| self.finding(violation, &strict)).collect()
    }

    fn finding(&self, violation: &Violation, strict: &Strict) -> Finding {
        let function = self.function_name(violation.function);
        let path = self.path_of(violation.function);
        let (first, line) = violation.broken[0];
        let written = self.graph.shown(&self.tree, self.rules[first].left[0].1);
        let missing = self.graph.shown(&self.tree, violation.missing);
        let place = |line: u32| Place::line(path, line).in_function(&function);
        let mut evidence: Vec<Step> = violation
            .broken
            .iter()
            .map(|(rule, line)| self.rule_step(&self.rules[*rule], strict).at(place(*line)))
            .collect();
        evidence.extend(self.examples(&self.rules[first]));
        if let Some((value, others)) = violation.exception {
            let value = self.tree.names.text(value);
            evidence.push(Step::new(format!(
                "writing {value} goes without {missing} in {others} other functions, too, and \
                 nowhere with it: the value may be the exception"
            )));
        }
        Finding {
            kind: KIND.to_string(),
            title: format!("{function} updates {written} but neither updates nor checks {missing}"),
            confidence: confidence(violation),
            place: Some(place(line)),
            when: None,
            evidence,
        }
    }

    fn rule_step(&self, rule: &Rule, strict: &Strict) -> Step {
        let rule = strict.get(&(rule.left[0].1, rule.right.1)).copied().unwrap_or(rule);
        Step::new(format!(
            "{} holds in {} of {} functions",
            self.shown(rule),
            rule.support,
            rule.left_support
        ))
    }

    fn examples(&self, rule: &Rule) -> Vec<Step> {
        let sites = explain::sites(self, rule);
        let direct = sites.into_iter().filter(|site| site.is_direct && site.right_line.is_some());
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

fn confidence(violation: &Violation) -> Confidence {
    match violation {
        Violation { exception: Some(_), .. } => Confidence::Low,
        Violation { is_update: true, violators: 1, .. } => Confidence::High,
        Violation { is_update: true, .. } => Confidence::Medium,
        _ => Confidence::Low,
    }
}
