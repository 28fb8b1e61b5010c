//! Which thread runs next, and for how long, while recording.
//!
//! * **fair**: slices of about equal length, first come first served;
//! * **random**: threads are stopped at any event or after slices of any length, mostly short ones, and
//!   the next thread is chosen at random. Some seeds starve a thread now and then, and let timed waits end
//!   at once;
//! * **pct**: threads have random priorities and the highest that can run does; at a few random
//!   moments the running one falls below all others. Finds every bug that needs so many ordering
//!   constraints with a probability that can be stated (Burckhardt et al., ASPLOS 2010);
//! * **walk**: threads run from one named place to the next, and stand there until all others stand at one,
//!   wait, or have ended; then the highest of random numbers passes, drawn by each thread when it arrives
//!   (Yuan, Yang and Gu, CAV 2018), or by some seeds anew each time. What lies between the places, however
//!   long it takes, has no part in who comes first.
//!
//! An **event** is a moment at which threads may have something to do with each other, while another
//! could run: a locked instruction, a system call, a place that the host has named. Ticks alone are too
//! coarse: a server answers a request within a few hundred, and a thread that is stopped every seven
//! thousand is hardly ever stopped between two critical sections. Slices have no constant length, which
//! would keep in step with loops.

use crate::config::Schedule;

/// Ticks of a fair slice, on average.
const FAIR: u64 = 1 << 18;
/// Longest random slice, as a power of two.
const RANDOM_BITS: u64 = 17;
/// How often priorities are looked at, on average.
const PCT_SLICE: u64 = 1 << 12;
/// Where the number of events is not known, the moments at which priorities change lie within a power of
/// two of events, drawn between these: so runs of any length have some.
const PCT_EVENT_BITS: std::ops::Range<u64> = 3..19;
/// The same for moments in ticks, which lie between events too.
const PCT_TICK_BITS: std::ops::Range<u64> = 8..23;
/// One in so many moments is drawn from ticks.
const PCT_TICKS: u64 = 4;

/// Slices after which a thread that all others wait for falls below them too: it may be waiting for
/// one of them.
const PCT_PATIENCE: u64 = 256;
/// Times that a thread is passed over before it rises above all others: where many sleep and wake, there
/// is always a higher one that can run, and what they wait for may be its to do.
const PCT_PASSES: u64 = 1024;

/// Arrivals at named places after which only one in [`WALK_RARELY`] counts: a loop goes through one of them.
const WALK_ALWAYS: u64 = 20_000;
/// See there.
const WALK_RARELY: u64 = 16;

/// A thread is stopped at one event in two to the power of something below this, by seed.
const RATE_BITS: u64 = 6;
/// One stop in so many starves whom it stops, where a seed does so at all.
const STARVES: u64 = 8;
/// Longest starvation, in decisions, as a power of two.
const STARVED_BITS: u64 = 10;
/// The same for a thread that is held at a place that the host has named.
const HELD_BITS: u64 = 9;
/// Decisions for which a thread is held, in half of the cases: until no other can run. A bound, as one of
/// them may spin until this one goes on.
const HELD_LONG: u64 = 1 << 13;
/// Timed waits that may end at once one after the other, before others get to run: they may be waited for.
const EARLY_AT_ONCE: u64 = 3;
/// Instructions of jitter behind the end of a slice.
const STEPS: u64 = 12;

/// What happened at an event.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A locked instruction, a system call, or a place where one thread is as good as another.
    Passed,
    /// The thread stands before a place that others are to reach first.
    Target,
}

/// Decides by a schedule; the same decisions for the same seed.
pub struct Scheduler {
    schedule: Schedule,
    cut: bool,
    random: Random,
    /// Times at which the running thread's priority falls; the next one last.
    changes: Vec<u64>,
    /// Events at which it falls; the next one last.
    event_changes: Vec<u64>,
    priorities: Vec<Priority>,
    lowest: u64,
    highest: u64,
    /// Slices that the running thread has had though others waited.
    kept: u64,
    /// Events so far.
    events: u64,
    /// Events and slices so far.
    decisions: u64,
    manner: Manner,
    /// Timed waits that ended at once since another thread was chosen.
    early: u64,
    /// Who is passed over while another can run, and until which decision.
    starved: Option<(i32, u64)>,
}

/// How a random schedule goes about it: a seed has one manner for all of the run.
struct Manner {
    /// One event in so many stops the thread.
    rate: u64,
    /// Whether threads are starved.
    starves: bool,
    /// Of eight timed waits so many end at once.
    early: u64,
    /// Whether a walk draws anew for all whenever somebody may pass.
    redraws: bool,
}

