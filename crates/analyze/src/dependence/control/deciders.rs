//! Which branches decide about which nodes, by post-dominators.

use super::Node;
use rustc_hash::FxHashSet;

/// The branches that decide about each node.
pub fn parents(nodes: &[Node]) -> Vec<Vec<u64>> {
    let after = post_dominators(nodes);
    let mut parents = vec![Vec::new(); nodes.len()];
    for (number, node) in (0u32..).zip(nodes) {
        if !node.decides() {
            continue;
        }
        for next in &node.next {
            let mut at = Some(*next);
            while let Some(current) = at.filter(|current| Some(*current) != after[number as usize])
            {
                let list: &mut Vec<u64> = &mut parents[current as usize];
                list.push(node.last);
                at = after[current as usize];
            }
        }
    }
    for list in &mut parents {
        list.sort_unstable();
        list.dedup();
    }
    parents
}

/// The immediate post-dominator of each node; none is the exit. A node from which no exit can be
/// reached is taken to have one: the first by address of each such part of the graph.
fn post_dominators(nodes: &[Node]) -> Vec<Option<u32>> {
    let count = nodes.len();
    let exit = count as u32;
    let mut before: Vec<Vec<u32>> = vec![Vec::new(); count + 1];
    for (number, node) in (0u32..).zip(nodes) {
        for next in &node.next {
            before[*next as usize].push(number);
        }
        if node.leaves {
            before[exit as usize].push(number);
        }
    }
    for lost in lost(nodes, &before) {
        before[exit as usize].push(lost);
    }
    let leaves: FxHashSet<u32> = before[exit as usize].iter().copied().collect();
    let order = reverse_order(&before, exit);
    let mut position = vec![usize::MAX; count + 1];
    for (index, node) in order.iter().enumerate() {
        position[*node as usize] = index;
    }
    let mut after: Vec<Option<u32>> = vec![None; count + 1];
    after[exit as usize] = Some(exit);
    let mut changed = true;
    while changed {
        changed = false;
        for number in order.iter().copied().skip(1) {
            let node = &nodes[number as usize];
            let ways = node.next.iter().copied().chain(leaves.contains(&number).then_some(exit));
            let known = ways.filter(|way| after[*way as usize].is_some());
            let meet = known.reduce(|left, right| common(&after, &position, left, right));
            if meet.is_some() && after[number as usize] != meet {
                after[number as usize] = meet;
                changed = true;
            }
        }
    }
    after.truncate(count);
    after.into_iter().map(|node| node.filter(|node| *node != exit)).collect()
}

/// The nearest node that comes after both.
fn common(after: &[Option<u32>], position: &[usize], mut left: u32, mut right: u32) -> u32 {
    while left != right {
        while position[left as usize] > position[right as usize] {
            left = after[left as usize].expect("processed before");
        }
        while position[right as usize] > position[left as usize] {
            right = after[right as usize].expect("processed before");
        }
    }
    left
}

/// Nodes that need an exit of their own so that every node can reach one.
fn lost(nodes: &[Node], before: &[Vec<u32>]) -> Vec<u32> {
    let mut reaches = vec![false; nodes.len()];
    let mark = |from: Vec<u32>, reaches: &mut Vec<bool>| {
        let mut open = from;
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut reaches[node as usize], true) {
                open.extend(&before[node as usize]);
            }
        }
    };
    mark(before[nodes.len()].clone(), &mut reaches);
    let mut added = Vec::new();
    for number in 0..nodes.len() as u32 {
        if !reaches[number as usize] {
            added.push(number);
            mark(vec![number], &mut reaches);
        }
    }
    added
}

/// Nodes that reach the exit, in reverse postorder of the reversed graph.
fn reverse_order(before: &[Vec<u32>], exit: u32) -> Vec<u32> {
    let mut seen = vec![false; before.len()];
    let mut order = Vec::with_capacity(before.len());
    let mut stack = vec![(exit, 0)];
    seen[exit as usize] = true;
    while let Some((node, at)) = stack.last_mut() {
        match before[*node as usize].get(*at) {
            Some(previous) => {
                *at += 1;
                if !std::mem::replace(&mut seen[*previous as usize], true) {
                    stack.push((*previous, 0));
                }
            }
            None => {
                order.push(*node);
                stack.pop();
            }
        }
    }
    order.reverse();
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Nodes numbered as given; those without successors leave, and those that lead to this number.
    const LEAVES: u32 = 9;

    fn graph(edges: &[&[u32]]) -> Vec<Node> {
        let node = |(number, next): (usize, &&[u32])| {
            let mut next = next.to_vec();
            next.sort_unstable();
            next.dedup();
            let leaves = next.is_empty() || next.contains(&LEAVES);
            next.retain(|next| *next != LEAVES);
            let at = number as u64;
            Node { start: at, last: at, next, leaves, linkage: false }
        };
        edges.iter().enumerate().map(node).collect()
    }

    /// By definition: `b` comes after `a` if no exit can be reached from `a` without `b`.
    fn comes_after(nodes: &[Node], a: u32, b: u32, extra: &[u32]) -> bool {
        let mut seen = vec![false; nodes.len()];
        let mut open = vec![a];
        while let Some(node) = open.pop() {
            if node == b || std::mem::replace(&mut seen[node as usize], true) {
                continue;
            }
            if nodes[node as usize].leaves || extra.contains(&node) {
                return false;
            }
            open.extend(&nodes[node as usize].next);
        }
        true
    }

    #[test]
    fn an_if_decides_about_its_branches_and_a_loop_about_its_body() {
        // 0: if → 1 or 2; both to 3; 3: loop → 4 → 3, or 5
        let nodes = graph(&[&[1, 2], &[3], &[3], &[4, 5], &[3], &[]]);
        let parents = parents(&nodes);
        assert_eq!(parents, [vec![], vec![0], vec![0], vec![3], vec![3], vec![]]);
    }

    #[test]
    fn a_jump_that_may_leave_decides_about_all_that_follows() {
        // 0: jump → 1 or out; 1 → 2
        let nodes = graph(&[&[1, LEAVES], &[2], &[]]);
        assert_eq!(parents(&nodes), [vec![], vec![0], vec![0]]);
        // The same through the linker's jump: it has no say.
        let mut nodes = nodes;
        nodes[0].linkage = true;
        assert_eq!(parents(&nodes), [vec![], vec![], vec![]]);
    }

    proptest! {
        #[test]
        fn dependences_are_those_of_the_definition(
            edges in prop::collection::vec(prop::collection::vec(0u32..10, 0..3), 9)
        ) {
            let edges: Vec<&[u32]> = edges.iter().map(Vec::as_slice).collect();
            let nodes = graph(&edges);
            let mut before = vec![Vec::new(); nodes.len() + 1];
            for (number, node) in (0u32..).zip(&nodes) {
                node.next.iter().for_each(|next| before[*next as usize].push(number));
                if node.leaves { before[nodes.len()].push(number); }
            }
            let extra = lost(&nodes, &before);
            let parents = parents(&nodes);
            for x in 0..nodes.len() as u32 {
                for (b, branch) in (0u32..).zip(&nodes) {
                    let depends = branch.decides()
                        && branch.next.iter().any(|s| comes_after(&nodes, *s, x, &extra))
                        && (x == b || !comes_after(&nodes, b, x, &extra));
                    prop_assert_eq!(parents[x as usize].contains(&branch.last), depends, "{} on {}", x, b);
                }
            }
        }
    }
}
