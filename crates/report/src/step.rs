//! Steps as text, and as data.

use super::style::Style;
use super::{scene, source};
use base::{Address, Place, ThreadNumber, Tick};
use investigate::stepping::Stepper;
use investigate::stepping::values::{self, Shown};
use replay::slices::KeptStretch;
use serde::Serialize;
use symbols::{Level, Printing};

/// What one is looking at.
pub fn opening(stepper: &Stepper) -> String {
    let (about, steps) = (&stepper.about, stepper.steps.len());
    format!("Slice of {about}: {steps} steps; the last one is what was asked about.\n")
}

fn place_of(stepper: &Stepper, step: &KeptStretch) -> Place {
    let pc = Address(step.start.pc.unwrap_or_default());
    stepper.program().symbolise(pc).place()
}

/// File and line, or whatever is known.
fn short(place: &Place) -> String {
    match (&place.file, place.line) {
        (Some(file), Some(line)) => format!("{}:{line}", source::shortened(file)),
        _ => place.to_string(),
    }
}

fn line_of(place: &Place) -> Option<String> {
    let (file, line) = (place.file.as_deref()?, place.line?);
    let lines = source::excerpt(file, line);
    let found = lines.into_iter().find(|(number, _)| *number == line);
    found.map(|(_, text)| text.trim().to_owned())
}

/// The step: where it is, what was left out before it, what it read and changed.
pub fn step(stepper: &mut Stepper, style: Style) -> anyhow::Result<String> {
    let number = stepper.at() + 1;
    let place = place_of(stepper, stepper.step());
    let function = place.function.clone().unwrap_or_default();
    let mut text = format!(
        "{number}/{} {} {function}, thread {}\n",
        stepper.steps.len(),
        style.strong(&short(&place)),
        stepper.thread(stepper.step())
    );
    if let Some(line) = line_of(&place) {
        text += &format!("    {line}\n");
    }
    let left_out = left_out(stepper);
    if !left_out.is_empty() {
        text += &format!("  {}\n", style.faint(&left_out));
    }
    let (read, changed) = values::of(stepper)?;
    if !read.is_empty() {
        let read: Vec<String> =
            read.iter().map(|shown| format!("{} = {}", shown.name, shown.before)).collect();
        text += &format!("  reads    {}\n", read.join(", "));
    }
    for shown in &changed {
        text += &format!("  changes  {}\n", change(shown));
    }
    if stepper.step().end.is_none() {
        text += &format!("  here {} was asked about\n", stepper.about);
    }
    Ok(text)
}

fn change(shown: &Shown) -> String {
    match &shown.after {
        Some(after) => format!("{}: {} -> {after}", shown.name, shown.before),
        None => format!("{}: stays {}", shown.name, shown.before),
    }
}

fn left_out(stepper: &Stepper) -> String {
    let step = stepper.step();
    if step.skipped == 0 {
        return String::new();
    }
    let bytes: u64 = step.injected.iter().map(|(_, bytes)| bytes).sum();
    let names: Vec<String> =
        values::injected(stepper).into_iter().map(|shown| shown.name).collect();
    let plural = if step.skipped == 1 { "" } else { "s" };
    let mut text = format!("{} instruction{plural} left out before it", step.skipped);
    if bytes > 0 {
        let plural = if bytes == 1 { "" } else { "s" };
        text += &format!(", which changed {bytes} byte{plural}");
    }
    if !names.is_empty() {
        text += &format!(": {}", names.join(", "));
    }
    text
}

/// What was left out before the step, and what it changed.
pub fn injected(stepper: &Stepper) -> anyhow::Result<String> {
    let step = stepper.step();
    let mut text = format!("{} instructions left out\n", step.skipped);
    for shown in values::injected(stepper) {
        text += &format!("  {} = {}\n", shown.name, shown.before);
    }
    const MOST: usize = 20;
    for (address, bytes) in step.injected.iter().take(MOST) {
        text += &format!("  [{}, {bytes}]\n", Address(*address));
    }
    if let Some(more) = step.injected.len().checked_sub(MOST + 1) {
        text += &format!("  and {} more\n", more + 1);
    }
    Ok(text)
}

