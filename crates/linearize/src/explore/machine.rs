//! A concrete state, and what a sub-operation makes of it.
//!
//! Numbers are themselves; a reference is 0 for NULL or the name of a node. Nodes are named after
//! who allocated them and where, so that two orders of the same operations name them alike.

use super::kinds::{Kind, has_free_numbers, kinds};
use crate::model::{
    Condition, Expression, Invariant, Local, LocalKind, Place, Program, Statement, Step, Type,
};
use crate::symbolic::run::binding;
use std::collections::{BTreeMap, BTreeSet};

/// The state of the shared memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Machine {
    /// Shared variables; unused for arrays.
    pub globals: Vec<i64>,
    /// Shared arrays; what is missing is 0.
    pub arrays: Vec<BTreeMap<i64, i64>>,
    /// Nodes, sorted by name.
    pub nodes: Vec<Node>,
    /// Nodes that were given back and may be used again, sorted.
    pub freed: Vec<i64>,
}

/// A node of the heap.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// Its name: what a reference to it holds.
    pub name: i64,
    /// Its struct.
    pub ty: usize,
    /// Whether others than its maker can reach it.
    pub published: bool,
    /// Its fields, in the order of the struct.
    pub fields: Vec<i64>,
}

/// What a number may be that nothing determines.
#[derive(Clone, Debug)]
pub struct Numbers {
    /// An argument.
    pub arguments: Vec<i64>,
    /// Any other; what a state holds is added to these.
    pub others: Vec<i64>,
}

impl Numbers {
    /// Arguments from 1 to `values`; others also any number of the specification.
    #[must_use]
    pub fn narrow(program: &Program, values: i64) -> Self {
        Self::with(program, (1..=values).collect())
    }

    /// Like [`Numbers::narrow`], and arguments also 0, -1 and what the specification names.
    #[must_use]
    pub fn wide(program: &Program, values: i64) -> Self {
        let mut arguments: Vec<i64> = (-1..=values).collect();
        arguments.extend(program.numbers());
        arguments.sort_unstable();
        arguments.dedup();
        Self::with(program, arguments)
    }

    fn with(program: &Program, arguments: Vec<i64>) -> Self {
        let mut others = program.numbers();
        others.extend(&arguments);
        others.sort_unstable();
        others.dedup();
        Self { arguments, others }
    }
}

/// How memory behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Whether stores wait in a buffer of their thread, as on x86.
    pub buffers: bool,
    /// Whether `malloc` may give a node again that was freed.
    pub reuse: bool,
}

/// What all states of a search have in common.
#[derive(Clone, Debug)]
pub struct World<'p> {
    /// The specification.
    pub program: &'p Program,
    /// What numbers may be.
    pub numbers: Numbers,
    /// How memory behaves.
    pub memory: Memory,
    /// By operation, by sub-operation.
    pub kinds: Vec<Vec<Kind>>,
    /// Whether a number may come up in an operation that nothing determines.
    pub has_free_numbers: bool,
}

/// A cell of the shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cell {
    /// A shared variable.
    Global(usize),
    /// An element of an array.
    Element(usize, i64),
    /// A field, by its position, of a node.
    Field(i64, usize, usize),
}

/// Stores that only their own thread sees, oldest first.
pub type Buffer = Vec<(Cell, i64)>;

/// A sub-operation that ran: what it left.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The shared memory.
    pub machine: Machine,
    /// The locals of its operation.
    pub locals: Locals,
    /// The stores of its operation that are not in memory yet.
    pub buffer: Buffer,
}

/// Local variables; `None` is not bound yet.
pub type Locals = Vec<Option<i64>>;

/// Allocations of one instance have names from `instance * SITES + 1` on.
const SITES: i64 = 1000;

/// Identities are multiples of a number that nothing else uses. All leave the same rest when divided
/// by a small number, so that nothing hangs on who began first.
const FIRST_ID: i64 = 720_720 << 20;

/// Why a sub-operation cannot run as it is.
enum Halt {
    /// The precondition does not hold, or there is no node to look into.
    Blocked,
    /// This local is read and not bound.
    Unbound(usize),
    /// One of this many nodes is to be chosen for the next `malloc`.
    Choice(usize),
}

