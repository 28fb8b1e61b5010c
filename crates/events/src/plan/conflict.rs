//! Which parts of a plan cannot be had together, and why.

use super::{Execution, Paint, Plan, Screen};
use std::fmt;

/// Why a plan is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// Two screens of one kind.
    Twice(&'static str),
    /// Two screens that need the same thing of the engine's.
    Shared {
        /// One of them.
        one: &'static str,
        /// The other.
        other: &'static str,
        /// What both need.
        what: &'static str,
    },
    /// A screen, and records of execution.
    Observed {
        /// The screen.
        screen: &'static str,
        /// What is observed.
        execution: Execution,
    },
    /// Memory is painted with the bit that is the engine's own.
    Paint(Paint),
    /// Memory is poisoned in a run that is no replay.
    Live,
}

impl fmt::Display for Conflict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Twice(name) => write!(out, "a plan has one {name} screen at most, not two"),
            Self::Shared { one, other, what } => write!(
                out,
                "the {one} screen and the {other} screen cannot be in one plan: both need {what}"
            ),
            Self::Observed { screen, execution } => write!(
                out,
                "the {screen} screen cannot be in a plan that observes execution ({execution:?}): \
                 translated code writes to its table where records would be"
            ),
            Self::Paint(paint) => write!(
                out,
                "memory from {:#x} to {:#x} is painted {:#x}, but the bit 0x80 is not the plan's to use",
                paint.range.start, paint.range.end, paint.bits
            ),
            Self::Live => out.write_str(
                "the poison screen changes what the program does: it is for replays of a recording",
            ),
        }
    }
}

impl std::error::Error for Conflict {}

const SHADOW_TABLE: &str = "the table that shadows memory";
const CALLS: &str = "to follow the calls of allocators";

/// What two kinds of screens both need, if there is such a thing. A new kind is compared with each
/// of the others here.
fn shared(one: &Screen, other: &Screen) -> Option<&'static str> {
    use Screen as S;
    match (one, other) {
        (S::Shadow(_), S::Heap(_) | S::Allocations(_))
        | (S::Heap(_) | S::Allocations(_), S::Shadow(_))
        | (S::Heap(_), S::Allocations(_))
        | (S::Allocations(_), S::Heap(_)) => Some(SHADOW_TABLE),
        (S::Poison(_), S::Heap(_) | S::Allocations(_))
        | (S::Heap(_) | S::Allocations(_), S::Poison(_)) => Some(CALLS),
        (S::Shadow(_), S::Poison(_)) | (S::Poison(_), S::Shadow(_)) => None,
        (S::Shadow(_), S::Shadow(_))
        | (S::Heap(_), S::Heap(_))
        | (S::Allocations(_), S::Allocations(_))
        | (S::Poison(_), S::Poison(_)) => None,
    }
}

impl Plan {
    /// Whether its parts can be had together in a replay.
    pub fn check(&self) -> Result<(), Conflict> {
        for (index, one) in self.screens.iter().enumerate() {
            for other in &self.screens[index + 1..] {
                if one.name() == other.name() {
                    return Err(Conflict::Twice(one.name()));
                }
                if let Some(what) = shared(one, other) {
                    return Err(Conflict::Shared { one: one.name(), other: other.name(), what });
                }
            }
            self.check_screen(one)?;
        }
        Ok(())
    }

    /// Whether they can be in a run that is no replay.
    pub fn check_live(&self) -> Result<(), Conflict> {
        if self.poisons() {
            return Err(Conflict::Live);
        }
        self.check()
    }

    fn check_screen(&self, screen: &Screen) -> Result<(), Conflict> {
        let execution = self.observe.execution;
        match screen {
            Screen::Allocations(_) if execution > Execution::Unobserved => {
                Err(Conflict::Observed { screen: screen.name(), execution })
            }
            Screen::Shadow(shadow) => {
                let reserved = shadow.paint.iter().find(|paint| paint.bits & 0x80 != 0);
                reserved.map_or(Ok(()), |paint| Err(Conflict::Paint(paint.clone())))
            }
            Screen::Heap(_) | Screen::Allocations(_) | Screen::Poison(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Allocations, Heap, Poison, Shadow};

    fn all() -> [Screen; 4] {
        [
            Screen::Shadow(Shadow::default()),
            Screen::Heap(Heap::default()),
            Screen::Allocations(Allocations::default()),
            Screen::Poison(Poison::default()),
        ]
    }

    #[test]
    fn every_pair_is_allowed_or_refused_by_both_names_in_either_order() {
        for one in all() {
            assert_eq!(Plan::screening(one.clone()).check(), Ok(()));
            for other in all() {
                let plan = |screens| Plan { screens, ..Plan::default() }.check();
                let found = plan(vec![one.clone(), other.clone()]);
                let turned = plan(vec![other.clone(), one.clone()]);
                assert_eq!(found.is_ok(), turned.is_ok());
                if let Err(conflict) = found {
                    let words = conflict.to_string();
                    let names = [one.name(), other.name()];
                    assert!(names.iter().all(|name| words.contains(name)), "{words}");
                }
            }
        }
        let pair = [Screen::Shadow(Shadow::default()), Screen::Poison(Poison::default())];
        let plan = Plan { screens: pair.to_vec(), ..Plan::default() };
        assert_eq!(plan.check(), Ok(()));
        assert_eq!(plan.check_live(), Err(Conflict::Live));
    }

    #[test]
    fn what_a_screen_cannot_have_is_named() {
        let table = Screen::Allocations(Allocations::default());
        let plan = Plan { screens: vec![table], ..Plan::observing(Execution::Blocks) };
        let words = plan.check().expect_err("a conflict").to_string();
        assert!(words.contains("allocations") && words.contains("Blocks"), "{words}");
        let paint = vec![Paint { range: 0x1000..0x2000, bits: 0x81 }];
        let plan = Plan::screening(Screen::Shadow(Shadow { paint, ..Shadow::default() }));
        assert!(plan.check().expect_err("a conflict").to_string().contains("0x81"));
    }
}
