//! The slow, obvious reference for linearizability as Herlihy and Wing define it. It shares nothing
//! with the search and the proof but the model of the specification: an interpreter of its own, every
//! interleaving without any reduction, and for each history, with operations that have not returned,
//! every choice of which of them took effect and every order.

use linearize::language::ast::Relation;
use linearize::model::{Condition, Expression, LocalKind, Place, Program, Statement, Type};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashSet};

type Values = Vec<Option<i64>>;

/// Where something is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Slot {
    Global(usize),
    Element(usize, i64),
    Field(i64, usize),
}

/// Shared memory: what is not there is 0 or NULL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Heap {
    cells: BTreeMap<Slot, i64>,
    /// Nodes and their structs.
    nodes: BTreeMap<i64, usize>,
    /// Nodes that anyone can reach, or could at some time.
    public: BTreeSet<i64>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Running {
    operation: usize,
    done: usize,
    locals: Values,
    /// The operations that had returned when it began, as bits.
    after: u64,
}

/// Why a sub-operation does not run: it is blocked, or needs a value for this local.
enum Halt {
    Blocked,
    Needs(usize),
}

fn number(value: usize) -> i64 {
    i64::try_from(value).expect("small")
}

/// Identities are multiples of this.
const ID: i64 = 720_720;

/// Numbers that arguments may be.
pub const ARGUMENTS: [i64; 4] = [1, 0, -1, 2];

thread_local! {
    /// How many more sub-operations may be executed.
    static LEFT: Cell<usize> = const { Cell::new(0) };
}

/// Whether another sub-operation may be executed; it is then counted.
fn spend() -> bool {
    LEFT.with(|left| {
        let before = left.get();
        left.set(before.saturating_sub(1));
        before > 0
    })
}

struct Interpreter<'p> {
    program: &'p Program,
    heap: Heap,
    instance: usize,
}

impl Interpreter<'_> {
    fn read(&mut self, slot: Slot) -> i64 {
        self.heap.cells.get(&slot).copied().unwrap_or(0)
    }

    fn write(&mut self, slot: Slot, value: i64) {
        if value == 0 {
            self.heap.cells.remove(&slot);
        } else {
            self.heap.cells.insert(slot, value);
        }
        self.show_nodes();
    }

    /// Marks what can be reached from shared variables and public nodes.
    fn show_nodes(&mut self) {
        loop {
            let reachable = |slot: &Slot| match slot {
                Slot::Global(at) | Slot::Element(at, _) => {
                    self.program.globals[*at].ty != Type::Int
                }
                Slot::Field(node, field) => {
                    self.heap.public.contains(node) && self.program.fields[*field].ty != Type::Int
                }
            };
            let shown: Vec<i64> = self
                .heap
                .cells
                .iter()
                .filter(|(slot, _)| reachable(slot))
                .map(|(_, &value)| value)
                .collect();
            let before = self.heap.public.len();
            self.heap.public.extend(shown);
            if self.heap.public.len() == before {
                return;
            }
        }
    }

    fn slot(&mut self, place: &Place, locals: &Values) -> Result<Slot, Halt> {
        Ok(match place {
            Place::Local(_) => unreachable!("a local is no shared cell"),
            Place::Global(global) => Slot::Global(*global),
            Place::Element(array, index) => Slot::Element(*array, self.value(index, locals)?),
            Place::Field(base, field) => {
                let node = self.place(base, locals)?;
                if !self.heap.nodes.contains_key(&node) {
                    return Err(Halt::Blocked);
                }
                Slot::Field(node, *field)
            }
        })
    }

    fn place(&mut self, place: &Place, locals: &Values) -> Result<i64, Halt> {
        match place {
            Place::Local(local) => locals[*local].ok_or(Halt::Needs(*local)),
            shared => {
                let slot = self.slot(shared, locals)?;
                Ok(self.read(slot))
            }
        }
    }

    fn value(&mut self, expression: &Expression, locals: &Values) -> Result<i64, Halt> {
        Ok(match expression {
            Expression::Number(number) => *number,
            Expression::Null => 0,
            // A number of its own, whose rests tell nothing.
            Expression::Id => ID * number(self.instance),
            Expression::Place(place, offset) => self.place(place, locals)? + offset,
            Expression::Sum(left, right) => {
                self.value(left, locals)? + self.value(right, locals)?
            }
            Expression::Difference(left, right) => {
                self.value(left, locals)? - self.value(right, locals)?
            }
            Expression::Modulo(inner, divisor) => self.value(inner, locals)?.rem_euclid(*divisor),
        })
    }

    /// Preconditions that say what an unbound local equals bind it; then all must hold.
    fn conditions(&mut self, conditions: &[Condition], locals: &mut Values) -> Result<(), Halt> {
        loop {
            let before = locals.clone();
            for condition in conditions.iter().filter(|one| one.relation == Relation::Equal) {
                for (side, other) in
                    [(&condition.left, &condition.right), (&condition.right, &condition.left)]
                {
                    if let Expression::Place(Place::Local(local), offset) = side
                        && locals[*local].is_none()
                    {
                        match self.value(other, locals) {
                            Ok(value) => locals[*local] = Some(value - offset),
                            Err(Halt::Needs(_)) => {}
                            Err(blocked) => return Err(blocked),
                        }
                    }
                }
            }
            if *locals == before {
                break;
            }
        }
        for condition in conditions {
            let left = self.value(&condition.left, locals)?;
            let right = self.value(&condition.right, locals)?;
            if !condition.relation.holds(left, right) {
                return Err(Halt::Blocked);
            }
        }
        Ok(())
    }

    fn statement(&mut self, statement: &Statement, locals: &mut Values) -> Result<(), Halt> {
        match statement {
            Statement::Malloc { local, ty, site } => {
                let name = (number(self.instance) + 1) * 100 + number(*site);
                self.heap.nodes.insert(name, *ty);
                locals[*local] = Some(name);
            }
            Statement::Assign(Place::Local(local), value) => {
                locals[*local] = Some(self.value(value, locals)?);
            }
            Statement::Assign(target, value) => {
                let value = self.value(value, locals)?;
                let slot = self.slot(target, locals)?;
                self.write(slot, value);
            }
            Statement::Free(_) | Statement::Fence => {}
        }
        Ok(())
    }
}

