//! From the records of a stream to the detectors: who runs, where, holding what, and what calls mean.
//!
//! - this file: the state that the rooms share, and which of them a record goes to;
//! - [`facts`]: what is known of the program beforehand; [`sites`]: where things happen, by number;
//! - [`calls`]: calls of thread libraries and allocators; [`system_calls`]: what the kernel orders;
//! - [`code`]: instructions and their accesses, plain and atomic; [`reach`]: what can be passed by;
//!   [`lock_words`]: locks that are atomic words.
//!
//! Inside of a function of the thread library or of an allocator nothing counts but what the call as a
//! whole means. A word that locked instructions access orders those who access it, also by plain moves,
//! which is what atomic loads and stores are on this processor. A plain access may come before anyone
//! has seen that a word is atomic: whoever asks can run the stream again with what is known then
//! ([`Atomics`]).

mod calls;
mod code;
mod facts;
mod lock_words;
mod reach;
mod sites;
mod system_calls;

pub use facts::{Atomics, Facts, LockWord};
pub use sites::{Allocation, Deed, Site};

use super::channels::{Channels, Writes};
use super::clock::Thread;
use super::detector::{Detector, Object};
use super::locks::{LockSet, LockSets};
use super::meetings::Meetings;
use super::order::LockOrder;
use super::pairs::{Pairs, TornPair};
use super::sections::Sections;
use super::shared::{Owners, SharedLines};
use super::waits::{Unchecked, Waits};
use super::words::Words;
use crate::model::calls::CallStack;
use calls::Under;
use code::Code;
use events::decode::{Bases, Decoder, ExplicitAccess, Record};
use events::{Consumer, Event};
use iced_x86::InstructionInfoFactory;
use rustc_hash::{FxHashMap, FxHashSet};
use sites::Sites;

/// Stacks are further apart than this, frames of one stack are not.
const ONE_STACK: u64 = 64 << 20;

/// What is known of a thread.
struct ThreadState {
    kernel_id: u32,
    /// It is no process that was made, and has been seen to run.
    has_run: bool,
    calls: CallStack<u32>,
    under: Vec<Under>,
    /// It is inside of a function whose inside does not count.
    is_hidden: bool,
    /// It seems to wait for a lock that is an atomic word.
    waits_for_word: bool,
    locks: LockSet,
    /// Locks that it holds together with other readers.
    shared: Vec<u64>,
    section: u32,
    /// What it does about the conditions that it waits for.
    waits: Waits,
}

/// Both detectors, and what it takes to feed them.
pub struct Races {
    decoder: Decoder,
    feed: Feed,
    /// Whether the stream was broken somewhere.
    pub broken: bool,
}

struct Feed {
    facts: Facts,
    codes: Vec<Code>,
    /// Who accesses what, in the quick pass.
    owners: Option<Owners>,
    factory: InstructionInfoFactory,
    bases: Bases,
    explicit: Vec<ExplicitAccess>,
    detector: Detector,
    predictor: Option<Detector>,
    order: LockOrder,
    sections: Sections,
    pairs: Pairs,
    unchecked: Vec<Unchecked>,
    meetings: Meetings,
    channels: Channels,
    sets: LockSets,
    sites: Sites,
    threads: Vec<ThreadState>,
    by_kernel: FxHashMap<u32, Thread>,
    /// Threads by the address of their control block, which is what `pthread_t` is.
    by_base: FxHashMap<u64, Thread>,
    now: Thread,
    tick: u64,
    allocations: Vec<Allocation>,
    /// Blocks: address to size and the number of allocations before.
    blocks: std::collections::BTreeMap<u64, (u64, u32)>,
    /// Words that locked instructions have accessed.
    atomic: Words,
    /// The same, with how many allocations came before.
    seen_atomic: FxHashSet<(u64, u32)>,
    /// How often barriers came round, and whether anybody has gone on from the present round.
    barriers: FxHashMap<u64, (u32, bool)>,
    done_once: FxHashSet<u64>,
    /// Accesses in critical sections so far.
    order_of_accesses: u64,
}

