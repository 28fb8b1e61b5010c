//! Why a program ended as it did: the thin slice of the wrong value, and where that ends in
//! something that the program chose (a constant, a pointer to nothing), the condition that made
//! it choose so, with both sides of its comparison. Where a call is what decided, the condition is the
//! caller's, or that of whoever called it.

use super::bookkeepers::is_bookkeeper;
use super::constants::constants;
use super::ending::Asked;
use super::graph::{Because, Edge, Kind, Node, Slice, What};
use super::omitted::{Finder, Omitted};
use super::question::{Follow, Question, Wants};
use super::view::{Link, Statement, View, Viewer, has_source, own_place};
use crate::dependence::Trace;
use crate::dependence::control::Control;
use crate::semantics::{Flow, Parts};
use base::{Address, PlaceName, StepCount};
use rustc_hash::FxHashSet;
use serde::Serialize;
use symbols::Program;

/// Ends of the chain whose conditions are looked for; as many again of what those conditions look at.
const MOST_ENDS: usize = 4;
/// How often that is done.
const ROUNDS: usize = 8;
/// Instructions that are gone through before no further round begins.
const LONGEST_WALK: u64 = 300_000_000;
/// Calls that are gone back through to a condition.
const MOST_CALLS: usize = 32;
/// Choices without a branch that are followed in one slice.
const MOST_CHOICES: usize = 2;
/// A function that programs of Go have; their stacks are small blocks.
const OF_GO: &str = "runtime.gopanic";
/// Conditions and calls around a decision that are told.
const MOST_OUTER: usize = 5;
/// Questions about decisions for which that is done.
const MOST_DECIDED: usize = 3;
/// Decisions that kept a condition's variables from being changed.
const MOST_OMITTED: usize = 1;
/// Statements nearest to the question whose conditions are told.
const MOST_NEAREST: usize = 2;
/// Executions kept of each question.
const NODES: usize = 20_000;

/// An explanation.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Explanation {
    /// Statements, nearest first, and the dependences between them.
    #[serde(flatten)]
    pub view: View,
    /// How many of the statements are on the chain of values; the others decided about them.
    pub on_chain: usize,
    /// Whether it leads further back than the part of the run that was looked at.
    pub open: bool,
}

/// Explains what is asked.
#[must_use]
pub fn explain(
    trace: &Trace,
    program: &Program,
    control: &Control,
    asked: &[Asked],
) -> Explanation {
    let mut explainer = Explainer::new(trace, program, control);
    let (mut ends, mut decisions, mut nearest) = (Vec::new(), Vec::new(), Vec::new());
    let mut decided = Vec::new();
    for (number, asked) in (0u32..).zip(asked) {
        explainer.cost = number;
        let slice = explainer.ask(asked.question(Follow::Thin));
        explainer.add(&slice, None);
        let own = |node: &Node| own_pc(trace, program, &slice, (node.frame, pc_of(trace, node)?));
        decisions.extend(choices(trace, &slice, &own));
        let finder = &mut explainer.finder;
        let omitted = [finder.unwritten(&slice), finder.find(&slice, &own)].concat();
        decisions.extend(omitted.iter().map(|omitted| of_branch(trace, omitted)));
        nearest.extend(self::nearest(trace, program, &slice));
        let call = deciding_call(trace, program, &slice);
        if call.is_none() && asked.wants.control.is_some() {
            decided.push(slice.clone());
        }
        ends.extend(call);
        ends.extend(self::ends(trace, program, &slice));
        explainer.mark(&ends);
    }
    let view = &explainer.view;
    let on_chain = view.statements.iter().filter(|statement| statement.own).count();
    for slice in decided.iter().take(MOST_DECIDED) {
        ends.extend(explainer.outer(slice));
    }
    for decision in decisions {
        explainer.follow(decision);
    }
    nearest.truncate(MOST_NEAREST);
    for near in nearest {
        let asked = explainer.asked_about(&near, 1);
        explainer.tell(&asked, &near);
    }
    for _ in 0..ROUNDS {
        if explainer.walked > LONGEST_WALK {
            explainer.view.cut |= !ends.is_empty();
            break;
        }
        let mut next = Vec::new();
        for end in ends.into_iter().take(MOST_ENDS) {
            next.extend(explainer.conditions(end));
        }
        ends = next;
    }
    let (mut view, open) = (explainer.view, explainer.open);
    only_own(&mut view);
    Explanation { view, on_chain, open }
}

