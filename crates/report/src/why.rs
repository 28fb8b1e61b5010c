//! The diagnosis of `whydunit why` as text: what happened, where, what was being done, and the chain.

mod hang;
pub mod markdown;

use super::slice::{instructions, text};
use super::style::Style;
use super::{finding, source};
use analyze::slice::ending::THE_WAY;
use analyze::slice::view::Statement;
use base::{Finding, Place};
use investigate::Diagnosis;
use investigate::diagnosis::broken::in_short;
use investigate::diagnosis::{SHOWN, Shown};
use investigate::slicing::instructions::list;
use investigate::slicing::recursion::Endless;

/// Values shown of where it ended.
const VALUES: usize = 8;
/// Calls shown beside the innermost.
const CALLS: usize = 6;
/// Columns of a line.
const WIDTH: usize = 100;

/// How the program ended, and the chain back from there. `further` says how to go on.
pub fn text(diagnosis: &Diagnosis, further: &str, style: Style) -> String {
    let mut out = format!("{}\n", style.alarm(&diagnosis.ended));
    out += &place(diagnosis, style);
    out += &calls(&diagnosis.stack, diagnosis.place.as_ref());
    out += &hang::text(diagnosis, style);
    out += &diagnosis.recursion.as_ref().map(recursion).unwrap_or_default();
    out += &broken(&diagnosis.broken, style);
    out += &chain(diagnosis, style);
    out += &style.faint(&format!(
        "class {}, fingerprint {}\n",
        diagnosis.class.name(),
        diagnosis.fingerprint()
    ));
    out += &style.faint(&format!("Dig further: {further}\n"));
    out
}

fn place(diagnosis: &Diagnosis, style: Style) -> String {
    let mut out = String::new();
    if let Some(place) = &diagnosis.place {
        let when = diagnosis.when.map_or_else(String::new, |when| {
            format!("  {}", style.faint(&format!("{}/{}", when.position.tick, when.thread)))
        });
        let inside =
            diagnosis.inside.as_ref().map_or_else(String::new, |name| format!(", in {name}"));
        let place_text = style.strong(&finding::shortened(place).to_string());
        out += &format!("  at {place_text}{inside}{when}\n");
        if let Some(line) = line_of(place) {
            out += &format!("      {line}\n");
        }
    }
    if let Some(said) =
        diagnosis.said.as_ref().filter(|said| !diagnosis.ended.contains(&said.message))
    {
        let first = said.message.lines().next().unwrap_or_default();
        out += &format!("  it said: {first}\n");
    }
    if !diagnosis.values.is_empty() {
        let values = diagnosis.values.iter().take(VALUES);
        let values: Vec<String> = values.map(|(name, value)| format!("{name} = {value}")).collect();
        out += &format!("  where {}\n", values.join(", "));
    }
    out
}

/// The line of source at a place, if it is at hand.
pub fn line_of(place: &Place) -> Option<String> {
    let (file, line) = (place.file.as_ref()?, place.line?);
    let lines = source::around(file, line, 0, 0);
    lines.first().map(|(_, text)| text.trim().to_owned())
}

/// Who called, as far as it is the program's own code: one line.
fn calls(stack: &[Place], place: Option<&Place>) -> String {
    let same = |other: &&Place| {
        place.is_some_and(|place| place.line == other.line && place.file == other.file)
    };
    let outer: Vec<&Place> = stack.iter().skip_while(same).collect();
    if outer.is_empty() {
        return String::new();
    }
    let shown = outer.iter().take(CALLS).map(|place| {
        let function = place.function.as_deref().unwrap_or("?");
        let file = place.file.as_deref().and_then(|file| file.rsplit('/').next()).unwrap_or("?");
        format!("{function} ({file}:{})", place.line.unwrap_or(0))
    });
    let mut line = shown.collect::<Vec<_>>().join(" <- ");
    if outer.len() > CALLS {
        line += &format!(" and {} more", outer.len() - CALLS);
    }
    format!("  called by {line}\n")
}

/// Rules that were broken before the end, each with where its block or variable came from.
fn broken(findings: &[Finding], style: Style) -> String {
    let mut out = String::new();
    for finding in findings {
        let place = finding.place.as_ref().map_or_else(String::new, |place| {
            format!(" at {}", style.strong(&finding::shortened(place).to_string()))
        });
        let when = finding.when.map_or_else(String::new, |when| {
            format!("  {}", style.faint(&format!("{}/{}", when.position.tick, when.thread)))
        });
        let first = if out.is_empty() { "The first rule that was broken" } else { "and then" };
        out += &format!("{first}: {}{place}{when}\n", finding.title);
        if let Some(line) = finding.place.as_ref().and_then(line_of) {
            out += &format!("      {line}\n");
        }
        for step in in_short(finding) {
            let place = step.place.as_ref().map(finding::shortened).unwrap_or_default();
            out += &format!("    {} at {place}\n", step.text);
        }
    }
    out
}

