//! Changing the past: a decision that goes the other way, a statement left out, a value set. From there on the program
//! runs by itself, in a **diversion**, which can be stopped and looked at like the recording. Going backwards, or
//! to any moment, leaves it, and the recording is as it was.

use super::points::{Point, Reason};
use super::{Debugger, Stop};
use crate::whatif::{Altered, Answer, Prepared, WhatIf};
use anyhow::{Context, ensure};
use base::moment::Instant as Written;
use base::{Moment, Nth, PlaceName, ThreadNumber};
use events::patch::{Action, Patch};
use recording::log::ThreadData;
use replay::Instant;
use replay::diversion::{Budget, Diversion, DiversionEnd, Goal};
use std::ops::Range;

/// Which executions of a place are altered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The next one and all behind it.
    All,
    /// The next one.
    Once,
    /// One, by its number in the recording.
    Nth(u64),
}

/// What becomes of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Its decision goes the other way.
    Switch,
    /// It is left out.
    Suppress,
}

/// A run that has left the recording.
pub(super) struct Away {
    diversion: Diversion,
    /// Where it left.
    left: Instant,
    words: String,
    /// What is altered all the time.
    patches: Vec<Patch>,
    /// What a client wants general registers and the next instruction to be.
    wanted: Option<([u64; 16], u64)>,
}

/// How much one movement of a diversion may use.
const BUDGET: Budget = Budget { ticks: 4_000_000_000, milliseconds: 20_000, memory: 1 << 30 };

impl<'case> Debugger<'case> {
    /// Lets a place be altered when it is come to. What will be altered, in words.
    pub fn alter(&mut self, how: How, place: &PlaceName, which: Which) -> anyhow::Result<String> {
        self.leave_diversion();
        let number = match which {
            Which::Nth(number) => number,
            Which::Once | Which::All => {
                let pcs = self.addresses(place)?;
                self.instance(&pcs)? + 1
            }
        };
        let instant = Written::Place(place.clone(), Nth::Number(number));
        let at = Moment { instant, thread: None };
        let altered = match how {
            How::Switch => Altered::Switch(at),
            How::Suppress => Altered::Suppress(at),
        };
        let mut prepared = self.what_if()?.prepare(&altered)?;
        if which == Which::All {
            let copies = self.whole_program()?.resolve(place)?.len();
            ensure!(
                copies == 1,
                "{place} is {copies} pieces of code; say one of them as *0xADDRESS, or alter one execution"
            );
            prepared.patches.iter_mut().for_each(|patch| patch.execution = None);
            prepared.words += ", and every time after that";
        }
        let words = prepared.words.clone();
        self.arm(prepared)?;
        Ok(words)
    }

    fn arm(&mut self, prepared: Prepared) -> anyhow::Result<()> {
        let ahead = self.next_of(&std::collections::BTreeSet::from([prepared.at]))?;
        ensure!(
            ahead.is_some() || self.at.instant() == prepared.at,
            "that has been executed already where you are; go back before @{} first",
            prepared.at.time
        );
        self.disarm();
        if self.at.instant() == prepared.at {
            self.written = prepared.patches.clone();
            self.words = Some(prepared.words);
            return Ok(());
        }
        self.add_points([Point { at: prepared.at, reason: Reason::Altered }]);
        self.armed = Some(prepared);
        Ok(())
    }

    /// Nothing will be altered.
    pub fn disarm(&mut self) {
        self.remove_points(|reason| *reason == Reason::Altered);
        (self.armed, self.words) = (None, None);
        self.written.clear();
    }

    /// What will be altered, in words, if anything.
    pub fn altered(&self) -> Option<String> {
        let armed = self.armed.as_ref().map(|armed| armed.words.clone());
        armed.or_else(|| self.words.clone())
    }

    /// Sets a variable, register or memory here: `EXPRESSION=VALUE`. The next movement forwards leaves the recording.
    pub fn set(&mut self, assignment: &str) -> anyhow::Result<String> {
        ensure!(self.away.is_none(), "a diversion that is under way cannot be altered further");
        self.stand_before_end()?;
        let altered = Altered::Set { assignment: assignment.to_owned(), at: self.moment() };
        let prepared = self.what_if()?.prepare(&altered)?;
        self.written.extend(prepared.patches);
        self.words = Some(prepared.words.clone());
        Ok(prepared.words)
    }

