//! Rules that cannot hold at an **ordinary** allocation or release, which nearly all of them are: a
//! modest size is asked for; a live block is freed by its own family, at its beginning.
//!
//! A condition that looks at nothing which differs from one ordinary release to the next has the same
//! answer at all of them, so one made-up release answers for all. Detectors then evaluate nothing at an
//! ordinary release, and screens need not even hear of it.

use super::evaluate::{Truth, witnesses};
use super::model::{
    Condition, EventKind, EventMatch, Function, Match, Point, Quantifier, REGION_HEAP, Relation,
    Rule, Set, Term,
};
use super::state::{Answer, BlockFacts, BlockId, Pointer, State, TraceEvent, Value, Visit};

pub use events::plan::ORDINARY_SIZES as SIZES;

/// Whether a rule certainly fails at everything that is ordinary at its detection point. Only rules
/// about allocations and releases do.
#[must_use]
pub fn fails(rule: &Rule) -> bool {
    match rule.point {
        Point::Free => {
            looks_at_standing_only(&rule.condition)
                && fails_with(rule, Value::Pointer(MADE_UP_POINTER))
        }
        Point::Malloc => {
            let size = |size: u64| Value::Number(i128::from(size));
            tells_sizes_apart(&rule.condition) == Some(false)
                && fails_with(rule, size(*SIZES.start()))
                && fails_with(rule, size(*SIZES.end()))
        }
        _ => false,
    }
}

/// Whether a condition asks for nothing that happened before.
#[must_use]
pub fn looks_at_now(condition: &Condition) -> bool {
    match condition {
        Condition::And(all) | Condition::Or(all) => all.iter().all(looks_at_now),
        Condition::Not(inner) => looks_at_now(inner),
        Condition::Compare(..) => true,
        Condition::OverSet(..) | Condition::OverTrace(..) | Condition::FindLast(_) => false,
    }
}

fn fails_with(rule: &Rule, value: Value) -> bool {
    witnesses(rule, &[value], &MadeUp).0 == Truth::Fails
}

/// The pointer that is freed, or the size that is asked for.
const SUBJECT: Term = Term::Variable(0);

/// Whether the condition asks only what is the same at all ordinary releases: whether the block was
/// allocated or freed before, whether the pointer is its beginning, whose it is.
fn looks_at_standing_only(condition: &Condition) -> bool {
    match condition {
        Condition::And(all) | Condition::Or(all) => all.iter().all(looks_at_standing_only),
        Condition::Not(inner) => looks_at_standing_only(inner),
        Condition::Compare(left, Relation::Equal | Relation::NotEqual, right) => {
            let both = |known: fn(&Term) -> bool| known(left) && known(right);
            both(is_beginning) || both(is_family) || both(is_block)
        }
        Condition::OverTrace(Quantifier::Exists, event, body) => {
            is_about_the_block(event) && looks_at_standing_only(body)
        }
        _ => false,
    }
}

fn applied(term: &Term, function: Function) -> bool {
    matches!(term, Term::Apply(applied, inner) if *applied == function && **inner == SUBJECT)
}

fn is_beginning(term: &Term) -> bool {
    *term == SUBJECT || applied(term, Function::Begin)
}

fn is_family(term: &Term) -> bool {
    applied(term, Function::Family) || applied(term, Function::Releaser)
}

fn is_block(term: &Term) -> bool {
    applied(term, Function::Bid) || matches!(term, Term::Variable(slot) if *slot > 0)
}

/// Events of the freed block, whenever and of whatever size.
fn is_about_the_block(event: &EventMatch) -> bool {
    let heap = matches!(event.kind, EventKind::Malloc | EventKind::Free);
    let keyed = event.key.as_ref().is_some_and(|key| applied(key, Function::Bid));
    // A free event there is none of, so what it would be compared with does not matter.
    let first = event.arguments.first();
    let any_size = event.kind == EventKind::Free || first.is_none_or(|one| *one == Match::Any);
    let terms = event.arguments.iter().any(|argument| matches!(argument, Match::Term(_)));
    heap && keyed && any_size && !terms && event.time == Match::Any
}

