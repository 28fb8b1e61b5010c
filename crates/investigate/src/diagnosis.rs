//! Why a program ended as it did: how it ended, what to ask about that, and the chain back to where the
//! wrong value was made, or to the decision that led to the end.
//!
//! [`crate::ending`] tells whose doing an end was. A program that somebody else ended is looked at where it
//! then was ([`hanging`]); of all others the whole run is followed.

pub mod broken;
mod hanging;
mod title;

use crate::case::Case;
use crate::chain::{self, Values};
use crate::crash::{Crash, signal_name};
use crate::ending::handled::Handled;
use crate::ending::hang::{self, Hang};
use crate::ending::looping::Change;
use crate::ending::words::{self, Said};
use crate::ending::{Class, decided, message};
use crate::error::fault_or_input;
use crate::sight::{self, Sight};
use crate::slicing::recursion::Endless;
use crate::slicing::tail_windows::TailWindows;
use crate::slicing::{Execution, windows};
use analyze::dependence::control::Control;
use analyze::slice::ending::{Asked, THE_WAY};
use analyze::slice::explain::{Explanation, explain};
use analyze::slice::view::{Statement, own_place};
use analyze::slice::{Follow, Slice, Wants};
use anyhow::Context;
use base::StepCount;
use base::{Address, Ending, Finding, Place, Position, ProcessNumber, Role, Tick, When};
use replay::Timeline;
use std::path::Path;
use std::time::{Duration, Instant};

/// Of a run of more windows the last are looked at, so many unless there is a budget.
const FEW: usize = 4;
/// Statements shown unless all are asked for.
pub const SHOWN: usize = 10;
/// Of these the first, whatever they do.
const NEAREST: usize = 3;
/// A statement that decides nothing is shown before one that does and that is so many steps further away.
const INDECISIVE: u32 = 4;
/// Variables shown of where it ended.
const VARIABLES: usize = 8;

/// The diagnosis of one process.
pub struct Diagnosis {
    /// What happened.
    pub execution: Execution,
    /// What kind of end it was.
    pub class: Class,
    /// How it ended, as a sentence.
    pub ended: String,
    /// What the program said last.
    pub said: Option<Said>,
    /// Where, in the program's own code.
    pub place: Option<Place>,
    /// The function of a library that was called there and did not come back.
    pub inside: Option<String>,
    /// When.
    pub when: Option<When>,
    /// The active calls of the program's own code, innermost first.
    pub stack: Vec<Place>,
    /// The values there, in the program's own words, or at least the registers.
    pub values: Vec<(String, String)>,
    /// The recursion that filled its stack, if that was it.
    pub recursion: Option<Endless>,
    /// What its threads were doing, if it did not end by itself.
    pub hang: Option<Hang>,
    /// The loop that it was in then.
    pub looping: Option<Loop>,
    /// The first rules that were broken on the way to the crash, the first of all first.
    pub broken: Vec<Finding>,
    /// What was asked about the end, the best question first.
    pub asked: Vec<Asked>,
    /// The chain.
    pub explanation: Explanation,
    /// The values of the statements that are shown, in their order.
    pub shown: Vec<Shown>,
    /// Whether what it is about, a panic, was before all that has been looked at.
    is_earlier: bool,
}

/// A statement that is shown.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Shown {
    /// Its number among the statements of the explanation.
    pub statement: usize,
    /// What stands in it.
    pub values: Values,
}

/// A loop that does not end.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Loop {
    /// When it was entered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Tick>,
    /// How the values change that its condition hangs on.
    pub change: Change,
    /// How many statements of the chain are in the loop; the others came before it.
    pub in_loop: usize,
}

/// What is asked of a diagnosis.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// Most bytes of the run that are kept.
    pub memory: u64,
    /// Whether all statements are shown.
    pub all: bool,
    /// How long a long run is gone back through; if not given, only its last windows are looked at.
    pub budget: Option<Duration>,
    /// Is told how many windows of how many have been looked at.
    pub progress: &'a dyn Fn((usize, usize)),
    /// The line of source that a statement is, if it is at hand.
    pub source: &'a dyn Fn(&Statement) -> Option<String>,
}

