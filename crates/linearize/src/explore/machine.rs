//! A concrete state, and what a sub-operation makes of it.
//!
//! Numbers are themselves; a reference is 0 for NULL or the name of a node. Nodes are named after
//! who allocated them and where, so that two orders of the same operations name them alike.

use crate::model::{
    Condition, Expression, Invariant, Local, LocalKind, Place, Program, Statement, Step, Type,
};
use crate::symbolic::run::binding;
use std::collections::BTreeMap;

/// The state of the shared memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Machine {
    /// Shared variables; unused for arrays.
    pub globals: Vec<i64>,
    /// Shared arrays; what is missing is 0.
    pub arrays: Vec<BTreeMap<i64, i64>>,
    /// Nodes, sorted by name.
    pub nodes: Vec<Node>,
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
    /// Any other.
    pub others: Vec<i64>,
}

impl Numbers {
    /// Arguments from 1 to `values`; others also any number of the specification.
    #[must_use]
    pub fn of(program: &Program, values: i64) -> Self {
        let arguments: Vec<i64> = (1..=values).collect();
        let mut others = program.numbers();
        others.extend(&arguments);
        others.sort_unstable();
        others.dedup();
        Self { arguments, others }
    }
}

/// Local variables; `None` is not bound yet.
pub type Locals = Vec<Option<i64>>;

/// Allocations of one instance have names from `instance * SITES + 1` on.
const SITES: i64 = 1000;

/// Identities are numbers that nothing else uses.
const FIRST_ID: i64 = 1 << 40;

/// Why a sub-operation cannot run as it is.
enum Halt {
    /// The precondition does not hold, or there is no node to look into.
    Blocked,
    /// This local is read and not bound.
    Unbound(usize),
}

/// Who runs a sub-operation: names and identities follow from it.
#[derive(Clone, Copy, Debug)]
pub struct Actor {
    /// The number of the instance; the initial state is instance 0.
    pub instance: usize,
}

impl Machine {
    /// The initial state.
    #[must_use]
    pub fn start(program: &Program) -> Self {
        let mut machine = Self {
            globals: vec![0; program.globals.len()],
            arrays: vec![BTreeMap::new(); program.globals.len()],
            nodes: Vec::new(),
        };
        let mut run = Run { program, machine: &mut machine, actor: Actor { instance: 0 } };
        let mut locals: Locals =
            program.init.locals.iter().map(|local| (local.ty != Type::Int).then_some(0)).collect();
        locals.iter_mut().for_each(|local| *local = Some(local.unwrap_or(0)));
        for statement in &program.init.body {
            // A statement that looks into NULL does nothing; the checker of claims and the search
            // see the state that results.
            let _ = run.statement(statement, &mut locals);
        }
        machine
    }

    /// Every state that a sub-operation can lead to, with the locals it leaves. `declared`
    /// are the locals of its operation.
    #[must_use]
    pub fn outcomes(
        &self,
        program: &Program,
        step: &Step,
        declared: &[Local],
        actor: Actor,
        locals: &Locals,
        numbers: &Numbers,
    ) -> Vec<(Self, Locals)> {
        let mut found = Vec::new();
        let mut work = vec![locals.clone()];
        while let Some(start) = work.pop() {
            let mut machine = self.clone();
            let mut after = start.clone();
            let run = &mut Run { program, machine: &mut machine, actor };
            match run.step(step, &mut after) {
                Ok(()) => found.push((machine, after)),
                Err(Halt::Blocked) => {}
                Err(Halt::Unbound(local)) => {
                    work.extend(self.guesses(&declared[local], numbers).into_iter().map(|value| {
                        let mut guessed = start.clone();
                        guessed[local] = Some(value);
                        guessed
                    }));
                }
            }
        }
        found
    }