/// Whether some ordinary sizes may be told from others; nothing if something else is asked.
fn tells_sizes_apart(condition: &Condition) -> Option<bool> {
    match condition {
        Condition::And(all) | Condition::Or(all) => {
            all.iter().try_fold(false, |apart, one| Some(apart | tells_sizes_apart(one)?))
        }
        Condition::Not(inner) => tells_sizes_apart(inner),
        Condition::Compare(left, relation, right) => {
            let at = |size: u64| {
                let value = |term: &Term| match term {
                    &SUBJECT => Some(i128::from(size)),
                    Term::Number(number) => Some(i128::from(*number)),
                    _ => None,
                };
                Some(relation.holds(value(left)?, value(right)?))
            };
            // In between, an order holds where it does at both ends; equality need not.
            let ends = at(*SIZES.start())? != at(*SIZES.end())?;
            let between = [left, right].into_iter().any(
                |term| matches!(term, Term::Number(number) if SIZES.contains(&(*number as u64))),
            );
            let equality = matches!(relation, Relation::Equal | Relation::NotEqual);
            Some(ends || equality && between)
        }
        _ => None,
    }
}

/// An ordinary release: one live block, freed by its own family at its beginning.
struct MadeUp;

const MADE_UP_BLOCK: BlockId = BlockId(1);
const MADE_UP_ADDRESS: u64 = 1 << 20;
const MADE_UP_FAMILY: base::allocator::Family = 1;
const MADE_UP_POINTER: Pointer = Pointer { address: MADE_UP_ADDRESS, block: Some(MADE_UP_BLOCK) };

impl State for MadeUp {
    fn facts(&self, block: BlockId) -> Option<BlockFacts> {
        (block == MADE_UP_BLOCK).then_some(BlockFacts {
            begin: MADE_UP_ADDRESS,
            size: 1,
            time: 0,
            family: MADE_UP_FAMILY,
            region: REGION_HEAP,
        })
    }

    fn contents(&self, _: u64, _: u64) -> Answer<i128> {
        Answer::NotKnown
    }

    fn width(&self) -> u64 {
        0
    }

    fn releaser(&self) -> base::allocator::Family {
        MADE_UP_FAMILY
    }

    fn each(&self, _: Set, _: Option<&Value>, _: &mut dyn FnMut(Value) -> Visit) {}

    fn events(
        &self,
        kind: EventKind,
        _: Option<&Value>,
        _: bool,
        visit: &mut dyn FnMut(&TraceEvent) -> Visit,
    ) {
        if kind == EventKind::Malloc {
            let arguments = vec![Value::Number(1), Value::Block(MADE_UP_BLOCK)];
            visit(&TraceEvent { time: 0, arguments });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::language;
    use crate::rules::shipped;
    use spec::Source;

    fn of(condition: &str, point: &str) -> bool {
        let text = format!(
            "define Allocated(r) = exists event(_, malloc, _, bid) in Trace such that (bid == Bid(r))\n\
             define Freed(r, r1) = exists event(_, free, r1, bid) in Trace such that (bid == Bid(r))\n\
             [rule] \"a rule\"\n    detect <Heap; Trace; {point}>: {condition} : VPC(r)\n"
        );
        let text = if point.starts_with("malloc") { text.replace(" : VPC(r)", "") } else { text };
        let rules = language::read(&Source::new("test.rule", text)).expect("a rule");
        fails(rules.first().expect("one"))
    }

    #[test]
    fn the_shipped_rules_about_allocations_need_nothing_ordinary() {
        let ordinary = |name: &str| {
            let rule = shipped::rules().into_iter().find(|rule| rule.name == name);
            fails(&rule.expect("shipped"))
        };
        for name in ["double-free", "unmatched-free", "mismatched-free", "bad-size"] {
            assert!(ordinary(name), "{name}");
        }
        for name in ["null-pointer", "heap-overflow", "definite-leak", "overlapping-copy"] {
            assert!(!ordinary(name), "{name}");
        }
    }

    #[test]
    fn what_differs_from_one_release_to_the_next_is_evaluated_each_time() {
        for condition in [
            "Allocated(r)",
            "Size(r) > 1000",
            "Time(r) == 5",
            "Idx(r) > 0",
            "Family(r) == 2",
            "r == NULL",
            "exists event(_, malloc, n, bid) in Trace such that (bid == Bid(r) && n > 9)",
            "exists b in Heap such that (b != Bid(r))",
        ] {
            assert!(!of(condition, "free r"), "{condition}");
        }
        assert!(of("Freed(r, _)", "free r"));
        assert!(of("!Allocated(r) || Begin(r) != r", "free r"));
    }

    #[test]
    fn sizes_are_ordinary_if_the_rule_does_not_tell_them_apart() {
        assert!(of("n > 70368744177664", "malloc n"));
        assert!(of("n < 0 || 70368744177665 == n", "malloc n"));
        assert!(!of("n == 70368744177664", "malloc n"));
        assert!(!of("n > 1000000", "malloc n"));
        assert!(!of("5 > n", "malloc n"));
        assert!(!of("n < 80000000000000", "malloc n"));
        assert!(!of("n & 1 == 1", "malloc n"));
    }
}
