//! From what a person wants altered to the instruction that has to be, and the patch there.

use super::{Altered, Ready, WhatIf};
use crate::error::fault_or_input;
use crate::moments;
use crate::scene::{At, registers_of};
use crate::threads::Threads;
use anyhow::{Context, bail, ensure};
use base::moment::Instant as Written;
use base::{Address, Moment, Nth, PlaceName, Range};
use events::patch::{Action, Patch, REGISTERS};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};
use replay::{Instant, StoppedProcess};
use symbols::{CodeLocation, Held, Home, Level, Register, Scene};

/// Bytes of a line's code that are looked at.
const MOST_CODE: u64 = 1 << 16;

/// Decisions of one line that are gone through to the last one.
const MOST_DECISIONS: usize = 64;

/// Ticks that one instruction takes at most to come to the next.
const ONE_STEP: u64 = 2;

impl WhatIf<'_> {
    /// Stands where something is to be altered.
    pub(super) fn ready(&mut self, altered: &Altered) -> anyhow::Result<Ready> {
        match altered {
            Altered::Switch(at) => self.switch(at),
            Altered::Suppress(at) => self.suppress(at),
            Altered::Set { assignment, at } => self.set(assignment, at),
        }
    }

    fn switch(&mut self, at: &Moment) -> anyhow::Result<Ready> {
        let Written::Place(place, nth) = &at.instant else {
            bail!("'{at}' is no place; say which decision, like --switch FILE:LINE#N")
        };
        ensure!(
            !matches!(place, PlaceName::Function(_)),
            "{place} is a function; say the line of the decision, like --switch FILE:LINE#N"
        );
        let locations = self.known.program.resolve(place)?;
        let each: Vec<Vec<u64>> = locations.iter().map(|it| self.decisions(it)).collect();
        ensure!(
            each.iter().any(|branches| !branches.is_empty()),
            "nothing is decided at {place}: it has no conditional branch"
        );
        let standing = if each.iter().all(|branches| branches.len() <= 1) {
            self.seek_one_of(at, place, *nth, &each.concat())?
        } else {
            let ranges: Vec<Range> = locations.into_iter().flat_map(|it| it.ranges).collect();
            let first = moments::seek(self.case, self.process, &mut self.line, at)?;
            self.last_decision(first, &each.concat(), &ranges)?
        };
        Ok(once(standing, Action::Flip, format!("the decision at {at} goes the other way")))
    }

    /// The N-th time that one of these instructions is executed.
    fn seek_one_of(
        &mut self,
        moment: &Moment,
        place: &PlaceName,
        nth: Nth,
        pcs: &[u64],
    ) -> anyhow::Result<StoppedProcess> {
        let thread = moments::thread_of(moment, &Threads::of(self.case.recording(), self.process))?;
        let count = match nth {
            Nth::Number(count) => count,
            Nth::FromEnd(back) => {
                let times = self.line.count_hits(pcs, thread).map_err(fault_or_input)?;
                let first = times.checked_sub(back).map(|before| before + 1);
                first.ok_or_else(|| moments::not_executed(moment, place, times))?
            }
        };
        let found = self.line.seek_hit(pcs, thread, count).map_err(fault_or_input)?;
        ensure!(found.at.hits == count, moments::not_executed(moment, place, found.at.hits));
        Ok(found)
    }

    /// Of a condition in parts, the last that is evaluated: from a moment on, the first branch of a line
    /// that leads out of it.
    pub(super) fn last_decision(
        &mut self,
        mut standing: StoppedProcess,
        branches: &[u64],
        ranges: &[Range],
    ) -> anyhow::Result<StoppedProcess> {
        let thread = Some(standing.at.thread.number);
        let mut last = None;
        for _ in 0..MOST_DECISIONS {
            if !branches.contains(&standing.at.thread.pc) {
                self.line
                    .go_on_to_hit(&mut standing, (branches, thread), 1, None)
                    .map_err(fault_or_input)?;
                if standing.at.ended {
                    break;
                }
            }
            let branch = self.instruction(&standing, standing.at.thread.pc)?;
            let here = standing.instant();
            let next = [branch.near_branch64(), branch.next_ip()];
            let soon = Instant { time: standing.at.time + ONE_STEP, pc: None };
            self.line
                .go_on_to_hit(&mut standing, (&next[..], thread), 1, Some(soon))
                .map_err(fault_or_input)?;
            last = Some(here);
            let pc = Address(standing.at.thread.pc);
            if standing.at.hits == 0 || !ranges.iter().any(|range| range.contains(pc)) {
                break;
            }
        }
        let last = last.context("the program ends before it decides there")?;
        self.line.seek(last).map_err(fault_or_input)
    }

    /// The conditional branches of a piece of code.
    pub(super) fn decisions(&self, location: &CodeLocation) -> Vec<u64> {
        let decides = |it: &&Instruction| it.flow_control() == FlowControl::ConditionalBranch;
        self.code(&location.ranges).iter().filter(decides).map(Instruction::ip).collect()
    }

    /// The instructions of some stretches of code.
    fn code(&self, ranges: &[Range]) -> Vec<Instruction> {
        let mut all = Vec::new();
        for range in ranges {
            let length = (range.end.0 - range.start.0).min(MOST_CODE);
            let mut bytes = vec![0; length as usize];
            let got = self.end.read(range.start.0, &mut bytes);
            all.extend(Decoder::with_ip(64, &bytes[..got], range.start.0, DecoderOptions::NONE));
        }
        all
    }

    fn instruction(&self, standing: &StoppedProcess, pc: u64) -> anyhow::Result<Instruction> {
        const LONGEST: usize = 15;
        let mut bytes = [0; LONGEST];
        let got = standing.read(pc, &mut bytes);
        let decoded = Decoder::with_ip(64, &bytes[..got], pc, DecoderOptions::NONE).decode();
        ensure!(!decoded.is_invalid(), "there is no instruction at {pc:#x}");
        Ok(decoded)
    }

    fn suppress(&mut self, at: &Moment) -> anyhow::Result<Ready> {
        let Written::Place(place, nth) = &at.instant else {
            bail!("'{at}' is no place; say what is left out, like --suppress FILE:LINE#N")
        };
        let locations = self.known.program.resolve(place)?;
        if matches!(place, PlaceName::Function(_)) {
            ensure!(
                locations.iter().all(|it| !it.inlined),
                "{place} is inlined somewhere, so that it is not called; say the line to leave out"
            );
            let entries: Vec<u64> = locations.iter().map(|it| it.entry.0).collect();
            let standing = self.seek_one_of(at, place, *nth, &entries)?;
            let words = format!("the call {at} is left out and gives 0");
            return Ok(once(standing, Action::Return, words));
        }
        let standing = moments::seek(self.case, self.process, &mut self.line, at)?;
        let pc = Address(standing.at.thread.pc);
        let to = match place {
            PlaceName::Address(_) => self.instruction(&standing, pc.0)?.next_ip(),
            _ => self.behind(place, &locations, pc)?,
        };
        Ok(once(standing, Action::Jump { to }, format!("{at} is left out")))
    }

    /// Where a statement ends that begins at an instruction.
    fn behind(
        &self,
        place: &PlaceName,
        locations: &[CodeLocation],
        pc: Address,
    ) -> anyhow::Result<u64> {
        let ranges = || locations.iter().flat_map(|it| it.ranges.iter());
        let mut end = pc;
        while let Some(range) = ranges().find(|range| range.contains(end)) {
            end = range.end;
        }
        ensure!(end > pc, "where {place} ends is not known");
        let inside = Range { start: pc, end };
        for instruction in self.code(&[inside]) {
            let leaves = |to: u64| !inside.contains(Address(to)) && to != end.0;
            match instruction.flow_control() {
                FlowControl::Return => {
                    bail!("{place} returns from its function; leave the call out, by its function")
                }
                FlowControl::ConditionalBranch if leaves(instruction.near_branch64()) => {
                    bail!("{place} decides something; turn it around with --switch {place}")
                }
                _ => {}
            }
        }
        Ok(end.0)
    }

    fn set(&mut self, assignment: &str, at: &Moment) -> anyhow::Result<Ready> {
        let form = || format!("'{assignment}' is not EXPRESSION=VALUE");
        let (target, value) = assignment.rsplit_once('=').with_context(form)?;
        let (target, value) = (target.trim(), value.trim());
        let standing = moments::seek(self.case, self.process, &mut self.line, at)?;
        let action = match assignment.starts_with(['$', '[']) {
            true => format!("set {target}={value}").parse()?,
            false => self.variable(&standing, target, value)?,
        };
        Ok(once(standing, action, format!("{target} is {value} at {at}")))
    }

    fn variable(
        &self,
        standing: &StoppedProcess,
        name: &str,
        value: &str,
    ) -> anyhow::Result<Action> {
        let memory = At(standing);
        let registers = registers_of(&standing.at.thread);
        let stack = self.known.program.unwind_at_most(&registers, &memory, 1);
        let thread_pointer = Some(Address(standing.at.thread.bases[0]));
        let scene =
            Scene { program: &self.known.program, memory: &memory, stack: &stack, thread_pointer };
        let found = scene.evaluate(Level::default(), name)?;
        let size = scene.size_of(found.module, &found.ty).unwrap_or(8);
        ensure!(
            matches!(size, 1 | 2 | 4 | 8),
            "{name} has {size} bytes; a value of 1, 2, 4 or 8 can be set"
        );
        let bits = bits_of(value, size)?;
        match &found.held {
            Held::Memory(address) => {
                Ok(Action::SetMemory { address: address.0, size: size as u8, value: bits })
            }
            Held::Pieces(pieces) => match &pieces[..] {
                [piece] => match &piece.home {
                    Home::Memory(address) => {
                        Ok(Action::SetMemory { address: address.0, size: size as u8, value: bits })
                    }
                    Home::Register { register, .. } => {
                        let number = general(*register).with_context(|| {
                            format!("{name} is in ${register}, which cannot be set")
                        })?;
                        let before = standing.at.thread.general[usize::from(number)];
                        // Writing four bytes of a register clears the rest.
                        let kept = if size < 4 { before >> (8 * size) << (8 * size) } else { 0 };
                        Ok(Action::SetRegister { register: number, value: kept | bits })
                    }
                    _ => bail!("{name} cannot be set there: the compiler keeps it nowhere"),
                },
                _ => bail!("{name} is in several pieces there; set one of its members"),
            },
        }
    }
}

