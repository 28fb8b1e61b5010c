//! From what the detectors found to findings: places, threads, moments, variables and locks by name.

use crate::case::Case;
use crate::naming::{Memory, Names};
use crate::threads::Threads;
use analyze::races::clock::Thread;
use analyze::races::detector::{Access, Race};
use analyze::races::order::Deadlock;
use analyze::races::pairs::TornPair;
use analyze::races::sections::{Inside, LostUpdate};
use analyze::races::stream::{Deed, Races, Site};
use analyze::races::waits::Unchecked;
use base::{
    Address, Confidence, Finding, ModuleKind, Place, Position, ProcessNumber, Step, ThreadNumber,
    Tick, When,
};
use iced_x86::{Decoder, DecoderOptions};
use std::cell::RefCell;
use std::collections::BTreeSet;
use symbols::Program;

/// Calls of a stack that are told.
const MOST_CALLERS: usize = 4;

/// Moments that are gone to in search of names.
const MOST_NAMED: usize = 32;

/// What a step says that is only the caller of the one before.
pub const CALLER: &str = "called from";

/// Turns sites into sentences.
pub struct Reporter<'a> {
    process: ProcessNumber,
    threads: Threads,
    program: &'a Program,
    races: &'a Races,
    names: RefCell<Names<'a>>,
}

impl<'a> Reporter<'a> {
    /// For one process of a recording.
    pub fn new(case: &'a Case, process: u32, program: &'a Program, races: &'a Races) -> Self {
        let threads = Threads::of(case.recording(), process);
        let names = RefCell::new(Names::new(case, process, program));
        Self { process: ProcessNumber(process), threads, program, races, names }
    }

