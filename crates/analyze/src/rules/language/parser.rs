//! Tokens to tree, by recursive descent whose depth is bounded. After an error the parser goes on
//! at the next `define` or rule, so that one run reports every error.

use super::ast::{
    Define, EventPattern, Expression, ExpressionKind, File, Name, Operator, Pattern, Point,
    Quantifier, Relation, Rule,
};
use super::lexer::{KEYWORDS, LANGUAGE};
use spec::cursor::{Failed, Parsed};
use spec::{Cursor, Diagnostic, Diagnostics, Source, Span, TokenKind, lex};

/// How deep parentheses, negations and quantifiers may nest.
const DEEPEST: usize = 64;

/// Parses a rule file as far as it can be parsed; errors are collected.
#[must_use]
pub fn parse(source: &Source, errors: &mut Diagnostics) -> File {
    let tokens = lex(source, &LANGUAGE, errors);
    let mut parser = Parser { cursor: Cursor::new(&tokens, errors), depth: 0 };
    let mut file = File::default();
    while !parser.cursor.at_end() {
        let before = parser.cursor.progress();
        parser.depth = 0;
        if parser.item(&mut file).is_err() {
            if parser.cursor.progress() == before {
                parser.cursor.skip();
            }
            parser.cursor.recover(at_item);
        }
    }
    file
}

/// Whether a definition or a rule plainly begins here.
fn at_item(cursor: &Cursor<'_>) -> bool {
    let rule = cursor.is_symbol(0, "[") && cursor.is_symbol(2, "]");
    cursor.is_word(0, "define") || rule
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    depth: usize,
}

