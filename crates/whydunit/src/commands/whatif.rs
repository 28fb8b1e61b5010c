//! `whydunit whatif`: what a recorded program would have done with something altered.

use super::run::Guest;
use super::seconds;
use crate::exit::Exit;
use crate::render::{self, Output};
use base::Moment;
use investigate::Case;
use investigate::whatif::search::{self, SearchResult};
use investigate::whatif::{Altered, Answer, Verdict, WhatIf};
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `whydunit whatif`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  whydunit whatif --switch parse.c:88#3 prog.whydunit      the decision there goes the other way
  whydunit whatif --suppress list.c:40 prog.whydunit       that statement is left out, the last time
  whydunit whatif --suppress free_node#2 prog.whydunit     that call is left out, and gives 0
  whydunit whatif --set 'limit=64' --at parse.c:80#1 -- ./prog input
  whydunit whatif --search prog.whydunit                   which decision makes the failure go away?

Exit codes: 0 the failure is gone, or a search found a decision; 1 it fails as before, or no decision was
found; 2 wrong arguments or input; 3 it ends otherwise, or not within the budget; 70 a fault of our own.
More in docs/whatif.md.")]
#[command(group = clap::ArgGroup::new("alteration").required(true))]
pub struct Whatif {
    /// Let the decision at PLACE#N go the other way; PLACE is FILE:LINE or *0xADDRESS
    #[arg(long, value_name = "PLACE#N", group = "alteration")]
    switch: Option<Moment>,
    /// Leave the statement FILE:LINE#N, the call FUNCTION#N or the instruction *0xADDRESS#N out
    #[arg(long, value_name = "PLACE#N", group = "alteration")]
    suppress: Option<Moment>,
    /// Set a variable, a $register or [ADDRESS,SIZE]
    #[arg(long, value_name = "EXPR=VALUE", group = "alteration", requires = "at")]
    set: Option<String>,
    /// When it is set
    #[arg(long, value_name = "MOMENT", requires = "set")]
    at: Option<Moment>,
    /// Turn around the decisions that led to the failure, one at a time
    #[arg(long, group = "alteration")]
    search: bool,
    /// Longest time
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "20")]
    budget: Duration,
    /// Print JSON, alone on standard output
    #[arg(long)]
    json: bool,
    /// Write the answer to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Which process, by its number in `whydunit info`; the one that failed, or the program, if not given
    #[arg(long, value_name = "N")]
    process: Option<u32>,
    #[command(flatten)]
    guest: Guest,
}

impl Whatif {
    /// Opens or records, alters, and tells what came of it.
    pub fn run(self) -> anyhow::Result<Exit> {
        let mut output = Output::answer(self.output.as_deref(), self.json)?;
        let case = Case::of(self.guest.job(), render::notices())?;
        let process = case.process(self.process)?;
        let Some(altered) = self.altered() else {
            let found = search::search(&case, process, self.budget)?;
            let text = match self.json {
                true => report::json::result("whatif", &found),
                false => report::whatif::found(&found),
            };
            output.write(&text)?;
            return Ok(exit_of_search(&found));
        };
        let answer = WhatIf::of(&case, process)?.alter(&altered, self.budget)?;
        let text = match self.json {
            true => report::json::result("whatif", &answer),
            false => report::whatif::answer(&answer),
        };
        output.write(&text)?;
        Ok(exit_of(&answer))
    }

    /// What is altered; nothing if decisions are searched for.
    fn altered(&self) -> Option<Altered> {
        if let Some(at) = &self.switch {
            return Some(Altered::Switch(at.clone()));
        }
        if let Some(at) = &self.suppress {
            return Some(Altered::Suppress(at.clone()));
        }
        let (assignment, at) = (self.set.clone()?, self.at.clone()?);
        Some(Altered::Set { assignment, at })
    }
}

fn exit_of(answer: &Answer) -> Exit {
    match answer.verdict {
        Verdict::NoFailure => Exit::Clean,
        Verdict::SameFailure => Exit::Findings,
        Verdict::OtherEnd => Exit::Undecided,
    }
}

fn exit_of_search(found: &SearchResult) -> Exit {
    if found.critical.is_empty() { Exit::Findings } else { Exit::Clean }
}
