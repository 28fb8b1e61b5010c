//! Soundness of the shipped rules (the reference's Theorem A.0.8), by trying: on generated programs
//! of the calculus every error step is preceded by its rule, and no rule fires at a step that is in
//! order. The same runs check that screens admit whatever fires and that looking events up by key
//! gives what a search of the whole trace gives.

mod calculus;

use analyze::rules::evaluate::{Truth, evaluate};
use analyze::rules::model::{Condition, Point, Rule};
use analyze::rules::screen::Screen;
use analyze::rules::shipped;
use analyze::rules::state::Value as RuleValue;
use calculus::{Bug, Expr, Functions, Machine, Redex, Stepped, Value, pointer};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Programs run at most so many steps; they have no loops but through calls.
const MOST_STEPS: usize = 2000;
const VARIABLES: u8 = 4;

/// One statement of a generated program.
#[derive(Clone, Debug)]
enum Statement {
    Malloc(u8, u64),
    Copy(u8, u8),
    Add(u8, u8, i64),
    /// The address of a variable, or near it.
    Address(u8, u8, i64),
    StoreNumber(u8, i64),
    StorePointer(u8, u8),
    Load(u8, u8),
    Free(u8),
    Null(u8),
    IfNull(u8, Box<Statement>, Box<Statement>),
    /// A function that frees, uses, or returns the address of its own variable.
    Call(u8, &'static str, u8),
}

fn variable(number: u8) -> Expr {
    Expr::Var(format!("x{number}"))
}

fn read(expr: Expr) -> Expr {
    Expr::Read(Box::new(expr))
}

fn assign(at: Expr, what: Expr) -> Expr {
    Expr::Assign(Box::new(at), Box::new(what))
}

fn int(number: i64) -> Expr {
    Expr::Value(Value::Int(number))
}

fn sequence(first: Expr, rest: Expr) -> Expr {
    Expr::Seq(Box::new(first), Box::new(rest))
}

fn returns(name: &str, value: Expr) -> Expr {
    Expr::Ret(name.to_owned(), Box::new(value))
}

impl Statement {
    fn expr(&self) -> Expr {
        match self {
            Self::Malloc(to, size) => assign(variable(*to), Expr::Malloc(*size)),
            Self::Copy(to, from) => assign(variable(*to), read(variable(*from))),
            Self::Add(to, from, by) => {
                let sum = Expr::PointerAdd(Box::new(read(variable(*from))), Box::new(int(*by)));
                assign(variable(*to), sum)
            }
            Self::Address(to, of, by) => {
                let address = Expr::PointerAdd(Box::new(variable(*of)), Box::new(int(*by)));
                assign(variable(*to), address)
            }
            Self::StoreNumber(to, number) => assign(read(variable(*to)), int(*number)),
            Self::StorePointer(to, from) => assign(read(variable(*to)), read(variable(*from))),
            Self::Load(to, from) => assign(variable(*to), read(read(variable(*from)))),
            Self::Free(which) => Expr::Free(Box::new(read(variable(*which)))),
            Self::Null(which) => assign(variable(*which), int(0)),
            Self::IfNull(which, yes, no) => Expr::If0(
                Box::new(read(variable(*which))),
                Box::new(yes.expr()),
                Box::new(no.expr()),
            ),
            Self::Call(to, function, argument) => {
                let call = Expr::Call((*function).to_owned(), Box::new(read(variable(*argument))));
                assign(variable(*to), call)
            }
        }
    }
}

fn statement() -> impl Strategy<Value = Statement> {
    let any = 0..VARIABLES;
    let functions = prop::sample::select(vec!["release", "touch", "own_address", "transaction"]);
    let simple = prop_oneof![
        4 => (any.clone(), 1u64..4).prop_map(|(to, size)| Statement::Malloc(to, size)),
        2 => (any.clone(), any.clone()).prop_map(|(to, from)| Statement::Copy(to, from)),
        2 => (any.clone(), any.clone(), -1i64..4)
            .prop_map(|(to, from, by)| Statement::Add(to, from, by)),
        1 => (any.clone(), any.clone(), 0i64..2)
            .prop_map(|(to, of, by)| Statement::Address(to, of, by)),
        4 => (any.clone(), 0i64..9).prop_map(|(to, number)| Statement::StoreNumber(to, number)),
        2 => (any.clone(), any.clone()).prop_map(|(to, from)| Statement::StorePointer(to, from)),
        2 => (any.clone(), any.clone()).prop_map(|(to, from)| Statement::Load(to, from)),
        2 => any.clone().prop_map(Statement::Free),
        1 => any.clone().prop_map(Statement::Null),
        2 => (any.clone(), functions, any.clone())
            .prop_map(|(to, function, argument)| Statement::Call(to, function, argument)),
    ];
    simple.prop_recursive(2, 8, 2, move |inner| {
        (0..VARIABLES, inner.clone(), inner)
            .prop_map(|(which, yes, no)| Statement::IfNull(which, Box::new(yes), Box::new(no)))
    })
}

fn functions() -> Functions {
    let own = || Expr::Var("p".to_owned());
    let make = |name: &str, body: Expr| (name.to_owned(), ("p".to_owned(), body));
    let keep = sequence(Expr::Malloc(1), returns("transaction", Expr::Malloc(2)));
    let tidy = sequence(Expr::Free(Box::new(Expr::Malloc(1))), returns("transaction", int(0)));
    let transaction = Expr::If0(Box::new(read(own())), Box::new(keep), Box::new(tidy));
    BTreeMap::from([
        make("release", sequence(Expr::Free(Box::new(read(own()))), returns("release", int(0)))),
        make("touch", sequence(assign(read(own()), int(7)), returns("touch", read(own())))),
        make("own_address", returns("own_address", own())),
        make("transaction", transaction),
    ])
}

/// `main`: its variables (two blocks, NULL, and one that nothing is assigned to), the statements,
/// and its return.
fn program(statements: &[Statement]) -> (Expr, Functions) {
    let mut body = returns("main", int(0));
    for statement in statements.iter().rev() {
        body = sequence(statement.expr(), body);
    }
    for (number, start) in [Expr::Malloc(2), Expr::Malloc(1), int(0)].into_iter().enumerate() {
        body = sequence(assign(variable(number as u8), start), body);
    }
    for number in (0..VARIABLES).rev() {
        body = Expr::LetSalloc(format!("x{number}"), 1, Box::new(body));
    }
    let mut functions = functions();
    functions.insert("main".to_owned(), ("argument".to_owned(), body));
    (Expr::Call("main".to_owned(), Box::new(int(0))), functions)
}

fn bug_of(name: &str) -> Option<Bug> {
    Some(match name {
        "unmatched-free" => Bug::UnmatchedFree,
        "double-free" => Bug::DoubleFree,
        "dangling-pointer" => Bug::DanglingPointer,
        "null-pointer" => Bug::NullPointer,
        "heap-overflow" => Bug::Overflow,
        "uninitialised-read" => Bug::Uninitialised,
        "stack-overflow" => Bug::StackOverflow,
        "use-after-return" => Bug::UseAfterReturn,
        _ => return None,
    })
}

/// The values that a rule's detection point has at a redex, if it is one.
fn at_point(point: &Point, redex: &Redex) -> Option<Vec<RuleValue>> {
    let pointer = |value: &Value| vec![RuleValue::Pointer(pointer(*value))];
    match (point, redex) {
        (Point::Deref { read: true, .. }, Redex::Read(value))
        | (Point::Deref { write: true, .. }, Redex::Write(value)) => Some(pointer(value)),
        // Freeing NULL is no deallocation.
        (Point::Free, Redex::Free(value)) if *value != Value::Int(0) => Some(pointer(value)),
        (Point::Return(name), Redex::Return(found)) if name == found => {
            Some(vec![RuleValue::Number(0)])
        }
        (Point::Exit, Redex::Return(found)) if found == "main" => Some(Vec::new()),
        _ => None,
    }
}

fn without_keys(condition: &mut Condition) {
    match condition {
        Condition::And(all) | Condition::Or(all) => all.iter_mut().for_each(without_keys),
        Condition::Not(inner) => without_keys(inner),
        Condition::OverSet(_, _, _, key, body) => {
            *key = None;
            without_keys(body);
        }
        Condition::OverTrace(_, event, body) => {
            event.key = None;
            without_keys(body);
        }
        Condition::FindLast(event) => event.key = None,
        Condition::Compare(..) => {}
    }
}

/// What a run came to, to know that the generator reaches everything.
#[derive(Default)]
struct Seen {
    bugs: Vec<Bug>,
    leaks: usize,
}

fn check_step(machine: &Machine, redex: &Redex, rules: &[Rule]) -> Result<(), TestCaseError> {
    let bugs = machine.bugs(redex);
    for rule in rules {
        let Some(point) = at_point(&rule.point, redex) else { continue };
        let (truth, values) = evaluate(rule, &point, machine);
        let mut searching = rule.clone();
        without_keys(&mut searching.condition);
        let searched = evaluate(&searching, &point, machine);
        prop_assert_eq!(&(truth, values), &searched, "keys change {}", &rule.name);
        let fires = truth == Truth::Holds;
        prop_assert!(fires || truth == Truth::Fails, "{} is {:?}", rule.name, truth);
        if let Redex::Read(value) | Redex::Write(value) = redex {
            let situation = machine.situation(*value);
            let admitted = Screen::of(rule).admits(situation);
            prop_assert!(!fires || admitted, "{} not admitted in {situation:?}", rule.name);
        }
        match bug_of(&rule.name) {
            Some(bug) => {
                let due = bugs.contains(&bug);
                prop_assert!(fires || !due, "{} is silent before {bug:?}", rule.name);
                prop_assert!(!fires || !bugs.is_empty(), "{} fires at {redex:?}", rule.name);
            }
            None => {
                let due = match rule.name.as_str() {
                    "possible-leak" => machine.has_heap(),
                    "definite-leak" => machine.has_lost_block(),
                    "leak-in-transaction" => machine.allocated_since_call("transaction"),
                    _ => continue,
                };
                prop_assert_eq!(fires, due, "{}", &rule.name);
            }
        }
    }
    Ok(())
}

fn run(statements: &[Statement], seen: &mut Seen) -> Result<(), TestCaseError> {
    let rules = shipped::rules();
    let (mut expr, functions) = program(statements);
    let mut machine = Machine::default();
    for _ in 0..MOST_STEPS {
        if matches!(expr, Expr::Value(_)) {
            seen.leaks += usize::from(machine.has_lost_block());
            return Ok(());
        }
        machine.hold(&expr);
        check_step(&machine, &Machine::redex(&expr), &rules)?;
        expr = match machine.step(expr, &functions) {
            Stepped::To(next) => next,
            Stepped::Error(bugs) => {
                seen.bugs.extend(bugs);
                return Ok(());
            }
        };
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    #[test]
    fn every_error_is_preceded_by_its_rule_and_no_rule_fires_without_one(
        statements in prop::collection::vec(statement(), 0..20),
    ) {
        run(&statements, &mut Seen::default())?;
    }
}

/// A test of programs that never go wrong would pass whatever the rules say.
#[test]
fn the_generated_programs_reach_every_error() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = prop::collection::vec(statement(), 0..20);
    let mut seen = Seen::default();
    for _ in 0..1500 {
        let statements = strategy.new_tree(&mut runner).expect("a program").current();
        run(&statements, &mut seen).expect("sound");
    }
    for bug in [
        Bug::UnmatchedFree,
        Bug::DoubleFree,
        Bug::DanglingPointer,
        Bug::NullPointer,
        Bug::Overflow,
        Bug::Uninitialised,
        Bug::StackOverflow,
        Bug::UseAfterReturn,
    ] {
        let count = seen.bugs.iter().filter(|found| **found == bug).count();
        assert!(count >= 5, "{bug:?} came up {count} times");
    }
    assert!(seen.leaks >= 5, "lost blocks came up {} times", seen.leaks);
}