impl<'a> Wanted<'a> {
    /// The ordinary answer.
    pub fn new(memory: u64, source: &'a dyn Fn(&Statement) -> Option<String>) -> Self {
        Self { memory, all: false, budget: None, progress: &|_| (), source }
    }
}

impl Diagnosis {
    /// Explains how a process of a case ended.
    pub fn of(case: &Case, process: u32, wanted: Wanted<'_>) -> anyhow::Result<Self> {
        let begun = Instant::now();
        let (execution, mut line) = Execution::begin(case, process)?;
        let diagnosis = if is_stopped(case, process, &execution) {
            hanging::of(case, process, execution, line, wanted)?
        } else {
            let ticks = line.end().map_err(fault_or_input)?.time;
            let said = said(case, process, &execution)?;
            let (mut found, mut sight) = if TailWindows::of(&line).observed().1 > FEW {
                let mut sight = Sight::through(case, line);
                let until = wanted.budget.map(|budget| begun + budget);
                let asked = (said.clone(), wanted, until);
                match Self::from_end(case, execution, &mut sight, asked)? {
                    Some(found) => (found, sight),
                    // Memory has no room for the last windows: all are gone through bit by bit.
                    None => {
                        let again = Execution::begin(case, process)?;
                        Self::whole(case, (process, ticks), again, (said, wanted))?
                    }
                }
            } else {
                Self::whole(case, (process, ticks), (execution, line), (said, wanted))?
            };
            found.look_for_broken_rules(case, process, ticks);
            found.look(&mut sight)?;
            found.evaluate(&mut sight, wanted);
            found
        };
        diagnosis.execution.complete()?;
        Ok(diagnosis)
    }

    /// With all of the run at hand.
    fn whole<'case>(
        case: &'case Case,
        (process, ticks): (u32, u64),
        (mut execution, line): (Execution, Timeline),
        (said, wanted): (Option<Said>, Wanted<'_>),
    ) -> anyhow::Result<(Self, Sight<'case>)> {
        execution.trace = windows::survey(line, wanted.memory)?;
        let mut sight = Sight::of(case, process, ticks)?;
        let handled = handled(&execution, &mut sight, said.as_ref())?;
        Ok((Self::ended(case, execution, said, handled.as_ref())?, sight))
    }

