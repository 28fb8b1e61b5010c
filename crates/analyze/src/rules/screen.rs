//! In which situations of an access a rule can hold at all.
//!
//! Nearly every access is an ordinary one: inside the live block that its pointer was made from.
//! For each of a few [`Situation`]s the condition of a rule is evaluated with nothing known but the
//! situation; where it certainly fails, accesses of that situation need not be looked at. So a
//! detector classifies an access once and evaluates almost nothing.

use super::model::{
    Condition, EventKind, EventMatch, Function, Match, Operator, Point, Quantifier, REGION_ABSENT,
    REGION_HEAP, REGION_LEFT, REGION_SCOPE, Relation, Rule, Term,
};

/// What is known of the pointer of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointerState {
    /// It points into the page at zero.
    Null,
    /// No block is known for it.
    NoBlock,
    /// The whole access is inside its live block.
    Inside,
    /// Part of the access is outside its live block.
    Outside,
    /// Its block was freed.
    Freed,
}

impl PointerState {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Null, Self::NoBlock, Self::Inside, Self::Outside, Self::Freed];
}

/// What is known of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Situation {
    /// Of its pointer.
    pub pointer_state: PointerState,
    /// Whether every byte was written since the memory was there.
    pub written: bool,
}

/// A set of situations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Screen(u16);

impl Screen {
    /// The situations in which a rule at an access may hold. Empty for other rules.
    #[must_use]
    pub fn of(rule: &Rule) -> Self {
        let mut screen = Self::default();
        if !matches!(rule.point, Point::Deref { .. }) {
            return screen;
        }
        for pointer_state in PointerState::ALL {
            for written in [false, true] {
                let situation = Situation { pointer_state, written };
                if judge(&rule.condition, situation) != Some(false) {
                    screen.0 |= bit(situation);
                }
            }
        }
        screen
    }

    /// Whether the rule may hold in this situation.
    #[must_use]
    pub fn admits(self, situation: Situation) -> bool {
        self.0 & bit(situation) != 0
    }

    /// The situations of either.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether it matters if the bytes were written.
    #[must_use]
    pub fn looks_at_writes(self) -> bool {
        PointerState::ALL.iter().any(|&pointer_state| {
            let admits = |written| self.admits(Situation { pointer_state, written });
            admits(false) != admits(true)
        })
    }
}

fn bit(situation: Situation) -> u16 {
    1 << (situation.pointer_state as u16 * 2 + u16::from(situation.written))
}

/// Whether the condition holds in every access of the situation, in none, or in some.
fn judge(condition: &Condition, situation: Situation) -> Option<bool> {
    match condition {
        Condition::And(all) => {
            let judged: Vec<_> = all.iter().map(|one| judge(one, situation)).collect();
            if judged.contains(&Some(false)) {
                Some(false)
            } else {
                judged.iter().all(|one| *one == Some(true)).then_some(true)
            }
        }
        Condition::Or(all) => {
            let judged: Vec<_> = all.iter().map(|one| judge(one, situation)).collect();
            if judged.contains(&Some(true)) {
                Some(true)
            } else {
                judged.iter().all(|one| *one == Some(false)).then_some(false)
            }
        }
        Condition::Not(inner) => judge(inner, situation).map(|holds| !holds),
        Condition::Compare(left, relation, right) => compare(left, *relation, right, situation),
        Condition::OverTrace(Quantifier::Exists, event, _) => exists(event, situation),
        Condition::FindLast(event) => last_write(event, situation),
        Condition::OverTrace(..) | Condition::OverSet(..) => None,
    }
}

/// The pointer of the access is variable 0.
const ACCESS: Term = Term::Variable(0);

fn is_block_of_access(term: &Term) -> bool {
    matches!(term, Term::Apply(Function::Bid, inner) if **inner == ACCESS)
}

/// An event about the block of the access: only its absence is certain, as blocks of the stack and
/// global variables have none.
fn exists(event: &EventMatch, situation: Situation) -> Option<bool> {
    let absent = matches!(
        (event.kind, situation.pointer_state),
        (_, PointerState::Null | PointerState::NoBlock)
            | (EventKind::Free, PointerState::Inside | PointerState::Outside)
    );
    (absent && event.key.as_ref().is_some_and(is_block_of_access)).then_some(false)
}

fn last_write(event: &EventMatch, situation: Situation) -> Option<bool> {
    let rest = event.arguments.iter().skip(1);
    let plain = event.time == Match::Any && rest.clone().all(|one| *one == Match::Any);
    let of_access = event.arguments.first() == Some(&Match::Variable(0));
    (event.kind == EventKind::Write && of_access && plain).then_some(situation.written)
}

