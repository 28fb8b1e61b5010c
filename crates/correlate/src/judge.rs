//! Counts rules: in how many functions the left side stands, and in how many of them the right side
//! stands nearby.
//!
//! There are many more candidates than rules, so this is where the time of mining goes. Both sides
//! are sorted lists of functions that are merged; access sets are opened only for functions in both.

use crate::graph::{Entry, Graph, Variable};
use crate::occurrences::{Occurrence, Occurrences};
use crate::rules::{Options, Rule, Way};
use crate::tree::Tree;

/// Counts the rules of one tree.
pub(crate) struct Judge<'a> {
    pub tree: &'a Tree,
    pub graph: &'a Graph,
    pub occurrences: &'a Occurrences,
    pub options: &'a Options,
}

/// A function with the left side, and what it has of the right side.
struct Match<'a> {
    left: &'a [Occurrence],
    right: Option<&'a Occurrence>,
}

/// How often the nine forms of a rule hold.
#[derive(Default)]
struct Tally {
    left: [u32; 3],
    support: [[u32; 3]; 3],
    direct: [[u32; 3]; 3],
    same_object: [[u32; 3]; 3],
}

impl Judge<'_> {
    /// Adds the rules `x => y` that meet the thresholds.
    pub fn pair(&self, x: Variable, y: Variable, rules: &mut Vec<Rule>) {
        let left = self.occurrences.of(x).iter().map(std::slice::from_ref);
        self.judge(&[x], left, y, rules);
    }

    /// Functions that have both variables, as pairs of occurrences.
    pub fn both(&self, left: [Variable; 2]) -> Vec<[Occurrence; 2]> {
        let [first, second] = left.map(|it| self.occurrences.of(it));
        let mut both = Vec::new();
        let mut cursor = Cursor(second);
        for one in first {
            if let Some(other) = cursor.advance(one.function) {
                both.push([*one, *other]);
            }
        }
        both
    }

    /// Adds the rules `x & y => z` that meet the thresholds; `both` is where x and y are.
    pub fn triple(
        &self,
        left: [Variable; 2],
        both: &[[Occurrence; 2]],
        right: Variable,
        rules: &mut Vec<Rule>,
    ) {
        self.judge(&left, both.iter().map(<[_; 2]>::as_slice), right, rules);
    }

    fn judge<'l>(
        &self,
        left: &[Variable],
        occurrences: impl Iterator<Item = &'l [Occurrence]>,
        right: Variable,
        rules: &mut Vec<Rule>,
    ) {
        let mut cursor = Cursor(self.occurrences.of(right));
        let matches: Vec<Match> = occurrences
            .map(|left| Match { left, right: cursor.advance(left[0].function) })
            .collect();
        let most = matches.iter().filter(|it| it.right.is_some()).count();
        if most < self.options.min_support as usize {
            return;
        }
        let mut tally = Tally::default();
        for it in &matches {
            self.count(it, right, &mut tally);
        }
        self.keep(left, right, &tally, rules);
    }

    /// Counts one function for or against a rule.
    fn count(&self, it: &Match, right: Variable, tally: &mut Tally) {
        let outcome = match it.right {
            Some(found) => {
                let mut sides = [&[][..]; 2];
                for (side, occurrence) in sides.iter_mut().zip(it.left) {
                    *side = occurrence.entries(self.graph);
                }
                let entries = found.entries(self.graph);
                together(&sides[..it.left.len()], entries, self.options.max_distance)
            }
            None => Outcome::default(),
        };
        // A function that sets the whole struct has accessed every field of it, yet says nothing
        // about which fields belong together: it counts neither for nor against.
        let is_neutral = outcome.is_copied
            || it.right.is_none() && {
                let function = &self.tree.functions[it.left[0].function as usize];
                self.graph.touches_whole(function, right)
            };
        for (i, way) in Way::ALL.into_iter().enumerate() {
            if !it.left.iter().all(|side| side.kinds.meets(way.mask())) {
                continue;
            }
            if is_neutral && !outcome.met[i].contains(&true) {
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

    fn keep(&self, left: &[Variable], right: Variable, tally: &Tally, rules: &mut Vec<Rule>) {
        for (i, left_way) in Way::ALL.into_iter().enumerate() {
            for (j, right_way) in Way::ALL.into_iter().enumerate() {
                let (support, direct) = (tally.support[i][j], tally.direct[i][j]);
                if support < self.options.min_support || direct < self.options.min_direct_support {
                    continue;
                }
                let rule = Rule {
                    left: left.iter().map(|it| (left_way, *it)).collect(),
                    right: (right_way, right),
                    support,
                    direct,
                    left_support: tally.left[i],
                    same_object: tally.same_object[i][j],
                };
                if rule.confidence() >= self.options.min_confidence {
                    rules.push(rule);
                }
            }
        }
    }
}

/// Walks up a list of occurrences together with another list.
struct Cursor<'a>(&'a [Occurrence]);

impl<'a> Cursor<'a> {
    /// The occurrence in `function`; functions are asked for in ascending order.
    fn advance(&mut self, function: u32) -> Option<&'a Occurrence> {
        while let [first, rest @ ..] = self.0 {
            if first.function >= function {
                return (first.function == function).then_some(first);
            }
            self.0 = rest;
        }
        None
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
