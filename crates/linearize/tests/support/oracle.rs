//! The slow, obvious reference: every interleaving, without any reduction, and every sequential
//! order of the very same operations. It is stricter than linearizability: the sequential order
//! must also leave the same memory, which is what a proof promises.

use linearize::explore::explain::{arguments, results, run_alone};
use linearize::explore::machine::{Actor, Locals, Machine, Numbers};
use linearize::model::Program;
use std::collections::HashSet;

#[derive(Clone, PartialEq, Eq, Hash)]
struct Instance {
    operation: usize,
    done: usize,
    locals: Locals,
    after: u64,
}

/// Looks at all histories of exactly `operations` operations, at most `limit` states; describes
/// one that has no equivalent sequential history.
pub fn unexplained(program: &Program, operations: usize, limit: usize) -> Option<String> {
    let numbers = Numbers::of(program, 2);
    let start = (Machine::start(program), Vec::<Instance>::new());
    let mut seen = HashSet::from([start.clone()]);
    let mut work = vec![start];
    while let Some((machine, instances)) = work.pop() {
        let ended = |one: &Instance| one.done == program.operations[one.operation].steps.len();
        if instances.len() == operations && instances.iter().all(ended) {
            let first = Machine::start(program);
            if !explained(program, &numbers, &instances, 0, &first, &machine) {
                let shown: Vec<_> =
                    instances.iter().map(|one| (one.operation, &one.locals, one.after)).collect();
                return Some(format!("{shown:?} leave {machine:?}"));
            }
        }
        let mut nexts = Vec::new();
        for number in 0..instances.len() {
            if !ended(&instances[number]) {
                nexts.push((instances.clone(), number));
            }
        }
        if instances.len() < operations {
            let bits = (0..instances.len()).filter(|&at| ended(&instances[at]));
            let after = bits.fold(0, |bits, at| bits | 1 << at);
            for operation in 0..program.operations.len() {
                let locals = vec![None; program.operations[operation].locals.len()];
                let mut more = instances.clone();
                more.push(Instance { operation, done: 0, locals, after });
                nexts.push((more, instances.len()));
            }
        }
        for (instances, number) in nexts {
            let one = &instances[number];
            let operation = &program.operations[one.operation];
            let step = &operation.steps[one.done];
            let actor = Actor { instance: number + 1 };
            for (machine, locals) in
                machine.outcomes(program, step, &operation.locals, actor, &one.locals, &numbers)
            {
                let mut instances = instances.clone();
                instances[number].done += 1;
                instances[number].locals = locals;
                if seen.len() < limit && seen.insert((machine.clone(), instances.clone())) {
                    work.push((machine, instances));
                }
            }
        }
    }
    None
}

fn explained(
    program: &Program,
    numbers: &Numbers,
    instances: &[Instance],
    done: u64,
    machine: &Machine,
    goal: &Machine,
) -> bool {
    if done.count_ones() as usize == instances.len() {
        return machine == goal;
    }
    (0..instances.len()).any(|number| {
        let (one, bit) = (&instances[number], 1 << number);
        if done & bit != 0 || one.after & !done != 0 {
            return false;
        }
        let operation = &program.operations[one.operation];
        let blank = vec![None; operation.locals.len()];
        let runs = run_alone(program, operation, number + 1, machine.clone(), blank, numbers);
        runs.into_iter().any(|(next, locals)| {
            let same = arguments(operation, &locals) == arguments(operation, &one.locals)
                && results(operation, &locals) == results(operation, &one.locals);
            same && explained(program, numbers, instances, done | bit, &next, goal)
        })
    })
}
