//! Moments and values from the command line, as questions about an execution.

use super::execution::Execution;
use crate::moments::{NO_CRASH, addresses, not_executed, thread_of};
use crate::paths::shortened;
use analyze::dependence::query::Executed;
use analyze::semantics::Parts;
use analyze::slice::ending::{self, Asked};
use analyze::slice::question::Wants;
use anyhow::{Context, bail, ensure};
use base::StepCount;
use base::moment::Instant as Written;
use base::{Address, CrashReport, Nth, Position, Tick};
use symbols::unwind::StackEnd;
use symbols::value::Home;
use symbols::{FoundBy, Frame, Held, Level, Memory, Register, Registers, Scene, Stack};

/// Memory of which nothing is known.
struct Nothing;

impl Memory for Nothing {
    fn read(&self, _: Address, _: &mut [u8]) -> bool {
        false
    }
}

/// A moment, found.
pub struct ResolvedMoment {
    /// The thread.
    pub thread: u32,
    /// When.
    pub moment: StepCount,
    /// The instruction that comes next there, if the moment is a place.
    pub executed: Option<Executed>,
}

impl ResolvedMoment {
    fn of(executed: Executed) -> Self {
        Self { thread: executed.thread, moment: executed.moment, executed: Some(executed) }
    }
}

impl Execution {
    /// The moment that is meant.
    pub fn moment(&self, written: &base::Moment) -> anyhow::Result<ResolvedMoment> {
        let thread = thread_of(written, &self.threads)?.map(|thread| thread as u32);
        let last = self.trace.last_thread().context("nothing was executed")?;
        let at = |moment: StepCount| ResolvedMoment {
            thread: thread.unwrap_or(last),
            moment,
            executed: None,
        };
        match &written.instant {
            Written::Start => Ok(at(StepCount(0))),
            Written::End => Ok(at(StepCount(self.trace.len()))),
            Written::Crash => {
                ensure!(self.crash().is_some(), NO_CRASH);
                Ok(at(StepCount(self.trace.len())))
            }
            Written::Tick(tick) => self.executed_at(written, *tick, None, thread),
            Written::Position(Position { tick, pc }) => {
                self.executed_at(written, *tick, Some(*pc), thread)
            }
            Written::Place(place, nth) => {
                let pcs = addresses(&self.program, place)?;
                let found = self.execution_of(&pcs, *nth, thread);
                let found = found.map_err(|times| not_executed(written, place, times))?;
                Ok(found.map_or_else(|| at(StepCount(self.trace.len())), ResolvedMoment::of))
            }
        }
    }

    /// An execution of one of these addresses; nothing if it is the one that faulted at the end, which the
    /// trace does not have. Or how often they were executed, if it was not so often.
    fn execution_of(
        &self,
        pcs: &[u64],
        nth: Nth,
        thread: Option<u32>,
    ) -> Result<Option<Executed>, u64> {
        let meant = |report: &&CrashReport| {
            // The report of a replay has the runner's ids.
            let by = thread.is_none() || thread == self.trace.last_thread();
            report.code > 0 && by && pcs.contains(&report.pc)
        };
        if self.crash().filter(meant).is_none() {
            return self.trace.find(pcs, nth, thread).map(Some);
        }
        match nth {
            Nth::FromEnd(1) => Ok(None),
            Nth::FromEnd(back) => {
                let found = self.trace.find(pcs, Nth::FromEnd(back - 1), thread);
                found.map(Some).map_err(|times| times + 1)
            }
            Nth::Number(number) => match self.trace.find(pcs, nth, thread) {
                Err(times) if times + 1 == number => Ok(None),
                other => other.map(Some).map_err(|times| times + 1),
            },
        }
    }

    /// The position at a moment; nothing at the end, unless an instruction faulted there.
    pub fn position(&self, moment: StepCount) -> Option<Position> {
        let faulted = self.crash().filter(|report| report.code > 0);
        match faulted.filter(|_| moment.0 == self.trace.len()) {
            Some(report) => Some(Position { tick: self.trace.tick(), pc: Address(report.pc) }),
            None => self.trace.position(moment),
        }
    }

    /// The first execution at a tick, or of an instruction there.
    fn executed_at(
        &self,
        written: &base::Moment,
        tick: Tick,
        pc: Option<Address>,
        thread: Option<u32>,
    ) -> anyhow::Result<ResolvedMoment> {
        let end = self.trace.tick();
        ensure!(tick <= end, "the recording ends at {end}, there is no {tick}");
        let found = self.trace.at_tick(tick, pc, thread);
        let found = found.filter(|(_, position)| pc.is_none() || position.tick == tick);
        let last = StepCount(self.trace.len());
        if found.is_none()
            && self
                .position(last)
                .is_some_and(|at| at.tick == tick && pc.is_none_or(|pc| pc == at.pc))
        {
            let thread = thread.or_else(|| self.trace.last_thread());
            return Ok(ResolvedMoment {
                thread: thread.context("nothing was executed")?,
                moment: last,
                executed: None,
            });
        }
        let (executed, _) = found.with_context(|| format!("nothing is executed at {written}"))?;
        Ok(ResolvedMoment::of(executed))
    }

