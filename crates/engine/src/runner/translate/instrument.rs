//! What a plan asks of translated code: all that the translator has to know of it.

use events::plan::{Execution, Plan};

/// How translations are instrumented.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instrumentation {
    /// What is recorded of execution.
    pub execution: Execution,
    /// Ticks are counted.
    pub ticks: bool,
    /// How accesses are tested against the shadow, if they are.
    pub tests: Option<Tests>,
    /// Frames are poisoned, and what is compared is looked at.
    pub poisons: bool,
}

/// What accesses are tested against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tests {
    /// What the host has painted.
    Painted,
    /// Blocks of the heap, which begin at multiples of a granule; and whether addresses are compared with
    /// the pointers that they are made from.
    Blocks {
        /// Whether they are.
        provenance: bool,
    },
}

impl Instrumentation {
    /// For code that the plan's scope covers.
    pub fn inside(plan: &Plan) -> Self {
        let painted = plan.shadow().map(|_| Tests::Painted);
        let blocks = plan.heap().map(|heap| Tests::Blocks { provenance: heap.provenance });
        Self { execution: plan.observe.execution, tests: painted.or(blocks), ..Self::outside(plan) }
    }

    /// For other code: what a plan says of the program as a whole.
    pub fn outside(plan: &Plan) -> Self {
        Self { ticks: plan.observe.ticks, poisons: plan.poisons(), ..Self::default() }
    }

    /// Whether translations write records of what they execute.
    pub fn records(&self) -> bool {
        self.execution > Execution::Unobserved
    }

    /// Whether accesses are part of these.
    pub fn records_accesses(&self) -> bool {
        self.execution >= Execution::Addresses
    }

    /// Whether values are.
    pub fn records_values(&self) -> bool {
        self.execution >= Execution::Values
    }

    /// Whether translations need to know the accesses of instructions.
    pub fn needs_accesses(&self) -> bool {
        self.records_accesses() || self.tests.is_some() || self.poisons
    }

    /// General registers that a superblock must not use.
    pub fn reserved(&self) -> usize {
        2 * (usize::from(self.records()) + usize::from(self.tests.is_some()))
            + usize::from(self.records_values())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use events::plan::{Heap, Poison, Scope, Screen};

    #[test]
    fn outside_of_the_scope_only_what_concerns_the_whole_program_is_left() {
        let scope = Scope { code: vec![0..1, 4..5], ..Scope::default() };
        let screens = vec![Screen::Heap(Heap { provenance: true, ..Heap::default() })];
        let plan = Plan { scope, screens, ..Plan::observing(Execution::Values) }.with_ticks(true);
        let inside = Instrumentation::inside(&plan);
        assert_eq!(inside.tests, Some(Tests::Blocks { provenance: true }));
        assert_eq!((inside.reserved(), inside.ticks), (5, true));
        let ticks = Instrumentation { ticks: true, ..Instrumentation::default() };
        assert_eq!(Instrumentation::outside(&plan), ticks);
        let poisoned = Plan::screening(Screen::Poison(Poison::default()));
        let both = [Instrumentation::inside(&poisoned), Instrumentation::outside(&poisoned)];
        assert!(both.iter().all(|one| one.poisons && one.needs_accesses() && !one.records()));
    }
}
