//! Slices of what has been looked at: a search in the graph of definitions.

use super::{Limits, Reference};
use analyze::slice::{Follow, Kind};
use std::collections::{BTreeSet, HashMap};

impl Reference<'_> {
    /// The moments of the instructions that the value of memory at the end was made by.
    pub fn slice(&self, memory: &[(u64, u64)], follow: Follow, limits: &Limits) -> BTreeSet<u64> {
        // How far from the question the nearest execution is that wants a definition, or that an
        // execution decided about.
        let mut wanted: HashMap<usize, u32> = HashMap::new();
        let mut decided: HashMap<usize, u32> = HashMap::new();
        let want = |wanted: &mut HashMap<usize, u32>, what: usize, depth: u32| {
            let nearest = wanted.entry(what).or_insert(depth);
            *nearest = depth.min(*nearest);
        };
        for byte in memory.iter().flat_map(|(from, count)| *from..from + count) {
            if let Some(definition) = self.bytes.get(&byte).filter(|_| !self.is_pruned(byte)) {
                want(&mut wanted, *definition, 0);
            }
        }
        let follows = |(_, kind): &&(usize, Kind)| follow.follows(*kind);
        let mut inside = BTreeSet::new();
        for (by, execution) in self.executions.iter().enumerate().rev() {
            let own = &self.made_by[by];
            let users = own.iter().filter_map(|made| wanted.get(made)).chain(decided.get(&by));
            let Some(depth) = users.min().map(|nearest| nearest + 1) else { continue };
            if !self.takes_part(by, limits) {
                continue;
            }
            if execution.instruction {
                inside.insert(self.moments[by]);
            }
            if limits.depth.is_some_and(|most| depth >= most) {
                continue;
            }
            // The last first: a repeated move may read what it has written itself.
            for made in own.iter().rev() {
                if wanted.contains_key(made) {
                    for (used, _) in self.definitions[*made].from.iter().filter(follows) {
                        want(&mut wanted, *used, depth);
                    }
                }
            }
            if decided.contains_key(&by) {
                for (used, _) in execution.decision.iter().filter(follows) {
                    want(&mut wanted, *used, depth);
                }
            }
            if let Some(decider) = execution.decided_by.filter(|_| follow == Follow::Full) {
                want(&mut decided, decider, depth);
            }
        }
        inside
    }

    /// The moments of the instructions that made something from the seed, or went a way because
    /// of it.
    pub fn forward(&self, follow: Follow, limits: &Limits) -> BTreeSet<u64> {
        // By definition and by deciding execution: edges from the seed.
        let mut marked: HashMap<usize, u32> = self.sown.iter().map(|made| (*made, 0)).collect();
        let mut led: HashMap<usize, u32> = HashMap::new();
        let mut inside = BTreeSet::new();
        for (by, execution) in self.executions.iter().enumerate() {
            let decided = execution.decided_by.filter(|_| follow == Follow::Full);
            let decided = decided.and_then(|decider| led.get(&decider).copied());
            let nearest = |uses: &[(usize, Kind)], own: &HashMap<usize, u32>| {
                let followed = uses.iter().filter(|(_, kind)| follow.follows(*kind));
                followed.filter_map(|(used, _)| own.get(used).or(marked.get(used)).copied()).min()
            };
            let decision = nearest(&execution.decision, &HashMap::new());
            // The first first: a repeated move may read what it has written itself.
            let (mut own, mut seen): (Vec<(usize, Option<u32>)>, _) = (Vec::new(), HashMap::new());
            for made in &self.made_by[by] {
                let near = nearest(&self.definitions[*made].from, &seen);
                own.push((*made, near));
                seen.extend(near.map(|near| (*made, near)));
            }
            let reasons = own.iter().filter_map(|(_, nearest)| *nearest);
            let depth = reasons.chain(decided).chain(decision).min().map(|nearest| nearest + 1);
            let Some(depth) = depth.filter(|_| self.takes_part(by, limits)) else { continue };
            if execution.instruction {
                inside.insert(self.moments[by]);
            }
            if limits.depth.is_some_and(|most| depth >= most) {
                continue;
            }
            let carries = own.iter().filter(|(_, nearest)| nearest.is_some() || decided.is_some());
            marked.extend(carries.map(|(made, _)| (*made, depth)));
            if decided.is_some() || decision.is_some() {
                led.insert(by, depth);
            }
        }
        inside
    }

    fn takes_part(&self, by: usize, limits: &Limits) -> bool {
        let thread = self.executions[by].thread;
        (limits.threads.is_empty() || limits.threads.contains(&thread))
            && limits.within.as_ref().is_none_or(|within| within.contains(&self.moments[by]))
    }
}
