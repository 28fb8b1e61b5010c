//! What a program said before it ended: language runtimes and the C library write down why they give up.

use super::Class;
use crate::case::main_process;
use crate::error::fault_or_input;
use anyhow::Context;
use base::{Confidence, Ending, Finding, Place, Step};
use engine::host::Outcome;
use events::{Consumer, Plan};
use replay::outputs::Outputs;
use replay::{Session, Shown};
use serde::Serialize;
use std::os::fd::AsRawFd;

/// Characters kept of a message.
const LONGEST: usize = 300;
const STANDARD_ERROR: u8 = 2;

/// What a message means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Said {
    /// The message.
    pub message: String,
    /// What kind of end it tells of, if it is a runtime's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<Class>,
    /// The place that it names, as it names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

/// A failure that a program told of and that its end does not show: it panicked, and then exited.
pub fn failure(session: &Session, outcome: &Outcome) -> anyhow::Result<Option<Finding>> {
    /// What Rust and Go exit with after a panic.
    const PANICKED: [i32; 2] = [101, 2];
    if !matches!(outcome.ending, Ending::Exit(code) if PANICKED.contains(&(code & 0xff))) {
        return Ok(None);
    }
    let process = main_process(session.recording());
    let said = understand(&errors(session, process)?);
    let Some((said, class)) = said.and_then(|said| said.class.map(|class| (said, class))) else {
        return Ok(None);
    };
    let message = said.message.lines().next().unwrap_or_default();
    Ok(class.is_failure().then(|| Finding {
        kind: class.name().into(),
        title: format!("the program panicked: {message}"),
        confidence: Confidence::Certain,
        place: said.place.as_deref().and_then(place),
        when: None,
        evidence: vec![Step::new("`whydunit why` tells where that came from")],
    }))
}

/// `FILE:LINE:COLUMN` as a place.
fn place(text: &str) -> Option<Place> {
    let mut parts = text.rsplitn(3, ':');
    let (_, line, file) = (parts.next()?, parts.next()?, parts.next()?);
    Some(Place::line(file, line.parse().ok()?))
}

/// What a process wrote to standard error, as far as that was the tool's own.
pub fn errors(session: &Session, process: u32) -> anyhow::Result<String> {
    let written = written(session, process)?.of(STANDARD_ERROR);
    Ok(String::from_utf8_lossy(&written).into_owned())
}

/// What a process wrote to standard output and error, as far as those were the tool's own.
pub fn written(session: &Session, process: u32) -> anyhow::Result<Outputs> {
    let mut file = tempfile::tempfile().context("no file for what the program wrote")?;
    let make = &mut |_| -> Box<dyn Consumer> { Box::new(events::Discard::default()) };
    let shown = Shown::File(file.as_raw_fd());
    session.replay(process, Plan::default(), shown, make).map_err(fault_or_input)?;
    let mut outputs = Outputs::default();
    outputs.take(&mut file).context("what the program wrote")?;
    Ok(outputs)
}

/// What the last words of a program say. A runtime's own message counts more than the last line.
pub fn understand(errors: &str) -> Option<Said> {
    panicked(errors)
        .or_else(|| threw(errors))
        .or_else(|| go(errors))
        .or_else(|| asserted(errors))
        .or_else(|| last_line(errors))
}

