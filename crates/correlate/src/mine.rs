//! Closed frequent itemsets, by their minimal generators.
//!
//! A set of items is *closed* if no further item occurs in all its transactions. Every frequent set
//! has the support of the smallest closed set around it, so the closed ones say all there is to say.
//! A *generator* is a set that loses support with every item taken away: the smallest name of its
//! closed set. Mining generators depth first, each in the transactions of the one before it, visits
//! every closed set without ever comparing two items that do not occur together.
//!
//! Rules here relate at most three variables, so generators longer than the left side of a rule are
//! never needed. That bound is what keeps the number of sets in hand: functions of a few hundred
//! fields that exist in a dozen variants can have exponentially many closed sets.

use rustc_hash::FxHashMap;

/// An item: the caller's number for a variable.
pub type Item = u32;

/// A closed set and what is known of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClosedSet {
    /// Smallest sets that name it, in the order found; the first is the least.
    pub generator: Vec<Item>,
    /// Items, ascending.
    pub items: Vec<Item>,
    /// Transactions that hold all of them.
    pub support: u32,
}

/// Transactions of items, and where each item occurs.
pub struct Transactions<'a> {
    rows: &'a [Vec<Item>],
    occurrences: Vec<Vec<u32>>,
}

impl<'a> Transactions<'a> {
    /// Indexes rows of ascending items below `items`.
    pub fn new(rows: &'a [Vec<Item>], items: usize) -> Self {
        let mut occurrences = vec![Vec::new(); items];
        for (row, list) in rows.iter().enumerate() {
            for item in list {
                occurrences[*item as usize].push(row as u32);
            }
        }
        Self { rows, occurrences }
    }

    /// Transactions that hold an item.
    pub fn of(&self, item: Item) -> &[u32] {
        &self.occurrences[item as usize]
    }

    /// How often each item occurs in the given transactions.
    fn counts(&self, rows: &[u32], counts: &mut FxHashMap<Item, u32>) {
        counts.clear();
        for row in rows {
            for item in &self.rows[*row as usize] {
                *counts.entry(*item).or_insert(0) += 1;
            }
        }
    }

    fn with(&self, rows: &[u32], item: Item) -> Vec<u32> {
        let has = |row: &&u32| self.rows[**row as usize].binary_search(&item).is_ok();
        rows.iter().filter(has).copied().collect()
    }
}

/// Calls `visit` for every closed set of at least `support` transactions that contains `first` and
/// has a generator of at most `longest` items that starts with `first`. Sets found again under
/// another generator are visited again, with that generator.
pub fn closed_from(
    transactions: &Transactions,
    first: Item,
    support: u32,
    longest: usize,
    visit: &mut dyn FnMut(&ClosedSet, &[u32]),
) {
    let rows = transactions.of(first);
    if rows.len() < support as usize || longest == 0 {
        return;
    }
    extend(transactions, &[first], rows, support, longest, visit);
}

fn extend(
    transactions: &Transactions,
    generator: &[Item],
    rows: &[u32],
    support: u32,
    longest: usize,
    visit: &mut dyn FnMut(&ClosedSet, &[u32]),
) {
    let mut counts = FxHashMap::default();
    transactions.counts(rows, &mut counts);
    let full = rows.len() as u32;
    let mut items: Vec<Item> =
        counts.iter().filter(|(_, count)| **count == full).map(|(item, _)| *item).collect();
    items.sort_unstable();
    visit(&ClosedSet { generator: generator.to_vec(), items, support: full }, rows);
    if generator.len() == longest {
        return;
    }
    let last = generator[generator.len() - 1];
    let mut next: Vec<Item> = counts
        .iter()
        // An item in every row adds nothing: the longer set would not be a generator.
        .filter(|(item, count)| **item > last && **count >= support && **count < full)
        .map(|(item, _)| *item)
        .collect();
    next.sort_unstable();
    for item in next {
        let narrower = transactions.with(rows, item);
        // Nor would it be if the new item makes an old one redundant.
        let mut longer = generator.to_vec();
        longer.push(item);
        if is_generator(transactions, &longer, narrower.len()) {
            extend(transactions, &longer, &narrower, support, longest, visit);
        }
    }
}

