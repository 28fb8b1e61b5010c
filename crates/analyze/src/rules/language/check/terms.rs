//! Terms and comparisons, and the types they must have.

use super::*;

impl Checker<'_> {
    /// Gives a variable its type, or compares it with the one it has.
    pub(super) fn agree(&mut self, slot: Slot, kind: Type, span: Span) -> Parsed<()> {
        let open = &mut self.variables[slot];
        match open.kind {
            None => open.kind = Some(kind),
            Some(known) if fits(known, kind) => {}
            Some(known) => {
                let message = format!("`{}` is {}", open.name, known.describe());
                let label = format!("expected {}", kind.describe());
                return Err(self.error(span, message, label));
            }
        }
        Ok(())
    }

    pub(super) fn compare(
        &mut self,
        left: &Expression,
        relation: Relation,
        right: &Expression,
    ) -> Parsed<Condition> {
        let (one, other) = (self.term(left), self.term(right));
        let ((one, first), (other, second)) = (one?, other?);
        let same =
            fits(first, second) || matches!((&one, &other), (Term::Null, _) | (_, Term::Null));
        if !same {
            let message = format!("{} is compared with {}", first.describe(), second.describe());
            let label = format!("expected {}", first.describe());
            let mut diagnostic = Diagnostic::new(right.span, message, label);
            if (first, second) == (Type::Block, Type::Pointer) {
                let advice = format!("write `Bid({})`", printer::expression(right));
                diagnostic = diagnostic.help(advice);
            }
            self.errors.push(diagnostic);
            return Err(Failed);
        }
        let ordered = !matches!(relation, Relation::Equal | Relation::NotEqual);
        if ordered && matches!(first, Type::Block | Type::Function | Type::Origin) {
            let message = format!("{} is not more or less than another", first.describe());
            return Err(self.error(left.span, message, "expected `==` or `!=`"));
        }
        Ok(Condition::Compare(one, relation, other))
    }

    pub(super) fn term(&mut self, this: &Expression) -> Parsed<(Term, Type)> {
        self.grow()?;
        match &this.kind {
            ExpressionKind::Number(number) => Ok((Term::Number(*number), Type::Number)),
            ExpressionKind::Null => Ok((Term::Null, Type::Pointer)),
            ExpressionKind::Variable(name) => self.variable(name, this.span),
            ExpressionKind::Apply(name, arguments) => self.apply(name, arguments),
            ExpressionKind::Arithmetic(left, operator, right) => {
                let ((one, first), (other, second)) = (self.term(left)?, self.term(right)?);
                let kind = match (first, second) {
                    (Type::Pointer, Type::Pointer) => Type::Number,
                    (Type::Number | Type::Time, kind) => kind,
                    (kind, Type::Number) => kind,
                    _ => {
                        let label = "expected numbers, or a pointer and a number";
                        return Err(self.error(this.span, "these cannot be added", label));
                    }
                };
                if matches!(kind, Type::Block | Type::Function | Type::Origin) {
                    let message = format!("{} cannot be calculated with", kind.describe());
                    return Err(self.error(this.span, message, "expected numbers"));
                }
                Ok((Term::Arithmetic(Box::new(one), *operator, Box::new(other)), kind))
            }
            _ => {
                let label = "expected a variable, a number or a function such as `Bid(r)`";
                Err(self.error(this.span, "this is a condition, not a term", label))
            }
        }
    }

    pub(super) fn variable(&mut self, name: &str, span: Span) -> Parsed<(Term, Type)> {
        if name == "_" {
            let label = "expected a name: `_` stands for anything, and only in patterns";
            return Err(self.error(span, "`_` has no value", label));
        }
        match self.lookup(name) {
            Some(Meaning::Argument(term)) => {
                let kind = self.type_of(&term);
                Ok((term, kind))
            }
            Some(Meaning::Slot(slot)) if self.variables[slot].bound => {
                let kind = self.variables[slot].kind.unwrap_or(Type::Number);
                Ok((Term::Variable(slot), kind))
            }
            found => {
                let message = format!("nothing has given `{name}` a value");
                let advice = "an event pattern, a quantifier or the detection point does; put \
                              that before this";
                let label = "expected a variable that has a value here";
                let mut diagnostic = Diagnostic::new(span, message, label).help(advice);
                // One letter is near every other.
                if found.is_none() && name.len() > 1 {
                    let known: Vec<String> =
                        self.scope[self.floor..].iter().map(|(name, _)| name.clone()).collect();
                    diagnostic.help = names::closest(name, known.iter().map(String::as_str))
                        .map(|near| format!("did you mean `{near}`?"))
                        .or(diagnostic.help);
                }
                self.errors.push(diagnostic);
                Err(Failed)
            }
        }
    }

    pub(super) fn type_of(&self, term: &Term) -> Type {
        match term {
            Term::Variable(slot) => self.variables[*slot].kind.unwrap_or(Type::Number),
            Term::Number(_) => Type::Number,
            Term::Null => Type::Pointer,
            Term::Name(_) => Type::Function,
            Term::Apply(function, _) => {
                let found = Function::ALL.iter().find(|(known, ..)| known == function);
                found.map_or(Type::Number, |(.., kind)| *kind)
            }
            Term::Arithmetic(left, _, right) => match (self.type_of(left), self.type_of(right)) {
                (Type::Pointer, Type::Pointer) => Type::Number,
                (Type::Number, kind) | (kind, _) => kind,
            },
        }
    }

    pub(super) fn apply(&mut self, name: &Name, arguments: &[Expression]) -> Parsed<(Term, Type)> {
        let found = Function::ALL.iter().find(|(_, word, ..)| *word == name.text);
        let Some((function, word, takes, gives)) = found else {
            if self.define_named(&name.text).is_some() {
                let message = format!("`{}` is a condition, not a term", name.text);
                return Err(self.error(name.span, message, "expected a term"));
            }
            let defined = self.defines.iter().map(|define| define.name.text.as_str());
            let known = Function::ALL.iter().map(|(_, word, ..)| *word).chain(defined);
            self.errors.push(unknown("function", name, known));
            return Err(Failed);
        };
        let [argument] = arguments else {
            let message = format!("`{word}` takes one argument");
            return Err(self.error(name.span, message, format!("expected `{word}(r)`")));
        };
        let (term, kind) = self.term(argument)?;
        let good = match takes {
            Takes::Pointer => kind == Type::Pointer,
            Takes::PointerOrBlock => matches!(kind, Type::Pointer | Type::Block),
        };
        if !good {
            let message = format!("`{word}` is asked of {}", kind.describe());
            return Err(self.error(argument.span, message, "expected a pointer"));
        }
        Ok((Term::Apply(*function, Box::new(term)), *gives))
    }
}

/// Whether values of the two types can be compared. Numbers stand for pointers and times too.
fn fits(one: Type, other: Type) -> bool {
    let loose = |kind| matches!(kind, Type::Pointer | Type::Number | Type::Time);
    one == other || (loose(one) && loose(other))
}
