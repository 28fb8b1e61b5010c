//! `whydunit slice`: what a value was made from.

use super::run::Guest;
use super::slicing::execution::Execution;
use super::slicing::without::{self, Without};
use super::slicing::{dot, instructions, late, pager, save, text, windows};
use crate::exit::Exit;
use crate::render;
use crate::render::style::Style;
use analyze::dependence::control::Control;
use analyze::slice::ending::Asked;
use analyze::slice::view::{Unfold, Viewer, has_source};
use analyze::slice::{Follow, Slice as Answer, View};
use anyhow::{Context, bail};
use serde::Serialize;
use std::path::PathBuf;

/// Instructions shown of a program without source, unless all are asked for.
const SHOWN: usize = 40;

/// Arguments of `whydunit slice`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  whydunit slice -- ./prog input             from the crash back, everything that took part
  whydunit slice --kind thin --at list.c:41#3 --value node -- ./prog
  whydunit slice --forward --at parse.c:12#1 --value length -- ./prog    what came of it
  whydunit slice --chop parse.c:12#1 -- ./prog input     how that led to the crash
  whydunit slice --events run.ev --value total --json -- ./prog

A moment is PLACE#N (its N-th execution; #last), crash, end or @T, each perhaps /THREAD; a value an
expression of the program, [ADDRESS,SIZE] or $register. Exit codes: 0 done, 2 wrong arguments or
input, 70 a fault of our own. More in docs/slicing.md.")]
pub struct Slice {
    /// The moment to look back from; the crash, or the end, if none is given
    #[arg(long, value_name = "MOMENT")]
    at: Option<String>,
    /// A value at that moment; everything that the statement used if none is given
    #[arg(long, value_name = "VALUE")]
    value: Vec<String>,
    /// Which dependences to follow
    #[arg(long, value_enum, default_value = "full")]
    kind: KindArgument,
    /// Leave out what comes from this value
    #[arg(long, value_name = "VALUE")]
    prune: Vec<String>,
    /// What came of the value, instead of what it came from
    #[arg(long)]
    forward: bool,
    /// Only what came of this moment: what lies between it and the value
    #[arg(long, value_name = "MOMENT", conflicts_with = "forward")]
    chop: Option<String>,
    /// Of that moment only this value; everything that the statement made if none is given
    #[arg(long, value_name = "VALUE", requires = "chop")]
    chop_value: Vec<String>,
    /// Look back no further than this moment
    #[arg(long, value_name = "MOMENT")]
    from: Option<String>,
    /// Look no further than this moment
    #[arg(long, value_name = "MOMENT")]
    to: Option<String>,
    /// Only what these threads did
    #[arg(long, value_name = "THREAD", value_delimiter = ',')]
    threads: Vec<u32>,
    /// Most dependences between the question and a statement
    #[arg(long, value_name = "N")]
    depth: Option<u32>,
    /// Most memory for what is kept of a recording; the rest is replayed again
    #[arg(long, value_name = "SIZE", value_parser = windows::size, default_value_t = windows::MEMORY)]
    memory: u64,
    /// Most executions of which dependences are shown; all are counted
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    nodes: usize,
    /// Follow saved and restored registers as if they were values
    #[arg(long)]
    no_bypass: bool,
    /// Do without what makes slices precise, to see what it is worth
    #[arg(long, value_enum, value_name = "WHAT", hide = true)]
    without: Option<Without>,
    /// Show code without source by itself, not as part of the call that led there: all of it, or
    /// that of a function
    #[arg(long, value_name = "FUNCTION", num_args = 0..=1, require_equals = true,
          default_missing_value = "")]
    unfold: Vec<String>,
    /// Show instructions instead of statements
    #[arg(long)]
    instructions: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print a graph for Graphviz
    #[arg(long, conflicts_with = "json")]
    dot: bool,
    /// Print text even if there is a terminal to walk through the slice in
    #[arg(long)]
    no_pager: bool,
    /// Do not run the program: these are its events, saved by `whydunit run --save-events`
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// Save it as a recording of its own, for `whydunit step`
    #[arg(long, value_name = "FILE", conflicts_with = "events")]
    save: Option<PathBuf>,
    /// Overwrite a file that is there
    #[arg(short, long, requires = "save")]
    force: bool,
    #[command(flatten)]
    guest: Guest,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum KindArgument {
    /// Values alone
    Thin,
    /// Values and addresses
    Data,
    /// Values, addresses and control
    Full,
}

