//! `whydunit step`: from one statement of a saved slice to the next, with the values it really had.

use crate::exit::Exit;
use crate::render::{self, Output};
use anyhow::{Context, bail};
use investigate::stepping::Stepper;
use report::step as show;
use std::io::{BufRead, IsTerminal, Write};
use std::path::PathBuf;

/// Arguments of `whydunit step`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  whydunit slice --save bug.slice prog.whydunit
  whydunit step bug.slice                          asks for commands
  whydunit step bug.slice next 'print node->key' where
  whydunit step bug.slice --json                   all steps, as data

Commands: next [N], back [N], goto N, run (to what was asked about), list, where, locals, print EXPR
(before the statement), after EXPR (after it), injected, steps, threads, help, quit. The first letter
is enough. Exit codes: 0 done, 2 wrong arguments or input, 70 a fault of our own. More in
docs/slicing.md.")]
pub struct Step {
    /// The slice, saved by `whydunit slice --save`
    file: PathBuf,
    /// Commands; asked for, or read from standard input, if there are none
    #[arg(value_name = "COMMAND")]
    commands: Vec<String>,
    /// Print all steps as JSON
    #[arg(long, conflicts_with = "commands")]
    json: bool,
    /// Write them to a file
    #[arg(short, long, value_name = "FILE", requires = "json")]
    output: Option<PathBuf>,
}

impl Step {
    /// Steps.
    pub fn run(self) -> anyhow::Result<Exit> {
        let mut stepper = Stepper::open(&self.file, render::notices())?;
        if self.json {
            let text = report::json::result("step", show::all(&mut stepper)?);
            Output::answer(self.output.as_deref(), true)?.write(&text)?;
            return Ok(Exit::Clean);
        }
        print(&show::opening(&stepper))?;
        print(&show::step(&mut stepper, style())?)?;
        if self.commands.is_empty() {
            return interact(&mut stepper);
        }
        for command in &self.commands {
            match obey(&mut stepper, command)? {
                Some(text) => print(&text)?,
                None => break,
            }
        }
        Ok(Exit::Clean)
    }
}

fn style() -> report::style::Style {
    render::style_of(&std::io::stdout())
}

fn print(text: &str) -> anyhow::Result<()> {
    render::print(text).context("standard output")
}

/// Takes commands from standard input; on a terminal, asks for them.
fn interact(stepper: &mut Stepper) -> anyhow::Result<Exit> {
    let input = std::io::stdin();
    let asks = input.is_terminal();
    let mut last = String::new();
    loop {
        if asks {
            let mut out = std::io::stdout().lock();
            // A terminal that has gone away also ends the input.
            let _ = write!(out, "(step) ").and_then(|()| out.flush());
        }
        let mut line = String::new();
        if input.lock().read_line(&mut line).context("standard input")? == 0 {
            return Ok(Exit::Clean);
        }
        // As in other debuggers, an empty line does the last thing again.
        let line = if line.trim().is_empty() && asks { last.clone() } else { line };
        match obey(stepper, &line) {
            Ok(Some(text)) => print(&text)?,
            Ok(None) => return Ok(Exit::Clean),
            Err(error) if asks => print(&format!("{error:#}\n"))?,
            Err(error) => return Err(error),
        }
        last = line;
    }
}

/// Does what is asked; nothing if it is to end.
fn obey(stepper: &mut Stepper, line: &str) -> anyhow::Result<Option<String>> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let number = |default: usize| match rest {
        "" => Ok(default),
        text => text.parse().with_context(|| format!("'{text}' is not a number")),
    };
    let known = WORDS.iter().find(|known| **known == word);
    let known =
        known.or_else(|| WORDS.iter().find(|known| !word.is_empty() && known.starts_with(word)));
    let text = match known.copied() {
        Some("next") => moved(stepper, |at, count| at.saturating_add(count), number(1)?)?,
        Some("back") => moved(stepper, usize::saturating_sub, number(1)?)?,
        Some("goto") => moved(stepper, |_, to| to, number(1)?.saturating_sub(1))?,
        Some("run") => moved(stepper, |_, _| usize::MAX, 0)?,
        Some("list") => show::source(stepper),
        Some("where") => show::stack(stepper)?,
        Some("locals") => show::locals(stepper)?,
        Some("print") => stepper.print(rest, false)? + "\n",
        Some("after") => stepper.print(rest, true)? + "\n",
        Some("injected") => show::injected(stepper)?,
        Some("steps") => show::steps(stepper),
        Some("threads") => show::threads(stepper),
        Some("help") => HELP.into(),
        Some("quit") => return Ok(None),
        _ if word.is_empty() => String::new(),
        _ => {
            let near = symbols::suggest::near(word, WORDS);
            let hint = near.first().map_or_else(String::new, |near| format!(", perhaps {near}?"));
            bail!("no command '{word}'{hint} (help lists them)");
        }
    };
    Ok(Some(text))
}

/// In the order in which an abbreviation is looked for.
const WORDS: [&str; 14] = [
    "next", "back", "goto", "run", "list", "where", "locals", "print", "after", "injected",
    "steps", "threads", "help", "quit",
];

const HELP: &str = "\
next [N], back [N], goto N   another statement of the slice
run                          to what was asked about
list                         the source around
where                        the active calls
locals                       the variables of the function
print EXPR                   a value before the statement
after EXPR                   the same after it
injected                     what was left out before the statement, and changed what
steps, threads               all statements; who executed them
quit
";

/// Goes elsewhere and shows it, or says why not.
fn moved(
    stepper: &mut Stepper,
    to: impl Fn(usize, usize) -> usize,
    count: usize,
) -> anyhow::Result<String> {
    let from = stepper.at();
    stepper.go(to(from, count))?;
    if stepper.at() == from {
        let end = if from == 0 { "first" } else { "last" };
        return Ok(format!("this is the {end} step\n"));
    }
    show::step(stepper, style())
}