    /// Writes memory here; the next movement forwards leaves the recording. Whether it can be done.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> bool {
        let mut there = vec![0; bytes.len()];
        let _ = self.stand_before_end();
        if self.away.is_some()
            || self.end().is_some()
            || self.read(address, &mut there) < bytes.len()
        {
            return false;
        }
        for (index, piece) in bytes.chunks(8).enumerate() {
            let value = piece.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
            let address = address + 8 * index as u64;
            self.patch(Action::SetMemory { address, size: piece.len() as u8, value });
        }
        self.words = Some("memory and registers are set".into());
        true
    }

    /// Sets the general registers and the next instruction of the running thread; the next movement forwards leaves the
    /// recording. In a diversion: if they are those that it began with, it is thrown away. Whether that can be done.
    pub fn write_registers(&mut self, general: &[u64; 16], pc: u64) -> bool {
        if let Some(away) = &mut self.away {
            let recorded = &self.at.at.thread;
            if recorded.general == *general && recorded.pc == pc {
                return self.leave_diversion();
            }
            // gdb sets them back one after the other.
            away.wanted = Some((*general, pc));
            return true;
        }
        if self.stand_before_end().is_err() || self.end().is_some() {
            return false;
        }
        self.written.retain(|patch| matches!(patch.action, Action::SetMemory { .. }));
        let own = self.at.at.thread.clone();
        for (register, value) in general.iter().enumerate() {
            if own.general[register] != *value {
                self.patch(Action::SetRegister { register: register as u8, value: *value });
            }
        }
        if pc != own.pc {
            self.patch(Action::Jump { to: pc });
        }
        self.words = Some("memory and registers are set".into());
        true
    }

    /// At a crash, the instruction that faults is still to be executed: stands there as at any other.
    fn stand_before_end(&mut self) -> anyhow::Result<()> {
        if self.at.at.ended && self.away.is_none() {
            let before = self.line.seek(self.at.instant()).map_err(crate::error::fault_or_input)?;
            if !before.at.ended && before.instant() == self.at.instant() {
                self.at = before;
            }
        }
        Ok(())
    }

    fn patch(&mut self, action: Action) {
        self.written.push(Patch { pc: self.at.at.thread.pc, execution: Some(1), action });
        // The jump comes last: nothing behind it is done.
        self.written.sort_by_key(|patch| matches!(patch.action, Action::Jump { .. }));
    }

    /// What was set of memory.
    pub(super) fn overlay(&self, address: u64, into: &mut [u8]) {
        for patch in &self.written {
            let Action::SetMemory { address: at, size, value } = patch.action else { continue };
            for (index, byte) in value.to_le_bytes().iter().take(size.into()).enumerate() {
                let offset = (at + index as u64).checked_sub(address);
                if let Some(slot) = offset.and_then(|offset| into.get_mut(offset as usize)) {
                    *slot = *byte;
                }
            }
        }
    }

    /// What was set of registers.
    pub(super) fn overlay_registers(&self, thread: &mut ThreadData) {
        for patch in &self.written {
            match patch.action {
                Action::SetRegister { register, value } => {
                    thread.general[usize::from(register) & 15] = value;
                }
                Action::Jump { to } => thread.pc = to,
                _ => {}
            }
        }
    }

    /// The thread that runs in a diversion, as a client wants it.
    pub(super) fn thread_away(&self) -> Option<ThreadData> {
        let away = self.away.as_ref()?;
        let mut thread = away.diversion.diverted.thread.clone();
        if let Some((general, pc)) = away.wanted {
            (thread.general, thread.pc) = (general, pc);
        }
        Some(thread)
    }

    /// Whether the next movement forwards leaves the recording here, or it has been left.
    pub(super) fn is_altered(&self) -> bool {
        self.away.is_some() || !self.written.is_empty()
    }

    /// Whether the recording has been left.
    pub fn is_away(&self) -> bool {
        self.away.is_some()
    }

    /// Goes back to where the recording was left. Whether it had been.
    pub fn leave_diversion(&mut self) -> bool {
        self.written.clear();
        self.words = None;
        self.away.take().is_some()
    }

    pub(super) fn diversion(&self) -> Option<&Diversion> {
        self.away.as_ref().map(|away| &away.diversion)
    }

    /// What has come of the diversion so far, compared with the recording.
    pub fn told(&mut self) -> anyhow::Result<Answer> {
        self.what_if()?;
        let away = self.away.as_ref().context("this is the recording; nothing has been altered")?;
        let what_if = self.what_if.as_ref().context("nothing is known of the recorded end")?;
        Ok(what_if.tell(&away.diversion, away.words.clone(), away.left))
    }

    fn what_if(&mut self) -> anyhow::Result<&mut WhatIf<'case>> {
        if self.what_if.is_none() {
            self.what_if = Some(WhatIf::of(self.case, self.process)?);
        }
        self.what_if.as_mut().context("nothing is known of the recorded end")
    }

    /// The armed alteration has been come to: it is done with the next movement.
    pub(super) fn arrive(&mut self) {
        if let Some(armed) = self.armed.take() {
            self.remove_points(|reason| *reason == Reason::Altered);
            self.written = armed.patches;
            self.words = Some(armed.words);
        }
    }

    /// Goes on by itself to a breakpoint or to the end.
    pub(super) fn resume_away(&mut self) -> anyhow::Result<Stop> {
        loop {
            let pcs = self.stopping();
            let goal = match pcs.is_empty() {
                true => Goal::End,
                false => {
                    let conditions = self.filters();
                    Goal::Hit { pcs, thread: None, count: 1, until: None, conditions }
                }
            };
            if let Some(end) = self.move_away(goal)? {
                return Ok(end);
            }
            if let Some(stop) = self.decide_away()? {
                return Ok(stop);
            }
        }
    }

    /// Instructions of a thread, one at least, until it has left some code.
    pub(super) fn step_away(
        &mut self,
        thread: ThreadNumber,
        within: Range<u64>,
    ) -> anyhow::Result<Stop> {
        let kernel = self.kernel_number(thread)?;
        // A jump that is altered is shown as made: making it is no step.
        let jumps = |patch: &Patch| matches!(patch.action, Action::Jump { .. });
        let mut jumped = self.away.is_some() || !self.written.iter().any(jumps);
        loop {
            let (within, stops) = match jumped {
                true => (within.clone(), self.stopping()),
                false => (0..0, Vec::new()),
            };
            let goal = Goal::Step { thread: kernel, within: within.clone(), stops, until: None };
            if let Some(end) = self.move_away(goal)? {
                return Ok(end);
            }
            if !std::mem::replace(&mut jumped, true) {
                continue;
            }
            if !within.contains(&self.thread().pc) {
                return Ok(Stop::Moved);
            }
            if let Some(stop) = self.decide_away()? {
                return Ok(stop);
            }
        }
    }

    /// Leaves the recording, or goes on. How it ended, if it did.
    fn move_away(&mut self, goal: Goal) -> anyhow::Result<Option<Stop>> {
        let lost = "the diversion cannot be followed: its runner ended";
        if let Some(away) = &mut self.away {
            if away.wanted.is_some() {
                let why = "registers cannot be set in a diversion that is under way";
                return Ok(Some(Stop::Diverted(DiversionEnd::Lost(why.into()))));
            }
            if away.diversion.diverted.end != DiversionEnd::Reached {
                return Ok(Some(Stop::Diverted(away.diversion.diverted.end.clone())));
            }
            let patches = away.patches.clone();
            away.diversion.go_on(patches, goal, BUDGET).context(lost)?;
        } else {
            let standing = self.line.copy(&self.at).map_err(crate::error::fault_or_input)?;
            let left = standing.instant();
            let patches = std::mem::take(&mut self.written);
            let lasting = patches.iter().filter(|patch| patch.execution.is_none()).cloned();
            let (lasting, words) = (lasting.collect(), self.words.take().unwrap_or_default());
            let diversion = standing.divert_to(patches, goal, BUDGET).context(lost)?;
            self.away = Some(Away { diversion, left, words, patches: lasting, wanted: None });
        }
        let end = self.diversion().map(|diversion| diversion.diverted.end.clone());
        Ok(end.filter(|end| *end != DiversionEnd::Reached).map(Stop::Diverted))
    }

    /// Whether to stop in a diversion: conditions about the program are asked, those about calls are not, and stop.
    fn decide_away(&mut self) -> anyhow::Result<Option<Stop>> {
        let thread = self.thread();
        let pc = thread.pc;
        if self.breaks(&thread, |address, into| self.read(address, into)) {
            return Ok(Some(Stop::Breakpoint));
        }
        let here: Vec<_> =
            self.conditional.iter().filter(|it| it.pcs.contains(&pc)).cloned().collect();
        for it in here {
            let holds = match &it.when {
                super::conditions::When::Holds(expression) => {
                    let asked = self
                        .with_scene(None, |scene| super::conditions::is_true(scene, expression))?;
                    asked.unwrap_or(true)
                }
                super::conditions::When::SystemCall(numbers) => {
                    numbers.is_empty() || numbers.contains(&self.thread().general[0])
                }
                super::conditions::When::Fork => {
                    let word = |at: u64| {
                        let mut bytes = [0; 8];
                        (self.read(at, &mut bytes) == 8).then(|| u64::from_le_bytes(bytes))
                    };
                    super::forks::forks(&thread, word)
                }
                _ => true,
            };
            if holds {
                return Ok(Some(Stop::Condition(it.id)));
            }
        }
        Ok(None)
    }
}
