//! The index changes no answer, and many wanters of one thing take no longer than many of many.

use super::*;
use proptest::prelude::*;

/// What [`Reasons::add`] means: every reason is looked at.
fn add_slowly(found: &mut Vec<Reason>, node: u32, kind: Kind, because: Because) {
    let same = found.iter_mut().find(|reason| joins(reason, node, kind, because));
    match (same, because) {
        (Some((.., Because::Parts(known))), Because::Parts(more)) => *known |= more,
        (Some((.., Because::Memory { bytes, .. })), _) => *bytes += 1,
        _ => found.push((node, kind, because)),
    }
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::Value), Just(Kind::Address), Just(Kind::Control)]
}

/// Parts and bytes that often touch, and now and then a reason that nothing is joined with.
fn because() -> impl Strategy<Value = Because> {
    prop_oneof![
        4 => (0u8..64).prop_map(|part| Because::Parts(Parts::numbered(part))),
        8 => (0u64..12).prop_map(|address| Because::Memory { address, bytes: 1 }),
        1 => Just(Because::Branch),
    ]
}

proptest! {
    #[test]
    fn the_index_joins_what_looking_through_all_would(
        reasons in prop::collection::vec((0u32..4, kind(), because()), 0..200)
    ) {
        let (mut found, mut expected) = (Reasons::new(), Vec::new());
        for (node, kind, because) in reasons {
            if because == Because::Branch {
                found.push((node, kind, because));
                expected.push((node, kind, because));
            } else {
                found.add(node, kind, because);
                add_slowly(&mut expected, node, kind, because);
            }
        }
        prop_assert_eq!(found.reasons, expected);
    }

    #[test]
    fn every_wanter_is_noted_once_and_in_order(
        wanters in prop::collection::vec((0u32..30, kind()), 0..200)
    ) {
        let (mut list, mut expected) = (List::default(), Vec::new());
        for (node, kind) in wanters {
            list.note(node, kind);
            if !expected.contains(&(node, kind)) {
                expected.push((node, kind));
            }
        }
        prop_assert_eq!(list.nodes, expected);
    }
}

/// With lists that are looked through this takes 80,000,000,000 comparisons: minutes.
#[test]
fn many_nodes_may_want_the_same() {
    const NODES: u32 = 100_000;
    let mut wanters = Wanters::default();
    let parts = Parts::general(0, 0, 8);
    for node in 0..NODES {
        wanters.want_parts(1, parts, node, Kind::Value);
        wanters.want_bytes(0x1000, 0xff, node, Kind::Address);
    }
    let mut found = Reasons::new();
    wanters.take_parts(1, parts, &mut found);
    wanters.take_bytes(0x1000, 0xff, &mut found);
    let memory = Because::Memory { address: 0x1000, bytes: 8 };
    let values = (0..NODES).map(|node| (node, Kind::Value, Because::Parts(parts)));
    let addresses = (0..NODES).map(|node| (node, Kind::Address, memory));
    assert!(found.into_iter().eq(values.chain(addresses)));
}
