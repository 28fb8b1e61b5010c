//! `whydunit demo`: the main job on a small built-in program, from its source to the explanation
//! of its crash. Needs nothing but a C compiler.

use super::count::table;
use super::rules::RuleArguments;
use crate::exit::Exit;
use crate::render::run::RunReport;
use crate::render::style::Style;
use crate::render::{self, Output};
use anyhow::{Context, bail};
use engine::host::{self, Job};
use engine::log_listen::Ears;
use investigate::check::screened::{self, Patience};
use investigate::count;
use investigate::error::fault_or_input;
use std::path::Path;
use std::process::{Command, Stdio};

const SOURCE: &str = include_str!("../../../../examples/demo/shelf.c");

/// Arguments of `whydunit demo`.
#[derive(clap::Args)]
#[command(
    after_help = "The program is examples/demo/shelf.c of the source tree. It is built in a \
temporary folder, which is removed at the end.

Examples:
  whydunit demo   builds it, runs it, counts it

Exit codes: 0 all went as it should; 2 there is no C compiler. What it shows: docs/run.md."
)]
pub struct Demo {}

impl Demo {
    /// Builds the program, runs it to its crash, explains, and counts.
    pub fn run(self) -> anyhow::Result<Exit> {
        let folder = tempfile::Builder::new()
            .prefix("whydunit-demo-")
            .tempdir()
            .context("cannot make a temporary folder")?;
        // Names of files are shown as seen from here.
        std::env::set_current_dir(folder.path()).context("cannot enter the temporary folder")?;
        std::fs::write("shelf.c", SOURCE).context("cannot write the program's source")?;
        let compiler = compiler()?;
        let style = Style::of(&std::io::stdout());

        build(&compiler, style)?;
        show_crash(style)?;
        show_counts(style)?;
        say(
            "\nThe report reads from top to bottom: what happened, the line, the values, the calls \
             that led there.\nNow with a program of yours:  whydunit run -- PROGRAM ARGUMENTS\n",
        )?;
        std::env::set_current_dir("/").context("cannot leave the temporary folder")?;
        Ok(Exit::Clean)
    }
}

fn say(text: &str) -> anyhow::Result<()> {
    Output::Standard.write(text)
}

fn show_command(style: Style, words: &str) -> anyhow::Result<()> {
    say(&format!("{}\n", style.strong(&format!("$ {words}"))))
}

/// The user's choice, or what is there.
fn compiler() -> anyhow::Result<String> {
    let chosen = std::env::var("CC").ok().filter(|name| !name.trim().is_empty());
    let usual = ["cc", "gcc", "clang"].map(str::to_owned);
    let works = |name: &String| {
        let mut asked = Command::new(name);
        asked.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        asked.status().is_ok_and(|status| status.success())
    };
    match chosen.into_iter().chain(usual).find(works) {
        Some(name) => Ok(name),
        None => bail!("the demo needs a C compiler; on Debian: apt-get install gcc libc6-dev"),
    }
}

fn build(compiler: &str, style: Style) -> anyhow::Result<()> {
    show_command(style, &format!("{compiler} -g -O0 -o shelf shelf.c"))?;
    let built = Command::new(compiler)
        .args(["-g", "-O0", "-o", "shelf", "shelf.c"])
        .output()
        .with_context(|| format!("cannot start {compiler}"))?;
    if !built.status.success() {
        let words = String::from_utf8_lossy(&built.stderr);
        let first = words.lines().next().unwrap_or("no message");
        bail!(
            "{compiler} could not build the demo ({first}); on Debian: apt-get install gcc libc6-dev"
        );
    }
    Ok(())
}

fn show_crash(style: Style) -> anyhow::Result<()> {
    show_command(style, "whydunit run -- ./shelf")?;
    let job = Job::new(Path::new("./shelf").into(), Vec::new());
    let rules = RuleArguments::default().choose()?;
    let notices = render::notices();
    let (outcome, found) = screened::screened(job, &rules.chosen, Patience::default(), &notices)?;
    say(&RunReport::of("shelf".into(), &outcome).with_rules(found.findings()).text(style))
}

fn show_counts(style: Style) -> anyhow::Result<()> {
    say("\n")?;
    show_command(style, "whydunit count -- ./shelf")?;
    let job = Job::new(Path::new("./shelf").into(), Vec::new());
    let (counts, _) = count::count(|plan, make| {
        host::run_with(&Job { plan, ..job }, Ears::for_events(make)).map_err(fault_or_input)
    })?;
    say(&table(&count::Report::of(&counts)))
}
