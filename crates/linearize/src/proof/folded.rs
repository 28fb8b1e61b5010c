//! Operations that look at several moments and do nothing before the last of their sub-operations.
//!
//! If such an operation, whenever it comes to its last sub-operation, could as well look at everything
//! just then and would do and return the same, it is one sub-operation for the proof: all histories are
//! histories of the specification in which it is, and what it does alone is the same.

use super::Ending;
use super::closure::Prover;
use super::context::Context;
use super::pairs::{Part, run, runs_whole};
use crate::language::ast::{Mark, Relation};
use crate::model::{Condition, Expression, LocalKind, Operation, Place, Program, Statement, Step};
use crate::symbolic::claims::{Claims, Effort};
use crate::symbolic::mentions::{mentioned_in, mentioned_in_conditions};
use crate::symbolic::path::walk;
use crate::symbolic::run::Runner;
use crate::symbolic::store::{Mode, Store, sizes};

/// The specification with operations folded into one sub-operation; `None` if there are none.
#[must_use]
pub fn folded(program: &Program, effort: &Effort) -> Option<Program> {
    let claims = Claims { effort: effort.clone(), ..Claims::default() };
    let prover = Prover::new(program, &claims, Ending::Open);
    let mut folded = program.clone();
    let mut any = false;
    for (number, operation) in program.operations.iter().enumerate() {
        if looks_first(operation) && looks_late(&prover, number) {
            folded.operations[number].steps = vec![one_step(operation)];
            any = true;
        }
    }
    any.then_some(folded)
}

/// Whether all but the last sub-operation only look, into locals that are assigned once and not used
/// before.
fn looks_first(operation: &Operation) -> bool {
    let Some((last, first)) = operation.steps.split_last() else { return false };
    let mut seen = vec![false; operation.locals.len()];
    for step in first {
        mentioned_in_conditions(step).into_iter().for_each(|local| seen[local] = true);
        for statement in &step.body {
            let Statement::Assign(Place::Local(local), _) = statement else { return false };
            if seen[*local] || step.mark != Mark::Own {
                return false;
            }
            mentioned_in(statement).into_iter().for_each(|local| seen[local] = true);
        }
    }
    let assigned_again = |statement: &Statement| match statement {
        Statement::Assign(Place::Local(local), _) | Statement::Malloc { local, .. } => seen[*local],
        _ => false,
    };
    !first.is_empty() && last.mark == Mark::Own && !last.body.iter().any(assigned_again)
}

/// More contexts than this are not followed.
const MOST_CONTEXTS: usize = 32;

/// Whether the operation could look at everything when it comes to its last sub-operation. This is
/// asked of histories as they are: others go on one sub-operation at a time.
fn looks_late(prover: &Prover<'_>, number: usize) -> bool {
    let last = prover.program.operations[number].steps.len() - 1;
    let mut contexts: Vec<Option<Context>> = vec![None];
    for step in 0..last {
        let mut next: Vec<Option<Context>> = Vec::new();
        for context in &contexts {
            let Some(reached) = after(prover, number, context.as_ref(), step) else { return false };
            for context in reached.into_iter().map(Some) {
                if !next.contains(&context) {
                    next.push(context);
                }
            }
        }
        if next.len() > MOST_CONTEXTS {
            return false;
        }
        contexts = next;
    }
    contexts.iter().flatten().all(|context| ends_as_a_whole(prover, context, last))
}

/// What is known of the operation when it has run `step` and others have gone on; `None` if there are
/// too many cases.
fn after(
    prover: &Prover<'_>,
    number: usize,
    context: Option<&Context>,
    step: usize,
) -> Option<Vec<Context>> {
    let operations = [number];
    let mut found: Vec<Context> = Vec::new();
    walk(prover.program, &prover.no_claims, |path| {
        path.solver.all_have_run = true;
        let mut runner = Runner::new(prover.program, &operations);
        let mut store = Store::start(path, &sizes(prover.program, &operations));
        if let Some(context) = context {
            context.enter(path, &mut runner, &mut store)?;
        }
        let part = Part { instance: 0, steps: step..step + 1 };
        run(path, &mut runner, &mut store, &[part], Mode::Assume)?;
        let taken = Context::take(path, &store, 0, number);
        if !found.contains(&taken) {
            found.push(taken);
        }
        Ok(found.len() <= MOST_CONTEXTS)
    })
    .ok()?;
    found.iter_mut().for_each(|context| prover.stabilize_by_steps(context));
    Some(found)
}

fn ends_as_a_whole(prover: &Prover<'_>, context: &Context, last: usize) -> bool {
    let operations = [context.operation];
    let mut same = true;
    let walked = walk(prover.program, &prover.no_claims, |path| {
        path.solver.all_have_run = true;
        let mut runner = Runner::new(prover.program, &operations);
        let mut start = Store::start(path, &sizes(prover.program, &operations));
        context.enter(path, &mut runner, &mut start)?;
        let mut store = start.clone();
        let part = Part { instance: 0, steps: last..last + 1 };
        run(path, &mut runner, &mut store, &[part], Mode::Assume)?;
        same = runs_whole(path, &runner, &start, &store)?;
        Ok(same)
    });
    same && walked.is_ok()
}

/// The operation as one sub-operation: what it looks at first becomes a condition.
fn one_step(operation: &Operation) -> Step {
    let mut whole = Step { conditions: Vec::new(), body: Vec::new(), ..operation.steps[0].clone() };
    let (last, first) = (operation.steps.len() - 1, &operation.steps);
    for (at, step) in first.iter().enumerate() {
        whole.conditions.extend(step.conditions.iter().cloned());
        for statement in &step.body {
            match statement {
                Statement::Assign(Place::Local(local), value)
                    if at < last && operation.locals[*local].kind == LocalKind::Declared =>
                {
                    let left = Expression::Place(Place::Local(*local), 0);
                    let (relation, right) = (Relation::Equal, value.clone());
                    whole.conditions.push(Condition { left, relation, right });
                }
                other => whole.body.push(other.clone()),
            }
        }
    }
    let texts: Vec<&str> = first.iter().map(|step| step.text.as_str()).collect();
    whole.text = texts.join(" ");
    whole
}
