//! Why a program ended as it did: the thin slice of the wrong value, and where that ends in
//! something that the program chose (a constant, a pointer to nothing), the condition that made
//! it choose so.

use super::ending::Asked;
use super::graph::{Kind, Slice, What};
use super::question::{Follow, Question, Wants};
use super::view::{Link, Statement, View, Viewer, has_source};
use crate::dependence::control::Control;
use crate::dependence::trace::Trace;
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
        merge(&mut view, viewer.view(&slice));
        all_ends.extend(ends(trace, program, &slice));
    }
    let on_chain = view.statements.len();
    all_ends.truncate(MOST_ENDS);
    for (thread, moment, pc) in all_ends {
        let wants = Wants { control: Some(pc), ..Wants::default() };
        let more = ask(Question::new(thread, moment, wants, Follow::Thin));
        merge(&mut view, viewer.view(&more));
    }
    Explanation { view, on_chain }
}

/// Executions of the program's own code that used nothing: there a value was chosen. The nearest
/// first; of each instruction the last.
fn ends(
    trace: &Trace,
    program: &Program,
    slice: &Slice,
) -> Vec<(u32, crate::dependence::Moment, u64)> {
    let uses: std::collections::BTreeSet<u32> =
        slice.edges.iter().filter(|edge| edge.kind == Kind::Value).map(|edge| edge.user).collect();
    let mut ends: Vec<(u32, u32, crate::dependence::Moment, u64)> = Vec::new();
    for (number, node) in (0u32..).zip(&slice.nodes) {
        let Some(instruction) = node.instruction.filter(|_| node.what == What::Executed) else {
            continue;
        };
        let pc = trace.blocks.statics[instruction as usize].pc;
        let known = ends.iter().any(|(.., other)| *other == pc);
        if !uses.contains(&number) && !known && has_source(program, pc) {
            ends.push((node.depth, node.thread, node.moment, pc));
        }
    }
    ends.sort_by_key(|(depth, _, moment, _)| (*depth, std::cmp::Reverse(*moment)));
    ends.truncate(MOST_ENDS);
    ends.into_iter().map(|(_, thread, moment, pc)| (thread, moment, pc)).collect()
}

/// Adds the statements of another view that are not there yet, behind the others.
fn merge(view: &mut View, other: View) {
    let same = |left: &Statement, right: &Statement| {
        left.place.file == right.place.file
            && left.place.line == right.place.line
            && left.place.function == right.place.function
            && left.through == right.through
    };
    let mut numbers = Vec::new();
    for statement in other.statements {
        let known = view.statements.iter().position(|known| same(known, &statement));
        numbers.push(known.unwrap_or_else(|| {
            view.statements.push(statement);
            view.statements.len() - 1
        }));
    }
    let moved = |link: Link| Link {
        user: link.user.map(|user| numbers[user]),
        on: numbers[link.on],
        ..link
    };
    view.links.extend(other.links.into_iter().map(moved));
    view.cut |= other.cut;
}