/// The initial state.
fn start(program: &Program) -> Heap {
    let mut run = Interpreter { program, heap: Heap::default(), instance: 0 };
    let mut locals = vec![Some(0); program.init.locals.len()];
    for statement in &program.init.body {
        let _ = run.statement(statement, &mut locals);
    }
    run.heap
}

/// All that a sub-operation can lead to.
fn outcomes(
    program: &Program,
    heap: &Heap,
    (operation, step): (usize, usize),
    instance: usize,
    locals: &Values,
    hints: &[i64],
) -> Vec<(Heap, Values)> {
    let step = &program.operations[operation].steps[step];
    let mut found = Vec::new();
    let mut work = vec![locals.clone()];
    while let Some(begin) = work.pop() {
        if !spend() {
            return found;
        }
        let mut locals = begin.clone();
        let mut run = Interpreter { program, heap: heap.clone(), instance };
        let ran = run.conditions(&step.conditions, &mut locals).and_then(|()| {
            step.body.iter().try_for_each(|statement| run.statement(statement, &mut locals))
        });
        match ran {
            Ok(()) => found.push((run.heap, locals)),
            Err(Halt::Blocked) => {}
            Err(Halt::Needs(local)) => {
                for value in guesses(program, heap, operation, local, hints) {
                    let mut more = begin.clone();
                    more[local] = Some(value);
                    work.push(more);
                }
            }
        }
    }
    found
}

/// What an unbound local may be: any public node, or a number that may matter.
fn guesses(
    program: &Program,
    heap: &Heap,
    operation: usize,
    local: usize,
    hints: &[i64],
) -> Vec<i64> {
    match program.operations[operation].locals[local].ty {
        Type::Ref(ty) => {
            let fits = |name: &&i64| heap.nodes.get(*name) == Some(&ty);
            std::iter::once(0).chain(heap.public.iter().filter(fits).copied()).collect()
        }
        Type::Int => {
            let mut near: Vec<i64> = ARGUMENTS.to_vec();
            near.extend(program.numbers());
            for (slot, &value) in &heap.cells {
                let (index, ty) = match slot {
                    Slot::Global(at) => (None, program.globals[*at].ty),
                    Slot::Element(at, index) => (Some(*index), program.globals[*at].ty),
                    Slot::Field(_, field) => (None, program.fields[*field].ty),
                };
                near.extend(index.into_iter().flat_map(|index| index - 1..=index + 1));
                if ty == Type::Int {
                    near.extend(value - 1..=value + 1);
                }
            }
            near.extend(hints);
            near.sort_unstable();
            near.dedup();
            near
        }
    }
}

fn results(program: &Program, running: &Running) -> Values {
    let operation = &program.operations[running.operation];
    operation.locals_of(LocalKind::Result).map(|local| running.locals[local]).collect()
}

/// Which histories are judged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Histories {
    /// All.
    All,
    /// Those in which every operation has returned.
    Ended,
}

/// What the oracle found.
pub enum Found {
    /// A history that is not linearizable, described.
    Violation(String),
    /// None, and all were looked at.
    None,
    /// None so far, but there were too many states, or it took too many steps to tell.
    TooMany,
}

/// What the oracle may spend: states, and sub-operations executed to reach and to explain them.
#[derive(Clone, Copy)]
pub struct Limit {
    pub states: usize,
    pub steps: usize,
}

