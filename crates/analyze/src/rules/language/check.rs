//! Tree to model: resolves names, infers types, puts definitions in, and reports every mistake of
//! meaning at its place with what would be right.
//!
//! A variable that nothing introduces is **free**: the first event that matches gives it its value.
//! So the checker walks a condition in the order of evaluation and knows what has a value where.

mod names;
mod quantifiers;
mod terms;

use super::ast::{self, Expression, ExpressionKind, Name, Pattern};
use super::printer;
use crate::rules::model::{
    Condition, EventKind, EventMatch, Function, Match, Point, Quantifier, Relation, Rule, Set,
    Slot, Takes, Term, Type, Variable,
};
use names::unknown;
use spec::cursor::{Failed, Parsed};
use spec::{Diagnostic, Diagnostics, Span};

/// A rule whose definitions, put in, make more nodes than this is refused.
const MOST_NODES: usize = 10_000;
/// Variables of one rule.
const MOST_VARIABLES: usize = 64;
/// How deep definitions may use each other.
const DEEPEST: usize = 32;

/// Checks a tree. What is wrong is left out and reported.
#[must_use]
pub fn check(tree: &ast::File, errors: &mut Diagnostics) -> Vec<Rule> {
    let before = errors.len();
    for index in 0..tree.defines.len() {
        names::check_define(&tree.defines, index, errors);
    }
    let mut rules = Vec::new();
    if errors.len() > before {
        // Definitions that lead in circles cannot be put in.
        return rules;
    }
    let mut seen: Vec<&str> = Vec::new();
    for rule in &tree.rules {
        let name = rule.name.text.as_str();
        if seen.contains(&name) {
            let message = format!("the rule `{name}` is given twice");
            errors.push(Diagnostic::new(rule.name.span, message, "expected another name"));
        }
        seen.push(name);
        let checker = Checker::new(&tree.defines, errors);
        rules.extend(checker.rule(rule));
    }
    rules
}

/// What a name stands for inside a condition.
#[derive(Clone, Debug)]
enum Meaning {
    Slot(Slot),
    /// An argument that a definition was given.
    Argument(Term),
    /// `_` given to a definition.
    Anything,
}

/// A variable while its type may still be open.
struct Open {
    name: String,
    kind: Option<Type>,
    bound: bool,
    span: Span,
}

struct Checker<'a> {
    defines: &'a [ast::Define],
    errors: &'a mut Diagnostics,
    variables: Vec<Open>,
    /// Names in scope, innermost last.
    scope: Vec<(String, Meaning)>,
    /// Where free variables begin to be looked up: definitions see only their parameters.
    floor: usize,
    depth: usize,
    nodes: usize,
    parts: Vec<String>,
    rule_span: Span,
}

impl<'a> Checker<'a> {
    fn new(defines: &'a [ast::Define], errors: &'a mut Diagnostics) -> Self {
        Self {
            defines,
            errors,
            variables: Vec::new(),
            scope: Vec::new(),
            floor: 0,
            depth: 0,
            nodes: 0,
            parts: Vec::new(),
            rule_span: Span::default(),
        }
    }