/// What the list of statements is, in words.
fn heading(diagnosis: &Diagnosis) -> String {
    match (&diagnosis.looping, diagnosis.question().map(|asked| asked.words.as_str())) {
        (Some(_), _) => "What keeps the loop going, nearest first:\n".into(),
        (_, None) => String::new(),
        (_, Some(THE_WAY)) => "What led here, nearest first:\n".into(),
        (_, Some(words)) => format!("Where {words} came from, nearest first:\n"),
    }
}

fn chain(diagnosis: &Diagnosis, style: Style) -> String {
    let view = &diagnosis.explanation.view;
    let mut out = heading(diagnosis);
    if view.cut {
        out = format!("{}, cut at a limit:\n", out.trim_end().trim_end_matches(':'));
    }
    if view.statements.is_empty() {
        return if out.is_empty() { out } else { out + &without_source(diagnosis) };
    }
    for (number, shown) in diagnosis.shown.iter().enumerate() {
        out += &statement(number + 1, &view.statements[shown.statement], shown, style);
    }
    if diagnosis.explanation.open
        && let Some((seen, all)) = diagnosis.execution.observed.filter(|(seen, all)| seen < all)
    {
        out += &format!(
            "  the last {seen} of {all} windows of the run were looked at, and it goes on before; --budget SECONDS \
             looks further back\n"
        );
    }
    out += &hidden(view.statements.len() - diagnosis.shown.len());
    out
}

/// How many statements are not shown.
pub fn hidden(statements: usize) -> String {
    match statements {
        0 => String::new(),
        1 => "  1 more statement; --all shows it\n".to_owned(),
        more => format!("  {more} more statements (most only hand values on); --all\n"),
    }
}

/// One statement: number, place, moment; its source and its values.
pub(super) fn statement(
    number: usize,
    statement: &Statement,
    shown: &Shown,
    style: Style,
) -> String {
    let function = statement.place.function.as_deref().unwrap_or("");
    let at = text::when(statement).map_or_else(String::new, |at| format!("  {}", style.faint(&at)));
    let mut out =
        format!("{number:>4}. {} {function}{at}\n", style.strong(&text::place(statement)));
    let line = text::line(statement);
    let values: Vec<String> =
        shown.values.0.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    let mut notes = Vec::new();
    if statement.unwritten {
        notes.push(
            "it used a variable that nothing had written in this call: what an earlier call left on the stack"
                .to_owned(),
        );
    }
    if !statement.inputs.is_empty() {
        notes.push(statement.inputs.join("; "));
    }
    let values = values.join(", ");
    let room = 8 + line.chars().count() + 3 + values.chars().count() <= WIDTH;
    if !line.is_empty() {
        out += &format!("        {line}");
    }
    if !values.is_empty() {
        let gap = if line.is_empty() {
            "        "
        } else if room {
            "   "
        } else {
            "\n          "
        };
        out += &format!("{gap}{}", style.faint(&values));
    }
    if !notes.is_empty() {
        out += &format!("\n          {}", style.faint(&notes.join("; ")));
    }
    if out.ends_with('\n') { out } else { out + "\n" }
}

/// The chain as instructions, where the program has no source to be shown.
fn without_source(diagnosis: &Diagnosis) -> String {
    if diagnosis.place.as_ref().is_some_and(Place::is_own) {
        return "  no statement of the program's own: an optimiser may have worked it out beforehand, or it \
                came from outside\n"
            .into();
    }
    let Some(slice) = diagnosis.instructions() else { return String::new() };
    let listed = instructions::text(&list(&diagnosis.execution, &slice));
    if listed.is_empty() {
        return "  nothing of it was made by the program itself\n".into();
    }
    instructions::nearest(&listed, SHOWN, "whydunit slice --kind thin --instructions")
}

/// A stack that is full, in a few lines.
fn recursion(endless: &Endless) -> String {
    let function = |place: &Place| place.function.clone().unwrap_or_else(|| "?".into());
    let mut out = format!(
        "{} calls are active, and the same come again and again, {} times:\n",
        endless.active_calls, endless.rounds
    );
    for (number, place) in endless.calls.iter().enumerate() {
        // A call leads to where the call before it in the list was made.
        let inner = number.checked_sub(1).unwrap_or(endless.calls.len() - 1);
        let place = finding::shortened(place);
        out += &format!("  {place} calls {}\n", function(&endless.calls[inner]));
    }
    for (names, words) in [
        (&endless.unchanged, "handed on as it is from round to round"),
        (&endless.changed, "changed in each round"),
    ] {
        if !names.is_empty() {
            out += &format!("  {words}: {}\n", names.join(", "));
        }
    }
    out
}
