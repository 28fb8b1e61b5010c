//! A history that no sequential order explains, told so that a reader can follow it.

use super::machine::{Machine, instance_of, maker};
use super::monitor::{arguments, results};
use super::search::Instance;
use crate::model::{LocalKind, Mark, Operation, Program, Type};
use serde::Serialize;
use std::rc::Rc;

/// One sub-operation that ran, or one store that came out of a buffer.
#[derive(Clone, Debug)]
pub struct Event {
    number: usize,
    operation: usize,
    /// `None` for a store that came out of a buffer.
    step: Option<usize>,
    machine: Rc<Machine>,
    after: Rc<Instance>,
}

impl Event {
    /// An instance, which stood at `before`, ran its next sub-operation.
    #[must_use]
    pub fn new(before: &Instance, machine: &Rc<Machine>, after: &Rc<Instance>) -> Self {
        Self { step: Some(before.done), ..Self::flush(before, machine, after) }
    }

    /// The instance as it stood after the sub-operation; `None` for a store that came out of a
    /// buffer.
    #[must_use]
    pub fn ran(&self) -> Option<&Instance> {
        self.step.map(|_| &*self.after)
    }

    /// The oldest store of an instance's buffer reached memory.
    #[must_use]
    pub fn flush(before: &Instance, machine: &Rc<Machine>, after: &Rc<Instance>) -> Self {
        Self {
            number: before.number - 1,
            operation: before.operation,
            step: None,
            machine: Rc::clone(machine),
            after: Rc::clone(after),
        }
    }
}

/// A history, in words.
#[derive(Clone, Debug, Serialize)]
pub struct History {
    /// The operations, in the order in which they began.
    pub calls: Vec<CallShown>,
    /// The sub-operations, in the order in which they ran.
    pub steps: Vec<StepShown>,
    /// The state before the first.
    pub start: Vec<Cell>,
}

/// One operation of a history.
#[derive(Clone, Debug, Serialize)]
pub struct CallShown {
    /// The thread that invoked it, from 1.
    pub thread: usize,
    /// Name and role.
    pub operation: String,
    /// Arguments, as text.
    pub arguments: Vec<String>,
    /// What it returned, as text.
    pub results: Vec<String>,
    /// Its first sub-operation, as an index of the steps.
    pub begins: usize,
    /// Its last sub-operation that ran.
    pub ends: usize,
    /// Whether it has not returned.
    pub pending: bool,
}

/// One sub-operation of a history.
#[derive(Clone, Debug, Serialize)]
pub struct StepShown {
    /// Which of the calls it belongs to.
    pub call: usize,
    /// Its letter.
    pub label: String,
    /// Its text.
    pub text: String,
    /// Whether any thread may have executed it.
    pub by_any_thread: bool,
    /// What its operation's locals hold that it bound or changed.
    pub locals: Vec<Cell>,
    /// Shared cells that it changed.
    pub changed: Vec<Cell>,
    /// All shared cells after it that are not 0 or NULL.
    pub state: Vec<Cell>,
}

/// A named value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// What it is called.
    pub name: String,
    /// What it holds.
    pub value: String,
}

/// Tells a history from its events.
#[must_use]
pub fn tell(program: &Program, events: &[Event]) -> History {
    let start = Machine::start(program);
    let calls = calls(program, events);
    let mut steps = Vec::new();
    let mut before = cells(program, &start);
    let count = calls.len();
    let mut locals_before: Vec<Vec<Cell>> = vec![Vec::new(); count];
    for event in events {
        let operation = &program.operations[event.operation];
        let step = event.step.map(|step| &operation.steps[step]);
        let after = cells(program, &event.machine);
        let locals = locals(operation, &event.after);
        let fresh = |cell: &&Cell| !locals_before[event.number].contains(cell);
        steps.push(StepShown {
            call: event.number,
            label: step.map(|step| step.label.clone()).unwrap_or_default(),
            text: step.map_or("a store reaches memory".to_owned(), |step| step.text.clone()),
            by_any_thread: step.is_some_and(|step| step.mark == Mark::Any),
            locals: locals.iter().filter(fresh).cloned().collect(),
            changed: after.iter().filter(|cell| !before.contains(cell)).cloned().collect(),
            state: after.iter().filter(|cell| is_set(cell)).cloned().collect(),
        });
        before = after;
        locals_before[event.number] = locals;
    }
    let start = cells(program, &start).into_iter().filter(is_set).collect();
    History { calls, steps, start }
}

