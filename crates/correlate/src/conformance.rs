//! **Where a function stands** on a rule: it obeys it, breaks it, or is excused.
//!
//! This is the one computation behind all that is said of a rule: its counts, its violators, the
//! findings and what `--explain` lists. For a rule `write(x) => …` a function that lacks the right side
//! may be excused, by what it does itself (it assigns the whole struct) or by what those around it do (a
//! caller takes care of it; "around" are two levels of callees and of callers). But a helper that
//! everybody calls excuses nobody: where the functions with the same excuse access `y` themselves all
//! the same, the excuse is void for that rule. The test is the rule itself, counted among those
//! functions alone. Zeroing is such an excuse: where those that zero the struct set `y` as well, zero
//! means "not yet set".

use crate::access::{Access, Call, Kind, Owner};
use crate::graph::{Entry, FunctionId, Graph, Variable};
use crate::judge::{Outcome, together};
use crate::library;
use crate::occurrences::{Occurrence, Occurrences};
pub use crate::reason::Reason;
use crate::rules::{MOST_LEFT, Options, Rule, Way};
use crate::tree::Tree;
use std::cell::OnceCell;

/// A linked tree and how to count over it.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub tree: &'a Tree,
    pub graph: &'a Graph,
    pub occurrences: &'a Occurrences,
    pub options: &'a Options,
}

/// Where a function with the left side of a rule stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conformance {
    /// Both sides are together; `direct` if both accesses are its own.
    Obeys {
        /// Whether both accesses are the function's own.
        direct: bool,
    },
    /// It lacks the right side for a reason.
    Excused(Reason),
    /// It lacks the right side.
    Breaks,
}

/// What one function with the left side of a rule does about the right side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The function.
    pub function: FunctionId,
    /// Line of the left access.
    pub left_line: u32,
    /// Line of the right access, if it obeys.
    pub right_line: Option<u32>,
    /// Where it stands.
    pub conformance: Conformance,
    /// Line of a write that lacks the right side, although another one in the function has it: a write to
    /// another object, or in an alternative branch.
    pub alone: Option<u32>,
}

impl Site {
    /// Whether it counts among the functions with the left side.
    pub fn is_counted(&self) -> bool {
        !matches!(self.conformance, Conformance::Excused(reason) if !reason.is_counted())
    }
}

impl<'a> Context<'a> {
    /// What a function makes of the nine forms of a rule, from its entries of both sides.
    pub fn outcome(
        &self,
        function: FunctionId,
        left: &[&[Entry]],
        right: (Variable, &[Entry]),
    ) -> Outcome {
        let owner = left.first().and_then(|side| side.first());
        let owner = owner.map_or(0, |entry| self.graph.struct_number(entry.variable));
        let facts = &self.tree.functions[function as usize];
        let mut outcome = together(facts, left, owner, right.1, self.options.max_distance);
        if outcome.neutral.is_none() && right.1.is_empty() {
            let how = self.graph.touches_whole(self.tree, function, right.0);
            outcome.neutral = how.map(Reason::of_whole);
        }
        outcome
    }

    /// Counts a rule anew; what it said about counts before does not matter.
    pub fn recount(&self, rule: &mut Rule) {
        let sites = Census::new(*self, rule).sites();
        let count = |wanted: &dyn Fn(&Site) -> bool| sites.iter().filter(|it| wanted(it)).count();
        rule.left_support = count(&Site::is_counted) as u32;
        rule.support = count(&|it| matches!(it.conformance, Conformance::Obeys { .. })) as u32;
        rule.direct = count(&|it| it.conformance == Conformance::Obeys { direct: true }) as u32;
    }
}

/// The functions with the left side of one rule.
pub(crate) struct Census<'a> {
    context: Context<'a>,
    left: Vec<Variable>,
    right: Variable,
    ways: (Way, Way),
    void: OnceCell<Vec<Reason>>,
}

impl<'a> Census<'a> {
    pub fn new(context: Context<'a>, rule: &Rule) -> Self {
        Self {
            context,
            left: rule.left.iter().map(|(_, variable)| *variable).collect(),
            right: rule.right.1,
            ways: (rule.left[0].0, rule.right.0),
            void: OnceCell::new(),
        }
    }

    /// Every function with the left side, in file order.
    pub fn sites(&self) -> Vec<Site> {
        let first = self.context.occurrences.all(self.left[0]);
        first.iter().filter_map(|occurrence| self.site(occurrence)).collect()
    }

