//! The verdict for a reader at a terminal.

use super::{Judged, Outcome};
use crate::style::Style;
use linearize::explore::history::{CallShown, Cell, History, StepShown};
use linearize::explore::search::Searched;
use linearize::explore::survey::Oddity;
use linearize::model::Program;
use linearize::proof::pairs::{Case, Pair};
use linearize::proof::{Obstacle, Prefix};
use linearize::{Assumption, Verdict};
use std::fmt::Write as _;

/// Text in the making.
struct Page {
    text: String,
    style: Style,
}

impl Page {
    fn paint(&self, code: &str, text: &str) -> String {
        self.style.marked(code, text)
    }

    fn line(&mut self, line: impl AsRef<str>) {
        let _ = writeln!(self.text, "{}", line.as_ref().trim_end());
    }
}

/// One file's verdict.
pub fn render(judged: &Judged, style: Style) -> String {
    let mut page = Page { text: String::new(), style };
    match &judged.outcome {
        Err(errors) => page.text.push_str(&errors.render(&judged.source, style.is_coloured())),
        Ok(outcome) => page.outcome(judged, outcome),
    }
    page.text
}

impl Page {
    fn outcome(&mut self, judged: &Judged, outcome: &Outcome) {
        let program = &outcome.program;
        if let Some(pairs) = &outcome.pairs {
            self.pairs(program, pairs);
        }
        let (code, word) = match outcome.judgement.verdict {
            Verdict::Proved => ("1;32", "proved"),
            Verdict::Refuted { .. } => ("1;31", "refuted"),
            Verdict::NotProved { .. } => ("1;33", "not proved"),
        };
        let steps: usize = program.operations.iter().map(|operation| operation.steps.len()).sum();
        let size = format!("{} operations, {steps} sub-operations", program.operations.len());
        let took = format!("{:.1} ms", judged.took.as_secs_f64() * 1000.0);
        let name = self.paint("1", judged.source.name());
        let word = self.paint(code, word);
        self.line(format!("{name}: {word} ({size}, {took})"));
        self.refused(judged, outcome);
        outcome.judgement.oddities.iter().for_each(|odd| self.oddity(odd));
        match &outcome.judgement.verdict {
            Verdict::Proved => {
                let all: Vec<String> =
                    outcome.judgement.assumptions.iter().map(|&one| assumption(one)).collect();
                self.line(format!("  assumed: {}", all.join("; ")));
            }
            Verdict::Refuted { searched, if_all_end } => {
                self.refuted(searched);
                self.if_all_end(*if_all_end);
            }
            Verdict::NotProved { obstacles, searched, if_all_end } => {
                self.not_proved(program, obstacles, searched);
                self.if_all_end(*if_all_end);
            }
        }
    }

    fn if_all_end(&mut self, proved: bool) {
        if proved {
            self.line("  assuming every operation ends: proved");
        }
    }

    fn oddity(&mut self, odd: &Oddity) {
        let word = match odd {
            Oddity::Waits { .. } => self.paint("2", "note"),
            _ => self.paint("33", "warning"),
        };
        let after = |calls: &[String]| match calls {
            [] => "at first".to_owned(),
            calls => format!("after {}", calls.join(", ")),
        };
        let text = match odd {
            Oddity::NeverEnds { operation } => {
                format!(
                    "`{operation}` never ends in any history that was tried; what is said of it is empty"
                )
            }
            Oddity::NeverEndsAlone { operation } => {
                format!(
                    "`{operation}` never ends when operations run one after the other, only while another is under way"
                )
            }
            Oddity::Stuck { call, after: before, state: cells } => format!(
                "`{call}` can never end {}: nothing that others do lets it (state: {})",
                after(before),
                state(cells)
            ),
            Oddity::Waits { call, after: before, .. } => {
                format!("`{call}` cannot end alone {}; it waits for others", after(before))
            }
            Oddity::Varies { call, after: before, results } => {
                let (before, results) = (after(before), results.join(" or "));
                format!(
                    "`{call}` is nondeterministic when run alone: {before} it may return {results}"
                )
            }
            Oddity::Disagrees { object, stated, call, after: before, returned, expected } => {
                let why = if *stated { "" } else { ", which its name suggests" };
                let article = if object.starts_with('a') { "an" } else { "a" };
                format!(
                    "not {article} {object}{why}: {} `{call}` returns {returned}, {article} {object} {expected}",
                    after(before)
                )
            }
        };
        self.line(format!("  {word}: {text}"));
    }

