//! Moments as users write them: `PLACE#N`, `crash`, `end`, `@T`.

use anyhow::{Context, bail};
use base::Range;
use engine::config::Point;
use replay::{Instant, Standing, Timeline};
use std::ffi::OsStr;
use std::path::Path;
use std::str::FromStr;
use symbols::{DebugFiles, Image, LoadedModule, PlaceName, Program};

/// Where the engine loads programs that can be loaded anywhere.
const LOADED_AT: u64 = 0x5555_5555_4000;

/// A moment, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A place, and which of its executions; the last one if there is no number.
    Place(PlaceName, Option<u64>),
    /// After so many ticks.
    Time(u64),
    /// The end, and if it was one, the crash.
    End,
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(time) = text.strip_prefix('@') {
            let time =
                time.parse().map_err(|_| format!("'{text}' is not a time such as @12000"))?;
            return Ok(Self::Time(time));
        }
        if text == "end" || text == "crash" {
            return Ok(Self::End);
        }
        let (place, which) = match text.rsplit_once('#') {
            None => (text, Some(1)),
            Some((place, "last")) => (place, None),
            Some((place, number)) => match number.parse() {
                Ok(number) if number > 0 => (place, Some(number)),
                _ => return Err(format!("'#{number}' is not an execution such as #1 or #last")),
            },
        };
        let place = place.parse::<PlaceName>().map_err(|error| error.to_string())?;
        Ok(Self::Place(place, which))
    }
}

impl Moment {
    /// Goes there.
    pub fn find(&self, line: &mut Timeline) -> anyhow::Result<Standing> {
        let standing = match self {
            Self::End => line.seek_end(),
            Self::Time(time) => line.seek(Instant { time: *time, pc: None }),
            Self::Place(place, which) => {
                let modules = line.end().map_err(super::run::fault_or_input)?.modules.clone();
                let program = crate::render::crash::program_of(&modules);
                let pc = address(&program, place)?;
                let count = match which {
                    Some(count) => *count,
                    None => line.count_hits(pc).map_err(super::run::fault_or_input)?,
                };
                let found = line.seek_hit(pc, count).map_err(super::run::fault_or_input)?;
                if found.at.hits < count || count == 0 {
                    let times = found.at.hits;
                    bail!("{place} is executed {times} times; there is no #{}", count.max(1));
                }
                Ok(found)
            }
        };
        standing.map_err(super::run::fault_or_input)
    }

    /// As the beginning or end of a region of a program that has not been started yet.
    pub fn point(&self, program: &OsStr) -> anyhow::Result<Point> {
        match self {
            Self::Time(ticks) => Ok(Point::Ticks(*ticks)),
            Self::Place(place, Some(count)) => {
                let program = executable(Path::new(program))?;
                Ok(Point::Place { pc: address(&program, place)?, count: *count })
            }
            Self::Place(_, None) | Self::End => {
                bail!("a region begins and ends at PLACE, PLACE#N or @T: the rest is not known yet")
            }
        }
    }
}

fn address(program: &Program, place: &PlaceName) -> anyhow::Result<u64> {
    let found = program.resolve(place)?;
    let first = found.first().context("the place has no code")?;
    Ok(first.entry.0)
}

/// The executable where the engine will load it.
fn executable(path: &Path) -> anyhow::Result<Program> {
    let path = engine::host::find_program(path.as_os_str())?;
    let image = Image::open(&path)
        .with_context(|| format!("{} has no places: it is not an ELF file", path.display()))?;
    // A file that can be loaded anywhere has addresses from zero on.
    let lowest = image.segments().iter().map(|part| part.address.0).min().unwrap_or(0);
    let bias = if lowest < 0x1000 { LOADED_AT } else { 0 };
    let end = image.segments().iter().map(|part| part.address.0.saturating_add(part.size)).max();
    let range = Range::new(bias, end.unwrap_or(0));
    Ok(Program::open([LoadedModule { path, bias, range }], &DebugFiles::default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_as_they_are_written() {
        let place = |name: &str| PlaceName::Function(name.into());
        assert_eq!("main".parse(), Ok(Moment::Place(place("main"), Some(1))));
        assert_eq!("main#7".parse(), Ok(Moment::Place(place("main"), Some(7))));
        assert_eq!("main#last".parse(), Ok(Moment::Place(place("main"), None)));
        assert_eq!("@12".parse(), Ok(Moment::Time(12)));
        assert_eq!("crash".parse(), Ok(Moment::End));
        for wrong in ["main#0", "main#x", "@x", "", "*zz"] {
            assert!(wrong.parse::<Moment>().is_err(), "{wrong}");
        }
    }
}