impl Machine {
    /// The initial state.
    #[must_use]
    pub fn start(program: &Program) -> Self {
        let mut machine = Self {
            globals: vec![0; program.globals.len()],
            arrays: vec![BTreeMap::new(); program.globals.len()],
            nodes: Vec::new(),
            freed: Vec::new(),
        };
        let mut run = Run::new(program, &mut machine, 0);
        let mut locals: Locals = vec![Some(0); program.init.locals.len()];
        for statement in &program.init.body {
            // A statement that looks into NULL does nothing; the checker of claims and the search
            // see the state that results.
            let _ = run.statement(statement, &mut locals);
        }
        machine
    }

    fn node(&self, name: i64) -> Option<&Node> {
        let at = self.nodes.binary_search_by_key(&name, |node| node.name).ok()?;
        Some(&self.nodes[at])
    }

    fn node_mut(&mut self, name: i64) -> Option<&mut Node> {
        let at = self.nodes.binary_search_by_key(&name, |node| node.name).ok()?;
        Some(&mut self.nodes[at])
    }

    fn publish(&mut self, program: &Program, name: i64) {
        let mut work = vec![name];
        while let Some(name) = work.pop() {
            let Some(node) = self.node_mut(name).filter(|node| !node.published) else { continue };
            node.published = true;
            let fields = &program.structs[node.ty].fields;
            let inside = node.fields.iter().zip(fields);
            work.extend(
                inside
                    .filter(|&(_, &field)| program.fields[field].ty != Type::Int)
                    .map(|(&v, _)| v),
            );
        }
    }

    /// Forgets the nodes that no shared variable leads to.
    pub fn forget_unreachable(&mut self, program: &Program) {
        let shared = program.globals.iter().enumerate().filter(|(_, one)| one.ty != Type::Int);
        let mut work: Vec<i64> = Vec::new();
        for (number, _) in shared {
            work.push(self.globals[number]);
            work.extend(self.arrays[number].values());
        }
        let mut reached: BTreeSet<i64> = BTreeSet::new();
        while let Some(name) = work.pop() {
            let Some(node) = self.node(name).filter(|node| reached.insert(node.name)) else {
                continue;
            };
            let fields = program.structs[node.ty].fields.iter().zip(&node.fields);
            let references = fields.filter(|&(&field, _)| program.fields[field].ty != Type::Int);
            work.extend(references.map(|(_, &value)| value));
        }
        self.nodes.retain(|node| reached.contains(&node.name));
    }

    /// Whether a stated invariant holds here, for all published nodes and all numbers.
    #[must_use]
    pub fn satisfies(&self, program: &Program, invariant: &Invariant) -> bool {
        let domains: Vec<Vec<i64>> = invariant
            .variables
            .iter()
            .map(|variable| self.domain(program, invariant, variable.ty))
            .collect();
        let mut tuples: Vec<Locals> = vec![Vec::new()];
        for domain in &domains {
            let longer = tuples.iter().flat_map(|tuple| {
                domain.iter().map(move |&value| {
                    let mut tuple = tuple.clone();
                    tuple.push(Some(value));
                    tuple
                })
            });
            tuples = longer.collect();
        }
        let mut machine = self.clone();
        let run = &mut Run::new(program, &mut machine, 0);
        let holds = |run: &mut Run<'_>, all: &[Condition], tuple: &Locals| {
            all.iter().all(|condition| matches!(run.condition(condition, tuple), Ok(true)))
        };
        tuples
            .iter()
            .all(|tuple| !holds(run, &invariant.given, tuple) || holds(run, &invariant.then, tuple))
    }

    /// All published nodes of a type, or numbers that stand for all numbers: between those that
    /// occur, several in a row, the state looks the same everywhere.
    fn domain(&self, program: &Program, invariant: &Invariant, ty: Type) -> Vec<i64> {
        if let Type::Ref(structure) = ty {
            let nodes = self.nodes.iter().filter(|node| node.published && node.ty == structure);
            return nodes.map(|node| node.name).collect();
        }
        let mut seen = program.numbers();
        seen.extend(self.all_values());
        let offsets = offsets(invariant);
        let met = seen.iter().flat_map(|&number| offsets.iter().map(move |offset| number - offset));
        let mut all: Vec<_> = met.flat_map(|number| number - 3..=number + 3).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Every index and value, of any type.
    fn all_values(&self) -> impl Iterator<Item = i64> + '_ {
        let elements = self.arrays.iter().flatten().flat_map(|(&index, &value)| [index, value]);
        let fields = self.nodes.iter().flat_map(|node| node.fields.iter().copied());
        self.globals.iter().copied().chain(elements).chain(fields)
    }

    /// The numbers that the state holds, and their neighbours.
    fn numbers(&self, program: &Program) -> Vec<i64> {
        let mut found = Vec::new();
        for (number, global) in program.globals.iter().enumerate() {
            if global.ty == Type::Int {
                found.push(self.globals[number]);
                found
                    .extend(self.arrays[number].iter().flat_map(|(&index, &value)| [index, value]));
            } else {
                found.extend(self.arrays[number].keys());
            }
        }
        for node in &self.nodes {
            let fields = program.structs[node.ty].fields.iter().zip(&node.fields);
            let ints = fields.filter(|&(&field, _)| program.fields[field].ty == Type::Int);
            found.extend(ints.map(|(_, &value)| value));
        }
        let around = found.iter().flat_map(|&number| [number - 1, number, number + 1]);
        around.collect()
    }

    /// Writes a cell; a node that it leads to can be reached by all from then on.
    fn put(&mut self, program: &Program, cell: Cell, value: i64) {
        let shared = match cell {
            Cell::Global(global) => {
                self.globals[global] = value;
                program.globals[global].ty
            }
            Cell::Element(array, index) => {
                // Zeros are not kept, so that equal arrays compare equal.
                if value == 0 {
                    self.arrays[array].remove(&index)
                } else {
                    self.arrays[array].insert(index, value)
                };
                program.globals[array].ty
            }
            Cell::Field(name, at, field) => {
                let Some(node) = self.node_mut(name) else { return };
                node.fields[at] = value;
                if !node.published {
                    return;
                }
                program.fields[field].ty
            }
        };
        if shared != Type::Int {
            self.publish(program, value);
        }
    }

    /// The value of a place that needs no locals, for showing.
    #[must_use]
    pub fn element(&self, array: usize, index: i64) -> i64 {
        self.arrays[array].get(&index).copied().unwrap_or(0)
    }
}