    fn refused(&mut self, judged: &Judged, outcome: &Outcome) {
        for refused in &outcome.judgement.refused {
            let invariant = &outcome.program.invariants[refused.invariant];
            let line = judged.source.position(invariant.span.start).line;
            let reason = match refused.broken_by {
                None => "it does not hold in the initial state".to_owned(),
                Some(prefix) => {
                    let operation = &outcome.program.operations[prefix.operation];
                    let step = &operation.steps[prefix.length - 1];
                    format!("{} may break it with {}: {}", operation.title(), step.label, step.text)
                }
            };
            let refused = self.paint("33", "not believed");
            self.line(format!("  {refused}, line {line}: {}", invariant.text));
            self.line(format!("    {reason}"));
        }
    }

    fn not_proved(&mut self, program: &Program, obstacles: &[Obstacle], searched: &Searched) {
        for obstacle in obstacles {
            self.obstacle(program, obstacle);
        }
        let (histories, states) = (searched.histories, searched.states);
        let bound = match searched.operations {
            0 => "no history could be looked at in full".to_owned(),
            bound => format!("no counterexample up to {bound} operations"),
        };
        self.line(format!("  {bound} ({histories} histories, {states} states)"));
        if histories == 0 {
            let advice =
                "no operation runs to its end from the initial state: state it with `init`";
            self.line(format!("  {advice}"));
        }
    }

    fn obstacle(&mut self, program: &Program, obstacle: &Obstacle) {
        let operation = &program.operations[obstacle.prefix.operation];
        let next = &operation.steps[obstacle.prefix.length];
        let (x, y) = (obstacle.prefix, obstacle.between);
        let dots = if obstacle.directly { "" } else { " …" };
        let sequence =
            format!("{}{dots} {} {}", x.letters(program), y.letters(program), next.label);
        let sequence = self.paint("1", &sequence);
        if obstacle.pending {
            let begun = self.paint("1", &x.letters(program));
            self.line(format!("  the proof stops at  {begun}"));
            self.part(program, x, "begins, and may never go on");
            self.part(program, y, "depends on it");
            let title = operation.title();
            self.line(format!("    {title} can then neither be given an end nor be left out"));
            return;
        }
        self.line(format!("  the proof stops at  {sequence}"));
        self.part(program, x, "begins");
        self.part(program, y, "comes between");
        let title = operation.title();
        self.line(format!(
            "    {:<4} {title} goes on, and cannot be moved before that: {}",
            next.label, next.text
        ));
        if !obstacle.case.is_empty() {
            self.line(format!("    when {}", obstacle.case.join(", ")));
        }
    }

    fn part(&mut self, program: &Program, prefix: Prefix, does: &str) {
        let title = program.operations[prefix.operation].title();
        self.line(format!("    {:<4} {title} {does}", prefix.letters(program)));
    }

    fn refuted(&mut self, searched: &Searched) {
        let Some(history) = &searched.counterexample else { return };
        self.line("  No order of these operations, one after the other, gives these results:");
        for (number, call) in history.calls.iter().enumerate() {
            let overlaps = overlaps(history, number);
            let results = match call.results.as_slice() {
                _ if call.pending => " does not return".to_owned(),
                [] => String::new(),
                results => format!(" returns {}", results.join(", ")),
            };
            let arguments = call.arguments.join(", ");
            let call_text = format!("{}({arguments}){results}", call.operation);
            self.line(format!("    thread {}: {call_text:<40} {overlaps}", call.thread));
        }
        self.line(format!("  at first: {}", state(&history.start)));
        self.timeline(history);
    }

    /// A column a thread, a line a sub-operation, and what it changed.
    fn timeline(&mut self, history: &History) {
        let threads = history.calls.iter().map(|call| call.thread).max().unwrap_or(1);
        let heads: String =
            (1..=threads).map(|thread| format!("{:<22}", format!("thread {thread}"))).collect();
        self.line(format!("  {}", self.paint("1", &heads)));
        for (number, step) in history.steps.iter().enumerate() {
            let call = &history.calls[step.call];
            let mut columns = String::new();
            for thread in 1..=threads {
                let text = if thread == call.thread {
                    happening(history, number, step)
                } else {
                    running(history, number, thread)
                };
                let _ = write!(columns, "{text:<22}");
            }
            let columns = self.paint("36", &columns);
            self.line(format!("  {columns}{}", step.text));
            let pad = " ".repeat(22 * threads + 4);
            if !step.locals.is_empty() {
                self.line(format!("{pad}{}", self.paint("2", &state(&step.locals))));
            }
            let shown = if step.changed.is_empty() {
                "nothing shared changes".to_owned()
            } else {
                format!("now {}", state(&step.changed))
            };
            self.line(format!("{pad}{shown}"));
        }
        if let Some(last) = history.steps.last() {
            self.line(format!("  at last: {}", state(&last.state)));
        }
    }

