//! Hypotheses about the values of one expression at one point, and what their violations cost.
//!
//! **Bits** are DIDUCE's, exactly: the first value, and which bits have been seen to differ from it. A value
//! that differs in another bit violates the hypothesis, which then accepts it and all combinations of the bits
//! that vary. **Confidence** is the number of evaluations divided by the number of values that are
//! accepted, and a violation is as noteworthy as the confidence that it costs: 281,661 evaluations that were
//! always 1 and then a 2 cost 281,661 − 281,661 / 4 = 211,245.75.
//!
//! Beside them stand a **set** of few values and an **interval**, with confidences of the same form. What
//! is said of a violation is the hypothesis that loses most.

use serde::{Deserialize, Serialize};

/// Values that a set holds before it is given up.
const FEW: usize = 8;
/// Confidence that a set or an interval must lose for that to be told.
const LEAST: f64 = 1.0;
/// Kinds of objects that are told apart at one point.
const MOST_KINDS: usize = 16;

/// What a value is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// A number, as many low bits as it has bytes.
    Number {
        /// The bits.
        bits: u64,
        /// Bytes, 1 to 8.
        size: u8,
    },
    /// The address of an object of this kind.
    Object(Kind),
}

/// What an address leads to, by the number of its name in the model: blocks that one place allocates, a
/// function, static data, a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Kind(pub u32);

/// What is supposed of the numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Numbers {
    /// How many there were.
    pub count: u64,
    /// Bytes of the largest.
    pub size: u8,
    /// The first.
    pub first: u64,
    /// Bits in which others differed.
    pub varied: u64,
    /// All of them, sorted, while they are few.
    pub few: Option<Vec<u64>>,
    /// The smallest, as a number with a sign.
    pub low: i64,
    /// The largest.
    pub high: i64,
}

/// Which hypothesis a violation is told by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Bits that never varied.
    Bits,
    /// One of few values.
    Set,
    /// Between two bounds.
    Interval,
    /// The kinds of objects.
    Kinds,
}

/// A violation: what was supposed, and what that cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// By which hypothesis.
    pub rule: Rule,
    /// By how much the confidence in it has fallen.
    pub drop: f64,
    /// Evaluations before.
    pub count: u64,
    /// What was supposed before.
    pub before: Hypothesis,
}

/// What is supposed of an expression at a point.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hypothesis {
    /// Of those values that were numbers.
    pub numbers: Option<Numbers>,
    /// Addresses of objects among the values.
    pub objects: u64,
    /// Their kinds, sorted; empty if they were too many.
    pub kinds: Vec<Kind>,
    /// Whether there were too many kinds.
    pub any_kind: bool,
}

/// A number as its bytes say it, with a sign.
#[must_use]
pub fn signed(bits: u64, size: u8) -> i64 {
    let unused = 64 - 8 * u32::from(size.clamp(1, 8));
    ((bits << unused) as i64) >> unused
}

/// A confidence: evaluations by accepted values.
fn confidence(count: u64, accepted: f64) -> f64 {
    count as f64 / accepted
}

impl Numbers {
    /// After the first value.
    #[must_use]
    pub fn new(bits: u64, size: u8) -> Self {
        let number = signed(bits, size);
        let few = Some(vec![bits]);
        Self { count: 1, size, first: bits, varied: 0, few, low: number, high: number }
    }

    /// How many values the bits accept.
    #[must_use]
    pub fn accepted(&self) -> f64 {
        2f64.powi(self.varied.count_ones() as i32)
    }

    /// The confidence in the bits.
    #[must_use]
    pub fn confidence(&self) -> f64 {
        confidence(self.count, self.accepted())
    }

    /// Whether the bits accept a value.
    #[must_use]
    pub fn accepts(&self, bits: u64) -> bool {
        (bits ^ self.first) & !self.varied == 0
    }

    fn width(&self) -> f64 {
        self.high as f64 - self.low as f64 + 1.0
    }

    /// Whether a value is nothing new to any hypothesis.
    fn knows(&self, bits: u64, size: u8) -> bool {
        let listed = self.few.as_ref().is_none_or(|few| few.binary_search(&bits).is_ok());
        listed && self.accepts(bits) && (self.low..=self.high).contains(&signed(bits, size))
    }