/// What a schedule by priorities knows of a thread.
struct Priority {
    thread: i32,
    priority: u64,
    /// How often another one was chosen since it was.
    passed: u64,
    /// Whether it stands before a named place, in a walk.
    stands: bool,
}

/// A small generator (xorshift64*): seeds must mean the same in every version.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// By the upper bits: the lower ones of neighbouring seeds are alike.
    fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 11) % bound.max(1)
    }

    fn within(&mut self, bits: std::ops::Range<u64>) -> u64 {
        let bits = bits.start + self.below(bits.end - bits.start);
        self.below(1 << bits)
    }
}

impl Scheduler {
    /// Starts deciding.
    pub fn new(schedule: Schedule, cut: bool) -> Self {
        let seed = match schedule {
            Schedule::Fair => 1,
            Schedule::Random { seed } | Schedule::Pct { seed, .. } | Schedule::Walk { seed } => {
                seed
            }
        };
        let mut random = Random(seed.wrapping_mul(2).wrapping_add(1) ^ 0x5851_f42d_4c95_7f2d);
        // The first numbers of neighbouring seeds have much in common.
        for _ in 0..4 {
            random.next();
        }
        let (mut changes, mut event_changes) = (Vec::new(), Vec::new());
        if let Schedule::Pct { depth, events, .. } = schedule {
            for _ in 1..depth.max(1) {
                if random.below(PCT_TICKS) == 0 {
                    changes.push(random.within(PCT_TICK_BITS));
                } else if events > 0 {
                    event_changes.push(1 + random.below(events));
                } else {
                    event_changes.push(1 + random.within(PCT_EVENT_BITS));
                }
            }
            changes.sort_unstable_by(|left, right| right.cmp(left));
            event_changes.sort_unstable_by(|left, right| right.cmp(left));
        }
        let manner = Manner {
            rate: 2 << random.below(RATE_BITS),
            starves: random.below(2) == 0,
            early: [0, 2, 6][random.below(3) as usize],
            redraws: random.below(2) == 0,
        };
        let (priorities, lowest, highest) = (Vec::new(), u64::MAX / 2, u64::MAX / 2 + (1 << 41));
        Self {
            schedule,
            cut,
            random,
            changes,
            event_changes,
            priorities,
            lowest,
            highest,
            kept: 0,
            events: 0,
            decisions: 0,
            manner,
            early: 0,
            starved: None,
        }
    }

    /// Whether anything is decided at events.
    pub fn minds_events(&self) -> bool {
        self.schedule.minds_events()
    }

    /// Events so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Ticks until the running thread is stopped next.
    pub fn slice(&mut self, now: u64) -> u64 {
        match self.schedule {
            Schedule::Fair | Schedule::Walk { .. } => FAIR - FAIR / 8 + self.random.below(FAIR / 4),
            Schedule::Random { .. } => {
                let bits = self.random.below(RANDOM_BITS + 1);
                1 + self.random.below(1 << bits)
            }
            Schedule::Pct { .. } => {
                let change = self.changes.last().map_or(u64::MAX, |at| at.saturating_sub(now));
                let slice = PCT_SLICE / 2 + self.random.below(PCT_SLICE);
                slice.min(change.max(1))
            }
        }
    }

    /// How many instructions to go on one by one before the thread is stopped: always with preemption
    /// inside blocks, else where it costs little.
    pub fn steps(&mut self) -> u64 {
        let often = match self.schedule {
            Schedule::Fair => 1,
            Schedule::Random { .. } | Schedule::Pct { .. } | Schedule::Walk { .. } => 4,
        };
        if self.cut || self.random.below(often) == 0 { self.random.below(STEPS) } else { 0 }
    }

    /// A slice of `running` has ended.
    pub fn slice_ended(&mut self, running: i32, now: u64) {
        self.decisions += 1;
        if self.changes.last().is_some_and(|at| *at <= now) {
            self.changes.pop();
            self.falls(running);
        }
        self.may_starve(running);
    }

