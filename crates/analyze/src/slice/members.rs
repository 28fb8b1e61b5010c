//! A set of moments: which executions of a window take part.

use base::StepCount;

/// A set of moments of a window, a bit for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    words: Vec<u64>,
}

impl Members {
    /// Adds a moment.
    pub fn add(&mut self, moment: StepCount) {
        let word = (moment.0 / 64) as usize;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (moment.0 % 64);
    }

    /// Whether a moment is in the set.
    #[must_use]
    pub fn has(&self, moment: StepCount) -> bool {
        let word = self.words.get((moment.0 / 64) as usize);
        word.is_some_and(|word| word >> (moment.0 % 64) & 1 == 1)
    }

    /// How many moments.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// The moments, in order.
    pub fn iter(&self) -> impl Iterator<Item = StepCount> + '_ {
        (0u64..).zip(&self.words).flat_map(|(number, word)| {
            let set = (0..64).filter(move |bit| word >> bit & 1 == 1);
            set.map(move |bit| StepCount(number * 64 + bit))
        })
    }
}