    fn site(&self, first: &Occurrence) -> Option<Site> {
        let graph = self.context.graph;
        let function = first.function;
        let mask = self.ways.0.mask();
        let mut sides = [&[][..]; MOST_LEFT];
        for (side, variable) in sides.iter_mut().zip(&self.left) {
            *side = graph.entries(function, *variable);
            if !side.iter().any(|entry| entry.kind.meets(mask)) {
                return None;
            }
        }
        let sides = &sides[..self.left.len()];
        let right = graph.entries(function, self.right);
        let outcome = self.context.outcome(function, sides, (self.right, right));
        let conformance = self.conformance(function, &outcome);
        let (left_line, right_line) = self.lines(sides[0], right, conformance);
        let is_direct = conformance == Conformance::Obeys { direct: true };
        let is_update = self.ways == (Way::Write, Way::Write) && self.left.len() == 1;
        let owner = |variable| graph.struct_number(variable);
        let is_update =
            is_update && owner(self.right) != 0 && owner(self.right) == owner(self.left[0]);
        let alone = if is_direct && is_update { self.alone(function, right) } else { None };
        Some(Site { function, left_line, right_line, conformance, alone })
    }

    /// The line of the first write of a function that obeys for which no access of the right side can be
    /// meant: it is in an alternative branch, or to another object that has a write of its own.
    fn alone(&self, function: FunctionId, right: &[Entry]) -> Option<u32> {
        let facts = &self.context.tree.functions[function as usize];
        let writes: Vec<&Access> = self.own_writes(function).collect();
        if writes.len() < 2 {
            return None;
        }
        let has_write = |base: u32| writes.iter().any(|it| it.base == base);
        let is_meant = |write: &Access, it: &Entry| {
            let is_other =
                it.via == 0 && !facts.may_be_one(it.base, write.base) && has_write(it.base);
            !is_other && !facts.are_alternatives(write.place(), (it.statement, it.branch))
        };
        let is_alone = |write: &&&Access| {
            !right.iter().any(|it| is_meant(write, it))
                && !Reason::OF_A_WRITE.iter().any(|reason| {
                    self.has_at(function, std::slice::from_ref(*write), *reason)
                        && !self.is_void(*reason)
                })
        };
        writes.iter().find(is_alone).map(|write| write.line)
    }

    fn conformance(&self, function: FunctionId, outcome: &Outcome) -> Conformance {
        let (i, j) = (self.ways.0 as usize, self.ways.1 as usize);
        let breakable = self.ways.0 == Way::Write;
        if outcome.met[i][j] {
            let direct = outcome.direct[i][j];
            let by_helper = breakable
                && !direct
                && self.writes_itself(function)
                && !self.context.graph.accesses_directly(function, self.right)
                && self.is_void(Reason::Callees);
            return if by_helper { self.excuse(function) } else { Conformance::Obeys { direct } };
        }
        match outcome.neutral.filter(|_| !outcome.met[i].contains(&true)) {
            Some(reason) if !(breakable && self.is_void(reason)) => Conformance::Excused(reason),
            _ if breakable => self.excuse(function),
            _ => Conformance::Breaks,
        }
    }

    /// The lines of the nearest pair of accesses, or of the first left access alone.
    fn lines(
        &self,
        left: &[Entry],
        right: &[Entry],
        conformance: Conformance,
    ) -> (u32, Option<u32>) {
        let first = left.iter().filter(|it| it.kind.meets(self.ways.0.mask()));
        let obeys = matches!(conformance, Conformance::Obeys { .. });
        let near = first
            .clone()
            .flat_map(|a| {
                let right = right.iter().filter(|it| it.kind.meets(self.ways.1.mask()));
                right.map(move |b| (a, b))
            })
            .filter(|(a, b)| a.via == 0 || a.via != b.via)
            .min_by_key(|(a, b)| a.statement.abs_diff(b.statement))
            .filter(|_| obeys);
        // Its own access says more than a call that makes one.
        let alone = || {
            let own = first.clone().find(|it| it.via == 0);
            own.or_else(|| first.clone().next()).map_or(0, |it| it.line)
        };
        near.map_or_else(|| (alone(), None), |(a, b)| (a.line, Some(b.line)))
    }

    /// Where a function stands that has the left side of a `write` rule and not the right side.
    fn excuse(&self, function: FunctionId) -> Conformance {
        let counts = |reason: &Reason| self.has(function, *reason) && !self.is_void(*reason);
        match Reason::ORDER.into_iter().find(counts) {
            Some(Reason::Indirect) if self.is_inherited(function) => {
                Conformance::Excused(Reason::Copied)
            }
            reason => reason.map_or(Conformance::Breaks, Conformance::Excused),
        }
    }

    /// Whether the functions that bring up the left side have the right side, too, one call further down.
    fn is_inherited(&self, function: FunctionId) -> bool {
        let graph = self.context.graph;
        let left = graph.entries(function, self.left[0]).iter().filter(|it| it.via != 0);
        let mask = self.ways.1.mask();
        let obeys = |callee: FunctionId| {
            graph.entries(callee, self.right).iter().any(|it| it.kind.meets(mask))
        };
        left.clone().next().is_some() && left.clone().all(|it| obeys(it.via - 1))
    }

