//! Where things happen: instructions, the calls that led there, and the locks that are held, by number.

use crate::races::locks::LockSet;
use rustc_hash::FxHashMap;

/// Where an access, or the taking of a lock, happens: one number for all that is alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    /// The instruction.
    pub pc: u64,
    /// The calls that led there, see [`Races::callers`].
    pub context: u32,
    /// Locks that are held.
    pub locks: LockSet,
    /// What happens there to a whole block, if it is no access.
    pub deed: Deed,
}

/// What happens at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Deed {
    /// An access.
    Access,
    /// A block is freed.
    Free,
    /// A lock is taken.
    Lock,
}

/// A block of the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Where.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// Where it was allocated.
    pub site: u32,
    /// When.
    pub time: u64,
}

/// All sites of a run, and the calls that led to them.
#[derive(Clone, Debug)]
pub(super) struct Sites {
    all: Vec<Site>,
    numbers: FxHashMap<Site, u32>,
    /// For each context the one outside of it, and the call instruction.
    contexts: Vec<(u32, u64)>,
    context_numbers: FxHashMap<(u32, u64), u32>,
}

impl Default for Sites {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            numbers: FxHashMap::default(),
            contexts: vec![(0, 0)],
            context_numbers: FxHashMap::default(),
        }
    }
}

impl Sites {
    /// The number of a site.
    pub(super) fn number(&mut self, site: Site) -> u32 {
        let Self { all, numbers, .. } = self;
        *numbers.entry(site).or_insert_with(|| {
            all.push(site);
            (all.len() - 1) as u32
        })
    }

    /// The site of a number.
    pub(super) fn get(&self, number: u32) -> Option<Site> {
        self.all.get(number as usize).copied()
    }

    /// The locks that were held at a site.
    pub(super) fn locks(&self, number: u32) -> LockSet {
        self.all[number as usize].locks
    }

    /// The context inside of a call that an instruction makes in another context.
    pub(super) fn called(&mut self, outer: u32, pc: u64) -> u32 {
        let Self { contexts, context_numbers, .. } = self;
        *context_numbers.entry((outer, pc)).or_insert_with(|| {
            contexts.push((outer, pc));
            (contexts.len() - 1) as u32
        })
    }

    /// The context outside of another one, and the call instruction that led from there.
    pub(super) fn caller(&self, context: u32) -> (u32, u64) {
        self.contexts[context as usize]
    }

    /// The call instructions that led to a context, innermost first.
    pub(super) fn callers(&self, mut context: u32) -> Vec<u64> {
        let mut callers = Vec::new();
        while context != 0 {
            let (outer, pc) = self.caller(context);
            callers.push(pc);
            context = outer;
        }
        callers
    }
}
