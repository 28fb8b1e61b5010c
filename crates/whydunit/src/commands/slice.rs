//! `whydunit slice`: what a value was made from.

use super::run::Guest;
use crate::exit::Exit;
use crate::render::{self, Output, pager};
use analyze::slice::ending::Asked;
use analyze::slice::view::Unfold;
use analyze::slice::{Follow, Slice as Answer, View};
use anyhow::{Context, bail};
use base::{Moment, Position, ThreadNumber};
use investigate::Case;
use investigate::slicing::ablation::Ablation;
use investigate::slicing::instructions::list;
use investigate::slicing::query::{Chop, NODES};
use investigate::slicing::{Execution, Query, save, windows};
use report::slice::{dot, instructions, text};
use report::style::Style;
use serde::Serialize;
use std::path::{Path, PathBuf};

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

A moment is PLACE (its last execution), PLACE#N (its N-th; #-1 the last), start, crash, end or @TICK,
each perhaps /THREAD; a value an
expression of the program, [ADDRESS,SIZE] or $register. Exit codes: 0 done, 2 wrong arguments or
input, 70 a fault of our own. More in docs/slicing.md.")]
pub struct Slice {
    /// The moment to look back from; the crash, or the end, if none is given
    #[arg(long, value_name = "MOMENT")]
    at: Option<Moment>,
    /// The same, but when the statement there has been executed; what it made if no value is given
    #[arg(long, value_name = "MOMENT", conflicts_with_all = ["at", "forward"])]
    after: Option<Moment>,
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
    chop: Option<Moment>,
    /// Of that moment only this value; everything that the statement made if none is given
    #[arg(long, value_name = "VALUE", requires = "chop")]
    chop_value: Vec<String>,
    /// Look back no further than this moment
    #[arg(long, value_name = "MOMENT")]
    from: Option<Moment>,
    /// Look no further than this moment
    #[arg(long, value_name = "MOMENT")]
    to: Option<Moment>,
    /// Only what these threads did
    #[arg(long, value_name = "THREAD", value_delimiter = ',')]
    threads: Vec<u32>,
    /// Which process, by its number in `whydunit info`; the one that failed, or the program, if not given
    #[arg(long, value_name = "N", conflicts_with = "events")]
    process: Option<u32>,
    /// Most dependences between the question and a statement
    #[arg(long, value_name = "N")]
    depth: Option<u32>,
    /// Most memory for what is kept of a recording; the rest is replayed again
    #[arg(long, value_name = "SIZE", value_parser = windows::size, default_value_t = windows::MEMORY)]
    memory: u64,
    /// Most executions of which dependences are shown; all are counted
    #[arg(long, value_name = "N", default_value_t = NODES)]
    nodes: usize,
    /// Follow saved and restored registers as if they were values
    #[arg(long)]
    no_bypass: bool,
    /// Do without what makes slices precise, to see what it is worth
    #[arg(long, value_enum, value_name = "WHAT", hide = true)]
    ablate: Option<AblationArgument>,
    /// Show code without source by itself, not as part of the call that led there: all of it, or
    /// that of a function
    #[arg(long, value_name = "FUNCTION", num_args = 0..=1, require_equals = true,
          default_missing_value = "")]
    unfold: Vec<String>,
    /// Show instructions instead of statements
    #[arg(long)]
    instructions: bool,
    /// Print JSON, alone on standard output
    #[arg(long)]
    json: bool,
    /// Write the answer to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
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

#[derive(Clone, Copy, clap::ValueEnum)]
enum AblationArgument {
    /// Where indirect jumps were seen to lead
    Jumps,
    /// In which frames jumps out of calls landed
    NonLocalJumps,
    /// Passing saved registers by
    Saves,
    /// That `xor r,r` and its like use nothing
    Idioms,
    /// Following copies byte for byte
    Copies,
}

impl From<AblationArgument> for Ablation {
    fn from(argument: AblationArgument) -> Self {
        match argument {
            AblationArgument::Jumps => Self::Jumps,
            AblationArgument::NonLocalJumps => Self::NonLocalJumps,
            AblationArgument::Saves => Self::Saves,
            AblationArgument::Idioms => Self::Idioms,
            AblationArgument::Copies => Self::Copies,
        }
    }
}

