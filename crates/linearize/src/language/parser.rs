//! Tokens to tree, by recursive descent: only parentheses and indices nest, a few levels deep, so no
//! input can exhaust the stack. After an error the parser goes on at the next statement, sub-operation or
//! declaration, so that one run reports every error.

use super::ast::{
    Condition, Declaration, Init, Invariant, Mark, Meant, Name, Operation, Path, Relation, Spec,
    Statement, Step, Struct, Value, ValueKind,
};
use super::lexer::{FOREIGN, KEYWORDS, LANGUAGE};
use spec::cursor::{Failed, Parsed};
use spec::{Cursor, Diagnostic, Diagnostics, Source, Span, TokenKind, lex};

/// Numbers beyond this are refused: the solver adds them up and must not overflow.
const LARGEST: i64 = 1 << 31;

/// How deep parentheses and indices may nest, and how many values may be added up.
const DEEPEST: usize = 4;

/// How many fields a path may follow.
const LONGEST_PATH: usize = 8;

/// Parses a specification as far as it can be parsed; errors are collected.
#[must_use]
pub fn parse(source: &Source, errors: &mut Diagnostics) -> Spec {
    let tokens = lex(source, &LANGUAGE, errors);
    let mut parser =
        Parser { cursor: Cursor::new(&tokens, errors), types: vec!["int".to_owned()], depth: 0 };
    let mut spec = Spec::default();
    while !parser.cursor.at_end() {
        let before = parser.cursor.progress();
        if parser.item(&mut spec).is_err() {
            if parser.cursor.progress() == before {
                parser.cursor.skip();
            }
            parser.cursor.recover(at_item);
        }
    }
    spec
}

/// Whether an item of the specification plainly begins here.
fn at_item(cursor: &Cursor<'_>) -> bool {
    let keyword = ["struct", "init", "invariant"].iter().any(|word| cursor.is_word(0, word))
        || at_abstract(cursor);
    keyword || at_declaration(cursor) || at_operation(cursor)
}

/// `TYPE NAME` can only be a declaration, or a nameless-list operation followed by its locals.
fn at_declaration(cursor: &Cursor<'_>) -> bool {
    is_name(cursor.peek(0), true) && is_name(cursor.peek(1), false)
}

fn at_abstract(cursor: &Cursor<'_>) -> bool {
    cursor.is_word(0, "abstract") && (is_name(cursor.peek(1), false) || cursor.is_symbol(1, "{"))
}

fn at_operation(cursor: &Cursor<'_>) -> bool {
    let role = cursor.is_symbol(1, "/") && is_name(cursor.peek(2), false);
    is_name(cursor.peek(0), false) && (cursor.is_symbol(1, "(") || role)
}

fn is_name(token: &TokenKind, type_allowed: bool) -> bool {
    match token {
        TokenKind::Word(word) => {
            !KEYWORDS.contains(&word.as_str()) || (type_allowed && word == "int")
        }
        _ => false,
    }
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    /// The types known so far.
    types: Vec<String>,
    /// How deep parentheses and indices nest here.
    depth: usize,
}

