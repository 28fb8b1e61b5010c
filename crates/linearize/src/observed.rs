//! Judges a history that was seen in a running program: calls and returns in the order in which they
//! happened, each with numbers. It is linearizable if the operations, one after the other as the
//! specification means them, can give the same results in an order that keeps those apart that did
//! not overlap. Calls that have not returned may have taken effect or not.

use crate::explore::machine::{Memory, Numbers, World};
use crate::explore::monitor::{Call, Monitor, Open};
use crate::model::{LocalKind, Operation, Program, Type};

/// Something that a caller saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A call begins.
    Called {
        /// The operation: the number of the first role of its name.
        operation: usize,
        /// Its arguments.
        arguments: Vec<i64>,
    },
    /// The call of this number, counted from 0, returns.
    Returned {
        /// Which call.
        call: usize,
        /// What it answers.
        results: Vec<i64>,
    },
}

/// What came of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Explained {
    /// An order of the operations explains all that was seen.
    Whole,
    /// No order explains what was seen up to here, a return.
    Not {
        /// Its number among what was seen.
        at: usize,
    },
    /// From here on there were too many orders to be followed.
    Undecided {
        /// The number of the return among what was seen.
        at: usize,
    },
}

/// Why histories of a program cannot be judged by an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// No operation of the specification is called that.
    Unknown(Vec<String>),
    /// The specification has steps of the system, which nobody can see in a program, and no `abstract` object.
    Internal,
    /// It takes or returns a node, or returns several numbers; a program's calls are seen as numbers.
    Shape,
}

/// What calls of an operation look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// The number of the first role.
    pub operation: usize,
    /// How many arguments it takes.
    pub arguments: usize,
    /// Whether it returns something.
    pub returns: bool,
}

/// What calls of an operation look like, if its name and shape allow to see them in a program.
pub fn form(program: &Program, name: &str) -> Result<Form, Unfit> {
    let roles: Vec<&Operation> =
        program.operations.iter().filter(|operation| operation.name == name).collect();
    let Some(operation) = program.operations.iter().position(|operation| operation.name == name)
    else {
        let mut known: Vec<String> =
            program.operations.iter().map(|one| one.name.clone()).collect();
        known.dedup();
        return Err(Unfit::Unknown(known));
    };
    if program.meaning.is_none() && program.operations.iter().any(|one| one.internal) {
        return Err(Unfit::Internal);
    }
    let counted = |role: &Operation, kind| role.locals_of(kind).count();
    let results = roles.iter().map(|role| counted(role, LocalKind::Result));
    let visible = |role: &&Operation| {
        let seen = role.locals_of(LocalKind::Parameter).chain(role.locals_of(LocalKind::Result));
        seen.into_iter().all(|local| role.locals[local].ty == Type::Int)
    };
    let most = results.clone().max().unwrap_or(0);
    if most > 1 || results.min() != Some(most) || !roles.iter().all(visible) {
        return Err(Unfit::Shape);
    }
    let arguments = counted(roles[0], LocalKind::Parameter);
    Ok(Form { operation, arguments, returns: most == 1 })
}

/// Judges what was seen of one object, from its initial state on.
#[must_use]
pub fn explain(program: &Program, seen: &[Seen]) -> Explained {
    let world = World::new(program, numbers(program, seen), Memory::default());
    let (monitor, mut ways) = Monitor::new(&world);
    let mut monitor = monitor.without_garbage();
    let mut open: Vec<Open> = Vec::new();
    let mut calls = 0;
    for (at, seen) in seen.iter().enumerate() {
        match seen {
            Seen::Called { operation, arguments } => {
                let call = Call { group: *operation, arguments: arguments.clone() };
                calls += 1;
                // The first instance is number 1.
                open.push((calls, monitor.call(call)));
            }
            Seen::Returned { call, results } => {
                match monitor.returns(ways, &open, call + 1, results, &[]) {
                    None => return Explained::Not { at },
                    Some(left) if Monitor::gave_up(left) => return Explained::Undecided { at },
                    Some(left) => ways = left,
                }
                open.retain(|(number, _)| *number != call + 1);
            }
        }
    }
    Explained::Whole
}

