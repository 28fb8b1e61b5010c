//! Rules over a recording.

use super::beginning;
use super::choose::Chosen;
use super::findings::RuleFindings;
use super::leaks;
use super::watch::Watch;
use crate::error::fault_or_input;
use crate::notices::Notices;
use analyze::rules::model::Rule;
use anyhow::Context;
use base::allocator::Allocators;
use base::{ModuleMap, Tick};
use events::plan::HeapFunction;
use recording::log::{self, Entry};
use recording::{Origin, ProcessStart, Recording};
use replay::{Session, Shown};

/// Checks one process of a recording.
pub fn check(
    session: &Session,
    process: u32,
    chosen: &Chosen,
    notices: &Notices,
) -> anyhow::Result<RuleFindings> {
    let (others, listed) = leaks::split(chosen);
    let others = Chosen {
        rules: others.rules.into_iter().filter(|rule| is_chosen(rule, chosen)).collect(),
        ..others
    };
    let mut found = match listed {
        true => lost(session, process, chosen, notices)?,
        false => RuleFindings::default(),
    };
    if others.rules.is_empty() {
        return Ok(found);
    }
    let watch = Watch::of_recording(&others, session.recording(), process);
    let maps = mapped(session, process)?;
    let (plan, consumer) = watch.replayed(process as i32, &maps, begin(session, process)?);
    let mut consumer = Some(consumer);
    let mut make = |_| consumer.take().unwrap_or_else(|| Box::new(events::Discard::default()));
    let (replayed, mut crashes) = session
        .replay_and_report(process, plan, Shown::Nothing, &mut make)
        .map_err(fault_or_input)?;
    // The runner that replays has another number.
    crashes.iter_mut().for_each(|crash| crash.process = process as i32);
    found.extend(watch.finish(&crashes));
    if let Some(divergence) = &replayed.divergence {
        notices.tell(&format!(
            "the replay diverged from the recording, and what came after is not checked: {}",
            divergence.what
        ));
        found.unfollowed = true;
    }
    Ok(found)
}

fn is_chosen(rule: &Rule, chosen: &Chosen) -> bool {
    chosen.rules.iter().any(|known| known.name == rule.name)
}

/// What a process has lost of its heap.
fn lost(
    session: &Session,
    process: u32,
    chosen: &Chosen,
    notices: &Notices,
) -> anyhow::Result<RuleFindings> {
    let known = session.recording().processes().iter().find(|start| start.process == process);
    let start = known.context("there is no such process")?;
    // Numbers of the recording stand for processes here.
    let start = ProcessStart { pid: process as i32, ..start.clone() };
    let rules = chosen.rules.iter().filter(|rule| leaks::is_leak(rule)).cloned().collect();
    let leaks = Chosen { rules, ..chosen.clone() };
    Ok(beginning::follow(session, &start, None, (&leaks, u64::MAX), notices)?.found)
}

/// The tick at which the replay of a process begins, which leads through those that it was forked from.
pub fn begin(session: &Session, process: u32) -> anyhow::Result<Tick> {
    let first = session.path_to(process).first().copied().unwrap_or(process);
    let mut log = log::entries(session.recording().log(first)?);
    Ok(log
        .find_map(|(entry, _)| match entry {
            Entry::Image(image) => Some(Tick(image.time)),
            _ => None,
        })
        .unwrap_or_default())
}

/// Which of the programs that its process executed one after the other, from 0.
pub fn number_of_program(recording: &Recording, start: &ProcessStart) -> usize {
    let before = recording.processes().iter().take_while(|other| other.process != start.process);
    before.filter(|other| other.pid == start.pid).count()
}

/// The functions of allocators as a plan has them.
pub fn heap_functions(allocators: &Allocators) -> Vec<HeapFunction> {
    allocators.iter().map(|(name, allocator)| HeapFunction::new(name, allocator)).collect()
}

/// Every piece of a file that the process has mapped, or was forked with. How long one is, its log
/// does not say.
pub fn mapped(session: &Session, process: u32) -> anyhow::Result<Vec<ModuleMap>> {
    let known = session.recording().processes();
    let start = known.iter().find(|start| start.process == process);
    let forked = start.filter(|start| start.origin != Origin::Exec);
    // A parent is always older, so this has an end.
    let parent = forked.and_then(|start| start.parent).filter(|parent| *parent < process);
    let mut maps = parent.map_or(Ok(Vec::new()), |parent| mapped(session, parent))?;
    let mut answer = 0;
    for (entry, _) in log::entries(session.recording().log(process)?) {
        match entry {
            Entry::Image(image) => {
                for mapping in image.mappings {
                    let Some(path) = mapping.path else { continue };
                    let (start, end, offset) = (mapping.start, mapping.end, mapping.offset);
                    maps.push(ModuleMap { start, end, offset, path });
                }
            }
            Entry::Call(call) => answer = call.answer,
            Entry::Mapped { path, view } => {
                let (start, offset) = (answer as u64, view.offset);
                let end = start.saturating_add(view.size.saturating_sub(offset));
                maps.push(ModuleMap { start, end, offset, path });
            }
            _ => {}
        }
    }
    Ok(maps)
}
