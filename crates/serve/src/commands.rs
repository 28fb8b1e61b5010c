//! The commands that go beyond a front end's own, as lines of text: in gdb and LLDB as `monitor` commands, which a
//! script makes ordinary ones of, in editors in the debug console. One table, one way to say things.
//!
//! A line is taken apart here and handed to the debugger; what comes back is put into words ([`words`]).

mod alter;
mod movement;
mod slice;
mod stops;
pub mod words;

use base::Moment;
use investigate::debugging::origin::Origin;
use investigate::debugging::{Debugger, Stop};
use symbols::Level;

/// What a command has to say.
#[derive(Debug, Default)]
pub struct Said {
    /// The answer, without a line end at its end.
    pub text: String,
    /// Whether the debugger stands somewhere else now.
    pub moved: bool,
}

impl Said {
    fn stayed(text: impl Into<String>) -> Self {
        Self { text: text.into(), moved: false }
    }

    fn moved(text: impl Into<String>) -> Self {
        Self { text: text.into(), moved: true }
    }
}

/// A command: its name, its arguments, what it does.
pub struct Command {
    /// What it is called.
    pub name: &'static str,
    /// What comes behind the name.
    pub arguments: &'static str,
    /// In a line.
    pub about: &'static str,
    run: fn(&mut Debugger<'_>, Level, &str) -> anyhow::Result<Said>,
}

const fn command(
    name: &'static str,
    arguments: &'static str,
    about: &'static str,
    run: fn(&mut Debugger<'_>, Level, &str) -> anyhow::Result<Said>,
) -> Command {
    Command { name, arguments, about, run }
}

/// All commands.
pub const COMMANDS: &[Command] = &[
    command("when", "", "the moment that is looked at, as every command takes it", when),
    command(
        "seek",
        "MOMENT",
        "go to a moment: PLACE#N, @TICK, @TICK:0xPC, start, crash, end",
        seek,
    ),
    command(
        "origin",
        "[EXPR]",
        "back to the write that made this value; without EXPR, on from there",
        origin,
    ),
    command(
        "why",
        "",
        "what led here: the statements that this one depends on, nearest first",
        slice::why,
    ),
    command("instance", "PLACE", "how often a place has been executed up to here", stops::instance),
    command(
        "slice",
        "PLACE [N] [VALUE | ADDRESS SIZE | $REGISTER] ...",
        "a backward slice, numbered: what a value was made from",
        slice::make,
    ),
    command("show", "ID", "the statements of a slice", slice::show),
    command(
        "prune",
        "ID VALUE ...",
        "leave out of a slice what comes from these values",
        slice::prune,
    ),
    command(
        "record",
        "PLACE on | PLACE off | off",
        "slices look only at what happens between these places",
        slice::record,
    ),
    command(
        "sbreak",
        "ID S ... | all ID",
        "stop at exactly the executions in a slice",
        slice::stop,
    ),
    command("sdelete", "ID", "forget a slice and its breakpoints", slice::forget),
    command("slices", "", "the slices", slice::list),
    command("sstep", "[ID]", "to the next execution in a slice", slice::step),
    command("rsstep", "[ID]", "to the previous execution in a slice", slice::step_back),
    command(
        "break-if",
        "PLACE if CONDITION",
        "stop where a condition holds; it is asked on this side",
        stops::break_if,
    ),
    command(
        "break-call",
        "FUNCTION [if argN==V | ret==V | write|read|access ADDRESS [SIZE]]",
        "stop at calls of a function",
        stops::break_call,
    ),
    command("catch-calls", "[NUMBER ...]", "stop at system calls", stops::catch_calls),
    command("catch-forks", "", "stop where processes are made", stops::catch_forks),
    command("catch-execs", "", "stop where it becomes another program", stops::catch_execs),
    command("catch-signals", "", "stop where signals come to their handlers", stops::catch_signals),
    command("catch-threads", "", "stop where threads begin", stops::catch_threads),
    command("catch-findings", "", "stop where a rule is broken", stops::catch_findings),
    command("conditions", "", "breakpoints with conditions", stops::list),
    command("condition-delete", "ID", "forget a breakpoint with a condition", stops::forget),
    command("findings", "", "what the default rules find in the recording", stops::findings),
    command("checkpoint", "", "keep this moment", alter::checkpoint),
    command("rollback", "ID", "go back to a moment that was kept", alter::rollback),
    command("checkpoints", "", "the moments that are kept", alter::checkpoints),
    command("cdelete", "ID", "keep a moment no longer", alter::forget_checkpoint),
    command(
        "switch",
        "PLACE [all|once|N]",
        "a decision goes the other way; then go on, and the recording is left there",
        alter::switch,
    ),
    command(
        "suppress",
        "PLACE|FUNCTION [all|once|N]",
        "a statement or call is left out; then go on",
        alter::suppress,
    ),
    command("set", "EXPR=VALUE", "a value is another one from here on; then go on", alter::set),
    command("unalter", "", "alter nothing", alter::disarm),
    command(
        "diversion",
        "",
        "what has come of what was altered, compared with the recording",
        alter::told,
    ),
    command("reverse-continue", "", "back to the last stop", movement::resume),
    command("reverse-stepi", "", "back to the instruction executed last", movement::instruction),
    command("reverse-step", "", "back to the line before, into calls", movement::into),
    command("reverse-next", "", "back to the line before, over calls", movement::over),
    command("reverse-finish", "", "back to the call that led here", movement::out),
    command("back", "", "from a diversion back to where the recording was left", alter::back),
];

/// Carries out a line; what goes wrong is a sentence, too.
pub fn run(debugger: &mut Debugger<'_>, level: Level, line: &str) -> Said {
    let line = line.trim();
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let Some(found) = COMMANDS.iter().find(|known| known.name == name) else {
        return Said::stayed(help());
    };
    (found.run)(debugger, level, rest.trim())
        .unwrap_or_else(|error| Said::stayed(format!("{name}: {error:#}")))
}

/// The commands, a line each.
pub fn help() -> String {
    let lines = COMMANDS.iter().map(|it| format!("{} {} -- {}", it.name, it.arguments, it.about));
    lines.collect::<Vec<_>>().join("\n")
}

fn when(debugger: &mut Debugger<'_>, _: Level, _: &str) -> anyhow::Result<Said> {
    Ok(Said::stayed(words::moment(debugger)))
}

fn seek(debugger: &mut Debugger<'_>, _: Level, moment: &str) -> anyhow::Result<Said> {
    let moment: Moment = moment.parse()?;
    debugger.seek(&moment)?;
    Ok(Said::moved(format!("at {}", words::moment(debugger))))
}

fn origin(debugger: &mut Debugger<'_>, level: Level, text: &str) -> anyhow::Result<Said> {
    // A front end that has found out where something is still calls it as the user did.
    let (text, name) = text.split_once(" as ").unwrap_or((text, text));
    let (origin, name) = match text {
        "" => (debugger.origin_of_this()?, "what it hands on"),
        text => (debugger.origin(level, text)?, name),
    };
    Ok(match origin {
        Origin::Here { before, value } => {
            let place = words::place(&debugger.place()?);
            let value = if value.is_empty() { String::new() } else { format!(", {value},") };
            let before = before.map_or_else(String::new, |before| format!(" (before: {before})"));
            Said::moved(format!("{name}{value} is made here, at {place}{before}"))
        }
        Origin::Loaded { value } => {
            Said::stayed(format!("{name} is {value} since the program was loaded: nobody wrote it"))
        }
    })
}

/// The first word of some arguments, and the rest.
fn first_word(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim())
}

/// A number, decimal or hexadecimal.
fn number(text: &str) -> anyhow::Result<u64> {
    let parsed = match text.trim().strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text
            .trim()
            .parse::<u64>()
            .ok()
            .or_else(|| Some(text.trim().parse::<i64>().ok()? as u64)),
    };
    parsed.ok_or_else(|| anyhow::anyhow!("'{text}' is not a number"))
}

/// The number of something in a list.
fn id(text: &str) -> anyhow::Result<u32> {
    text.trim()
        .parse()
        .map_err(|_| anyhow::anyhow!("'{text}' is not a number of one; they count from 1"))
}

/// What a stop means, if it is not the front end's own.
pub fn stop(debugger: &mut Debugger<'_>, stop: &Stop) -> Option<String> {
    words::stop(debugger, stop)
}
