//! Back to where a value was made, again and again.

use super::watching::Watch;
use super::{Debugger, Stop};
use crate::error::fault_or_input;
use crate::slicing::{Query, windows};
use analyze::slice::{Follow, Kind};
use anyhow::ensure;
use base::Address;
use replay::Instant;
use symbols::{Held, Home, Level, Printing};

/// Where a value was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// By the instruction that is about to be executed now.
    Here {
        /// The value that it had before, as text, if it is in memory.
        before: Option<String>,
        /// The value that was asked about.
        value: String,
    },
    /// Nobody made it: it is as it was when the program was loaded.
    Loaded {
        /// The value.
        value: String,
    },
}

/// Instructions of one statement that a value is followed through.
const MOST_HOPS: u32 = 64;

/// What made a value, as far as a trace tells.
enum Maker {
    At(Instant),
    Nobody,
}

impl Debugger<'_> {
    /// Goes back to the instruction that made the value that an expression has now.
    pub fn origin(&mut self, level: Level, text: &str) -> anyhow::Result<Origin> {
        ensure!(
            self.away.is_none(),
            "this is a diversion; go back to the recording first (`back`)"
        );
        let (value, memory) = self.with_scene(None, |scene| {
            let found = scene.evaluate(level, text)?;
            let memory = match &found.held {
                Held::Memory(address) => Some(address.0),
                Held::Pieces(pieces) => match &pieces[..] {
                    [piece] => match &piece.home {
                        Home::Memory(address) => Some(address.0),
                        _ => None,
                    },
                    _ => None,
                },
            };
            let size = scene.size_of(found.module, &found.ty).unwrap_or(8).max(1);
            let shown = scene.print(&found, &Printing::SHORT);
            anyhow::Ok((shown, memory.map(|address| (address, size))))
        })??;
        let Some((address, size)) = memory else {
            ensure!(
                level == Level::default(),
                "{text} is in a register of an outer call; go there first"
            );
            return self.origin_in_trace(vec![text.to_owned()], value);
        };
        let watch = Watch { address, size, reads: false, writes: true };
        let (watches, breakpoints, conditional, points) = (
            std::mem::replace(&mut self.watches, vec![watch]),
            std::mem::take(&mut self.breakpoints),
            std::mem::take(&mut self.conditional),
            std::mem::take(&mut self.points),
        );
        let (line, here) = (self.at.instant(), self.at.at.ended);
        let found = self.resume_back(&mut || false);
        (self.watches, self.breakpoints) = (watches, breakpoints);
        (self.conditional, self.points) = (conditional, points);
        match found? {
            Stop::Watched(_) => {
                let before = self.memory_text(address, size);
                Ok(Origin::Here { before, value })
            }
            _ => {
                self.at = match here {
                    true => self.line.seek_end().map_err(fault_or_input)?,
                    false => self.line.seek(line).map_err(fault_or_input)?,
                };
                Ok(Origin::Loaded { value })
            }
        }
    }

    /// Goes back to what made the value that the instruction here hands on.
    pub fn origin_of_this(&mut self) -> anyhow::Result<Origin> {
        self.origin_in_trace(Vec::new(), String::new())
    }

    fn memory_text(&self, address: u64, size: u64) -> Option<String> {
        let mut bytes = vec![0; size.min(8) as usize];
        (self.read(address, &mut bytes) == bytes.len()).then(|| {
            let number = bytes.iter().rev().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
            format!("{number:#x}")
        })
    }

    fn origin_in_trace(&mut self, values: Vec<String>, value: String) -> anyhow::Result<Origin> {
        match self.maker(values)? {
            Maker::At(at) => {
                self.at = self.line.seek(at).map_err(fault_or_input)?;
                Ok(Origin::Here { before: None, value })
            }
            Maker::Nobody => Ok(Origin::Loaded { value }),
        }
    }

    /// The instruction that made a value, from a trace: registers are not watched.
    fn maker(&mut self, values: Vec<String>) -> anyhow::Result<Maker> {
        let mut query = Query::new(Follow::Thin);
        query.at = Some(self.moment());
        (query.values, query.depth) = (values, MOST_HOPS);
        let (execution, _, answer) =
            query.ask_case(self.case, self.process, windows::MEMORY, false)?;
        execution.complete()?;
        let pc_of = |instruction: u32| execution.trace.blocks.statics[instruction as usize].pc;
        let line_of = |pc: u64| {
            let place = execution.program.symbolise(Address(pc)).place();
            (place.file, place.line, place.function)
        };
        let here = line_of(self.at.at.thread.pc);
        // Through the instructions of this statement, to the first of another one.
        let (mut user, mut found) = (0, None);
        loop {
            let values = answer.edges.iter().filter(|it| it.user == user && it.kind == Kind::Value);
            let next = values.max_by_key(|edge| answer.nodes[edge.on as usize].moment);
            let Some(next) = next.map(|edge| edge.on) else { break };
            let node = &answer.nodes[next as usize];
            let (Some(instruction), Some(tick)) = (node.instruction, node.tick) else { break };
            let pc = pc_of(instruction);
            (user, found) = (next, Some(Instant { time: tick.0, pc: Some(pc) }));
            if line_of(pc) != here {
                break;
            }
        }
        Ok(found.map_or(Maker::Nobody, Maker::At))
    }
}
