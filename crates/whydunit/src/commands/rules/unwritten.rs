//! Whether a recorded process depends on what nobody has written: it is replayed with other contents in
//! such memory (`events::Plan::scramble`). Whatever it does differently then is a suspicion.

use super::choose::Chosen;
use super::recorded::{heap_functions, mapped};
use super::watch::Watch;
use crate::commands::run::fault_or_input;
use analyze::rules::model::Rule;
use analyze::rules::needs::Needs;
use events::Plan;
use replay::{Session, Shown};

/// Whether a rule is about what was never written.
pub fn concerns(rule: &Rule) -> bool {
    Needs::of(rule).writes
}

/// Whether one process of a recording is suspicious.
pub fn is_used(session: &Session, process: u32, chosen: &Chosen) -> anyhow::Result<bool> {
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
    let replayed = session.replay_and_report(process, plan, Shown::Nothing, &mut make);
    let (replayed, _) = replayed.map_err(fault_or_input)?;
    Ok(replayed.divergence.is_some() || !watch.finish(&[]).suspicious.is_empty())
}
