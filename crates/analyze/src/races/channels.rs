//! What goes through pipes and sockets, and who sent what a thread has received.
//!
//! A call is told when it comes back. A reader may be back before the writer is, so a pass over the run meets
//! what was read before it meets who wrote it. What a first pass has seen of writes tells a second one whom a reader
//! has that from: a thread that has not come back stands where it made the call.

use rustc_hash::FxHashMap;

/// Who wrote how many bytes through each channel, in the order in which the calls came back: ids of the kernel's.
pub type Writes = FxHashMap<u64, Vec<(u32, u64)>>;

/// What has gone through channels so far.
#[derive(Clone, Debug, Default)]
pub struct Channels(FxHashMap<u64, Passed>);

#[derive(Clone, Debug, Default)]
struct Passed {
    writes: Vec<(u32, u64)>,
    /// Bytes of those.
    written: u64,
    read: u64,
    /// Whether more was read than had been written by then.
    early: bool,
}

impl Channels {
    /// A thread is back from writing.
    pub fn wrote(&mut self, channel: u64, writer: u32, bytes: u64) {
        let passed = self.0.entry(channel).or_default();
        passed.writes.push((writer, bytes));
        passed.written += bytes;
    }

    /// A thread is back from reading; those who wrote some of that and are not back yet, as far as `known` tells.
    pub fn has_read<'a>(
        &mut self,
        channel: u64,
        bytes: u64,
        known: &'a Writes,
    ) -> impl Iterator<Item = u32> + use<'a> {
        let passed = self.0.entry(channel).or_default();
        passed.read += bytes;
        let mut missing = passed.read.saturating_sub(passed.written);
        passed.early |= missing > 0;
        let later = known.get(&channel).into_iter().flatten().skip(passed.writes.len());
        later.map_while(move |(writer, bytes)| {
            let needed = missing > 0;
            missing = missing.saturating_sub(*bytes);
            needed.then_some(*writer)
        })
    }

    /// The writes through channels in which a reader was back first.
    #[must_use]
    pub fn overtaken(&self) -> Writes {
        let early = self.0.iter().filter(|(_, passed)| passed.early && passed.written > 0);
        early.map(|(channel, passed)| (*channel, passed.writes.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_is_back_first_learns_from_a_second_pass_who_wrote() {
        let pass = |known: &Writes| {
            let mut channels = Channels::default();
            channels.wrote(4, 1, 2);
            let first: Vec<u32> = channels.has_read(4, 2, known).collect();
            let early: Vec<u32> = channels.has_read(4, 3, known).collect();
            channels.wrote(4, 2, 1);
            channels.wrote(4, 3, 2);
            channels.wrote(4, 5, 9);
            channels.wrote(6, 1, 1);
            (first, early, channels.overtaken())
        };
        let (first, early, learned) = pass(&Writes::default());
        assert_eq!((first, early), (vec![], vec![]));
        assert_eq!(learned.len(), 1, "the other channel is as it should be");
        let (first, early, again) = pass(&learned);
        assert_eq!((first, early), (vec![], vec![2, 3]));
        assert_eq!(again, learned);
    }
}
