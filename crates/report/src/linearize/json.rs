//! The verdicts as JSON: one object a file, in an array, and a finding for each that is refuted.

use super::findings::findings;
use super::text::assumption;
use super::{Judged, Outcome};
use crate::json;
use linearize::Verdict;
use linearize::explore::search::Searched;
use linearize::model::Program;
use linearize::proof::pairs::Pair;
use linearize::proof::{Obstacle, Prefix};
use serde_json::{Value, json};
use spec::diagnostic::SHOWN;

/// All files.
pub fn render(all: &[Judged]) -> String {
    let files: Vec<Value> = all.iter().map(file).collect();
    json::render("linearize", &findings(all), files)
}

fn file(judged: &Judged) -> Value {
    let mut value = match &judged.outcome {
        Err(errors) => json!({
            "verdict": "bad input",
            "errors_in_all": errors.len(),
            "errors": errors.sorted().iter().take(SHOWN).map(|error| {
                let at = judged.source.position(error.span.start);
                json!({
                    "line": at.line,
                    "column": at.column,
                    "message": error.message,
                    "label": error.label,
                    "help": error.help,
                })
            }).collect::<Vec<_>>(),
        }),
        Ok(found) => outcome(judged, found),
    };
    value["file"] = json!(judged.source.name());
    value["milliseconds"] = json!(judged.took.as_secs_f64() * 1000.0);
    value
}

fn outcome(judged: &Judged, outcome: &Outcome) -> Value {
    let program = &outcome.program;
    let mut value = match &outcome.judgement.verdict {
        Verdict::Proved => json!({ "verdict": "proved" }),
        Verdict::Refuted { searched, if_all_end } => json!({
            "verdict": "refuted",
            "proved_if_all_end": if_all_end,
            "history": searched.counterexample,
            "searched": bound(searched),
        }),
        Verdict::NotProved { obstacles, searched, if_all_end } => json!({
            "verdict": "not proved",
            "proved_if_all_end": if_all_end,
            "obstacles": obstacles.iter().map(|one| obstacle(program, one)).collect::<Vec<_>>(),
            "searched": bound(searched),
        }),
    };
    let refused = outcome.judgement.refused.iter().map(|refused| {
        let invariant = &program.invariants[refused.invariant];
        json!({
            "invariant": invariant.text,
            "line": judged.source.position(invariant.span.start).line,
            "broken_by": refused.broken_by.map(|by| prefix(program, by)),
        })
    });
    value["oddities"] = json!(outcome.judgement.oddities);
    value["assumptions"] =
        json!(outcome.judgement.assumptions.iter().map(|&one| assumption(one)).collect::<Vec<_>>());
    value["refused_invariants"] = json!(refused.collect::<Vec<_>>());
    if let Some(pairs) = &outcome.pairs {
        value["pairs"] = json!(pairs.iter().map(|one| pair(program, one)).collect::<Vec<_>>());
    }
    value
}

fn bound(searched: &Searched) -> Value {
    json!({
        "operations": searched.operations,
        "states": searched.states,
        "histories": searched.histories,
    })
}

fn prefix(program: &Program, prefix: Prefix) -> Value {
    json!({
        "operation": program.operations[prefix.operation].title(),
        "letters": prefix.letters(program),
        "complete": prefix.is_complete(program),
    })
}

fn obstacle(program: &Program, obstacle: &Obstacle) -> Value {
    let operation = &program.operations[obstacle.prefix.operation];
    let next = &operation.steps[obstacle.prefix.length];
    json!({
        "prefix": prefix(program, obstacle.prefix),
        "between": prefix(program, obstacle.between),
        "directly": obstacle.directly,
        "pending": obstacle.pending,
        "next": { "letter": next.label, "text": next.text },
        "case": obstacle.case,
    })
}

fn pair(program: &Program, pair: &Pair) -> Value {
    json!({
        "first": prefix(program, pair.first),
        "second": prefix(program, pair.second),
        "orderable": pair.cases.as_ref().is_none_or(|cases| !cases.is_empty()),
        "cases": pair.cases.as_ref().map(|cases| {
            cases.iter()
                .map(|case| json!({ "same": case.same, "reversible": case.reversible }))
                .collect::<Vec<_>>()
        }),
    })
}
