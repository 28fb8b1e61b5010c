//! An **observation plan**: what an analysis wants to see of a guest, and what it wants altered.
//!
//! A plan is plain data in independent parts: whoever wants only the calls of `malloc` pays only for
//! those. The engine turns it into code; [`crate::record`] says what each part becomes in the stream.
//!
//! ```text
//! Plan::observing(Execution::Addresses).with_syscalls(Syscalls::Ranges)
//! Plan { stops: Stops::at_functions(vec![0x40_1136]), ..Plan::default() }
//! Plan { scope: Scope { threads: vec![3], ..Scope::default() }, ..Plan::screening(screen) }
//! ```

mod conflict;
mod screens;

pub use conflict::Conflict;
pub use screens::{
    Allocations, GRANULE, Heap, HeapFunction, HeapRole, ORDINARY_SIZES, POISON, Paint, Poison,
    Screen, Shadow,
};

use crate::patch::Patch;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// What to observe, test and alter. Nothing by default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Plan {
    /// What is written to the stream as it happens.
    pub observe: Observe,
    /// What is tested inline, so that only what does not pass is written to the stream.
    pub screens: Vec<Screen>,
    /// Places where something is written to the stream.
    pub stops: Stops,
    /// What is altered.
    pub patches: Vec<Patch>,
    /// Where execution is observed and accesses are tested; everywhere by default.
    pub scope: Scope,
}

/// What is written to the stream as it happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Observe {
    /// What of the instructions that execute.
    pub execution: Execution,
    /// What of system calls.
    pub syscalls: Syscalls,
    /// Forks, so that who follows the parent can go on with each child from where it was made.
    pub forks: bool,
    /// Ticks are counted, as recording needs it. By itself this writes nothing.
    pub ticks: bool,
}

/// What of execution is written to the stream. Each level includes the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Execution {
    /// Nothing.
    #[default]
    Unobserved,
    /// Which blocks were executed, and by which exit they were left.
    Blocks,
    /// The address of every memory access.
    Addresses,
    /// What was read and written: values before reads and after writes, of up to 32 bytes. Repeated string
    /// instructions, gathers and masked moves have none.
    Values,
}

/// What of system calls is written to the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Syscalls {
    /// Number, arguments and answer, where anything is written at all.
    #[default]
    Answers,
    /// Also the ranges of memory that the kernel read and wrote; of what it read, buffers and texts,
    /// not structures of parameters.
    Ranges,
    /// Also the bytes that were in them.
    Bytes,
}

/// Places where something is written to the stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Stops {
    /// Places where registers are wanted.
    pub probes: Vec<Probe>,
    /// Functions whose entries and returns are wanted, by address.
    pub functions: Vec<u64>,
    /// The same by name, in whatever module they turn up; the host looks them up.
    pub names: Vec<String>,
    /// Whether it is reported what functions of the C library touch, where they turn up.
    pub contracts: bool,
    /// The same of functions whose addresses are known, with their names.
    pub contracts_at: Vec<(u64, String)>,
}

/// What the host is asked for that looks up the functions of the C library, and what the names of those
/// begin with that it finds: several implementations have the same name, and are not what a caller of that
/// name calls.
pub const CONTRACTS: &str = "*";

/// Registers wanted whenever the instruction at a place is about to execute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// Address of the instruction.
    pub pc: u64,
    /// Which registers: bit N for the general register that the processor numbers N (rax, rcx,
    /// rdx, rbx, rsp, rbp, rsi, rdi, r8 …), bit 16 for the flags.
    pub registers: u32,
}

/// All general registers and the flags.
pub const ALL_REGISTERS: u32 = 0x1_ffff;

/// Where execution is observed and accesses are tested.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scope {
    /// Only instructions in these ranges; all if there are none.
    pub code: Vec<Range<u64>>,
    /// Only these threads; all if there are none.
    pub threads: Vec<u32>,
}

impl Plan {
    /// Execution is observed, and nothing else.
    #[must_use]
    pub fn observing(execution: Execution) -> Self {
        Self { observe: Observe { execution, ..Observe::default() }, ..Self::default() }
    }

    /// Every instruction with the addresses of its accesses.
    #[must_use]
    pub fn everything() -> Self {
        Self::observing(Execution::Addresses)
    }

    /// One screen, and nothing else.
    #[must_use]
    pub fn screening(screen: Screen) -> Self {
        Self { screens: vec![screen], ..Self::default() }
    }

    /// The same, with more or less of system calls.
    #[must_use]
    pub fn with_syscalls(mut self, syscalls: Syscalls) -> Self {
        self.observe.syscalls = syscalls;
        self
    }

    /// The same, with forks.
    #[must_use]
    pub fn with_forks(mut self) -> Self {
        self.observe.forks = true;
        self
    }

    /// The same, with or without ticks.
    #[must_use]
    pub fn with_ticks(mut self, ticks: bool) -> Self {
        self.observe.ticks = ticks;
        self
    }

    /// Whether anything is written to the event stream.
    #[must_use]
    pub fn emits(&self) -> bool {
        self.observe.execution > Execution::Unobserved
            || self.observe.syscalls > Syscalls::Answers
            || !self.screens.is_empty()
            || self.stops != Stops::default()
    }

