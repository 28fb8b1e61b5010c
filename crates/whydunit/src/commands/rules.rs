//! Bug rules on the command line: which ones, and what becomes of what they find.

use crate::render::{self, Output, style_of};
use anyhow::Context;
use base::Finding;
use investigate::check::{Choice, Chosen, RuleFindings};
use std::path::{Path, PathBuf};

/// What every command that checks rules takes.
#[derive(clap::Args, Default)]
pub struct RuleArguments {
    /// Rules to check: `none`, `all`, names of shipped files (`memory`, `uninitialised`, `regions` and
    /// `allocation` are the default) or rules (`double-free`), or files of your own (they end in `.rule`)
    #[arg(long, value_name = "RULES", value_delimiter = ',')]
    rules: Option<Vec<String>>,
    /// Which function a rule means by a name, as in `transaction=handle_request`
    #[arg(long = "as", value_name = "NAME=FUNCTION")]
    names: Vec<String>,
    /// Allocators of the program's own: lines `ALLOCATE [SIZE] FREE`, the size an argument or `=BYTES`
    #[arg(long, value_name = "FILE")]
    allocators: Option<PathBuf>,
    /// Findings not to show, in valgrind's format; `none` shows those that are set aside as harmless (rules/harmless.supp)
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
    /// Write the findings, crashes too, to a file as SARIF
    #[arg(long, value_name = "FILE")]
    sarif: Option<PathBuf>,
}

/// What was chosen, and what becomes of findings.
pub struct Rules {
    /// What is checked.
    pub chosen: Chosen,
    /// Exit code if something was found.
    pub exit_code: Option<u8>,
    /// Whether a suppression is printed for each finding.
    suppressions: bool,
    /// Where SARIF goes.
    sarif: Option<PathBuf>,
}

impl Rules {
    /// Suppressions, what is to be said beside the findings, SARIF.
    pub fn epilogue(&self, found: &RuleFindings, findings: &[Finding]) -> anyhow::Result<()> {
        if self.suppressions {
            Output::Error.write(&found.suppressions().collect::<String>())?;
        }
        report::rules::notes(found, &self.chosen).iter().for_each(|note| render::note(note));
        let sarif = || report::rules::sarif(findings, &self.chosen.rules);
        self.sarif.as_deref().map_or(Ok(()), |path| write(path, &sarif()))
    }
}

/// Writes a file that was asked for beside the answer.
pub fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

impl RuleArguments {
    /// Whether nobody says which rules are checked.
    pub fn is_default(&self) -> bool {
        self.rules.is_none()
    }

    /// Reads what the arguments name.
    pub fn choose(&self) -> anyhow::Result<Rules> {
        let choice = Choice {
            rules: self.rules.clone(),
            names: self.names.clone(),
            allocators: self.allocators.clone(),
            suppressions: self.suppressions.clone(),
            first_only: self.stop_at_first,
            switch: self.switch.clone(),
            colour: style_of(&std::io::stderr()).is_coloured(),
        };
        Ok(Rules {
            chosen: choice.read()?,
            exit_code: self.error_exitcode,
            suppressions: self.gen_suppressions,
            sarif: self.sarif.clone(),
        })
    }
}