/// An explanation while it is made.
struct Explainer<'a> {
    trace: &'a Trace,
    program: &'a Program,
    control: &'a Control,
    constants: Vec<(u64, u64)>,
    viewer: Viewer<'a>,
    finder: Finder<'a>,
    view: View,
    /// How far from the best question whatever is found now is, at least.
    cost: u32,
    /// Instructions that were gone through.
    walked: u64,
    /// Whether something was still looked for where the trace begins.
    open: bool,
    /// Whether frames may lie close to memory of other kinds, and be copied.
    moves_stacks: bool,
}

/// Something that was decided, and what the decision looked at.
struct Decision {
    thread: u32,
    moment: StepCount,
    wants: Wants,
    /// The instruction of the program's own that it was about.
    own_pc: u64,
    instance: i64,
}

impl<'a> Explainer<'a> {
    fn new(trace: &'a Trace, program: &'a Program, control: &'a Control) -> Self {
        let (constants, viewer) = (constants(program), Viewer::new(trace, program));
        let (view, cost, walked, open) = (View::default(), 0, 0, false);
        let moves_stacks = program.resolve(&PlaceName::Function(OF_GO.to_owned())).is_ok();
        let finder = Finder::new(trace, program, control);
        Self {
            trace,
            program,
            control,
            constants,
            viewer,
            finder,
            view,
            cost,
            walked,
            open,
            moves_stacks,
        }
    }

    fn ask(&self, mut question: Question<'_>) -> Slice {
        let foreign = |pc| !has_source(self.program, pc);
        let bookkeepers = |pc| is_bookkeeper(self.program, pc);
        question.nodes = NODES;
        question.constants.clone_from(&self.constants);
        let question = Question {
            control: Some(self.control),
            foreign: Some(&foreign),
            bookkeepers: Some(&bookkeepers),
            within: None,
            frames_begin_empty: !self.moves_stacks,
            ..question
        };
        question.answer(self.trace)
    }

    /// Adds what a slice has; its question was about a statement.
    fn add(&mut self, slice: &Slice, asked: Option<(usize, i64)>) {
        let mut view = self.viewer.view(slice);
        let cost = asked.map_or(self.cost, |(user, _)| self.view.statements[user].cost + 1);
        for statement in &mut view.statements {
            statement.cost = statement.distance.saturating_add(cost);
        }
        merge(&mut self.view, view, asked);
        self.walked += slice.walked;
        self.open |= slice.is_open;
    }

    /// Marks the statements at which values were chosen.
    fn mark(&mut self, ends: &[End]) {
        for end in ends {
            self.mark_line(end.own_pc);
        }
    }

    fn mark_line(&mut self, pc: u64) {
        if let Some(at) = at_line(&self.view, self.program, pc) {
            self.view.statements[at].decisive = true;
        }
    }

    /// Asks what a decision looked at, and adds that.
    fn follow(&mut self, decision: Decision) -> Slice {
        let Decision { thread, moment, wants, own_pc, instance } = decision;
        let slice = self.ask(Question::new(thread, moment, wants, Follow::Thin));
        let user = at_line(&self.view, self.program, own_pc).map(|user| (user, instance));
        self.add(&slice, user);
        // The branch, or whatever the condition was worked out by. A call only leads to one further out.
        let nearest = slice.edges.iter().filter(|edge| edge.user == 0);
        let nearest = nearest.filter(|edge| edge.because != Because::Call).map(|edge| edge.on);
        for node in nearest {
            if let Some(pc) = pc_of(self.trace, &slice.nodes[node as usize]) {
                self.mark_line(pc);
            }
        }
        slice
    }

