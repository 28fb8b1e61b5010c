//! The process's time: ticks of all its threads, counted down by translated code to the next
//! moment that the dispatcher wants to see.
//!
//! The countdown is spread over several **cells**. Counting in memory takes the processor some seven
//! cycles from one tick to the next in the same cell; ticks of different kinds, which mostly take
//! turns, need not wait for each other. Translated code leaves when any cell is empty. As every cell
//! is given one at least, all but the last to run out keep that one: what is left is their sum
//! without [`SPARE`], and a cell cannot run out later than the whole. If it does so earlier, what is
//! left is shared out again, by how much each was used before.

use super::cpu::{CELLS, Cpu};
use std::sync::atomic::{AtomicU64, Ordering};

/// What the cells hold together when no ticks are left.
const SPARE: u64 = CELLS as u64 - 1;

/// Uses that are remembered; beyond that, older ones count for less.
const MEMORY: u64 = 1 << 12;

/// The time at which the countdown will be over.
static END: AtomicU64 = AtomicU64::new(0);

/// What each cell was given last.
static GIVEN: [AtomicU64; CELLS] = [const { AtomicU64::new(0) }; CELLS];

/// How much each was used lately.
static USED: [AtomicU64; CELLS] = [const { AtomicU64::new(0) }; CELLS];

fn left(cpu: &Cpu) -> u64 {
    cpu.ticks.iter().sum::<u64>() - SPARE
}

/// Ticks so far.
pub fn now(cpu: &Cpu) -> u64 {
    END.load(Ordering::Relaxed) - left(cpu)
}

/// Makes translated code leave after so many ticks more, at least one.
pub fn arm(cpu: &mut Cpu, ticks: u64) {
    let ticks = ticks.max(1);
    let end = now(cpu) + ticks;
    // The same end as before: sharing out takes longer than all else that is done at a stop.
    if END.swap(end, Ordering::Relaxed) == end && !cpu.ticks.contains(&0) {
        return;
    }
    share_out(cpu, ticks);
}

/// Sets the time, for a process that is taken up in the middle.
pub fn set(cpu: &Cpu, time: u64) {
    END.store(time + left(cpu), Ordering::Relaxed);
}

/// Why translated code may have left.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Countdown {
    /// Not because of ticks.
    Runs,
    /// A cell was empty; it has been filled again.
    Refilled,
    /// No ticks are left.
    Over,
}

/// Looks at the countdown after translated code has left.
pub fn look(cpu: &mut Cpu) -> Countdown {
    if !cpu.ticks.contains(&0) {
        return Countdown::Runs;
    }
    match left(cpu) {
        0 => Countdown::Over,
        ticks => {
            share_out(cpu, ticks);
            Countdown::Refilled
        }
    }
}

/// Fills the cells.
fn share_out(cpu: &mut Cpu, ticks: u64) {
    let cells = shares(ticks, recent_use(cpu));
    for (given, cell) in GIVEN.iter().zip(cells) {
        given.store(cell, Ordering::Relaxed);
    }
    cpu.ticks = cells;
}

/// One for each cell, and the rest by use, so that they run out at about the same time.
fn shares(ticks: u64, used: [u64; CELLS]) -> [u64; CELLS] {
    // None gets nothing: what a program does changes.
    let least = used.iter().sum::<u64>() / 32 + 1;
    let weights = used.map(|used| used + least);
    let total: u64 = weights.iter().sum();
    let part = |weight| (u128::from(ticks - 1) * u128::from(weight) / u128::from(total)) as u64;
    let mut cells = weights.map(|weight| 1 + part(weight));
    let rounded_off = ticks + SPARE - cells.iter().sum::<u64>();
    let most = (0..CELLS).max_by_key(|number| weights[*number]).unwrap_or(0);
    cells[most] += rounded_off;
    cells
}

/// Adds what was used of the cells since they were filled to what is remembered.
fn recent_use(cpu: &Cpu) -> [u64; CELLS] {
    let cells = cpu.ticks;
    let since = |number: usize| GIVEN[number].load(Ordering::Relaxed).saturating_sub(cells[number]);
    let mut used: [u64; CELLS] =
        std::array::from_fn(|number| USED[number].load(Ordering::Relaxed) + since(number));
    while used.iter().sum::<u64>() > MEMORY {
        used = used.map(|used| used / 2);
    }
    for (kept, used) in USED.iter().zip(used) {
        kept.store(used, Ordering::Relaxed);
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever cells are used: none is empty at the start, one is before or when the whole
        /// runs out, and then as much is left as there should be.
        #[test]
        fn a_countdown_over_cells_is_exact(
            ticks in 1u64..5000,
            used in prop::array::uniform4(0u64..MEMORY),
            skewed in prop::collection::vec(0usize..CELLS, 1..40),
        ) {
            let mut cells = shares(ticks, used);
            prop_assert_eq!(cells.iter().sum::<u64>(), ticks + SPARE);
            let mut left = ticks;
            for cell in skewed.iter().cycle() {
                prop_assert!(!cells.contains(&0));
                cells[*cell] -= 1;
                left -= 1;
                prop_assert_eq!(cells.iter().sum::<u64>() - SPARE, left);
                if left == 0 {
                    break;
                }
                if cells[*cell] == 0 {
                    cells = shares(left, used);
                }
            }
            prop_assert!(cells.contains(&0));
        }
    }

    #[test]
    fn endless_countdowns_do_not_overflow() {
        let cells = shares(1 << 60, [MEMORY, 0, 0, 0]);
        assert_eq!(cells.iter().sum::<u64>(), (1 << 60) + SPARE);
    }
}
