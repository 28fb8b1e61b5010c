//! What there is to see where a debugger stands: the program, active calls, variables, values.

use super::Debugger;
use crate::scene::registers_of;
use anyhow::Context;
use base::{Address, ModuleMap, Place, PlaceName, ThreadNumber};
use recording::log::ThreadData;
use replay::StoppedProcess;
use std::sync::Arc;
use symbols::{Level, Memory, Printing, Program, Scene};

/// Frames that are unwound at most.
const FRAMES: usize = 1000;

/// Memory as a debugger shows it.
struct Shown<'a, 'case>(&'a Debugger<'case>);

impl Memory for Shown<'_, '_> {
    fn read(&self, address: Address, into: &mut [u8]) -> bool {
        self.0.read(address.0, into) == into.len()
    }
}

/// A thread to look at: which one, its registers, and how many of its calls.
#[derive(Clone, Copy)]
pub(super) struct Eye<'a> {
    pub thread: &'a ThreadData,
    pub frames: usize,
}

/// Whether the same files are loaded in the same places.
fn are_same(known: &[ModuleMap], other: &[ModuleMap]) -> bool {
    let place = |map: &ModuleMap| (map.start, map.end, map.offset);
    known.len() == other.len()
        && known.iter().zip(other).all(|(a, b)| place(a) == place(b) && a.path == b.path)
}

/// Looks at a thread in some memory.
pub(super) fn look<R>(
    program: &Program,
    memory: &dyn Memory,
    eye: Eye<'_>,
    look: impl FnOnce(&Scene<'_>) -> R,
) -> R {
    let stack = program.unwind_at_most(&registers_of(eye.thread), memory, eye.frames);
    let thread_pointer = Some(Address(eye.thread.bases[0]));
    look(&Scene { program, memory, stack: &stack, thread_pointer })
}

impl Debugger<'_> {
    /// The program as it is loaded where the debugger stands.
    pub fn program(&mut self) -> anyhow::Result<Arc<Program>> {
        let modules = self.modules().to_vec();
        self.program_of(&modules)
    }

    pub(super) fn program_of(&mut self, modules: &[ModuleMap]) -> anyhow::Result<Arc<Program>> {
        if let Some((known, program)) = &self.known
            && are_same(known, modules)
        {
            return Ok(program.clone());
        }
        let program = Arc::new(self.case.program(modules)?);
        self.known = Some((modules.to_vec(), program.clone()));
        Ok(program)
    }

    /// The program with all code that it ever had, which moments and places are about.
    pub fn whole_program(&mut self) -> anyhow::Result<Arc<Program>> {
        if let Some(program) = &self.whole {
            return Ok(program.clone());
        }
        let end = self.line.end().map_err(crate::error::fault_or_input)?.modules.clone();
        let program = Arc::new(self.case.program(&end)?);
        self.whole = Some(program.clone());
        Ok(program)
    }

    /// Where the code of a place begins.
    pub fn addresses(&mut self, place: &PlaceName) -> anyhow::Result<Vec<u64>> {
        crate::moments::addresses(&*self.whole_program()?, place)
    }

    /// Looks at a thread, the running one if none is said.
    pub fn with_scene<R>(
        &mut self,
        thread: Option<ThreadNumber>,
        wanted: impl FnOnce(&Scene<'_>) -> R,
    ) -> anyhow::Result<R> {
        let data = match thread.filter(|thread| *thread != self.running()) {
            None => self.thread(),
            Some(thread) => {
                let all = self.threads()?;
                let found = all.into_iter().find(|(number, _)| *number == thread);
                found.with_context(|| format!("there is no thread {thread}"))?.1
            }
        };
        let program = self.program()?;
        Ok(look(&program, &Shown(self), Eye { thread: &data, frames: FRAMES }, wanted))
    }

    /// The value of an expression in one of the active calls, as text.
    pub fn print(
        &mut self,
        thread: Option<ThreadNumber>,
        level: Level,
        text: &str,
    ) -> anyhow::Result<String> {
        self.with_scene(thread, |scene| {
            let value = scene.evaluate(level, text)?;
            Ok(scene.print(&value, &Printing::default()))
        })?
    }

    /// Where the running thread is.
    pub fn place(&mut self) -> anyhow::Result<Place> {
        let pc = Address(self.thread().pc);
        Ok(self.program()?.symbolise(pc).place())
    }

    /// Looks at the innermost call of a process that stands somewhere else.
    pub(super) fn with_standing<R>(
        &mut self,
        standing: &StoppedProcess,
        wanted: impl FnOnce(&Scene<'_>) -> R,
    ) -> anyhow::Result<R> {
        let program = self.program_of(&standing.at.modules)?;
        let eye = Eye { thread: &standing.at.thread, frames: 1 };
        Ok(look(&program, &crate::scene::At(standing), eye, wanted))
    }
}
