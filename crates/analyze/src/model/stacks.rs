//! Call stacks that are worth keeping, each once: where blocks were allocated, descriptors opened.

use rustc_hash::FxHashMap;

/// The number of a call stack that was kept.
pub type StackId = u32;

/// Frames of a call stack that are kept, from the innermost.
pub const DEEPEST: usize = 24;

/// Kept call stacks.
#[derive(Clone)]
pub struct Stacks {
    all: Vec<Vec<u64>>,
    numbers: FxHashMap<Vec<u64>, StackId>,
    /// Stacks of one call, by its address.
    callers: FxHashMap<u64, StackId>,
}

impl Default for Stacks {
    /// With the empty stack, which is number 0.
    fn default() -> Self {
        let (numbers, callers) = Default::default();
        Self { all: vec![Vec::new()], numbers, callers }
    }
}

impl Stacks {
    /// The calls of a kept stack, innermost first.
    #[must_use]
    pub fn get(&self, id: StackId) -> &[u64] {
        self.all.get(id as usize).map_or(&[], Vec::as_slice)
    }

    /// Keeps a stack.
    pub fn keep(&mut self, stack: Vec<u64>) -> StackId {
        if let Some(known) = self.numbers.get(&stack) {
            return *known;
        }
        let id = self.all.len() as StackId;
        self.all.push(stack.clone());
        self.numbers.insert(stack, id);
        id
    }

    /// Keeps a stack of one call.
    pub fn keep_caller(&mut self, pc: u64) -> StackId {
        if let Some(known) = self.callers.get(&pc) {
            return *known;
        }
        let id = self.keep(vec![pc]);
        self.callers.insert(pc, id);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_stack_has_the_same_number() {
        let mut stacks = Stacks::default();
        let [one, two] = [vec![1, 2], vec![1, 3]].map(|stack| stacks.keep(stack));
        assert_ne!(one, two);
        assert_eq!(stacks.keep(vec![1, 2]), one);
        assert_eq!(stacks.get(two), [1, 3]);
        assert_eq!(stacks.keep_caller(7), stacks.keep_caller(7));
        assert!(stacks.get(0).is_empty() && stacks.get(99).is_empty());
    }
}
