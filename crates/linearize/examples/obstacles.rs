//! Shows what stops each attempt at a proof of a specification.
//!
//!     cargo run --release -p whydunit-linearize --example obstacles -- FILE…

use linearize::language;
use linearize::model::Program;
use linearize::proof::folded::folded;
use linearize::proof::invariants::{believe, with_guessed};
use linearize::proof::weaker::without_checks;
use linearize::proof::{Ending, prove};
use linearize::symbolic::claims::Effort;
use spec::Source;

fn attempt(what: &str, program: &Program) {
    let (claims, _) = believe(program, &Effort::default());
    let obstacles = prove(program, &claims, Ending::Open);
    println!("  {what}: {} invariants, {} obstacles", claims.believed.len(), obstacles.len());
    for one in obstacles {
        println!(
            "    {} | {} of {} | {} {}{:?}",
            one.prefix.letters(program),
            one.between.letters(program),
            program.operations[one.between.operation].title(),
            program.operations[one.prefix.operation].steps[one.prefix.length].text,
            if one.pending { "(may never come) " } else { "" },
            one.case
        );
    }
}

fn main() {
    for file in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&file).expect("a readable file");
        let source = Source::new(file.clone(), text);
        let program = language::read(&source).unwrap_or_else(|errors| {
            panic!("{}", errors.render(&source, false));
        });
        println!("{file}");
        attempt("as it is", &program);
        attempt("with guessed invariants", &with_guessed(&program));
        let (claims, _) = believe(&program, &Effort::default());
        if let Some(weaker) = without_checks(&program, &claims) {
            attempt("without checks", &weaker);
            attempt("without checks, with guessed invariants", &with_guessed(&weaker));
        }
        if let Some(folded) = folded(&program, &Effort::default()) {
            attempt("folded", &folded);
            attempt("folded, with guessed invariants", &with_guessed(&folded));
        }
    }
}
