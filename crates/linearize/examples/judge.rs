//! Judges specifications without the rest of the tool: one line a file, with the verdict, the
//! number of operations of the counterexample or of the search, and the time.
//!
//!     cargo run --release -p whydunit-linearize --example judge -- [--obstacles] [--time=SECONDS] FILE…

use linearize::explore::machine::Memory;
use linearize::explore::search::Bound;
use linearize::{Verdict, judge, language};
use spec::Source;
use std::time::{Duration, Instant};

fn main() {
    let (options, files): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let has = |option: &str| options.iter().any(|one| one == option);
    let memory = Memory { buffers: has("--tso"), reuse: has("--reuse") };
    let seconds = options.iter().find_map(|one| one.strip_prefix("--time="));
    let seconds = seconds.map_or(10, |text| text.parse().expect("a number of seconds"));
    let bound = Bound { memory, time: Duration::from_secs(seconds), ..Bound::default() };
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a readable file");
        let source = Source::new(file.clone(), text);
        let program = match language::read(&source) {
            Ok(program) => program,
            Err(errors) => {
                println!("{file}\tbad input\n{}", errors.render(&source, false));
                continue;
            }
        };
        let began = Instant::now();
        let judgement = judge(&program, bound);
        let took = began.elapsed().as_secs_f64();
        let (verdict, operations, states) = match &judgement.verdict {
            Verdict::Proved => ("proved", 0, 0),
            Verdict::Refuted { searched, .. } => {
                let history = searched.counterexample.as_ref();
                ("refuted", history.map_or(0, |history| history.calls.len()), searched.states)
            }
            Verdict::NotProved { searched, .. } => {
                ("not proved", searched.operations, searched.states)
            }
        };
        println!("{file}\t{verdict}\t{operations}\t{states}\t{took:.3}");
        if has("--obstacles") {
            for refused in &judgement.refused {
                println!(
                    "  not believed: {} {:?}",
                    program.invariants[refused.invariant].text, refused.broken_by
                );
            }
            for odd in &judgement.oddities {
                println!("  {odd:?}");
            }
            if let Verdict::NotProved { obstacles, if_all_end, .. } = &judgement.verdict {
                println!("  if all end: {if_all_end}");
                for one in obstacles {
                    let pending = if one.pending { "(pending)" } else { "" };
                    println!(
                        "  {} | {} {} | {} {pending} {:?}",
                        one.prefix.letters(&program),
                        one.between.letters(&program),
                        program.operations[one.between.operation].title(),
                        program.operations[one.prefix.operation].steps[one.prefix.length].text,
                        one.case
                    );
                }
            }
            if let Verdict::Refuted { searched, if_all_end } = &judgement.verdict {
                println!("  if all end: {if_all_end}");
                let history = searched.counterexample.as_ref().expect("a history");
                for step in &history.steps {
                    let call = &history.calls[step.call];
                    println!(
                        "    {} {} {:?} {}",
                        step.call, call.operation, call.results, step.text
                    );
                }
            }
        }
    }
}
