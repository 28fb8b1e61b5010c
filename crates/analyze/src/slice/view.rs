//! A slice as source: statements, how often they took part, and the edges between them.
//!
//! Executions of one line of one function are one statement. What happened in code without source
//! is told as part of the call that led there, with the name of the function that was called. The
//! statements come in the order in which a reader should look at them: the fewest edges from the
//! question first, and of those the latest first.

use super::graph::{Because, Kind, Node, Slice, What};
use crate::dependence::Trace;
use crate::dependence::system_calls;
use crate::semantics::{Flow, Form, Meaning, Parts, Uses};
use base::{Address, Place, Position};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use std::collections::VecDeque;
use std::path::Path;
use symbols::unwind::StackEnd;
use symbols::{FoundBy, Level, Memory, Program, Register, Registers, Scene, Stack, plain_name};

/// A statement in a slice.
#[derive(Clone, Debug, Serialize)]
pub struct Statement {
    /// Where it is.
    pub place: Place,
    /// Functions without source that it called and that the dependence goes through.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub through: Vec<String>,
    /// Whether it has source that a reader can look at.
    pub own: bool,
    /// System calls that brought something in here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
    /// Executions of its instructions that are in the slice.
    pub executions: u64,
    /// The last of its executions in the slice.
    pub instance: i64,
    /// Threads that executed it.
    pub threads: Vec<u32>,
    /// Statements between it and the question.
    pub distance: u32,
    /// Whether it only hands values on: arguments, results and copies of local variables.
    pub hands_on: bool,
    /// Whether a value was chosen here, or a way decided: what an explanation turns on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub decisive: bool,
    /// How far it is from what an explanation was asked for: statements, and one for each decision on the way.
    #[serde(skip)]
    pub cost: u32,
    /// Whether it used memory of its frame that nothing had written: what an earlier call left on the stack.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unwritten: bool,
    /// When it was last executed: in steps, and where exactly.
    #[serde(skip)]
    pub moment: u64,
    /// The position of that execution.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
    /// The thread that executed it then.
    #[serde(skip)]
    pub thread: u32,
}

/// Edges between two statements, as one.
#[derive(Clone, Debug, Serialize)]
pub struct Link {
    /// Who depends, as a number of [`View::statements`]; none is the question.
    pub user: Option<usize>,
    /// Which execution of it.
    pub user_instance: i64,
    /// On whom.
    pub on: usize,
    /// Which execution of it.
    pub on_instance: i64,
    /// What for: `value`, `address` or `control`.
    pub kind: &'static str,
    /// The variable, memory or register that carried it.
    pub because: String,
    /// How many such edges there are.
    pub count: u64,
}

/// A slice as source.
#[derive(Clone, Debug, Default, Serialize)]
pub struct View {
    /// Statements, the nearest to the question first.
    pub statements: Vec<Statement>,
    /// Edges, in the same order.
    pub links: Vec<Link>,
    /// Whether there was more than the question's limit allows.
    pub cut: bool,
    /// Whether the statements are what came of the question, instead of what led to it.
    pub forward: bool,
}

/// Memory of which nothing is known.
struct Nothing;

impl Memory for Nothing {
    fn read(&self, _: Address, _: &mut [u8]) -> bool {
        false
    }
}

type Key = (Option<String>, Option<u32>, Option<String>);
/// Names of functions kept for a statement that calls them.
const MOST_NAMES: usize = 3;
/// Links of one kind kept apart between two statements.
const MOST_LINKS: usize = 8;

/// Where a node is shown: its own line, or the line of the call that led to it.
struct Shown {
    place: Place,
    /// Whether there is source.
    own: bool,
    /// What was called there.
    through: Option<String>,
    /// Which execution of it.
    instance: i64,
}

