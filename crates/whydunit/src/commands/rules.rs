//! Bug rules on the command line: which ones ([`choose`]), where the program's files are
//! ([`modules`]), the consumer that checks while the program runs ([`watch`]).

mod choose;
mod modules;
mod watch;

pub use choose::Chosen;
pub use watch::{Found, Watch};

use std::path::PathBuf;

/// What every command that checks rules takes.
#[derive(clap::Args)]
pub struct RuleArguments {
    /// Rules to check: `none`, `all`, names of shipped files (`memory`) or rules (`double-free`), or
    /// files of your own (they end in `.rule`)
    #[arg(long, value_name = "RULES", default_value = "none", value_delimiter = ',')]
    rules: Vec<String>,
    /// Which function a rule means by a name, as in `transaction=handle_request`
    #[arg(long = "as", value_name = "NAME=FUNCTION")]
    names: Vec<String>,
    /// Allocators of the program's own: lines `ALLOCATE [SIZE_ARGUMENT] FREE`
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
    /// Report only the first finding
    #[arg(long)]
    stop_at_first: bool,
    /// Write the findings to a file as SARIF
    #[arg(long, value_name = "FILE")]
    sarif: Option<PathBuf>,
}
