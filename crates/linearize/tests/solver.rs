//! The solver against every small model: what it calls a contradiction has no model, and what it
//! says is known holds in all of them.

use linearize::language::ast::Relation;
use linearize::model::Type;
use linearize::symbolic::solver::{Literal, NULL, Solver, Term, Value, ZERO};
use proptest::prelude::*;

const NODE: Type = Type::Ref(0);

/// Three references, a reference field and a number field of each, two numbers, 0 and NULL.
struct Terms {
    references: Vec<usize>,
    numbers: Vec<usize>,
}

/// What the terms stand for: node 0 is NULL; fields of NULL hold anything.
#[derive(Clone, Copy)]
struct Model {
    variables: [usize; 3],
    next: [usize; 3],
    key: [i64; 3],
    numbers: [i64; 2],
}

fn terms(solver: &mut Solver) -> Terms {
    let variables: Vec<_> = (0..3).map(|at| solver.intern(Term::Global(at), NODE, true)).collect();
    let mut references = vec![NULL];
    references.extend(&variables);
    references.extend(variables.iter().map(|&of| solver.field(0, of, NODE)));
    let mut numbers = vec![ZERO];
    numbers.extend((3..5).map(|at| solver.intern(Term::Global(at), Type::Int, true)));
    numbers.extend(variables.iter().map(|&of| solver.field(1, of, Type::Int)));
    Terms { references, numbers }
}

impl Model {
    fn reference(&self, at: usize) -> usize {
        match at {
            0 => 0,
            1..=3 => self.variables[at - 1],
            _ => self.next[self.variables[at - 4]],
        }
    }

    fn number(&self, at: usize) -> i64 {
        match at {
            0 => 0,
            1 | 2 => self.numbers[at - 1],
            _ => self.key[self.variables[at - 3]],
        }
    }
}

/// A literal by positions in [`Terms`].
#[derive(Clone, Copy, Debug)]
enum Claim {
    References(usize, bool, usize),
    Numbers(usize, Relation, usize, i64),
}

impl Claim {
    fn literal(self, terms: &Terms) -> Literal {
        match self {
            Self::References(left, equal, right) => {
                let literal = Literal::equal(
                    Value::of(terms.references[left]),
                    Value::of(terms.references[right]),
                );
                if equal { literal } else { literal.negated() }
            }
            Self::Numbers(left, relation, right, offset) => Literal {
                left: Value::of(terms.numbers[left]),
                relation,
                right: Value { term: terms.numbers[right], offset },
            },
        }
    }

    fn holds(self, model: &Model) -> bool {
        match self {
            Self::References(left, equal, right) => {
                (model.reference(left) == model.reference(right)) == equal
            }
            Self::Numbers(left, relation, right, offset) => {
                relation.holds(model.number(left), model.number(right) + offset)
            }
        }
    }
}

fn claim() -> impl Strategy<Value = Claim> {
    let relation = proptest::sample::select(vec![
        Relation::Equal,
        Relation::NotEqual,
        Relation::Less,
        Relation::LessEqual,
        Relation::Greater,
        Relation::GreaterEqual,
    ]);
    prop_oneof![
        (0_usize..7, any::<bool>(), 0_usize..7).prop_map(|(l, e, r)| Claim::References(l, e, r)),
        (0_usize..6, relation, 0_usize..6, -1_i64..=1)
            .prop_map(|(l, relation, r, offset)| Claim::Numbers(l, relation, r, offset)),
    ]
}

fn models() -> Vec<Model> {
    let mut models = Vec::new();
    let three = |code: usize| [code % 3, code / 3 % 3, code / 9 % 3];
    for variables in (0..27).map(three) {
        for next in (0..27).map(three) {
            for key in (0..27).map(three) {
                for numbers in 0..9_i64 {
                    let key = key.map(|one| i64::try_from(one).unwrap() - 1);
                    let numbers = [numbers % 3 - 1, numbers / 3 - 1];
                    models.push(Model { variables, next, key, numbers });
                }
            }
        }
    }
    models
}

#[test]
fn the_solver_never_contradicts_a_model() {
    let all = models();
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let claims = proptest::collection::vec(claim(), 1..9);
    runner
        .run(&(claims, claim()), |(claims, question)| {
            let mut solver = Solver::default();
            let terms = terms(&mut solver);
            let fitting: Vec<_> =
                all.iter().filter(|model| claims.iter().all(|claim| claim.holds(model))).collect();
            let consistent = solver.close().is_ok()
                && claims.iter().all(|claim| solver.assume(claim.literal(&terms)).is_ok());
            prop_assert!(consistent || fitting.is_empty(), "a model was called a contradiction");
            if consistent && let Some(known) = solver.known(question.literal(&terms)) {
                prop_assert!(fitting.iter().all(|model| question.holds(model) == known));
            }
            Ok(())
        })
        .unwrap();
}

/// It must also find something: the contradictions that proofs rest on.
#[test]
fn the_solver_finds_what_proofs_need() {
    use Claim::{Numbers, References};
    let rows: [&[Claim]; 5] = [
        // a == b, a.next != b.next
        &[References(1, true, 2), References(4, false, 5)],
        // a.key < b.key, a == b
        &[Numbers(3, Relation::Less, 4, 0), References(1, true, 2)],
        // a == NULL, b == NULL, a != b
        &[References(1, true, 0), References(2, true, 0), References(1, false, 2)],
        // x <= y, y <= x, x != y
        &[
            Numbers(1, Relation::LessEqual, 2, 0),
            Numbers(2, Relation::LessEqual, 1, 0),
            Numbers(1, Relation::NotEqual, 2, 0),
        ],
        // x == y + 1, y == x + 1
        &[Numbers(1, Relation::Equal, 2, 1), Numbers(2, Relation::Equal, 1, 1)],
    ];
    for claims in rows {
        let mut solver = Solver::default();
        let terms = terms(&mut solver);
        let consistent = claims.iter().all(|claim| solver.assume(claim.literal(&terms)).is_ok());
        assert!(!consistent, "{claims:?}");
    }
}