impl Races {
    /// An analysis of a run that begins at a tick; with predictions if they are wanted.
    #[must_use]
    pub fn new(facts: Facts, tick: u64, predicts: bool) -> Self {
        let feed = Feed {
            facts,
            codes: Vec::new(),
            owners: None,
            factory: InstructionInfoFactory::new(),
            bases: Bases::default(),
            explicit: Vec::new(),
            detector: Detector::new(),
            predictor: predicts.then(Detector::without_locks),
            order: LockOrder::default(),
            sections: Sections::default(),
            pairs: Pairs::default(),
            unchecked: Vec::new(),
            meetings: Meetings::default(),
            channels: Channels::default(),
            sets: LockSets::default(),
            sites: Sites::default(),
            threads: Vec::new(),
            by_kernel: FxHashMap::default(),
            by_base: FxHashMap::default(),
            now: 0,
            tick,
            allocations: Vec::new(),
            blocks: std::collections::BTreeMap::new(),
            atomic: Words::default(),
            seen_atomic: FxHashSet::default(),
            barriers: FxHashMap::default(),
            done_once: FxHashSet::default(),
            order_of_accesses: 0,
        };
        Self { decoder: Decoder::default(), feed, broken: false }
    }

    /// The quick pass before: which memory is shared, and which words are atomic.
    #[must_use]
    pub fn survey(facts: Facts, tick: u64) -> Self {
        let mut races = Self::new(facts, tick, false);
        races.feed.owners = Some(Owners::default());
        races
    }

    /// The memory that several threads access, after a quick pass.
    #[must_use]
    pub fn shared(&self) -> Option<SharedLines> {
        self.feed.owners.as_ref().map(Owners::shared)
    }

    /// All locked instructions that were executed.
    pub fn locked_instructions(&self) -> impl Iterator<Item = u64> {
        let all = self.feed.codes.iter().flat_map(|code| &code.instructions);
        all.filter(|one| one.locked).map(|one| one.pc)
    }

    /// Accesses of which nothing was kept, as too much memory is shared.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.feed.detector.left_out()
    }

    /// Accesses that nothing orders in this run.
    #[must_use]
    pub fn races(&self) -> &[super::detector::Race] {
        self.feed.detector.races()
    }

    /// Accesses that only the order in which locks were taken orders, and that no common lock protects.
    #[must_use]
    pub fn predicted(&self) -> &[super::detector::Race] {
        self.feed.predictor.as_ref().map_or(&[], Detector::races)
    }

    /// Updates that were lost between critical sections.
    #[must_use]
    pub fn lost_updates(&self) -> &[super::sections::LostUpdate] {
        self.feed.sections.lost_updates()
    }

    /// Pairs of variables that were seen half changed.
    #[must_use]
    pub fn torn_pairs(&self) -> Vec<TornPair> {
        self.feed.pairs.torn()
    }

    /// Waits after which nobody looked at what was waited for.
    #[must_use]
    pub fn unchecked_waits(&self) -> &[Unchecked] {
        &self.feed.unchecked
    }

    /// Instructions that access atomic words that several threads access.
    #[must_use]
    pub fn meetings(&self) -> std::collections::BTreeSet<u64> {
        self.feed.meetings.instructions()
    }

    /// Writes through channels in which a reader was back first: facts for another pass.
    #[must_use]
    pub fn overtaken_writes(&self) -> Writes {
        self.feed.channels.overtaken()
    }

    /// Rings of locks.
    #[must_use]
    pub fn deadlocks(&self) -> Vec<super::order::Deadlock> {
        self.feed.order.deadlocks(&self.feed.sets)
    }

    /// What a site number stands for.
    #[must_use]
    pub fn site(&self, number: u32) -> Site {
        let nowhere = Site { pc: 0, context: 0, locks: 0, deed: Deed::Access };
        self.feed.sites.get(number).unwrap_or(nowhere)
    }

    /// The call instructions that led to a context, innermost first.
    #[must_use]
    pub fn callers(&self, context: u32) -> Vec<u64> {
        self.feed.sites.callers(context)
    }

    /// The locks of a set.
    #[must_use]
    pub fn locks(&self, set: LockSet) -> &[u64] {
        self.feed.sets.get(set)
    }

    /// The kernel's id of a thread.
    #[must_use]
    pub fn kernel_id(&self, thread: Thread) -> u32 {
        self.feed.threads.get(usize::from(thread)).map_or(0, |thread| thread.kernel_id)
    }

    /// How many threads ran.
    #[must_use]
    pub fn thread_count(&self) -> usize {
        self.feed.threads.iter().filter(|thread| thread.has_run).count()
    }

    /// The block that an address was in at a time.
    #[must_use]
    pub fn block_at(&self, address: u64, time: u64) -> Option<Allocation> {
        let holds = |block: &&Allocation| {
            block.time <= time && address >= block.address && address - block.address < block.size
        };
        self.feed.allocations.iter().rev().find(holds).copied()
    }

    /// Words that turned out to be atomic, to be known beforehand the next time.
    #[must_use]
    pub fn atomic_words(&self) -> &FxHashSet<(u64, u32)> {
        &self.feed.seen_atomic
    }
}

