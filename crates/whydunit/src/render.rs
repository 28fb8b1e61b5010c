//! Turns findings and errors into what a reader sees. Analyses never do this themselves.
//!
//! `terminal.rs` for people, `json.rs` for programs, `sarif.rs` for code review tools. All three
//! know findings and nothing of the analysis that made them.

pub mod json;
pub mod sarif;
pub mod terminal;

use std::io::{self, ErrorKind, IsTerminal, Write};

pub mod crash;

/// Prints an error with its causes, prefixed like every message of the tool.
pub fn error(error: &anyhow::Error) {
    eprintln!("whydunit: {error:#}");
}

/// Writes a report to standard output. A reader that has gone away is no error.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Whether standard output is a terminal that wants colour.
pub fn wants_colour() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty())
}