impl View {
    /// For each statement, whether values lead to it from the question.
    #[must_use]
    pub fn reached_by_values(&self) -> Vec<bool> {
        let count = self.statements.len();
        if self.forward {
            return vec![true; count];
        }
        // The question comes behind the statements.
        let mut on = vec![Vec::new(); count + 1];
        for link in self.links.iter().filter(|link| link.kind == "value") {
            on[link.user.unwrap_or(count)].push(link.on);
        }
        let (mut reached, mut open) = (vec![false; count], vec![count]);
        while let Some(at) = open.pop() {
            for next in &on[at] {
                if !std::mem::replace(&mut reached[*next], true) {
                    open.push(*next);
                }
            }
        }
        reached
    }
}

/// Which code without source is shown by itself, not as part of the call that led there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Unfold {
    /// None.
    #[default]
    Nothing,
    /// All of it.
    All,
    /// These functions. What they call is part of them.
    Functions(Vec<String>),
}

impl Unfold {
    /// Whether a function is shown by itself. `strcat` means `__strcat_avx2` too.
    fn has(&self, function: Option<&str>) -> bool {
        match self {
            Self::Nothing => false,
            Self::All => true,
            Self::Functions(names) => function.is_some_and(|function| {
                names.iter().any(|name| plain_name(function).starts_with(plain_name(name)))
            }),
        }
    }
}

/// A line, or what is known of an address that has none.
#[derive(Clone)]
struct AddressPlace {
    place: Place,
    own: bool,
    unfolded: bool,
}

/// Makes views of slices of one program.
pub struct Viewer<'a> {
    trace: &'a Trace,
    program: &'a Program,
    unfold: Unfold,
    places: FxHashMap<u64, AddressPlace>,
}

impl<'a> Viewer<'a> {
    /// For a trace and the program that ran.
    #[must_use]
    pub fn new(trace: &'a Trace, program: &'a Program) -> Self {
        Self { trace, program, unfold: Unfold::Nothing, places: FxHashMap::default() }
    }

    /// With some code without source shown by itself.
    #[must_use]
    pub fn unfolding(mut self, unfold: Unfold) -> Self {
        self.unfold = unfold;
        self
    }

    /// The slice as source.
    #[must_use]
    pub fn view(&mut self, slice: &Slice) -> View {
        let mut keys: FxHashMap<Key, usize> = FxHashMap::default();
        let mut statements: Vec<Statement> = Vec::new();
        let mut of_node: Vec<Option<(usize, i64)>> = Vec::with_capacity(slice.nodes.len());
        for node in &slice.nodes {
            let Some(Shown { place, own, through, instance }) = self.place_of(slice, node) else {
                of_node.push(None);
                continue;
            };
            let key = (place.file.clone(), place.line, place.function.clone());
            let number = *keys.entry(key).or_insert_with(|| {
                statements.push(Statement {
                    place,
                    through: Vec::new(),
                    own,
                    inputs: Vec::new(),
                    executions: 0,
                    instance,
                    threads: Vec::new(),
                    distance: u32::MAX,
                    hands_on: true,
                    decisive: false,
                    cost: 0,
                    unwritten: false,
                    moment: 0,
                    position: None,
                    thread: node.thread,
                });
                statements.len() - 1
            });
            note(&mut statements[number], node, self.position(node));
            let statement = &mut statements[number];
            // Who binds a function passes its arguments on.
            let through = through.filter(|name| !name.starts_with("_dl_runtime_resolve"));
            statement.hands_on &=
                through.is_none() && node.instruction.is_some_and(|id| self.hands_on(id));
            let full = statement.through.len() >= MOST_NAMES;
            statement
                .through
                .extend(through.filter(|name| !full && !statement.through.contains(name)));
            of_node.push(Some((number, instance)));
        }
        for (node, _) in &slice.unwritten {
            if let Some((statement, _)) = of_node[*node as usize] {
                statements[statement].unwritten = true;
                statements[statement].hands_on = false;
            }
        }
        show_arguments(&mut statements, &of_node, slice);
        measure(&mut statements, &of_node, slice);
        let order = sort(&mut statements);
        let links = self.links(slice, &of_node, &order, &statements);
        View { statements, links, cut: slice.cut, forward: slice.forward }
    }