#[derive(Serialize)]
struct Report<'a> {
    question: &'a str,
    thread: ThreadNumber,
    step: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<Position>,
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
        let output = Output::answer(self.output.as_deref(), self.json || self.dot)?;
        let (query, notices) = (self.query(), render::notices());
        let (execution, asked, answer) = match &self.events {
            Some(events) => {
                query.ask(Execution::open(events, &self.guest.command()[0], &notices)?)?
            }
            None => {
                let case = Case::of(self.guest.job(), notices)?;
                let (process, late) = (case.process(self.process)?, self.may_be_late());
                let answered = query.ask_case(&case, process, self.memory, late)?;
                if let Some(file) = &self.save {
                    answered.0.complete()?;
                    self.save(&case, &answered, file)?;
                }
                answered
            }
        };
        execution.complete()?;
        self.show(output, &execution, (&asked, &answer))
    }

    /// Saves the answer as a recording of its own.
    fn save(
        &self,
        case: &Case,
        (execution, asked, answer): &(Execution, Asked, Answer),
        file: &Path,
    ) -> anyhow::Result<()> {
        let saved = save::save(case, execution, (asked, answer), file, self.force)?;
        render::note(&format!(
            "saved {} steps to {} ({} bytes): {} instructions are replayed, {} left out, of which \
             {} bytes of memory are put in place; step through it with whydunit step {}",
            // What was asked about is the last one.
            saved.stretches + 1,
            file.display(),
            saved.size,
            saved.kept,
            saved.skipped,
            saved.injected,
            file.display()
        ));
        Ok(())
    }

    fn show(
        &self,
        mut output: Output,
        execution: &Execution,
        (asked, answer): (&Asked, &Answer),
    ) -> anyhow::Result<Exit> {
        if self.instructions && !self.dot {
            let listed = list(execution, answer);
            let out = match self.json {
                true => report::json::result("slice", &listed),
                false => instructions::text(&listed),
            };
            output.write(&out)?;
            return Ok(Exit::Clean);
        }
        let view = execution.view(answer, self.unfolded());
        let shown = matches!(output, Output::Standard);
        let navigable =
            shown && view.statements.iter().any(|statement| statement.place.file.is_some());
        if navigable && !self.json && !self.dot && !self.no_pager && pager::is_possible() {
            pager::show(&asked.words, &view).context("the terminal")?;
            return Ok(Exit::Clean);
        }
        let out = if self.dot {
            dot::render(&asked.words, &view)
        } else if self.json {
            let report = Report {
                question: &asked.words,
                thread: execution.thread(asked.thread, execution.trace.tick()),
                step: asked.moment.0,
                position: execution.position(asked.moment),
                executions: answer.executions(),
                instructions_walked: answer.walked,
                bypassed_registers: answer.bypassed,
                view: &view,
            };
            report::json::result("slice", &report)
        } else {
            self.text(execution, (asked, answer), &view, output.style())
                + &without_source(execution, answer, &view).unwrap_or_default()
        };
        output.write(&out)?;
        Ok(Exit::Clean)
    }

    /// What is asked, without how it is shown.
    fn query(&self) -> Query {
        let chop = |at: &Moment| Chop { at: at.clone(), values: self.chop_value.clone() };
        Query {
            at: self.at.as_ref().or(self.after.as_ref()).cloned(),
            after: self.after.is_some(),
            values: self.value.clone(),
            forward: self.forward,
            prune: self.prune.clone(),
            chop: self.chop.as_ref().map(chop),
            from: self.from.clone(),
            to: self.to.clone(),
            threads: self.threads.iter().copied().map(ThreadNumber).collect(),
            depth: self.depth.unwrap_or(u32::MAX),
            nodes: self.nodes,
            bypass: !self.no_bypass,
            ablation: self.ablate.map(Ablation::from),
            ..Query::new(self.kind.into())
        }
    }

    /// Whether the answer is shown without numbers that are counted from the beginning.
    fn may_be_late(&self) -> bool {
        !(self.json || self.instructions || self.save.is_some())
    }

    fn unfolded(&self) -> Unfold {
        match &self.unfold[..] {
            [] => Unfold::Nothing,
            names if names.iter().any(String::is_empty) => Unfold::All,
            names => Unfold::Functions(names.to_vec()),
        }
    }

    fn text(
        &self,
        execution: &Execution,
        (asked, answer): (&Asked, &Answer),
        view: &View,
        style: Style,
    ) -> String {
        let (statements, executions) = (view.statements.len(), answer.executions());
        let cut = match view.cut {
            true => format!(
                ", cut: only the {} executions nearest to it are shown, --nodes N shows more",
                self.nodes
            ),
            false => String::new(),
        };
        let mut out = format!(
            "{}: {statements} statements, {executions} of {} instructions looked at{cut}\n",
            asked.words, answer.walked
        );
        if view.statements.is_empty() {
            out += "nobody wrote it: it is as it was when the program was loaded\n";
        }
        if let Some((windows, all)) = execution.observed {
            out += &format!(
                "(nothing before the last {windows} of {all} parts of the recording was needed; \
                 #-1 is a last execution)\n"
            );
        }
        out + &text::statements(view, !self.unfold.is_empty(), style)
    }
}

/// The instructions nearest to the question, where no statement has source.
fn without_source(execution: &Execution, answer: &Answer, view: &View) -> Option<String> {
    if view.statements.iter().any(|statement| statement.place.file.is_some()) {
        return None;
    }
    let listed = instructions::text(&list(execution, answer));
    Some(instructions::nearest(&listed, SHOWN, "--instructions"))
}
