//! Goes from step to step of a saved slice. The slice is replayed: what is looked at is the program
//! itself, standing still.

use crate::case::Case;
use crate::error::fault_or_input;
use crate::notices::Notices;
use crate::scene::{At, Seen, registers_of};
use crate::threads::Threads;
use anyhow::{Context, bail};
use base::{Address, ProcessNumber, ThreadNumber, Tick};
use replay::slices::{KeptStretch, steps};
use replay::{StoppedProcess, Timeline};
use std::path::Path;
use symbols::{Level, Printing, Program, Scene};

/// Frames that are looked at.
const FRAMES: usize = 40;

/// A slice, and where in it one is.
pub struct Stepper {
    /// What it is a slice of.
    pub about: String,
    /// Its steps; the last is what was asked about.
    pub steps: Vec<KeptStretch>,
    pub(super) line: Timeline,
    case: Case,
    threads: Threads,
    program: Program,
    modules: usize,
    at: usize,
    /// Before the statement, and after it.
    before: StoppedProcess,
    after: Option<StoppedProcess>,
}

impl Stepper {
    /// Opens a saved slice, at its first step.
    pub fn open(file: &Path, notices: Notices) -> anyhow::Result<Self> {
        let case = Case::open(file, notices)?;
        let Some(about) = case.recording().meta().slice.clone() else {
            bail!(
                "{} is a recording, not a slice; make one with whydunit slice --save FILE {}",
                file.display(),
                file.display()
            );
        };
        let unreadable = || format!("{} cannot be read", file.display());
        let steps = steps(case.recording()).with_context(unreadable)?;
        let first = steps.first().with_context(|| format!("{} has no steps", file.display()))?;
        let mut line = case.timeline(0)?;
        let before = line.seek(first.start).map_err(fault_or_input)?;
        let program = case.program(&[])?;
        let threads = Threads::of(case.recording(), 0);
        let mut stepper = Self {
            about,
            steps,
            line,
            case,
            threads,
            program,
            modules: 0,
            at: 0,
            before,
            after: None,
        };
        stepper.look()?;
        Ok(stepper)
    }

    /// The number of the step, from 0.
    pub fn at(&self) -> usize {
        self.at
    }

    /// The step.
    pub fn step(&self) -> &KeptStretch {
        &self.steps[self.at]
    }

    /// The program's files.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The number of a thread, which the kernel had given this id at a step.
    pub fn thread(&self, step: &KeptStretch) -> ThreadNumber {
        self.threads.number(step.thread, Tick(step.start.time))
    }

    /// What there is to see before the statement.
    pub fn seen(&self) -> Seen {
        Seen::with(&self.program, &self.threads, ProcessNumber(0), &self.before)
    }

    /// Goes to a step, or as near as there is one.
    pub fn go(&mut self, to: usize) -> anyhow::Result<()> {
        let to = to.min(self.steps.len() - 1);
        if to != self.at {
            self.at = to;
            self.before = self.line.seek(self.step().start).map_err(fault_or_input)?;
            self.look()?;
        }
        Ok(())
    }

    fn look(&mut self) -> anyhow::Result<()> {
        self.after = match self.step().end {
            Some(end) => Some(self.line.seek(end).map_err(fault_or_input)?),
            None => None,
        };
        if self.before.at.modules.len() != self.modules {
            self.modules = self.before.at.modules.len();
            self.program = self.case.program(&self.before.at.modules)?;
        }
        Ok(())
    }

    /// Looks at the program before the statement.
    pub fn with_before<R>(&self, look: impl FnOnce(&Scene<'_>) -> R) -> R {
        self.with(&self.before, look)
    }

    /// Looks at the program after it, if it was executed.
    pub fn with_after<R>(&self, look: impl FnOnce(&Scene<'_>) -> R) -> Option<R> {
        self.after.as_ref().map(|after| self.with(after, look))
    }

    fn with<R>(&self, standing: &StoppedProcess, look: impl FnOnce(&Scene<'_>) -> R) -> R {
        let memory = At(standing);
        let registers = registers_of(&standing.at.thread);
        let stack = self.program.unwind_at_most(&registers, &memory, FRAMES);
        let thread_pointer = Some(Address(standing.at.thread.bases[0]));
        look(&Scene { program: &self.program, memory: &memory, stack: &stack, thread_pointer })
    }

    /// The value of an expression.
    pub fn print(&self, expression: &str, after: bool) -> anyhow::Result<String> {
        if expression.is_empty() {
            bail!("print what? An expression of the program, such as p->next");
        }
        let printed = |scene: &Scene<'_>, level: Level| -> anyhow::Result<String> {
            let value = scene.evaluate(level, expression)?;
            Ok(format!("{expression} = {}", scene.print(&value, &Printing::default())))
        };
        if !after {
            return self.with_before(|scene| printed(scene, Level::default()));
        }
        let frame = self.with_before(own_frame);
        let told = self.with_after(|scene| {
            let level = same_frame(scene, frame).context("its function has returned")?;
            printed(scene, level)
        });
        told.context("what was asked about has not been executed")?
    }
}

/// What tells the frame of a statement from others: where it began.
pub fn own_frame(scene: &Scene<'_>) -> Option<Address> {
    scene.stack.frames.first().and_then(|frame| frame.cfa)
}

/// That frame later on, if it is still there.
pub fn same_frame(scene: &Scene<'_>, frame: Option<Address>) -> Option<Level> {
    let frame = frame?;
    let index = scene.stack.frames.iter().position(|other| other.cfa == Some(frame))?;
    Some(Level { frame: index, inlined: 0 })
}