impl From<KindArgument> for Follow {
    fn from(argument: KindArgument) -> Self {
        match argument {
            KindArgument::Thin => Self::Thin,
            KindArgument::Data => Self::Data,
            KindArgument::Full => Self::Full,
        }
    }
}

#[derive(Serialize)]
struct Report<'a> {
    question: &'a str,
    thread: u32,
    moment: u64,
    executions: u64,
    instructions_walked: u64,
    bypassed_registers: u64,
    #[serde(flatten)]
    view: &'a View,
}

impl Slice {
    /// Runs the program, or reads what was saved, and answers.
    pub fn run(self) -> anyhow::Result<Exit> {
        if let Some(file) = self.save.as_ref().filter(|file| !self.force && file.exists()) {
            bail!("{} is there already; --force overwrites it", file.display());
        }
        let mut known = None;
        let mut execution = match &self.events {
            Some(events) => Execution::open(events, &self.guest.command()[0])?,
            None if self.may_be_late() => {
                let ask = |execution: &Execution| self.late_answer(execution);
                let (execution, answer) = Execution::run_late(&self.guest, self.memory, ask)?;
                known = answer;
                execution
            }
            None => Execution::run(&self.guest, self.memory)?,
        };
        if let Some(without) = self.without {
            without::coarsen(&mut execution.trace, &execution.program, without);
        }
        let (asked, answer) = match known {
            Some(known) => known,
            None => {
                let asked = self.asked(&execution)?;
                let answer = self.answer(&execution, &asked)?;
                (asked, answer)
            }
        };
        execution.complete()?;
        if let (Some(recording), Some(file)) = (execution.recording(), &self.save) {
            save::save(recording, &execution, (&asked, &answer), file, self.force)?;
        }
        if self.instructions && !self.dot {
            let listed = instructions::list(&execution, &answer);
            let out = if self.json { listed.json()? } else { listed.text() };
            render::print(&out).context("standard output")?;
            return Ok(Exit::Clean);
        }
        let viewer = Viewer::new(&execution.trace, &execution.program).unfolding(self.unfolded());
        let view = { viewer }.view(&answer);
        let navigable = view.statements.iter().any(|statement| statement.place.file.is_some());
        if navigable && !self.json && !self.dot && !self.no_pager && pager::is_possible() {
            pager::show(&asked.words, &view).context("the terminal")?;
            return Ok(Exit::Clean);
        }
        let out = if self.dot {
            dot::render(&asked.words, &view)
        } else if self.json {
            let report = Report {
                question: &asked.words,
                thread: asked.thread,
                moment: asked.moment.0,
                executions: answer.executions(),
                instructions_walked: answer.walked,
                bypassed_registers: answer.bypassed,
                view: &view,
            };
            serde_json::to_string_pretty(&report)? + "\n"
        } else {
            self.text(&execution, (&asked, &answer), &view)
                + &self.without_source(&execution, &answer, &view).unwrap_or_default()
        };
        render::print(&out).context("standard output")?;
        Ok(Exit::Clean)
    }

    /// Whether the question can be asked of the end of a run alone: it begins there, follows no
    /// control, and its answer needs no numbers counted from the beginning.
    fn may_be_late(&self) -> bool {
        let from_end = self.at.as_deref().is_none_or(|at| {
            let counted = at.split_once('#').is_none_or(|(_, n)| n == "last" || n.starts_with('-'));
            counted && !at.starts_with('@')
        });
        from_end
            && !matches!(self.kind, KindArgument::Full)
            && !(self.forward || self.json || self.instructions)
            && [&self.from, &self.to, &self.chop].iter().all(|moment| moment.is_none())
            && self.without.is_none()
            && self.save.is_none()
            && self.events.is_none()
    }

