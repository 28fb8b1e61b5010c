//! `whydunit why`: how a program ended, and the chain back to where the wrong value was made.

use super::run::Guest;
use super::slicing::execution::Execution;
use super::slicing::recursion::Endless;
use super::slicing::{instructions, text, windows};
use crate::exit::Exit;
use crate::render::crash::Crash;
use crate::render::style::Style;
use crate::render::{self, finding, shell, source};
use analyze::dependence::control::Control;
use analyze::slice::Follow;
use analyze::slice::ending::{Asked, THE_WAY};
use analyze::slice::explain::{Explanation, explain};
use anyhow::Context;
use serde::Serialize;

/// Statements shown unless all are asked for.
const SHOWN: usize = 10;
/// Values shown of where it ended.
const VALUES: usize = 8;

/// Arguments of `whydunit why`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  whydunit why -- ./prog input               runs it and explains how it ended
  whydunit why --json -- ./prog input
  whydunit why prog.whydunit                 explains a recording

Exit codes: 0 the program ended by itself with exit code 0; 1 it did not; 2 wrong arguments or
input; 70 a fault of our own. More in docs/why.md.")]
pub struct Why {
    /// Show all statements
    #[arg(long)]
    all: bool,
    /// Most memory for what is kept of a recording; the rest is replayed again
    #[arg(long, value_name = "SIZE", value_parser = windows::size, default_value_t = windows::MEMORY)]
    memory: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    guest: Guest,
}

/// The values where the program crashed, in its own words, or at least the registers.
fn values(execution: &Execution) -> Vec<(String, String)> {
    let Some(report) = execution.crash() else { return Vec::new() };
    let evidence = Crash::of(report).finding.evidence.into_iter();
    evidence.map(|step| step.values).rfind(|values| !values.is_empty()).unwrap_or_default()
}

/// The chain as instructions, where the program has no source to be shown.
fn without_source(execution: &Execution, asked: &Asked) -> String {
    let control = Control::of(&execution.trace, &execution.program);
    let mut question = asked.question(Follow::Thin);
    question.control = Some(&control);
    let listed = instructions::list(execution, &question.answer(&execution.trace)).text();
    if listed.is_empty() {
        return "  nothing of it was made by the program itself\n".into();
    }
    instructions::nearest(&listed, SHOWN, "whydunit slice --kind thin --instructions")
}

#[derive(Serialize)]
struct Report<'a> {
    ended: &'a str,
    values: Vec<(String, String)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recursion: Option<&'a Endless>,
    question: &'a str,
    #[serde(flatten)]
    explanation: &'a Explanation,
}

impl Why {
    /// Runs the program and explains its end.
    pub fn run(self) -> anyhow::Result<Exit> {
        let execution = Execution::run(&self.guest, self.memory)?;
        let endless = Endless::of(&execution);
        let asked = match &endless {
            Some(endless) => vec![endless.asked()],
            None => execution.asked_at_end(),
        };
        let first = asked.first().context("the program executed nothing")?;
        let control = Control::of(&execution.trace, &execution.program);
        let explanation = explain(&execution.trace, &execution.program, &control, &asked);
        execution.complete()?;
        let ended = execution.ending();
        let out = if self.json {
            let report = Report {
                ended: &ended,
                values: values(&execution),
                recursion: endless.as_ref(),
                question: &first.words,
                explanation: &explanation,
            };
            serde_json::to_string_pretty(&report)? + "\n"
        } else {
            let at = asked.last().and_then(|asked| asked.pc);
            let before = endless.map(|endless| endless.text()).unwrap_or_default();
            self.text(&execution, (&ended, &before), (first, at), &explanation)
        };
        render::print(&out).context("standard output")?;
        let failed = execution.outcome.as_ref().is_none_or(|outcome| {
            !outcome.crashes.is_empty() || outcome.ending != engine::host::Ending::Exit(0)
        });
        Ok(if failed { Exit::Findings } else { Exit::Clean })
    }

    fn text(
        &self,
        execution: &Execution,
        (ended, before): (&str, &str),
        (asked, at): (&Asked, Option<u64>),
        explanation: &Explanation,
    ) -> String {
        let style = Style::of(&std::io::stdout());
        let mut out = format!("{}\n", style.alarm(ended));
        if let Some(pc) = at {
            let place = execution.program.symbolise(base::Address(pc)).place();
            out += &format!("  at {}\n", finding::shortened(&place));
            if let (Some(file), Some(line)) = (&place.file, place.line) {
                let lines = source::around(file, line, 0, 0);
                out.extend(lines.iter().map(|(_, text)| format!("      {}\n", text.trim())));
            }
        }
        let values = values(execution);
        if !values.is_empty() {
            let values = values.iter().take(VALUES);
            let values: Vec<String> =
                values.map(|(name, value)| format!("{name} = {value}")).collect();
            out += &format!("  where {}\n", values.join(", "));
        }
        out += before;
        out += &match asked.words.as_str() {
            THE_WAY => "What led here, nearest first:\n".into(),
            words => format!("Where {words} came from, nearest first:\n"),
        };
        let view = &explanation.view;
        let shown = if self.all { usize::MAX } else { SHOWN };
        let made = |number: &usize| self.all || !view.statements[*number].hands_on;
        let made: Vec<usize> = (0..view.statements.len()).filter(made).collect();
        for (place, number) in made.iter().take(shown).enumerate() {
            out += &text::statement(place + 1, &view.statements[*number], style);
            out += &text::reasons(view, *number, 1, style);
        }
        let hidden = view.statements.len() - made.len().min(shown);
        if hidden > 0 {
            out += &format!("  {hidden} more statements (most only hand values on); --all\n");
        }
        if view.statements.is_empty() {
            out += &without_source(execution, asked);
        }
        let command = shell::line(self.guest.command().iter().map(|part| part.to_string_lossy()));
        out += &format!(
            "Dig further: whydunit slice -- {command}   (everything, with control)\n             \
             whydunit slice --kind thin --at FILE:LINE#N --value EXPRESSION -- {command}\n             \
             whydunit slice --save FILE -- {command}, then whydunit step FILE\n"
        );
        out
    }
}
