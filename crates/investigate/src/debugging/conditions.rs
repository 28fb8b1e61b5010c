//! Breakpoints that stop only sometimes: where a condition holds, at certain executions, at calls with certain
//! arguments, results or effects, and at system calls.
//!
//! Conditions are asked here, of the process where it stands, so that a client hears only of stops. An execution has
//! the same number whichever way one comes to it: it is counted from the beginning of the recording.

use super::forks;
use super::image::word;
use super::looking::{Eye, look};
use super::watching::Watch;
use super::{Debugger, Stop};
use crate::check::implementations::choices;
use crate::error::fault_or_input;
use crate::scene::At;
use anyhow::{Context, bail, ensure};
use base::{PlaceName, Range};
use iced_x86::{Decoder, DecoderOptions, FlowControl};
use replay::{Instant, StoppedProcess};
use symbols::expression::{Expression, parser};
use symbols::members::Scalar;
use symbols::symbol_table::SymbolKind;
use symbols::{FileAddress, Level, Scene};

/// Which executions of a place count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hits {
    /// All.
    All,
    /// One.
    Exactly(u64),
    /// One and all behind it.
    From(u64),
    /// Every N-th.
    Every(u64),
}

impl Hits {
    /// Reads `5`, `==5`, `>=5`, `>5` or `%5`.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let text = text.trim();
        let sign: String = text.chars().take_while(|c| "<>=%".contains(*c)).collect();
        let number = text[sign.len()..].trim().parse::<u64>().ok().filter(|number| *number > 0);
        let wrong = || format!("'{text}' is not a hit count: N, >=N, >N or %N, N from 1 on");
        let number = number.with_context(wrong)?;
        Ok(match sign.as_str() {
            "" | "=" | "==" => Self::Exactly(number),
            ">=" => Self::From(number),
            ">" => Self::From(number + 1),
            "%" => Self::Every(number),
            _ => bail!(wrong()),
        })
    }

    fn counts(self, execution: u64) -> bool {
        match self {
            Self::All => true,
            Self::Exactly(number) => execution == number,
            Self::From(number) => execution >= number,
            Self::Every(number) => execution.is_multiple_of(number),
        }
    }
}

/// What must be so of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallTest {
    /// Nothing.
    Any,
    /// An argument, from 1 on, has a value.
    Argument(usize, u64),
    /// It returns a value.
    Returns(u64),
    /// It reads or writes memory.
    Touches(Watch),
}

/// When to stop at a place.
#[derive(Clone, Debug, PartialEq)]
pub enum When {
    /// Where an expression of the program is not zero.
    Holds(Expression),
    /// Where a function is entered whose call passes a test; it stops at the call.
    Called(CallTest),
    /// Where one of these system calls is about to be made; any if there are none.
    SystemCall(Vec<u64>),
    /// Where a process is about to be made; threads are none.
    Fork,
    /// Always.
    Always,
}

/// A breakpoint with a condition.
#[derive(Clone, Debug)]
pub struct Breakpoint {
    /// Its number.
    pub id: u32,
    /// What was asked for.
    pub words: String,
    /// The instructions, rising.
    pub pcs: Vec<u64>,
    /// When it stops.
    pub when: When,
    /// At which executions.
    pub hits: Hits,
    /// Why its condition could not be told at the last stop.
    pub trouble: Option<String>,
    /// An execution whose number is known.
    counted: Option<(Instant, u64)>,
}

/// Registers of the first arguments, by the processor's numbers: rdi, rsi, rdx, rcx, r8, r9.
const ARGUMENTS: [usize; 6] = [7, 6, 2, 1, 8, 9];

/// Bytes of code that are searched for system calls at a time.
const PIECE: u64 = 1 << 20;

