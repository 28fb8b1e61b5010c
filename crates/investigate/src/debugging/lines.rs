//! Steps by lines of source, both ways: into calls, over them, and out of them. gdb does this itself; other clients
//! leave it to us.

use super::bytecode::Condition;
use super::conditions::{calls_before, lies_in};
use super::{Debugger, Patience, Stop};
use crate::error::fault_or_input;
use base::{Address, Range, ThreadNumber};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};
use replay::StoppedProcess;

/// How far a step goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stride {
    /// Into calls of code that has source.
    Into,
    /// Over calls.
    Over,
    /// Until the function has returned, or backwards: to where it was called.
    Out,
}

/// Single steps of one step by lines, after which it stops where it is.
const MOST: usize = 20_000;

impl Debugger<'_> {
    /// One step by lines.
    pub fn step_line(
        &mut self,
        thread: ThreadNumber,
        (stride, back): (Stride, bool),
        patience: Patience<'_>,
    ) -> anyhow::Result<Stop> {
        match (stride, back) {
            (Stride::Out, false) => self.step_out(thread, patience),
            (Stride::Out, true) => self.step_out_back(),
            (_, false) => self.line_forwards(thread, stride, patience),
            (_, true) => self.line_backwards(thread, stride, patience),
        }
    }

    /// The code of the line that is being executed, in this function; the function's if it has no lines.
    fn own_code(&mut self) -> anyhow::Result<Vec<Range>> {
        let pc = Address(self.thread().pc);
        let program = self.program()?;
        let Some(found) = program.line_at(pc) else { return Ok(vec![Range::new(pc.0, 1)]) };
        let function = program.function_at(pc).map(|function| function.ranges).unwrap_or_default();
        let own = |range: &Range| {
            program.lines_in(*range).into_iter().filter(|line| {
                (&line.line.file, line.line.line) == (&found.line.file, found.line.line)
            })
        };
        let ranges: Vec<Range> = function.iter().flat_map(own).map(|line| line.range).collect();
        Ok(if ranges.is_empty() { vec![found.range] } else { ranges })
    }

    fn line_forwards(
        &mut self,
        thread: ThreadNumber,
        stride: Stride,
        patience: Patience<'_>,
    ) -> anyhow::Result<Stop> {
        let mut own = self.own_code()?;
        for _ in 0..MOST {
            if patience() {
                return Ok(Stop::Interrupted);
            }
            let instruction = self.instruction();
            let stack = self.thread().general[4];
            let stop = self.step(thread)?;
            if stop != Stop::Moved {
                return Ok(stop);
            }
            let called = is_call(&instruction);
            if called && (stride == Stride::Over || !self.has_source()?) {
                let stop = self.run_to(thread, instruction.next_ip(), stack, patience)?;
                if stop != Stop::Moved {
                    return Ok(stop);
                }
            } else if called {
                return self.past_prologue(thread);
            }
            let pc = self.thread().pc;
            if lies_in(&own, pc) {
                continue;
            }
            if self.begins_line()? {
                return Ok(Stop::Moved);
            }
            // In the middle of another statement: a return. That one is finished first.
            own = self.own_code()?;
        }
        Ok(Stop::Moved)
    }

    fn line_backwards(
        &mut self,
        thread: ThreadNumber,
        stride: Stride,
        patience: Patience<'_>,
    ) -> anyhow::Result<Stop> {
        let mut own = self.own_code()?;
        let mut left = false;
        for _ in 0..MOST {
            if patience() {
                return Ok(Stop::Interrupted);
            }
            let here = self.line.copy(&self.at).map_err(fault_or_input)?;
            let stop = self.step_back(thread)?;
            if stop != Stop::Moved {
                return Ok(stop);
            }
            let returned = self.instruction().flow_control() == FlowControl::Return;
            if returned
                && (stride == Stride::Over || !self.has_source()?)
                && self.go_to_call_of(&here)?
            {
                continue;
            }
            let pc = self.thread().pc;
            if lies_in(&own, pc) {
                continue;
            }
            if left {
                // Behind the beginning of the line that was gone back into.
                self.at = here;
                return Ok(Stop::Moved);
            }
            left = true;
            own = self.own_code()?;
            if self.begins_line()? && !self.is_preceded_by(&own, thread)? {
                return Ok(Stop::Moved);
            }
        }
        Ok(Stop::Moved)
    }

    /// Whether the instruction before the present is of some code.
    fn is_preceded_by(&mut self, code: &[Range], thread: ThreadNumber) -> anyhow::Result<bool> {
        let here = self.line.copy(&self.at).map_err(fault_or_input)?;
        let stop = self.step_back(thread)?;
        let pc = self.at.at.thread.pc;
        let returned = self.instruction().flow_control() == FlowControl::Return;
        // Behind a call of the same line it goes on with the line.
        let called = || calls_before(&here, here.at.thread.pc).iter().any(|it| lies_in(code, *it));
        let preceded = lies_in(code, pc) || returned && called();
        self.at = here;
        Ok(stop == Stop::Moved && preceded)
    }

    /// From a return back to the call that it belongs to. Whether there is one.
    fn go_to_call_of(&mut self, behind: &StoppedProcess) -> anyhow::Result<bool> {
        let (back, stack) = (behind.at.thread.pc, behind.at.thread.general[4]);
        let calls = calls_before(behind, back);
        if calls.is_empty() {
            return Ok(false);
        }
        let found = self.last_of(&calls, behind, |call| call.at.thread.general[4] == stack)?;
        let Some(found) = found else { return Ok(false) };
        self.at = self.line.seek(found).map_err(fault_or_input)?;
        Ok(true)
    }

    fn step_out(&mut self, thread: ThreadNumber, patience: Patience<'_>) -> anyhow::Result<Stop> {
        let caller = self.with_scene(Some(thread), |scene| {
            let own = scene.stack.frames.first()?.cfa?;
            Some((own.0, scene.stack.frames.get(1)?.pc.0))
        })?;
        let Some((own, back)) = caller else { return self.resume(patience) };
        self.run_to(thread, back, own, patience)
    }

    /// Back to the call that led into the function that is being executed.
    fn step_out_back(&mut self) -> anyhow::Result<Stop> {
        let caller = self.with_scene(None, |scene| {
            let own = scene.stack.frames.first()?.cfa?;
            Some((own.0, scene.stack.frames.get(1)?.pc.0))
        })?;
        let Some((own, back)) = caller else { return Ok(Stop::Beginning) };
        let here = self.line.copy(&self.at).map_err(fault_or_input)?;
        let calls = calls_before(&here, back);
        let found = self.last_of(&calls, &here, |call| call.at.thread.general[4] == own)?;
        let Some(found) = found else { return Ok(Stop::Beginning) };
        self.at = self.line.seek(found).map_err(fault_or_input)?;
        Ok(Stop::Moved)
    }

    /// Goes on to behind an instruction that a thread is about to execute, over all that it leads to.
    pub fn run_past(
        &mut self,
        thread: ThreadNumber,
        patience: Patience<'_>,
    ) -> anyhow::Result<Stop> {
        let (next, stack) = (self.instruction().next_ip(), self.thread().general[4]);
        self.run_to(thread, next, stack, patience)
    }

    /// Goes on to where a thread comes to an address with its stack at least so high, or to what stops it before.
    fn run_to(
        &mut self,
        thread: ThreadNumber,
        pc: u64,
        stack: u64,
        patience: Patience<'_>,
    ) -> anyhow::Result<Stop> {
        let kernel = self.kernel_number(thread)?;
        let arrived = |debugger: &Self| {
            let data = debugger.thread();
            data.pc == pc && data.number == kernel && data.general[4] >= stack
        };
        if arrived(self) {
            return Ok(Stop::Moved);
        }
        let own = self.breakpoints.insert(pc, Vec::new());
        let stop = loop {
            match self.resume(patience) {
                Ok(Stop::Breakpoint) if arrived(self) => break Ok(Stop::Moved),
                Ok(Stop::Breakpoint) if self.thread().pc == pc && !self.breaks_by(&own) => {}
                other => break other,
            }
        };
        self.breakpoints.remove(&pc);
        self.breakpoints.extend(own.map(|own| (pc, own)));
        stop
    }

    /// Whether a breakpoint that was here before, if there was one, stops it here.
    fn breaks_by(&mut self, own: &Option<Vec<Condition>>) -> bool {
        let Some(own) = own else { return false };
        let pc = self.thread().pc;
        let ours = self.breakpoints.insert(pc, own.clone());
        let breaks = self.breaks(&self.thread(), |address, into| self.read(address, into));
        self.breakpoints.extend(ours.map(|ours| (pc, ours)));
        breaks
    }

    /// Into a function's body, where its variables have their places.
    fn past_prologue(&mut self, thread: ThreadNumber) -> anyhow::Result<Stop> {
        let pc = Address(self.thread().pc);
        let program = self.program()?;
        let Some(name) = program.function_at(pc).map(|function| function.name) else {
            return Ok(Stop::Moved);
        };
        let found =
            name.parse().ok().and_then(|place| program.resolve(&place).ok()).unwrap_or_default();
        let body = found.iter().find(|it| it.entry == pc).map(|it| it.address.0);
        let Some(body) = body else { return Ok(Stop::Moved) };
        for _ in 0..64 {
            if self.thread().pc == body {
                break;
            }
            let stop = self.step(thread)?;
            if stop != Stop::Moved {
                return Ok(stop);
            }
        }
        Ok(Stop::Moved)
    }

    /// The instruction that is about to be executed.
    pub fn instruction(&self) -> Instruction {
        let pc = self.thread().pc;
        let mut bytes = [0; 15];
        let got = self.read(pc, &mut bytes);
        Decoder::with_ip(64, &bytes[..got], pc, DecoderOptions::NONE).decode()
    }

    fn has_source(&mut self) -> anyhow::Result<bool> {
        let pc = Address(self.thread().pc);
        Ok(self.program()?.line_at(pc).is_some())
    }

    /// Whether a line begins with the instruction that is about to be executed.
    fn begins_line(&mut self) -> anyhow::Result<bool> {
        let pc = Address(self.thread().pc);
        Ok(self.program()?.line_at(pc).is_some_and(|line| line.range.start == pc))
    }
}

fn is_call(instruction: &Instruction) -> bool {
    matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall)
}