fn compare(left: &Term, relation: Relation, right: &Term, situation: Situation) -> Option<bool> {
    let null = matches!((left, right), (&ACCESS, Term::Null) | (Term::Null, &ACCESS));
    if null {
        let is_null = situation.pointer_state == PointerState::Null;
        return match relation {
            Relation::Equal => Some(is_null),
            Relation::NotEqual => Some(!is_null),
            _ => None,
        };
    }
    let blockless = matches!(situation.pointer_state, PointerState::Null | PointerState::NoBlock);
    if blockless && (asks_of_block(left) || asks_of_block(right)) {
        return Some(false);
    }
    if let (Term::Apply(Function::Region, _), Relation::Equal, Term::Number(region)) =
        (left, relation, right)
    {
        let freed = situation.pointer_state == PointerState::Freed;
        let left = matches!(*region, REGION_LEFT | REGION_SCOPE | REGION_ABSENT);
        return (left != freed && *region != REGION_HEAP).then_some(false);
    }
    if situation.pointer_state != PointerState::Inside {
        return None;
    }
    let difference = linear(left)?.minus(linear(right)?);
    let (low, high) = (difference.at_least(), difference.negated().at_least().map(|low| -low));
    match relation {
        Relation::Less => {
            decided(high.is_some_and(|high| high < 0), low.is_some_and(|low| low >= 0))
        }
        Relation::LessEqual => {
            decided(high.is_some_and(|high| high <= 0), low.is_some_and(|low| low > 0))
        }
        Relation::Greater => {
            decided(low.is_some_and(|low| low > 0), high.is_some_and(|high| high <= 0))
        }
        Relation::GreaterEqual => {
            decided(low.is_some_and(|low| low >= 0), high.is_some_and(|high| high < 0))
        }
        Relation::Equal | Relation::NotEqual => None,
    }
}

fn decided(holds: bool, fails: bool) -> Option<bool> {
    match (holds, fails) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

/// Whether the term is nothing for a pointer without a block.
fn asks_of_block(term: &Term) -> bool {
    match term {
        Term::Apply(Function::Value | Function::Width | Function::Releaser, _) => false,
        Term::Apply(_, inner) => **inner == ACCESS,
        Term::Arithmetic(left, _, right) => asks_of_block(left) || asks_of_block(right),
        _ => false,
    }
}

/// `r·pointer + b·Begin + e·End + w·Width + constant`
#[derive(Clone, Copy, Default)]
struct Linear {
    pointer: i64,
    begin: i64,
    end: i64,
    width: i64,
    constant: i64,
}

impl Linear {
    fn minus(self, other: Self) -> Self {
        self.plus(other.negated())
    }

    fn plus(self, other: Self) -> Self {
        Self {
            pointer: self.pointer.saturating_add(other.pointer),
            begin: self.begin.saturating_add(other.begin),
            end: self.end.saturating_add(other.end),
            width: self.width.saturating_add(other.width),
            constant: self.constant.saturating_add(other.constant),
        }
    }

    fn negated(self) -> Self {
        Self {
            pointer: self.pointer.saturating_neg(),
            begin: self.begin.saturating_neg(),
            end: self.end.saturating_neg(),
            width: self.width.saturating_neg(),
            constant: self.constant.saturating_neg(),
        }
    }

    /// A lower bound, given `pointer ≥ begin`, `pointer + width ≤ end` and `width ≥ 1`: the form
    /// is written as `a·(pointer - begin) + b·(end - pointer - width) + c·(width - 1) + constant`
    /// with nothing negative.
    fn at_least(self) -> Option<i64> {
        let (a, b) = (self.begin.checked_neg()?, self.end);
        let c = self.width.checked_add(b)?;
        let fits = a >= 0 && b >= 0 && c >= 0 && a.checked_sub(b)? == self.pointer;
        if fits { self.constant.checked_add(c) } else { None }
    }
}

fn linear(term: &Term) -> Option<Linear> {
    let none = Linear::default();
    match term {
        &ACCESS => Some(Linear { pointer: 1, ..none }),
        Term::Number(constant) => Some(Linear { constant: *constant, ..none }),
        Term::Apply(Function::Width, _) => Some(Linear { width: 1, ..none }),
        Term::Apply(function, inner) if **inner == ACCESS => match function {
            Function::Begin => Some(Linear { begin: 1, ..none }),
            Function::End => Some(Linear { end: 1, ..none }),
            Function::Idx => Some(Linear { pointer: 1, begin: -1, ..none }),
            Function::Size => Some(Linear { end: 1, begin: -1, ..none }),
            _ => None,
        },
        Term::Arithmetic(left, Operator::Add, right) => Some(linear(left)?.plus(linear(right)?)),
        Term::Arithmetic(left, Operator::Subtract, right) => {
            Some(linear(left)?.minus(linear(right)?))
        }
        _ => None,
    }
}