impl Debugger<'_> {
    /// Stops where a place is executed and a condition holds, at certain executions. Its number.
    pub fn add_breakpoint(
        &mut self,
        place: &PlaceName,
        condition: Option<&str>,
        hits: Hits,
    ) -> anyhow::Result<u32> {
        let pcs = self.addresses(place)?;
        let when = match condition {
            Some(text) => When::Holds(parser::parse(text)?),
            None => When::Always,
        };
        let words = match condition {
            Some(condition) => format!("{place} if {condition}"),
            None => place.to_string(),
        };
        Ok(self.add(words, pcs, when, hits))
    }

    /// Stops at calls of a function that pass a test. Its number.
    pub fn add_call(&mut self, function: &str, test: CallTest) -> anyhow::Result<u32> {
        if let CallTest::Argument(number, _) = test {
            ensure!((1..=ARGUMENTS.len()).contains(&number), "arg1 to arg6 can be tested");
        }
        let entries = self.entries_of(function)?;
        Ok(self.add(format!("call of {function}"), entries, When::Called(test), Hits::All))
    }

    /// Where a function is entered: its code, also where it is a library's, and whatever a library may choose for it.
    fn entries_of(&mut self, function: &str) -> anyhow::Result<Vec<u64>> {
        let program = self.whole_program()?;
        let resolved = program.resolve(&function.parse()?).unwrap_or_default();
        let mut entries: Vec<u64> =
            resolved.iter().filter(|it| !it.inlined).map(|it| it.entry.0).collect();
        for loaded in program.modules() {
            let Some(module) = loaded.module() else { continue };
            let named = module
                .symbols()
                .iter()
                .filter(|symbol| symbol.kind == SymbolKind::Function && symbol.name == function);
            for symbol in named {
                let found = match symbol.chooses {
                    true => choices(module.image(), &symbol),
                    false => vec![symbol.address.0],
                };
                entries.extend(found.into_iter().map(|at| FileAddress(at).loaded(loaded.bias()).0));
            }
        }
        if entries.is_empty() {
            // The reason, with names like it.
            program.resolve(&function.parse()?)?;
            bail!("{function} is inlined everywhere, so that it is not called");
        }
        Ok(entries)
    }

    /// Stops where system calls are about to be made, of these numbers or any. Its number.
    pub fn add_system_calls(&mut self, numbers: Vec<u64>) -> anyhow::Result<u32> {
        let pcs = self.system_call_instructions()?;
        Ok(self.add("system calls".into(), pcs, When::SystemCall(numbers), Hits::All))
    }

    /// Stops where processes are about to be made. Its number.
    pub fn add_forks(&mut self) -> anyhow::Result<u32> {
        let pcs = self.system_call_instructions()?;
        Ok(self.add("forks".into(), pcs, When::Fork, Hits::All))
    }

    /// Stops where the process is about to become another program. Its number.
    pub fn add_execs(&mut self) -> anyhow::Result<u32> {
        let pcs = self.system_call_instructions()?;
        Ok(self.add("execs".into(), pcs, When::SystemCall(forks::EXECS.to_vec()), Hits::All))
    }

    fn add(&mut self, words: String, mut pcs: Vec<u64>, when: When, hits: Hits) -> u32 {
        pcs.sort_unstable();
        pcs.dedup();
        self.next_id += 1;
        let (id, trouble, counted) = (self.next_id, None, None);
        self.conditional.push(Breakpoint { id, words, pcs, when, hits, trouble, counted });
        id
    }

    /// Forgets a breakpoint. Whether there was one.
    pub fn remove_breakpoint(&mut self, id: u32) -> bool {
        let before = self.conditional.len();
        self.conditional.retain(|it| it.id != id);
        self.conditional.len() < before
    }

    /// Breakpoints with conditions.
    pub fn conditional(&self) -> &[Breakpoint] {
        &self.conditional
    }

    /// All instructions that may stop it.
    pub(super) fn stopping(&self) -> Vec<u64> {
        let mut pcs: Vec<u64> = self.breakpoints.keys().copied().collect();
        pcs.extend(self.conditional.iter().flat_map(|it| &it.pcs));
        pcs.sort_unstable();
        pcs.dedup();
        pcs
    }

    /// Everything that looks like a system call in the code that the program ever had. What only looks so is never
    /// executed.
    fn system_call_instructions(&mut self) -> anyhow::Result<Vec<u64>> {
        let end = self.line.seek_end().map_err(fault_or_input)?;
        let program = self.whole_program()?;
        let mut found = Vec::new();
        for map in &end.at.modules {
            let mut at = map.start;
            while at < map.end {
                let mut bytes = vec![0; (map.end - at).min(PIECE + 1) as usize];
                let got = end.read(at, &mut bytes);
                let pairs = bytes[..got].windows(2).enumerate();
                let calls = pairs.filter(|(_, pair)| *pair == [0x0f, 0x05]);
                let calls = calls.map(|(offset, _)| at + offset as u64);
                found.extend(calls.filter(|pc| program.is_code(base::Address(*pc))));
                at += PIECE;
            }
        }
        Ok(found)
    }

    /// How often a place has been executed where the debugger stands: the number of its last execution.
    pub fn instance(&mut self, pcs: &[u64]) -> anyhow::Result<u64> {
        let until = self.at.instant();
        self.executions_before(pcs, (!self.at.at.ended).then_some(until))
    }

    /// Executions of some instructions before a moment.
    fn executions_before(&mut self, pcs: &[u64], until: Option<Instant>) -> anyhow::Result<u64> {
        let mut begin = self.line.begin().map_err(fault_or_input)?;
        if Some(begin.instant()) == until {
            return Ok(0);
        }
        let first = u64::from(pcs.contains(&begin.at.thread.pc));
        self.line.go_on_to_hit(&mut begin, (pcs, None), 0, until).map_err(fault_or_input)?;
        Ok(begin.at.hits + first)
    }

    /// The number of an execution of a breakpoint's place, from 1 on.
    fn number_of(&mut self, index: usize, at: Instant) -> anyhow::Result<u64> {
        let pcs = self.conditional[index].pcs.clone();
        let known = self.conditional[index].counted.filter(|(known, _)| known.time < at.time);
        let number = match known {
            Some((known, number)) => {
                let mut standing = self.line.seek(known).map_err(fault_or_input)?;
                let place = (&pcs[..], None);
                self.line
                    .go_on_to_hit(&mut standing, place, 0, Some(at))
                    .map_err(fault_or_input)?;
                number + standing.at.hits + 1
            }
            None => self.executions_before(&pcs, Some(at))? + 1,
        };
        self.conditional[index].counted = Some((at, number));
        Ok(number)
    }

    /// The same as [`Self::decide`] where the debugger itself has come to, and where nothing has to be replayed for it;
    /// else nothing.
    pub(super) fn decide_here(&mut self) -> anyhow::Result<Option<Option<Stop>>> {
        let pc = self.at.at.thread.pc;
        if self.breaks_at(&self.at) {
            return Ok(Some(Some(Stop::Breakpoint)));
        }
        let is_here = |it: &&Breakpoint| it.pcs.binary_search(&pc).is_ok();
        let here: Vec<Breakpoint> = self.conditional.iter().filter(is_here).cloned().collect();
        if here.iter().any(|it| it.hits != Hits::All || matches!(it.when, When::Called(_))) {
            return Ok(None);
        }
        let modules = std::mem::take(&mut self.at.at.modules);
        let program = self.program_of(&modules);
        self.at.at.modules = modules;
        let program = program?;
        for it in here {
            let thread = &self.at.at.thread;
            let holds = match &it.when {
                When::Holds(expression) => {
                    let eye = Eye { thread, frames: 1 };
                    look(&program, &At(&self.at), eye, |scene| is_true(scene, expression))
                }
                When::SystemCall(numbers) => {
                    Ok(numbers.is_empty() || numbers.contains(&thread.general[0]))
                }
                When::Fork => Ok(forks::forks(thread, |at| word(&self.at, at))),
                _ => Ok(true),
            };
            let trouble = holds.as_ref().err().map(|error| format!("{error:#}"));
            if holds.unwrap_or(true) {
                let own = self.conditional.iter_mut().find(|own| own.id == it.id);
                own.into_iter().for_each(|own| own.trouble.clone_from(&trouble));
                return Ok(Some(Some(Stop::Condition(it.id))));
            }
        }
        Ok(Some(None))
    }

    /// Whether to stop where a process is about to execute one of the instructions that may stop it; and if it is
    /// to stop before a call, at another moment.
    pub(super) fn decide(
        &mut self,
        at: &StoppedProcess,
    ) -> anyhow::Result<Option<(Stop, Option<Instant>)>> {
        let pc = at.at.thread.pc;
        if self.breaks_at(at) {
            return Ok(Some((Stop::Breakpoint, None)));
        }
        for index in 0..self.conditional.len() {
            if self.conditional[index].pcs.binary_search(&pc).is_err() {
                continue;
            }
            let (when, hits) = (self.conditional[index].when.clone(), self.conditional[index].hits);
            if hits != Hits::All && !hits.counts(self.number_of(index, at.instant())?) {
                continue;
            }
            let (holds, trouble) = match self.holds(at, &when) {
                Ok(holds) => (holds, None),
                // What cannot be told is shown: a stop too many is better than one too few.
                Err(error) => (true, Some(format!("{error:#}"))),
            };
            if holds {
                self.conditional[index].trouble = trouble;
                let call = matches!(when, When::Called(_)).then(|| self.call_before(at));
                let stop = Stop::Condition(self.conditional[index].id);
                return Ok(Some((stop, call.transpose()?.flatten())));
            }
        }
        Ok(None)
    }

    fn holds(&mut self, at: &StoppedProcess, when: &When) -> anyhow::Result<bool> {
        let general = &at.at.thread.general;
        match when {
            When::Always | When::Called(CallTest::Any) => Ok(true),
            When::SystemCall(numbers) => Ok(numbers.is_empty() || numbers.contains(&general[0])),
            When::Fork => Ok(forks::forks(&at.at.thread, |address| word(at, address))),
            When::Holds(expression) => {
                self.with_standing(at, |scene| is_true(scene, expression))?
            }
            When::Called(CallTest::Argument(number, value)) => {
                Ok(general[ARGUMENTS[number - 1]] == *value)
            }
            When::Called(CallTest::Returns(value)) => {
                Ok(self.return_of(at)?.is_some_and(|back| back.at.thread.general[0] == *value))
            }
            When::Called(CallTest::Touches(watch)) => self.call_touches(at, *watch),
        }
    }

    /// A process that stands where a call has returned that has just been made, if it ever does.
    fn return_of(&mut self, entered: &StoppedProcess) -> anyhow::Result<Option<StoppedProcess>> {
        let (thread, slot) = (entered.at.thread.number, entered.at.thread.general[4]);
        let Some(back) = word(entered, slot) else { return Ok(None) };
        let mut copy = self.line.copy(entered).map_err(fault_or_input)?;
        loop {
            let place = (&[back][..], Some(thread));
            self.line.go_on_to_hit(&mut copy, place, 1, None).map_err(fault_or_input)?;
            if copy.at.ended {
                return Ok(None);
            }
            // A call of the same function further in comes back to the same place.
            if copy.at.thread.general[4] > slot {
                return Ok(Some(copy));
            }
        }
    }

    fn call_touches(&mut self, entered: &StoppedProcess, watch: Watch) -> anyhow::Result<bool> {
        let back = self.return_of(entered)?.map(|back| back.instant());
        let mut copy = self.line.copy(entered).map_err(fault_or_input)?;
        let kept = std::mem::replace(&mut self.watches, vec![watch]);
        let touches = self.touches(&mut copy, back);
        self.watches = kept;
        let thread = entered.at.thread.number;
        Ok(touches?.iter().any(|touch| touch.thread == Some(thread) || touch.thread.is_none()))
    }

    /// The moment at which the call is made that has just led into a function.
    fn call_before(&mut self, entered: &StoppedProcess) -> anyhow::Result<Option<Instant>> {
        let slot = entered.at.thread.general[4];
        let Some(back) = word(entered, slot) else { return Ok(None) };
        let calls = calls_before(entered, back);
        if calls.is_empty() {
            return Ok(None);
        }
        self.last_of(&calls, entered, |call| call.at.thread.general[4] == slot.wrapping_add(8))
    }

    /// The last moment before one at which a thread executes one of some instructions, and something is so.
    pub(super) fn last_of(
        &mut self,
        pcs: &[u64],
        before: &StoppedProcess,
        is_it: impl Fn(&StoppedProcess) -> bool,
    ) -> anyhow::Result<Option<Instant>> {
        let (mut end, thread) = (before.instant(), before.at.thread.number);
        let (mut from, mut length) = (end.time, 64);
        loop {
            let mut standing = self.standing_at(from)?;
            let mut last = None;
            let mut note = |standing: &StoppedProcess| {
                let own = standing.at.thread.number == thread;
                if own && pcs.contains(&standing.at.thread.pc) && is_it(standing) {
                    last = Some(standing.instant());
                }
            };
            if standing.instant() != end {
                note(&standing);
                loop {
                    let place = (pcs, Some(thread));
                    let to = Some(end);
                    self.line.go_on_to_hit(&mut standing, place, 1, to).map_err(fault_or_input)?;
                    if standing.at.hits == 0 || standing.at.ended {
                        break;
                    }
                    note(&standing);
                }
            }
            if last.is_some() || from == 0 {
                return Ok(last);
            }
            end = Instant { time: from, pc: None };
            from = from.saturating_sub(length);
            length *= 8;
        }
    }
}