impl<'p> World<'p> {
    /// A world with these numbers and this memory.
    #[must_use]
    pub fn new(program: &'p Program, numbers: Numbers, memory: Memory) -> Self {
        let kinds = program.operations.iter().map(|one| kinds(one, memory.reuse)).collect();
        let has_free_numbers = program.operations.iter().any(has_free_numbers);
        Self { program, numbers, memory, kinds, has_free_numbers }
    }

    /// The same world, where a number that nothing determines may also be one of these.
    #[must_use]
    pub fn with_hints(&self, hints: &[i64]) -> Self {
        let mut world = self.clone();
        world.numbers.others.extend(hints);
        world
    }

    /// Every state that sub-operation `step` of an operation can lead to, run by `instance`. With
    /// `alone`, no other runs before the operation has ended, so stores need no buffer.
    #[must_use]
    pub fn outcomes(
        &self,
        machine: &Machine,
        (operation, step): (usize, usize),
        instance: usize,
        locals: &Locals,
        buffer: Option<&Buffer>,
    ) -> Vec<Outcome> {
        let buffered = self.memory.buffers && buffer.is_some();
        let empty = Buffer::new();
        let buffer = buffer.unwrap_or(&empty);
        let kind = self.kinds[operation][step];
        let mut found = Vec::new();
        if kind == Kind::Locked && buffered && !buffer.is_empty() {
            return found;
        }
        let text = &self.program.operations[operation].steps[step];
        let declared = &self.program.operations[operation].locals;
        let mut work = vec![(locals.clone(), Vec::new())];
        while let Some((start, choices)) = work.pop() {
            let mut outcome =
                Outcome { machine: machine.clone(), locals: start.clone(), buffer: buffer.clone() };
            let mut run = Run {
                choices: &choices,
                reuse: self.memory.reuse,
                delays: buffered && kind != Kind::Locked,
                buffer: std::mem::take(&mut outcome.buffer),
                ..Run::new(self.program, &mut outcome.machine, instance)
            };
            let done = run.step(text, &mut outcome.locals);
            outcome.buffer = run.buffer;
            match done {
                Ok(()) => found.push(outcome),
                Err(Halt::Blocked) => {}
                Err(Halt::Unbound(local)) => {
                    let guesses = self.guesses(machine, &declared[local]);
                    work.extend(guesses.into_iter().map(|value| {
                        let mut guessed = start.clone();
                        guessed[local] = Some(value);
                        (guessed, choices.clone())
                    }));
                }
                Err(Halt::Choice(options)) => work.extend((0..options).map(|option| {
                    let mut more = choices.clone();
                    more.push(option);
                    (start.clone(), more)
                })),
            }
        }
        found
    }

