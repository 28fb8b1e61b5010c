//! Plans are sent to the runner as JSON: whatever the host asks for is what the runner reads.

use events::patch::{Action, Patch};
use events::plan::{
    Allocations, Execution, Heap, HeapFunction, HeapRole, Observe, Paint, Plan, Poison, Probe,
    Scope, Screen, Shadow, Stops, Syscalls,
};
use proptest::collection::vec;
use proptest::prelude::*;
use std::ops::Range;

fn observe() -> impl Strategy<Value = Observe> {
    let execution = prop_oneof![
        Just(Execution::Unobserved),
        Just(Execution::Blocks),
        Just(Execution::Addresses),
        Just(Execution::Values),
    ];
    let syscalls =
        prop_oneof![Just(Syscalls::Answers), Just(Syscalls::Ranges), Just(Syscalls::Bytes)];
    (execution, syscalls, any::<bool>(), any::<bool>()).prop_map(
        |(execution, syscalls, forks, ticks)| Observe { execution, syscalls, forks, ticks },
    )
}

fn range() -> impl Strategy<Value = Range<u64>> {
    (any::<u64>(), any::<u64>()).prop_map(|(start, end)| start..end)
}

fn functions() -> impl Strategy<Value = Vec<HeapFunction>> {
    let role = prop_oneof![
        any::<(u8, Option<u8>)>().prop_map(|(size, count)| HeapRole::Allocate(size, count)),
        any::<u64>().prop_map(HeapRole::AllocateFixed),
        any::<(u8, Option<u8>)>().prop_map(|(size, count)| HeapRole::Resize(size, count)),
        any::<u8>().prop_map(HeapRole::AllocateTo),
        Just(HeapRole::Free),
        Just(HeapRole::Measure),
        Just(HeapRole::Tend),
    ];
    let function =
        (".{0,12}", role, any::<u8>(), any::<bool>(), any::<Option<Vec<u64>>>()).prop_map(
            |(name, role, family, zeroed, at)| HeapFunction { name, role, family, zeroed, at },
        );
    vec(function, 0..4)
}

fn screen() -> impl Strategy<Value = Screen> {
    let paint = (range(), any::<u8>()).prop_map(|(range, bits)| Paint { range, bits });
    prop_oneof![
        (any::<u8>(), any::<u8>(), vec(paint, 0..4))
            .prop_map(|(reads, writes, paint)| Screen::Shadow(Shadow { reads, writes, paint })),
        (functions(), any::<bool>())
            .prop_map(|(functions, provenance)| Screen::Heap(Heap { functions, provenance })),
        functions().prop_map(|functions| Screen::Allocations(Allocations { functions })),
        functions().prop_map(|functions| Screen::Poison(Poison { functions })),
    ]
}

fn stops() -> impl Strategy<Value = Stops> {
    let probe = any::<(u64, u32)>().prop_map(|(pc, registers)| Probe { pc, registers });
    let contracts = (any::<bool>(), vec((any::<u64>(), ".{0,12}"), 0..4));
    (vec(probe, 0..4), any::<Vec<u64>>(), vec(".{0,12}", 0..4), contracts).prop_map(
        |(probes, functions, names, (contracts, contracts_at))| Stops {
            probes,
            functions,
            names,
            contracts,
            contracts_at,
        },
    )
}

fn patch() -> impl Strategy<Value = Patch> {
    let action = prop_oneof![
        Just(Action::Flip),
        Just(Action::Skip),
        Just(Action::Return),
        any::<u64>().prop_map(|to| Action::Jump { to }),
        any::<(u8, u64)>().prop_map(|(register, value)| Action::SetRegister { register, value }),
        any::<(u64, u8, u64)>().prop_map(|(address, size, value)| Action::SetMemory {
            address,
            size,
            value
        }),
    ];
    (any::<u64>(), any::<Option<u64>>(), action).prop_map(|(pc, execution, action)| Patch {
        pc,
        execution,
        action,
    })
}

fn plan() -> impl Strategy<Value = Plan> {
    let scope =
        (vec(range(), 0..4), any::<Vec<u32>>()).prop_map(|(code, threads)| Scope { code, threads });
    (observe(), vec(screen(), 0..3), stops(), vec(patch(), 0..4), scope).prop_map(
        |(observe, screens, stops, patches, scope)| Plan {
            observe,
            screens,
            stops,
            patches,
            scope,
        },
    )
}

proptest! {
    #[test]
    fn a_plan_is_read_as_it_was_written(plan in plan()) {
        let text = serde_json::to_vec(&plan).expect("text");
        let read: Plan = serde_json::from_slice(&text).expect("a plan");
        prop_assert_eq!(read, plan);
    }

    /// What holds for another program is itself a plan that the parts of this one allow.
    #[test]
    fn a_plan_for_another_program_asks_for_nothing_more(plan in plan()) {
        let other = plan.for_another_program();
        prop_assert!(other.observe.execution <= plan.observe.execution);
        prop_assert!(plan.emits() || !other.emits());
        prop_assert!(plan.check().is_err() || other.check().is_ok());
        // Functions with contracts were found by address; another program has them elsewhere.
        let found = !plan.stops.contracts_at.is_empty();
        prop_assert!(found || other.names().count() <= plan.names().count());
        prop_assert_eq!(&other.for_another_program(), &other);
    }
}