    /// The answer from the end of a run, if that is enough for it.
    fn late_answer(&self, execution: &Execution) -> anyhow::Result<Option<(Asked, Answer)>> {
        let asked = self.asked(execution)?;
        if asked.wants.control.is_some() {
            return Ok(None);
        }
        let answer = self.answer(execution, &asked)?;
        Ok((!answer.is_open).then_some((asked, answer)))
    }

    fn unfolded(&self) -> Unfold {
        match &self.unfold[..] {
            [] => Unfold::Nothing,
            names if names.iter().any(String::is_empty) => Unfold::All,
            names => Unfold::Functions(names.to_vec()),
        }
    }

    fn asked(&self, execution: &Execution) -> anyhow::Result<Asked> {
        let at = self.at.as_deref();
        if self.forward {
            let at = at.or(self.from.as_deref());
            return execution
                .asked_forward(at.context("--forward needs --at MOMENT")?, &self.value);
        }
        execution.asked(at.or(self.to.as_deref()), &self.value)
    }

    fn answer(&self, execution: &Execution, asked: &Asked) -> anyhow::Result<Answer> {
        let follow = Follow::from(self.kind);
        let needs_control = follow == Follow::Full || asked.wants.control.is_some();
        let control = needs_control.then(|| Control::of(&execution.trace, &execution.program));
        let foreign = |pc| !has_source(&execution.program, pc);
        let mut question = asked.question(follow);
        question.control = control.as_ref();
        question.foreign = Some(&foreign);
        question.threads.clone_from(&self.threads);
        question.nodes = self.nodes.max(1);
        question.depth = self.depth.unwrap_or(u32::MAX);
        question.bypass = !self.no_bypass && self.without != Some(Without::Saves);
        if let Some(from) = &self.from {
            question.from = execution.moment(from)?.moment;
        }
        if !self.prune.is_empty() {
            let found = execution.moment(self.at.as_deref().unwrap_or("end"))?;
            let mut pruned = analyze::slice::Wants::default();
            for value in &self.prune {
                execution.want(&found, value, &mut pruned)?;
            }
            (question.prune_parts, question.prune_memory) = (pruned.parts, pruned.memory);
        }
        if execution.trace.starts_late {
            // What nobody can have written need not be looked for.
            question.prune_memory.extend(late::constants(&execution.program));
        }
        if let Some(to) = &self.to {
            question.to = execution.moment(to)?.moment;
        }
        if self.forward {
            return Ok(question.forward(&execution.trace).0);
        }
        let Some(chop) = &self.chop else { return Ok(question.answer(&execution.trace)) };
        let start = execution.asked_forward(chop, &self.chop_value)?;
        let mut from = start.question(follow);
        (from.control, from.to, from.nodes) = (question.control, question.moment, 0);
        from.threads.clone_from(&question.threads);
        let (_, between) = from.forward(&execution.trace);
        question.from = question.from.max(start.moment);
        question.within = Some(&between);
        Ok(question.answer(&execution.trace))
    }

    /// The instructions nearest to the question, where no statement has source.
    fn without_source(
        &self,
        execution: &Execution,
        answer: &Answer,
        view: &View,
    ) -> Option<String> {
        if view.statements.iter().any(|statement| statement.place.file.is_some()) {
            return None;
        }
        let listed = instructions::list(execution, answer).text();
        Some(instructions::nearest(&listed, SHOWN, "--instructions"))
    }

    fn text(
        &self,
        execution: &Execution,
        (asked, answer): (&Asked, &Answer),
        view: &View,
    ) -> String {
        let style = Style::of(&std::io::stdout());
        let (statements, executions) = (view.statements.len(), answer.executions());
        let mut out = format!(
            "{}: {statements} statements, {executions} of {} instructions looked at\n",
            asked.words, answer.walked
        );
        if let Some((windows, all)) = execution.observed {
            out += &format!(
                "(nothing before the last {windows} of {all} parts of the recording was needed; \
                 #-1 is a last execution)\n"
            );
        }
        for (number, statement) in view.statements.iter().enumerate() {
            out += &text::statement(number + 1, statement, style);
            out += &text::reasons(view, number, text::MOST_REASONS, style);
        }
        if view.cut {
            out += &format!(
                "dependences are shown for the {} executions nearest to the question; --nodes N \
                 shows more\n",
                self.nodes
            );
        }
        out
    }
}
