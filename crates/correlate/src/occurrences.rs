//! Which functions access each variable, and where in their access sets: the index that rules are
//! counted over. Copies of functions are left out of it.

use crate::access::Kind;
use crate::graph::{Entry, FunctionId, Graph, Variable};
use crate::rules::Options;
use std::ops::RangeInclusive;

/// One function that accesses a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// The function.
    pub function: FunctionId,
    /// Where the entries of the variable start in its access set.
    start: u32,
    /// How many there are.
    length: u32,
    /// All the ways in which it is accessed.
    pub kinds: Kind,
}

impl Occurrence {
    /// The entries of the variable in the access set of the function.
    pub fn entries<'g>(&self, graph: &'g Graph) -> &'g [Entry] {
        let start = self.start as usize;
        &graph.sets[self.function as usize][start..start + self.length as usize]
    }
}

/// The index.
pub struct Occurrences {
    lists: Vec<Vec<Occurrence>>,
    /// How many functions a variable must and may occur in to be mined.
    usable: RangeInclusive<usize>,
}

impl Occurrences {
    /// Indexes the access sets.
    pub fn new(graph: &Graph, options: &Options) -> Self {
        let mut lists = vec![Vec::new(); graph.variables.len()];
        for (id, set) in graph.sets.iter().enumerate().filter(|(id, _)| !graph.is_copy[*id]) {
            let mut start = 0;
            for entries in set.chunk_by(|left, right| left.variable == right.variable) {
                let kinds = entries.iter().fold(Kind::NONE, |kinds, entry| kinds | entry.kind);
                let length = entries.len() as u32;
                let found = Occurrence { function: id as FunctionId, start, length, kinds };
                lists[entries[0].variable.0 as usize].push(found);
                start += length;
            }
        }
        let usable = options.min_support as usize..=options.max_popularity as usize;
        Self { lists, usable }
    }

    /// The functions that access a variable, ascending, however many there are.
    pub fn all(&self, variable: Variable) -> &[Occurrence] {
        &self.lists[variable.0 as usize]
    }

    /// The functions that access a variable, ascending; none if it is too rare or too popular.
    pub fn of(&self, variable: Variable) -> &[Occurrence] {
        let all = self.all(variable);
        if self.usable.contains(&all.len()) { all } else { &[] }
    }

    /// All functions that access a variable, as plain numbers.
    pub fn functions(&self, variable: Variable) -> impl Iterator<Item = FunctionId> {
        self.all(variable).iter().map(|it| it.function)
    }
}
