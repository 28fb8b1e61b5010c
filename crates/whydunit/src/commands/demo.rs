//! `whydunit demo`: three failures of small built-in programs, a crash, a wrong number and a hang, each from
//! the command to the answer. Needs nothing but a C compiler.

use crate::exit::Exit;
use crate::render::{Output, style_of};
use anyhow::{Context, bail, ensure};
use report::style::Style;
use std::path::Path;
use std::process::{Command, Stdio};

/// A failure: what it is, the program, and what is asked about it.
struct Failure {
    title: &'static str,
    program: &'static str,
    source: &'static str,
    ask: &'static [&'static str],
}

const FAILURES: [Failure; 3] = [
    Failure {
        title: "A crash: where did the pointer come from?",
        program: "shelf",
        source: include_str!("../../../../examples/demo/shelf.c"),
        ask: &["why"],
    },
    Failure {
        title: "A wrong number (it should be 1560): what was it made from?",
        program: "bill",
        source: include_str!("../../../../examples/demo/bill.c"),
        ask: &["slice", "--no-pager", "--kind", "thin", "--at", "bill.c:35", "--value", "total"],
    },
    Failure {
        title: "A hang: what is it doing, and why does it not end?",
        program: "queue",
        source: include_str!("../../../../examples/demo/queue.c"),
        ask: &["why", "--timeout", "1"],
    },
];

/// Arguments of `whydunit demo`.
#[derive(clap::Args)]
#[command(
    after_help = "The programs are examples/demo/*.c of the source tree. They are built in a \
temporary folder, which is removed at the end.

Examples:
  whydunit demo   builds them, and asks about each

Exit codes: 0 all went as it should; 2 there is no C compiler. What it shows: docs/why.md."
)]
pub struct Demo {}

impl Demo {
    /// Builds the programs, and asks about each.
    pub fn run(self) -> anyhow::Result<Exit> {
        let folder = tempfile::Builder::new()
            .prefix("whydunit-demo-")
            .tempdir()
            .context("cannot make a temporary folder")?;
        let compiler = compiler()?;
        let style = style_of(&std::io::stdout());
        for failure in &FAILURES {
            say(&format!("{}\n", style.strong(failure.title)))?;
            build(&compiler, folder.path(), failure, style)?;
            ask(folder.path(), failure, style)?;
            say("\n")?;
        }
        say("Now with a program of yours:  whydunit why -- PROGRAM ARGUMENTS\n")?;
        Ok(Exit::Clean)
    }
}

/// Asks as a person would, in the folder of the program.
fn ask(folder: &Path, failure: &Failure, style: Style) -> anyhow::Result<()> {
    let program = format!("./{}", failure.program);
    let shown: Vec<&str> =
        failure.ask.iter().copied().filter(|word| *word != "--no-pager").collect();
    show_command(style, &format!("whydunit {} -- {program}", shown.join(" ")))?;
    let asked = Command::new("/proc/self/exe")
        .args(failure.ask)
        .args(["--", &program])
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .context("cannot start whydunit")?;
    say(&String::from_utf8_lossy(&asked.stdout))?;
    let answered = asked.status.code().is_some_and(|code| code <= 1);
    ensure!(answered, "{}", String::from_utf8_lossy(&asked.stderr).trim());
    Ok(())
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

fn build(compiler: &str, folder: &Path, failure: &Failure, style: Style) -> anyhow::Result<()> {
    let (program, file) = (failure.program, format!("{}.c", failure.program));
    std::fs::write(folder.join(&file), failure.source)
        .context("cannot write a program's source")?;
    show_command(style, &format!("{compiler} -g -O0 -o {program} {file}"))?;
    let built = Command::new(compiler)
        .args(["-g", "-O0", "-o", program, &file])
        .current_dir(folder)
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
