//! Bug rules on the command line: which ones ([`choose`]), where the program's files are
//! ([`modules`]), the consumer that checks while the program runs ([`watch`]) or is replayed
//! ([`recorded`]), or that screens first ([`screened`]) and then follows what led to suspicions
//! ([`windows`]), children that go on from their parent's state ([`forks`]), what nobody has written
//! ([`unwritten`]), what was suspected ([`doubt`]), rules that are switched on and off meanwhile ([`switch`]).

mod choose;
mod doubt;
mod forks;
mod modules;
pub mod quiet;
pub mod recorded;
pub mod screened;
mod switch;
mod unwritten;
mod watch;
pub mod windows;

pub use choose::Chosen;
pub use watch::{Found, Watch};

use std::path::PathBuf;

/// What every command that checks rules takes.
#[derive(clap::Args, Default)]
pub struct RuleArguments {
    /// Rules to check: `none`, `all`, names of shipped files (`memory` and `uninitialised` are the default) or rules
    /// (`double-free`), or files of your own (they end in `.rule`)
    #[arg(long, value_name = "RULES", value_delimiter = ',')]
    rules: Option<Vec<String>>,
    /// Which function a rule means by a name, as in `transaction=handle_request`
    #[arg(long = "as", value_name = "NAME=FUNCTION")]
    names: Vec<String>,
    /// Allocators of the program's own: lines `ALLOCATE [SIZE] FREE`, the size an argument or `=BYTES`
    #[arg(long, value_name = "FILE")]
    allocators: Option<PathBuf>,
    /// Findings not to show, in valgrind's format
    #[arg(long, value_name = "FILE")]
    suppressions: Vec<PathBuf>,
    /// Print a suppression for each finding
    #[arg(long)]
    gen_suppressions: bool,
    /// Exit code if a rule found something
    #[arg(long, value_name = "CODE")]
    error_exitcode: Option<u8>,
    /// End the program at the first finding
    #[arg(long)]
    stop_at_first: bool,
    /// A file with lines `-RULE` and `+RULE`, looked at all the while: switches rules off and on
    #[arg(long, value_name = "FILE")]
    switch: Option<PathBuf>,
    /// Write the findings to a file as SARIF
    #[arg(long, value_name = "FILE")]
    sarif: Option<PathBuf>,
}
