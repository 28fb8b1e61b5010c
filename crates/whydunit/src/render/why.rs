//! The diagnosis of `whydunit why` as text.

use super::slice::{instructions, text};
use super::style::Style;
use super::{finding, source};
use analyze::slice::ending::THE_WAY;
use base::Place;
use investigate::Diagnosis;
use investigate::slicing::instructions::list;
use investigate::slicing::recursion::Endless;

/// Statements shown unless all are asked for.
const SHOWN: usize = 10;
/// Values shown of where it ended.
const VALUES: usize = 8;

/// How the program ended, and the chain back from there. `command` is what the user ran.
pub fn text(diagnosis: &Diagnosis, all: bool, command: &str, style: Style) -> String {
    let mut out = format!("{}\n", style.alarm(&diagnosis.ended));
    out += &place(diagnosis);
    if !diagnosis.values.is_empty() {
        let values = diagnosis.values.iter().take(VALUES);
        let values: Vec<String> = values.map(|(name, value)| format!("{name} = {value}")).collect();
        out += &format!("  where {}\n", values.join(", "));
    }
    out += &diagnosis.recursion.as_ref().map(recursion).unwrap_or_default();
    out += &match diagnosis.question().words.as_str() {
        THE_WAY => "What led here, nearest first:\n".into(),
        words => format!("Where {words} came from, nearest first:\n"),
    };
    out += &chain(diagnosis, all, style);
    out += &format!(
        "Dig further: whydunit slice -- {command}   (everything, with control)\n             \
         whydunit slice --kind thin --at FILE:LINE#N --value EXPRESSION -- {command}\n             \
         whydunit slice --save FILE -- {command}, then whydunit step FILE\n"
    );
    out
}

fn place(diagnosis: &Diagnosis) -> String {
    let Some(pc) = diagnosis.pc() else { return String::new() };
    let place = diagnosis.execution.program.symbolise(base::Address(pc)).place();
    let mut out = format!("  at {}\n", finding::shortened(&place));
    if let (Some(file), Some(line)) = (&place.file, place.line) {
        let lines = source::around(file, line, 0, 0);
        out.extend(lines.iter().map(|(_, text)| format!("      {}\n", text.trim())));
    }
    out
}

fn chain(diagnosis: &Diagnosis, all: bool, style: Style) -> String {
    let view = &diagnosis.explanation.view;
    if view.statements.is_empty() {
        return without_source(diagnosis);
    }
    let mut out = String::new();
    let shown = if all { usize::MAX } else { SHOWN };
    let made = |number: &usize| all || !view.statements[*number].hands_on;
    let made: Vec<usize> = (0..view.statements.len()).filter(made).collect();
    for (place, number) in made.iter().take(shown).enumerate() {
        out += &text::statement(place + 1, &view.statements[*number], style);
        out += &text::reasons(view, *number, 1, style);
    }
    let hidden = view.statements.len() - made.len().min(shown);
    if hidden > 0 {
        out += &format!("  {hidden} more statements (most only hand values on); --all\n");
    }
    out
}

/// The chain as instructions, where the program has no source to be shown.
fn without_source(diagnosis: &Diagnosis) -> String {
    let listed = instructions::text(&list(&diagnosis.execution, &diagnosis.instructions()));
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