    /// What an unbound local may hold.
    fn guesses(&self, local: &Local, numbers: &Numbers) -> Vec<i64> {
        match (local.ty, local.kind) {
            (Type::Ref(structure), _) => {
                let public = self.nodes.iter().filter(|node| node.published);
                let fitting = public.filter(|node| node.ty == structure);
                std::iter::once(0).chain(fitting.map(|node| node.name)).collect()
            }
            (Type::Int, LocalKind::Parameter) => numbers.arguments.clone(),
            (Type::Int, _) => numbers.others.clone(),
        }
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
        let run = &mut Run { program, machine: &mut machine, actor: Actor { instance: 0 } };
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
        seen.extend(&self.globals);
        seen.extend(self.arrays.iter().flatten().flat_map(|(&index, &value)| [index, value]));
        seen.extend(self.nodes.iter().flat_map(|node| node.fields.iter().copied()));
        let offsets = offsets(invariant);
        let met = seen.iter().flat_map(|&number| offsets.iter().map(move |offset| number - offset));
        let mut all: Vec<_> = met.flat_map(|number| number - 3..=number + 3).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The value of a place that needs no locals, for showing.
    #[must_use]
    pub fn element(&self, array: usize, index: i64) -> i64 {
        self.arrays[array].get(&index).copied().unwrap_or(0)
    }
}

/// The numbers that an invariant names or adds; 0 is always among them.
fn offsets(invariant: &Invariant) -> Vec<i64> {
    let mut offsets = vec![0];
    let conditions = invariant.given.iter().chain(&invariant.then);
    let mut work: Vec<&Expression> =
        conditions.flat_map(|condition| [&condition.left, &condition.right]).collect();
    while let Some(side) = work.pop() {
        match side {
            Expression::Number(number) => offsets.push(*number),
            Expression::Place(place, offset) => {
                offsets.push(*offset);
                let mut place = place;
                while let Place::Field(base, _) = place {
                    place = base;
                }
                if let Place::Element(_, index) = place {
                    work.push(index);
                }
            }
            Expression::Null | Expression::Id => {}
        }
    }
    offsets.extend(offsets.clone().into_iter().map(|offset| -offset));
    offsets.sort_unstable();
    offsets.dedup();
    offsets
}

/// The identity of an instance.
#[must_use]
pub fn identity(actor: Actor) -> i64 {
    FIRST_ID + i64::try_from(actor.instance).unwrap_or(i64::MAX - FIRST_ID)
}

/// The instance whose identity this is.
#[must_use]
pub fn instance_of(identity: i64) -> Option<i64> {
    (identity >= FIRST_ID).then(|| identity - FIRST_ID)
}

/// Who made a node, and the how-manieth of that instance it is.
#[must_use]
pub fn maker(name: i64) -> (i64, i64) {
    ((name - 1) / SITES, (name - 1) % SITES)
}

struct Run<'r> {
    program: &'r Program,
    machine: &'r mut Machine,
    actor: Actor,
}

impl Run<'_> {
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
                if let Some((local, from)) = binding(condition, &bound) {
                    locals[local] = Some(self.value(from, locals)?);
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
                let name = self.allocate(*ty, *site);
                locals[*local] = Some(name);
                Ok(())
            }
            Statement::Assign(target, value) => {
                let value = self.value(value, locals)?;
                self.assign(target, value, locals)
            }
        }
    }

    fn allocate(&mut self, ty: usize, site: usize) -> i64 {
        let number = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
        let name = number(self.actor.instance) * SITES + number(site) + 1;
        let fields = vec![0; self.program.structs[ty].fields.len()];
        let node = Node { name, ty, published: false, fields };
        let at = self.machine.nodes.partition_point(|known| known.name < name);
        self.machine.nodes.insert(at, node);
        name
    }

    fn assign(&mut self, target: &Place, value: i64, locals: &mut Locals) -> Result<(), Halt> {
        let program = self.program;
        let shared = match target {
            Place::Local(local) => {
                locals[*local] = Some(value);
                return Ok(());
            }
            Place::Global(global) => {
                self.machine.globals[*global] = value;
                program.globals[*global].ty
            }
            Place::Element(array, index) => {
                let index = self.value(index, locals)?;
                let elements = &mut self.machine.arrays[*array];
                // Zeros are not kept, so that equal arrays compare equal.
                if value == 0 {
                    elements.remove(&index)
                } else {
                    elements.insert(index, value)
                };
                program.globals[*array].ty
            }
            Place::Field(base, field) => {
                let name = self.place(base, locals)?;
                let at = self.position(*field);
                let node = self.machine.node_mut(name).ok_or(Halt::Blocked)?;
                node.fields[at] = value;
                if !node.published {
                    return Ok(());
                }
                program.fields[*field].ty
            }
        };
        if shared != Type::Int {
            self.machine.publish(program, value);
        }
        Ok(())
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
            Expression::Id => identity(self.actor),
            Expression::Place(place, offset) => self.place(place, locals)? + offset,
        })
    }

    fn place(&mut self, place: &Place, locals: &Locals) -> Result<i64, Halt> {
        match place {
            Place::Local(local) => locals[*local].ok_or(Halt::Unbound(*local)),
            Place::Global(global) => Ok(self.machine.globals[*global]),
            Place::Element(array, index) => {
                let index = self.value(index, locals)?;
                Ok(self.machine.element(*array, index))
            }
            Place::Field(base, field) => {
                let name = self.place(base, locals)?;
                let at = self.position(*field);
                let node = self.machine.node(name).ok_or(Halt::Blocked)?;
                Ok(node.fields[at])
            }
        }
    }
}
