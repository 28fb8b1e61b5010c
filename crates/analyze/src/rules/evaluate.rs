//! Whether a condition holds in a state, and which values it gave to its variables.
//!
//! Three answers: it holds, it does not, or it cannot be decided, because something was not
//! observed or because deciding took more than [`FUEL`] steps. A rule that never comes to an end is
//! so bounded, and reported.

use super::model::{
    Condition, EventMatch, Function, Match, Operator, Quantifier, Relation, Rule, Slot, Term,
};
use super::state::{Answer, BlockFacts, BlockId, Pointer, State, TraceEvent, Value, Visit};

/// Conditions and events looked at in one evaluation.
pub const FUEL: u64 = 1_000_000;

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// It holds.
    Holds,
    /// It does not.
    Fails,
    /// It depends on something that was not observed.
    NotKnown,
    /// Deciding took too long.
    TooLong,
}

/// The values of a rule's variables.
pub type Values = Vec<Option<Value>>;

/// Evaluates a rule whose detection point gives these values to its first variables.
#[must_use]
pub fn evaluate(rule: &Rule, point: &[Value], state: &dyn State) -> (Truth, Values) {
    let mut values: Values = vec![None; rule.variables.len()];
    for (slot, value) in values.iter_mut().zip(point) {
        *slot = Some(value.clone());
    }
    let mut evaluation = Evaluation { state, values, fuel: FUEL };
    let truth = evaluation.holds(&rule.condition);
    (truth, evaluation.values)
}

/// Evaluates a rule as often as it holds. A rule that says that something exists is one finding for
/// each such thing; any other holds once or not at all.
#[must_use]
pub fn witnesses(rule: &Rule, point: &[Value], state: &dyn State) -> (Truth, Vec<Values>) {
    let Condition::OverSet(Quantifier::Exists, slot, set, None, body) = &rule.condition else {
        let (truth, values) = evaluate(rule, point, state);
        let found = if truth == Truth::Holds { vec![values] } else { Vec::new() };
        return (truth, found);
    };
    let (mut truth, mut found) = (Truth::Fails, Vec::new());
    let mut fuel = FUEL;
    state.each(*set, None, &mut |value| {
        let mut values: Values = vec![None; rule.variables.len()];
        for (slot, value) in values.iter_mut().zip(point) {
            *slot = Some(value.clone());
        }
        values[*slot] = Some(value);
        let mut evaluation = Evaluation { state, values, fuel };
        let holds = evaluation.holds(body);
        fuel = evaluation.fuel;
        match holds {
            Truth::Holds => {
                truth = Truth::Holds;
                found.push(evaluation.values);
            }
            other if truth == Truth::Fails => truth = other,
            _ => {}
        }
        if fuel == 0 { Visit::Enough } else { Visit::More }
    });
    (truth, found)
}

struct Evaluation<'a> {
    state: &'a dyn State,
    values: Values,
    fuel: u64,
}

