//! **Peers**: the functions whose writes are most like those of a violator.
//!
//! A rule counts all functions alike. Peers tell what is usual for functions of this very kind: where
//! those that write the same fields access the missing one too, it was forgotten; where they do
//! without, it was not meant to be there.

use crate::access::{Kind, Owner};
use crate::conformance::Context;
use crate::graph::{FunctionId, Graph, Variable};
use rustc_hash::FxHashSet;

/// Peers that are asked.
const MOST: usize = 5;

/// What one more peer without any likeness would count, half for and half against: it keeps peers
/// that are hardly alike from deciding much.
const DOUBT: f64 = 0.1;

/// How far the peers of a function say that it should access `missing`, from nearly 0 to nearly 1:
/// the share of the nearest ones that access it, weighted by how alike they are.
///
/// Peers are sought among the functions that access one of the variables `written`. Two functions
/// are as alike as the shares of fields that both write, of the structs involved; `missing` itself
/// is left out.
pub(crate) fn agreement(
    context: Context,
    function: FunctionId,
    missing: Variable,
    written: &[Variable],
) -> f64 {
    let Context { graph, occurrences, .. } = context;
    let kind = Kindred::new(graph, missing, written);
    let own = kind.writes(function);
    let candidates: FxHashSet<FunctionId> = written
        .iter()
        .flat_map(|it| occurrences.functions(*it))
        .filter(|other| *other != function)
        .collect();
    let mut peers: Vec<(f64, bool)> = candidates
        .into_iter()
        .map(|other| (likeness(&own, &kind.writes(other)), graph.accesses_directly(other, missing)))
        .collect();
    // Among peers that are equally alike, those without the variable come first: no benefit of doubt.
    peers.sort_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(&right.1)));
    peers.truncate(MOST);
    let all: f64 = peers.iter().map(|(likeness, _)| likeness).sum();
    let agree: f64 = peers.iter().filter(|(_, has_it)| *has_it).map(|(likeness, _)| likeness).sum();
    (agree + DOUBT / 2.0) / (all + DOUBT)
}

/// What counts when functions are compared.
struct Kindred<'a> {
    graph: &'a Graph,
    missing: Variable,
    owners: Vec<Owner>,
}

impl<'a> Kindred<'a> {
    fn new(graph: &'a Graph, missing: Variable, written: &[Variable]) -> Self {
        let owner = |variable: &Variable| graph.variables[variable.0 as usize].0;
        let mut owners = vec![owner(&missing)];
        for it in written.iter().map(owner) {
            if !owners.contains(&it) {
                owners.push(it);
            }
        }
        Self { graph, missing, owners }
    }

    /// The variables that count and that a function writes itself, ascending.
    fn writes(&self, function: FunctionId) -> Vec<Variable> {
        let set = self.graph.sets[function as usize].iter();
        let mut writes: Vec<_> = set
            .filter(|entry| entry.via == 0 && entry.kind.meets(Kind::WRITE))
            .map(|entry| entry.variable)
            .filter(|it| *it != self.missing)
            .filter(|it| self.owners.contains(&self.graph.variables[it.0 as usize].0))
            .collect();
        writes.dedup();
        writes
    }
}

/// The share that two ascending lists have in common.
fn likeness(left: &[Variable], right: &[Variable]) -> f64 {
    let common = left.iter().filter(|it| right.binary_search(it).is_ok()).count();
    let all = left.len() + right.len() - common;
    common as f64 / all.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn likeness_is_what_is_common_of_what_is_there() {
        let list = |items: &[u32]| items.iter().copied().map(Variable).collect::<Vec<_>>();
        let check = |left: &[u32], right: &[u32]| likeness(&list(left), &list(right));
        assert_eq!(check(&[1, 2, 3], &[1, 2, 3]), 1.0);
        assert_eq!(check(&[1, 2], &[2, 3, 4]), 0.25);
        assert_eq!(check(&[], &[]), 0.0);
    }
}
