//! Which invariants may be believed: those that hold at first and that every sub-operation
//! preserves, given that all the others hold. Of the stated ones the rest are refused, with the
//! reason; simple ones are thought up where a proof needs more.

use super::{Prefix, prefixes};
use crate::explore::machine::Machine;
use crate::language::ast::Relation;
use crate::model::{Condition, Expression, Invariant, Local, LocalKind, Place, Program, Type};
use crate::symbolic::claims::{Claims, Effort, preserved};
use crate::symbolic::owned::Owned;
use spec::Span;

/// A stated invariant that is not believed.
#[derive(Clone, Debug)]
pub struct Refused {
    /// Which of [`Program::invariants`].
    pub invariant: usize,
    /// The prefix after whose last sub-operation it may fail; `None` if it fails at first.
    pub broken_by: Option<Prefix>,
}

/// Finds the invariants that hold together.
#[must_use]
pub fn believe(program: &Program, effort: &Effort) -> (Claims, Vec<Refused>) {
    let start = Machine::start(program);
    let mut refused = Vec::new();
    let mut claims = Claims { effort: effort.clone(), ..Claims::default() };
    for (number, invariant) in program.invariants.iter().enumerate() {
        if start.satisfies(program, invariant) {
            claims.believed.push(number);
        } else {
            refused.push(Refused { invariant: number, broken_by: None });
        }
    }
    // Refusing one may leave another without support, so this goes on until all stand.
    while refuse_broken(program, &mut claims, &mut refused) {}
    claims.owned = Owned::of(program, &claims.believed);
    (claims, refused)
}

/// Refuses what is not preserved, given what is believed at the time; whether there was any.
fn refuse_broken(program: &Program, claims: &mut Claims, refused: &mut Vec<Refused>) -> bool {
    let prefixes = prefixes(program);
    let before = refused.len();
    for invariant in claims.believed.clone() {
        let clause = &program.invariants[invariant];
        let breaks =
            |prefix: &&Prefix| !preserved(program, claims, clause, prefix.operation, prefix.length);
        if let Some(&prefix) = prefixes.iter().find(breaks) {
            claims.believed.retain(|&believed| believed != invariant);
            refused.push(Refused { invariant, broken_by: Some(prefix) });
        }
    }
    refused.len() > before
}

/// No more invariants than this are thought up.
const MOST_GUESSED: usize = 40;

/// The specification with simple invariants that may hold: references that are never NULL, last
/// nodes that have no next one, numbers that are never negative, numbers of which one is never larger than another. Like stated ones,
/// they are used only if they turn out to hold.
#[must_use]
pub fn with_guessed(program: &Program) -> Program {
    let mut guessed = Vec::new();
    let scalars: Vec<usize> =
        (0..program.globals.len()).filter(|&at| !program.globals[at].array).collect();
    let place = |global: usize| Expression::Place(Place::Global(global), 0);
    let ints: Vec<usize> =
        scalars.iter().copied().filter(|&at| program.globals[at].ty == Type::Int).collect();
    for &global in &scalars {
        let (relation, right) = match program.globals[global].ty {
            Type::Int => (Relation::GreaterEqual, Expression::Number(0)),
            Type::Ref(_) => (Relation::NotEqual, Expression::Null),
        };
        guessed.push((Vec::new(), Condition { left: place(global), relation, right }));
    }
    for &global in &scalars {
        let Type::Ref(structure) = program.globals[global].ty else { continue };
        for &field in &program.structs[structure].fields {
            if program.fields[field].ty != Type::Int {
                let inner = Place::Field(Box::new(Place::Global(global)), field);
                let left = Expression::Place(inner, 0);
                let (relation, right) = (Relation::Equal, Expression::Null);
                guessed.push((Vec::new(), Condition { left, relation, right }));
            }
        }
    }
    for &left in &ints {
        for &right in ints.iter().filter(|&&right| right != left) {
            let relation = Relation::LessEqual;
            let claim = Condition { left: place(left), relation, right: place(right) };
            guessed.push((Vec::new(), claim));
        }
    }
    for (field, declared) in program.fields.iter().enumerate() {
        if declared.ty == Type::Int {
            let node = Local {
                name: "n".to_owned(),
                ty: Type::Ref(declared.owner),
                kind: LocalKind::Declared,
            };
            let left = Expression::Place(Place::Field(Box::new(Place::Local(0)), field), 0);
            let right = Expression::Number(0);
            let claim = Condition { left, relation: Relation::GreaterEqual, right };
            guessed.push((vec![node], claim));
        }
    }
    let mut program = program.clone();
    program.invariants.extend(guessed.into_iter().take(MOST_GUESSED).map(|(variables, claim)| {
        Invariant {
            variables,
            given: Vec::new(),
            then: vec![claim],
            text: String::new(),
            span: Span::new(0, 0),
        }
    }));
    program
}
