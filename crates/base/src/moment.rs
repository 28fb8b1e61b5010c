//! The notation of **moments**: how a person writes a position of a process. One grammar for every command:
//!
//! ```text
//! MOMENT  = WHEN [/THREAD]
//! WHEN    = start | end | crash | @TICK | @TICK:0xPC | PLACE | PLACE#N | PLACE#-N | PLACE#last
//! ```
//!
//! A place by itself means its last execution, the one nearest to the end; `#-2` is the one before that.

use crate::place::PlaceName;
use crate::time::{Position, ThreadNumber, Tick};
use std::fmt;
use std::str::FromStr;

/// A moment as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// When.
    pub instant: Instant,
    /// Only what this thread does counts.
    pub thread: Option<ThreadNumber>,
}

/// An instant as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instant {
    /// Before the first instruction.
    Start,
    /// The end, however it came about.
    End,
    /// The fatal signal.
    Crash,
    /// The first instruction at this tick.
    Tick(Tick),
    /// An exact position.
    Position(Position),
    /// Before an execution of a place.
    Place(PlaceName, Nth),
}

/// Which execution of a place is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nth {
    /// The first is number 1.
    Number(u64),
    /// The last is number 1, the one before it number 2.
    FromEnd(u64),
}

/// What cannot be read as a moment, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAMoment(String);

impl fmt::Display for NotAMoment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for NotAMoment {}

impl Moment {
    /// The end.
    pub const END: Self = Self { instant: Instant::End, thread: None };

    /// Whether it is told from the end of a run, so that nothing has to be counted from its beginning.
    #[must_use]
    pub fn is_counted_from_end(&self) -> bool {
        match self.instant {
            Instant::End | Instant::Crash | Instant::Place(_, Nth::FromEnd(_)) => true,
            Instant::Start | Instant::Tick(_) | Instant::Position(_) | Instant::Place(..) => false,
        }
    }
}

impl FromStr for Moment {
    type Err = NotAMoment;

    fn from_str(text: &str) -> Result<Self, NotAMoment> {
        let text = text.trim();
        // Paths have slashes, too, but no place ends in one and a number.
        let (instant, thread) = match text.rsplit_once('/') {
            Some((instant, number)) if is_number(number) => {
                let thread = number.parse().ok().filter(|number| *number > 0);
                let wrong =
                    || NotAMoment(format!("'/{number}' is not a thread; they count from /1"));
                (instant, Some(ThreadNumber(thread.ok_or_else(wrong)?)))
            }
            _ => (text, None),
        };
        Ok(Self { instant: instant.parse()?, thread })
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit())
}

impl FromStr for Instant {
    type Err = NotAMoment;

    fn from_str(text: &str) -> Result<Self, NotAMoment> {
        match text {
            "start" => return Ok(Self::Start),
            "end" => return Ok(Self::End),
            "crash" => return Ok(Self::Crash),
            _ => {}
        }
        if let Some(tick) = text.strip_prefix('@') {
            let exact = text.parse().ok().map(Self::Position);
            let tick = tick.parse().ok().map(|tick| Self::Tick(Tick(tick)));
            return exact.or(tick).ok_or_else(|| {
                NotAMoment(format!("'{text}' is not a time such as @12000 or @12000:0x401136"))
            });
        }
        let (place, nth) = match text.rsplit_once('#') {
            None | Some((_, "last")) => (text.trim_end_matches("#last"), Nth::FromEnd(1)),
            Some((place, number)) => {
                let wrong = || {
                    NotAMoment(format!(
                        "'#{number}' is not an execution; #1 is the first, #-1 or #last the last"
                    ))
                };
                let number = number.parse::<i64>().ok().filter(|number| *number != 0);
                let number = number.ok_or_else(wrong)?;
                let count = number.unsigned_abs();
                (place, if number > 0 { Nth::Number(count) } else { Nth::FromEnd(count) })
            }
        };
        let place = place.parse().map_err(|error: crate::place::NotAPlace| {
            NotAMoment(format!("{error}, or start, end, crash, @TICK"))
        })?;
        Ok(Self::Place(place, nth))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.instant {
            Instant::Start => out.write_str("start"),
            Instant::End => out.write_str("end"),
            Instant::Crash => out.write_str("crash"),
            Instant::Tick(tick) => tick.fmt(out),
            Instant::Position(position) => position.fmt(out),
            Instant::Place(place, Nth::Number(number)) => write!(out, "{place}#{number}"),
            Instant::Place(place, Nth::FromEnd(number)) => write!(out, "{place}#-{number}"),
        }?;
        self.thread.map_or(Ok(()), |thread| write!(out, "/{thread}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Address;

    fn place(name: &str, nth: Nth) -> Instant {
        Instant::Place(name.parse().expect("a place"), nth)
    }

    #[test]
    fn moments_are_read_in_all_forms() {
        let position = Position { tick: Tick(7), pc: Address(0x40) };
        let cases = [
            ("start", Instant::Start, None, "start"),
            ("end", Instant::End, None, "end"),
            ("crash/2", Instant::Crash, Some(2), "crash/2"),
            ("@12", Instant::Tick(Tick(12)), None, "@12"),
            ("@7:0x40/1", Instant::Position(position), Some(1), "@7:0x40/1"),
            ("main", place("main", Nth::FromEnd(1)), None, "main#-1"),
            ("main#last", place("main", Nth::FromEnd(1)), None, "main#-1"),
            ("src/a.c:4#3/12", place("src/a.c:4", Nth::Number(3)), Some(12), "src/a.c:4#3/12"),
            ("*0x40#-2", place("*0x40", Nth::FromEnd(2)), None, "*0x40#-2"),
        ];
        for (text, instant, thread, shown) in cases {
            let expected = Moment { instant, thread: thread.map(ThreadNumber) };
            assert_eq!(text.parse(), Ok(expected.clone()), "{text}");
            assert_eq!(expected.to_string(), shown);
            assert_eq!(shown.parse(), Ok(expected), "{shown}");
        }
    }

    #[test]
    fn what_is_no_moment_is_refused_with_the_right_form() {
        let cases = [
            ("main#0", "#1 is the first"),
            ("main#x", "#1 is the first"),
            ("@x", "such as @12000"),
            ("main/0", "they count from /1"),
            ("", "write FILE:LINE"),
            ("*zz", "write FILE:LINE"),
        ];
        for (text, expected) in cases {
            let error = text.parse::<Moment>().expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
