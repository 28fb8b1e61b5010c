//! What must be observed for a rule to be checked. A rule that needs only allocations costs only
//! those.

use super::model::{
    Condition, EventKind, EventMatch, Function, Match, Point, Rule, Set, Term, Type, Variable,
};
use std::collections::BTreeSet;

/// What a set of rules needs to see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Calls that allocate and free.
    pub allocations: bool,
    /// Every access to memory.
    pub accesses: bool,
    /// Which block each pointer was made from: every instruction.
    pub pointers: bool,
    /// System calls that make, use and close descriptors.
    pub descriptors: bool,
    /// Contents of memory.
    pub contents: bool,
    /// Whether memory was ever written.
    pub writes: bool,
    /// The chains of values that are no pointers: every instruction.
    pub numbers: bool,
    /// Functions whose calls and returns are looked at.
    pub functions: BTreeSet<String>,
}

/// Whether what a rule says of a moment follows from what led to that pointer or call alone, so that a
/// part of the run may be enough to decide it.
#[must_use]
pub fn is_local(rule: &Rule) -> bool {
    let needs = Needs::of(rule);
    let here = matches!(rule.point, Point::Deref { .. } | Point::Free | Point::Malloc);
    let more = needs.descriptors || needs.contents || !needs.functions.is_empty();
    here && !more && !is_over_all(&rule.condition)
}

/// Whether a condition is about all blocks or all pointers.
fn is_over_all(condition: &Condition) -> bool {
    match condition {
        Condition::And(all) | Condition::Or(all) => all.iter().any(is_over_all),
        Condition::Not(inner) => is_over_all(inner),
        Condition::OverSet(..) => true,
        Condition::OverTrace(_, _, body) => is_over_all(body),
        Condition::Compare(..) | Condition::FindLast(_) => false,
    }
}

impl Needs {
    /// What a rule needs.
    #[must_use]
    pub fn of(rule: &Rule) -> Self {
        let mut needs = Self::default();
        match &rule.point {
            Point::Deref { .. } => needs.accesses = true,
            Point::Free | Point::Malloc => needs.allocations = true,
            Point::Call(name) | Point::Return(name) => {
                needs.functions.insert(name.clone());
            }
            Point::Use | Point::Close => needs.descriptors = true,
            Point::Exit => {}
        }
        needs.condition(&rule.condition, &rule.variables);
        // The block of a pointer that is freed follows from its address: a live block begins
        // there, or the last one that did is freed.
        needs.pointers &= needs.accesses || !matches!(rule.point, Point::Free);
        needs.allocations |= needs.pointers;
        // What a function is given and what it returns may be any value.
        needs.numbers =
            matches!(rule.point, Point::Call(_) | Point::Return(_)) && !rule.locators.is_empty();
        needs.pointers |= needs.numbers;
        needs
    }

    /// What both need.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.allocations |= other.allocations;
        self.accesses |= other.accesses;
        self.pointers |= other.pointers;
        self.descriptors |= other.descriptors;
        self.contents |= other.contents;
        self.writes |= other.writes;
        self.numbers |= other.numbers;
        self.functions.extend(other.functions);
        self
    }

    fn condition(&mut self, condition: &Condition, variables: &[Variable]) {
        match condition {
            Condition::And(all) | Condition::Or(all) => {
                all.iter().for_each(|one| self.condition(one, variables));
            }
            Condition::Not(inner) => self.condition(inner, variables),
            Condition::Compare(left, _, right) => {
                self.term(left, variables);
                self.term(right, variables);
            }
            Condition::OverSet(_, _, set, _, body) => {
                match set {
                    Set::Heap | Set::Freed => self.allocations = true,
                    Set::Pointers => self.pointers = true,
                    Set::Descriptors => self.descriptors = true,
                }
                self.condition(body, variables);
            }
            Condition::OverTrace(_, event, body) => {
                self.event(event, variables);
                self.condition(body, variables);
            }
            Condition::FindLast(event) => self.event(event, variables),
        }
    }

    fn event(&mut self, event: &EventMatch, variables: &[Variable]) {
        match event.kind {
            EventKind::Write => (self.accesses, self.writes) = (true, true),
            EventKind::Malloc | EventKind::Free => self.allocations = true,
            EventKind::Open | EventKind::Close => self.descriptors = true,
            EventKind::Call | EventKind::Return => {
                if let Some(Match::Term(Term::Name(name))) = event.arguments.first() {
                    self.functions.insert(name.clone());
                }
            }
        }
        if let Some(key) = &event.key {
            self.term(key, variables);
        }
    }

    fn term(&mut self, term: &Term, variables: &[Variable]) {
        match term {
            Term::Apply(function, inner) => {
                let of_block = matches!(**inner, Term::Variable(slot)
                    if variables.get(slot).is_some_and(|variable| variable.kind == Type::Block));
                match function {
                    Function::Value | Function::Block => self.contents = true,
                    Function::Width | Function::Releaser => {}
                    _ if of_block => self.allocations = true,
                    _ => self.pointers = true,
                }
                self.term(inner, variables);
            }
            Term::Arithmetic(left, _, right) => {
                self.term(left, variables);
                self.term(right, variables);
            }
            Term::Variable(_) | Term::Number(_) | Term::Null | Term::Name(_) => {}
        }
    }
}