impl Evaluation<'_> {
    fn spend(&mut self) -> bool {
        self.fuel = self.fuel.saturating_sub(1);
        self.fuel > 0
    }

    fn holds(&mut self, condition: &Condition) -> Truth {
        if !self.spend() {
            return Truth::TooLong;
        }
        match condition {
            Condition::And(all) => self.all(all),
            Condition::Or(all) => self.any(all),
            Condition::Not(inner) => {
                let before = self.values.clone();
                let truth = self.holds(inner);
                self.values = before;
                negated(truth)
            }
            Condition::Compare(left, relation, right) => self.compare(left, *relation, right),
            Condition::OverSet(quantifier, slot, set, key, body) => {
                let key = match self.optional(key.as_ref()) {
                    Answer::Is(key) => key,
                    Answer::Nothing => return Quantified::new(*quantifier).truth(),
                    Answer::NotKnown => return Truth::NotKnown,
                };
                let state = self.state;
                let before = self.values[*slot].clone();
                let mut found = Quantified::new(*quantifier);
                state.each(*set, key.as_ref(), &mut |value| {
                    self.values[*slot] = Some(value);
                    found.add(self.holds(body))
                });
                if found.settled.is_none() {
                    self.values[*slot] = before;
                }
                found.truth()
            }
            Condition::OverTrace(quantifier, event, body) => {
                self.over_trace(*quantifier, event, body)
            }
            Condition::FindLast(event) => self.find_last(event),
        }
    }

    fn all(&mut self, all: &[Condition]) -> Truth {
        let mut worst = Truth::Holds;
        for one in all {
            match self.holds(one) {
                Truth::Holds => {}
                other @ (Truth::Fails | Truth::TooLong) => return other,
                Truth::NotKnown => worst = Truth::NotKnown,
            }
        }
        worst
    }

    fn any(&mut self, all: &[Condition]) -> Truth {
        let mut best = Truth::Fails;
        for one in all {
            let before = self.values.clone();
            match self.holds(one) {
                other @ (Truth::Holds | Truth::TooLong) => return other,
                Truth::NotKnown => best = Truth::NotKnown,
                Truth::Fails => {}
            }
            self.values = before;
        }
        best
    }

    fn over_trace(
        &mut self,
        quantifier: Quantifier,
        event: &EventMatch,
        body: &Condition,
    ) -> Truth {
        let state = self.state;
        let key = match self.optional(event.key.as_ref()) {
            Answer::Is(key) => key,
            // No event has a key that does not exist.
            Answer::Nothing => return Quantified::new(quantifier).truth(),
            Answer::NotKnown => return Truth::NotKnown,
        };
        let before = self.values.clone();
        let mut found = Quantified::new(quantifier);
        state.events(event.kind, key.as_ref(), false, &mut |seen| {
            if !self.spend() {
                return found.add(Truth::TooLong);
            }
            let matched = self.matches(event, seen);
            if !matched {
                self.values.clone_from(&before);
                return Visit::More;
            }
            let visit = found.add(self.holds(body));
            if visit == Visit::More {
                self.values.clone_from(&before);
            }
            visit
        });
        if quantifier == Quantifier::ForAll {
            self.values = before;
        }
        found.truth()
    }

    fn find_last(&mut self, event: &EventMatch) -> Truth {
        let state = self.state;
        let key = match self.optional(event.key.as_ref()) {
            Answer::Is(key) => key,
            Answer::Nothing => return Truth::Fails,
            Answer::NotKnown => return Truth::NotKnown,
        };
        let before = self.values.clone();
        let mut truth = Truth::Fails;
        state.events(event.kind, key.as_ref(), true, &mut |seen| {
            if !self.spend() {
                truth = Truth::TooLong;
            } else if self.matches(event, seen) {
                truth = Truth::Holds;
            } else {
                self.values.clone_from(&before);
                return Visit::More;
            }
            Visit::Enough
        });
        truth
    }

    /// The value of a key, `None` if there is no key.
    fn optional(&self, key: Option<&Term>) -> Answer<Option<Value>> {
        match key.map(|term| self.term(term)) {
            None => Answer::Is(None),
            Some(Answer::Is(value)) => Answer::Is(Some(value)),
            Some(Answer::Nothing) => Answer::Nothing,
            Some(Answer::NotKnown) => Answer::NotKnown,
        }
    }

    /// Compares an event with a pattern; variables without a value get one.
    fn matches(&mut self, event: &EventMatch, seen: &TraceEvent) -> bool {
        let time = Value::Number(i128::from(seen.time));
        self.fits(&event.time, &time)
            && event.arguments.iter().zip(&seen.arguments).all(|(one, value)| self.fits(one, value))
    }

    fn fits(&mut self, pattern: &Match, value: &Value) -> bool {
        match pattern {
            Match::Any => true,
            Match::Term(term) => {
                matches!(self.term(term), Answer::Is(known) if same(&known, value))
            }
            Match::Variable(slot) => match &self.values[*slot] {
                Some(known) => same(known, value),
                None => {
                    self.values[*slot] = Some(value.clone());
                    true
                }
            },
        }
    }

    fn compare(&self, left: &Term, relation: Relation, right: &Term) -> Truth {
        let truth = |holds| if holds { Truth::Holds } else { Truth::Fails };
        let (left, right) = match (self.term(left), self.term(right)) {
            (Answer::Nothing, _) | (_, Answer::Nothing) => return Truth::Fails,
            (Answer::NotKnown, _) | (_, Answer::NotKnown) => return Truth::NotKnown,
            (Answer::Is(left), Answer::Is(right)) => (left, right),
        };
        match (relation, number(&left), number(&right)) {
            (Relation::Equal, ..) => truth(same(&left, &right)),
            (Relation::NotEqual, ..) => truth(!same(&left, &right)),
            (_, Some(left), Some(right)) => truth(relation.holds(left, right)),
            _ => Truth::Fails,
        }
    }

    fn term(&self, term: &Term) -> Answer<Value> {
        match term {
            Term::Number(number) => Answer::Is(Value::Number(i128::from(*number))),
            Term::Null => Answer::Is(Value::Pointer(Pointer::default())),
            Term::Name(name) => Answer::Is(Value::Function(name.clone())),
            Term::Variable(slot) => self.variable(*slot),
            Term::Apply(function, inner) => match self.term(inner) {
                Answer::Is(value) => self.apply(*function, &value),
                other => other,
            },
            Term::Arithmetic(left, operator, right) => match (self.term(left), self.term(right)) {
                (Answer::Is(left), Answer::Is(right)) => calculate(&left, *operator, &right),
                (Answer::NotKnown, _) | (_, Answer::NotKnown) => Answer::NotKnown,
                _ => Answer::Nothing,
            },
        }
    }

    fn variable(&self, slot: Slot) -> Answer<Value> {
        self.values[slot].clone().map_or(Answer::Nothing, Answer::Is)
    }

    fn apply(&self, function: Function, value: &Value) -> Answer<Value> {
        let number = |number: u64| Answer::Is(Value::Number(i128::from(number)));
        let block = match value {
            Value::Pointer(pointer) => pointer.block,
            Value::Block(block) => Some(*block),
            _ => None,
        };
        match (function, value) {
            (Function::Width, _) => return number(self.state.width()),
            (Function::Releaser, _) => {
                return Answer::Is(Value::Number(i128::from(self.state.releaser())));
            }
            (Function::Bid, _) => {
                return block.map_or(Answer::Nothing, |id| Answer::Is(Value::Block(id)));
            }
            (Function::Value, Value::Pointer(pointer)) => {
                return self.state.contents(pointer.address, self.state.width().max(1)).value();
            }
            _ => {}
        }
        let Some((id, facts)) = block.and_then(|id| Some((id, self.state.facts(id)?))) else {
            return Answer::Nothing;
        };
        self.block_function(function, value, id, &facts)
    }

    fn block_function(
        &self,
        function: Function,
        value: &Value,
        id: BlockId,
        facts: &BlockFacts,
    ) -> Answer<Value> {
        let number = |number: i128| Answer::Is(Value::Number(number));
        let pointer = |address| Answer::Is(Value::Pointer(Pointer { address, block: Some(id) }));
        match (function, value) {
            (Function::Begin, _) => pointer(facts.begin),
            (Function::End, _) => pointer(facts.begin.saturating_add(facts.size)),
            (Function::Idx, Value::Pointer(at)) => {
                number(i128::from(at.address) - i128::from(facts.begin))
            }
            (Function::Size, _) => number(i128::from(facts.size)),
            (Function::Time, _) => number(i128::from(facts.time)),
            (Function::Family, _) => number(i128::from(facts.family)),
            (Function::Region, _) => number(i128::from(facts.region)),
            (Function::Block, _) => self.state.contents(facts.begin, facts.size).value(),
            (Function::Value, _) => self.state.contents(facts.begin, facts.size.min(8)).value(),
            _ => Answer::Nothing,
        }
    }
}

