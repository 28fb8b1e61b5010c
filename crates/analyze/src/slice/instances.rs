//! Which execution of its instruction an execution is: told from how often each exit has gone by.

use super::at::At;
use crate::dependence::block::Blocks;
use rustc_hash::FxHashMap;

/// How often exits have gone by, and which of them an instruction stands in.
pub struct Instances {
    /// How often each exit has been passed.
    seen: Vec<u64>,
    /// In which exits, and how often in each, an instruction stands.
    standing: FxHashMap<u32, Vec<(u32, u64)>>,
}

impl Instances {
    /// None has gone by.
    pub fn new(blocks: &Blocks) -> Self {
        Self { seen: vec![0; blocks.exits.len()], standing: FxHashMap::default() }
    }

    /// An exit goes by.
    #[inline]
    pub fn pass(&mut self, exit: u32) {
        self.seen[exit as usize] += 1;
    }

    /// Which execution this is, if exits go by in the order in which they happened.
    pub fn forwards(&mut self, blocks: &Blocks, at: &At<'_>) -> u64 {
        let before: u64 = {
            let seen = &self.seen;
            let standing = standing(&mut self.standing, blocks, at.id);
            standing.iter().map(|(exit, count)| seen[*exit as usize] * count).sum()
        };
        let own = at.record.block.instructions[..usize::from(at.index)].iter();
        before + own.filter(|id| **id == at.id).count() as u64 + 1
    }

    /// How many executions of an instruction there are if there are `taken` of each exit.
    pub fn all(&mut self, blocks: &Blocks, taken: &[u64], id: u32) -> u64 {
        let standing = standing(&mut self.standing, blocks, id);
        standing.iter().map(|(exit, count)| taken[*exit as usize] * count).sum()
    }

    /// Which execution this is, if the last come first and there are `taken` of each.
    pub fn backwards(&mut self, blocks: &Blocks, taken: &[u64], at: &At<'_>) -> u64 {
        let upto: u64 = {
            let left = |exit: u32| taken[exit as usize] - self.seen[exit as usize];
            let standing = standing(&mut self.standing, blocks, at.id);
            standing.iter().map(|(exit, count)| left(*exit) * count).sum()
        };
        let ran = &at.record.block.instructions[..at.record.exit.executed.into()];
        let later = ran.iter().skip(usize::from(at.index) + 1).filter(|id| **id == at.id).count();
        upto.saturating_sub(later as u64)
    }
}

fn standing<'m>(
    known: &'m mut FxHashMap<u32, Vec<(u32, u64)>>,
    blocks: &Blocks,
    id: u32,
) -> &'m [(u32, u64)] {
    known.entry(id).or_insert_with(|| blocks.standing(id).collect())
}