    fn error(
        &mut self,
        span: Span,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> Failed {
        self.errors.push(Diagnostic::new(span, message, label));
        Failed
    }

    fn rule(mut self, rule: &ast::Rule) -> Option<Rule> {
        self.rule_span = rule.name.span;
        self.parts(&rule.parts);
        let point = self.point(&rule.point).ok();
        // What a function is given and what it returns have chains, whatever they are.
        let given = match &point {
            Some(Point::Call(_) | Point::Return(_)) => self.variables.len(),
            _ => 0,
        };
        let condition = self.condition(&rule.condition).ok();
        let locators = self.locators(&rule.locators, given);
        let (point, condition) = (point?, condition?);
        let variables = self
            .variables
            .into_iter()
            .map(|open| Variable { name: open.name, kind: open.kind.unwrap_or(Type::Number) });
        let name = rule.name.text.replace('_', "-");
        let title = rule.title.clone().unwrap_or_else(|| name.replace('-', " "));
        let (variables, text) = (variables.collect(), printer::rule(rule));
        Some(Rule { name, title, point, condition, variables, locators, text })
    }

    fn parts(&mut self, parts: &[Name]) {
        for part in parts {
            let known = Set::ALL.iter().map(|(_, word, _)| *word).chain(["Trace"]);
            if known.clone().all(|word| word != part.text) {
                self.errors.push(unknown("part of the state", part, known));
            }
            self.parts.push(part.text.clone());
        }
    }

    /// Whether the rule says that it looks at this part of the state.
    fn uses_part(&mut self, part: &str, span: Span) {
        if self.parts.iter().any(|known| known == part) {
            return;
        }
        let message = format!("the rule looks at `{part}` without saying so");
        let advice = format!("write `detect <{part}; …>`");
        let label = format!("expected `{part}` before the detection point");
        self.errors.push(Diagnostic::new(span, message, label).help(advice));
        // Once is enough.
        self.parts.push(part.to_owned());
    }

    fn point(&mut self, point: &ast::Point) -> Parsed<Point> {
        const POINTS: [(&str, &[Type]); 10] = [
            ("deref_r", &[Type::Pointer]),
            ("deref_w", &[Type::Pointer]),
            ("deref", &[Type::Pointer]),
            ("free", &[Type::Pointer]),
            ("malloc", &[Type::Number]),
            ("call", &[Type::Number]),
            ("ret", &[Type::Number]),
            ("exit", &[]),
            ("use", &[Type::Number]),
            ("close", &[Type::Number]),
        ];
        let word = point.word.text.as_str();
        let Some((_, kinds)) = POINTS.iter().find(|(known, _)| *known == word) else {
            let known = POINTS.iter().map(|(word, _)| *word);
            self.errors.push(unknown("detection point", &point.word, known));
            return Err(Failed);
        };
        let calls = matches!(word, "call" | "ret");
        let mut names = point.names.as_slice();
        let mut function = None;
        if calls {
            let [first, rest @ ..] = names else {
                let label = format!("expected `{word} FUNCTION v`");
                return Err(self.error(point.word.span, "the function is missing", label));
            };
            function = Some(first.text.clone());
            names = rest;
        }
        // Functions may have several arguments; everything else has what it has.
        if names.len() != kinds.len() && !(word == "call" && names.len() <= 6) && word != "ret" {
            let label = format!("expected `{word}{}`", " r".repeat(kinds.len()));
            return Err(self.error(point.word.span, "wrong number of names", label));
        }
        for name in names {
            let kind = kinds.first().copied().unwrap_or(Type::Number);
            self.introduce(name, Some(kind), true)?;
        }
        let function = function.unwrap_or_default();
        Ok(match word {
            "deref_r" => Point::Deref { read: true, write: false },
            "deref_w" => Point::Deref { read: false, write: true },
            "deref" => Point::Deref { read: true, write: true },
            "free" => Point::Free,
            "malloc" => Point::Malloc,
            "call" => Point::Call(function),
            "ret" => Point::Return(function),
            "use" => Point::Use,
            "close" => Point::Close,
            _ => Point::Exit,
        })
    }

    /// A new variable, in scope from here on.
    fn introduce(&mut self, name: &Name, kind: Option<Type>, bound: bool) -> Parsed<Slot> {
        if self.variables.len() >= MOST_VARIABLES {
            let label = format!("expected at most {MOST_VARIABLES}");
            return Err(self.error(name.span, "too many variables in one rule", label));
        }
        let slot = self.variables.len();
        self.variables.push(Open { name: name.text.clone(), kind, bound, span: name.span });
        if name.text != "_" {
            self.scope.push((name.text.clone(), Meaning::Slot(slot)));
        }
        Ok(slot)
    }

    fn locators(&mut self, locators: &[Name], given: Slot) -> Vec<Slot> {
        let mut slots = Vec::new();
        for name in locators {
            let found = self.lookup(&name.text);
            let Some(Meaning::Slot(slot)) = found else {
                let known: Vec<String> = self.scope.iter().map(|(name, _)| name.clone()).collect();
                let known = known.iter().map(String::as_str);
                self.errors.push(unknown("variable", name, known));
                continue;
            };
            match (self.variables[slot].kind, self.variables[slot].bound) {
                (_, false) => {
                    let message = format!("`{}` may have no value here", name.text);
                    let label = "expected a variable that the condition always gives a value";
                    self.error(name.span, message, label);
                }
                (Some(Type::Pointer) | None, _) => slots.push(slot),
                (Some(Type::Number), _) if slot < given => slots.push(slot),
                (Some(kind), _) => {
                    let message = format!("`{}` is {}", name.text, kind.describe());
                    self.error(
                        name.span,
                        message,
                        "expected a pointer, or what a function is given or returns: only values \
                         that move have a chain",
                    );
                }
            }
        }
        slots
    }

    fn lookup(&self, name: &str) -> Option<Meaning> {
        let visible = &self.scope[self.floor..];
        visible.iter().rev().find(|(known, _)| known == name).map(|(_, meaning)| meaning.clone())
    }

    fn grow(&mut self) -> Parsed<()> {
        self.nodes += 1;
        if self.nodes == MOST_NODES + 1 {
            let message = "the rule grows too large when its definitions are put in";
            let label = format!("expected at most {MOST_NODES} conditions and terms");
            self.error(self.rule_span, message, label);
        }
        if self.nodes > MOST_NODES { Err(Failed) } else { Ok(()) }
    }

    fn condition(&mut self, this: &Expression) -> Parsed<Condition> {
        self.grow()?;
        match &this.kind {
            ExpressionKind::And(all) => {
                let mut parts = Vec::new();
                for one in all {
                    parts.push(self.condition(one));
                }
                Ok(Condition::And(parts.into_iter().collect::<Parsed<_>>()?))
            }
            ExpressionKind::Or(all) => self.alternatives(all),
            ExpressionKind::Not(inner) => {
                let before = self.bound();
                let inner = self.condition(inner);
                self.restore(&before);
                Ok(Condition::Not(Box::new(inner?)))
            }
            ExpressionKind::Compare(left, relation, right) => self.compare(left, *relation, right),
            ExpressionKind::Quantified(quantifier, pattern, set, body) => {
                self.quantified(*quantifier, pattern, set, body.as_deref())
            }
            ExpressionKind::FindLast(pattern) => {
                self.uses_part("Trace", pattern.kind.span);
                Ok(Condition::FindLast(self.event(pattern)?))
            }
            ExpressionKind::Apply(name, arguments) if self.define_named(&name.text).is_some() => {
                self.put_in(name, arguments)
            }
            _ => {
                let what = "this is a term, not a condition";
                let advice = format!("compare it: `{} == …`", printer::expression(this));
                let label = "expected something that holds or does not";
                self.errors.push(Diagnostic::new(this.span, what, label).help(advice));
                Err(Failed)
            }
        }
    }

    /// What one of several alternatives gives a value, only all of them together do.
    fn alternatives(&mut self, all: &[Expression]) -> Parsed<Condition> {
        let before = self.bound();
        let mut common: Option<Vec<bool>> = None;
        let mut parts = Vec::new();
        for one in all {
            self.restore(&before);
            parts.push(self.condition(one));
            let after = self.bound();
            common = Some(match common {
                None => after,
                Some(common) => {
                    let both = |(slot, now): (usize, bool)| {
                        now && common.get(slot).copied().unwrap_or(false)
                    };
                    after.into_iter().enumerate().map(both).collect()
                }
            });
        }
        self.restore(&common.unwrap_or(before));
        Ok(Condition::Or(parts.into_iter().collect::<Parsed<_>>()?))
    }

    fn bound(&self) -> Vec<bool> {
        self.variables.iter().map(|open| open.bound).collect()
    }

    fn restore(&mut self, before: &[bool]) {
        for (slot, open) in self.variables.iter_mut().enumerate() {
            open.bound = before.get(slot).copied().unwrap_or(false);
        }
    }

    fn define_named(&self, name: &str) -> Option<&'a ast::Define> {
        self.defines.iter().find(|define| define.name.text == name)
    }

