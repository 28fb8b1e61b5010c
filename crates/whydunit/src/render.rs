//! Turns findings and errors into what a reader sees. Analyses never do this themselves.

pub mod crash;

/// Prints an error with its causes, prefixed like every message of the tool.
pub fn error(error: &anyhow::Error) {
    eprintln!("whydunit: {error:#}");
}