impl Parser<'_> {
    fn item(&mut self, file: &mut File) -> Parsed<()> {
        if self.cursor.eat_word("define") {
            let define = self.define()?;
            file.defines.push(define);
        } else if self.cursor.eat_symbol("[") {
            let rule = self.rule()?;
            file.rules.push(rule);
        } else {
            let expected = "`define NAME(…) = …` or `[NAME] detect <…>: …`";
            return Err(self.cursor.fail(expected));
        }
        Ok(())
    }

    fn define(&mut self) -> Parsed<Define> {
        let name = self.name("the name of the definition")?;
        self.cursor.expect_symbol("(", "to begin the parameters")?;
        let mut parameters = Vec::new();
        if !self.cursor.is_symbol(0, ")") {
            parameters.push(self.name("a parameter")?);
            while self.cursor.eat_symbol(",") {
                parameters.push(self.name("a parameter")?);
            }
        }
        self.cursor.expect_symbol(")", "to end the parameters")?;
        self.cursor.expect_symbol("=", "before what the definition stands for")?;
        let body = self.expression()?;
        Ok(Define { name, parameters, body })
    }

    fn rule(&mut self) -> Parsed<Rule> {
        let name = self.name("the name of the rule")?;
        self.cursor.expect_symbol("]", "after the name of the rule")?;
        let title = match self.cursor.peek(0) {
            TokenKind::Text(text) => {
                self.cursor.skip();
                Some(text.clone())
            }
            _ => None,
        };
        if !self.cursor.eat_word("detect") {
            return Err(self.cursor.fail("`detect <…>`, as in `detect <Trace; free r>: …`"));
        }
        self.cursor.expect_symbol("<", "before what the rule looks at")?;
        let mut parts = Vec::new();
        while self.cursor.is_symbol(1, ";") {
            parts.push(self.name("a part of the state")?);
            self.cursor.skip();
        }
        let point = self.point()?;
        self.cursor.expect_symbol(">", "after the detection point")?;
        self.cursor.expect_symbol(":", "before the bug condition")?;
        let condition = self.expression()?;
        let locators = if self.cursor.eat_symbol(":") { self.locators()? } else { Vec::new() };
        Ok(Rule { name, title, parts, point, condition, locators })
    }

    fn point(&mut self) -> Parsed<Point> {
        let (text, span) = self.cursor.expect_word("a detection point such as `free r`")?;
        let word = Name { text, span };
        let mut names = Vec::new();
        while let TokenKind::Word(_) = self.cursor.peek(0) {
            names.push(self.name("a name")?);
        }
        Ok(Point { word, names })
    }

    fn locators(&mut self) -> Parsed<Vec<Name>> {
        let mut locators = Vec::new();
        loop {
            if !self.cursor.eat_word("VPC") {
                return Err(self.cursor.fail("a locator such as `VPC(r)`"));
            }
            self.cursor.expect_symbol("(", "after `VPC`")?;
            locators.push(self.name("the pointer to follow")?);
            self.cursor.expect_symbol(")", "after the pointer")?;
            if !self.cursor.eat_symbol(",") {
                return Ok(locators);
            }
        }
    }

    fn expression(&mut self) -> Parsed<Expression> {
        self.deeper(|parser| {
            parser.separated("||", ExpressionKind::Or, |parser| {
                parser.separated("&&", ExpressionKind::And, Self::negation)
            })
        })
    }

    fn separated(
        &mut self,
        symbol: &str,
        make: fn(Vec<Expression>) -> ExpressionKind,
        mut one: impl FnMut(&mut Self) -> Parsed<Expression>,
    ) -> Parsed<Expression> {
        let start = self.cursor.span();
        let mut all = vec![one(self)?];
        while self.cursor.eat_symbol(symbol) {
            all.push(one(self)?);
        }
        match all.len() {
            1 => Ok(all.remove(0)),
            _ => Ok(self.made(start, make(all))),
        }
    }

    fn negation(&mut self) -> Parsed<Expression> {
        let start = self.cursor.span();
        if self.cursor.eat_symbol("!") {
            let inner = self.deeper(Self::negation)?;
            return Ok(self.made(start, ExpressionKind::Not(Box::new(inner))));
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Parsed<Expression> {
        let start = self.cursor.span();
        let left = self.sum()?;
        let relation = Relation::ALL.iter().find(|(_, symbol)| self.cursor.is_symbol(0, symbol));
        // `>` also ends `<…>`, but no condition stands before it.
        let Some((relation, _)) = relation else { return Ok(left) };
        self.cursor.skip();
        let right = self.sum()?;
        Ok(self.made(start, ExpressionKind::Compare(Box::new(left), *relation, Box::new(right))))
    }

    fn sum(&mut self) -> Parsed<Expression> {
        let start = self.cursor.span();
        let mut left = self.term()?;
        let operators = [Operator::Add, Operator::Subtract, Operator::And];
        let mut length = 0;
        while let Some(operator) =
            operators.into_iter().find(|operator| self.cursor.is_symbol(0, operator.symbol()))
        {
            length += 1;
            if length > DEEPEST {
                return Err(self.too_deep());
            }
            self.cursor.skip();
            let right = self.term()?;
            let kind = ExpressionKind::Arithmetic(Box::new(left), operator, Box::new(right));
            left = self.made(start, kind);
        }
        Ok(left)
    }

    fn term(&mut self) -> Parsed<Expression> {
        let start = self.cursor.span();
        if self.cursor.eat_symbol("(") {
            let inner = self.expression()?;
            self.cursor.expect_symbol(")", "to close the parenthesis")?;
            return Ok(inner);
        }
        for (word, quantifier) in [("exists", Quantifier::Exists), ("forall", Quantifier::ForAll)] {
            if self.cursor.eat_word(word) {
                return self.deeper(|parser| parser.quantified(start, quantifier));
            }
        }
        if self.cursor.eat_word("FindLast") {
            let pattern = self.event_pattern("FindLast")?;
            return Ok(self.made(start, ExpressionKind::FindLast(pattern)));
        }
        if self.cursor.eat_word("NULL") {
            return Ok(self.made(start, ExpressionKind::Null));
        }
        if let Some(number) = self.number()? {
            return Ok(self.made(start, ExpressionKind::Number(number)));
        }
        let name = self.name("a condition: a name, a number, `(`, `!`, `exists` or `forall`")?;
        if !self.cursor.eat_symbol("(") {
            return Ok(self.made(start, ExpressionKind::Variable(name.text)));
        }
        let arguments = self.arguments()?;
        Ok(self.made(start, ExpressionKind::Apply(name, arguments)))
    }

    fn number(&mut self) -> Parsed<Option<i64>> {
        let negative = self.cursor.is_symbol(0, "-");
        match self.cursor.peek(usize::from(negative)) {
            TokenKind::Number(number) => {
                if negative {
                    self.cursor.skip();
                }
                self.cursor.skip();
                Ok(Some(if negative { -number } else { *number }))
            }
            _ if negative => {
                self.cursor.skip();
                Err(self.cursor.fail("a number after `-`"))
            }
            _ => Ok(None),
        }
    }

    fn arguments(&mut self) -> Parsed<Vec<Expression>> {
        let mut arguments = Vec::new();
        if !self.cursor.is_symbol(0, ")") {
            arguments.push(self.expression()?);
            while self.cursor.eat_symbol(",") {
                arguments.push(self.expression()?);
            }
        }
        self.cursor.expect_symbol(")", "to end the arguments")?;
        Ok(arguments)
    }

    fn quantified(&mut self, start: Span, quantifier: Quantifier) -> Parsed<Expression> {
        let pattern = if self.cursor.eat_word("event") {
            Pattern::Event(self.event_pattern("event")?)
        } else {
            Pattern::Variable(self.name("a variable or `event(…)`")?)
        };
        if !self.cursor.eat_word("in") {
            return Err(self.cursor.fail("`in` and a set such as `Heap` or `Trace`"));
        }
        let set = self.name("a set: `Heap`, `Freed`, `Pointers`, `Descriptors` or `Trace`")?;
        let mut body = None;
        if self.cursor.eat_word("such") {
            if !self.cursor.eat_word("that") {
                return Err(self.cursor.fail("`that` after `such`"));
            }
            body = Some(Box::new(self.negation()?));
        }
        Ok(self.made(start, ExpressionKind::Quantified(quantifier, pattern, set, body)))
    }

    fn event_pattern(&mut self, after: &str) -> Parsed<EventPattern> {
        self.cursor.expect_symbol("(", &format!("after `{after}`"))?;
        let time = self.name("the timestamp's variable or `_`")?;
        self.cursor.expect_symbol(",", "after the timestamp")?;
        let kind = self.name("a kind of event such as `malloc` or `free`")?;
        let mut arguments = Vec::new();
        while self.cursor.eat_symbol(",") {
            // The reference writes a comma before the closing parenthesis too.
            if self.cursor.is_symbol(0, ")") {
                break;
            }
            arguments.push(self.name("a variable or `_`")?);
        }
        self.cursor.expect_symbol(")", "to end the event")?;
        Ok(EventPattern { time, kind, arguments })
    }

    fn name(&mut self, expected: &str) -> Parsed<Name> {
        match self.cursor.peek(0) {
            TokenKind::Word(word) if !KEYWORDS.contains(&word.as_str()) => {
                let (text, span) = self.cursor.expect_word(expected)?;
                Ok(Name { text, span })
            }
            _ => Err(self.cursor.fail(expected)),
        }
    }

    fn made(&self, start: Span, kind: ExpressionKind) -> Expression {
        Expression { kind, span: start.to(self.cursor.last_span()) }
    }

    /// Runs a step one level further in, unless that is too deep.
    fn deeper<T>(&mut self, step: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEEPEST {
            return Err(self.too_deep());
        }
        self.depth += 1;
        let done = step(self);
        self.depth -= 1;
        done
    }

    fn too_deep(&mut self) -> Failed {
        let message = "the condition nests too deeply";
        let label = format!("expected at most {DEEPEST} levels");
        let advice = "give parts of it names with `define`";
        self.cursor.error(Diagnostic::new(self.cursor.span(), message, label).help(advice));
        Failed
    }
}
