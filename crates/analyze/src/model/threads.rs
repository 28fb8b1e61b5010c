//! The threads of a process, with what an analysis keeps of each (`T`).
//!
//! The stream names threads by the kernel's ids, which differ from run to run and may come again. Here
//! they have small numbers, 1 for the first that runs, which are the same in every replay; the kernel's
//! id is an attribute.

use rustc_hash::FxHashMap;

/// A thread's number: 1 for the first that runs, and so on. 0 is whoever ran before the stream said.
pub type ThreadNumber = u32;

/// One thread.
#[derive(Clone, Debug)]
pub struct Numbered<T> {
    /// Its number.
    pub number: ThreadNumber,
    /// The kernel's id, if that was told.
    pub kernel_id: Option<u32>,
    /// When it was first seen to run.
    pub started: u64,
    /// When it ended, if it did.
    pub ended: Option<u64>,
    /// What its analysis keeps of it.
    pub state: T,
}

/// All threads of a process, and which one runs: it is asked for at every instruction.
#[derive(Clone, Debug)]
pub struct Threads<T> {
    all: Vec<Numbered<T>>,
    /// Threads that have not ended, by the kernel's ids.
    numbers: FxHashMap<u32, usize>,
    now: usize,
    /// Whether the thread that runs is given the id of whichever comes next.
    unnamed: bool,
}

impl<T: Default> Default for Threads<T> {
    fn default() -> Self {
        let (numbers, now) = Default::default();
        Self { all: vec![known(0, None, 0)], numbers, now, unnamed: false }
    }
}

fn known<T: Default>(number: ThreadNumber, kernel_id: Option<u32>, started: u64) -> Numbered<T> {
    Numbered { number, kernel_id, started, ended: None, state: T::default() }
}

impl<T: Default> Threads<T> {
    /// What is kept of the thread that runs.
    #[must_use]
    #[inline]
    pub fn now(&self) -> &T {
        &self.all[self.now].state
    }

    /// What is kept of the thread that runs, to change.
    #[inline]
    pub fn now_mut(&mut self) -> &mut T {
        &mut self.all[self.now].state
    }

    /// The thread that runs.
    #[must_use]
    pub fn running(&self) -> &Numbered<T> {
        &self.all[self.now]
    }

    /// Every thread in the order of their numbers, those that have ended too. The first may have run
    /// before the stream said who does.
    pub fn all(&self) -> impl Iterator<Item = &Numbered<T>> {
        self.all.iter()
    }

    /// What is kept of every thread, to change.
    pub fn states_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.all.iter_mut().map(|known| &mut known.state)
    }

    /// From here on the thread of this id runs.
    pub fn switch(&mut self, kernel_id: u32, time: u64) {
        let Self { all, numbers, now, unnamed } = self;
        if std::mem::take(unnamed) {
            numbers.insert(kernel_id, *now);
            all[*now].kernel_id = Some(kernel_id);
        }
        *now = *numbers.entry(kernel_id).or_insert_with(|| {
            let number = all.last().map_or(0, |last| last.number + 1);
            all.push(known(number, Some(kernel_id), time));
            all.len() - 1
        });
    }

    /// The thread that runs has ended: whoever has its id next is another one.
    pub fn end(&mut self, time: u64) {
        let ended = &mut self.all[self.now];
        ended.ended = Some(time);
        if let Some(id) = ended.kernel_id {
            self.numbers.remove(&id);
        }
    }

    /// In the child of a fork only the thread that made it goes on, under another id.
    pub fn fork(&mut self) {
        let running = self.all.swap_remove(self.now);
        let running = Numbered { number: 1, kernel_id: None, ..running };
        *self = Self { all: vec![running], unnamed: true, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(threads: &Threads<u8>) -> Vec<(ThreadNumber, Option<u32>)> {
        threads.all().map(|known| (known.number, known.kernel_id)).collect()
    }

    #[test]
    fn numbers_are_small_and_in_the_order_of_appearance() {
        let mut threads = Threads::<u8>::default();
        assert_eq!(threads.running().number, 0);
        for (time, id) in [(5, 4711), (6, 4715), (7, 4711)] {
            threads.switch(id, time);
            *threads.now_mut() += 1;
        }
        assert_eq!(numbers(&threads), [(0, None), (1, Some(4711)), (2, Some(4715))]);
        assert_eq!((*threads.now(), threads.running().started), (2, 5));
    }

    #[test]
    fn an_id_that_comes_again_is_another_thread() {
        let mut threads = Threads::<u8>::default();
        threads.switch(10, 1);
        threads.switch(11, 2);
        threads.end(3);
        threads.switch(10, 4);
        threads.switch(11, 5);
        assert_eq!(threads.running().number, 3);
        let ended: Vec<_> = threads.all().filter_map(|known| known.ended).collect();
        assert_eq!(ended, [3]);
    }

    #[test]
    fn a_child_goes_on_with_the_thread_that_forked() {
        let mut threads = Threads::<u8>::default();
        threads.switch(10, 1);
        threads.switch(11, 2);
        *threads.now_mut() = 42;
        threads.fork();
        threads.switch(99, 3);
        assert_eq!((*threads.now(), threads.running().number), (42, 1));
        threads.switch(100, 4);
        assert_eq!((*threads.now(), threads.running().number), (0, 2));
    }
}