impl Consumer for Races {
    fn records(&mut self, bytes: &[u8]) {
        let mut whole = true;
        let state = (&mut self.feed, &mut whole);
        let done = self.decoder.paths(
            bytes,
            state,
            |(feed, whole), path| **whole &= feed.path(&path).is_some(),
            |(feed, whole), record| **whole &= feed.record(record).is_some(),
        );
        self.broken |= done.is_err() || !whole;
    }
}

impl Feed {
    fn record(&mut self, record: Record<'_, '_>) -> Option<()> {
        match record {
            Record::Path(path) => self.path(&path)?,
            Record::Thread(kernel_id, bases) => {
                self.bases = bases;
                self.switch(kernel_id, bases.fs);
            }
            Record::Syscall(number, arguments, answer) => {
                self.system_call(number, arguments, answer)
            }
            Record::Accesses(list) => events::decode::read_accesses(list, &mut self.explicit)?,
            Record::Cut(..) => self.explicit.clear(),
            Record::Single(Event::Enter { function, stack, arguments, .. }) => {
                self.enter(function, stack, arguments);
            }
            Record::Single(Event::Return { function, stack, value }) => {
                self.leave(function, stack, value);
            }
            Record::Single(Event::Handler { pc, frame, .. }) => {
                let context = self.called(pc);
                self.thread().calls.handler(frame, context);
            }
            Record::Single(_) | Record::Buffers(_) | Record::Probe(..) => {}
        }
        Some(())
    }

    #[inline]
    fn thread(&mut self) -> &mut ThreadState {
        if self.threads.is_empty() {
            self.switch(0, 0);
        }
        &mut self.threads[usize::from(self.now)]
    }

    /// The number of a thread of the kernel, which is a new one if it is not known.
    fn thread_of(&mut self, kernel_id: u32) -> Thread {
        let Self { by_kernel, threads, .. } = self;
        *by_kernel.entry(kernel_id).or_insert_with(|| {
            threads.push(ThreadState {
                kernel_id,
                has_run: false,
                calls: CallStack::new(ONE_STACK),
                under: Vec::new(),
                is_hidden: false,
                waits_for_word: false,
                locks: 0,
                shared: Vec::new(),
                section: 0,
                waits: Waits::default(),
            });
            (threads.len() - 1) as Thread
        })
    }

    fn switch(&mut self, kernel_id: u32, base: u64) {
        let number = self.thread_of(kernel_id);
        self.now = number;
        self.thread().has_run = true;
        if base != 0 {
            self.by_base.insert(base, number);
        }
    }

    /// The running thread has made another. What it does from now on is not ordered with that one, also
    /// before that has begun to run.
    fn makes(&mut self, kernel_id: u32) {
        let (maker, made) = (self.now, self.thread_of(kernel_id));
        self.each_detector(|detector| detector.starts(maker, made));
        self.order.starts(maker, made);
    }

    fn each_detector(&mut self, mut what: impl FnMut(&mut Detector)) {
        what(&mut self.detector);
        if let Some(predictor) = &mut self.predictor {
            what(predictor);
        }
    }

    fn acquire(&mut self, object: Object) {
        let now = self.now;
        self.each_detector(|detector| detector.acquire(now, object));
    }

    /// The running thread learns what another one knows that stands in a system call.
    fn learns_from(&mut self, kernel_id: u32) {
        let (now, other) = (self.now, self.thread_of(kernel_id));
        self.each_detector(|detector| detector.learns(now, other));
    }

    fn release(&mut self, object: Object) {
        let now = self.now;
        self.each_detector(|detector| detector.release(now, object));
    }

    fn forget(&mut self, address: u64, size: u64) {
        self.each_detector(|detector| detector.forget(address, size));
        self.sections.forget(address, size);
        self.pairs.forget(address, size);
        self.atomic.forget(address, size);
    }

    /// The context that the running thread is in.
    fn context(&mut self) -> u32 {
        self.thread().calls.top().map_or(0, |frame| frame.data)
    }

    /// The context inside of a call at `pc`.
    fn called(&mut self, pc: u64) -> u32 {
        let outer = self.context();
        self.sites.called(outer, pc)
    }

    fn site(&mut self, pc: u64, deed: Deed) -> u32 {
        let context = self.context();
        let locks = self.thread().locks;
        self.sites.number(Site { pc, context, locks, deed })
    }

    /// The site of the call that is being entered.
    fn caller_site(&mut self, deed: Deed) -> u32 {
        let inside = self.context();
        let (context, pc) = self.sites.caller(inside);
        let locks = self.thread().locks;
        self.sites.number(Site { pc, context, locks, deed })
    }
}
