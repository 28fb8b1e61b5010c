//! What is known of reads and writes as uses and definitions of memory, over many runs: the **DSet** of a read,
//! whether it uses what its own thread wrote (**LR**), and whether it uses what the read before it did
//! (**Follower**); of a write, whether what it wrote was always read. With them the pruning and the
//! confidences of the reference's section 4.2.

use crate::model::SiteId;
use serde::{Deserialize, Serialize};

/// Uses and definitions that were met less often in training say nothing.
const BARELY: u64 = 3;
/// A read with more definitions than this may well have another one.
const POPULAR: usize = 12;
/// The share of runs in which an invariant must have held to be one: a training run that failed unnoticed
/// does not spoil it.
const SUPPORT: f64 = 0.95;

/// A write that a read has used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// The write.
    pub site: SiteId,
    /// How often.
    pub count: u64,
    /// In how many runs.
    pub runs: u32,
}

/// In how many runs something was so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origins {
    /// Only what the same thread wrote was used.
    pub local: u32,
    /// Only what other threads wrote.
    pub remote: u32,
    /// Both.
    pub mixed: u32,
}

/// What is known of a read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Use {
    /// How often it was executed.
    pub count: u64,
    /// Its DSet, sorted by site.
    pub definitions: Vec<Pair>,
    /// Whose definitions it used, by run.
    pub origins: Origins,
    /// Runs in which it always used what the thread's read before it used.
    pub followed: u32,
    /// Runs in which it did not.
    pub unfollowed: u32,
}

/// What is known of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// How often it was executed.
    pub count: u64,
    /// How often what it had written was read at least once before it was overwritten.
    pub used: u64,
    /// How often it was not.
    pub lost: u64,
}

/// Whose definitions a read uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// Its own thread's.
    Local,
    /// Another thread's.
    Remote,
}

/// What one run has shown of a read.
#[derive(Clone, Debug, Default)]
pub struct UseInRun {
    /// How often it was executed.
    pub count: u64,
    /// The writes it used, and how often.
    pub definitions: Vec<(SiteId, u64)>,
    /// Uses of what its own thread wrote.
    pub local: u64,
    /// Uses of what others wrote.
    pub remote: u64,
    /// Executions that used what the thread's read before used.
    pub followed: u64,
    /// Executions that did not.
    pub unfollowed: u64,
}

impl Use {
    /// Whether a write is in the DSet.
    #[must_use]
    pub fn has(&self, site: SiteId) -> bool {
        self.definitions.binary_search_by_key(&site, |pair| pair.site).is_ok()
    }

    /// Whether it was met too rarely for its invariants to mean anything.
    #[must_use]
    pub fn is_barely_exercised(&self) -> bool {
        self.count < BARELY
    }

    /// Whether it has so many definitions that another one is no surprise.
    #[must_use]
    pub fn is_popular(&self) -> bool {
        self.definitions.len() > POPULAR
    }

    /// The LR invariant, and the share of runs that support it.
    #[must_use]
    pub fn origin(&self) -> Option<(Origin, f64)> {
        let Origins { local, remote, mixed } = self.origins;
        let all = f64::from(local + remote + mixed);
        let share = |runs: u32| f64::from(runs) / all;
        [(Origin::Local, local), (Origin::Remote, remote)]
            .into_iter()
            .map(|(origin, runs)| (origin, share(runs)))
            .find(|(_, share)| *share >= SUPPORT)
    }

    /// Whether it has the Follower invariant: the share of runs that support it.
    #[must_use]
    pub fn follower(&self) -> Option<f64> {
        let share = f64::from(self.followed) / f64::from(self.followed + self.unfollowed);
        (share >= SUPPORT).then_some(share)
    }

    /// Adds what a run has shown.
    pub fn add(&mut self, run: &UseInRun) {
        self.count += run.count;
        for (site, count) in &run.definitions {
            self.add_pair(Pair { site: *site, count: *count, runs: 1 });
        }
        match (run.local, run.remote) {
            (0, 0) => {}
            (_, 0) => self.origins.local += 1,
            (0, _) => self.origins.remote += 1,
            _ => self.origins.mixed += 1,
        }
        self.followed += u32::from(run.followed > 0 && run.unfollowed == 0);
        self.unfollowed += u32::from(run.unfollowed > 0);
    }

