//! Whether a recorded process depends on what nobody has written: it is replayed with other contents in
//! such memory (`events::Plan::scramble`). Whatever it does differently then is a suspicion.

use super::choose::Chosen;
use super::recorded::{heap_functions, mapped};
use super::watch::Watch;
use analyze::rules::model::Rule;
use analyze::rules::needs::Needs;
use events::Plan;
use replay::{Session, Shown};

/// Whether a rule is about what was never written.
pub fn concerns(rule: &Rule) -> bool {
    Needs::of(rule).writes
}

/// What is suspicious in one process of a recording; nothing if what nobody wrote makes no difference.
pub fn doubts(session: &Session, process: u32, chosen: &Chosen) -> anyhow::Result<Vec<String>> {
    let watch = Watch::new(&Chosen { rules: Vec::new(), ..chosen.clone() });
    let mut heap = heap_functions(&chosen.allocators);
    let names: Vec<String> = heap.iter().map(|function| function.name.clone()).collect();
    let (found, consumer) = watch.located(process as i32, &mapped(session, process)?, &names);
    for function in &mut heap {
        let own = found.iter().filter(|(_, name)| *name == function.name);
        function.at = own.map(|(address, _)| *address).collect();
    }
    let functions = heap.iter().flat_map(|function| function.at.clone()).collect();
    let plan = Plan { functions, heap, quiet: true, scramble: true, ..Plan::default() };
    let mut consumer = Some(consumer);
    let mut make = |_| consumer.take().unwrap_or_else(|| Box::new(events::Discard::default()));
    // A guest that goes astray can take the engine with it.
    let replayed = session.replay(process, plan, Shown::Nothing, &mut make);
    let same = replayed.is_ok_and(|replayed| replayed.divergence.is_none());
    let mut doubts = watch.finish(&[]).doubts;
    if !same && doubts.is_empty() {
        doubts.push("what nobody wrote makes a difference".to_owned());
    }
    Ok(doubts)
}