/// Whatever was seen may turn up in an operation that nothing determines.
fn numbers(program: &Program, seen: &[Seen]) -> Numbers {
    let mut others = program.numbers();
    for seen in seen {
        match seen {
            Seen::Called { arguments, .. } => others.extend(arguments),
            Seen::Returned { results, .. } => others.extend(results),
        }
    }
    others.sort_unstable();
    others.dedup();
    Numbers { arguments: Vec::new(), others }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use spec::Source;

    const STACK: &str = "struct node { int value, node next };\nnode Top;\n\
        Push(int v)\n    node X;\n    1 X = malloc node; X.value = v; X.next = Top; Top = X;\n\
        Pop/some()\n    node X;\n    1 <Top == X; X != NULL;> Top = X.next; return X.value;\n\
        Pop/none()\n    1 <Top == NULL;> return -1;\n";

    fn stack() -> Program {
        let source = Source::new("stack.lin", STACK);
        crate::language::read(&source).expect("a specification")
    }

    /// `+N` calls Push(N), `-` calls Pop, `N=V` lets call N return V (nothing for a Push).
    fn history(text: &str) -> Vec<Seen> {
        let mut pushes = Vec::new();
        let event = |word: &str| match word.split_once('=') {
            Some((call, value)) => {
                let call: usize = call.parse().expect("a call");
                let results =
                    if pushes[call] { vec![] } else { vec![value.parse().expect("a number")] };
                Seen::Returned { call, results }
            }
            None => {
                let value = word.strip_prefix('+').map(|value| value.parse().expect("a number"));
                pushes.push(value.is_some());
                let operation = usize::from(value.is_none());
                Seen::Called { operation, arguments: value.into_iter().collect() }
            }
        };
        text.split_whitespace().map(event).collect()
    }

    #[test]
    fn histories_are_judged_by_what_the_operations_do_one_after_the_other() {
        let program = stack();
        for (text, expected) in [
            ("+1 0= - 1=1 - 2=-1", Explained::Whole),
            ("+1 0= - 1=-1", Explained::Not { at: 3 }),
            // Two that overlap may come in either order.
            ("+1 +2 0= 1= - 2=1 - 3=2", Explained::Whole),
            ("+1 0= +2 1= - 2=1", Explained::Not { at: 5 }),
            // A push that never returned may have taken effect, once.
            ("+7 - 1=7", Explained::Whole),
            ("+7 - 1=7 - 2=7", Explained::Not { at: 4 }),
        ] {
            assert_eq!(explain(&program, &history(text)), expected, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_seen_in_a_program_is_refused() {
        let program = stack();
        assert_eq!(form(&program, "Pop"), Ok(Form { operation: 1, arguments: 0, returns: true }));
        assert_eq!(form(&program, "Push"), Ok(Form { operation: 0, arguments: 1, returns: false }));
        let known = vec!["Push".to_owned(), "Pop".to_owned()];
        assert_eq!(form(&program, "Peek"), Err(Unfit::Unknown(known)));
    }

    /// Whether some order of the calls explains the history, by trying all.
    fn brute(
        calls: &[(Option<i64>, usize, usize, i64)],
        done: &mut Vec<usize>,
        stack: &[i64],
    ) -> bool {
        if done.len() == calls.len() {
            return true;
        }
        (0..calls.len()).any(|next| {
            let waits = |other: usize| !done.contains(&other) && calls[other].2 < calls[next].1;
            if done.contains(&next) || (0..calls.len()).any(waits) {
                return false;
            }
            let mut stack = stack.to_vec();
            let fits = match calls[next].0 {
                Some(value) => {
                    stack.push(value);
                    true
                }
                None => stack.pop().unwrap_or(-1) == calls[next].3,
            };
            done.push(next);
            let found = fits && brute(calls, done, &stack);
            done.pop();
            found
        })
    }

    proptest! {
        /// Calls at random times with random answers, all of which return: against every order.
        #[test]
        fn random_histories_are_judged_as_by_trying_every_order(
            calls in prop::collection::vec((prop::option::of(1i64..3), 0usize..12, 1usize..8, -1i64..3), 1..6),
        ) {
            // Times are made different: a call's begin is even, its end odd.
            let calls: Vec<_> = calls.iter().enumerate().map(|(number, (push, begin, length, answer))| {
                (*push, (begin * 8 + number) * 2, ((begin + length) * 8 + number) * 2 + 1, *answer)
            }).collect();
            let mut order: Vec<usize> = (0..calls.len()).collect();
            order.sort_by_key(|call| calls[*call].1);
            let number = |call: usize| order.iter().position(|known| *known == call).expect("known");
            let mut events: Vec<(usize, Seen)> = Vec::new();
            for (call, (push, begin, end, answer)) in calls.iter().enumerate() {
                let operation = usize::from(push.is_none());
                events.push((*begin, Seen::Called { operation, arguments: push.iter().copied().collect() }));
                let results = if push.is_some() { vec![] } else { vec![*answer] };
                events.push((*end, Seen::Returned { call: number(call), results }));
            }
            events.sort_by_key(|(time, _)| *time);
            let seen: Vec<Seen> = events.into_iter().map(|(_, seen)| seen).collect();
            let whole = explain(&stack(), &seen) == Explained::Whole;
            prop_assert_eq!(whole, brute(&calls, &mut Vec::new(), &[]));
        }
    }
}
