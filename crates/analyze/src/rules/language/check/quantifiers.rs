//! Quantifiers over sets and the trace, and the patterns of events; what can be looked up instead of
//! being searched for.

use super::*;

impl Checker<'_> {
    pub(super) fn quantified(
        &mut self,
        quantifier: Quantifier,
        pattern: &Pattern,
        set: &Name,
        body: Option<&Expression>,
    ) -> Parsed<Condition> {
        let (before, length) = (self.bound(), self.scope.len());
        let made = match pattern {
            Pattern::Variable(name) => self.over_set(quantifier, name, set, body),
            Pattern::Event(event) => self.over_trace(quantifier, event, set, body),
        };
        if quantifier == Quantifier::ForAll {
            self.restore(&before);
        }
        // The quantifier's own variables end with it; free ones that it gave a value stay.
        let own = own_names(pattern, &before, &self.variables);
        let mut index = 0;
        self.scope.retain(|(name, _)| {
            index += 1;
            index <= length || !own.contains(&name.as_str())
        });
        made
    }

    pub(super) fn over_set(
        &mut self,
        quantifier: Quantifier,
        name: &Name,
        set: &Name,
        body: Option<&Expression>,
    ) -> Parsed<Condition> {
        let Some((found, word, kind)) = Set::ALL.iter().find(|(_, word, _)| *word == set.text)
        else {
            if set.text == "Trace" {
                let label = "expected a pattern: `event(_, free, r1, bid)`";
                return Err(self.error(name.span, "the trace holds events", label));
            }
            let known = Set::ALL.iter().map(|(_, word, _)| *word).chain(["Trace"]);
            self.errors.push(unknown("set", set, known));
            return Err(Failed);
        };
        self.uses_part(word, set.span);
        let known = self.bound();
        let slot = self.introduce(name, Some(*kind), true)?;
        let body = match body {
            Some(body) => self.condition(body)?,
            None => Condition::And(Vec::new()),
        };
        let key = if *found == Set::Pointers { block_of(slot, &body, &known) } else { None };
        Ok(Condition::OverSet(quantifier, slot, *found, key, Box::new(body)))
    }

    pub(super) fn over_trace(
        &mut self,
        quantifier: Quantifier,
        event: &ast::EventPattern,
        set: &Name,
        body: Option<&Expression>,
    ) -> Parsed<Condition> {
        if set.text != "Trace" {
            let message = format!("`{}` holds no events", set.text);
            return Err(self.error(set.span, message, "expected `Trace`"));
        }
        self.uses_part("Trace", set.span);
        let free = self.bound();
        let mut matched = self.event(event)?;
        let body = match body {
            Some(body) => self.condition(body)?,
            None => Condition::And(Vec::new()),
        };
        if matched.key.is_none() {
            matched.key = key_of(&matched, &body, &free);
        }
        Ok(Condition::OverTrace(quantifier, matched, Box::new(body)))
    }

    pub(super) fn event(&mut self, pattern: &ast::EventPattern) -> Parsed<EventMatch> {
        let found = EventKind::ALL.iter().find(|(_, word, _)| *word == pattern.kind.text);
        let Some((kind, word, kinds)) = found else {
            let known = EventKind::ALL.iter().map(|(_, word, _)| *word);
            self.errors.push(unknown("kind of event", &pattern.kind, known));
            return Err(Failed);
        };
        if pattern.arguments.len() > kinds.len() || pattern.arguments.is_empty() {
            let words: Vec<_> = kinds.iter().map(|kind| kind.describe()).collect();
            let message = format!("`{word}` has {} arguments", kinds.len());
            let label = format!("expected (time, {word}, {})", words.join(", "));
            return Err(self.error(pattern.kind.span, message, label));
        }
        let before = self.bound();
        let time = self.matched(&pattern.time, Type::Time)?;
        let mut arguments = Vec::new();
        for (name, kind) in pattern.arguments.iter().zip(*kinds) {
            arguments.push(self.matched(name, *kind)?);
        }
        let key = match arguments.get(kind.key_argument()) {
            Some(Match::Variable(slot)) if before.get(*slot).copied().unwrap_or(false) => {
                Some(Term::Variable(*slot))
            }
            Some(Match::Term(term)) => Some(term.clone()),
            _ => None,
        };
        Ok(EventMatch { time, kind: *kind, arguments, key })
    }

    /// One place of an event pattern.
    pub(super) fn matched(&mut self, name: &Name, kind: Type) -> Parsed<Match> {
        self.grow()?;
        if name.text == "_" {
            return Ok(Match::Any);
        }
        match self.lookup(&name.text) {
            Some(Meaning::Anything) => Ok(Match::Any),
            Some(Meaning::Argument(term)) => Ok(Match::Term(term)),
            Some(Meaning::Slot(slot)) => {
                self.agree(slot, kind, name.span)?;
                self.variables[slot].bound = true;
                Ok(Match::Variable(slot))
            }
            // A function's name that no variable has means the function.
            None if kind == Type::Function => Ok(Match::Term(Term::Name(name.text.clone()))),
            None => Ok(Match::Variable(self.introduce(name, Some(kind), true)?)),
        }
    }
}

/// The names that a pattern itself introduced: in scope only inside its quantifier. An event's
/// variable that was there before belongs to the rule.
fn own_names<'p>(pattern: &'p Pattern, before: &[bool], variables: &[Open]) -> Vec<&'p str> {
    match pattern {
        Pattern::Variable(name) => vec![name.text.as_str()],
        Pattern::Event(event) => {
            let fresh =
                |name: &&Name| variables[before.len()..].iter().any(|open| open.span == name.span);
            let all = std::iter::once(&event.time).chain(&event.arguments);
            all.filter(fresh).map(|name| name.text.as_str()).collect()
        }
    }
}

/// The term that the key of an event must equal, from `key == TERM` in the body, if the term is
/// known before the event is.
fn key_of(matched: &EventMatch, body: &Condition, bound: &[bool]) -> Option<Term> {
    let Match::Variable(slot) = matched.arguments.get(matched.kind.key_argument())? else {
        return None;
    };
    conjuncts(body).iter().find_map(|condition| match condition {
        Condition::Compare(Term::Variable(key), Relation::Equal, term)
        | Condition::Compare(term, Relation::Equal, Term::Variable(key))
            if key == slot && known_before(term, bound) =>
        {
            Some(term.clone())
        }
        _ => None,
    })
}

/// The block that a pointer of a quantifier must point into, from `Bid(pointer) == TERM`.
fn block_of(slot: Slot, body: &Condition, bound: &[bool]) -> Option<Term> {
    let of_pointer = Term::Apply(Function::Bid, Box::new(Term::Variable(slot)));
    conjuncts(body).iter().find_map(|condition| match condition {
        Condition::Compare(left, Relation::Equal, right) => {
            let other = if *left == of_pointer { right } else { left };
            let pointer = if *left == of_pointer { left } else { right };
            (*pointer == of_pointer && known_before(other, bound)).then(|| other.clone())
        }
        _ => None,
    })
}

fn conjuncts(body: &Condition) -> &[Condition] {
    match body {
        Condition::And(all) => all.as_slice(),
        other => std::slice::from_ref(other),
    }
}

fn known_before(term: &Term, bound: &[bool]) -> bool {
    match term {
        Term::Variable(slot) => bound.get(*slot).copied().unwrap_or(false),
        Term::Number(_) | Term::Null | Term::Name(_) => true,
        Term::Apply(_, inner) => known_before(inner, bound),
        Term::Arithmetic(left, _, right) => known_before(left, bound) && known_before(right, bound),
    }
}