fn cut(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// `thread 'main' (7) panicked at src/main.rs:9:20:` and the message on the next lines. If the last one only
/// passes on what a thread panicked with, the panic of that thread is meant.
fn panicked(errors: &str) -> Option<Said> {
    const MARK: &str = "panicked at ";
    let lines: Vec<&str> = errors.lines().collect();
    let starts = |line: &str| {
        let named = line.starts_with("thread '") || line.starts_with("thread <");
        named.then(|| line.find(MARK)).flatten()
    };
    let found = lines.iter().enumerate().filter_map(|(at, line)| {
        let place = line[starts(line)? + MARK.len()..].trim_end_matches(':');
        let ends = |line: &&&str| {
            !line.starts_with("note: ") && **line != "stack backtrace:" && starts(line).is_none()
        };
        let message: Vec<&str> = lines[at + 1..].iter().take_while(ends).copied().collect();
        let message = message.join("\n");
        Some(Said {
            message: cut(&message),
            class: Some(Class::RustPanic),
            place: Some(place.to_owned()),
        })
    });
    let found: Vec<Said> = found.collect();
    let passed_on =
        |said: &&Said| said.message.contains("Any { .. }") || said.message.contains("PoisonError");
    found.iter().rev().find(|said| !passed_on(said)).or(found.last()).cloned()
}

/// What the C++ runtime says of an exception that nobody caught.
fn threw(errors: &str) -> Option<Said> {
    const MARK: &str = "terminate called";
    let from = errors.rfind(MARK)?;
    let mut lines = errors[from..].lines();
    let kind = lines.next()?.split('\'').nth(1);
    let what = lines.next().and_then(|line| line.trim_start().strip_prefix("what():"));
    let message = match (kind, what) {
        (Some(kind), Some(what)) => format!("{kind}: {}", what.trim()),
        (Some(kind), None) => kind.to_owned(),
        _ => "terminate was called".to_owned(),
    };
    Some(Said { message: cut(&message), class: Some(Class::UncaughtException), place: None })
}

/// `panic: …`, and `fatal error: …` of Go's runtime, which goes on with its goroutines.
fn go(errors: &str) -> Option<Said> {
    let line = errors.lines().find(|line| {
        (line.starts_with("panic: ") || line.starts_with("fatal error: "))
            && errors.contains("\ngoroutine ")
    })?;
    let message = line.split_once(": ")?.1;
    Some(Said { message: cut(message), class: Some(Class::GoPanic), place: None })
}

/// ``prog: file.c:12: main: Assertion `x > 0' failed.``
fn asserted(errors: &str) -> Option<Said> {
    let line = errors.lines().rev().find(|line| line.contains(": Assertion `"))?;
    let message = &line[line.find("Assertion `")?..];
    Some(Said { message: cut(message), class: Some(Class::Assertion), place: None })
}

fn last_line(errors: &str) -> Option<Said> {
    let line = errors.lines().rev().find(|line| !line.trim().is_empty())?;
    let memory =
        ["out of memory", "std::bad_alloc", "memory allocation of", "Cannot allocate memory"];
    let class = memory.iter().any(|words| line.contains(words)).then_some(Class::OutOfMemory);
    Some(Said { message: cut(line), class, place: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class_and_message(errors: &str) -> (Option<Class>, String) {
        understand(errors).map_or((None, String::new()), |said| (said.class, said.message))
    }

    #[test]
    fn runtimes_say_why_they_give_up() {
        for (errors, class, message) in [
            (
                "hello\nthread 'main' (21726) panicked at pan.rs:9:20:\ncalled `Option::unwrap()` on a \
                 `None` value\nnote: run with `RUST_BACKTRACE=1`\n",
                Some(Class::RustPanic),
                "called `Option::unwrap()` on a `None` value",
            ),
            (
                "thread '<unnamed>' panicked at a.rs:3:9:\nlost\nthread 'main' panicked at a.rs:9:1:\n\
                 called `Result::unwrap()` on an `Err` value: Any { .. }\n",
                Some(Class::RustPanic),
                "lost",
            ),
            (
                "terminate called after throwing an instance of 'std::out_of_range'\n  what():  no 5\n",
                Some(Class::UncaughtException),
                "std::out_of_range: no 5",
            ),
            (
                "panic: runtime error: index out of range [5]\n\ngoroutine 1 [running]:\n",
                Some(Class::GoPanic),
                "runtime error: index out of range [5]",
            ),
            (
                "prog: a.c:12: main: Assertion `n > 0' failed.\n",
                Some(Class::Assertion),
                "Assertion `n > 0' failed.",
            ),
            ("usage: prog FILE\n\n", None, "usage: prog FILE"),
            ("panic: this is a program's own word\n", None, "panic: this is a program's own word"),
        ] {
            assert_eq!(class_and_message(errors), (class, message.to_owned()), "{errors}");
        }
        assert_eq!(understand("\n \n"), None);
    }
}