impl Parser<'_> {
    fn item(&mut self, spec: &mut Spec) -> Parsed<()> {
        if self.cursor.is_word(0, "struct") {
            spec.structs.push(self.structure()?);
        } else if self.cursor.is_word(0, "init") {
            self.init(spec)?;
        } else if self.cursor.is_word(0, "invariant") {
            spec.invariants.push(self.invariant()?);
        } else if at_abstract(&self.cursor) {
            self.meaning(spec)?;
        } else if at_declaration(&self.cursor) && self.declares() {
            spec.globals.push(self.declaration_line()?);
        } else if is_name(self.cursor.peek(0), false) {
            spec.operations.push(self.operation()?);
        } else if let Some(failed) = self.foreign() {
            return Err(failed);
        } else {
            let expected = "`struct`, a shared variable, `init`, `invariant` or an operation";
            return Err(self.cursor.fail(expected));
        }
        Ok(())
    }

    /// `abstract NAME;`, or `abstract {`, a specification of its own, `}`.
    fn meaning(&mut self, spec: &mut Spec) -> Parsed<()> {
        let span = self.cursor.span();
        self.cursor.skip();
        let meant = if self.cursor.eat_symbol("{") {
            Meant::Written(span, Box::new(self.object()?))
        } else {
            let name = self.name("`queue`, `stack`, `set`, `map`, `counter` …")?;
            self.cursor.expect_symbol(";", "to end the line")?;
            Meant::Named(name)
        };
        if spec.meaning.is_some() {
            let message = "the abstract object is given twice";
            self.cursor.error(Diagnostic::new(span, message, "expected only one `abstract`"));
        }
        spec.meaning = Some(meant);
        Ok(())
    }

    /// The items of an abstract object, which has none itself, up to the `}`.
    fn object(&mut self) -> Parsed<Spec> {
        let mut object = Spec::default();
        while !self.cursor.is_symbol(0, "}") {
            if at_abstract(&self.cursor) {
                return Err(self.cursor.fail("an operation of the abstract object"));
            }
            self.item(&mut object)?;
        }
        self.cursor.expect_symbol("}", "to end the abstract object")?;
        self.cursor.eat_symbol(";");
        Ok(object)
    }

    /// `TYPE NAME ;` or `TYPE NAME [`, or a known type: tells `int x;`, perhaps without its `;`,
    /// from an operation without parentheses.
    fn declares(&self) -> bool {
        let ends = self.cursor.is_symbol(2, ";") || self.cursor.is_symbol(2, "[");
        let known = self.types.iter().any(|name| self.cursor.is_word(0, name));
        !at_abstract(&self.cursor) && (ends || (known && !self.cursor.is_symbol(2, "(")))
    }

    fn structure(&mut self) -> Parsed<Struct> {
        self.cursor.skip();
        let name = self.name("a name for the struct")?;
        self.types.push(name.text.clone());
        self.cursor.expect_symbol("{", "to begin the fields")?;
        let mut fields = Vec::new();
        while !self.cursor.is_symbol(0, "}") {
            fields.push(self.declaration()?);
            if !self.cursor.eat_symbol(",") && !self.cursor.eat_symbol(";") {
                break;
            }
        }
        self.cursor.expect_symbol("}", "to end the fields")?;
        self.cursor.eat_symbol(";");
        Ok(Struct { name, fields })
    }

    fn init(&mut self, spec: &mut Spec) -> Parsed<()> {
        let span = self.cursor.span();
        self.cursor.skip();
        self.cursor.eat_symbol(":");
        let locals = self.local_declarations()?;
        let body = self.statements();
        if spec.init.is_some() {
            let message = "the initial state is given twice";
            self.cursor.error(Diagnostic::new(span, message, "expected only one `init`"));
        }
        spec.init = Some(Init { span, locals, body });
        Ok(())
    }

    fn invariant(&mut self) -> Parsed<Invariant> {
        let start = self.cursor.span();
        self.cursor.skip();
        let variables = if self.cursor.is_symbol(0, "(") { self.parameters()? } else { Vec::new() };
        let mut given = Vec::new();
        let mut then = self.conjunction()?;
        if self.cursor.eat_symbol("=>") {
            given = then;
            then = self.conjunction()?;
        }
        self.cursor.expect_symbol(";", "to end the invariant")?;
        Ok(Invariant { span: start.to(self.cursor.last_span()), variables, given, then })
    }

    /// Conditions separated by commas.
    fn conjunction(&mut self) -> Parsed<Vec<Condition>> {
        let mut conditions = vec![self.condition()?];
        while self.cursor.eat_symbol(",") {
            conditions.push(self.condition()?);
        }
        Ok(conditions)
    }

    fn operation(&mut self) -> Parsed<Operation> {
        let internal = self.cursor.is_word(0, "internal") && is_name(self.cursor.peek(1), false);
        if internal {
            self.cursor.skip();
        }
        let name = self.name("an operation's name")?;
        let role = if self.cursor.eat_symbol("/") {
            Some(self.name("the name of a role after `/`")?)
        } else {
            None
        };
        let parameters =
            if self.cursor.is_symbol(0, "(") { self.parameters()? } else { Vec::new() };
        let bound = self.cursor.is_word(0, "on") && is_name(self.cursor.peek(1), false);
        let thread = if bound {
            self.cursor.skip();
            Some(self.name("the name of a thread after `on`")?)
        } else {
            None
        };
        let locals = self.local_declarations()?;
        let mut steps = Vec::new();
        let has_steps = self.mark().is_some();
        while let Some(mark) = self.mark() {
            if let Ok(step) = self.step(mark) {
                steps.push(step);
            } else {
                self.cursor.recover(|cursor| at_mark(cursor) || at_item(cursor));
            }
        }
        if !has_steps && at_foreign(&self.cursor) {
            return Err(self.foreign().unwrap_or(Failed));
        }
        if !has_steps {
            let message = format!("the operation `{}` has no sub-operations", name.text);
            let label = "expected a sub-operation after this, such as `1 x = 1;`";
            self.cursor.error(Diagnostic::new(name.span, message, label));
        }
        Ok(Operation { name, role, parameters, locals, steps, internal, thread })
    }

    fn parameters(&mut self) -> Parsed<Vec<Declaration>> {
        self.cursor.expect_symbol("(", "to begin the list")?;
        let mut parameters = Vec::new();
        while !self.cursor.is_symbol(0, ")") {
            parameters.push(self.declaration()?);
            if !self.cursor.eat_symbol(",") && !self.cursor.eat_symbol(";") {
                break;
            }
        }
        self.cursor.expect_symbol(")", "to end the list")?;
        Ok(parameters)
    }

    fn local_declarations(&mut self) -> Parsed<Vec<Declaration>> {
        let mut locals = Vec::new();
        while at_declaration(&self.cursor) && self.declares() {
            locals.push(self.declaration_line()?);
        }
        Ok(locals)
    }

    fn declaration_line(&mut self) -> Parsed<Declaration> {
        let declaration = self.declaration()?;
        if !self.cursor.eat_symbol(";") {
            // Behind the name, where it belongs; what follows is read as if it were there.
            let end = self.cursor.last_span().end;
            let message = format!("`;` is missing after `{}`", declaration.name.text);
            let label = "expected `;` to end the declaration";
            self.cursor.error(Diagnostic::new(Span::new(end, end), message, label));
        }
        Ok(declaration)
    }

    fn declaration(&mut self) -> Parsed<Declaration> {
        if !is_name(self.cursor.peek(0), true) {
            return Err(self.cursor.fail("a type: `int` or the name of a struct"));
        }
        let (text, span) = self.cursor.expect_word("a type")?;
        let ty = Name { text, span };
        let name = self.name("a name to declare")?;
        let array = self.cursor.eat_symbol("[");
        if array {
            self.cursor.expect_symbol("]", "after `[`: arrays have no length")?;
        }
        Ok(Declaration { ty, name, array })
    }

    fn mark(&self) -> Option<Mark> {
        match self.cursor.peek(0) {
            TokenKind::Number(_) => Some(Mark::Own),
            TokenKind::Symbol("*") => Some(Mark::Any),
            _ => None,
        }
    }

    fn step(&mut self, mark: Mark) -> Parsed<Step> {
        let start = self.cursor.span();
        if matches!(self.cursor.peek(0), TokenKind::Number(number) if *number != 1) {
            let failed = self.cursor.fail("a thread mark: `1` (own thread) or `*` (any thread)");
            self.cursor.skip();
            return Err(failed);
        }
        self.cursor.skip();
        let repeats = at_loop(&self.cursor);
        if repeats {
            self.cursor.skip();
        }
        let conditions =
            if self.cursor.eat_symbol("<") { self.precondition()? } else { Vec::new() };
        let errors = self.cursor.errors();
        let body = self.statements();
        if conditions.is_empty() && body.is_empty() {
            if self.cursor.errors() > errors {
                return Err(Failed);
            }
            return Err(self.cursor.fail("a precondition `<…>` or a statement"));
        }
        Ok(Step { mark, conditions, body, repeats, span: start.to(self.cursor.last_span()) })
    }

    fn precondition(&mut self) -> Parsed<Vec<Condition>> {
        let mut conditions = Vec::new();
        while !self.cursor.eat_symbol(">") {
            conditions.push(self.condition()?);
            if !self.cursor.eat_symbol(";") && !self.cursor.is_symbol(0, ">") {
                return Err(self.after_condition());
            }
        }
        Ok(conditions)
    }

    /// Something else stands where a condition should have ended.
    fn after_condition(&mut self) -> Failed {
        let help = if self.cursor.is_symbol(0, "&&") {
            "all conditions have to hold: separate them by `;`"
        } else if self.cursor.is_symbol(0, "||") {
            "write one role of the operation for each alternative: `Op/this`, `Op/that`"
        } else {
            return self.cursor.fail("`;` or `>` after a condition");
        };
        let found = self.cursor.peek(0).describe();
        let message = format!("{found} does not join conditions");
        let label = "expected `;` or `>` after a condition";
        self.cursor.error(Diagnostic::new(self.cursor.span(), message, label).help(help));
        Failed
    }

    /// Words of other languages, with what to write here instead.
    fn foreign(&mut self) -> Option<Failed> {
        let TokenKind::Word(word) = self.cursor.peek(0) else { return None };
        let help = match word.as_str() {
            "if" | "else" | "switch" => {
                "write each path through the code as a role, `Op/empty`, `Op/found`, and the \
                 condition of the path as a precondition: `1 <x == 0;> return 0;`"
            }
            "while" | "for" | "do" => {
                "write a loop that tries again as its last round only (a local that is read before it \
                 is written holds whatever lets the operation go on), one that walks along as \
                 `1 loop <c.key < k;> c = c.next;`"
            }
            _ => return None,
        };
        let message = format!("the language has no `{word}`");
        let label = "expected a sub-operation or a statement";
        self.cursor.error(Diagnostic::new(self.cursor.span(), message, label).help(help));
        self.cursor.skip();
        Some(Failed)
    }

    fn condition(&mut self) -> Parsed<Condition> {
        let left = self.value()?;
        let relation = self.relation()?;
        let right = self.value()?;
        Ok(Condition { left, relation, right })
    }

    fn relation(&mut self) -> Parsed<Relation> {
        let relation = match self.cursor.peek(0) {
            TokenKind::Symbol("==") => Relation::Equal,
            TokenKind::Symbol("!=" | "≠") => Relation::NotEqual,
            TokenKind::Symbol("<") => Relation::Less,
            TokenKind::Symbol("<=" | "≤") => Relation::LessEqual,
            TokenKind::Symbol(">") => Relation::Greater,
            TokenKind::Symbol(">=" | "≥") => Relation::GreaterEqual,
            _ => return Err(self.cursor.fail("a comparison: `==`, `!=`, `<`, `<=`, `>` or `>=`")),
        };
        self.cursor.skip();
        Ok(relation)
    }

    /// Statements up to what can no longer be one.
    fn statements(&mut self) -> Vec<Statement> {
        let mut statements = Vec::new();
        while self.at_statement() {
            match self.statement() {
                Ok(statement) => statements.push(statement),
                Err(Failed) => {
                    self.cursor.recover(|cursor| {
                        cursor.is_symbol(0, ";") || at_mark(cursor) || at_item(cursor)
                    });
                    self.cursor.eat_symbol(";");
                }
            }
        }
        statements
    }

    fn at_statement(&self) -> bool {
        let keyword = ["free", "READ", "return"].iter().any(|word| self.cursor.is_word(0, word))
            || at_foreign(&self.cursor);
        let next_is_name = matches!(self.cursor.peek(1), TokenKind::Word(_));
        let plain =
            is_name(self.cursor.peek(0), false) && !next_is_name && !at_abstract(&self.cursor);
        keyword || (plain && !at_operation(&self.cursor) && !at_bare_operation(&self.cursor))
    }

    fn statement(&mut self) -> Parsed<Statement> {
        if let Some(failed) = self.foreign() {
            return Err(failed);
        }
        let start = self.cursor.span();
        let fence = self.cursor.is_word(0, "fence") && self.cursor.is_symbol(1, ";");
        let statement = if fence {
            self.cursor.skip();
            Statement::Fence(start)
        } else if self.cursor.eat_word("free") {
            Statement::Free(self.name("the variable to free")?)
        } else if self.cursor.eat_word("READ") {
            Statement::Read(self.path()?)
        } else if self.cursor.eat_word("return") {
            Statement::Return(self.value()?)
        } else {
            self.assignment()?
        };
        self.cursor.expect_symbol(";", "to end the statement")?;
        Ok(statement)
    }

    fn assignment(&mut self) -> Parsed<Statement> {
        let target = self.path()?;
        for (symbol, sign) in [("++", '+'), ("--", '-'), ("+=", '+'), ("-=", '-')] {
            if self.cursor.is_symbol(0, symbol) {
                let message = format!("the language has no `{symbol}`");
                let name = &target.root.text;
                let help = format!("write it out: `{name} = {name} {sign} 1;`");
                let label = "expected `=` to assign";
                let error = Diagnostic::new(self.cursor.span(), message, label).help(help);
                self.cursor.error(error);
                return Err(Failed);
            }
        }
        self.cursor.expect_symbol("=", "to assign")?;
        if !self.cursor.eat_word("malloc") {
            return Ok(Statement::Assign(target, self.value()?));
        }
        let ty = self.name("the name of a struct to allocate")?;
        if target.index.is_some() || !target.fields.is_empty() {
            let message = "`malloc` gives its node to a variable";
            let diagnostic = Diagnostic::new(target.span, message, "expected a variable");
            self.cursor.error(diagnostic.help("allocate into a local first, then store it"));
            return Err(Failed);
        }
        Ok(Statement::Malloc { target: target.root, ty })
    }

    fn path(&mut self) -> Parsed<Path> {
        let root = self.name("a variable, a field or an array element")?;
        let start = root.span;
        let index = if self.cursor.eat_symbol("[") { Some(Box::new(self.index()?)) } else { None };
        let mut fields = Vec::new();
        while self.cursor.eat_symbol(".") {
            fields.push(self.name("a field's name after `.`")?);
        }
        let span = start.to(self.cursor.last_span());
        if fields.len() > LONGEST_PATH {
            let message = format!("a path of {} fields is too deep", fields.len());
            let label = format!("expected at most {LONGEST_PATH}");
            self.cursor.error(Diagnostic::new(span, message, label));
            fields.truncate(LONGEST_PATH);
        }
        Ok(Path { root, index, fields, span })
    }

    fn index(&mut self) -> Parsed<Value> {
        let index = self.nested(Self::value)?;
        self.cursor.expect_symbol("]", "to end the index")?;
        Ok(index)
    }

    /// Reads something inside parentheses or brackets, not too deep.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == DEEPEST {
            let label = format!("expected at most {DEEPEST} levels");
            let error = Diagnostic::new(self.cursor.span(), "this is nested too deeply", label);
            self.cursor.error(error);
            return Err(Failed);
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// Values added and subtracted.
    fn value(&mut self) -> Parsed<Value> {
        let start = self.cursor.span();
        let mut value = self.rest()?;
        for _ in 0..DEEPEST {
            let adds = self.cursor.is_symbol(0, "+");
            if !adds && !self.cursor.is_symbol(0, "-") {
                break;
            }
            self.cursor.skip();
            let right = self.rest()?;
            let span = start.to(self.cursor.last_span());
            value = Value { kind: combined(value, right, adds), span };
        }
        Ok(value)
    }

    /// A value, perhaps the rest of it when divided by a number.
    fn rest(&mut self) -> Parsed<Value> {
        let start = self.cursor.span();
        let value = self.atom()?;
        if !self.cursor.eat_symbol("%") {
            return Ok(value);
        }
        let divisor = self.number("a number to divide by")?;
        let span = start.to(self.cursor.last_span());
        if divisor < 1 {
            let message = "a rest needs a divisor of 1 or more";
            self.cursor.error(Diagnostic::new(span, message, "expected a positive number"));
            return Err(Failed);
        }
        Ok(Value { kind: ValueKind::Modulo(Box::new(value), divisor), span })
    }

    fn atom(&mut self) -> Parsed<Value> {
        let start = self.cursor.span();
        let kind = if self.cursor.eat_symbol("(") {
            let inner = self.nested(Self::value)?;
            self.cursor.expect_symbol(")", "to end the group")?;
            inner.kind
        } else if self.cursor.eat_word("ID") {
            ValueKind::Id
        } else if self.cursor.eat_word("NULL") {
            ValueKind::Null
        } else if is_name(self.cursor.peek(0), false) {
            ValueKind::Path(self.path()?, 0)
        } else {
            ValueKind::Number(self.number("a value: a number, `NULL`, `ID` or a path")?)
        };
        Ok(Value { kind, span: start.to(self.cursor.last_span()) })
    }

    fn number(&mut self, expected: &str) -> Parsed<i64> {
        let start = self.cursor.span();
        let negative = self.cursor.eat_symbol("-");
        let TokenKind::Number(number) = *self.cursor.peek(0) else {
            return Err(self.cursor.fail(expected));
        };
        self.cursor.skip();
        if number > LARGEST {
            let span = start.to(self.cursor.last_span());
            let label = format!("expected at most {LARGEST}");
            self.cursor.error(Diagnostic::new(span, "the number is too large", label));
            return Err(Failed);
        }
        Ok(if negative { -number } else { number })
    }

    fn name(&mut self, expected: &str) -> Parsed<Name> {
        if !is_name(self.cursor.peek(0), false) {
            return Err(self.cursor.fail(expected));
        }
        let (text, span): (String, Span) = self.cursor.expect_word(expected)?;
        Ok(Name { text, span })
    }
}