    /// The same of a long run: its last windows are looked at and then, within a budget, twice as many each time, until
    /// nothing is looked for any more, memory is full, or the next look would not end in time. Without a
    /// budget the clock has no part in it: the same recording gives the same answer.
    fn from_end(
        case: &Case,
        execution: Execution,
        sight: &mut Sight<'_>,
        (said, wanted, until): (Option<Said>, Wanted<'_>, Option<Instant>),
    ) -> anyhow::Result<Option<Self>> {
        let mut late = TailWindows::of(sight.line());
        let (mut left, mut found) = (Some(execution), None::<Self>);
        let mut begun = Instant::now();
        let first = if until.is_some() { 1 } else { FEW };
        while let Some(trace) = late.further(sight.line(), wanted.memory, first)? {
            (wanted.progress)(late.observed());
            let last = left.take().or_else(|| Some(found.take()?.execution));
            let Some(mut execution) = last else { break };
            (execution.trace, execution.observed) = (trace, Some(late.observed()));
            let handled = handled(&execution, sight, said.as_ref())?;
            let more = Self::ended(case, execution, said.clone(), handled.as_ref())?;
            let is_over = until.is_none_or(|until| Instant::now() + begun.elapsed() * 2 > until);
            // A panic that prints a backtrace may be many windows before the end that it led to.
            let enough = (is_over && !more.is_earlier) || !more.explanation.open;
            found = Some(more);
            if enough {
                break;
            }
            begun = Instant::now();
        }
        Ok(found)
    }

    /// What is to be said of a program that ended by itself, or by its own fault.
    fn ended(
        case: &Case,
        execution: Execution,
        said: Option<Said>,
        handled: Option<&Handled>,
    ) -> anyhow::Result<Self> {
        let control = Control::of(&execution.trace, &execution.program);
        let recursion = Endless::of(&execution);
        let mut class = title::class(&execution, said.as_ref(), recursion.is_some());
        let by_itself = !matches!(class, Class::RustPanic | Class::Success);
        let fault = handled.filter(|_| by_itself && recursion.is_none());
        let asking = match fault.and_then(|fault| of_fault(&execution, fault)) {
            Some(asking) => asking,
            None => asking(&execution, &control, recursion.as_ref(), class, said.as_ref()),
        };
        asking.asked.first().context("the program executed nothing")?;
        let (trace, program) = (&execution.trace, &execution.program);
        let mut explanation = explain(trace, program, &control, &asking.asked);
        execution.number_threads(&mut explanation.view);
        let mut ended = title::title(case, &execution, class, said.as_ref(), asking.thread);
        if let Some(fault) = fault.filter(|_| class != Class::GoPanic) {
            class = fault.class();
            let signal = signal_name(fault.signal);
            ended += &format!("; it had handled {signal} at address {:#x} itself", fault.address);
        }
        Ok(Self {
            class,
            ended,
            said,
            inside: asking.inside,
            place: asking.place,
            when: asking.position.and_then(|(thread, at)| when(&execution, thread, at)),
            stack: asking.stack,
            values: Vec::new(),
            recursion,
            hang: None,
            looping: None,
            broken: Vec::new(),
            asked: asking.asked,
            explanation,
            shown: Vec::new(),
            is_earlier: asking.is_earlier,
            execution,
        })
    }

    /// A crash is most often the end of a longer story: the rule that was broken first has the better name.
    fn look_for_broken_rules(&mut self, case: &Case, process: u32, ticks: u64) {
        if self.execution.crash().is_none() || self.class == Class::StackOverflow {
            return;
        }
        self.broken = broken::rules(case, process, self.execution.crash(), ticks);
        let Some(first) = self.broken.first() else { return };
        if let Some(class) = broken::class(&first.kind) {
            self.class = class;
        }
        let mut asked = broken::asked(&self.execution, first);
        if asked.is_empty() {
            return;
        }
        // Of several times the last is what the program crashed of.
        let again = first.evidence.iter().any(|step| step.role == Some(Role::Times));
        if again && is_same_line(first.place.as_ref(), self.place.as_ref()) {
            self.asked.append(&mut asked);
        } else {
            self.asked.splice(0..0, asked);
        }
        let (trace, program) = (&self.execution.trace, &self.execution.program);
        self.explanation = explain(trace, program, &Control::of(trace, program), &self.asked);
        self.execution.number_threads(&mut self.explanation.view);
    }

    /// The values at the place of the end, with all of memory at hand.
    fn look(&mut self, sight: &mut Sight<'_>) -> anyhow::Result<()> {
        let Some(place) = self.place.clone() else { return Ok(()) };
        let standing = match self.when {
            Some(when) => sight.at(when.position)?,
            None => None,
        };
        let standing = match standing {
            Some(standing) => standing,
            None => sight.end()?,
        };
        self.values = sight
            .look(&standing, |scene| {
                let level = sight::level_at(scene, &place)?;
                Some(sight::variables(scene, level, VARIABLES))
            })?
            .unwrap_or_default();
        Ok(())
    }

    /// Chooses the statements to be shown, and looks at what stands in them.
    fn evaluate(&mut self, sight: &mut Sight<'_>, wanted: Wanted<'_>) {
        self.shown = shown(&self.execution, sight, &self.explanation.view.statements, wanted);
    }

    /// The best question.
    pub fn question(&self) -> Option<&Asked> {
        self.asked.first()
    }

    /// The crash that it ended in, if it did, with its position.
    pub fn crash(&self) -> Option<Crash> {
        let mut crash = Crash::of(self.execution.crash()?);
        // The report of a replay has the runner's ids.
        let thread = self.execution.trace.last_thread()?;
        let end = self.execution.position(StepCount(self.execution.trace.len()));
        let end = end.and_then(|position| when(&self.execution, thread, position));
        crash.finding = crash.finding.at_time(end);
        Some(crash)
    }

    /// Whether the program failed: a signal, an exit code other than 0, or an end that is not known.
    pub fn has_failed(&self) -> bool {
        self.class != Class::Success
    }

    /// The chain as single instructions, for a program that has no source to be shown.
    pub fn instructions(&self) -> Option<Slice> {
        let control = Control::of(&self.execution.trace, &self.execution.program);
        let mut question = self.question()?.question(Follow::Thin);
        question.control = Some(&control);
        Some(question.answer(&self.execution.trace))
    }

    /// What tells this failure from others, and is the same for each run of it: its class, and the functions
    /// that were active and that the chain leads through.
    pub fn fingerprint(&self) -> String {
        let function = |place: &Place| place.function.clone().unwrap_or_default();
        let stack = self.stack.iter().take(3).map(function);
        let chain = self
            .shown
            .iter()
            .take(3)
            .map(|shown| function(&self.explanation.view.statements[shown.statement].place));
        let parts = [self.class.name().to_owned()].into_iter().chain(stack).chain(chain);
        // FNV-1a: short, and the same everywhere.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in parts.collect::<Vec<_>>().join("\n").bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        format!("{hash:016x}")
    }
}

/// Chooses the statements to be shown, and looks at what stands in them.
pub fn shown(
    execution: &Execution,
    sight: &mut Sight<'_>,
    statements: &[Statement],
    wanted: Wanted<'_>,
) -> Vec<Shown> {
    // Where nothing but handing on happened, that is what there is to see.
    let all = wanted.all || statements.iter().all(|statement| statement.hands_on);
    let made = |number: &usize| {
        let statement = &statements[*number];
        all || !statement.hands_on || statement.decisive
    };
    let mut chosen: Vec<usize> = (0..statements.len()).filter(made).collect();
    if !wanted.all && chosen.len() > SHOWN {
        // The nearest, then what the explanation turns on and is not far, then the rest.
        let rank = |at: usize, number: usize| {
            let statement = &statements[number];
            let far = statement.cost + if statement.decisive { 0 } else { INDECISIVE };
            (if at < NEAREST { 0 } else { far.saturating_add(1) }, at)
        };
        let mut ranked: Vec<_> =
            chosen.iter().enumerate().map(|(at, n)| (rank(at, *n), *n)).collect();
        ranked.sort_unstable();
        chosen = ranked.into_iter().take(SHOWN).map(|(_, number)| number).collect();
        chosen.sort_unstable();
    }
    let picked: Vec<Statement> = chosen.iter().map(|at| statements[*at].clone()).collect();
    let values = chain::values(execution, sight, &picked, wanted.source);
    let pairs = chosen.into_iter().zip(values);
    pairs.map(|(statement, values)| Shown { statement, values }).collect()
}

/// The fault that a program handled itself before it ended.
fn handled(
    execution: &Execution,
    sight: &mut Sight<'_>,
    said: Option<&Said>,
) -> anyhow::Result<Option<Handled>> {
    if said.and_then(|said| said.class) == Some(Class::GoPanic) {
        let panic = decided::last_go_panic(execution);
        return Ok(panic.and_then(|panic| Handled::before_panic(execution, sight, panic)));
    }
    let end = sight.end()?;
    sight.look(&end, Handled::of)
}

/// Whether somebody else ended the program, or nobody knows.
fn is_stopped(case: &Case, process: u32, execution: &Execution) -> bool {
    let Some(outcome) = &execution.outcome else { return true };
    match (outcome.ending, execution.crash()) {
        (Ending::Exit(_), _) => false,
        // The report of a replay has no sender if it was another process.
        (Ending::Signal(_), Some(report)) => report.code <= 0 && report.sender == 0,
        (Ending::Signal(_), None) => !hang::sent_itself(case, process),
    }
}

/// What the program said last, where that can tell something.
fn said(case: &Case, process: u32, execution: &Execution) -> anyhow::Result<Option<Said>> {
    const ABORT: i32 = 6;
    let speaks = match execution.outcome.as_ref().map(|outcome| outcome.ending) {
        Some(Ending::Exit(code)) => code != 0,
        Some(Ending::Signal(signal)) => signal == ABORT,
        None => false,
    };
    Ok(if speaks { words::understand(&words::errors(case.session(), process)?) } else { None })
}

/// When a thread, by the kernel's id, was at a position.
fn when(execution: &Execution, thread: u32, position: Position) -> Option<When> {
    let process = ProcessNumber(execution.process?);
    Some(When { process, thread: execution.thread(thread, position.tick), position })
}

/// What to ask about an end, and where it was.
struct Asking {
    asked: Vec<Asked>,
    place: Option<Place>,
    /// The function of a library that was called there.
    inside: Option<String>,
    /// Thread and position of that place.
    position: Option<(u32, Position)>,
    stack: Vec<Place>,
    /// The thread that it is about.
    thread: Option<u32>,
    /// Whether the panic that it is about was before all that has been looked at.
    is_earlier: bool,
}

/// The best questions about an end.
fn asking(
    execution: &Execution,
    control: &Control,
    recursion: Option<&Endless>,
    class: Class,
    said: Option<&Said>,
) -> Asking {
    let end = StepCount(execution.trace.len());
    let last = execution.trace.last_thread();
    let by_pc = |asked: Vec<Asked>| {
        let pc = asked.last().and_then(|asked| asked.pc);
        let stack = last.map_or_else(Vec::new, |thread| own_stack(execution, thread, end));
        let (place, inside) = pc.map_or((None, None), |pc| own_or_caller(execution, pc, &stack));
        Asking { asked, place, inside, position: None, stack, thread: last, is_earlier: false }
    };
    if let Some(endless) = recursion {
        return by_pc(vec![endless.asked()]);
    }
    let faulted = execution.crash().is_some_and(|report| report.code > 0);
    if faulted {
        return by_pc(execution.asked_at_end());
    }
    let passed_on = said.is_some_and(|said| said.class == Some(Class::RustPanic));
    let panic = match class {
        Class::RustPanic => {
            decided::last_panic(execution, passed_on && is_passed_on(execution, said))
        }
        Class::GoPanic => decided::last_go_panic(execution),
        _ => None,
    };
    let panicked = matches!(class, Class::RustPanic | Class::GoPanic);
    let is_earlier = panicked && panic.is_none() && execution.trace.is_tail;
    let Some((thread, moment)) = panic.or(last.map(|thread| (thread, end))) else {
        return by_pc(Vec::new());
    };
    let words = title::decision(class);
    let Some(found) = decided::decided(execution, control, thread, moment, words) else {
        let mut asking = Asking { is_earlier, ..returned(execution, by_pc) };
        if class == Class::ExitCode && said.is_some() {
            asking.asked.extend(message::asked(execution, control));
        }
        return asking;
    };
    let mut asked = Vec::new();
    if matches!(class, Class::HeapCorruption | Class::BufferOverflow | Class::Abort) {
        // What the library was given, and what it found wrong, say more than that it was called.
        asked.extend(execution.asked_at_end());
    }
    asked.extend(found.asked.iter().cloned());
    if class == Class::ExitCode {
        asked.extend(execution.asked_at_end());
        if said.is_some() {
            asked.extend(message::asked(execution, control));
        }
    }
    let own = found.own();
    let position = own.and_then(|call| execution.trace.position(call.moment));
    Asking {
        place: own.and_then(|call| call.own.first().cloned()),
        inside: None,
        position: position.map(|position| (thread, position)),
        stack: found.calls.iter().flat_map(|call| call.own.clone()).collect(),
        thread: Some(thread),
        asked,
        is_earlier,
    }
}

/// What to ask about a fault that the program handled itself.
fn of_fault(execution: &Execution, fault: &Handled) -> Option<Asking> {
    let (thread, moment, asked) = fault.asked(execution)?;
    let own = own_place(&execution.program, fault.pc);
    let mut stack = own_stack(execution, thread, moment);
    let place = own.clone().or_else(|| stack.first().cloned());
    stack.splice(0..0, own);
    let thread = Some(thread);
    Some(Asking { asked, place, inside: None, position: None, stack, thread, is_earlier: false })
}

/// Whether the last panic only passed on that of a thread.
fn is_passed_on(execution: &Execution, said: Option<&Said>) -> bool {
    let Some(said) = said else { return false };
    let Some((thread, moment)) = decided::last_panic(execution, false) else { return false };
    let calls = decided::active(execution, thread, moment);
    let own = calls.iter().find_map(|call| call.own.first().cloned());
    let named = said.place.as_deref().unwrap_or_default();
    own.is_some_and(|place| !names(named, &place))
}

/// Whether `FILE:LINE:COLUMN` names a place.
fn names(text: &str, place: &Place) -> bool {
    let (Some(file), Some(line)) = (&place.file, place.line) else { return true };
    let mut parts = text.rsplitn(3, ':');
    let (_, told, path) = (parts.next(), parts.next(), parts.next());
    let same_file =
        path.is_some_and(|path| Path::new(path).file_name() == Path::new(file).file_name());
    same_file && told.and_then(|told| told.parse::<u32>().ok()) == Some(line)
}

/// The program's own code has returned: the exit code is a value, or whatever it did last was decisive.
fn returned(execution: &Execution, by_pc: impl Fn(Vec<Asked>) -> Asking) -> Asking {
    let mut asking = by_pc(execution.asked_at_end());
    let end = StepCount(execution.trace.len());
    let thread = execution.trace.last_thread();
    let own = thread.and_then(|thread| decided::last_own(execution, thread, end));
    if let (Some((pc, moment)), Some(thread)) = (own, thread) {
        asking.place = own_place(&execution.program, pc);
        asking.position = execution.trace.position(moment).map(|position| (thread, position));
        asking.stack = asking.place.clone().into_iter().collect();
        asking.asked.push(Asked {
            thread,
            moment,
            wants: Wants { control: Some(pc), ..Wants::default() },
            words: THE_WAY.into(),
            pc: Some(pc),
        });
    }
    asking
}

fn is_same_line(one: Option<&Place>, other: Option<&Place>) -> bool {
    let line = |place: &Place| place.line.map(|line| (place.file.clone(), line));
    one.and_then(line).is_some_and(|known| other.and_then(line) == Some(known))
}

/// The place of an instruction. One of a library's is told as the call in the program's own code, with the
/// library's function.
fn own_or_caller(
    execution: &Execution,
    pc: u64,
    stack: &[Place],
) -> (Option<Place>, Option<String>) {
    if let Some(own) = own_place(&execution.program, pc) {
        return (Some(own), None);
    }
    let place = execution.program.symbolise(Address(pc)).place();
    match stack.first() {
        Some(caller) => (Some(caller.clone()), place.function),
        None => (Some(place), None),
    }
}

fn own_stack(execution: &Execution, thread: u32, at: StepCount) -> Vec<Place> {
    let calls = decided::active(execution, thread, at);
    calls.into_iter().flat_map(|call| call.own).collect()
}
