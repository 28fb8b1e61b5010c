//! Loops over nodes: an operation with a loop is as many paths as rounds of it are followed, each a
//! role of its own, so that nothing behind the checker knows of loops.

use super::ast::{Name, Operation};
use spec::Diagnostic;

/// Loops go through this many rounds at most; histories with more are not looked at.
pub const MOST_ROUNDS: usize = 3;

/// Loops of one operation; each multiplies its paths.
const MOST_LOOPS: usize = 2;

/// The paths through an operation: itself, if it has no loops.
pub fn paths(operation: &Operation) -> Result<Vec<Operation>, Diagnostic> {
    let steps = &operation.steps;
    let loops: Vec<usize> = (0..steps.len()).filter(|&at| steps[at].repeats).collect();
    let name = &operation.name.text;
    if loops.len() > MOST_LOOPS {
        let message = format!("`{name}` has {} loops", loops.len());
        let label = format!("expected at most {MOST_LOOPS}");
        return Err(Diagnostic::new(steps[loops[MOST_LOOPS]].span, message, label));
    }
    match loops.last() {
        None => return Ok(vec![operation.clone()]),
        Some(&last) if last + 1 == steps.len() => {
            let message = format!("`{name}` ends with a loop");
            let label = "expected a sub-operation after it";
            return Err(Diagnostic::new(steps[last].span, message, label));
        }
        Some(_) => {}
    }
    let ways = loops.iter().fold(1, |ways, _| ways * (MOST_ROUNDS + 1));
    Ok((0..ways).map(|way| unrolled(operation, &loops, way)).collect())
}

/// The path on which the loops go through the numbers of rounds that the digits of `way` say.
fn unrolled(operation: &Operation, loops: &[usize], way: usize) -> Operation {
    let mut path = operation.clone();
    let times = |number: u32| (way / (MOST_ROUNDS + 1).pow(number)) % (MOST_ROUNDS + 1);
    let mut rounds = Vec::new();
    path.steps.clear();
    for (at, step) in operation.steps.iter().enumerate() {
        let repeats = loops.iter().position(|&one| one == at);
        let often = repeats.map_or(1, |number| times(u32::try_from(number).unwrap_or(0)));
        if repeats.is_some() {
            rounds.push(often.to_string());
        }
        path.steps.extend(std::iter::repeat_n(step.clone(), often));
    }
    let named = operation.role.as_ref().map(|role| format!("{} ", role.text)).unwrap_or_default();
    let text = format!("{named}{} rounds", rounds.join("+"));
    path.role = Some(Name { text, span: operation.name.span });
    path
}
