//! What runner and host say to each other in words: plain data, one JSON object a line.

pub use base::crash::{Chunk, CrashReport, Region};
pub use base::module::ModuleMap;
pub use base::replayed::{Divergence, ProcessReplay, Replayed};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::HashMap;

/// A line from the runner.
#[derive(Debug, Serialize, Deserialize)]
pub enum Message {
    /// A signal is about to end the guest.
    Crash(Box<CrashReport>),
    /// The engine itself failed or cannot go on.
    Fault {
        /// What happened.
        what: String,
        /// Where the guest was.
        pc: u64,
    },
    /// A process has taken an event ring.
    Ring {
        /// The process.
        process: i32,
        /// The one that it was forked from.
        parent: Option<i32>,
        /// Number of the ring.
        number: u64,
    },
    /// A file with code has been mapped; the process waits for an answer.
    Module {
        /// The process.
        process: i32,
        /// What is where.
        map: ModuleMap,
    },
    /// A process has made its log: descriptor of that process.
    Log {
        /// The process.
        process: i32,
        /// Its descriptor.
        descriptor: i32,
        /// How it came about.
        origin: LogOrigin,
    },
    /// A recorded process has ended: events at which its schedule decided.
    Events(u64),
    /// What the guest does cannot be recorded.
    Refused(String),
    /// What is asked cannot be had of this program.
    Unfit(String),
    /// The replay of a process has ended.
    Replayed(ProcessReplay),
    /// Something worth telling the user.
    Note(String),
}

/// How the log of a process comes to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogOrigin {
    /// The first process.
    Start,
    /// It is a child of another.
    Fork {
        /// That one's number.
        parent: i32,
        /// The child's number as that one knows it, in its own PID namespace.
        number: i32,
    },
    /// The same process has become another program.
    Exec,
    /// It is the same log: becoming another program has failed.
    Continue,
}

/// Longer lines are sent in parts: the kernel keeps a write to a pipe together only up to 4096
/// bytes, and several processes write to the same one.
#[derive(Debug, Serialize, Deserialize)]
struct Part<'a> {
    /// The kernel thread that sends it.
    sender: i32,
    /// Whether the line is complete with it.
    last: bool,
    /// A piece of the line.
    part: Cow<'a, str>,
}

/// With everything escaped, a part of this length is still kept together.
const PART: usize = 1900;

/// The lines, each ending in a newline, that carry a message of kernel thread `sender`.
pub fn lines(message: &Message, sender: i32) -> Vec<Vec<u8>> {
    let text = serde_json::to_string(message).unwrap_or_default();
    if text.len() <= PART {
        return vec![(text + "\n").into_bytes()];
    }
    let mut lines = Vec::new();
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (part, after) = rest.split_at(rest.floor_char_boundary(PART));
        let part = Part { sender, last: after.is_empty(), part: part.into() };
        let mut line = serde_json::to_vec(&part).unwrap_or_default();
        line.push(b'\n');
        lines.push(line);
        rest = after;
    }
    lines
}

/// Puts messages together from lines.
#[derive(Default)]
pub struct Joiner {
    begun: HashMap<i32, String>,
}

impl Joiner {
    /// The message that a line completes, if it does; an error if it is not one of ours.
    pub fn add(&mut self, line: &str) -> Result<Option<Message>, serde_json::Error> {
        let Ok(Part { sender, last, part }) = serde_json::from_str(line) else {
            return serde_json::from_str(line).map(Some);
        };
        self.begun.entry(sender).or_default().push_str(&part);
        if !last {
            return Ok(None);
        }
        let whole = self.begun.remove(&sender).unwrap_or_default();
        serde_json::from_str(&whole).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_of_several_senders_arrive_whole() {
        let texts = ["\u{1}\"ä\\".repeat(3000), "short".to_owned(), "b".repeat(PART * 3)];
        let sent: Vec<Vec<Vec<u8>>> = (1..)
            .zip(&texts)
            .map(|(sender, text)| lines(&Message::Note(text.clone()), sender))
            .collect();
        assert!(sent.iter().flatten().all(|line| line.len() <= 4096));
        let mut joiner = Joiner::default();
        let mut got = Vec::new();
        for turn in 0..sent.iter().map(Vec::len).max().unwrap_or(0) {
            for line in sent.iter().filter_map(|lines| lines.get(turn)) {
                let line = std::str::from_utf8(line).expect("text");
                if let Some(Message::Note(text)) = joiner.add(line).expect("ours") {
                    got.push(text);
                }
            }
        }
        got.sort_by_key(String::len);
        let mut texts = texts;
        texts.sort_by_key(String::len);
        assert_eq!(got, texts);
        assert!(joiner.add("not ours").is_err());
    }
}
