//! Whether a recorded process depends on what nobody has written: it is replayed with other contents in
//! such memory (`events::plan::Poison`). Whatever it does differently then is a suspicion.

use super::choose::Chosen;
use super::modules::{is_c_library, is_go};
use super::recorded::{heap_functions, mapped, number_of_program};
use super::suspicion::SuspicionReport;
use super::watch::Watch;
use analyze::rules::model::Rule;
use analyze::rules::needs::Needs;
use analyze::rules::stream::Suspicion;
use events::Plan;
use events::plan::{HeapRole, Poison, Screen};
use events::suspicion::{self, Use};
use recording::ProcessStart;
use replay::{Session, Shown};

/// Whether a rule is about what was never written.
pub fn concerns(rule: &Rule) -> bool {
    Needs::of(rule).writes
}

/// What is suspicious in one process of a recording; nothing if what nobody wrote makes no difference.
pub fn suspicions(
    session: &Session,
    start: &ProcessStart,
    chosen: &Chosen,
) -> anyhow::Result<Vec<SuspicionReport>> {
    let process = start.process;
    let watch = Watch::new(&Chosen { rules: Vec::new(), ..chosen.clone() });
    let mut heap = heap_functions(&chosen.allocators);
    let names: Vec<String> = heap.iter().map(|function| function.name.clone()).collect();
    let maps = mapped(session, process)?;
    if maps.iter().any(|map| is_go(&map.path)) {
        return Ok(Vec::new());
    }
    let (found, consumer) = watch.located(process as i32, &maps, &names);
    let in_library = |address: u64| {
        let map = maps.iter().find(|map| (map.start..map.end).contains(&address));
        map.is_some_and(|map| is_c_library(&map.path))
    };
    for function in &mut heap {
        // What the C library does to blocks that it is given back is known by where its code is.
        let frees = matches!(function.role, HeapRole::Free | HeapRole::Measure | HeapRole::Tend);
        let own = found
            .iter()
            .filter(|(address, name)| *name == function.name && !(frees && in_library(*address)));
        function.at = Some(own.map(|(address, _)| *address).collect());
    }
    let plan = Plan::screening(Screen::Poison(Poison { functions: heap }));
    let mut consumer = Some(consumer);
    let mut make = |_| consumer.take().unwrap_or_else(|| Box::new(events::Discard::default()));
    // A guest that goes astray can take the engine with it.
    let replayed = session.replay(process, plan, Shown::Nothing, &mut make);
    let difference = match replayed {
        Ok(replayed) => replayed.divergence.map(|there| (there.what, there.pc, there.time)),
        Err(error) => Some((error.to_string(), 0, u64::MAX)),
    };
    let mut suspicions = watch.finish(&[]).suspicions;
    if let Some((what, pc, time)) = difference.filter(|_| suspicions.is_empty()) {
        let words = format!("with other contents in memory that nobody wrote it {what}");
        let met = suspicion::Suspicion::Unwritten(Use::Decisive);
        let suspicion = Suspicion { pc, met, time };
        suspicions.push(SuspicionReport { process: 0, program: 0, suspicion, words });
    }
    let program = number_of_program(session.recording(), start);
    Ok(suspicions.into_iter().map(|report| report.of(start.pid, program)).collect())
}
