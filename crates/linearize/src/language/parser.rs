//! Tokens to tree, by recursive descent without recursion: no construct nests, so no input can
//! exhaust the stack. After an error the parser goes on at the next statement, sub-operation or
//! declaration, so that one run reports every error.

use super::ast::{
    Condition, Declaration, Index, Init, Invariant, Mark, Name, Operation, Path, Relation, Spec,
    Statement, Step, Struct, Value, ValueKind,
};
use super::lexer::{KEYWORDS, LANGUAGE};
use spec::cursor::{Failed, Parsed};
use spec::{Cursor, Diagnostic, Diagnostics, Source, Span, TokenKind, lex};

/// Numbers beyond this are refused: the solver adds them up and must not overflow.
const LARGEST: i64 = 1 << 31;

/// How many fields a path may follow.
const LONGEST_PATH: usize = 8;

/// Parses a specification as far as it can be parsed; errors are collected.
#[must_use]
pub fn parse(source: &Source, errors: &mut Diagnostics) -> Spec {
    let tokens = lex(source, &LANGUAGE, errors);
    let mut parser = Parser { cursor: Cursor::new(&tokens, errors) };
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
    let keyword = ["struct", "init", "invariant"].iter().any(|word| cursor.is_word(0, word));
    keyword || at_declaration(cursor) || at_operation(cursor)
}

/// `TYPE NAME` can only be a declaration, or a nameless-list operation followed by its locals.
fn at_declaration(cursor: &Cursor<'_>) -> bool {
    is_name(cursor.peek(0), true) && is_name(cursor.peek(1), false)
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
}

impl Parser<'_> {
    fn item(&mut self, spec: &mut Spec) -> Parsed<()> {
        if self.cursor.is_word(0, "struct") {
            spec.structs.push(self.structure()?);
        } else if self.cursor.is_word(0, "init") {
            self.init(spec)?;
        } else if self.cursor.is_word(0, "invariant") {
            spec.invariants.push(self.invariant()?);
        } else if at_declaration(&self.cursor) && self.ends_like_a_declaration() {
            spec.globals.push(self.declaration_line()?);
        } else if is_name(self.cursor.peek(0), false) {
            spec.operations.push(self.operation()?);
        } else {
            let expected = "`struct`, a shared variable, `init`, `invariant` or an operation";
            return Err(self.cursor.fail(expected));
        }
        Ok(())
    }

    /// `TYPE NAME ;` or `TYPE NAME [`: tells `int x;` from an operation without parentheses.
    fn ends_like_a_declaration(&self) -> bool {
        self.cursor.is_symbol(2, ";") || self.cursor.is_symbol(2, "[")
    }

    fn structure(&mut self) -> Parsed<Struct> {
        self.cursor.skip();
        let name = self.name("a name for the struct")?;
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
        let name = self.name("an operation's name")?;
        let role = if self.cursor.eat_symbol("/") {
            Some(self.name("the name of a role after `/`")?)
        } else {
            None
        };
        let parameters =
            if self.cursor.is_symbol(0, "(") { self.parameters()? } else { Vec::new() };
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
        if !has_steps {
            let message = format!("the operation `{}` has no sub-operations", name.text);
            let label = "expected a sub-operation after this, such as `1 x = 1;`";
            self.cursor.error(Diagnostic::new(name.span, message, label));
        }
        Ok(Operation { name, role, parameters, locals, steps })
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
        while at_declaration(&self.cursor) && self.ends_like_a_declaration() {
            locals.push(self.declaration_line()?);
        }
        Ok(locals)
    }

    fn declaration_line(&mut self) -> Parsed<Declaration> {
        let declaration = self.declaration()?;
        self.cursor.expect_symbol(";", "to end the declaration")?;
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
        Ok(Step { mark, conditions, body, span: start.to(self.cursor.last_span()) })
    }

    fn precondition(&mut self) -> Parsed<Vec<Condition>> {
        let mut conditions = Vec::new();
        while !self.cursor.eat_symbol(">") {
            conditions.push(self.condition()?);
            if !self.cursor.eat_symbol(";") && !self.cursor.is_symbol(0, ">") {
                return Err(self.cursor.fail("`;` or `>` after a condition"));
            }
        }
        Ok(conditions)
    }

    fn condition(&mut self) -> Parsed<Condition> {
        let left = self.path()?;
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
        let keyword = ["free", "READ", "return"].iter().any(|word| self.cursor.is_word(0, word));
        let next_is_name = matches!(self.cursor.peek(1), TokenKind::Word(_));
        let plain = is_name(self.cursor.peek(0), false) && !next_is_name;
        keyword || (plain && !at_operation(&self.cursor) && !at_bare_operation(&self.cursor))
    }

    fn statement(&mut self) -> Parsed<Statement> {
        let statement = if self.cursor.eat_word("free") {
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
        let index = if self.cursor.eat_symbol("[") { Some(self.index()?) } else { None };
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

    fn index(&mut self) -> Parsed<Index> {
        let span = self.cursor.span();
        let index = if self.cursor.eat_word("ID") {
            Index::Id(span)
        } else if is_name(self.cursor.peek(0), false) {
            let name = self.name("an index")?;
            Index::Variable(name, self.offset()?)
        } else {
            Index::Number(self.number("an index: a number, a variable or `ID`")?)
        };
        self.cursor.expect_symbol("]", "to end the index")?;
        Ok(index)
    }

    fn value(&mut self) -> Parsed<Value> {
        let start = self.cursor.span();
        let kind = if self.cursor.eat_word("ID") {
            ValueKind::Id
        } else if self.cursor.eat_word("NULL") {
            ValueKind::Null
        } else if is_name(self.cursor.peek(0), false) {
            let path = self.path()?;
            ValueKind::Path(path, self.offset()?)
        } else {
            ValueKind::Number(self.number("a value: a number, `NULL`, `ID` or a path")?)
        };
        Ok(Value { kind, span: start.to(self.cursor.last_span()) })
    }

    /// `+ n`, `- n` or nothing.
    fn offset(&mut self) -> Parsed<i64> {
        if self.cursor.eat_symbol("+") {
            self.number("a number to add")
        } else if self.cursor.eat_symbol("-") {
            Ok(-self.number("a number to subtract")?)
        } else {
            Ok(0)
        }
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

fn at_mark(cursor: &Cursor<'_>) -> bool {
    let after = |symbol| cursor.is_symbol(1, symbol);
    let opens = after("<") || matches!(cursor.peek(1), TokenKind::Word(_));
    opens && matches!(cursor.peek(0), TokenKind::Number(1) | TokenKind::Symbol("*"))
}

/// `NAME` directly before a thread mark or a declaration: an operation without parentheses.
fn at_bare_operation(cursor: &Cursor<'_>) -> bool {
    matches!(cursor.peek(1), TokenKind::Number(_) | TokenKind::Symbol("*"))
}