    fn add_pair(&mut self, pair: Pair) {
        match self.definitions.binary_search_by_key(&pair.site, |known| known.site) {
            Ok(at) => {
                self.definitions[at].count = self.definitions[at].count.saturating_add(pair.count);
                self.definitions[at].runs = self.definitions[at].runs.saturating_add(pair.runs);
            }
            Err(at) => self.definitions.insert(at, pair),
        }
    }

    /// Adds what is known from other runs, whose sites have other numbers.
    pub fn merge(&mut self, other: &Self, number: impl Fn(SiteId) -> SiteId) {
        self.count = self.count.saturating_add(other.count);
        for pair in &other.definitions {
            self.add_pair(Pair { site: number(pair.site), ..*pair });
        }
        self.origins.local = self.origins.local.saturating_add(other.origins.local);
        self.origins.remote = self.origins.remote.saturating_add(other.origins.remote);
        self.origins.mixed = self.origins.mixed.saturating_add(other.origins.mixed);
        self.followed = self.followed.saturating_add(other.followed);
        self.unfollowed = self.unfollowed.saturating_add(other.unfollowed);
    }
}

impl UseInRun {
    /// A definition was used once more; how often now.
    pub fn uses(&mut self, site: SiteId) -> u64 {
        match self.definitions.iter_mut().find(|(known, _)| *known == site) {
            Some((_, count)) => {
                *count += 1;
                *count
            }
            None => {
                self.definitions.push((site, 1));
                1
            }
        }
    }
}

impl Definition {
    /// Whether it was met too rarely to mean anything.
    #[must_use]
    pub fn is_barely_exercised(&self) -> bool {
        self.count == 0
    }

    /// Whether what it wrote was always read.
    #[must_use]
    pub fn is_always_used(&self) -> bool {
        self.lost == 0 && self.used >= BARELY
    }

    /// Adds what is known from other runs.
    pub fn merge(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.used = self.used.saturating_add(other.used);
        self.lost = self.lost.saturating_add(other.lost);
    }
}

/// The confidence that a read which uses a definition outside its DSet is a bug (equation 7).
#[must_use]
pub fn dset_confidence(definitions: u64, uses: u64, dset: usize, violations: u64) -> f64 {
    let (d, u) = (definitions as f64, uses as f64);
    d * u / (((d - u).abs() + 1.0) * dset.max(1) as f64 * violations.max(1) as f64)
}

/// The same of a read whose LR or Follower invariant is violated (equations 8 and 9).
#[must_use]
pub fn read_confidence(uses: u64, violations: u64) -> f64 {
    uses as f64 / violations.max(1) as f64
}

/// Of several violations at once: the geometric mean.
#[must_use]
pub fn combined(confidences: &[f64]) -> f64 {
    let product: f64 = confidences.iter().map(|one| one.max(f64::MIN_POSITIVE).ln()).sum();
    (product / confidences.len().max(1) as f64).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(local: u64, remote: u64) -> UseInRun {
        let count = local + remote;
        UseInRun { count, local, remote, followed: 0, unfollowed: count, ..UseInRun::default() }
    }

    #[test]
    fn a_training_run_that_failed_unnoticed_does_not_spoil_an_invariant() {
        let mut read = Use::default();
        (0..39).for_each(|_| read.add(&run(2, 0)));
        assert_eq!(read.origin(), Some((Origin::Local, 1.0)));
        read.add(&run(1, 1));
        assert_eq!(read.origin(), Some((Origin::Local, 39.0 / 40.0)));
        (0..3).for_each(|_| read.add(&run(0, 1)));
        assert_eq!(read.origin(), None);
        assert_eq!((read.count, read.follower()), (83, None));
    }

    #[test]
    fn confidences_are_those_of_the_reference() {
        assert_eq!(dset_confidence(10, 10, 1, 1), 100.0);
        assert_eq!(dset_confidence(10, 15, 2, 5), 2.5);
        assert_eq!(read_confidence(12, 3), 4.0);
        assert!((combined(&[100.0, 4.0]) - 20.0).abs() < 1e-9);
    }

    #[test]
    fn definitions_are_counted_by_use_and_by_run() {
        let mut run = UseInRun::default();
        assert_eq!([3, 1, 3].map(|site| run.uses(SiteId(site))), [1, 1, 2]);
        let mut read = Use::default();
        read.add(&run);
        read.add(&run);
        let pairs: Vec<_> = read.definitions.iter().map(|p| (p.site.0, p.count, p.runs)).collect();
        assert_eq!(pairs, [(1, 2, 2), (3, 4, 2)]);
        assert!(read.has(SiteId(1)) && !read.has(SiteId(2)));
    }
}
