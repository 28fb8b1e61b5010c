//! Tree to model: resolves names, checks types, and reports every mistake of meaning at its place.

mod names;

use super::ast::{self, Name, Relation, ValueKind};
use super::{loops, printer};
use crate::model::{
    Code, Condition, Expression, Field, Global, Invariant, Local, LocalKind, Meaning, Operation,
    Place, Program, Statement, Step, Struct, Type,
};
use names::unknown;
use spec::{Diagnostic, Diagnostics, Source, Span};

/// More sub-operations than this are refused: the proof looks at every pair.
const MOST_STEPS: usize = 1000;

/// An invariant is looked at for every choice of what it speaks of.
const MOST_VARIABLES: usize = 3;

/// Resolves and checks a tree. What is wrong is left out of the model and reported.
#[must_use]
pub fn check(tree: &ast::Spec, source: &Source, errors: &mut Diagnostics) -> Program {
    check_object(tree, source, false, errors)
}

/// Like [`check`]; of an `abstract` object if `sequential`.
fn check_object(
    tree: &ast::Spec,
    source: &Source,
    sequential: bool,
    errors: &mut Diagnostics,
) -> Program {
    let titles = Vec::new();
    let mut checker = Checker { program: Program::default(), errors, sequential, titles };
    checker.structs(&tree.structs);
    checker.globals(&tree.globals);
    if let Some(init) = &tree.init {
        checker.program.init = checker.init(init);
    }
    for invariant in &tree.invariants {
        checker.invariant(invariant);
    }
    for operation in &tree.operations {
        checker.operation(operation);
    }
    match &tree.meaning {
        None => {}
        Some(ast::Meant::Named(name)) => checker.meaning(name),
        Some(ast::Meant::Written(span, object)) => {
            let object = check_object(object, source, true, checker.errors);
            checker.written(*span, object);
        }
    }
    checker.roles_agree(&tree.operations);
    checker.sizes(tree, source);
    checker.program
}

struct Checker<'a> {
    program: Program,
    errors: &'a mut Diagnostics,
    /// Whether this is what the operations should do one after the other, where no instance is
    /// known by its `ID`.
    sequential: bool,
    /// Names and roles of the operations so far.
    titles: Vec<(String, Option<String>)>,
}

/// The variables that a piece of code may name besides the shared ones.
struct Scope {
    locals: Vec<Local>,
    sites: usize,
    /// Whether this is an operation, which can return something.
    returns: bool,
    /// Whether `ID` means something.
    has_id: bool,
}

impl Scope {
    fn hidden(&mut self, ty: Type, kind: LocalKind, name: String) -> Place {
        self.locals.push(Local { name, ty, kind });
        Place::Local(self.locals.len() - 1)
    }
}

