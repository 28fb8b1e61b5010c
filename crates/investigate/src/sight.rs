//! Looking at a recorded process at chosen moments: its calls, and the values of expressions there.
//!
//! All of memory is there to be read, unlike in the report of a crash, which has only what the runner kept.

use crate::case::Case;
use crate::error::fault_or_input;
use crate::scene::{At, registers_of};
use base::{Address, Place, Position};
use replay::{Instant, StoppedProcess, Timeline};
use std::sync::Arc;
use symbols::{Level, Printing, Program, Scene};

/// Frames looked at.
const FRAMES: usize = 64;
/// A run of more ticks leaves checkpoints, so that not every moment is gone to from the start.
const LONG: u64 = 20_000_000;
/// Values are shown no longer than this.
const SHORT: Printing = Printing { depth: 2, elements: 6, text: 40, total: 60 };

/// What is longer than that is no help beside a statement.
const LONGEST: usize = 60;

/// A process that can be looked at.
pub struct Sight<'a> {
    case: &'a Case,
    line: Timeline,
    /// The files that were mapped when the program was last looked up, and the program.
    program: Option<(usize, Arc<Program>)>,
}

impl<'a> Sight<'a> {
    /// Of a process that ran for so many ticks.
    pub fn of(case: &'a Case, process: u32, ticks: u64) -> anyhow::Result<Self> {
        let mut line = case.timeline(process)?;
        if ticks > LONG {
            line.end().map_err(fault_or_input)?;
        }
        Ok(Self { case, line, program: None })
    }

    /// Of a process that has been gone through already.
    pub fn through(case: &'a Case, line: Timeline) -> Self {
        Self { case, line, program: None }
    }

    /// The replay that it looks through.
    pub(crate) fn line(&mut self) -> &mut Timeline {
        &mut self.line
    }

    /// Where the process ended.
    pub fn end(&mut self) -> anyhow::Result<StoppedProcess> {
        self.line.seek_end().map_err(fault_or_input)
    }

    /// At a position; nothing if nothing is executed there.
    pub fn at(&mut self, position: Position) -> anyhow::Result<Option<StoppedProcess>> {
        let wanted = Instant { time: position.tick.0, pc: Some(position.pc.0) };
        let standing = self.line.seek(wanted).map_err(fault_or_input)?;
        Ok((standing.instant() == wanted).then_some(standing))
    }

    /// Looks around where the process stands.
    pub fn look<R>(
        &mut self,
        standing: &StoppedProcess,
        look: impl FnOnce(&Scene<'_>) -> R,
    ) -> anyhow::Result<R> {
        let modules = standing.at.modules.len();
        let program = match &self.program {
            Some((known, program)) if *known == modules => program.clone(),
            _ => {
                let program = Arc::new(self.case.program(&standing.at.modules)?);
                self.program = Some((modules, program.clone()));
                program
            }
        };
        let memory = At(standing);
        let registers = registers_of(&standing.at.thread);
        let stack = program.unwind_at_most(&registers, &memory, FRAMES);
        let thread_pointer = Some(Address(standing.at.thread.bases[0]));
        Ok(look(&Scene { program: &program, memory: &memory, stack: &stack, thread_pointer }))
    }
}

/// The innermost call that is at a line of a function.
pub fn level_at(scene: &Scene<'_>, place: &Place) -> Option<Level> {
    let at_line = |call: &symbols::Call| {
        let line = call.line.as_ref();
        line.is_some_and(|line| {
            Some(&line.file) == place.file.as_ref() && Some(line.line) == place.line
        })
    };
    let in_function =
        |call: &symbols::Call| call.function.is_some() && call.function == place.function;
    let calls: Vec<symbols::Call> = scene.each_call().collect();
    let found = calls
        .iter()
        .find(|call| at_line(call))
        .or_else(|| calls.iter().find(|call| in_function(call)));
    found.map(|call| call.level)
}

/// The value of an expression, if it can be had.
pub fn value(scene: &Scene<'_>, level: Level, expression: &str) -> Option<String> {
    let value = scene.evaluate(level, expression).ok()?;
    if value.held.why_lost().is_some() || scene.bytes(&value).is_err() {
        return None;
    }
    let text = scene.print(&value, &SHORT);
    (text.chars().count() <= LONGEST && !text.contains("cannot be read")).then_some(text)
}

/// The parameters and variables of a call that can be had, at most so many.
pub fn variables(scene: &Scene<'_>, level: Level, most: usize) -> Vec<(String, String)> {
    let of_compiler = |name: &str| name.starts_with("__");
    let locals = scene.locals(level).into_iter();
    let shown = locals.filter(|local| !local.hidden && !of_compiler(&local.name));
    let shown = shown.filter_map(|local| {
        let value = scene.value_of(&local);
        let known = value.held.why_lost().is_none() && scene.bytes(&value).is_ok();
        known.then(|| (local.name, scene.print(&value, &SHORT)))
    });
    shown.take(most).collect()
}