    /// Goes back from where a value was chosen to the condition that made it so, through the calls that led
    /// there; where the values of the conditions were chosen in turn.
    fn conditions(&mut self, end: End) -> Vec<End> {
        let (trace, program) = (self.trace, self.program);
        let (mut at, mut found) = (Some(end), Vec::new());
        for _ in 0..MOST_CALLS {
            let Some(end) = at.take() else { break };
            let more = self.follow(end.decision());
            at = deciding_call(trace, program, &more);
            if at.is_none() {
                found.extend(self.outer(&more));
            }
            let chosen = ends(trace, program, &more);
            self.mark(&chosen);
            found.extend(chosen);
            let own =
                |node: &Node| own_pc(trace, program, &more, (node.frame, pc_of(trace, node)?));
            let omitted = self.finder.find(&more, &own);
            for choice in choices(trace, &more, &own) {
                self.follow(choice);
            }
            for omitted in omitted.iter().take(MOST_OMITTED) {
                self.follow(of_branch(trace, omitted));
            }
        }
        found
    }

    /// Goes outwards from the branch that decided about a question: to the other parts of its condition, which are
    /// followed, and to the conditions and calls around it, which are only told.
    fn outer(&mut self, slice: &Slice) -> Vec<End> {
        let (trace, program) = (self.trace, self.program);
        let mut chosen = Vec::new();
        let mut at = deciding_branch(trace, program, slice);
        for _ in 0..MOST_OUTER {
            let Some(branch) = at.take() else { break };
            let line = own_place(program, branch.own_pc).map(|place| (place.file, place.line));
            let asked = self.asked_about(&branch, 1);
            let next = deciding_branch(trace, program, &asked);
            let same = next.as_ref().is_some_and(|next| {
                own_place(program, next.own_pc).map(|place| (place.file, place.line)) == line
            });
            if same {
                let more = self.follow(branch.decision());
                chosen.extend(ends(trace, program, &more));
            } else {
                self.tell(&asked, &branch);
            }
            at = next.or_else(|| deciding_call(trace, program, &asked));
        }
        self.mark(&chosen);
        chosen
    }

    /// What decided about an execution, as far as so many steps.
    fn asked_about(&self, end: &End, depth: u32) -> Slice {
        let wants = Wants { control: Some(end.pc), ..Wants::default() };
        let mut question = Question::new(end.thread, end.moment, wants, Follow::Thin);
        question.depth = depth;
        self.ask(question)
    }

    /// Adds the branch that decided about an execution, and not what it looked at.
    fn tell(&mut self, slice: &Slice, end: &End) {
        let decided = |edge: &&Edge| edge.user == 0 && edge.because == Because::Branch;
        let Some(branch) = slice.edges.iter().find(decided) else { return };
        let Some(pc) = pc_of(self.trace, &slice.nodes[branch.on as usize]) else { return };
        let user = at_line(&self.view, self.program, end.own_pc).map(|user| (user, end.instance));
        self.add(slice, user);
        self.mark_line(pc);
    }
}

/// Instructions that chose between two values, by a condition that is not a branch. The nearest first.
fn choices(trace: &Trace, slice: &Slice, own: &dyn Fn(&Node) -> Option<u64>) -> Vec<Decision> {
    let mut nodes: Vec<&Node> =
        slice.nodes.iter().filter(|node| node.what == What::Executed).collect();
    nodes.sort_by_key(|node| (node.depth, std::cmp::Reverse(node.moment)));
    let decision = |node: &Node| {
        let meaning = &trace.blocks.statics[node.instruction? as usize].meaning;
        let conditions = meaning.flows.iter().filter_map(|flow| match flow {
            Flow::Make { uses, .. } => Some(uses.conditions),
            Flow::Copy { .. } => None,
        });
        let parts = conditions.fold(Parts::NONE, |all, one| all | one);
        let wants = Wants { parts, ..Wants::default() };
        let (thread, moment, instance) = (node.thread, node.moment, node.instance);
        let own_pc = own(node).filter(|_| !parts.is_empty())?;
        Some(Decision { thread, moment, wants, own_pc, instance })
    };
    nodes.into_iter().filter_map(decision).take(MOST_CHOICES).collect()
}