    /// What an argument or an unbound local may hold.
    #[must_use]
    pub fn guesses(&self, machine: &Machine, local: &Local) -> Vec<i64> {
        match (local.ty, local.kind) {
            (Type::Ref(structure), _) => {
                let public = machine.nodes.iter().filter(|node| node.published);
                let fitting = public.filter(|node| node.ty == structure);
                std::iter::once(0).chain(fitting.map(|node| node.name)).collect()
            }
            (Type::Int, LocalKind::Parameter) => self.numbers.arguments.clone(),
            (Type::Int, _) => {
                let mut all = machine.numbers(self.program);
                all.extend(&self.numbers.others);
                all.sort_unstable();
                all.dedup();
                all
            }
        }
    }

    /// All ways in which an operation can run from beginning to end without interruption.
    #[must_use]
    pub fn run_alone(
        &self,
        operation: usize,
        instance: usize,
        machine: Machine,
        locals: Locals,
    ) -> Vec<(Machine, Locals)> {
        let mut states = vec![(machine, locals)];
        for step in 0..self.program.operations[operation].steps.len() {
            let next = states.iter().flat_map(|(machine, locals)| {
                self.outcomes(machine, (operation, step), instance, locals, None)
            });
            states = next.map(|outcome| (outcome.machine, outcome.locals)).collect();
        }
        states
    }

    /// Puts the oldest store of a buffer into memory.
    #[must_use]
    pub fn flush(&self, machine: &Machine, buffer: &Buffer) -> Option<(Machine, Buffer)> {
        let (&(cell, value), rest) = buffer.split_first()?;
        let mut machine = machine.clone();
        machine.put(self.program, cell, value);
        Some((machine, rest.to_vec()))
    }
}

/// The numbers that an invariant names or adds; 0 is always among them.
fn offsets(invariant: &Invariant) -> Vec<i64> {
    let mut offsets = vec![0];
    for condition in invariant.given.iter().chain(&invariant.then) {
        condition.left.each_number(&mut |number| offsets.push(number));
        condition.right.each_number(&mut |number| offsets.push(number));
    }
    offsets.extend(offsets.clone().into_iter().map(|offset| -offset));
    offsets.sort_unstable();
    offsets.dedup();
    offsets
}

/// The identity of an instance.
#[must_use]
pub fn identity(instance: usize) -> i64 {
    FIRST_ID * i64::try_from(instance).unwrap_or(1)
}

/// The instance whose identity this is.
#[must_use]
pub fn instance_of(identity: i64) -> Option<i64> {
    (identity >= FIRST_ID && identity % FIRST_ID == 0).then_some(identity / FIRST_ID)
}

/// Who made a node, and the how-manieth of that instance it is.
#[must_use]
pub fn maker(name: i64) -> (i64, i64) {
    ((name - 1) / SITES, (name - 1) % SITES)
}

struct Run<'r> {
    program: &'r Program,
    machine: &'r mut Machine,
    instance: usize,
    /// Which node each `malloc` gives, as far as that was asked.
    choices: &'r [usize],
    chosen: usize,
    reuse: bool,
    /// Whether stores go to the buffer.
    delays: bool,
    buffer: Buffer,
}

impl<'r> Run<'r> {
    fn new(program: &'r Program, machine: &'r mut Machine, instance: usize) -> Self {
        Self {
            program,
            machine,
            instance,
            choices: &[],
            chosen: 0,
            reuse: false,
            delays: false,
            buffer: Buffer::new(),
        }
    }

    fn step(&mut self, step: &Step, locals: &mut Locals) -> Result<(), Halt> {
        self.bind(step, locals)?;
        for condition in &step.conditions {
            if !self.condition(condition, locals)? {
                return Err(Halt::Blocked);
            }
        }
        step.body.iter().try_for_each(|statement| self.statement(statement, locals))
    }

    /// Binds the locals that the precondition determines.
    fn bind(&mut self, step: &Step, locals: &mut Locals) -> Result<(), Halt> {
        let mut progress = true;
        while progress {
            progress = false;
            for condition in &step.conditions {
                let bound = |local: usize| locals[local].is_some();
                if let Some((local, from, less)) = binding(condition, &bound) {
                    locals[local] = Some(self.value(from, locals)? - less);
                    progress = true;
                }
            }
        }
        Ok(())
    }

    fn condition(&mut self, condition: &Condition, locals: &Locals) -> Result<bool, Halt> {
        let left = self.value(&condition.left, locals)?;
        let right = self.value(&condition.right, locals)?;
        Ok(condition.relation.holds(left, right))
    }