/// The source around the step.
pub fn source(stepper: &Stepper) -> String {
    let place = place_of(stepper, stepper.step());
    let (Some(file), Some(line)) = (&place.file, place.line) else {
        return format!("{place} has no source\n");
    };
    let lines = source::excerpt(file, line);
    if lines.is_empty() {
        return format!("{} is not at hand\n", source::shortened(file));
    }
    let mark = |number: u32| if number == line { '>' } else { ' ' };
    let lines = lines.into_iter();
    lines.map(|(number, text)| format!("{} {number:>5} {text}\n", mark(number))).collect()
}

/// The active calls.
pub fn stack(stepper: &Stepper) -> anyhow::Result<String> {
    Ok(scene::text(&stepper.seen()))
}

/// The variables of the function.
pub fn locals(stepper: &Stepper) -> anyhow::Result<String> {
    let text = stepper.with_before(|scene| {
        let locals = scene.locals(Level::default()).into_iter().filter(|local| !local.hidden);
        let lines = locals.map(|local| {
            let value = scene.value_of(&local);
            format!("  {} = {}\n", local.name, scene.print(&value, &Printing::SHORT))
        });
        lines.collect::<String>()
    });
    Ok(if text.is_empty() { "no variables are known here\n".into() } else { text })
}

/// All steps, one a line.
pub fn steps(stepper: &Stepper) -> String {
    let mut text = String::new();
    for (number, step) in stepper.steps.iter().enumerate() {
        let place = place_of(stepper, step);
        let mark = if number == stepper.at() { '>' } else { ' ' };
        let line = line_of(&place).unwrap_or_default();
        text += &format!(
            "{mark}{:>5} /{} {}  {line}\n",
            number + 1,
            stepper.thread(step),
            short(&place)
        );
    }
    text
}

/// Who executed how many steps, and where each was last.
pub fn threads(stepper: &Stepper) -> String {
    let mut threads: Vec<(ThreadNumber, usize, Option<usize>)> = Vec::new();
    for (number, step) in stepper.steps.iter().enumerate() {
        let own = stepper.thread(step);
        let known = threads.iter().position(|(thread, ..)| *thread == own);
        let at = known.unwrap_or_else(|| {
            threads.push((own, 0, None));
            threads.len() - 1
        });
        threads[at].1 += 1;
        if number <= stepper.at() {
            threads[at].2 = Some(number);
        }
    }
    let mut text = String::new();
    for (thread, count, last) in threads {
        let last = last.map_or_else(
            || "not yet".into(),
            |last| {
                format!("last {}/ at {}", last + 1, short(&place_of(stepper, &stepper.steps[last])))
            },
        );
        let mark = if thread == stepper.thread(stepper.step()) { '>' } else { ' ' };
        text += &format!("{mark} thread {thread}: {count} steps, {last}\n");
    }
    text
}

/// A step as data.
#[derive(Serialize)]
pub struct StepData {
    step: usize,
    thread: ThreadNumber,
    tick: Tick,
    #[serde(skip_serializing_if = "Option::is_none")]
    pc: Option<Address>,
    place: Place,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    skipped: u64,
    injected_bytes: u64,
    injected: Vec<Shown>,
    reads: Vec<Shown>,
    changes: Vec<Shown>,
}

/// A slice as data.
#[derive(Serialize)]
pub struct SliceData {
    about: String,
    steps: Vec<StepData>,
}

/// All steps as data.
pub fn all(stepper: &mut Stepper) -> anyhow::Result<SliceData> {
    let mut steps = Vec::new();
    for number in 0..stepper.steps.len() {
        stepper.go(number)?;
        let (reads, changes) = values::of(stepper)?;
        let injected = values::injected(stepper);
        let step = stepper.step();
        let place = place_of(stepper, step);
        steps.push(StepData {
            step: number + 1,
            thread: stepper.thread(step),
            tick: Tick(step.start.time),
            pc: step.start.pc.map(Address),
            source: line_of(&place),
            place,
            skipped: step.skipped,
            injected_bytes: step.injected.iter().map(|(_, bytes)| bytes).sum(),
            injected,
            reads,
            changes,
        });
    }
    Ok(SliceData { about: stepper.about.clone(), steps })
}
