//! What a program would have done with something altered: a **diversion** leaves the recording at a moment
//! with a branch that goes the other way, a statement or call left out, or a value set, and its end is compared
//! with the recorded one.
//!
//! * [`places`]: which instruction is meant by the place that a person writes;
//! * [`differ`]: what was written otherwise;
//! * [`search`]: the decisions of a failure, each turned around alone.

pub mod differ;
pub mod places;
pub mod search;

use crate::case::Case;
use crate::crash::signal_name;
use crate::ending::words;
use crate::error::fault_or_input;
use crate::scene::registers_of;
use analyze::slice::view::own_place;
use anyhow::ensure;
use base::{Address, Ending, Moment, Place, Position, Tick};
use differ::Difference;
use events::patch::Patch;
use replay::diversion::{Budget, Diversion, DiversionEnd};
use replay::{Instant, StoppedProcess, Timeline};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use symbols::{Memory, Program};

/// What is altered.
#[derive(Clone, Debug)]
pub enum Altered {
    /// The decision at a moment goes the other way.
    Switch(Moment),
    /// The statement or call at a moment is left out.
    Suppress(Moment),
    /// A value is set at a moment.
    Set {
        /// `EXPRESSION=VALUE`.
        assignment: String,
        /// When.
        at: Moment,
    },
}

/// How the end of a diversion is, compared with the recorded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It ends well.
    NoFailure,
    /// It fails as the recording does.
    SameFailure,
    /// It ends otherwise, or not at all.
    OtherEnd,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct End {
    /// In words.
    pub words: String,
    /// Where, in the program's own code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    #[serde(skip)]
    ending: Option<Ending>,
}

/// What came of an alteration.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// What was altered, in words.
    pub altered: String,
    /// Where it left the recording.
    #[serde(flatten)]
    pub at: Position,
    /// The place of that in the program.
    pub place: Place,
    /// What that means.
    pub verdict: Verdict,
    /// How the recorded process ended.
    pub recorded: End,
    /// How the diversion ended.
    pub end: End,
    /// The first output that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
    /// What the diversion wrote, as text: to standard output, and to standard error.
    pub output: [String; 2],
    /// Whether it wrote more than that.
    pub output_cut: bool,
    /// System calls that were answered as recorded.
    pub answered: u64,
    /// What was refused or made up, and how often.
    pub refused: Vec<(String, u64)>,
}

/// Memory that diversions of one process may map.
const MEMORY: u64 = 1 << 30;

/// Ticks that a diversion may take: the same end on every machine that is fast enough.
const TICKS: u64 = 4_000_000_000;

/// Frames looked at for the program's own code.
const FRAMES: usize = 64;

/// A process of a case, to be altered.
pub struct WhatIf<'case> {
    case: &'case Case,
    process: u32,
    line: Timeline,
    /// The process at its end, where all of its code is.
    end: StoppedProcess,
    known: Arc<Baseline>,
}

/// What the recorded process was and did, which diversions are compared with.
struct Baseline {
    program: Program,
    recorded: End,
    written: Vec<(u8, Vec<u8>)>,
}

/// What is altered where, without a process that stands there.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The moment.
    pub at: Instant,
    /// What is altered.
    pub patches: Vec<Patch>,
    /// In words.
    pub words: String,
}

/// Where something is altered, ready to go.
pub struct Ready {
    standing: StoppedProcess,
    patches: Vec<Patch>,
    words: String,
}

struct Ended<'a>(&'a Diversion);

impl Memory for Ended<'_> {
    fn read(&self, address: Address, into: &mut [u8]) -> bool {
        self.0.read(address.0, into) == into.len()
    }
}

impl<'case> WhatIf<'case> {
    /// A process of a case.
    pub fn of(case: &'case Case, process: u32) -> anyhow::Result<Self> {
        let mut line = case.timeline(process)?;
        line.end().map_err(fault_or_input)?;
        let end = line.seek_end().map_err(fault_or_input)?;
        let program = case.program(&end.at.modules)?;
        let memory = crate::scene::At(&end);
        let recorded = End {
            words: match end.at.ending {
                Some(ending) => in_words(ending),
                None => "the recording ends before the program does".into(),
            },
            place: place_of_end(&program, &end.at.thread, &memory),
            ending: end.at.ending,
        };
        let written = words::written(case.session(), process)?.into_pieces();
        let known = Arc::new(Baseline { program, recorded, written });
        Ok(Self { case, process, line, end, known })
    }

    /// How the recorded process ended.
    pub fn recorded(&self) -> &End {
        &self.known.recorded
    }

    /// Alters something, and tells what comes of it within so much time.
    pub fn alter(&mut self, altered: &Altered, time: Duration) -> anyhow::Result<Answer> {
        let ready = self.ready(altered)?;
        self.known.run(ready, time)
    }