    /// Where a node is shown. None for the question.
    fn place_of(&mut self, slice: &Slice, node: &Node) -> Option<Shown> {
        if node.what == What::Question {
            return None;
        }
        let foreign = |place: Place| {
            Some(Shown { place, own: false, through: None, instance: node.instance })
        };
        let Some(instruction) = node.instruction else {
            return foreign(Place::default().in_function("before the window"));
        };
        let (mut pc, mut instance) = (self.pc(instruction), node.instance);
        let mut known = self.place(pc);
        let innermost = known.place.clone();
        let mut through = None;
        let mut frame = node.frame;
        while !known.own && !known.unfolded {
            through = known.place.function.clone().or_else(|| Some(format!("*{}", Address(pc))));
            let Some((parent, call, call_instance, _)) = slice.frames[frame as usize].caller else {
                return foreign(innermost);
            };
            (pc, instance, frame) = (self.pc(call), call_instance, parent);
            known = self.place(pc);
        }
        Some(Shown { place: known.place, own: known.own, through, instance })
    }

    /// When exactly it was executed.
    fn position(&self, node: &Node) -> Option<Position> {
        let (tick, pc) = (node.tick?, Address(self.pc(node.instruction?)));
        Some(Position { tick, pc })
    }

    fn hands_on(&self, instruction: u32) -> bool {
        hands_on(&self.trace.blocks.statics[instruction as usize].meaning)
    }

    fn pc(&self, instruction: u32) -> u64 {
        self.trace.blocks.statics[instruction as usize].pc
    }

    /// The line of an address, or what is known of it.
    fn place(&mut self, pc: u64) -> AddressPlace {
        let (program, unfold) = (self.program, &self.unfold);
        let known = self.places.entry(pc).or_insert_with(|| {
            let own = own_place(program, pc);
            let is_own = own.is_some();
            let mut place = own.unwrap_or_else(|| program.symbolise(Address(pc)).place());
            if place.function.is_none() {
                place.function = program.symbol_at(Address(pc)).map(|(name, _)| name);
            }
            let unfolded = unfold.has(place.function.as_deref());
            AddressPlace { place, own: is_own, unfolded }
        });
        known.clone()
    }

    fn links(
        &mut self,
        slice: &Slice,
        of_node: &[Option<(usize, i64)>],
        order: &[usize],
        statements: &[Statement],
    ) -> Vec<Link> {
        let mut links: Vec<Link> = Vec::new();
        // Finding names takes time: once for each thing that carries, and for a few of them only.
        let mut known: FxHashMap<(Option<usize>, usize, Kind, Because), usize> =
            FxHashMap::default();
        let mut between: FxHashMap<(Option<usize>, usize, Kind), (usize, usize)> =
            FxHashMap::default();
        for edge in &slice.edges {
            let Some((on, on_instance)) = of_node[edge.on as usize] else { continue };
            let user = of_node[edge.user as usize];
            if user.is_some_and(|(user, instance)| (user, instance) == (on, on_instance)) {
                continue;
            }
            let (user, user_instance) =
                user.map_or((None, 0), |(user, at)| (Some(order[user]), at));
            let on = order[on];
            if let Some(link) = known.get(&(user, on, edge.kind, edge.because)) {
                links[*link].count += 1;
                continue;
            }
            let (count, last) = between.entry((user, on, edge.kind)).or_default();
            if *count >= MOST_LINKS {
                links[*last].count += 1;
                continue;
            }
            (*count, *last) = (*count + 1, links.len());
            known.insert((user, on, edge.kind, edge.because), links.len());
            let because = self.because(slice, edge.because, edge.user, edge.on);
            let kind = match edge.kind {
                Kind::Value => "value",
                Kind::Address => "address",
                Kind::Control => "control",
            };
            links.push(Link { user, user_instance, on, on_instance, kind, because, count: 1 });
        }
        let distance = |at: Option<usize>| at.map_or(0, |at| statements[at].distance + 1);
        links.sort_by_key(|link| (distance(link.user), link.user, link.on));
        links
    }