/// The calls that come back to an address.
pub(super) fn calls_before(standing: &StoppedProcess, back: u64) -> Vec<u64> {
    const LENGTHS: std::ops::RangeInclusive<u64> = 2..=8;
    let is_call = |at: &u64| {
        let mut bytes = [0; 8];
        let length = (back - at) as usize;
        standing.read(*at, &mut bytes[..length]);
        let decoded = Decoder::with_ip(64, &bytes[..length], *at, DecoderOptions::NONE).decode();
        let calls = matches!(decoded.flow_control(), FlowControl::Call | FlowControl::IndirectCall);
        calls && decoded.next_ip() == back && !decoded.is_invalid()
    };
    LENGTHS.filter_map(|length| back.checked_sub(length)).filter(is_call).collect()
}

/// Whether an expression is not zero.
pub(super) fn is_true(scene: &Scene<'_>, expression: &Expression) -> anyhow::Result<bool> {
    let value = scene.value(Level::default(), expression)?;
    match scene.scalar(&value).map_err(|why| anyhow::anyhow!("the condition: {why}"))? {
        Some(Scalar::Integer(number)) => Ok(number != 0),
        Some(Scalar::Float(number)) => Ok(number != 0.0),
        None => bail!("the condition is no number"),
    }
}

/// Whether an address lies in one of some ranges.
pub(super) fn lies_in(ranges: &[Range], pc: u64) -> bool {
    ranges.iter().any(|range| range.contains(base::Address(pc)))
}

#[cfg(test)]
mod tests {
    use super::Hits;

    #[test]
    fn hit_counts_are_read() {
        let rows = [
            ("5", Some(Hits::Exactly(5))),
            ("== 5", Some(Hits::Exactly(5))),
            (">=3", Some(Hits::From(3))),
            ("> 3", Some(Hits::From(4))),
            ("%2", Some(Hits::Every(2))),
            ("%0", None),
            ("<3", None),
            ("", None),
            ("x", None),
        ];
        for (text, expected) in rows {
            assert_eq!(Hits::parse(text).ok(), expected, "{text}");
        }
    }
}