    /// An event of the running thread, while others wait. Whether it is to stop.
    pub fn event(&mut self, event: Event, running: i32, waiting: &[i32]) -> bool {
        self.events += 1;
        self.decisions += 1;
        match (self.schedule, event) {
            (Schedule::Fair, _) | (Schedule::Walk { .. }, Event::Passed) => false,
            (Schedule::Walk { .. }, Event::Target) => self.stands(running, waiting),
            (Schedule::Random { .. }, Event::Target) => self.arrives(running),
            (Schedule::Random { .. }, Event::Passed) => {
                let stops = self.random.below(self.manner.rate) == 0;
                if stops {
                    self.may_starve(running);
                }
                stops
            }
            (Schedule::Pct { .. }, _) => {
                if self.event_changes.last().is_some_and(|at| *at <= self.events) {
                    self.event_changes.pop();
                    self.falls(running);
                }
                let own = self.priority(running);
                waiting.iter().any(|thread| self.priority(*thread) > own)
            }
        }
    }

    /// A thread has come to a named place in a walk. Whether it is not the one to pass.
    fn stands(&mut self, running: i32, waiting: &[i32]) -> bool {
        if self.events > WALK_ALWAYS && self.random.below(WALK_RARELY) != 0 {
            return false;
        }
        self.kept = 0;
        let priority = self.draw();
        let known = self.known(running);
        (known.priority, known.stands) = (priority, true);
        self.redraw(waiting);
        self.gives_way(running, waiting)
    }

    fn draw(&mut self) -> u64 {
        u64::MAX / 2 + 1 + self.random.below(1 << 40)
    }

    /// Those who stand draw again, where a seed has it so.
    fn redraw(&mut self, waiting: &[i32]) {
        for thread in waiting {
            if self.manner.redraws && self.known(*thread).stands {
                self.known(*thread).priority = self.draw();
            }
        }
    }

    /// Whether another one is to go on in a walk. If not, this one passes where it stands.
    fn gives_way(&mut self, running: i32, waiting: &[i32]) -> bool {
        let own = self.rank(running);
        let gives_way = waiting.iter().any(|thread| self.rank(*thread) > own);
        self.known(running).stands &= gives_way;
        gives_way
    }

    /// In a walk those come first who do not stand.
    fn rank(&mut self, thread: i32) -> (bool, u64) {
        let known = self.known(thread);
        (!known.stands, known.priority)
    }

    fn choose_walking(&mut self, waiting: &[i32]) -> usize {
        let ranks = waiting.iter().enumerate().map(|(index, thread)| (self.rank(*thread), index));
        let chosen = ranks.max().map_or(0, |(_, index)| index);
        if let Some(thread) = waiting.get(chosen) {
            self.known(*thread).stands = false;
        }
        self.kept = 0;
        chosen
    }

    /// A thread is before a place that the host has named: it is held there for a while, so that others come
    /// through such places first.
    fn arrives(&mut self, running: i32) -> bool {
        if self.is_starved().is_some_and(|held| held != running) {
            // Mostly the other is there first, and goes on; now and then the one that is held does.
            let releases = self.random.below(4) == 0;
            if releases {
                self.starved = None;
            }
            return releases && self.random.below(2) == 0;
        }
        let holds = self.random.below(2) == 0;
        if holds {
            let is_long = self.random.below(2) == 0;
            let decisions = if is_long { HELD_LONG } else { 2 << self.random.below(HELD_BITS) };
            self.starved = Some((running, self.decisions + decisions));
        }
        holds
    }

    /// Now and then a thread that is stopped does not run for a long time.
    fn may_starve(&mut self, stopped: i32) {
        let starves = matches!(self.schedule, Schedule::Random { .. }) && self.manner.starves;
        if starves && self.random.below(STARVES) == 0 {
            let bits = self.random.below(STARVED_BITS + 1);
            self.starved = Some((stopped, self.decisions + (1 << bits)));
        }
    }

    /// Who is passed over at present.
    fn is_starved(&self) -> Option<i32> {
        self.starved.filter(|(_, until)| self.decisions < *until).map(|(thread, _)| thread)
    }

    /// Whether a timed wait that begins now ends at once, as if its time had passed before anybody else
    /// could run.
    pub fn ends_early(&mut self) -> bool {
        let early = self.minds_events() && self.random.below(8) < self.manner.early;
        self.early += u64::from(early);
        early && self.early <= EARLY_AT_ONCE
    }

    /// A thread's priority is below all others from now on.
    fn falls(&mut self, fallen: i32) {
        self.lowest -= 1;
        let lowest = self.lowest;
        self.known(fallen).priority = lowest;
    }

    fn priority(&mut self, thread: i32) -> u64 {
        self.known(thread).priority
    }