    fn statement(&mut self, statement: &Statement, locals: &mut Locals) -> Result<(), Halt> {
        match statement {
            Statement::Malloc { local, ty, site } => {
                let name = self.allocate(*ty, *site)?;
                locals[*local] = Some(name);
                Ok(())
            }
            Statement::Assign(target, value) => {
                let value = self.value(value, locals)?;
                self.assign(target, value, locals)
            }
            Statement::Free(place) if self.reuse => {
                let name = self.place(place, locals)?;
                if name != 0 && !self.machine.freed.contains(&name) {
                    self.machine.freed.push(name);
                    self.machine.freed.sort_unstable();
                }
                Ok(())
            }
            Statement::Free(_) | Statement::Fence => Ok(()),
        }
    }

    fn allocate(&mut self, ty: usize, site: usize) -> Result<i64, Halt> {
        let number = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
        let name = number(self.instance) * SITES + number(site) + 1;
        let fits = |name: &i64| self.machine.node(*name).is_some_and(|node| node.ty == ty);
        let freed: Vec<i64> = self.machine.freed.iter().copied().filter(fits).collect();
        if !freed.is_empty() {
            let Some(&choice) = self.choices.get(self.chosen) else {
                return Err(Halt::Choice(freed.len() + 1));
            };
            self.chosen += 1;
            if let Some(&again) = freed.get(choice) {
                self.machine.freed.retain(|&name| name != again);
                return Ok(again);
            }
        }
        let fields = vec![0; self.program.structs[ty].fields.len()];
        let node = Node { name, ty, published: false, fields };
        let at = self.machine.nodes.partition_point(|known| known.name < name);
        self.machine.nodes.insert(at, node);
        Ok(name)
    }

    fn assign(&mut self, target: &Place, value: i64, locals: &mut Locals) -> Result<(), Halt> {
        let cell = match target {
            Place::Local(local) => {
                locals[*local] = Some(value);
                return Ok(());
            }
            shared => self.cell(shared, locals)?,
        };
        let own = matches!(cell, Cell::Field(name, ..)
            if self.machine.node(name).is_some_and(|node| !node.published));
        // Nobody else can see into an own node; only the order of stores has to be kept.
        if self.delays && (!own || !self.buffer.is_empty()) {
            self.buffer.push((cell, value));
        } else {
            self.machine.put(self.program, cell, value);
        }
        Ok(())
    }

    /// The shared cell that a place is.
    fn cell(&mut self, place: &Place, locals: &Locals) -> Result<Cell, Halt> {
        match place {
            Place::Local(_) => Err(Halt::Blocked),
            Place::Global(global) => Ok(Cell::Global(*global)),
            Place::Element(array, index) => Ok(Cell::Element(*array, self.value(index, locals)?)),
            Place::Field(base, field) => {
                let name = self.place(base, locals)?;
                self.machine.node(name).ok_or(Halt::Blocked)?;
                Ok(Cell::Field(name, self.position(*field), *field))
            }
        }
    }

    fn position(&self, field: usize) -> usize {
        let owner = self.program.fields[field].owner;
        let fields = &self.program.structs[owner].fields;
        fields.iter().position(|&known| known == field).unwrap_or_default()
    }

    fn value(&mut self, expression: &Expression, locals: &Locals) -> Result<i64, Halt> {
        Ok(match expression {
            Expression::Number(number) => *number,
            Expression::Null => 0,
            Expression::Id => identity(self.instance),
            Expression::Place(place, offset) => self.place(place, locals)?.wrapping_add(*offset),
            Expression::Sum(left, right) => {
                self.value(left, locals)?.wrapping_add(self.value(right, locals)?)
            }
            Expression::Difference(left, right) => {
                self.value(left, locals)?.wrapping_sub(self.value(right, locals)?)
            }
            Expression::Modulo(inner, divisor) => self.value(inner, locals)?.rem_euclid(*divisor),
        })
    }

    fn place(&mut self, place: &Place, locals: &Locals) -> Result<i64, Halt> {
        if let Place::Local(local) = place {
            return locals[*local].ok_or(Halt::Unbound(*local));
        }
        let cell = self.cell(place, locals)?;
        let delayed = self.buffer.iter().rev().find(|(known, _)| *known == cell);
        Ok(match (delayed, cell) {
            (Some(&(_, value)), _) => value,
            (None, Cell::Global(global)) => self.machine.globals[global],
            (None, Cell::Element(array, index)) => self.machine.element(array, index),
            (None, Cell::Field(name, at, _)) => {
                self.machine.node(name).map_or(0, |node| node.fields[at])
            }
        })
    }
}
