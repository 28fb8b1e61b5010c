//! What a step read and changed, in the program's own terms.

use super::stepper::{Stepper, own_frame, same_frame};
use crate::error::fault_or_input;
use base::Address;
use events::decode::Event;
use events::{Consumer, Decoder, Plan};
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use symbols::{Held, Level, Printing, Scene, Value};

/// Accesses of a step that are looked at.
const MOST_ACCESSES: usize = 64;
/// Places named of what was put in place before a step, and pieces that are looked at for that.
const MOST_NAMES: usize = 8;
const MOST_PIECES: usize = 64;

/// A variable that a step read or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shown {
    /// What the program calls it.
    pub name: String,
    /// Its value before.
    pub before: String,
    /// Its value after, if that is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// Reads and writes of memory: address, bytes, whether it wrote.
type Accesses = BTreeSet<(u64, u32, bool)>;

#[derive(Default)]
struct Collect {
    decoder: Decoder,
    accesses: Arc<Mutex<Accesses>>,
}

impl Consumer for Collect {
    fn records(&mut self, bytes: &[u8]) {
        let mut accesses = self.accesses.lock().unwrap_or_else(PoisonError::into_inner);
        // A stream that makes no sense shows nothing.
        let _ = self.decoder.events(bytes, |event| {
            if let Event::Access { address, size, write } = event {
                accesses.insert((address, size, write));
            }
        });
    }
}

/// The variables that a step read, and those that it changed.
pub fn of(stepper: &mut Stepper) -> anyhow::Result<(Vec<Shown>, Vec<Shown>)> {
    let (start, Some(end)) = (stepper.step().start, stepper.step().end) else {
        return Ok((Vec::new(), Vec::new()));
    };
    let collect = Collect::default();
    let accesses = collect.accesses.clone();
    let plan = Plan::everything();
    stepper
        .line
        .observe(Some(start), Some(end), plan, Box::new(collect))
        .map_err(fault_or_input)?;
    let accesses = accesses.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut read, mut changed) = (Vec::new(), Vec::new());
    for (address, _, write) in accesses.iter().take(MOST_ACCESSES) {
        let named = stepper.with_before(|scene| named(scene, Level::default(), *address));
        let Some((name, value)) = named else {
            changed.extend(new(stepper, *address).filter(|_| *write));
            continue;
        };
        let before = stepper.with_before(|scene| printed(scene, &value));
        let after = stepper.with_after(|scene| printed(scene, &value));
        let after = after.filter(|after| *after != before);
        let shown = Shown { name, before, after };
        add(if *write { &mut changed } else { &mut read }, shown);
    }
    for shown in in_registers(stepper) {
        add(&mut changed, shown);
    }
    read.retain(|shown: &Shown| !changed.iter().any(|other| other.name == shown.name));
    Ok((read, changed))
}

fn add(list: &mut Vec<Shown>, shown: Shown) {
    if !list.iter().any(|other| other.name == shown.name) {
        list.push(shown);
    }
}

/// Memory that only has a name after the step: the step made the pointer that leads there.
fn new(stepper: &Stepper, address: u64) -> Option<Shown> {
    let frame = stepper.with_before(own_frame);
    stepper.with_after(|scene| {
        let level = same_frame(scene, frame)?;
        let (name, value) = named(scene, level, address)?;
        Some(Shown { name, before: "?".into(), after: Some(printed(scene, &value)) })
    })?
}

/// Variables in registers that have another value after the step.
fn in_registers(stepper: &Stepper) -> Vec<Shown> {
    let locals = |scene: &Scene<'_>, level: Level| -> Vec<(String, String)> {
        let locals = scene.locals(level).into_iter().filter(|local| !local.hidden);
        let held = locals.filter_map(|local| {
            let value = scene.value_of(&local);
            let known = matches!(value.held, Held::Pieces(_)) && value.held.why_lost().is_none();
            known.then(|| (local.name, printed(scene, &value)))
        });
        held.collect()
    };
    let (frame, before) =
        stepper.with_before(|scene| (own_frame(scene), locals(scene, Level::default())));
    let after = stepper
        .with_after(|scene| same_frame(scene, frame).map(|level| locals(scene, level)))
        .flatten()
        .unwrap_or_default();
    let changed = after.into_iter().filter_map(|(name, after)| {
        let old = before.iter().find(|(other, _)| *other == name);
        let old = old.map_or_else(|| "?".to_owned(), |(_, value)| value.clone());
        (old != after).then_some(Shown { name, before: old, after: Some(after) })
    });
    changed.collect()
}

/// What the program calls an address, and the value there.
fn named(scene: &Scene<'_>, level: Level, address: u64) -> Option<(String, Value)> {
    let naming = scene.names_of(level, Address(address)).into_iter().next()?;
    let value = scene.evaluate(level, &naming.expression).ok()?;
    matches!(value.held, Held::Memory(_)).then_some((naming.expression, value))
}

fn printed(scene: &Scene<'_>, value: &Value) -> String {
    scene.print(value, &Printing::SHORT)
}

/// What the program calls the memory that was put in place before the step.
pub fn injected(stepper: &Stepper) -> Vec<Shown> {
    let mut names: Vec<Shown> = Vec::new();
    let pieces = stepper.step().injected.iter().take(MOST_PIECES);
    stepper.with_before(|scene| {
        for (address, _) in pieces {
            if names.len() < MOST_NAMES
                && let Some((name, value)) = named(scene, Level::default(), *address)
            {
                add(&mut names, Shown { name, before: printed(scene, &value), after: None });
            }
        }
    });
    names
}