    fn has(&self, function: FunctionId, reason: Reason) -> bool {
        let writes: Vec<&Access> = self.own_writes(function).collect();
        self.has_at(function, &writes, reason)
    }

    /// Whether a function has an excuse for these of its writes.
    fn has_at(&self, function: FunctionId, writes: &[&Access], reason: Reason) -> bool {
        let Context { tree, graph, .. } = self.context;
        let facts = &tree.functions[function as usize];
        let direct = |it: &FunctionId| graph.accesses_directly(*it, self.right);
        match reason {
            Reason::Copied | Reason::Alternatives => false,
            Reason::Zeroed | Reason::Assigned | Reason::Freed => {
                let all = self.left.iter().chain([&self.right]);
                all.filter_map(|it| graph.touches_whole(tree, function, *it))
                    .any(|how| Reason::of_whole(how) == reason)
            }
            Reason::Variant => self.sets_variant(function),
            Reason::Setter => facts.is_setter(),
            Reason::Restores => writes.iter().any(|write| write.is_restored),
            Reason::SetByCallee => self.is_set(function, writes, Surroundings::Callees),
            Reason::SetByCallers => self.is_set(function, writes, Surroundings::Callers),
            Reason::Indirect => !self.writes_itself(function),
            Reason::Checks => self.ways.1 == Way::Write && self.accesses_near(function),
            Reason::Far => direct(&function),
            Reason::Part => facts.parts.contains(&graph.variables[self.right.0 as usize]),
            Reason::Macro => facts.is_macro,
            Reason::Dead => writes.iter().all(|write| write.is_dead),
            // The fields of a member are one value: who reads one of them elsewhere sets none.
            Reason::Callees | Reason::Callers if self.are_of_one_member() => false,
            // An access set holds one level of callees, so that of a callee reaches the second.
            Reason::Callees => graph.callees[function as usize]
                .iter()
                .any(|it| *it != function && !graph.entries(*it, self.right).is_empty()),
            Reason::Callers => {
                let callers = &graph.callers[function as usize];
                callers.iter().any(direct)
                    || callers.iter().any(|it| graph.callers[*it as usize].iter().any(direct))
            }
        }
    }

    /// Whether the functions with an excuse obey the rule by their own accesses all the same.
    fn is_void(&self, reason: Reason) -> bool {
        let void = self.void.get_or_init(|| {
            Reason::VOIDABLE.into_iter().filter(|it| self.is_void_by_count(*it)).collect()
        });
        reason.can_be_void() && void.contains(&reason)
    }

    fn is_void_by_count(&self, reason: Reason) -> bool {
        let (mut obey, mut all) = (0, 0);
        for occurrence in self.context.occurrences.all(self.left[0]) {
            let function = occurrence.function;
            if self.writes_itself(function) && self.has(function, reason) {
                all += 1;
                obey += u32::from(self.context.graph.accesses_directly(function, self.right));
            }
        }
        let options = self.context.options;
        obey >= options.min_direct_support
            && f64::from(obey) >= options.min_confidence * f64::from(all)
    }

    /// Whether the function writes a variable that shares its memory with the right side.
    fn sets_variant(&self, function: FunctionId) -> bool {
        let Context { tree, graph, .. } = self.context;
        let (owner, field) = graph.variables[self.right.0 as usize];
        let accesses = tree.functions[function as usize].accesses.iter();
        let mut writes = accesses.filter(|it| it.kind.meets(Kind::WRITE));
        writes.any(|it| match (owner, it.owner) {
            (Owner::Struct(id), Owner::Struct(other)) => {
                tree.types.are_variants(&tree.names, (id, field), (other, it.field))
            }
            (Owner::Opaque(tag), Owner::Opaque(other)) if tag == other => {
                let text = |name| tree.names.text(name);
                library::are_variants(text(tag), text(field), text(it.field))
            }
            _ => false,
        })
    }

    /// Whether the right side is set, around a function, in an object that it writes the left side of.
    fn is_set(&self, function: FunctionId, writes: &[&Access], by: Surroundings) -> bool {
        let mut bases: Vec<_> = writes.iter().map(|write| write.base).collect();
        bases.sort_unstable();
        bases.dedup();
        let around = Around { context: self.context, variable: self.right };
        let is_part = self.is_in_part();
        bases.into_iter().filter(|base| *base != 0).any(|base| match by {
            Surroundings::Callees if is_part => around.is_set_in_any(function),
            Surroundings::Callees => around.is_set_by_callee(function, base),
            Surroundings::Callers => around.is_set_by_callers(function, base, 0),
        })
    }

