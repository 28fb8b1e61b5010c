//! Figure 5 of the paper by enumeration: all 64 ways in which two accesses of one thread and two of another to a
//! pair of variables can come after each other, judged by what every read sees and by what is left in the end.

use super::*;

/// An access: by which of two threads, to which of two variables, and whether it writes.
type Access = (usize, usize, bool);

/// What each read sees, by the write that it comes from, and what is in both variables in the end.
type Outcome = (Vec<(Access, Option<Access>)>, [Option<Access>; 2]);

fn outcome(run: &[Access]) -> Outcome {
    let (mut memory, mut reads) = ([None; 2], Vec::new());
    for access in run {
        let (_, variable, writes) = *access;
        if writes {
            memory[variable] = Some(*access);
        } else {
            reads.push((*access, memory[variable]));
        }
    }
    reads.sort_unstable();
    (reads, memory)
}

fn has_serial_order(run: &[Access]) -> bool {
    let of = |thread: usize| run.iter().copied().filter(move |access| access.0 == thread);
    let orders = [of(0).chain(of(1)).collect::<Vec<_>>(), of(1).chain(of(0)).collect()];
    orders.iter().any(|order| outcome(order) == outcome(run))
}

/// The four cases of the figure: thread 0 accesses x, then y.
fn cases(own: [bool; 2], other: [bool; 2]) -> [[Access; 4]; 4] {
    let (a1, a2) = ((0, 0, own[0]), (0, 1, own[1]));
    let (a3, a4) = ((1, 0, other[0]), (1, 1, other[1]));
    [[a1, a3, a4, a2], [a1, a4, a3, a2], [a4, a1, a3, a2], [a3, a1, a4, a2]]
}

fn all() -> impl Iterator<Item = ([bool; 2], [bool; 2])> {
    (0..16u8).map(|bits| {
        let bit = |at: u8| bits >> at & 1 != 0;
        ([bit(0), bit(1)], [bit(2), bit(3)])
    })
}

#[test]
fn accesses_with_others_in_between_are_judged_as_all_orders_judge_them() {
    for (own, other) in all() {
        let [between, backwards, ..] = cases(own, other);
        assert_eq!(has_serial_order(&between), is_serializable(own, other), "{own:?} {other:?}");
        assert_eq!(has_serial_order(&backwards), is_serializable(own, other), "{own:?} {other:?}");
    }
}

/// What the figure says: the first three cases are one step if and only if the accesses to x or those to y are all
/// reads, and the fourth always is.
#[test]
fn the_table_of_the_paper_follows_from_the_definition() {
    let mut torn = 0;
    for (own, other) in all() {
        let pure_read = (0..2).any(|at| !own[at] && !other[at]);
        for (number, run) in cases(own, other).iter().enumerate() {
            let expected = number == 3 || pure_read;
            assert_eq!(has_serial_order(run), expected, "case {} of {own:?} {other:?}", number + 1);
            torn += usize::from(!expected);
        }
    }
    assert_eq!(torn, 3 * 9, "of 64");
}

/// Sections of (thread, accesses to variables 0 and 1 by number and whether they write); how many torn pairs.
fn found(run: &[(u16, &[(u64, bool)])]) -> usize {
    let (mut sets, mut pairs, mut sequence) = (LockSets::default(), Pairs::default(), 0);
    let locks = sets.with(0, 4096);
    for (section, (thread, accesses)) in run.iter().enumerate() {
        for (variable, write) in *accesses {
            sequence += 1;
            let site = u32::from(*thread) * 16 + *variable as u32 * 2 + u32::from(*write);
            let section = section as u32;
            let inside = Inside { thread: *thread, site, time: 0, sequence, locks, section };
            pairs.access(64 + variable * 8, *write, inside, (0, u64::from(site)));
        }
        pairs.ends(*thread, false, &sets);
    }
    pairs.torn().len()
}

#[test]
fn a_pair_is_torn_if_others_use_both_between_the_halves_of_a_change() {
    const W: bool = true;
    const R: bool = false;
    let (x, y, both): (&[_], &[_], &[_]) = (&[(0, W)], &[(1, W)], &[(0, R), (1, R)]);
    let torn: &[(u16, &[(u64, bool)])] = &[(0, x), (1, both), (0, y)];
    assert_eq!(found(&torn.repeat(3)), 1);
    assert_eq!(found(torn), 0, "once is no rule");
    let whole: &[(u16, &[(u64, bool)])] = &[(0, &[(0, W), (1, W)]), (1, both)];
    assert_eq!(found(&whole.repeat(3)), 0);
    let apart: &[(u16, &[(u64, bool)])] = &[(0, x), (0, y), (1, both)];
    assert_eq!(found(&apart.repeat(3)), 0, "nobody came in between");
    let alone: &[(u16, &[(u64, bool)])] = &[(0, x), (1, &[(0, R)]), (0, y), (1, &[(1, R)])];
    assert_eq!(found(&alone.repeat(3)), 0, "nobody uses both");
    let copied: &[(u16, &[(u64, bool)])] =
        &[(0, &[(0, R)]), (1, &[(0, W), (1, W)]), (0, &[(1, R)])];
    assert_eq!(found(&copied.repeat(3)), 1, "read in halves");
}