/// What a branch looked at that kept something from happening.
fn of_branch(trace: &Trace, omitted: &Omitted) -> Decision {
    let Omitted { branch, instead } = omitted;
    let (parts, memory) = trace.used(branch);
    let wants = Wants { parts, memory, ..Wants::default() };
    let (thread, moment) = (branch.thread, branch.moment);
    Decision { thread, moment, wants, own_pc: *instead, instance: 0 }
}

/// The executions of the program's own that a question is answered with first, one of each line: whatever decided
/// about them could have kept the failure from happening.
fn nearest(trace: &Trace, program: &Program, slice: &Slice) -> Vec<End> {
    let mut nodes: Vec<&Node> =
        slice.nodes.iter().filter(|node| node.what == What::Executed).collect();
    nodes.sort_by_key(|node| (node.depth, std::cmp::Reverse(node.moment)));
    let mut found: Vec<(Option<u32>, End)> = Vec::new();
    for node in nodes {
        let Some(pc) = pc_of(trace, node) else { continue };
        let Some(line) = own_place(program, pc).map(|place| place.line) else { continue };
        if found.len() < MOST_NEAREST && found.iter().all(|(known, _)| *known != line) {
            let (thread, moment, instance) = (node.thread, node.moment, node.instance);
            found.push((line, End { thread, moment, pc, instance, own_pc: pc }));
        }
    }
    found.into_iter().map(|(_, end)| end).collect()
}

/// The statement at the line of an address.
fn at_line(view: &View, program: &Program, pc: u64) -> Option<usize> {
    let line = own_place(program, pc)?;
    view.statements.iter().position(|statement| {
        statement.place.file == line.file && statement.place.line == line.line
    })
}

/// The branch of the program's own that decided about what a question was asked about.
fn deciding_branch(trace: &Trace, program: &Program, slice: &Slice) -> Option<End> {
    let decided = |edge: &&Edge| edge.user == 0 && edge.because == Because::Branch;
    let node = &slice.nodes[slice.edges.iter().find(decided)?.on as usize];
    let pc = pc_of(trace, node)?;
    let (thread, moment, instance) = (node.thread, node.moment, node.instance);
    has_source(program, pc).then_some(End { thread, moment, pc, instance, own_pc: pc })
}

/// The call that decided about what a question was asked about, if it was one of the program's own.
fn deciding_call(trace: &Trace, program: &Program, slice: &Slice) -> Option<End> {
    let decided = |edge: &&Edge| edge.user == 0 && edge.because == Because::Call;
    let node = &slice.nodes[slice.edges.iter().find(decided)?.on as usize];
    let pc = trace.blocks.statics[node.instruction? as usize].pc;
    let (thread, moment, instance) = (node.thread, node.moment, node.instance);
    has_source(program, pc).then_some(End { thread, moment, pc, instance, own_pc: pc })
}

fn pc_of(trace: &Trace, node: &Node) -> Option<u64> {
    Some(trace.blocks.statics[node.instruction? as usize].pc)
}

/// Drops what the program has no source of: how it was loaded and started, mostly.
fn only_own(view: &mut View) {
    let mut numbers = Vec::new();
    let mut kept = Vec::new();
    for statement in std::mem::take(&mut view.statements) {
        numbers.push(statement.own.then_some(kept.len()));
        kept.extend(statement.own.then_some(statement));
    }
    view.statements = kept;
    let moved = |link: Link| {
        let user = match link.user {
            Some(user) => Some(numbers[user]?),
            None => None,
        };
        Some(Link { user, on: numbers[link.on]?, ..link })
    };
    view.links = std::mem::take(&mut view.links).into_iter().filter_map(moved).collect();
}

/// An execution where a value was chosen.
struct End {
    thread: u32,
    moment: StepCount,
    pc: u64,
    instance: i64,
    /// The instruction of the program's own: the same, or the call of the library that chose.
    own_pc: u64,
}

impl End {
    /// Why it came to be executed.
    fn decision(self) -> Decision {
        let Self { thread, moment, pc, instance, own_pc } = self;
        let wants = Wants { control: Some(pc), ..Wants::default() };
        Decision { thread, moment, wants, own_pc, instance }
    }
}

