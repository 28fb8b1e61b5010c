//! A program that did not end by itself: what each thread was doing, and the loop that one was in.

use super::line_of;
use crate::finding;
use crate::style::Style;
use base::Place;
use investigate::Diagnosis;
use investigate::ending::hang::{Opened, ThreadAt, Wait};
use investigate::ending::looping::Change;

/// Threads shown.
const MOST_THREADS: usize = 12;

/// Loop, deadlock and threads, each in a line or two; nothing if it ended by itself.
pub fn text(diagnosis: &Diagnosis, style: Style) -> String {
    let Some(hang) = &diagnosis.hang else { return String::new() };
    let mut out = endless(diagnosis);
    if !hang.circle.is_empty() {
        let way: Vec<String> =
            hang.circle.iter().chain(hang.circle.first()).map(ToString::to_string).collect();
        out += &format!("deadlock: threads wait for each other: {}\n", way.join(" -> "));
    }
    let alone = hang.threads.len() == 1;
    for thread in hang.threads.iter().take(MOST_THREADS) {
        let doing = thread.waits.as_ref().map_or_else(|| "runs".to_owned(), waits);
        match alone {
            true if thread.waits.is_some() => out += &format!("  it {doing}\n"),
            true => {}
            false => out += &of_thread(thread, &doing, style),
        }
    }
    if hang.threads.len() > MOST_THREADS {
        out +=
            &format!("  and {} more threads; --json has them\n", hang.threads.len() - MOST_THREADS);
    }
    out
}

fn of_thread(thread: &ThreadAt, doing: &str, style: Style) -> String {
    let place = thread.place.as_ref();
    let at = place.map_or_else(String::new, |place| {
        format!(" at {}", style.strong(&finding::shortened(place).to_string()))
    });
    let line = place.and_then(line_of).map_or_else(String::new, |line| format!("      {line}\n"));
    format!("  thread {} {doing}{at}\n{line}", thread.thread)
}

fn endless(diagnosis: &Diagnosis) -> String {
    let Some(found) = &diagnosis.looping else { return String::new() };
    let function = diagnosis.place.as_ref().and_then(|place| place.function.clone());
    let since = found.since.map_or_else(String::new, |since| format!(", entered at {since},"));
    let change = match found.change {
        Change::Nothing => "nothing that its condition reads is written in the loop",
        Change::Round => "it goes round in memory that the loop does not change",
        Change::Undecided => "nothing in it decides whether it ends",
        Change::Values => "what its condition hangs on changes, but never so that it ends",
    };
    format!("the loop in {}{since} does not end: {change}\n", function.as_deref().unwrap_or("it"))
}

fn waits(wait: &Wait) -> String {
    match wait {
        Wait::Lock { name, holder: Some(holder), .. } => {
            format!("waits for the lock {name}, which thread {holder} holds,")
        }
        Wait::Lock { name, holder: None, .. } => format!("waits for the lock {name}"),
        Wait::Join { thread } => format!("waits for thread {thread} to end"),
        Wait::Wakeup { name, .. } => format!("waits to be woken up ({name})"),
        Wait::Input { call, descriptor, opened } => {
            format!(
                "waits in {call} for descriptor {descriptor}{}",
                whence(*descriptor, opened.as_ref())
            )
        }
        Wait::Child => "waits for a child process to end".into(),
        Wait::Time => "sleeps".into(),
        Wait::Call(call) => format!("is in the system call {call}"),
    }
}

fn whence(descriptor: i32, opened: Option<&Opened>) -> String {
    match opened {
        Some(Opened { call, place }) => {
            let at = |place: &Place| format!(" at {}", finding::shortened(place));
            format!(", made by {call}{}", place.as_ref().map(at).unwrap_or_default())
        }
        None if descriptor == 0 => ", standard input".into(),
        None => String::new(),
    }
}