    /// What carried a dependence, in the program's words where it has any.
    fn because(&self, slice: &Slice, because: Because, user: u32, on: u32) -> String {
        match because {
            Because::Branch => "branch".into(),
            Because::Call => "call".into(),
            Because::Memory { address, bytes } => {
                let ends = [user, on].map(|node| &slice.nodes[node as usize]);
                let named = ends.into_iter().find_map(|node| self.variable(slice, node, address));
                named.unwrap_or_else(|| format!("[{}, {bytes}]", Address(address)))
            }
            Because::Parts(parts) => {
                let node = &slice.nodes[user as usize];
                self.register_variable(slice, node, parts).unwrap_or_else(|| {
                    parts.name().map_or_else(String::new, |name| format!("${name}"))
                })
            }
        }
    }

    /// Asks about the variables that a node sees: all frames that called it are known by the
    /// addresses of their return addresses.
    fn with_scene<R>(
        &self,
        slice: &Slice,
        node: &Node,
        ask: impl FnOnce(&Scene<'_>) -> Option<R>,
    ) -> Option<R> {
        let mut frames = Vec::new();
        let (mut pc, mut frame) = (self.pc(node.instruction?), node.frame);
        loop {
            let own = &slice.frames[frame as usize];
            frames.push(symbols::Frame {
                pc: Address(pc),
                registers: Registers::default(),
                cfa: (own.slot != 0).then(|| Address(own.slot + 8)),
                found_by: FoundBy::CallFrameInfo,
                exact: true,
            });
            let Some((parent, call, ..)) = own.caller.filter(|_| frames.len() < 16) else { break };
            (pc, frame) = (self.pc(call), parent);
        }
        let stack = Stack { frames, end: StackEnd::Lost };
        let (program, memory) = (self.program, &Nothing as &dyn Memory);
        ask(&Scene { program, memory, stack: &stack, thread_pointer: None })
    }

    fn variable(&self, slice: &Slice, node: &Node, address: u64) -> Option<String> {
        self.with_scene(slice, node, |scene| {
            let level = own_level(scene);
            let names = scene.names_of(level, Address(address));
            names.into_iter().next().map(|naming| naming.expression)
        })
    }

    fn register_variable(&self, slice: &Slice, node: &Node, parts: Parts) -> Option<String> {
        let name = parts.name()?;
        let register = Register::named(&name)?;
        self.with_scene(slice, node, |scene| {
            let names = scene.names_of_register(Level::default(), register);
            names.into_iter().next().map(|naming| naming.expression)
        })
    }
}

/// The innermost call that has variables.
fn own_level(scene: &Scene<'_>) -> Level {
    let has = |level: &Level| !scene.locals(*level).is_empty();
    let levels = scene.each_call().map(|call| call.level).take(8);
    levels.into_iter().find(has).unwrap_or_default()
}

/// Whether the code at an address has source of the program's own.
#[must_use]
pub fn has_source(program: &Program, pc: u64) -> bool {
    own_place(program, pc).is_some()
}

/// Where code is in the program's own source: of calls that were inlined there, the innermost that is not
/// of a library. Of libraries of the system nothing is, even if their lines are known, unless the files are
/// there.
#[must_use]
pub fn own_place(program: &Program, pc: u64) -> Option<Place> {
    own_frames(program, pc).into_iter().next()
}

/// The same of all calls that were inlined there, innermost first.
#[must_use]
pub fn own_frames(program: &Program, pc: u64) -> Vec<Place> {
    let line = program.line_at(Address(pc)).filter(|line| line.line.line > 0);
    let module = program.locate(Address(pc)).filter(|_| line.is_some());
    let Some((module, _)) = module else { return Vec::new() };
    let of_system = base::is_system_file(&module.loaded().path.to_string_lossy());
    let own = |frame: symbols::SourceFrame| {
        let line = frame.line.filter(|line| {
            line.line > 0
                && base::is_own_source(&line.file)
                && (!of_system || Path::new(&line.file).is_file())
        })?;
        Some(Place {
            file: Some(line.file),
            line: Some(line.line),
            function: frame.function,
            address: Some(Address(pc)),
        })
    };
    program.symbolise(Address(pc)).frames.into_iter().filter_map(own).collect()
}

/// Whether an instruction only hands a value on: between registers and the frame's own memory.
fn hands_on(meaning: &Meaning) -> bool {
    let frame = Parts::general(5, 0, 8);
    let copies = meaning.flows.iter().all(|flow| match flow {
        Flow::Copy { .. } => true,
        // The zeros above a copy of four bytes.
        Flow::Make { parts, write, uses, .. } => {
            write.is_none() && *uses == Uses::default() && !parts.is_empty()
        }
    });
    let any = meaning.flows.iter().any(|flow| matches!(flow, Flow::Copy { .. }));
    let own = meaning.memory.iter().all(|operand| operand.address.without(&frame).is_empty());
    let linkage = matches!(meaning.form, Form::Plain);
    copies && any && own && linkage
}

fn note(statement: &mut Statement, node: &Node, position: Option<Position>) {
    if statement.executions == 0 || node.moment.0 > statement.moment {
        (statement.moment, statement.position) = (node.moment.0, position);
        statement.thread = node.thread;
    }
    statement.executions += 1;
    if !statement.threads.contains(&node.thread) {
        statement.threads.push(node.thread);
        statement.threads.sort_unstable();
    }
    if let What::Syscall { number, arguments, answer } = node.what {
        use syscalls::number as n;
        let [a, ..] = arguments;
        let text = match number {
            n::read | n::pread64 | n::recvfrom => {
                format!("{}({a}, …) = {answer}", system_calls::name(number))
            }
            _ => format!("{}(…) = {answer}", system_calls::name(number)),
        };
        if !statement.inputs.contains(&text) && statement.inputs.len() < 4 {
            statement.inputs.push(text);
        }
    }
}

/// A call that gives an argument does more than hand a value on: it may be the wrong one.
fn show_arguments(statements: &mut [Statement], of_node: &[Option<(usize, i64)>], slice: &Slice) {
    for edge in slice.edges.iter().filter(|edge| edge.kind == Kind::Value) {
        let [user, on] = [edge.user, edge.on].map(|node| slice.nodes[node as usize].frame);
        let caller = slice.frames[user as usize].caller.map(|(caller, ..)| caller);
        if user != on
            && caller == Some(on)
            && let Some((statement, _)) = of_node[edge.on as usize]
        {
            statements[statement].hands_on = false;
        }
    }
}

/// How many statements lie between the question and each.
fn measure(statements: &mut [Statement], of_node: &[Option<(usize, i64)>], slice: &Slice) {
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); statements.len() + 1];
    let question = statements.len();
    let mut seen: FxHashSet<(usize, usize)> = FxHashSet::default();
    for edge in &slice.edges {
        let statement = |node: u32| of_node[node as usize].map_or(question, |(at, _)| at);
        let (mut near, mut far) = (statement(edge.user), statement(edge.on));
        if slice.forward {
            (near, far) = (far, near);
        }
        if far != question && seen.insert((near, far)) {
            after[near].push(far);
        }
    }
    let mut open = VecDeque::from([(question, 0)]);
    while let Some((at, distance)) = open.pop_front() {
        for on in &after[at] {
            if statements[*on].distance == u32::MAX {
                statements[*on].distance = distance;
                open.push_back((*on, distance + 1));
            }
        }
    }
}

/// Sorts statements for a reader; where each of the old order went.
fn sort(statements: &mut Vec<Statement>) -> Vec<usize> {
    let mut by: Vec<usize> = (0..statements.len()).collect();
    by.sort_by_key(|at| (statements[*at].distance, std::cmp::Reverse(statements[*at].moment)));
    let mut order = vec![0; statements.len()];
    for (new, old) in by.iter().enumerate() {
        order[*old] = new;
    }
    *statements = by.into_iter().map(|old| statements[old].clone()).collect();
    order
}