    /// What to ask about the end, the best question first. Where no value was wrong, as when the stack
    /// is full, it is why the program came there.
    pub fn asked_at_end(&self) -> Vec<Asked> {
        let mut asked = ending::ask(&self.trace, &self.ended());
        for Asked { wants, words, pc, .. } in &mut asked {
            if wants.parts.is_empty() && wants.memory.is_empty() && wants.control.is_none() {
                wants.control = *pc;
                *words = ending::THE_WAY.into();
            }
        }
        asked
    }

    /// What is asked at a moment about values; about all that is used there if there are none.
    pub fn asked(&self, at: Option<&base::Moment>, values: &[String]) -> anyhow::Result<Asked> {
        let is_end = at.is_none_or(|at| match at.instant {
            Written::Crash => self.crash().is_some(),
            Written::End => self.crash().is_none(),
            _ => false,
        });
        if is_end && values.is_empty() {
            return self.asked_at_end().into_iter().next().context("nothing was executed");
        }
        let found = self.moment(at.unwrap_or(&base::Moment::END))?;
        let mut wants = Wants::default();
        let mut words = values.join(", ");
        if values.is_empty() {
            let Some(executed) = &found.executed else { bail!("say which --value is meant there") };
            (wants.parts, wants.memory) = self.trace.used_by(&self.statement(executed));
            words = "what the statement used".into();
        }
        for value in values {
            self.want(&found, value, &mut wants)?;
        }
        let pc = found
            .executed
            .as_ref()
            .map(|executed| self.trace.blocks.statics[executed.instruction as usize].pc);
        Ok(Asked { thread: found.thread, moment: found.moment, wants, words, pc })
    }

    /// What is asked about going forward: values at a moment, or all that the statement there
    /// made, when it has been executed.
    pub fn asked_forward(&self, at: &base::Moment, values: &[String]) -> anyhow::Result<Asked> {
        if !values.is_empty() {
            return self.asked(Some(at), values);
        }
        let found = self.moment(at)?;
        let Some(executed) = &found.executed else { bail!("say which --value is meant there") };
        let statement = self.statement(executed);
        let last = statement.last().unwrap_or(executed);
        let mut wants = Wants::default();
        for executed in &statement {
            let (parts, memory) = self.trace.defined(executed);
            wants.parts |= parts;
            wants.memory.extend(memory);
        }
        let pc = Some(self.trace.blocks.statics[executed.instruction as usize].pc);
        let words = "what the statement made".into();
        Ok(Asked { thread: found.thread, moment: StepCount(last.moment.0 + 1), wants, words, pc })
    }

    /// What is asked about when the statement at a moment has been executed: values, or all that it made.
    pub fn asked_after(&self, at: &base::Moment, values: &[String]) -> anyhow::Result<Asked> {
        if values.is_empty() {
            return self.asked_forward(at, values);
        }
        let found = self.moment(at)?;
        let Some(executed) = &found.executed else {
            bail!("the statement at {at} was not executed to its end");
        };
        let statement = self.statement(executed);
        let last = statement.last().unwrap_or(executed).clone();
        let slot = |at: &ResolvedMoment| self.trace.frame_slot(at.thread, at.moment);
        let own = slot(&found);
        let behind = StepCount(last.moment.0 + 1);
        // Its variables are looked for where it goes on, or if it has returned, where it was last.
        let next = self.next_moment(found.thread, last.moment).filter(|next| slot(next) == own);
        let eye = next.unwrap_or_else(|| ResolvedMoment::of(last));
        let mut wants = Wants::default();
        for value in values {
            self.want(&eye, value, &mut wants)?;
        }
        let pc = Some(self.trace.blocks.statics[executed.instruction as usize].pc);
        let words = values.join(", ");
        Ok(Asked { thread: found.thread, moment: behind, wants, words, pc })
    }

    /// All instructions of the statement that begins with one.
    fn statement(&self, first: &Executed) -> Vec<Executed> {
        let pc = self.trace.blocks.statics[first.instruction as usize].pc;
        let line = |pc| self.program.line_at(Address(pc)).map(|found| found.line);
        let own = line(pc);
        let own = own.map(|line| (line.file, line.line));
        self.trace.statement(first, &|other| {
            let same = || line(other).map(|line| (line.file, line.line)) == own;
            other == pc || own.is_some() && same()
        })
    }

    /// The instruction that is next at a moment, or the last before it.
    fn pc_at(&self, at: &ResolvedMoment) -> anyhow::Result<u64> {
        let instruction = match &at.executed {
            Some(executed) => executed.instruction,
            None => {
                let last = self.trace.last_executed(Some(at.thread), at.moment);
                last.context("the thread has executed nothing")?.instruction
            }
        };
        Ok(self.trace.blocks.statics[instruction as usize].pc)
    }