    /// A definition with its arguments, in place of its name.
    fn put_in(&mut self, name: &Name, arguments: &[Expression]) -> Parsed<Condition> {
        let Some(define) = self.define_named(&name.text) else { return Err(Failed) };
        if define.parameters.len() != arguments.len() {
            let parameters: Vec<_> = define.parameters.iter().map(|p| p.text.as_str()).collect();
            let message = format!("`{}` takes {} arguments", name.text, parameters.len());
            let label = format!("expected `{}({})`", name.text, parameters.join(", "));
            return Err(self.error(name.span, message, label));
        }
        if self.depth >= DEEPEST {
            let message = "definitions use each other too deeply";
            return Err(self.error(name.span, message, format!("expected at most {DEEPEST}")));
        }
        let mut meanings = Vec::new();
        for argument in arguments {
            meanings.push(self.argument(argument)?);
        }
        let (floor, length) = (self.floor, self.scope.len());
        self.floor = length;
        let parameters = define.parameters.iter().map(|parameter| parameter.text.clone());
        self.scope.extend(parameters.zip(meanings));
        self.depth += 1;
        let done = self.condition(&define.body);
        self.depth -= 1;
        self.scope.truncate(length);
        self.floor = floor;
        done
    }

    fn argument(&mut self, argument: &Expression) -> Parsed<Meaning> {
        match &argument.kind {
            ExpressionKind::Variable(name) if name == "_" => Ok(Meaning::Anything),
            ExpressionKind::Variable(name) => match self.lookup(name) {
                Some(meaning) => Ok(meaning),
                None => {
                    let name = Name { text: name.clone(), span: argument.span };
                    Ok(Meaning::Slot(self.introduce(&name, None, false)?))
                }
            },
            _ => Ok(Meaning::Argument(self.term(argument)?.0)),
        }
    }
}