    fn pairs(&mut self, program: &Program, pairs: &[Pair]) {
        self.line("pairs of prefixes: can the second follow the first, and can they be swapped?");
        for operation in &program.operations {
            for step in &operation.steps {
                self.line(format!("  {:<4} {:<24} {}", step.label, operation.title(), step.text));
            }
        }
        for pair in pairs {
            let names =
                format!("{} · {}", pair.first.letters(program), pair.second.letters(program));
            self.line(format!("  {names:<24} {}", judgement(pair)));
            let cases = pair.cases.iter().flatten().filter(|_| is_mixed(pair));
            for case in cases {
                self.line(format!("  {:<24}   {}", "", case_text(case)));
            }
        }
    }
}

fn is_mixed(pair: &Pair) -> bool {
    let cases = pair.cases.as_deref().unwrap_or_default();
    cases.iter().any(|case| case.reversible) && cases.iter().any(|case| !case.reversible)
}

fn judgement(pair: &Pair) -> &'static str {
    match pair.cases.as_deref() {
        None => "orderable, not reversible (too many cases)",
        Some([]) => "not orderable",
        Some(cases) if cases.iter().all(|case| case.reversible) => "orderable, reversible",
        Some(cases) if cases.iter().all(|case| !case.reversible) => "orderable, not reversible",
        Some(_) => "orderable, by case:",
    }
}

fn case_text(case: &Case) -> String {
    let verdict = if case.reversible { "reversible" } else { "not reversible" };
    match case.same.as_slice() {
        [] => format!("{verdict} otherwise"),
        same => format!("{verdict} when {}", same.join(", ")),
    }
}

fn happening(history: &History, number: usize, step: &StepShown) -> String {
    let call = &history.calls[step.call];
    let helped = if step.by_any_thread { "*" } else { "" };
    let name = match (call.begins == number, call.ends == number && !call.pending) {
        (true, true) => format!("[{}]", call.operation),
        (true, false) => format!("[{}", call.operation),
        (false, true) => "]".to_owned(),
        (false, false) => "|".to_owned(),
    };
    format!("{}{helped} {name}", step.label)
}

fn running(history: &History, number: usize, thread: usize) -> String {
    let inside = |begins: usize, ends: usize| begins < number && number < ends;
    let busy =
        history.calls.iter().any(|call| call.thread == thread && inside(call.begins, call.ends));
    if busy { "  |".to_owned() } else { String::new() }
}

/// Which earlier operations had ended before this one began.
fn overlaps(history: &History, number: usize) -> String {
    let begins = history.calls[number].begins;
    let ended = |call: &&CallShown| call.ends < begins && !call.pending;
    let earlier = history.calls[..number].iter().filter(ended);
    let names: Vec<_> = earlier.map(|call| call.operation.as_str()).collect();
    if names.is_empty() {
        String::new()
    } else {
        format!("begins after the end of {}", names.join(", "))
    }
}

/// What is taken for granted, in words.
pub fn assumption(assumption: Assumption) -> String {
    match assumption {
        Assumption::SequentialMeaning => {
            "what the operations do one after the other is what they should do".to_owned()
        }
        Assumption::ComparedWithObject(operations) => format!(
            "one after the other they do what the object does (compared for all sequences of up to {operations} operations)"
        ),
        Assumption::SequentialConsistency => {
            "sub-operations happen one after the other (sequential consistency)".to_owned()
        }
        Assumption::StoreBuffersDoNotShow => {
            "stores wait in buffers as on x86, and no operation reads on or ends before its own are in memory".to_owned()
        }
        Assumption::NoReuse => {
            "no node is used again while a reference to it exists".to_owned()
        }
        Assumption::Rounds(rounds) => {
            format!("loops end after at most {rounds} rounds; nothing is proved about longer ones")
        }
    }
}

fn state(cells: &[Cell]) -> String {
    if cells.is_empty() {
        return "all 0 and NULL".to_owned();
    }
    let shown: Vec<_> =
        cells.iter().map(|cell| format!("{} = {}", cell.name, cell.value)).collect();
    shown.join(", ")
}