    /// Whether both sides are fields of one member of a struct.
    fn are_of_one_member(&self) -> bool {
        let owner = |variable: Variable| self.context.graph.variables[variable.0 as usize].0;
        matches!(owner(self.right), Owner::Member(_)) && owner(self.left[0]) == owner(self.right)
    }

    /// Whether the right side is in a struct that the one of the left side holds.
    fn is_in_part(&self) -> bool {
        let Context { tree, graph, .. } = self.context;
        let owner = |variable: Variable| match graph.variables[variable.0 as usize].0 {
            Owner::Struct(id) => Some(id),
            _ => None,
        };
        let (Some(whole), Some(part)) = (owner(self.left[0]), owner(self.right)) else {
            return false;
        };
        whole != part && tree.types.with_parts(whole).contains(&part)
    }

    /// Whether the function makes the writes of the left side itself.
    fn writes_itself(&self, function: FunctionId) -> bool {
        let own = |it: &Entry| it.via == 0 && it.kind.meets(Kind::WRITE);
        let graph = self.context.graph;
        self.left.iter().all(|it| graph.entries(function, *it).iter().any(own))
    }

    /// Whether the right side is accessed in any way near the left side.
    fn accesses_near(&self, function: FunctionId) -> bool {
        let graph = self.context.graph;
        let left = graph.entries(function, self.left[0]);
        let right = graph.entries(function, self.right);
        let outcome = self.context.outcome(function, &[left], (self.right, right));
        outcome.met[Way::Write as usize][Way::Any as usize]
            && graph.accesses_directly(function, self.right)
    }

    /// The function's own writes to the first variable of the left side.
    fn own_writes(&self, function: FunctionId) -> impl Iterator<Item = &'a Access> {
        writes(self.context, function, self.left[0])
    }
}

enum Surroundings {
    Callees,
    Callers,
}

/// Who sets a variable in an object around a function.
struct Around<'a> {
    context: Context<'a>,
    variable: Variable,
}

impl<'a> Around<'a> {
    /// The calls of a function, and what they lead to.
    fn calls(&self, function: FunctionId) -> impl Iterator<Item = (&'a Call, FunctionId)> {
        let calls = self.context.tree.functions[function as usize].calls.iter();
        let links = &self.context.graph.links[function as usize];
        calls.zip(links).filter_map(|(call, callee)| Some((call, (*callee)?)))
    }

    /// Whether a callee sets the variable in whatever it is handed or returns.
    fn is_set_in_any(&self, function: FunctionId) -> bool {
        let objects = &self.context.graph.objects;
        let mut others = self.calls(function).filter(|(_, callee)| *callee != function);
        others.any(|(_, callee)| objects.sets_any(callee, self.variable))
    }

    fn is_set_by_callee(&self, function: FunctionId, base: u32) -> bool {
        let objects = &self.context.graph.objects;
        let mut others = self.calls(function).filter(|(_, callee)| *callee != function);
        others.any(|(call, callee)| objects.sets(call, callee, base, self.variable))
    }

    /// Whether every call of the function hands over an object whose variable the caller takes care
    /// of, by itself, by another call, or because its own callers do.
    fn is_set_by_callers(&self, function: FunctionId, base: u32, depth: usize) -> bool {
        const DEEPEST: usize = 2;
        let Context { tree, graph, .. } = self.context;
        let parameters = &tree.functions[function as usize].parameters;
        let Some(position) = parameters.iter().position(|it| *it == base) else { return false };
        let callers = &graph.callers[function as usize];
        let sets = |caller: FunctionId, call: &Call| {
            let Some(handed) = call.arguments.get(position).filter(|it| it.base != 0) else {
                return false;
            };
            let entries = graph.entries(caller, self.variable).iter();
            let mut own = entries.filter(|it| it.via == 0 && it.base == handed.base);
            own.any(|it| it.kind.meets(Kind::WRITE))
                || self.is_set_by_callee(caller, handed.base)
                || depth < DEEPEST && self.is_set_by_callers(caller, handed.base, depth + 1)
        };
        !callers.is_empty()
            && callers.iter().all(|caller| {
                let mut calls = self.calls(*caller).filter(|(_, callee)| *callee == function);
                calls.all(|(call, _)| sets(*caller, call))
            })
    }
}

/// The writes that a function makes itself to a variable.
pub(crate) fn writes<'a>(
    context: Context<'a>,
    function: FunctionId,
    variable: Variable,
) -> impl Iterator<Item = &'a Access> {
    let (owner, field) = context.graph.variables[variable.0 as usize];
    let accesses = context.tree.functions[function as usize].accesses.iter();
    accesses.filter(move |it| (it.owner, it.field) == (owner, field) && it.kind.meets(Kind::WRITE))
}