    /// Functions that the host has to look up, for stops and for screens.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let of_screens = self.screens.iter().flat_map(Screen::functions);
        let sought = of_screens.filter(|function| function.at.is_none());
        let stops = self.stops.names.iter().map(String::as_str);
        let library = self.stops.contracts.then_some(CONTRACTS);
        stops.chain(sought.map(|function| function.name.as_str())).chain(library)
    }

    /// Whether the host has to look anything up.
    #[must_use]
    pub fn has_names(&self) -> bool {
        self.names().next().is_some()
    }

    /// The shadow that the host paints, if accesses are tested against it.
    #[must_use]
    pub fn shadow(&self) -> Option<&Shadow> {
        self.screens.iter().find_map(|screen| match screen {
            Screen::Shadow(shadow) => Some(shadow),
            _ => None,
        })
    }

    /// What is asked of the heap, if accesses are tested against its blocks.
    #[must_use]
    pub fn heap(&self) -> Option<&Heap> {
        self.screens.iter().find_map(|screen| match screen {
            Screen::Heap(heap) => Some(heap),
            _ => None,
        })
    }

    /// Whether memory that nobody has written is poisoned.
    #[must_use]
    pub fn poisons(&self) -> bool {
        self.screens.iter().any(|screen| matches!(screen, Screen::Poison(_)))
    }

    /// What of the plan holds for another program: nothing that is about addresses of this one.
    #[must_use]
    pub fn for_another_program(&self) -> Self {
        let mut plan = self.clone();
        if !plan.scope.code.is_empty() {
            plan.observe.execution = Execution::Unobserved;
            plan.screens.retain(|screen| !screen.tests_accesses());
        }
        (plan.stops.probes, plan.stops.functions) = (Vec::new(), Vec::new());
        plan.stops.contracts |= !plan.stops.contracts_at.is_empty();
        plan.stops.contracts_at = Vec::new();
        (plan.scope.code, plan.patches) = (Vec::new(), Vec::new());
        plan.screens.iter_mut().for_each(Screen::forget_addresses);
        plan
    }
}

impl Stops {
    /// Calls and returns of functions at these addresses.
    #[must_use]
    pub fn at_functions(functions: Vec<u64>) -> Self {
        Self { functions, ..Self::default() }
    }

    /// Calls and returns of functions of these names.
    #[must_use]
    pub fn at_names(names: Vec<String>) -> Self {
        Self { names, ..Self::default() }
    }
}

impl Scope {
    /// Whether an instruction is in the code that is observed.
    #[must_use]
    pub fn covers(&self, pc: u64) -> bool {
        self.code.is_empty() || self.code.iter().any(|range| range.contains(&pc))
    }

    /// Whether a thread is observed.
    #[must_use]
    pub fn covers_thread(&self, thread: u32) -> bool {
        self.threads.is_empty() || self.threads.contains(&thread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_plan_does_not_mention_is_not_observed() {
        let plan: Plan =
            serde_json::from_str(r#"{"observe":{"execution":"Blocks"}}"#).expect("a plan");
        assert_eq!(plan, Plan::observing(Execution::Blocks));
        assert!(plan.emits());
    }

    #[test]
    fn a_part_that_is_not_known_is_refused_by_name() {
        for (text, name) in [
            (r#"{"blocks":true}"#, "blocks"),
            (r#"{"observe":{"memory":true}}"#, "memory"),
            (r#"{"screens":[{"LastWriter":{}}]}"#, "LastWriter"),
        ] {
            let error = serde_json::from_str::<Plan>(text).expect_err(text).to_string();
            assert!(error.contains(name), "{error}");
        }
    }

    #[test]
    fn ranges_and_threads_restrict() {
        let mut plan = Plan::everything();
        assert!(plan.scope.covers(5) && plan.scope.covers_thread(7));
        plan.scope = Scope { code: vec![10..20, 30..40], threads: vec![3] };
        assert!(plan.scope.covers(19) && !plan.scope.covers(20) && plan.scope.covers(30));
        assert!(plan.scope.covers_thread(3) && !plan.scope.covers_thread(7));
        assert!(!plan.for_another_program().emits());
        let other = Plan::everything().for_another_program();
        assert_eq!(other.observe.execution, Execution::Addresses);
    }

    #[test]
    fn functions_are_looked_up_unless_it_is_known_where_they_are() {
        let function = |name: &str, at| HeapFunction {
            name: name.into(),
            role: HeapRole::Free,
            family: 1,
            zeroed: false,
            at,
        };
        let functions = vec![function("free", None), function("drop", Some(vec![0x1000]))];
        let heap = Screen::Heap(Heap { functions, provenance: false });
        let mut plan = Plan { stops: Stops::at_names(vec!["f".into()]), ..Plan::screening(heap) };
        assert_eq!(plan.names().collect::<Vec<_>>(), ["f", "free"]);
        plan = plan.for_another_program();
        assert_eq!(plan.names().collect::<Vec<_>>(), ["f", "free"]);
        let known = plan.screens.iter().flat_map(Screen::functions).count();
        assert_eq!(known, 1, "addresses of one program say nothing about another");
    }
}
