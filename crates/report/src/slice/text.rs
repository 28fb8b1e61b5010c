//! Statements and the dependences between them, for a reader.

use crate::source;
use crate::style::Style;
use analyze::slice::view::{Link, Statement, View};

/// Characters shown of a line of source.
const WIDEST: usize = 64;
/// Reasons shown for each statement, where there is room.
pub const MOST_REASONS: usize = 4;

/// Where a statement is, as short as it can be said.
pub fn place(statement: &Statement) -> String {
    match (&statement.place.file, statement.place.line) {
        (Some(file), Some(line)) => format!("{}:{line}", source::shortened(file)),
        _ => statement.place.to_string(),
    }
}

/// The line of source, if it is at hand.
pub fn line(statement: &Statement) -> String {
    let (Some(file), Some(line)) = (&statement.place.file, statement.place.line) else {
        return String::new();
    };
    let lines = source::excerpt(file, line);
    let found = lines.into_iter().find(|(number, _)| *number == line);
    let text = found.map_or_else(String::new, |(_, text)| text.trim().to_owned());
    text.chars().take(WIDEST).collect()
}

/// The statements of a slice: those that values came through first, then what decided about them and formed
/// addresses. Code that is not the program's own is told in a line, unless `all` is to be shown.
pub fn statements(view: &View, all: bool, style: Style) -> String {
    let any_own = view.statements.iter().any(|statement| statement.own);
    let shown = |number: &usize| all || !any_own || view.statements[*number].own;
    let values = view.reached_by_values();
    let numbers = (0..view.statements.len()).filter(shown);
    let (values, others): (Vec<usize>, Vec<usize>) = numbers.partition(|at| values[*at]);
    let list = |numbers: &[usize], before: usize| -> String {
        let one = |(count, number): (usize, &usize)| {
            statement(before + count + 1, &view.statements[*number], style)
                + &reasons(view, *number, MOST_REASONS, style)
        };
        numbers.iter().enumerate().map(one).collect()
    };
    let mut out = list(&values, 0);
    if !values.is_empty() && !others.is_empty() {
        out += "What decided about these, and formed addresses:\n";
    }
    out += &list(&others, values.len());
    let folded = view.statements.len() - values.len() - others.len();
    if folded > 0 {
        out += &format!(
            "and {folded} statements of libraries, the loader and the start of the program; --unfold shows \
             them\n"
        );
    }
    out
}

/// One statement: number, place, source, how often, in which threads.
pub fn statement(number: usize, statement: &Statement, style: Style) -> String {
    let notes = notes(statement);
    let function = statement.place.function.as_deref().unwrap_or("");
    let at = when(statement).map_or_else(String::new, |at| format!("  {}", style.faint(&at)));
    let head = format!("{number:>4}. {} {function}{at}", style.strong(&place(statement)));
    let line = line(statement);
    if notes.is_empty() {
        return format!("{}\n", format!("{head}\n        {line}").trim_end());
    }
    format!("{head}\n        {line}   {}\n", style.faint(&notes.join("; ")))
}

/// When it was last executed, as other commands take it; with the thread where there are several.
pub fn when(statement: &Statement) -> Option<String> {
    let tick = statement.position?.tick;
    Some(match statement.threads.len() {
        0 | 1 if statement.thread == 1 => tick.to_string(),
        _ => format!("{tick}/{}", statement.thread),
    })
}

/// What there is to say of a statement beside its text.
pub fn notes(statement: &Statement) -> Vec<String> {
    let mut notes = Vec::new();
    if !statement.through.is_empty() {
        notes.push(format!("in {}", statement.through.join(", ")));
    }
    notes.extend(statement.inputs.iter().cloned());
    if statement.executions > 1 {
        notes.push(format!("{} instructions", statement.executions));
    }
    if statement.threads.len() > 1 {
        let threads: Vec<String> = statement.threads.iter().map(u32::to_string).collect();
        notes.push(format!("threads {}", threads.join(", ")));
    }
    notes
}

/// File and line alone, or whatever else is known: how edges name statements.
pub fn short_place(statement: &Statement) -> String {
    match (&statement.place.file, statement.place.line) {
        (Some(file), Some(line)) => format!("{}:{line}", file.rsplit('/').next().unwrap_or(file)),
        _ => statement.place.to_string(),
    }
}

/// An edge: `here#n <- there#m because of VAR (kind)`.
pub fn edge(view: &View, link: &Link) -> String {
    let user = match link.user {
        Some(user) => format!("{}#{}", short_place(&view.statements[user]), link.user_instance),
        None => "the question".into(),
    };
    let on = format!("{}#{}", short_place(&view.statements[link.on]), link.on_instance);
    format!("{user} <- {on} because of {} ({})", link.because, link.kind)
}

/// Why a statement is there: who depends on it, through what.
pub fn reasons(view: &View, on: usize, most: usize, style: Style) -> String {
    let mut links: Vec<&Link> = view.links.iter().filter(|link| link.on == on).collect();
    links.sort_by_key(|link| link.user.is_some_and(|user| user >= on));
    let mut lines: Vec<String> = Vec::new();
    for link in links {
        let line = edge(view, link);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    if lines.len() > most {
        let more = lines.len() - most;
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            *last += &format!(", and {more} more");
        }
    }
    lines.iter().map(|line| format!("          {}\n", style.faint(line))).collect()
}