/// Looks at all histories of up to `operations` operations, within the limit.
pub fn unexplained(program: &Program, operations: usize, limit: Limit, which: Histories) -> Found {
    LEFT.set(limit.steps);
    let limit = limit.states;
    let mut cut = false;
    let first = (start(program), Vec::<Running>::new());
    let mut seen = HashSet::from([first.clone()]);
    let mut work = vec![first];
    while let Some((heap, all)) = work.pop() {
        let ended = |one: &Running| one.done == program.operations[one.operation].steps.len();
        let mut nexts: Vec<(Vec<Running>, usize)> = Vec::new();
        for number in 0..all.len() {
            if !ended(&all[number]) {
                nexts.push((all.clone(), number));
            }
        }
        if all.len() < operations {
            let seen = |one: &Running| ended(one) && !program.operations[one.operation].internal;
            let returned = (0..all.len()).filter(|&at| seen(&all[at]));
            let after = returned.fold(0, |bits, at| bits | 1 << at);
            for operation in 0..program.operations.len() {
                let thread = |at: usize| program.operations[at].thread;
                let busy =
                    |one: &Running| !ended(one) && thread(one.operation) == thread(operation);
                if thread(operation).is_some() && all.iter().any(busy) {
                    continue;
                }
                for locals in invocations(program, &heap, operation) {
                    let mut more = all.clone();
                    more.push(Running { operation, done: 0, locals, after });
                    nexts.push((more, all.len()));
                }
            }
        }
        for (all, number) in nexts {
            let one = &all[number];
            let step = (one.operation, one.done);
            for (heap, locals) in outcomes(program, &heap, step, number + 1, &one.locals, &[]) {
                let mut all = all.clone();
                all[number].done += 1;
                all[number].locals = locals;
                if seen.len() >= limit {
                    cut = true;
                    continue;
                }
                if !seen.insert((heap.clone(), all.clone())) {
                    continue;
                }
                let judged = match which {
                    Histories::All => ended(&all[number]),
                    Histories::Ended => all.iter().all(ended),
                };
                let refuted = judged && !is_linearizable(program, &all);
                if LEFT.get() == 0 {
                    return Found::TooMany;
                }
                if refuted {
                    let shown: Vec<_> = all
                        .iter()
                        .map(|one| {
                            (program.operations[one.operation].title(), one.done, &one.locals)
                        })
                        .collect();
                    return Found::Violation(format!("{shown:?}"));
                }
                work.push((heap, all));
            }
        }
    }
    if cut || LEFT.get() == 0 { Found::TooMany } else { Found::None }
}

fn invocations(program: &Program, heap: &Heap, operation: usize) -> Vec<Values> {
    let declared = &program.operations[operation].locals;
    let mut all = vec![vec![None; declared.len()]];
    for (at, local) in declared.iter().enumerate() {
        if local.kind == LocalKind::Parameter {
            let values = match local.ty {
                Type::Int => ARGUMENTS.to_vec(),
                Type::Ref(_) => guesses(program, heap, operation, at, &[]),
            };
            let longer = all.iter().flat_map(|locals: &Values| {
                values.iter().map(move |&value| {
                    let mut locals = locals.clone();
                    locals[at] = Some(value);
                    locals
                })
            });
            all = longer.collect();
        }
    }
    all
}

/// Whether some of the operations that have not returned, and all that have, can run one after the
/// other with the same results, in an order that respects who returned before whom began.
fn is_linearizable(program: &Program, all: &[Running]) -> bool {
    let visible = |one: &Running| {
        let operation = &program.operations[one.operation];
        one.done == operation.steps.len() && !operation.internal
    };
    let returned =
        (0..all.len()).filter(|&at| visible(&all[at])).fold(0, |bits, at| bits | 1 << at);
    // A number that nothing determines may be any; what it was in the history is among those tried.
    let hints: Vec<i64> = all.iter().flat_map(|one| one.locals.iter().flatten().copied()).collect();
    continues(program, all, &hints, returned, 0, &start(program))
}

fn continues(
    program: &Program,
    all: &[Running],
    hints: &[i64],
    returned: u64,
    done: u64,
    heap: &Heap,
) -> bool {
    if done & returned == returned {
        return true;
    }
    (0..all.len()).any(|at| {
        let (one, bit) = (&all[at], 1 << at);
        if done & bit != 0 || one.after & !done != 0 {
            return false;
        }
        let name = &program.operations[one.operation].name;
        let roles = (0..program.operations.len()).filter(|&r| program.operations[r].name == *name);
        // Its own identity is a number like any other to it.
        let mut hints = hints.to_vec();
        hints.push(ID * number(at + 1));
        let hints = &hints;
        roles.into_iter().any(|role| {
            let mut states = vec![(heap.clone(), begun(program, role, one))];
            for step in 0..program.operations[role].steps.len() {
                let next = states.iter().flat_map(|(heap, locals)| {
                    outcomes(program, heap, (role, step), at + 1, locals, hints)
                });
                states = next.collect();
            }
            states.into_iter().any(|(heap, locals)| {
                let run = Running { operation: role, locals, ..one.clone() };
                let fits = returned & bit == 0 || results(program, &run) == results(program, one);
                fits && continues(program, all, hints, returned, done | bit, &heap)
            })
        })
    })
}

/// The locals with which a role of the same operation begins: the same arguments.
fn begun(program: &Program, role: usize, like: &Running) -> Values {
    let mut locals = vec![None; program.operations[role].locals.len()];
    for local in program.operations[role].locals_of(LocalKind::Parameter) {
        locals[local] = like.locals[local];
    }
    locals
}