impl Checker<'_> {
    fn error(&mut self, span: Span, message: impl Into<String>, label: impl Into<String>) {
        self.errors.push(Diagnostic::new(span, message, label));
    }

    fn structs(&mut self, structs: &[ast::Struct]) {
        for structure in structs {
            if self.program.structs.iter().any(|known| known.name == structure.name.text) {
                let message = format!("the struct `{}` is declared twice", structure.name.text);
                self.error(structure.name.span, message, "expected another name");
            }
            let name = structure.name.text.clone();
            self.program.structs.push(Struct { name, fields: Vec::new() });
        }
        // Fields second, so that structs can refer to each other.
        for (owner, structure) in structs.iter().enumerate() {
            for declaration in &structure.fields {
                self.field(owner, declaration);
            }
        }
    }

    fn field(&mut self, owner: usize, declaration: &ast::Declaration) {
        let name = declaration.name.text.clone();
        if declaration.array {
            let message = "a field cannot be an array";
            self.error(declaration.name.span, message, "expected a field without `[]`");
        }
        let Some(ty) = self.ty(&declaration.ty) else { return };
        if self.find_field(owner, &name).is_some() {
            let message = format!("the field `{name}` is declared twice");
            self.error(declaration.name.span, message, "expected another name");
        }
        let field = self.program.fields.len();
        self.program.fields.push(Field { name, ty, owner });
        self.program.structs[owner].fields.push(field);
    }

    fn find_field(&self, owner: usize, name: &str) -> Option<usize> {
        let fields = &self.program.structs[owner].fields;
        fields.iter().copied().find(|&field| self.program.fields[field].name == name)
    }

    fn ty(&mut self, name: &Name) -> Option<Type> {
        if name.text == "int" {
            return Some(Type::Int);
        }
        let found = self.program.structs.iter().position(|known| known.name == name.text);
        if found.is_none() {
            let known: Vec<_> = self.program.structs.iter().map(|s| s.name.as_str()).collect();
            self.errors.push(unknown("type", name, known.into_iter().chain(["int"])));
        }
        found.map(Type::Ref)
    }

    fn type_name(&self, ty: Type) -> String {
        match ty {
            Type::Int => "int".to_owned(),
            Type::Ref(structure) => self.program.structs[structure].name.clone(),
        }
    }

    fn globals(&mut self, globals: &[ast::Declaration]) {
        for declaration in globals {
            let name = declaration.name.text.clone();
            if self.program.globals.iter().any(|known| known.name == name) {
                let message = format!("the shared variable `{name}` is declared twice");
                self.error(declaration.name.span, message, "expected another name");
            }
            if let Some(ty) = self.ty(&declaration.ty) {
                self.program.globals.push(Global { name, ty, array: declaration.array });
            }
        }
    }

    fn declare(&mut self, declarations: &[ast::Declaration], kind: LocalKind, scope: &mut Scope) {
        for declaration in declarations {
            let name = declaration.name.text.clone();
            let shared = self.program.globals.iter().any(|known| known.name == name);
            if shared || scope.locals.iter().any(|known| known.name == name) {
                let message = format!("`{name}` is declared twice");
                self.error(declaration.name.span, message, "expected another name");
                continue;
            }
            if declaration.array {
                let message = format!("the local variable `{name}` cannot be an array");
                self.error(declaration.name.span, message, "expected no `[]`: arrays are shared");
            }
            if let Some(ty) = self.ty(&declaration.ty) {
                scope.locals.push(Local { name, ty, kind });
            }
        }
    }

    fn init(&mut self, init: &ast::Init) -> Code {
        let mut scope = Scope { locals: Vec::new(), sites: 0, returns: false, has_id: false };
        self.declare(&init.locals, LocalKind::Declared, &mut scope);
        let body = self.body(&init.body, &mut scope);
        Code { locals: scope.locals, body }
    }

    fn invariant(&mut self, invariant: &ast::Invariant) {
        let mut scope = Scope { locals: Vec::new(), sites: 0, returns: false, has_id: false };
        self.declare(&invariant.variables, LocalKind::Declared, &mut scope);
        if invariant.variables.len() > MOST_VARIABLES {
            let message = format!("an invariant about {} things", invariant.variables.len());
            self.error(invariant.span, message, format!("expected at most {MOST_VARIABLES}"));
        }
        let given = self.conditions(&invariant.given, &mut scope);
        let then = self.conditions(&invariant.then, &mut scope);
        self.program.invariants.push(Invariant {
            variables: scope.locals,
            given,
            then,
            text: printer::invariant(invariant),
            span: invariant.span,
        });
    }

    /// An operation, once for each number of rounds of its loops.
    fn operation(&mut self, operation: &ast::Operation) {
        self.is_new(operation);
        let paths = match loops::paths(operation) {
            Ok(paths) => paths,
            Err(error) => return self.errors.push(error),
        };
        if paths.len() > 1 {
            self.program.rounds = Some(loops::MOST_ROUNDS);
        }
        for path in paths {
            let before = self.errors.len();
            self.path(&path);
            if self.errors.len() > before {
                // The others would have the same errors.
                return;
            }
        }
    }

    /// Reports a second operation of the same name and role.
    fn is_new(&mut self, operation: &ast::Operation) {
        let title = |one: &ast::Operation| {
            (one.name.text.clone(), one.role.as_ref().map(|role| role.text.clone()))
        };
        let (name, role) = title(operation);
        if self.titles.contains(&(name.clone(), role.clone())) {
            let message = format!("the operation `{name}` is given twice");
            let diagnostic = Diagnostic::new(operation.name.span, message, "expected another name");
            self.errors.push(diagnostic.help(format!("name its paths as roles: `{name}/empty`")));
        }
        self.titles.push((name, role));
    }

    /// One path through an operation, without loops.
    fn path(&mut self, operation: &ast::Operation) {
        let mut scope =
            Scope { locals: Vec::new(), sites: 0, returns: true, has_id: !self.sequential };
        self.declare(&operation.parameters, LocalKind::Parameter, &mut scope);
        self.declare(&operation.locals, LocalKind::Declared, &mut scope);
        let role = operation.role.as_ref().map(|role| role.text.clone());
        let name = operation.name.text.clone();
        let first = self.program.operations.iter().map(|known| known.steps.len()).sum::<usize>();
        let mut steps = Vec::new();
        for (number, step) in operation.steps.iter().enumerate() {
            steps.push(Step {
                label: label(first + number),
                mark: step.mark,
                conditions: self.conditions(&step.conditions, &mut scope),
                body: self.body(&step.body, &mut scope),
                text: printer::step(step),
                span: step.span,
            });
        }
        let thread = operation.thread.as_ref().map(|name| self.thread(name));
        let internal = operation.internal;
        let locals = scope.locals;
        self.program.operations.push(Operation { name, role, locals, steps, internal, thread });
    }

    fn thread(&mut self, name: &Name) -> usize {
        let known = self.program.threads.iter().position(|thread| *thread == name.text);
        known.unwrap_or_else(|| {
            self.program.threads.push(name.text.clone());
            self.program.threads.len() - 1
        })
    }

    fn meaning(&mut self, name: &Name) {
        let all = [
            ("queue", Meaning::Queue),
            ("stack", Meaning::Stack),
            ("set", Meaning::Set),
            ("map", Meaning::Map),
            ("counter", Meaning::Counter),
            ("register", Meaning::Register),
        ];
        let found = all.iter().find(|(known, _)| *known == name.text);
        let Some(&(_, meaning)) = found else {
            self.errors.push(unknown("object", name, all.iter().map(|(known, _)| *known)));
            return;
        };
        self.program.meaning = Some(meaning);
        for strange in crate::explore::meaning::unknown(&self.program, meaning) {
            let message = format!("a {} has no operation `{strange}`", name.text);
            self.error(name.span, message, "expected the usual names of its operations");
        }
    }

    /// An abstract object that is written out has each operation that callers see, with as many
    /// arguments and results, all of them numbers: nodes of the two are not the same nodes.
    fn written(&mut self, span: Span, object: Program) {
        let shape = |operation: &Operation| {
            let count = |kind| operation.locals_of(kind).count();
            (count(LocalKind::Parameter), count(LocalKind::Result))
        };
        let passes_nodes = |operation: &Operation| {
            let passed =
                |local: &&Local| matches!(local.kind, LocalKind::Parameter | LocalKind::Result);
            operation.locals.iter().filter(passed).any(|local| local.ty != Type::Int)
        };
        let mut problems = Vec::new();
        for operation in self.program.operations.iter().filter(|one| !one.internal) {
            let name = &operation.name;
            let Some(same) = object.operations.iter().find(|one| one.name == *name) else {
                problems.push(format!("the abstract object has no operation `{name}`"));
                continue;
            };
            if shape(same) != shape(operation) {
                let (arguments, results) = shape(operation);
                problems.push(format!(
                    "`{name}` takes {arguments} and returns {results} values, but not in the abstract object"
                ));
            }
            if passes_nodes(operation) || passes_nodes(same) {
                problems.push(format!(
                    "`{name}` takes or returns a node, which no abstract object knows"
                ));
            }
        }
        problems.dedup();
        for message in problems {
            self.error(span, message, "expected every operation that callers see");
        }
        self.program.meaning = Some(Meaning::Written);
        self.program.object = Some(Box::new(object));
    }

    /// The roles of an operation must look alike from outside.
    fn roles_agree(&mut self, tree: &[ast::Operation]) {
        for (at, operation) in tree.iter().enumerate() {
            let types = |operation: &ast::Operation| {
                let parameters = operation.parameters.iter();
                parameters.map(|one| one.ty.text.clone()).collect::<Vec<_>>()
            };
            let same = |earlier: &&ast::Operation| earlier.name.text == operation.name.text;
            let Some(first) = tree[..at].iter().find(same) else { continue };
            if types(first) != types(operation) {
                let name = &operation.name.text;
                let message = format!("the roles of `{name}` take different arguments");
                let label = format!("expected ({})", types(first).join(", "));
                self.error(operation.name.span, message, label);
            }
            if first.internal != operation.internal {
                let name = &operation.name.text;
                let message = format!("some roles of `{name}` are internal and some are not");
                self.error(operation.name.span, message, "expected the same for all roles");
            }
        }
    }

    fn sizes(&mut self, tree: &ast::Spec, source: &Source) {
        let end = source.text().len();
        if tree.operations.is_empty() && self.errors.is_empty() {
            let message = "the specification has no operations";
            self.error(
                Span::new(end, end),
                message,
                "expected an operation such as `Get() 1 READ x;`",
            );
        }
        let steps: usize = tree.operations.iter().map(|operation| operation.steps.len()).sum();
        if steps > MOST_STEPS {
            let message = format!("the specification has {steps} sub-operations");
            let span = tree.operations.last().map_or(Span::new(end, end), |last| last.name.span);
            self.error(span, message, format!("expected at most {MOST_STEPS} in all"));
        }
    }

    fn conditions(&mut self, conditions: &[ast::Condition], scope: &mut Scope) -> Vec<Condition> {
        conditions.iter().filter_map(|condition| self.condition(condition, scope)).collect()
    }

    fn condition(&mut self, condition: &ast::Condition, scope: &Scope) -> Option<Condition> {
        let ty = self.type_of_value(&condition.left, scope);
        let left = ty.and_then(|ty| self.value(&condition.left, Some(ty), scope));
        let right = self.value(&condition.right, ty, scope);
        let (left, ty) = (left?, ty?);
        let ordered = !matches!(condition.relation, Relation::Equal | Relation::NotEqual);
        if ordered && ty != Type::Int {
            let message = format!(
                "references have no order, but `{}` asks for one",
                condition.relation.symbol()
            );
            self.error(condition.left.span, message, "expected an int here, or `==` or `!=`");
            return None;
        }
        Some(Condition { left, relation: condition.relation, right: right? })
    }

    fn body(&mut self, body: &[ast::Statement], scope: &mut Scope) -> Vec<Statement> {
        body.iter().filter_map(|statement| self.statement(statement, scope)).flatten().collect()
    }

    fn statement(
        &mut self,
        statement: &ast::Statement,
        scope: &mut Scope,
    ) -> Option<Vec<Statement>> {
        Some(match statement {
            ast::Statement::Malloc { target, ty } => self.malloc(target, ty, scope)?,
            ast::Statement::Free(name) => {
                let place = self.variable(name, scope)?;
                if self.program.type_of(&place, &scope.locals) == Type::Int {
                    let message = format!("`{}` is a number and cannot be freed", name.text);
                    self.error(name.span, message, "expected a reference");
                }
                vec![Statement::Free(place)]
            }
            ast::Statement::Fence(_) => vec![Statement::Fence],
            ast::Statement::Assign(target, value) => {
                let place = self.place(target, scope);
                let ty = place.as_ref().map(|place| self.program.type_of(place, &scope.locals));
                let value = self.value(value, ty, scope);
                self.is_assignable(&target.root, place.as_ref()?, scope)?;
                vec![Statement::Assign(place?, value?)]
            }
            ast::Statement::Read(path) => {
                let place = self.place(path, scope)?;
                let ty = self.program.type_of(&place, &scope.locals);
                let seen = scope.hidden(ty, LocalKind::Seen, format!("READ {}", names::path(path)));
                vec![Statement::Assign(seen, Expression::Place(place, 0))]
            }
            ast::Statement::Return(value) => self.result(value, scope)?,
        })
    }

    /// Arguments stay what the caller gave: they are what callers see of a history.
    fn is_assignable(&mut self, name: &Name, place: &Place, scope: &Scope) -> Option<()> {
        let kind = match place {
            Place::Local(local) => scope.locals[*local].kind,
            _ => return Some(()),
        };
        if kind == LocalKind::Parameter {
            let message = format!("the argument `{}` cannot be changed", name.text);
            let diagnostic = Diagnostic::new(name.span, message, "expected a local variable");
            self.errors.push(diagnostic.help("copy it to a local and change that"));
            return None;
        }
        Some(())
    }

    fn malloc(&mut self, target: &Name, ty: &Name, scope: &mut Scope) -> Option<Vec<Statement>> {
        let place = self.variable(target, scope);
        let wanted = self.ty(ty);
        let (place, wanted) = (place?, wanted?);
        let have = self.program.type_of(&place, &scope.locals);
        let Type::Ref(structure) = wanted else {
            self.error(ty.span, "an int cannot be allocated", "expected the name of a struct");
            return None;
        };
        if have != wanted {
            let message = format!("`{}` is of type {}", target.text, self.type_name(have));
            self.error(target.span, message, format!("expected a variable of type {}", ty.text));
            return None;
        }
        self.is_assignable(target, &place, scope)?;
        let site = scope.sites;
        scope.sites += 1;
        Some(match place {
            Place::Local(local) => vec![Statement::Malloc { local, ty: structure, site }],
            other => {
                // A shared target: through a local of its own, as in a program.
                let name = format!("new {}", target.text);
                let Place::Local(local) = scope.hidden(wanted, LocalKind::Declared, name) else {
                    return None;
                };
                let value = Expression::Place(Place::Local(local), 0);
                vec![
                    Statement::Malloc { local, ty: structure, site },
                    Statement::Assign(other, value),
                ]
            }
        })
    }

    fn result(&mut self, value: &ast::Value, scope: &mut Scope) -> Option<Vec<Statement>> {
        if !scope.returns {
            self.error(value.span, "`return` outside an operation", "expected it in an operation");
            return None;
        }
        let ty = self.type_of_value(value, scope)?;
        let value = self.value(value, Some(ty), scope)?;
        let place = scope.hidden(ty, LocalKind::Result, "return".to_owned());
        Some(vec![Statement::Assign(place, value)])
    }

    /// The type of a value by itself; an error in it is reported.
    fn type_of_value(&mut self, value: &ast::Value, scope: &Scope) -> Option<Type> {
        Some(match &value.kind {
            ValueKind::Path(path, _) => {
                let place = self.place(path, scope)?;
                self.program.type_of(&place, &scope.locals)
            }
            ValueKind::Null => Type::Ref(0),
            _ => Type::Int,
        })
    }

    /// Two numbers that something is computed from.
    fn both(
        &mut self,
        left: &ast::Value,
        right: &ast::Value,
        scope: &Scope,
    ) -> Option<(Box<Expression>, Box<Expression>)> {
        let left = self.operand(left, scope);
        let right = self.operand(right, scope);
        Some((left?, right?))
    }

    /// A number that something is computed from.
    fn operand(&mut self, value: &ast::Value, scope: &Scope) -> Option<Box<Expression>> {
        if matches!(value.kind, ValueKind::Id) {
            let message = "`ID` only tells operations apart";
            self.error(value.span, message, "expected a number that can be computed with");
            return None;
        }
        self.value(value, Some(Type::Int), scope).map(Box::new)
    }

    /// A value that should have type `wanted`; `None` for a type that is itself in error.
    fn value(
        &mut self,
        value: &ast::Value,
        wanted: Option<Type>,
        scope: &Scope,
    ) -> Option<Expression> {
        let (expression, have) = match &value.kind {
            ValueKind::Number(number) => (Expression::Number(*number), Some(Type::Int)),
            ValueKind::Id if scope.has_id => (Expression::Id, Some(Type::Int)),
            ValueKind::Id => {
                self.error(
                    value.span,
                    "`ID` outside an operation",
                    "expected a value without `ID`",
                );
                return None;
            }
            ValueKind::Null => (Expression::Null, None),
            ValueKind::Path(path, offset) => {
                let place = self.place(path, scope)?;
                let ty = self.program.type_of(&place, &scope.locals);
                if *offset != 0 && ty != Type::Int {
                    let message = "a reference cannot be counted up or down";
                    self.error(value.span, message, "expected a reference without `+` or `-`");
                }
                (Expression::Place(place, *offset), Some(ty))
            }
            ValueKind::Sum(left, right) => {
                let (left, right) = self.both(left, right, scope)?;
                (Expression::Sum(left, right), Some(Type::Int))
            }
            ValueKind::Difference(left, right) => {
                let (left, right) = self.both(left, right, scope)?;
                (Expression::Difference(left, right), Some(Type::Int))
            }
            ValueKind::Modulo(inner, divisor) => {
                let inner = self.operand(inner, scope)?;
                (Expression::Modulo(inner, *divisor), Some(Type::Int))
            }
        };
        let wanted = wanted?;
        let fits = have.map_or(wanted != Type::Int, |have| have == wanted);
        if !fits {
            let have = have.map_or("NULL".to_owned(), |have| self.type_name(have));
            let wanted = self.type_name(wanted);
            let message = format!("{have} where {wanted} is needed");
            self.error(value.span, message, format!("expected a value of type {wanted}"));
            return None;
        }
        Some(expression)
    }

    fn place(&mut self, path: &ast::Path, scope: &Scope) -> Option<Place> {
        let mut place = match &path.index {
            None => self.variable(&path.root, scope)?,
            Some(index) => self.element(&path.root, index, scope)?,
        };
        for name in &path.fields {
            let owner = match self.program.type_of(&place, &scope.locals) {
                Type::Ref(owner) => owner,
                Type::Int => {
                    let message = format!("a number has no field `{}`", name.text);
                    self.error(name.span, message, "expected no field here");
                    return None;
                }
            };
            let Some(field) = self.find_field(owner, &name.text) else {
                let fields = self.program.structs[owner].fields.iter();
                let known: Vec<_> =
                    fields.map(|&field| self.program.fields[field].name.as_str()).collect();
                let what = format!("field of {}", self.program.structs[owner].name);
                self.errors.push(unknown(&what, name, known.into_iter()));
                return None;
            };
            place = Place::Field(Box::new(place), field);
        }
        Some(place)
    }

    fn variable(&mut self, name: &Name, scope: &Scope) -> Option<Place> {
        let place = self.find(name, scope)?;
        if let Place::Global(global) = place
            && self.program.globals[global].array
        {
            let message = format!("`{}` is an array", name.text);
            self.error(name.span, message, format!("expected an element, `{}[…]`", name.text));
            return None;
        }
        Some(place)
    }

    fn find(&mut self, name: &Name, scope: &Scope) -> Option<Place> {
        if let Some(local) = scope.locals.iter().position(|known| known.name == name.text) {
            return Some(Place::Local(local));
        }
        let global = self.program.globals.iter().position(|known| known.name == name.text);
        if global.is_none() {
            let known: Vec<_> = scope.locals.iter().map(|local| local.name.as_str()).collect();
            let shared = self.program.globals.iter().map(|global| global.name.as_str());
            self.errors.push(unknown("variable", name, known.into_iter().chain(shared)));
        }
        global.map(Place::Global)
    }

    fn element(&mut self, root: &Name, index: &ast::Value, scope: &Scope) -> Option<Place> {
        let place = self.find(root, scope);
        let index = self.index(index, scope);
        match place? {
            Place::Global(global) if self.program.globals[global].array => {
                Some(Place::Element(global, Box::new(index?)))
            }
            _ => {
                let message = format!("`{}` is not an array", root.text);
                self.error(root.span, message, "expected an array declared with `[]`");
                None
            }
        }
    }

    fn index(&mut self, index: &ast::Value, scope: &Scope) -> Option<Expression> {
        let have = self.type_of_value(index, scope)?;
        if have != Type::Int {
            let message = format!("the index is of type {}", self.type_name(have));
            self.error(index.span, message, "expected an index of type int");
            return None;
        }
        self.value(index, Some(Type::Int), scope)
    }
}

/// `a` … `z`, then `a1`, `b1` …
fn label(number: usize) -> String {
    let letter = char::from(b'a' + u8::try_from(number % 26).unwrap_or(0));
    match number / 26 {
        0 => letter.to_string(),
        round => format!("{letter}{round}"),
    }
}