    /// What another value would violate, and by how much confidence would fall. Bits count whatever they
    /// cost; a set or an interval that gives way bit by bit, as that of a counter does, is not told.
    fn cost(&self, bits: u64, size: u8) -> Option<(Rule, f64)> {
        let number = signed(bits, size);
        let cost = |before: f64, after: f64| {
            confidence(self.count, before) - confidence(self.count, after)
        };
        let varied = self.varied | (bits ^ self.first);
        let by_bits = cost(self.accepted(), 2f64.powi(varied.count_ones() as i32));
        let width = self.high.max(number) as f64 - self.low.min(number) as f64 + 1.0;
        let by_interval = cost(self.width(), width);
        let listed = self.few.as_ref().filter(|few| few.binary_search(&bits).is_err());
        let by_set = listed.map_or(0.0, |few| cost(few.len() as f64, few.len() as f64 + 1.0));
        let others = [(Rule::Set, by_set), (Rule::Interval, by_interval)];
        let bits = (varied != self.varied).then_some((Rule::Bits, by_bits));
        let others = others.into_iter().filter(|(_, drop)| *drop >= LEAST);
        bits.into_iter().chain(others).reduce(|most, one| if one.1 > most.1 { one } else { most })
    }

    /// Accepts all that the other does, as often as it has.
    fn widen(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.size = self.size.max(other.size);
        self.varied |= other.varied | (self.first ^ other.first);
        self.low = self.low.min(other.low);
        self.high = self.high.max(other.high);
        self.few = match (self.few.take(), &other.few) {
            (Some(mut few), Some(more)) => {
                few.extend(more);
                few.sort_unstable();
                few.dedup();
                Some(few).filter(|few| few.len() <= FEW)
            }
            _ => None,
        };
    }
}

impl Hypothesis {
    /// Values so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        let numbers = self.numbers.as_ref().map_or(0, |numbers| numbers.count);
        self.objects.saturating_add(numbers)
    }

    /// Takes another value; what it violates, if it does. The first value violates nothing.
    pub fn take(&mut self, value: Value) -> Option<Violation> {
        match value {
            Value::Number { bits, size } => self.take_number(bits, size),
            Value::Object(kind) => self.take_object(kind),
        }
    }

    fn take_number(&mut self, bits: u64, size: u8) -> Option<Violation> {
        if self.numbers.is_none() {
            let violation = self.another_kind();
            self.numbers = Some(Numbers::new(bits, size));
            return violation;
        }
        let numbers = self.numbers.as_mut()?;
        if numbers.knows(bits, size) {
            numbers.count += 1;
            return None;
        }
        let (count, cost) = (numbers.count, numbers.cost(bits, size));
        let violation =
            cost.map(|(rule, drop)| Violation { rule, drop, count, before: self.clone() });
        self.numbers.as_mut()?.widen(&Numbers::new(bits, size));
        violation
    }

    fn take_object(&mut self, kind: Kind) -> Option<Violation> {
        if self.any_kind {
            self.objects += 1;
            return None;
        }
        let Err(place) = self.kinds.binary_search(&kind) else {
            self.objects += 1;
            return None;
        };
        let violation = self.another_kind();
        self.objects += 1;
        self.kinds.insert(place, kind);
        self.bound_kinds();
        violation
    }

    /// Something comes that is of no kind so far: a number among objects, or the other way round, or another
    /// kind of object. NULL is a number.
    fn another_kind(&self) -> Option<Violation> {
        let count = self.count();
        let known = self.kinds.len() + usize::from(self.numbers.is_some());
        if count == 0 || self.any_kind {
            return None;
        }
        let drop = confidence(count, known as f64) - confidence(count, known as f64 + 1.0);
        Some(Violation { rule: Rule::Kinds, drop, count, before: self.clone() })
    }

    fn bound_kinds(&mut self) {
        if self.kinds.len() > MOST_KINDS {
            self.kinds.clear();
            self.any_kind = true;
        }
    }

    /// Accepts all that the other does, as often as it has. Kinds of the other are numbered as here.
    pub fn merge(&mut self, other: &Self) {
        match (&mut self.numbers, &other.numbers) {
            (Some(own), Some(other)) => own.widen(other),
            (own @ None, Some(other)) => *own = Some(other.clone()),
            (_, None) => {}
        }
        self.objects = self.objects.saturating_add(other.objects);
        self.any_kind |= other.any_kind;
        if !self.any_kind {
            self.kinds.extend(&other.kinds);
            self.kinds.sort_unstable();
            self.kinds.dedup();
            self.bound_kinds();
        } else {
            self.kinds.clear();
        }
    }

    /// Whether a value would be accepted by the bits, or by the kinds.
    #[must_use]
    pub fn accepts(&self, value: Value) -> bool {
        match value {
            Value::Number { bits, .. } => {
                self.numbers.as_ref().is_some_and(|numbers| numbers.accepts(bits))
            }
            Value::Object(kind) => self.any_kind || self.kinds.binary_search(&kind).is_ok(),
        }
    }
}

#[cfg(test)]
mod tests;
