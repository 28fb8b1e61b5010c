//! Where output came from, and why a place was not executed, as text.

use super::finding;
use super::style::Style;
use super::why;
use analyze::slice::explain::Explanation;
use investigate::diagnosis::Shown;
use investigate::outputs::Origin;
use investigate::whynot::NotExecuted;

/// The origin of output.
pub fn written(origin: &Origin, style: Style) -> String {
    let found = &origin.found;
    let to = match found.descriptor {
        1 => "standard output".into(),
        2 => "standard error".into(),
        other => format!("descriptor {other}"),
    };
    let title = format!("{:?} was written to {to}, behind {} bytes", found.text, found.offset);
    let mut out = format!("{}\n", style.alarm(&title));
    out += "Where it came from, nearest first:\n";
    out + &chain(&origin.explanation, &origin.shown, style)
}

/// The decision that kept the program from a place.
pub fn not_executed(place: &str, found: &NotExecuted, style: Style) -> String {
    let mut out = format!("{}\n", style.alarm(&format!("{place} was never executed")));
    for call in &found.calls {
        out += &format!("  it would have been called at {}\n", finding::shortened(call));
    }
    let at = found.position.map_or_else(String::new, |at| format!(", {}", at.tick));
    let decision = finding::shortened(&found.decision);
    out += &format!("The last decision that could have led there: {decision}{at}\n");
    if let Some(went) = &found.went {
        out += &format!("  it went to {} instead\n", finding::shortened(went));
    }
    out += "Where its condition came from, nearest first:\n";
    out + &chain(&found.explanation, &found.shown, style)
}

fn chain(explanation: &Explanation, shown: &[Shown], style: Style) -> String {
    let view = &explanation.view;
    if view.statements.is_empty() {
        return "  nothing of it was made by code of the program that has source\n".into();
    }
    let mut out = String::new();
    if view.cut {
        out += "  cut: what is further away than the executions that are kept is not in the list\n";
    }
    for (number, one) in shown.iter().enumerate() {
        out += &why::statement(number + 1, &view.statements[one.statement], one, style);
    }
    out += &why::hidden(view.statements.len() - shown.len());
    out
}