/// Whether taking any item away gains transactions. The last one was checked by its count.
fn is_generator(transactions: &Transactions, set: &[Item], support: usize) -> bool {
    (0..set.len() - 1).all(|left_out| {
        let mut others = set.iter().enumerate().filter(|(index, _)| *index != left_out);
        let Some((_, first)) = others.next() else { return true };
        let rows = transactions.of(*first);
        match others.next() {
            None => rows.len() > support,
            Some((_, second)) => {
                let narrower = transactions.with(rows, *second);
                others.fold(narrower, |rows, (_, it)| transactions.with(&rows, *it)).len() > support
            }
        }
    })
}

/// All closed sets of at least `support` transactions, each once, of generators up to `longest`.
pub fn closed(rows: &[Vec<Item>], items: usize, support: u32, longest: usize) -> Vec<ClosedSet> {
    let transactions = Transactions::new(rows, items);
    let mut found: FxHashMap<Vec<Item>, ClosedSet> = FxHashMap::default();
    for first in 0..items as Item {
        closed_from(&transactions, first, support, longest, &mut |set, _| {
            found.entry(set.items.clone()).or_insert_with(|| set.clone());
        });
    }
    let mut sets: Vec<_> = found.into_values().collect();
    sets.sort_by(|left, right| left.items.cmp(&right.items));
    sets
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    /// The obvious way: intersect every set of rows.
    fn closed_by_definition(rows: &[Vec<Item>], support: u32) -> BTreeMap<Vec<Item>, u32> {
        let mut found = BTreeMap::new();
        for chosen in 1u32..1 << rows.len() {
            let picked: Vec<_> = (0..rows.len()).filter(|row| chosen >> row & 1 == 1).collect();
            let mut common: BTreeSet<Item> = rows[picked[0]].iter().copied().collect();
            for row in &picked {
                common.retain(|item| rows[*row].contains(item));
            }
            let count = rows.iter().filter(|row| common.iter().all(|it| row.contains(it))).count();
            if !common.is_empty() && count as u32 >= support {
                found.insert(common.into_iter().collect(), count as u32);
            }
        }
        found
    }

    fn rows() -> impl Strategy<Value = Vec<Vec<Item>>> {
        let row = proptest::collection::btree_set(0u32..8, 0..7);
        proptest::collection::vec(row.prop_map(|set| set.into_iter().collect()), 1..9)
    }

    proptest! {
        #[test]
        fn unbounded_mining_finds_exactly_the_closed_sets(rows in rows(), support in 1u32..4) {
            let found: BTreeMap<_, _> =
                closed(&rows, 8, support, 8).into_iter().map(|it| (it.items, it.support)).collect();
            prop_assert_eq!(found, closed_by_definition(&rows, support));
        }

        #[test]
        fn two_items_are_enough_for_every_frequent_pair(rows in rows(), support in 1u32..4) {
            let sets = closed(&rows, 8, support, 2);
            for (left, right) in (0..8).flat_map(|left| (left + 1..8).map(move |it| (left, it))) {
                let both = |row: &&Vec<Item>| row.contains(&left) && row.contains(&right);
                let count = rows.iter().filter(both).count() as u32;
                let holds =
                    |it: &&ClosedSet| it.items.contains(&left) && it.items.contains(&right);
                let known = sets.iter().filter(holds).map(|it| it.support).max();
                prop_assert_eq!(known, (count >= support).then_some(count));
            }
        }
    }

    #[test]
    fn the_example_of_the_literature() {
        // w=0 v=1 x=2 y=3 z=4
        let rows = [vec![0, 3, 4], vec![0, 1, 3, 4], vec![0, 2, 3]];
        let sets = closed(&rows, 5, 2, 5);
        let shown: Vec<_> = sets.iter().map(|it| (it.items.clone(), it.support)).collect();
        assert_eq!(shown, [(vec![0, 3], 3), (vec![0, 3, 4], 2)]);
    }
}