/// An alteration of the instruction that comes next.
pub(super) fn once(standing: StoppedProcess, action: Action, words: String) -> Ready {
    let patch = Patch { pc: standing.at.thread.pc, execution: Some(1), action };
    Ready { standing, patches: vec![patch], words }
}

/// The processor's number of a general register.
fn general(register: Register) -> Option<u8> {
    let name = register.to_string();
    REGISTERS.iter().position(|known| *known == name).map(|number| number as u8)
}

/// A value as its bytes are, in one word.
fn bits_of(text: &str, size: u64) -> anyhow::Result<u64> {
    let wrong = || format!("'{text}' is not a value: a number, 'c', true, false, NULL");
    let character = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    let value = match (text, character) {
        ("true", _) => 1,
        ("false" | "NULL" | "nullptr", _) => 0,
        (_, Some(character)) => {
            let mut all = character.chars();
            let (first, None) = (all.next().with_context(wrong)?, all.next()) else {
                bail!(wrong())
            };
            i128::from(u32::from(first))
        }
        _ if text.contains('.') => {
            let number: f64 = text.parse().ok().with_context(wrong)?;
            return Ok(match size {
                4 => u64::from((number as f32).to_bits()),
                8 => number.to_bits(),
                _ => bail!("{text} does not fit into {size} bytes"),
            });
        }
        _ => match text.strip_prefix("0x") {
            Some(digits) => i128::from(u64::from_str_radix(digits, 16).ok().with_context(wrong)?),
            None => text.parse().ok().with_context(wrong)?,
        },
    };
    let bits = 8 * size as u32;
    let fits = (-(1i128 << (bits - 1))..1i128 << bits).contains(&value);
    ensure!(fits, "{text} does not fit into {size} bytes");
    Ok(value as u64 & (u64::MAX >> (64 - bits)))
}

#[cfg(test)]
mod tests {
    use super::bits_of;

    #[test]
    fn values_are_read_as_their_bytes() {
        let rows = [
            ("7", 4, Some(7)),
            ("-1", 4, Some(0xffff_ffff)),
            ("0x1f", 8, Some(31)),
            ("'a'", 1, Some(97)),
            ("NULL", 8, Some(0)),
            ("true", 1, Some(1)),
            ("1.5", 8, Some(1.5f64.to_bits())),
            ("255", 1, Some(255)),
            ("256", 1, None),
            ("-129", 1, None),
            ("x", 4, None),
            ("'ab'", 1, None),
        ];
        for (text, size, expected) in rows {
            assert_eq!(bits_of(text, size).ok(), expected, "{text}");
        }
    }
}