    /// The innermost frame at a moment: a trace knows where it is, and no values.
    fn stack_at(&self, at: &ResolvedMoment, pc: u64) -> Stack {
        let cfa = self.trace.frame_slot(at.thread, at.moment).map(|slot| Address(slot + 8));
        let frame = Frame {
            pc: Address(pc),
            registers: Registers::default(),
            cfa,
            found_by: FoundBy::CallFrameInfo,
            exact: true,
        };
        Stack { frames: vec![frame], end: StackEnd::Lost }
    }

    fn scene<'s>(&'s self, stack: &'s Stack) -> Scene<'s> {
        Scene { program: &self.program, memory: &Nothing, stack, thread_pointer: None }
    }

    /// The parameters of the function that runs at a moment.
    pub fn parameters(&self, at: &ResolvedMoment) -> Vec<String> {
        let Ok(pc) = self.pc_at(at) else { return Vec::new() };
        let stack = self.stack_at(at, pc);
        let locals = self.scene(&stack).locals(Level::default()).into_iter();
        locals.filter(|local| local.parameter && !local.hidden).map(|local| local.name).collect()
    }

    /// Adds a value to what is wanted.
    pub fn want(&self, at: &ResolvedMoment, value: &str, wants: &mut Wants) -> anyhow::Result<()> {
        if let Some(name) = value.strip_prefix('$') {
            let register = Register::named(name).with_context(|| format!("no register {value}"))?;
            wants.parts |= parts_of(register);
            return Ok(());
        }
        if let Some(range) = value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let (address, bytes) = range
                .split_once(',')
                .and_then(|(address, bytes)| Some((number(address)?, number(bytes)?)))
                .with_context(|| format!("'{value}' is not [ADDRESS,SIZE]"))?;
            wants.memory.push((address, bytes));
            return Ok(());
        }
        let pc = self.pc_at(at)?;
        if let Some(done) = self.look(at, |scene| locate(scene, value, pc, wants))? {
            return done;
        }
        let stack = self.stack_at(at, pc);
        locate(&self.scene(&stack), value, pc, wants)
    }
}

/// Adds where a value is to what is wanted.
fn locate(scene: &Scene<'_>, value: &str, pc: u64, wants: &mut Wants) -> anyhow::Result<()> {
    let found = scene.evaluate(Level::default(), value)?;
    match &found.held {
        Held::Memory(address) => {
            let bytes = scene.size_of(found.module, &found.ty).unwrap_or(8);
            wants.memory.push((address.0, bytes.max(1)));
        }
        Held::Pieces(pieces) => {
            for piece in pieces {
                match &piece.home {
                    Home::Register { register, .. } => wants.parts |= parts_of(*register),
                    Home::Memory(address) => {
                        wants.memory.push((address.0, piece.bits.div_ceil(8)));
                    }
                    Home::Constant(_) => bail!("{value} is a constant the compiler knew"),
                    Home::ImplicitPointer { .. } => {
                        bail!("{value}: optimised out; {}", elsewhere(scene, value, pc))
                    }
                    Home::Lost(why) => match register_of(scene, value, pc) {
                        Some(register) => wants.parts |= parts_of(register),
                        None => bail!("{value}: {why}; {}", elsewhere(scene, value, pc)),
                    },
                }
            }
        }
    }
    Ok(())
}

/// The register that a variable is in at an address. What it holds a trace does not know, so the
/// scene takes it for lost.
fn register_of(scene: &Scene<'_>, name: &str, pc: u64) -> Option<Register> {
    let local = scene.locals(Level::default()).into_iter().find(|local| local.name == name)?;
    let known = scene.known_ranges(&local);
    known.iter().find(|known| known.code.contains(Address(pc)))?.register
}

/// What to ask for instead of a value that is not to be had at an address: where it is, if it is
/// anywhere.
fn elsewhere(scene: &Scene<'_>, value: &str, pc: u64) -> String {
    let name: String = value.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    let locals = scene.locals(Level::default()).into_iter();
    let ranges = locals.filter(|local| local.name == name).map(|local| scene.known_ranges(&local));
    let nearest = ranges.flatten().min_by_key(|known| known.code.start.0.abs_diff(pc));
    let Some(known) = nearest else {
        return "ask for a register instead, like --value '$rax'".into();
    };
    let line = scene.program.line_at(known.code.start).map(|found| found.line);
    let at = match line {
        Some(line) => format!("{}:{}", shortened(&line.file), line.line),
        None => format!("*{}", known.code.start),
    };
    match known.register {
        Some(register) => format!(
            "it is in ${register} at {at}: ask --value '${register}', or --at {at} --value {value}"
        ),
        None => format!("it can be had at {at}: ask --at {at} --value {value}"),
    }
}

fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The parts of a register as DWARF numbers it.
fn parts_of(register: Register) -> Parts {
    const ORDER: [u8; 16] = [0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15];
    match register.0 {
        number @ 0..=15 => Parts::general(ORDER[usize::from(number)], 0, 8),
        number @ 17..=32 => Parts::vector(number as u8 - 17, 0, 16),
        _ => Parts::NONE,
    }
}
