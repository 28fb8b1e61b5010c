//! Tree to text. What is printed parses to the same tree (a property test holds this).

use super::ast::{
    Condition, Declaration, Invariant, Mark, Meant, Operation, Path, Spec, Statement, Step, Value,
    ValueKind,
};
use spec::Printer;

/// The specification as text.
#[must_use]
pub fn print(spec: &Spec) -> String {
    let mut out = Printer::default();
    print_items(spec, &mut out);
    out.finish()
}

fn print_items(spec: &Spec, out: &mut Printer) {
    for structure in &spec.structs {
        out.line(format!("struct {} {{ {} }};", structure.name.text, list(&structure.fields)));
    }
    for global in &spec.globals {
        out.line(declaration(global) + ";");
    }
    if let Some(init) = &spec.init {
        out.line("init");
        out.indented(|out| {
            init.locals.iter().for_each(|local| out.line(declaration(local) + ";"));
            init.body.iter().for_each(|line| out.line(statement(line)));
        });
    }
    match &spec.meaning {
        None => {}
        Some(Meant::Named(name)) => out.line(format!("abstract {};", name.text)),
        Some(Meant::Written(_, object)) => {
            out.line("abstract {");
            out.indented(|out| print_items(object, out));
            out.line("}");
        }
    }
    spec.invariants.iter().for_each(|clause| out.line(invariant(clause)));
    for operation in &spec.operations {
        out.line("");
        print_operation(operation, out);
    }
}

fn print_operation(operation: &Operation, out: &mut Printer) {
    let role = operation.role.as_ref().map(|role| format!("/{}", role.text)).unwrap_or_default();
    let internal = if operation.internal { "internal " } else { "" };
    let thread = operation.thread.as_ref().map(|name| format!(" on {}", name.text));
    let (name, parameters) = (&operation.name.text, list(&operation.parameters));
    out.line(format!("{internal}{name}{role}({parameters}){}", thread.unwrap_or_default()));
    out.indented(|out| {
        operation.locals.iter().for_each(|local| out.line(declaration(local) + ";"));
        operation.steps.iter().for_each(|one| out.line(step(one)));
    });
}

fn list(declarations: &[Declaration]) -> String {
    declarations.iter().map(declaration).collect::<Vec<_>>().join(", ")
}

fn declaration(declaration: &Declaration) -> String {
    let brackets = if declaration.array { "[]" } else { "" };
    format!("{} {}{brackets}", declaration.ty.text, declaration.name.text)
}

/// An invariant on one line.
#[must_use]
pub fn invariant(invariant: &Invariant) -> String {
    let side =
        |conditions: &[Condition]| conditions.iter().map(condition).collect::<Vec<_>>().join(", ");
    let given = match invariant.given.as_slice() {
        [] => String::new(),
        given => format!("{} => ", side(given)),
    };
    let variables = list(&invariant.variables);
    format!("invariant ({variables}) {given}{};", side(&invariant.then))
}

/// A sub-operation on one line.
#[must_use]
pub fn step(step: &Step) -> String {
    let mark = if step.mark == Mark::Own { "1" } else { "*" };
    let mut parts = vec![mark.to_owned()];
    if step.repeats {
        parts.push("loop".to_owned());
    }
    if !step.conditions.is_empty() {
        let inner: Vec<_> = step.conditions.iter().map(|one| condition(one) + ";").collect();
        parts.push(format!("<{}>", inner.join(" ")));
    }
    parts.extend(step.body.iter().map(statement));
    parts.join(" ")
}

/// A condition, without a semicolon.
#[must_use]
pub fn condition(condition: &Condition) -> String {
    let (left, right) = (value(&condition.left), value(&condition.right));
    format!("{left} {} {right}", condition.relation.symbol())
}

fn statement(statement: &Statement) -> String {
    match statement {
        Statement::Malloc { target, ty } => format!("{} = malloc {};", target.text, ty.text),
        Statement::Free(name) => format!("free {};", name.text),
        Statement::Assign(target, from) => format!("{} = {};", path(target), value(from)),
        Statement::Read(from) => format!("READ {};", path(from)),
        Statement::Return(from) => format!("return {};", value(from)),
        Statement::Fence(_) => "fence;".to_owned(),
    }
}

fn path(path: &Path) -> String {
    let index = path.index.as_ref().map(|index| format!("[{}]", value(index))).unwrap_or_default();
    let fields: String = path.fields.iter().map(|field| format!(".{}", field.text)).collect();
    format!("{}{index}{fields}", path.root.text)
}

fn value(of: &Value) -> String {
    match &of.kind {
        ValueKind::Id => "ID".to_owned(),
        ValueKind::Null => "NULL".to_owned(),
        ValueKind::Number(number) => number.to_string(),
        ValueKind::Path(inner, offset) => path(inner) + &plus(*offset),
        ValueKind::Sum(left, right) => format!("{} + {}", value(left), grouped(right)),
        ValueKind::Difference(left, right) => format!("{} - {}", value(left), grouped(right)),
        ValueKind::Modulo(inner, divisor) => format!("{} % {divisor}", grouped(inner)),
    }
}

/// A value that something else is done with.
fn grouped(inner: &Value) -> String {
    match &inner.kind {
        ValueKind::Id | ValueKind::Null | ValueKind::Path(_, 0) => value(inner),
        ValueKind::Number(0..) | ValueKind::Modulo(..) => value(inner),
        _ => format!("({})", value(inner)),
    }
}

fn plus(offset: i64) -> String {
    match offset {
        0 => String::new(),
        1.. => format!(" + {offset}"),
        _ => format!(" - {}", offset.unsigned_abs()),
    }
}
