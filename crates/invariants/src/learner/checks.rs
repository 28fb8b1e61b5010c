//! What a run violates: definitions and uses as they happen, new code and lost definitions when it is over.

use super::{Actor, Learner, Mode};
use crate::anomaly::{Anomaly, Flow, Occurrence, What};
use crate::model::{LineKey, SiteId};
use crate::uses::{Origin, UseInRun, dset_confidence, read_confidence};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// When each violation happened first.
#[derive(Default)]
pub struct Firsts {
    lines: Vec<(LineKey, SiteId, Occurrence)>,
    lost: FxHashMap<SiteId, (Actor, u64)>,
    flows: BTreeMap<(SiteId, SiteId, u8), Violated>,
}

/// A use that violates an invariant.
struct Violated {
    flow: Flow,
    first: Occurrence,
    address: u64,
    local: bool,
    count: u64,
}

impl Firsts {
    /// A line is executed that never was.
    pub fn line(&mut self, line: LineKey, site: SiteId, now: Occurrence) {
        self.lines.push((line, site, now));
    }

    /// A definition is overwritten that nobody has used.
    pub fn lost(&mut self, definition: SiteId, by: Actor, address: u64) {
        self.lost.entry(definition).or_insert((by, address));
    }
}

impl Learner {
    /// A read uses what these sites have written in these threads.
    pub(super) fn used(
        &mut self,
        who: Actor,
        used: &[(SiteId, u32)],
        followed: bool,
        address: u64,
    ) {
        let foreign =
            |(site, thread): &&(SiteId, u32)| *site != SiteId::EXTERNAL && *thread != who.thread;
        let remote = used.iter().find(foreign);
        let known = used.iter().any(|(site, _)| *site != SiteId::EXTERNAL);
        let at = who.site.0 as usize;
        if at >= self.uses.len() {
            self.uses.resize_with(self.model.points.len(), UseInRun::default);
        }
        let in_run = &mut self.uses[at];
        in_run.count += 1;
        for (site, _) in used {
            in_run.uses(*site);
        }
        if remote.is_some() {
            in_run.remote += 1;
        } else if known {
            in_run.local += 1;
        }
        if followed {
            in_run.followed += 1;
        } else {
            in_run.unfollowed += 1;
        }
        if self.mode == Mode::Training {
            return;
        }
        let Some(reads) = &self.model.point(who.site).reads else { return };
        if reads.is_barely_exercised() {
            return;
        }
        let mut violated: Vec<(Flow, SiteId, bool)> = Vec::new();
        for (site, thread) in used {
            if !reads.has(*site) && !reads.is_popular() {
                violated.push((Flow::Definition, *site, *thread == who.thread));
            }
        }
        let some = remote.or(used.first());
        if let (Some((origin, _)), Some((site, thread)), true) = (reads.origin(), some, known) {
            let now = if remote.is_some() { Origin::Remote } else { Origin::Local };
            if now != origin {
                violated.push((Flow::Origin(now), *site, *thread == who.thread));
            }
        }
        // What the thread itself has written in between is its own doing.
        if let (false, Some(_), Some((site, _))) = (followed, reads.follower(), remote) {
            violated.push((Flow::Follower, *site, false));
        }
        for (flow, definition, local) in violated {
            self.violated(who, flow, (definition, local), address);
        }
    }

    fn violated(
        &mut self,
        who: Actor,
        flow: Flow,
        (definition, local): (SiteId, bool),
        address: u64,
    ) {
        let sort = match flow {
            Flow::Definition => 0,
            Flow::Origin(_) => 1,
            Flow::Follower => 2,
        };
        let fresh = || Violated { flow, first: who.now, address, local, count: 0 };
        let key = (who.site, definition, sort);
        self.firsts.flows.entry(key).or_insert_with(fresh).count += 1;
    }

    /// What the run has violated, beyond values.
    pub(super) fn check(&mut self, new_code: f64) {
        self.check_flows();
        self.check_lost();
        self.check_lines(new_code);
    }

    fn check_flows(&mut self) {
        for ((site, definition, _), violated) in std::mem::take(&mut self.firsts.flows) {
            let Some(reads) = &self.model.point(site).reads else { continue };
            let writes = self.model.point(definition).writes.unwrap_or_default();
            let uses = reads.count;
            let confidence = match violated.flow {
                Flow::Definition => {
                    // Definitions that training never met say nothing, but what nobody wrote is known.
                    let external = definition == SiteId::EXTERNAL;
                    if writes.is_barely_exercised() && !external {
                        continue;
                    }
                    let count = if external { uses } else { writes.count };
                    dset_confidence(count, uses, reads.definitions.len(), violated.count)
                }
                Flow::Origin(_) => {
                    let support = reads.origin().map_or(0.0, |(_, share)| share);
                    support * read_confidence(uses, violated.count)
                }
                Flow::Follower => {
                    reads.follower().unwrap_or(0.0) * read_confidence(uses, violated.count)
                }
            };
            let flows = vec![(violated.flow, confidence)];
            let (first, local, count) = (violated.first, violated.local, violated.count);
            let what = What::Flow { flows, definition, local, uses };
            let memory = Some(self.accessed(violated.address));
            self.anomalies.push(Anomaly { what, site, confidence, first, count, memory });
        }
    }

    fn check_lost(&mut self) {
        for (definition, (by, address)) in std::mem::take(&mut self.firsts.lost) {
            let Some(writes) = self.model.point(definition).writes else { continue };
            let lost = self.written.get(definition.0 as usize).map_or(0, |run| run.lost);
            if !writes.is_always_used() {
                continue;
            }
            let confidence = read_confidence(writes.used, lost);
            let what = What::Lost { by: by.site, used: writes.used };
            let (site, first, memory) = (definition, by.now, Some(self.accessed(address)));
            self.anomalies.push(Anomaly { what, site, confidence, first, count: lost, memory });
        }
    }

    fn check_lines(&mut self, new_code: f64) {
        let known: BTreeSet<(&str, &str)> = self
            .model
            .executed
            .keys()
            .map(|line| (line.module.as_str(), line.function.as_str()))
            .collect();
        let mut functions: BTreeMap<(String, String), Vec<(SiteId, Occurrence)>> = BTreeMap::new();
        for (line, site, first) in std::mem::take(&mut self.firsts.lines) {
            functions.entry((line.module, line.function)).or_default().push((site, first));
        }
        let mut found = Vec::new();
        for ((module, function), mut lines) in functions {
            lines.sort_by_key(|(_, first)| first.step);
            let number = |site: SiteId| self.model.point(site).site.line;
            let mut others: Vec<u32> =
                lines[1..].iter().filter_map(|(site, _)| number(*site)).collect();
            others.sort_unstable();
            others.dedup();
            let is_new = !known.contains(&(module.as_str(), function.as_str()));
            let what = What::NewCode { function: is_new, lines: others };
            let (site, first) = lines[0];
            let (confidence, count) = (new_code, lines.len() as u64);
            found.push(Anomaly { what, site, confidence, first, count, memory: None });
        }
        self.anomalies.extend(found);
    }
}