fn is_set(cell: &Cell) -> bool {
    cell.value != "0" && cell.value != "NULL"
}

fn calls(program: &Program, events: &[Event]) -> Vec<CallShown> {
    let count = events.iter().map(|event| event.number + 1).max().unwrap_or(0);
    let mut calls: Vec<CallShown> = Vec::new();
    let mut thread_ends: Vec<usize> = Vec::new();
    for number in 0..count {
        let mine = |event: &Event| event.number == number && event.step.is_some();
        let begins = events.iter().position(mine);
        let (Some(begins), Some(ends)) = (begins, events.iter().rposition(mine)) else { continue };
        let last = &events[ends];
        // A thread runs one operation after the other; take the first that is free.
        let free = thread_ends.iter().position(|&end| end < begins);
        let thread = free.unwrap_or_else(|| {
            thread_ends.push(0);
            thread_ends.len() - 1
        });
        let operation = &program.operations[last.operation];
        let pending = last.after.done < operation.steps.len();
        // What has not returned keeps its thread.
        thread_ends[thread] = if pending { usize::MAX } else { ends };
        let typed = |kind, values: Vec<Option<i64>>| {
            let types = operation.locals_of(kind).map(|local| operation.locals[local].ty);
            types.zip(values).map(|(ty, value)| show(ty, value)).collect()
        };
        let given = arguments(operation, &last.after.locals);
        let given_back = if pending {
            Vec::new()
        } else {
            results(operation, &last.after.locals).into_iter().map(Some).collect()
        };
        calls.push(CallShown {
            thread: thread + 1,
            operation: operation.title(),
            arguments: typed(LocalKind::Parameter, given),
            results: typed(LocalKind::Result, given_back),
            begins,
            ends,
            pending,
        });
    }
    calls
}

fn locals(operation: &Operation, instance: &Instance) -> Vec<Cell> {
    let both = operation.locals.iter().zip(&instance.locals);
    both.filter(|(_, value)| value.is_some())
        .map(|(local, value)| Cell { name: local.name.clone(), value: show(local.ty, *value) })
        .collect()
}

/// All shared cells of a state.
fn cells(program: &Program, machine: &Machine) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (number, global) in program.globals.iter().enumerate() {
        if global.array {
            let elements = machine.arrays[number].iter();
            cells.extend(elements.map(|(&index, &value)| Cell {
                name: format!("{}[{}]", global.name, show(Type::Int, Some(index))),
                value: show(global.ty, Some(value)),
            }));
        } else {
            let value = show(global.ty, Some(machine.globals[number]));
            cells.push(Cell { name: global.name.clone(), value });
        }
    }
    for node in machine.nodes.iter().filter(|node| node.published) {
        let fields = program.structs[node.ty].fields.iter().zip(&node.fields);
        cells.extend(fields.map(|(&field, &value)| Cell {
            name: format!("{}.{}", node_name(node.name), program.fields[field].name),
            value: show(program.fields[field].ty, Some(value)),
        }));
    }
    cells
}

/// The shared cells of a state that are not 0 or NULL.
#[must_use]
pub fn shown(program: &Program, machine: &Machine) -> Vec<Cell> {
    cells(program, machine).into_iter().filter(is_set).collect()
}

/// A value as a reader sees it.
#[must_use]
pub fn value_text(ty: Type, value: i64) -> String {
    show(ty, Some(value))
}

/// A value, if there is one, as a reader sees it.
fn show(ty: Type, value: Option<i64>) -> String {
    match (ty, value) {
        (_, None) => "_".to_owned(),
        (Type::Ref(_), Some(0)) => "NULL".to_owned(),
        (Type::Ref(_), Some(name)) => node_name(name),
        (Type::Int, Some(value)) => match instance_of(value) {
            Some(instance) => format!("ID{instance}"),
            None => value.to_string(),
        },
    }
}

/// `n0`, `n0b` … of the initial state, `n1` of the first operation …
fn node_name(name: i64) -> String {
    let (instance, site) = maker(name);
    let letter = u8::try_from(site).ok().filter(|&site| site > 0 && site < 26);
    let suffix = letter.map(|site| char::from(b'a' + site).to_string()).unwrap_or_default();
    format!("n{instance}{suffix}")
}