    fn known(&mut self, thread: i32) -> &mut Priority {
        let Self { priorities, random, .. } = self;
        let at = priorities.iter().position(|known| known.thread == thread).unwrap_or_else(|| {
            let priority = u64::MAX / 2 + 1 + random.below(1 << 40);
            priorities.push(Priority { thread, priority, passed: 0, stands: false });
            priorities.len() - 1
        });
        &mut priorities[at]
    }

    /// Which of those that wait is next: an index.
    pub fn choose(&mut self, waiting: &[i32]) -> usize {
        self.early = 0;
        match self.schedule {
            Schedule::Fair => 0,
            Schedule::Random { .. } => self.choose_any(waiting),
            Schedule::Pct { .. } => self.choose_highest(waiting),
            Schedule::Walk { .. } => self.choose_walking(waiting),
        }
    }

    fn choose_any(&mut self, waiting: &[i32]) -> usize {
        let passed = self.is_starved();
        let all = waiting.iter().enumerate();
        let fed: Vec<usize> =
            all.filter(|(_, thread)| Some(**thread) != passed).map(|(index, _)| index).collect();
        match fed.len() {
            0 => self.random.below(waiting.len() as u64) as usize,
            count => fed[self.random.below(count as u64) as usize],
        }
    }

    fn choose_highest(&mut self, waiting: &[i32]) -> usize {
        for thread in waiting {
            self.known(*thread).passed += 1;
            if self.known(*thread).passed > PCT_PASSES {
                self.highest += 1;
                let highest = self.highest;
                self.known(*thread).priority = highest;
            }
        }
        let ranks = waiting.iter().enumerate();
        let best = ranks.map(|(index, thread)| (self.priority(*thread), usize::MAX - index)).max();
        let chosen = best.map_or(0, |(_, index)| usize::MAX - index);
        if let Some(thread) = waiting.get(chosen) {
            self.known(*thread).passed = 0;
        }
        chosen
    }