    /// All findings.
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings: Vec<Finding> = Vec::new();
        let mut rings = self.races.deadlocks();
        rings.sort_by_key(|ring| !ring.real);
        findings.extend(rings.iter().filter(|ring| ring.real).map(|ring| self.deadlock(ring)));
        let mut told = BTreeSet::new();
        for race in self.races.races().iter().filter(|race| self.counts(race)) {
            if told.insert(self.lines(race)) {
                findings.push(self.race(race, true));
            }
        }
        findings.extend(self.races.lost_updates().iter().map(|update| self.lost_update(update)));
        findings.extend(self.races.torn_pairs().iter().map(|torn| self.torn_pair(torn)));
        findings.extend(rings.iter().filter(|ring| !ring.real).map(|ring| self.deadlock(ring)));
        findings.extend(self.races.unchecked_waits().iter().map(|wait| self.unchecked_wait(wait)));
        for race in self.races.predicted().iter().filter(|race| self.counts(race)) {
            if told.insert(self.lines(race)) {
                findings.push(self.race(race, false));
            }
        }
        findings
    }

    /// Whether an address is in the C library or the loader.
    fn is_library(&self, pc: u64) -> bool {
        let module = self.program.locate(Address(pc)).map(|(module, _)| module.loaded());
        module.is_some_and(|loaded| {
            let kind = ModuleKind::of(&loaded.path.to_string_lossy());
            matches!(kind, ModuleKind::CLibrary | ModuleKind::Loader)
        })
    }

    /// Whether both sides are the program's doing: what the C library does of its own accord, such as
    /// giving a thread's arena back when it ends, is ordered by means that nobody sees from outside.
    fn counts(&self, race: &Race) -> bool {
        [race.first, race.second].iter().all(|access| {
            let site = self.races.site(access.seen.site);
            let callers = self.races.callers(site.context);
            !self.is_library(site.pc) || callers.iter().any(|pc| !self.is_library(*pc))
        })
    }

    /// The address behind an instruction.
    fn behind(&self, pc: u64) -> Option<u64> {
        let mut code = [0; 15];
        self.program
            .code_bytes(Address(pc), &mut code)
            .then(|| Decoder::with_ip(64, &code, pc, DecoderOptions::NONE).decode().next_ip())
    }

    /// The instructions of all pairs, and those behind them: where a thread may be stopped before or
    /// after its half of a pair.
    pub fn places(&self) -> BTreeSet<u64> {
        let places = self.instructions();
        let behind: Vec<u64> = places.iter().filter_map(|pc| self.behind(*pc)).collect();
        places.into_iter().chain(behind).collect()
    }

    /// The program's own instructions at which threads meet by atomic variables, and those behind them.
    pub fn meetings(&self) -> BTreeSet<u64> {
        let mut places = self.races.meetings();
        places.retain(|pc| !self.is_library(*pc));
        let behind: Vec<u64> = places.iter().filter_map(|pc| self.behind(*pc)).collect();
        places.into_iter().chain(behind).collect()
    }

    fn instructions(&self) -> BTreeSet<u64> {
        let races = self.races.races().iter().chain(self.races.predicted());
        let mut places: BTreeSet<u64> = races
            .filter(|race| self.counts(race))
            .flat_map(|race| [race.first.seen.site, race.second.seen.site])
            .map(|site| self.races.site(site).pc)
            .collect();
        for update in self.races.lost_updates() {
            places.extend([update.read, update.write].map(|it| self.races.site(it.site).pc));
        }
        for torn in self.races.torn_pairs() {
            places.extend(torn.own.map(|it| self.races.site(it.site).pc));
        }
        places.remove(&0);
        places
    }

    /// The instructions of all pairs, and the program's own at which threads meet by atomic variables.
    pub fn meeting_places(&self) -> BTreeSet<u64> {
        let mut steps = self.races.meetings();
        steps.retain(|pc| !self.is_library(*pc));
        steps.extend(self.instructions());
        steps
    }

    /// What makes two races the same to a reader: the lines, whichever came first.
    fn lines(&self, race: &Race) -> [String; 2] {
        let line = |access: Access| self.place(self.races.site(access.seen.site)).to_string();
        let mut lines = [line(race.first), line(race.second)];
        lines.sort();
        lines
    }

    /// The place of a site: the innermost call of the program's own code, which is what a reader can change.
    fn place(&self, site: Site) -> Place {
        let own = self.program.symbolise(Address(site.pc)).place();
        if own.file.is_some() && !self.is_library(site.pc) {
            return own;
        }
        let callers = self.races.callers(site.context);
        let callers = callers.iter().filter(|pc| !self.is_library(**pc));
        let named = callers.map(|pc| self.program.symbolise(Address(*pc)).place());
        named.into_iter().find(|place| place.file.is_some()).unwrap_or(own)
    }

    fn thread(&self, thread: Thread, tick: u64) -> ThreadNumber {
        self.threads.number(self.races.kernel_id(thread) as i32, Tick(tick))
    }

    fn when(&self, thread: Thread, tick: u64, site: Site) -> Option<When> {
        let position = Position { tick: Tick(tick), pc: Address(site.pc) };
        let thread = self.thread(thread, tick);
        // Of a block that is freed only the call is known, which has been made.
        (site.deed == Deed::Access).then_some(When { process: self.process, thread, position })
    }

    /// A piece of memory as the program calls it where a site accesses it.
    fn name_at(&self, address: u64, time: u64, site: Site) -> String {
        self.expression(address, time, site).unwrap_or_else(|| self.name(address, time))
    }

    /// Of a function that was called for the access only the call's moment is known, and a place in a library has no
    /// variables to name it by.
    fn expression(&self, address: u64, time: u64, site: Site) -> Option<String> {
        let mut names = self.names.borrow_mut();
        if site.deed != Deed::Access || self.is_library(site.pc) || names.asked() >= MOST_NAMED {
            return None;
        }
        let block = self.races.block_at(address, time).map(|block| (block.address, block.size));
        // That it has no name now is no reason to tell nothing.
        let name = names.at(time, site.pc, Memory { address, block }).ok().flatten();
        name.map(|name| format!("`{name}`"))
    }

    /// A piece of memory by its variable or block.
    fn name(&self, address: u64, time: u64) -> String {
        if let Some(object) = self.program.object_at(Address(address)) {
            let offset = address - object.range.start.0;
            return match offset {
                0 => format!("`{}`", object.name),
                _ => format!("byte {offset} of `{}`", object.name),
            };
        }
        match self.races.block_at(address, time) {
            Some(block) => {
                let place = self.place(self.races.site(block.site));
                let offset = address - block.address;
                format!("byte {offset} of a block of {} bytes from {place}", block.size)
            }
            None => format!("memory at {address:#x}"),
        }
    }

    fn holding(&self, site: Site, time: u64) -> String {
        let locks = self.races.locks(site.locks);
        let names: Vec<String> = locks.iter().map(|lock| self.name(*lock, time)).collect();
        match names.len() {
            0 => "holding no lock".into(),
            _ => format!("holding {}", names.join(" and ")),
        }
    }

    fn verb(&self, access: Access) -> &'static str {
        match (self.races.site(access.seen.site).deed, access.write) {
            (Deed::Free, _) => "frees",
            (_, true) => "writes",
            (_, false) => "reads",
        }
    }

    /// A step, and those who called.
    fn steps(&self, thread: Thread, time: u64, number: u32, what: &str) -> Vec<Step> {
        let site = self.races.site(number);
        let text =
            format!("thread {} {what}, {}", self.thread(thread, time), self.holding(site, time));
        let place = self.place(site);
        let mut steps =
            vec![Step::new(text).at(place.clone()).at_time(self.when(thread, time, site))];
        let callers = self.races.callers(site.context);
        let own = callers.iter().filter(|pc| !self.is_library(**pc));
        let called = own.map(|pc| self.program.symbolise(Address(*pc)).place());
        let known = called.filter(|caller| caller.file.is_some() && *caller != place);
        steps.extend(known.take(MOST_CALLERS).map(|caller| Step::new(CALLER).at(caller)));
        steps
    }

    fn race(&self, race: &Race, unordered: bool) -> Finding {
        let (first, second) = (race.first, race.second);
        let name =
            self.name_at(race.address, race.second.seen.time, self.races.site(second.seen.site));
        let side = |access: Access| {
            let thread = self.thread(access.seen.epoch.thread, access.seen.time);
            format!("thread {thread} {}", self.verb(access))
        };
        let (title, confidence) = if unordered {
            let title =
                format!("{} {name} and {} it, unordered in this run", side(first), side(second));
            (title, Confidence::High)
        } else {
            let title = format!(
                "{} {name} and {} it, unprotected by a common lock: only who took a lock first \
                 orders them in this run",
                side(first),
                side(second)
            );
            (title, Confidence::Low)
        };
        let mut evidence = Vec::new();
        for access in [first, second] {
            let what = format!("{} {name}", self.verb(access));
            let (thread, time) = (access.seen.epoch.thread, access.seen.time);
            evidence.extend(self.steps(thread, time, access.seen.site, &what));
        }
        if race.count > 1 {
            evidence.push(Step::new(format!("this happened {} times", race.count)));
        }
        let site = self.races.site(second.seen.site);
        Finding {
            kind: if unordered { "data-race" } else { "unprotected-access" }.into(),
            title,
            confidence,
            place: Some(self.place(site)),
            when: self.when(second.seen.epoch.thread, second.seen.time, site),
            evidence,
        }
    }

    fn lost_update(&self, update: &LostUpdate) -> Finding {
        let written_by = self.races.site(update.write.site);
        let name = self.name_at(update.address, update.write.time, written_by);
        let lock = self.name(update.lock, update.write.time);
        let own = self.thread(update.write.thread, update.write.time);
        let other = self.thread(update.foreign.thread, update.foreign.time);
        let step = |inside: Inside, what: &str| {
            self.steps(inside.thread, inside.time, inside.site, &format!("{what} {name}"))
        };
        let evidence = [
            step(update.read, "reads"),
            step(update.foreign, "writes"),
            step(update.write, "writes, in a later critical section and without a second look,"),
        ];
        let site = written_by;
        Finding {
            kind: "lost-update".into(),
            title: format!(
                "thread {own} overwrites what thread {other} wrote to {name} since it was read: \
                 two critical sections of {lock} that should be one"
            ),
            confidence: Confidence::Medium,
            place: Some(self.place(site)),
            when: self.when(update.write.thread, update.write.time, site),
            evidence: evidence.concat(),
        }
    }

    fn torn_pair(&self, torn: &TornPair) -> Finding {
        let [one, other] = [0, 1].map(|at| {
            let Inside { site, time, .. } = torn.own[at];
            self.name_at(torn.variables[at], time, self.races.site(site))
        });
        let lock = self.name(torn.lock, torn.own[1].time);
        let (verb, does) = if torn.writes { ("writes", "changes") } else { ("reads", "reads") };
        let [own, foreign] =
            [torn.own[1], torn.between[0]].map(|it| self.thread(it.thread, it.time));
        let step = |inside: Inside, what: String| {
            self.steps(inside.thread, inside.time, inside.site, &what)
        };
        let mut evidence = step(torn.own[0], format!("{verb} {one}"));
        let mut between = [(torn.between[0], &one), (torn.between[1], &other)];
        between.sort_by_key(|(inside, _)| inside.sequence);
        for (inside, name) in between {
            evidence.extend(step(inside, format!("accesses {name}")));
        }
        evidence.extend(step(torn.own[1], format!("{verb} {other}, in a later critical section,")));
        if torn.count > 1 {
            evidence.push(Step::new(format!("this happened {} times", torn.count)));
        }
        let site = self.races.site(torn.own[1].site);
        Finding {
            kind: "torn-pair".into(),
            title: format!(
                "thread {own} {does} {one} and {other} in two critical sections of {lock}, and thread \
                 {foreign}, which uses both at once, comes in between"
            ),
            confidence: Confidence::Low,
            place: Some(self.place(site)),
            when: self.when(torn.own[1].thread, torn.own[1].time, site),
            evidence,
        }
    }

    fn unchecked_wait(&self, wait: &Unchecked) -> Finding {
        let [condition, lock, looked_at] =
            [wait.condition, wait.lock, wait.looked_at].map(|address| self.name(address, u64::MAX));
        let thread = self.thread(wait.thread, u64::MAX);
        let place = self.place(self.races.site(wait.site));
        let evidence = vec![
            Step::new(format!("thread {thread} looks at {looked_at}, and waits for {condition}"))
                .at(place.clone()),
            Step::new(format!(
                "it is woken, and gives {lock} back without another look: it may be woken for no \
                 reason, or when another thread has been faster; wait in a loop"
            )),
        ];
        Finding {
            kind: "wait-without-loop".into(),
            title: format!(
                "thread {thread} waits for {condition} and goes on without looking at {looked_at} again"
            ),
            confidence: Confidence::Low,
            place: Some(place),
            when: None,
            evidence,
        }
    }

    fn deadlock(&self, ring: &Deadlock) -> Finding {
        let mut evidence = Vec::new();
        for edge in &ring.ring {
            let (held, wanted) = (self.name(edge.held, u64::MAX), self.name(edge.taken, u64::MAX));
            let thread = self.thread(edge.thread, u64::MAX);
            let taken = self.place(self.races.site(edge.held_site));
            evidence.push(Step::new(format!("thread {thread} takes {held}")).at(taken));
            let verb = if ring.real { "waits for" } else { "takes" };
            let place = self.place(self.races.site(edge.site));
            evidence.push(
                Step::new(format!("thread {thread} {verb} {wanted}, holding {held}")).at(place),
            );
        }
        let locks: Vec<String> =
            ring.ring.iter().map(|edge| self.name(edge.held, u64::MAX)).collect();
        let (kind, title, confidence) = if ring.real {
            let threads: Vec<String> = ring
                .ring
                .iter()
                .map(|edge| self.thread(edge.thread, u64::MAX).to_string())
                .collect();
            let title = match &threads[..] {
                [one] => format!("thread {one} waits for a lock that it holds itself"),
                _ => format!("threads {} wait for each other's locks", threads.join(" and ")),
            };
            ("deadlock", title, Confidence::Certain)
        } else {
            let title = format!(
                "{} are taken in different orders by different threads: they may come to wait for \
                 each other",
                locks.join(" and ")
            );
            ("lock-order", title, Confidence::Medium)
        };
        let place = ring.ring.first().map(|edge| self.place(self.races.site(edge.site)));
        Finding { kind: kind.into(), title, confidence, place, when: None, evidence }
    }
}
