//! Children that were forked go on from where their parent was: its consumer leaves a copy of all it
//! knows for each, and the child's waits for that. Nothing waits for a child, so this has an end.

use analyze::rules::detector::Detector;
use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What consumers leave for each other.
#[derive(Default)]
pub struct Forks {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Processes that are followed: which consumer does, as one follows on another at an `execve`.
    followed: HashMap<i32, u64>,
    consumers: u64,
    /// What children that have not come yet begin with.
    waiting: HashMap<i32, Detector>,
}

/// The consumer of one process.
#[derive(Clone, Copy)]
pub struct Follower {
    process: i32,
    number: u64,
}

impl Forks {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A process is followed from here on.
    pub fn follow(&self, process: i32) -> Follower {
        let mut state = self.lock();
        state.consumers += 1;
        let number = state.consumers;
        state.followed.insert(process, number);
        Follower { process, number }
    }

    /// Nobody follows it any more: its children need not wait.
    pub fn leave(&self, follower: Follower) {
        let mut state = self.lock();
        if state.followed.get(&follower.process) == Some(&follower.number) {
            state.followed.remove(&follower.process);
        }
        self.changed.notify_all();
    }

    /// What a child begins with.
    pub fn give(&self, child: i32, detector: Detector) {
        self.lock().waiting.insert(child, detector);
        self.changed.notify_all();
    }

    /// Waits for what a child begins with; nothing if its parent is not followed.
    pub fn take(&self, child: i32, parent: i32) -> Option<Detector> {
        let mut state = self.lock();
        loop {
            if let Some(detector) = state.waiting.remove(&child) {
                return Some(detector);
            }
            if !state.followed.contains_key(&parent) {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::allocator::Allocators;

    #[test]
    fn a_child_waits_for_its_parent_as_long_as_that_is_followed() {
        // Whoever comes first, the answer is the same.
        for _ in 0..200 {
            let forks = Forks::default();
            let first = forks.follow(1);
            let second = forks.follow(1);
            std::thread::scope(|scope| {
                let given = scope.spawn(|| forks.take(2, 1).is_some());
                let left = scope.spawn(|| forks.take(3, 1).is_some());
                // An older consumer of the process does not speak for it any more.
                forks.leave(first);
                forks.give(2, Detector::new(Vec::new(), Allocators::default()));
                assert!(given.join().expect("no panic"));
                forks.leave(second);
                assert!(!left.join().expect("no panic"));
            });
            assert!(forks.take(4, 1).is_none(), "a parent that nobody follows");
        }
    }
}
