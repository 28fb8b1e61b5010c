//! Statements and the dependences between them, for a reader.

use crate::render::source;
use crate::render::style::Style;
use analyze::slice::view::{Link, Statement, View};

/// Characters shown of a line of source.
const WIDEST: usize = 64;
/// Reasons shown for each statement.
const MOST_REASONS: usize = 4;

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

/// One statement: number, place, source, how often, in which threads.
pub fn statement(number: usize, statement: &Statement, style: Style) -> String {
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
    let function = statement.place.function.as_deref().unwrap_or("");
    let head = format!("{number:>4}. {} {}", style.strong(&place(statement)), function);
    format!("{head}\n        {}   {}\n", line(statement), style.faint(&notes.join("; ")))
}

/// Why a statement is there: who depends on it, or going forward on whom it depends, through what.
pub fn reasons(view: &View, number: usize, style: Style) -> String {
    let mut text = String::new();
    let own = |link: &&Link| {
        if view.forward { link.user == Some(number) } else { link.on == number }
    };
    let mut links: Vec<&Link> = view.links.iter().filter(own).collect();
    links.sort_by_key(|link| link.user.is_some_and(|user| user >= number));
    let mut lines: Vec<String> = Vec::new();
    for link in links {
        let user = match link.user {
            Some(user) => format!("{}#{}", place(&view.statements[user]), link.user_instance),
            None => "the question".into(),
        };
        let (here, because, kind) = (link.on_instance, &link.because, link.kind);
        let line = if view.forward {
            let on = place(&view.statements[link.on]);
            format!("#{} <- {on}#{here} because of {because} ({kind})", link.user_instance)
        } else {
            format!("{user} <- #{here} because of {because} ({kind})")
        };
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    if lines.len() > MOST_REASONS {
        let more = lines.len() - MOST_REASONS;
        lines.truncate(MOST_REASONS);
        lines.push(format!("and {more} more"));
    }
    for line in lines {
        text += &format!("          {}\n", style.faint(&line));
    }
    text
}
