//! What the debugger says, in words.

use base::{Ending, Finding, Place};
use investigate::debugging::points::Reason;
use investigate::debugging::slices::Numbered;
use investigate::debugging::{Debugger, DiversionEnd, Stop};
use investigate::slicing::{Statement, View};
use investigate::whatif::{Answer, End, Verdict};
use std::fmt::Write;

/// Statements that are shown of a view.
pub const SHOWN: usize = 40;

/// The moment that is looked at, as every command takes it.
pub fn moment(debugger: &Debugger<'_>) -> String {
    let at = debugger.instant();
    let text = format!("@{}:{:#x}/{}", at.time, at.pc.unwrap_or(0), debugger.running());
    match debugger.is_away() {
        true => format!("in a diversion that left the recording at {text}"),
        false => text,
    }
}

/// Why it has stopped, if that is not plain from where it is.
pub fn stop(debugger: &mut Debugger<'_>, stop: &Stop) -> Option<String> {
    Some(match stop {
        Stop::Condition(id) => {
            let it = debugger.conditional().iter().find(|it| it.id == *id)?;
            match &it.trouble {
                Some(trouble) => format!("c{id}, {}: {trouble}", it.words),
                None => format!("c{id}, {}", it.words),
            }
        }
        Stop::Point(Reason::Slice { slice, statement }) => {
            format!("slice {slice}, statement {statement}")
        }
        Stop::Point(Reason::Finding(number)) => {
            let finding = debugger.findings().ok()?.get(number - 1)?.clone();
            format!("finding {number}: {}", finding.title)
        }
        Stop::Point(Reason::Signal(signal)) => {
            format!("{} comes to its handler", investigate::crash::signal_name(*signal))
        }
        Stop::Point(Reason::Begins(thread)) => format!("thread {thread} begins"),
        Stop::Diverted(_) => match debugger.told() {
            Ok(told) => answer(&told),
            Err(error) => format!("{error:#}"),
        },
        Stop::End(Some(Ending::Exit(code))) => format!("the program exits with {}", code & 0xff),
        Stop::End(None) => "the recording ends here".into(),
        _ => return None,
    })
}

/// Whether a diversion ended with a signal.
pub fn signal_of(end: &DiversionEnd) -> Option<i32> {
    match end {
        DiversionEnd::Ended(Ending::Signal(signal)) => Some(*signal),
        _ => None,
    }
}

/// What came of a diversion.
pub fn answer(answer: &Answer) -> String {
    let end = |end: &End| match &end.place {
        Some(at) => format!("{}, at {}", end.words, place(at)),
        None => end.words.clone(),
    };
    let so = match answer.verdict {
        Verdict::NoFailure => "it does not fail",
        Verdict::SameFailure => "it fails in the same way",
        Verdict::OtherEnd => "it ends in another way",
    };
    let mut text = format!(
        "{}, at {} ({})\n  recorded:  {}\n  then:      {}\n  so:        {so}",
        answer.altered,
        place(&answer.place),
        answer.at.tick,
        end(&answer.recorded),
        end(&answer.end),
    );
    for (lines, name) in answer.output.iter().zip(["output", "error"]) {
        for line in lines.lines().take(SHOWN) {
            let _ = write!(text, "\n  {name:<10} {line}");
        }
        let more = lines.lines().count().saturating_sub(SHOWN);
        if more > 0 {
            let _ = write!(text, "\n  {name:<10} … and {more} lines more");
        }
    }
    for (what, times) in &answer.refused {
        let _ = write!(text, "\n  {what}, {times} times");
    }
    text
}

/// A place, as a reader would write it.
pub fn place(place: &Place) -> String {
    let file = place.file.as_deref().map(investigate::paths::shortened);
    Place { file, ..place.clone() }.to_string()
}

/// A statement of a slice, in a line.
pub fn statement(number: usize, statement: &Statement) -> String {
    let through = match statement.through.is_empty() {
        true => String::new(),
        false => format!(", through {}", statement.through.join(", ")),
    };
    let times = match statement.executions {
        1 => String::new(),
        times => format!(", {times} instructions"),
    };
    let place = place(&statement.place);
    format!("{number:>4}  {place}#{}{times}{through}", statement.instance)
}

/// The statements of a view, nearest first, with what they are there for: the program's own, or all if there are none.
pub fn view(view: &View) -> String {
    let own = view.statements.iter().any(|it| it.place.is_own());
    let shown = |it: &Statement| !own || it.place.is_own();
    let mut text = String::new();
    let all = view.statements.iter().enumerate().filter(|(_, it)| shown(it));
    for (index, it) in all.take(SHOWN) {
        let _ = writeln!(text, "{}", statement(index + 1, it));
        for link in view.links.iter().filter(|link| link.on == index).take(2) {
            let user =
                link.user.map_or_else(|| "what was asked".into(), |user| (user + 1).to_string());
            let _ = writeln!(text, "        for {user}: {} ({})", link.because, link.kind);
        }
    }
    let (mine, all) =
        (view.statements.iter().filter(|it| shown(it)).count(), view.statements.len());
    if mine > SHOWN {
        let _ = writeln!(text, "      … and {} more", mine - SHOWN);
    }
    if all > mine {
        let _ = writeln!(text, "      … and {} of libraries and the loader", all - mine);
    }
    if view.statements.is_empty() {
        text += "nobody made it: it is as it was when the program was loaded\n";
    }
    text.trim_end().to_owned()
}

/// A slice, in a line.
pub fn slice(slice: &Numbered) -> String {
    let pruned = match slice.query.prune.is_empty() {
        true => String::new(),
        false => format!(", without {}", slice.query.prune.join(", ")),
    };
    let at = slice.query.at.as_ref().map_or_else(|| "the end".into(), ToString::to_string);
    format!(
        "slice {}: {} at {at}: {} statements, {} instructions, {} executions of statements{pruned}{}",
        slice.id,
        slice.words,
        slice.view.statements.len(),
        slice.executions,
        slice.steps.len(),
        if slice.stops { ", stops" } else { "" }
    )
}

/// A finding, with the moment to go to.
pub fn finding(number: usize, finding: &Finding) -> String {
    let place = finding.place.as_ref().map_or_else(String::new, |at| format!(", at {}", place(at)));
    let when = finding.when.map_or_else(String::new, |when| format!(" ({})", when.position));
    format!("{number:>4}  {}: {}{place}{when}", finding.kind, finding.title)
}