/// Whether a word of another language stands here.
fn at_foreign(cursor: &Cursor<'_>) -> bool {
    FOREIGN.iter().any(|word| cursor.is_word(0, word))
}

fn at_mark(cursor: &Cursor<'_>) -> bool {
    let after = |symbol| cursor.is_symbol(1, symbol);
    let opens = after("<") || matches!(cursor.peek(1), TokenKind::Word(_));
    opens && matches!(cursor.peek(0), TokenKind::Number(1) | TokenKind::Symbol("*"))
}

/// `loop` before a precondition or a statement, and not a variable of that name.
fn at_loop(cursor: &Cursor<'_>) -> bool {
    let variable = ["=", ".", "["].iter().any(|symbol| cursor.is_symbol(1, symbol));
    cursor.is_word(0, "loop") && !variable
}

/// `NAME` directly before a thread mark or a declaration: an operation without parentheses.
fn at_bare_operation(cursor: &Cursor<'_>) -> bool {
    matches!(cursor.peek(1), TokenKind::Number(_) | TokenKind::Symbol("*"))
}

/// Two values added or subtracted; numbers are added up at once.
fn combined(left: Value, right: Value, adds: bool) -> ValueKind {
    let sign = if adds { 1 } else { -1 };
    match (left.kind, right.kind) {
        (ValueKind::Number(one), ValueKind::Number(other)) => ValueKind::Number(one + sign * other),
        (ValueKind::Path(path, offset), ValueKind::Number(number)) => {
            ValueKind::Path(path, offset + sign * number)
        }
        (ValueKind::Number(number), ValueKind::Path(path, offset)) if adds => {
            ValueKind::Path(path, offset + number)
        }
        (one, other) => {
            let left = Box::new(Value { kind: one, span: left.span });
            let right = Box::new(Value { kind: other, span: right.span });
            if adds { ValueKind::Sum(left, right) } else { ValueKind::Difference(left, right) }
        }
    }
}
