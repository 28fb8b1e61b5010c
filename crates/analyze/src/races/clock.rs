//! Logical time: an **epoch** is a thread's own time, a **vector clock** what a thread knows of all.

/// The number of a thread, from 0, in the order in which they are first heard of.
pub type Thread = u16;

/// A moment of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Epoch {
    /// Whose.
    pub thread: Thread,
    /// Its time then, from 1.
    pub time: u32,
}

/// For each thread the time up to which what it did comes before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VectorClock(Vec<u32>);

impl VectorClock {
    /// The time known of a thread.
    #[must_use]
    #[inline]
    pub fn of(&self, thread: Thread) -> u32 {
        self.0.get(usize::from(thread)).copied().unwrap_or(0)
    }

    /// Whether a moment comes before.
    #[must_use]
    #[inline]
    pub fn knows(&self, epoch: Epoch) -> bool {
        epoch.time <= self.of(epoch.thread)
    }

    /// Sets the time of a thread.
    pub fn set(&mut self, thread: Thread, time: u32) {
        let index = usize::from(thread);
        if self.0.len() <= index {
            self.0.resize(index + 1, 0);
        }
        self.0[index] = time;
    }

    /// All that another knows is known from now on.
    pub fn join(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (own, known) in self.0.iter_mut().zip(&other.0) {
            *own = (*own).max(*known);
        }
    }
}
