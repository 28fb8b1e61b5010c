//! Time and identity in a recorded process, each a type of its own.
//!
//! A **tick** is what the runner counts cheaply: taken backward branches, returns, indirect jumps. A
//! **step** is an executed instruction. Between two ticks no instruction is executed twice, so a tick and
//! a pc are an exact [`Position`]. Processes and threads have small numbers that are the same in every replay;
//! the kernel's ids are attributes of them.

use crate::address::Address;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Ticks of a process so far.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Tick(pub u64);

impl fmt::Display for Tick {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "@{}", self.0)
    }
}

/// Instructions that all threads of a process have executed before.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct StepCount(pub u64);

impl StepCount {
    /// Later than everything.
    pub const NEVER: Self = Self(u64::MAX);
}

/// An exact instant of a process: `@TICK:0xPC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    /// Ticks so far.
    pub tick: Tick,
    /// The instruction that comes next.
    pub pc: Address,
}

impl fmt::Display for Position {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.tick, self.pc)
    }
}

impl FromStr for Position {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (tick, pc) = text.strip_prefix('@').and_then(|text| text.split_once(':')).ok_or(())?;
        let tick = Tick(tick.parse().map_err(|_| ())?);
        Ok(Self { tick, pc: Address::parse(pc).ok_or(())? })
    }
}

/// The number of a process in a recording, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProcessNumber(pub u32);

impl fmt::Display for ProcessNumber {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// The number of a thread in its process: the first is 1, the others count in the order in which they were
/// made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ThreadNumber(pub u32);

impl ThreadNumber {
    /// The thread that a process begins with.
    pub const FIRST: Self = Self(1);
}

impl fmt::Display for ThreadNumber {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// When something happened, in which thread of which process: `@TICK:0xPC/THREAD`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct When {
    /// The process.
    pub process: ProcessNumber,
    /// The thread.
    pub thread: ThreadNumber,
    /// The instant.
    #[serde(flatten)]
    pub position: Position,
}

impl fmt::Display for When {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.position, self.thread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_is_written() {
        let position = Position { tick: Tick(4711), pc: Address(0x40_1136) };
        assert_eq!(position.to_string(), "@4711:0x401136");
        assert_eq!("@4711:0x401136".parse(), Ok(position));
        for wrong in ["4711:0x40", "@4711", "@x:0x40", "@1:40", "@1:0x"] {
            assert_eq!(wrong.parse::<Position>(), Err(()), "{wrong}");
        }
    }
}