    /// Whether the running thread keeps the baton though others want it.
    pub fn keeps(&mut self, running: i32, waiting: &[i32]) -> bool {
        match self.schedule {
            Schedule::Fair => false,
            Schedule::Random { .. } => self
                .is_starved()
                .is_some_and(|passed| passed != running && waiting.iter().all(|it| *it == passed)),
            Schedule::Walk { .. } => {
                // Whoever goes on for ever without coming to a place waits for somebody who stands at one.
                self.kept += 1;
                if self.kept > PCT_PATIENCE && !self.known(running).stands {
                    self.falls(running);
                    self.known(running).stands = true;
                    self.kept = 0;
                }
                !self.gives_way(running, waiting)
            }
            Schedule::Pct { .. } => {
                self.kept += 1;
                if self.kept > PCT_PATIENCE {
                    self.falls(running);
                }
                let own = self.priority(running);
                let keeps = waiting.iter().all(|thread| self.priority(*thread) < own);
                self.kept = if keeps { self.kept } else { 0 };
                keeps
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pct(depth: u32, events: u64) -> Scheduler {
        Scheduler::new(Schedule::Pct { depth, seed: 5, events }, false)
    }

    fn decisions(schedule: Schedule) -> Vec<(u64, usize, bool, bool)> {
        let mut scheduler = Scheduler::new(schedule, false);
        let mut one = |now| {
            let stops = scheduler.event(Event::Passed, 6, &[7, 8, 9]);
            (
                scheduler.slice(now),
                scheduler.choose(&[7, 8, 9]),
                stops,
                scheduler.keeps(6, &[7, 8, 9]),
            )
        };
        (0..100).map(&mut one).collect()
    }

    #[test]
    fn a_seed_always_decides_alike() {
        for seed in [0, 1, u64::MAX] {
            let random = Schedule::Random { seed };
            assert_eq!(decisions(random), decisions(random));
            let pct = Schedule::Pct { depth: 3, seed, events: 0 };
            assert_eq!(decisions(pct), decisions(pct));
        }
        let other = Schedule::Random { seed: 2 };
        assert_ne!(decisions(Schedule::Random { seed: 1 }), decisions(other));
    }

    #[test]
    fn nobody_waits_for_ever() {
        let mut scheduler = pct(1, 0);
        let running = [7, 8, 9][scheduler.choose(&[7, 8, 9])];
        let others: Vec<i32> = [7, 8, 9].into_iter().filter(|it| *it != running).collect();
        let kept = (0..).take_while(|_| scheduler.keeps(running, &others)).count();
        assert_eq!(kept as u64, PCT_PATIENCE);
    }

    #[test]
    fn nobody_is_passed_over_for_ever() {
        let mut scheduler = pct(1, 0);
        let mut chosen = std::collections::BTreeSet::new();
        for _ in 0..10 * PCT_PASSES {
            // All but one can always run: they sleep in turns.
            chosen.insert([7, 8, 9][scheduler.choose(&[7, 8, 9])]);
        }
        assert_eq!(chosen.len(), 3);
    }

    #[test]
    fn a_fallen_thread_is_chosen_last() {
        let mut scheduler = pct(2, 0);
        scheduler.changes = vec![100];
        let first = scheduler.choose(&[7, 8]);
        let running = [7, 8][first];
        scheduler.slice_ended(running, 100);
        assert_eq!(scheduler.choose(&[7, 8]), 1 - first);
        assert!(!scheduler.keeps(running, &[7, 8]));
    }

    #[test]
    fn priorities_fall_within_the_events_that_are_known() {
        for seed in 0..200 {
            let schedule = Schedule::Pct { depth: 4, seed, events: 20 };
            let mut scheduler = Scheduler::new(schedule, false);
            let at_ticks = scheduler.changes.len();
            for _ in 0..20 {
                scheduler.event(Event::Passed, 6, &[7]);
            }
            assert!(scheduler.event_changes.is_empty());
            assert!(at_ticks <= 3);
        }
    }

    /// Three threads that pass so many named places each: in which order they do.
    fn walked(seed: u64, mut left: [u32; 3]) -> Vec<i32> {
        let mut scheduler = Scheduler::new(Schedule::Walk { seed }, false);
        let (mut running, mut stand, mut order) = (0usize, [false; 3], Vec::new());
        let mut passes = |thread: usize, left: &mut [u32; 3]| {
            left[thread] -= 1;
            order.push(thread as i32);
        };
        loop {
            let live = (0..3).filter(|it| *it != running && left[*it] > 0);
            let waiting: Vec<i32> = live.map(|it| it as i32).collect();
            let arrives = left[running] > 0;
            if arrives && !scheduler.event(Event::Target, running as i32, &waiting) {
                passes(running, &mut left);
                continue;
            }
            if waiting.is_empty() {
                return order;
            }
            assert!(!arrives || !scheduler.keeps(running as i32, &waiting));
            stand[running] = arrives;
            running = waiting[scheduler.choose(&waiting)] as usize;
            // Who is chosen where it stands passes there.
            if std::mem::take(&mut stand[running]) {
                passes(running, &mut left);
            }
        }
    }

    #[test]
    fn a_walk_shows_every_order_of_places() {
        let orders: std::collections::BTreeSet<Vec<i32>> =
            (0..2000).map(|seed| walked(seed, [1, 1, 2])).collect();
        assert_eq!(orders.len(), 12);
        assert_eq!(walked(7, [3, 3, 3]), walked(7, [3, 3, 3]));
    }

    #[test]
    fn whoever_spins_in_a_walk_lets_those_pass_who_stand() {
        for seed in 0..20 {
            let mut scheduler = Scheduler::new(Schedule::Walk { seed }, false);
            if !scheduler.event(Event::Target, 7, &[8]) {
                continue;
            }
            assert_eq!(scheduler.choose(&[8]), 0);
            let kept = (0..10 * PCT_PATIENCE).take_while(|_| scheduler.keeps(8, &[7])).count();
            assert_eq!(kept as u64, PCT_PATIENCE, "seed {seed}");
            assert_eq!(scheduler.choose(&[7, 8]), 0);
        }
    }

    #[test]
    fn a_thread_that_is_held_is_passed_over_until_others_have_decided_enough() {
        for seed in 0..50 {
            let mut scheduler = Scheduler::new(Schedule::Random { seed }, false);
            scheduler.manner.starves = false;
            while !scheduler.event(Event::Target, 7, &[8]) {}
            let (_, until) = scheduler.starved.expect("it is held");
            while scheduler.decisions < until {
                assert_eq!(scheduler.choose(&[7, 8]), 1);
                assert!(scheduler.keeps(8, &[7]));
                scheduler.event(Event::Passed, 8, &[7]);
            }
            let chosen: std::collections::BTreeSet<usize> =
                (0..100).map(|_| scheduler.choose(&[7, 8])).collect();
            assert_eq!(chosen.len(), 2, "seed {seed}");
        }
    }
}