impl Answer<i128> {
    fn value(self) -> Answer<Value> {
        match self {
            Self::Is(number) => Answer::Is(Value::Number(number)),
            Self::Nothing => Answer::Nothing,
            Self::NotKnown => Answer::NotKnown,
        }
    }
}

/// Collects the answers of a quantifier's elements.
struct Quantified {
    quantifier: Quantifier,
    settled: Option<Truth>,
    doubt: bool,
}

impl Quantified {
    fn new(quantifier: Quantifier) -> Self {
        Self { quantifier, settled: None, doubt: false }
    }

    fn add(&mut self, truth: Truth) -> Visit {
        match (self.quantifier, truth) {
            (_, Truth::TooLong) => self.settled = Some(Truth::TooLong),
            (_, Truth::NotKnown) => self.doubt = true,
            (Quantifier::Exists, Truth::Holds) | (Quantifier::ForAll, Truth::Fails) => {
                self.settled = Some(truth);
            }
            _ => {}
        }
        if self.settled.is_some() { Visit::Enough } else { Visit::More }
    }

    fn truth(&self) -> Truth {
        match (self.settled, self.doubt, self.quantifier) {
            (Some(truth), ..) => truth,
            (None, true, _) => Truth::NotKnown,
            (None, false, Quantifier::Exists) => Truth::Fails,
            (None, false, Quantifier::ForAll) => Truth::Holds,
        }
    }
}

fn negated(truth: Truth) -> Truth {
    match truth {
        Truth::Holds => Truth::Fails,
        Truth::Fails => Truth::Holds,
        other => other,
    }
}

/// The number that a value is in comparisons of order.
fn number(value: &Value) -> Option<i128> {
    match value {
        Value::Pointer(pointer) => Some(i128::from(pointer.address)),
        Value::Number(number) => Some(*number),
        Value::Block(block) => Some(i128::from(block.0)),
        Value::Function(_) | Value::Origin(_) => None,
    }
}

/// Whether two values are equal. Everything in the page at zero is NULL: `p->next` of a NULL `p` is
/// an access at a small address.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Pointer(left), Value::Pointer(right)) if left.is_null() && right.is_null() => true,
        (Value::Pointer(_) | Value::Number(_), Value::Pointer(_) | Value::Number(_)) => {
            number(left) == number(right)
        }
        _ => left == right,
    }
}

fn calculate(left: &Value, operator: Operator, right: &Value) -> Answer<Value> {
    let (Some(one), Some(other)) = (number(left), number(right)) else { return Answer::Nothing };
    let result = match operator {
        Operator::Add => one + other,
        Operator::Subtract => one - other,
        Operator::And => one & other,
    };
    let pointer = match (left, right) {
        (Value::Pointer(_), Value::Pointer(_)) => None,
        (Value::Pointer(pointer), _) | (_, Value::Pointer(pointer)) => Some(pointer),
        _ => None,
    };
    Answer::Is(match pointer {
        Some(pointer) => Value::Pointer(Pointer { address: result as u64, ..*pointer }),
        None => Value::Number(result),
    })
}
