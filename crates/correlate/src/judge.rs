//! Counts rules: in how many functions the left side stands, and in how many of them the right side
//! stands nearby.
//!
//! There are many more candidates than rules, so this is where the time of mining goes. Both sides
//! are sorted lists of functions that are merged; access sets are opened only for functions in both.

use crate::access::Function;
use crate::conformance::{Context, Reason};
use crate::graph::{Entry, Variable};
use crate::occurrences::Occurrence;
use crate::rules::{MOST_LEFT, Options, Rule, Way};

/// Counts the candidates of one tree. These counts only say which candidates are worth a closer look:
/// of those that pass, `conformance` counts what reports say.
pub(crate) struct Judge<'a> {
    pub context: Context<'a>,
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
        let left = self.context.occurrences.of(x).iter().map(std::slice::from_ref);
        self.judge(&[x], left, y, rules);
    }

    /// Functions that have all these variables, with the occurrences of each.
    pub fn all_of(&self, left: &[Variable]) -> Vec<Vec<Occurrence>> {
        let [first, others @ ..] = left else { return Vec::new() };
        let of = |variable: &Variable| self.context.occurrences.of(*variable);
        let mut cursors: Vec<_> = others.iter().map(|it| Cursor(of(it))).collect();
        let in_all = |one: &Occurrence| {
            let rest = cursors.iter_mut().map(|cursor| cursor.advance(one.function).copied());
            std::iter::once(Some(*one)).chain(rest).collect::<Option<Vec<_>>>()
        };
        of(first).iter().filter_map(in_all).collect()
    }

    /// Adds the rules `x & y => z` that meet the thresholds; `all` is where the left side is.
    pub fn several(
        &self,
        left: &[Variable],
        all: &[Vec<Occurrence>],
        right: Variable,
        rules: &mut Vec<Rule>,
    ) {
        self.judge(left, all.iter().map(Vec::as_slice), right, rules);
    }

    fn judge<'l>(
        &self,
        left: &[Variable],
        occurrences: impl Iterator<Item = &'l [Occurrence]>,
        right: Variable,
        rules: &mut Vec<Rule>,
    ) {
        let mut cursor = Cursor(self.context.occurrences.of(right));
        let matches: Vec<Match> = occurrences
            .map(|left| Match { left, right: cursor.advance(left[0].function) })
            .collect();
        let most = matches.iter().filter(|it| it.right.is_some()).count();
        if most < self.context.options.min_support as usize {
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
        let graph = self.context.graph;
        let mut sides = [&[][..]; MOST_LEFT];
        for (side, occurrence) in sides.iter_mut().zip(it.left) {
            *side = occurrence.entries(graph);
        }
        let entries = it.right.map_or(&[][..], |found| found.entries(graph));
        let function = it.left[0].function;
        let outcome = self.context.outcome(function, &sides[..it.left.len()], (right, entries));
        for (i, way) in Way::ALL.into_iter().enumerate() {
            if !it.left.iter().all(|side| side.kinds.meets(way.mask())) {
                continue;
            }
            if outcome.neutral.is_some() && !outcome.met[i].contains(&true) {
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

    /// What a candidate must meet. Of the functions with the left side of an update some will turn out
    /// not to count, so its confidence may still rise.
    fn floor(&self, left: Way) -> Options {
        const RISE: f64 = 0.75;
        let options = *self.context.options;
        let rise = if left == Way::Write { RISE } else { 1.0 };
        Options { min_confidence: options.min_confidence * rise, ..options }
    }

    fn keep(&self, left: &[Variable], right: Variable, tally: &Tally, rules: &mut Vec<Rule>) {
        for (i, left_way) in Way::ALL.into_iter().enumerate() {
            for (j, right_way) in Way::ALL.into_iter().enumerate() {
                let (support, direct) = (tally.support[i][j], tally.direct[i][j]);
                let rule = Rule {
                    support,
                    direct,
                    left_support: tally.left[i],
                    same_object: tally.same_object[i][j],
                    ..Rule::uncounted(
                        left.iter().map(|it| (left_way, *it)).collect(),
                        (right_way, right),
                    )
                };
                if rule.meets(&self.floor(left_way)) {
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
    /// Why the function says nothing about the rule in the forms that it does not obey.
    pub neutral: Option<Reason>,
}

/// Which accesses of the right side are together with the left side: near enough, and not in branches of
/// which only one is executed. `owner` is the struct of the first variable on the left.
pub(crate) fn together(
    function: &Function,
    left: &[&[Entry]],
    owner: u32,
    right: &[Entry],
    max_distance: u32,
) -> Outcome {
    let mut outcome = Outcome::default();
    let near = |a: &Entry, b: &Entry| a.statement.abs_diff(b.statement) <= max_distance;
    let are_alternatives = |a: &Entry, b: &Entry| {
        function.are_alternatives((a.statement, a.branch), (b.statement, b.branch))
    };
    let [first, others @ ..] = left else { return outcome };
    for a in *first {
        if !others.iter().all(|side| side.iter().any(|b| near(a, b))) {
            continue;
        }
        // That `a->b->c` goes through `b` says nothing about `b` and `c`.
        let is_path =
            |b: &Entry| b.step != 0 && (b.step == owner || b.end == owner || b.chain == a.chain);
        for b in right.iter().filter(|b| near(a, b) && !is_path(b)) {
            if a.via != 0 && a.via == b.via {
                outcome.neutral = Some(Reason::Copied);
                continue;
            }
            if are_alternatives(a, b) {
                outcome.neutral = outcome.neutral.or(Some(Reason::Alternatives));
                continue;
            }
            note(&mut outcome, a, b);
        }
    }
    outcome
}

fn note(outcome: &mut Outcome, a: &Entry, b: &Entry) {
    let direct = a.via == 0 && b.via == 0;
    // There is only one of a global: that both are in it says nothing.
    let same_object = direct && a.base == b.base && !a.is_global;
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
