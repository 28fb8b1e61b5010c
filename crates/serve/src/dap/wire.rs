//! Messages of the protocol: a header with a length, then JSON.
//!
//! A thread of its own reads, so that an editor can ask for a pause while the program moves.

use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, Write};
use std::sync::mpsc::{Receiver, TryRecvError, channel};

/// Longest message that is read.
const LONGEST: usize = 16 << 20;

/// A request of the editor's.
#[derive(Clone, Debug)]
pub struct Request {
    pub number: i64,
    pub command: String,
    pub arguments: Value,
}

/// What comes in: requests, or what was no request.
pub struct Incoming(Receiver<Result<Request, String>>);

impl Incoming {
    /// Reads until the end of the input.
    pub fn read(mut input: impl BufRead + Send + 'static) -> Self {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            while let Some(message) = message(&mut input) {
                let fatal = matches!(&message, Err(Broken::Framing(_)));
                let sent = sender.send(message.map_err(Broken::text));
                if sent.is_err() || fatal {
                    return;
                }
            }
        });
        Self(receiver)
    }
}

/// What is no request.
enum Broken {
    /// Where the next message begins is not known any more.
    Framing(String),
    Content(String),
}

impl Broken {
    fn text(self) -> String {
        match self {
            Self::Framing(text) | Self::Content(text) => text,
        }
    }
}

/// The next message; nothing at the end.
fn message(input: &mut impl BufRead) -> Option<Result<Request, Broken>> {
    let mut length = None;
    loop {
        let mut line = Vec::new();
        // A header is short; what is longer is none.
        let read = std::io::Read::take(&mut *input, 4096).read_until(b'\n', &mut line).ok()?;
        if read == 0 {
            return None;
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end();
        match (line, line.split_once(':')) {
            ("", _) if length.is_some() => break,
            ("", _) => {}
            (_, Some((name, value))) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse::<usize>().ok();
            }
            (_, Some(_)) => {}
            (other, None) => {
                let shown: String = other.chars().take(40).collect();
                return Some(Err(Broken::Framing(format!("'{shown}' is no header"))));
            }
        }
    }
    let length = length.filter(|length| *length <= LONGEST);
    let Some(length) = length else {
        return Some(Err(Broken::Framing(format!("a message has at most {LONGEST} bytes"))));
    };
    let mut bytes = vec![0; length];
    std::io::Read::read_exact(input, &mut bytes).ok()?;
    Some(request(&bytes).map_err(Broken::Content))
}

fn request(bytes: &[u8]) -> Result<Request, String> {
    let value: Value =
        serde_json::from_slice(bytes).map_err(|error| format!("a message is no JSON: {error}"))?;
    let command = value["command"].as_str().filter(|_| value["type"] == "request");
    let command = command.ok_or("a message is no request: it has no command")?;
    Ok(Request {
        number: value["seq"].as_i64().unwrap_or(0),
        command: command.to_owned(),
        arguments: value["arguments"].clone(),
    })
}

/// Both directions.
pub struct Wire<'out> {
    incoming: Incoming,
    waiting: VecDeque<Request>,
    output: &'out mut dyn Write,
    sent: i64,
    gone: bool,
}

impl<'out> Wire<'out> {
    pub fn new(incoming: Incoming, output: &'out mut dyn Write) -> Self {
        Self { incoming, waiting: VecDeque::new(), output, sent: 0, gone: false }
    }

    /// Waits for the next request; nothing if the editor has gone.
    pub fn next(&mut self) -> anyhow::Result<Option<Request>> {
        loop {
            if let Some(request) = self.waiting.pop_front() {
                return Ok(Some(request));
            }
            match self.incoming.0.recv() {
                Ok(Ok(request)) => return Ok(Some(request)),
                Ok(Err(broken)) => self.complain(&broken)?,
                Err(_) => return Ok(None),
            }
        }
    }

    /// Whether the editor wants a movement to end.
    pub fn wants_pause(&mut self) -> bool {
        loop {
            match self.incoming.0.try_recv() {
                Ok(Ok(request)) => self.waiting.push_back(request),
                Ok(Err(_)) => {}
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    self.gone = true;
                    break;
                }
            }
        }
        let ends = ["pause", "disconnect", "terminate"];
        self.gone || self.waiting.iter().any(|it| ends.contains(&it.command.as_str()))
    }

    fn complain(&mut self, text: &str) -> anyhow::Result<()> {
        let output = format!("whydunit: {text}\n");
        self.event("output", json!({ "category": "important", "output": output }))
    }

    pub fn answer(&mut self, to: &Request, body: Value) -> anyhow::Result<()> {
        let mut message = json!({
            "type": "response", "request_seq": to.number, "command": to.command, "success": true,
        });
        if !body.is_null() {
            message["body"] = body;
        }
        self.send(message)
    }

    pub fn refuse(&mut self, to: &Request, why: &str) -> anyhow::Result<()> {
        self.send(json!({
            "type": "response", "request_seq": to.number, "command": to.command, "success": false,
            "message": why,
            "body": { "error": { "id": 1, "format": why.replace('{', "(").replace('}', ")"), "showUser": false } },
        }))
    }

    pub fn event(&mut self, event: &str, body: Value) -> anyhow::Result<()> {
        self.send(json!({ "type": "event", "event": event, "body": body }))
    }

    fn send(&mut self, mut message: Value) -> anyhow::Result<()> {
        self.sent += 1;
        message["seq"] = json!(self.sent);
        let text = message.to_string();
        let sent = write!(self.output, "Content-Length: {}\r\n\r\n{text}", text.len());
        match sent.and_then(|()| self.output.flush()) {
            // An editor that has gone is no fault of anybody's; the input ends, too.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            other => Ok(other?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn all(text: &str) -> Vec<Result<String, String>> {
        let mut input = Cursor::new(text.as_bytes().to_vec());
        let mut found = Vec::new();
        while let Some(message) = message(&mut input) {
            let fatal = matches!(&message, Err(Broken::Framing(_)));
            found.push(message.map(|request| request.command).map_err(Broken::text));
            if fatal {
                break;
            }
        }
        found
    }

    fn framed(text: &str) -> String {
        format!("Content-Length: {}\r\n\r\n{text}", text.len())
    }

    #[test]
    fn what_is_no_request_is_refused_and_the_next_is_read() {
        let good = framed(r#"{"seq":1,"type":"request","command":"threads"}"#);
        assert_eq!(all(&good), [Ok("threads".into())]);
        let rows = ["{", "[]", "7", r#"{"type":"event"}"#, "\"command\"", ""];
        for bad in rows {
            let both = format!("{}{good}", framed(bad));
            let found = all(&both);
            assert!(found[0].is_err(), "{bad}");
            assert_eq!(found[1], Ok("threads".into()), "{bad}");
        }
        assert!(all("nonsense\r\n\r\n{}")[0].is_err());
        assert!(all("Content-Length: 99999999999\r\n\r\n{}")[0].is_err());
        assert!(all("Content-Length: 50\r\n\r\n{}").is_empty(), "cut off");
    }
}
