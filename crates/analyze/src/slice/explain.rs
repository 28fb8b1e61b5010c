//! Why a program ended as it did: the thin slice of the wrong value, and where that ends in
//! something that the program chose (a constant, a pointer to nothing), the condition that made
//! it choose so.

use super::ending::Asked;
use super::graph::{Kind, Slice, What};
use super::question::{Follow, Question, Wants};
use super::view::{Link, Statement, View, Viewer, has_source};
use crate::dependence::control::Control;
use crate::dependence::{Moment, Trace};
use rustc_hash::FxHashSet;
use serde::Serialize;
use symbols::Program;

/// Ends of the chain whose conditions are looked for.
const MOST_ENDS: usize = 4;
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
}

/// Explains what is asked.
#[must_use]
pub fn explain(
    trace: &Trace,
    program: &Program,
    control: &Control,
    asked: &[Asked],
) -> Explanation {
    let foreign = |pc| !has_source(program, pc);
    let ask = |question: Question<'_>| {
        let mut question = question;
        question.control = Some(control);
        question.foreign = Some(&foreign);
        question.nodes = NODES;
        question.answer(trace)
    };
    let mut viewer = Viewer::new(trace, program);
    let (mut view, mut all_ends) = (View::default(), Vec::new());
    for asked in asked {
        let slice = ask(asked.question(Follow::Thin));
        merge(&mut view, viewer.view(&slice), None);
        all_ends.extend(ends(trace, program, &slice));
    }
    let on_chain = view.statements.iter().filter(|statement| statement.own).count();
    all_ends.truncate(MOST_ENDS);
    for End { thread, moment, pc, instance } in all_ends {
        let wants = Wants { control: Some(pc), ..Wants::default() };
        let more = ask(Question::new(thread, moment, wants, Follow::Thin));
        let line = program.line_at(base::Address(pc)).map(|line| line.line);
        let user = view.statements.iter().position(|statement| {
            line.as_ref().is_some_and(|line| {
                statement.place.file.as_ref() == Some(&line.file)
                    && statement.place.line == Some(line.line)
            })
        });
        merge(&mut view, viewer.view(&more), user.map(|user| (user, instance)));
    }
    only_own(&mut view);
    Explanation { view, on_chain }
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
    moment: Moment,
    pc: u64,
    instance: i64,
}

/// Executions of the program's own code that used nothing: there a value was chosen. The nearest
/// first; of each instruction the last.
fn ends(trace: &Trace, program: &Program, slice: &Slice) -> Vec<End> {
    let values = slice.edges.iter().filter(|edge| edge.kind == Kind::Value);
    let uses: FxHashSet<u32> = values.map(|edge| edge.user).collect();
    let mut ends: Vec<(u32, End)> = Vec::new();
    for (number, node) in (0u32..).zip(&slice.nodes) {
        let Some(instruction) = node.instruction.filter(|_| node.what == What::Executed) else {
            continue;
        };
        let pc = trace.blocks.statics[instruction as usize].pc;
        let known = ends.iter().any(|(_, other)| other.pc == pc);
        if !uses.contains(&number) && !known && has_source(program, pc) {
            let (thread, moment, instance) = (node.thread, node.moment, node.instance);
            ends.push((node.depth, End { thread, moment, pc, instance }));
        }
    }
    ends.sort_by_key(|(depth, end)| (*depth, std::cmp::Reverse(end.moment)));
    ends.truncate(MOST_ENDS);
    ends.into_iter().map(|(_, end)| end).collect()
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