/// Executions that used nothing: there a value was chosen, by the program's own code or, if it chose nothing, by
/// a library that it called (which found nothing, or could not read a number). The nearest first; of each
/// instruction the last.
fn ends(trace: &Trace, program: &Program, slice: &Slice) -> Vec<End> {
    let values = slice.edges.iter().filter(|edge| edge.kind == Kind::Value);
    let uses: FxHashSet<u32> = values.map(|edge| edge.user).collect();
    let mut ends: Vec<((bool, u32), End)> = Vec::new();
    for (number, node) in (0u32..).zip(&slice.nodes) {
        let Some(instruction) = node.instruction.filter(|_| node.what == What::Executed) else {
            continue;
        };
        let executed = &trace.blocks.statics[instruction as usize];
        let pc = executed.pc;
        let known = ends.iter().any(|(_, other)| other.pc == pc);
        // A call chooses nothing: it is there because it led to what was asked about.
        if uses.contains(&number) || known || executed.meaning.form.is_call() {
            continue;
        }
        if let Some(own_pc) = own_pc(trace, program, slice, (node.frame, pc)) {
            let (thread, moment, instance) = (node.thread, node.moment, node.instance);
            let end = End { thread, moment, pc, instance, own_pc };
            ends.push(((own_pc != pc, node.depth), end));
        }
    }
    if ends.iter().any(|((of_library, _), _)| !of_library) {
        ends.retain(|((of_library, _), _)| !of_library);
    }
    ends.sort_by_key(|(near, end)| (*near, std::cmp::Reverse(end.moment)));
    ends.truncate(MOST_ENDS);
    ends.into_iter().map(|(_, end)| end).collect()
}

/// The instruction of the program's own that one was executed for: itself, or the call that led to it. Of what
/// allocators choose nobody is told.
fn own_pc(trace: &Trace, program: &Program, slice: &Slice, at: (u32, u64)) -> Option<u64> {
    let (mut frame, mut pc) = at;
    let of_program = |pc| {
        let module = program.locate(Address(pc)).map(|(module, _)| &module.loaded().path);
        module.is_some_and(|path| !base::is_system_file(&path.to_string_lossy()))
    };
    for _ in 0..MOST_CALLS {
        if has_source(program, pc) {
            return Some(pc);
        }
        if is_bookkeeper(program, pc) {
            return None;
        }
        let caller = slice.frames.get(frame as usize).and_then(|frame| frame.caller);
        // What starts `main` and reports its result may be a part of the program's file.
        let Some((caller, call, ..)) = caller else { return of_program(at.1).then_some(at.1) };
        (frame, pc) = (caller, trace.blocks.statics[call as usize].pc);
    }
    None
}

/// Adds the statements of another view that are not there yet, behind the others. Its question was
/// about the statement `asked`.
fn merge(view: &mut View, other: View, asked: Option<(usize, i64)>) {
    let same = |left: &Statement, right: &Statement| {
        left.place.file == right.place.file
            && left.place.line == right.place.line
            && left.place.function == right.place.function
    };
    let mut numbers = Vec::new();
    for statement in other.statements {
        let known = view.statements.iter().position(|known| same(known, &statement));
        if let Some(known) = known.map(|at| &mut view.statements[at]) {
            known.cost = statement.cost.min(known.cost);
            known.unwritten |= statement.unwritten;
            known.hands_on &= statement.hands_on || !statement.unwritten;
        }
        numbers.push(known.unwrap_or_else(|| {
            view.statements.push(statement);
            view.statements.len() - 1
        }));
    }
    let moved = |link: Link| {
        let (user, user_instance) = match (link.user, asked) {
            (Some(user), _) => (Some(numbers[user]), link.user_instance),
            (None, Some((user, instance))) => (Some(user), instance),
            (None, None) => (None, 0),
        };
        Link { user, user_instance, on: numbers[link.on], ..link }
    };
    view.links.extend(other.links.into_iter().map(moved));
    view.cut |= other.cut;
}