    /// Where something is altered, and how.
    pub fn prepare(&mut self, altered: &Altered) -> anyhow::Result<Prepared> {
        let Ready { standing, patches, words } = self.ready(altered)?;
        Ok(Prepared { at: standing.instant(), patches, words })
    }

    /// What has come so far of a diversion that left the recording at a moment.
    pub fn tell(&self, diversion: &Diversion, words: String, left: Instant) -> Answer {
        let pc = Address(left.pc.unwrap_or_default());
        let place = self.known.program.symbolise(pc).place();
        self.known.answer(diversion, words, Position { tick: Tick(left.time), pc }, place)
    }

    /// Leaves the recording at a moment without altering anything.
    pub fn unaltered(&mut self, at: &Moment, time: Duration) -> anyhow::Result<Answer> {
        let standing = crate::moments::seek(self.case, self.process, &mut self.line, at)?;
        let words = "nothing is altered".into();
        self.known.run(Ready { standing, patches: Vec::new(), words }, time)
    }
}

impl Baseline {
    fn run(&self, ready: Ready, time: Duration) -> anyhow::Result<Answer> {
        let Ready { standing, patches, words } = ready;
        ensure!(!standing.at.ended, "the program has ended there; say a moment before its end");
        let pc = Address(standing.at.thread.pc);
        let at = Position { tick: Tick(standing.at.time), pc };
        let place = self.program.symbolise(pc).place();
        let milliseconds = u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1);
        let budget = Budget { ticks: TICKS, milliseconds, memory: MEMORY };
        let diversion = standing.divert(patches, budget).map_err(|error| {
            anyhow::anyhow!("the diversion at {at} cannot be followed: its runner ended: {error}")
        })?;
        Ok(self.answer(&diversion, words, at, place))
    }

    fn answer(&self, diversion: &Diversion, altered: String, at: Position, place: Place) -> Answer {
        let diverted = &diversion.diverted;
        let end = self.end(diversion);
        let before = (diverted.outputs_before as usize).min(self.written.len());
        let difference = differ::first(&self.written[before..], &diversion.output);
        let text = |stream: u8| {
            let own = diversion.output.iter().filter(|(of, _)| *of == stream);
            let bytes: Vec<u8> = own.flat_map(|(_, bytes)| bytes.iter().copied()).collect();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        Answer {
            altered,
            at,
            place,
            verdict: self.verdict(&end),
            recorded: self.recorded.clone(),
            end,
            difference,
            output: [text(1), text(2)],
            output_cut: diverted.output_cut,
            answered: diverted.answered,
            refused: diverted.refused.clone(),
        }
    }

    fn end(&self, diversion: &Diversion) -> End {
        let diverted = &diversion.diverted;
        let (words, ending) = match &diverted.end {
            DiversionEnd::Ended(ending) => (in_words(*ending), Some(*ending)),
            DiversionEnd::Executed(program) => (format!("it becomes {program}"), None),
            DiversionEnd::Stuck => {
                ("all its threads wait, for each other or for ever".into(), None)
            }
            DiversionEnd::Reached => ("it has stopped on the way".into(), None),
            DiversionEnd::Unfinished => ("no end within the budget".into(), None),
            DiversionEnd::Lost(why) => (format!("it cannot be followed further: {why}"), None),
        };
        let place = place_of_end(&self.program, &diverted.thread, &Ended(diversion));
        End { words, place, ending }
    }

    /// A failure is the same if it is of the same kind at the same line.
    fn verdict(&self, end: &End) -> Verdict {
        let same_place = || {
            let line = |end: &End| end.place.as_ref().map(|it| (it.file.clone(), it.line));
            line(end) == line(&self.recorded)
        };
        match (end.ending, self.recorded.ending) {
            (Some(Ending::Exit(0)), _) => Verdict::NoFailure,
            (Some(Ending::Exit(code)), Some(Ending::Exit(then))) if code == then => {
                Verdict::SameFailure
            }
            (Some(Ending::Signal(signal)), Some(Ending::Signal(then)))
                if signal == then && same_place() =>
            {
                Verdict::SameFailure
            }
            _ => Verdict::OtherEnd,
        }
    }
}

fn in_words(ending: Ending) -> String {
    match ending {
        Ending::Exit(code) => format!("it exits with {}", code & 0xff),
        Ending::Signal(signal) => format!("{} ends it", signal_name(signal)),
    }
}

/// The innermost active call of the program's own code.
fn place_of_end(
    program: &Program,
    thread: &recording::log::ThreadData,
    memory: &dyn Memory,
) -> Option<Place> {
    let stack = program.unwind_at_most(&registers_of(thread), memory, FRAMES);
    stack.frames.iter().find_map(|frame| own_place(program, frame.code().0))
}
