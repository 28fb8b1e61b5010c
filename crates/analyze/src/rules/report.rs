//! From a hit to a finding: addresses become places ([`frames`]), and what happened becomes a sentence
//! ([`words`]).

mod called;
pub mod frames;
mod variable;
pub mod words;

use super::hit::{BlockHistory, Chain, Hit, Subject};
use super::machine::chains::{Link, Stamp};
use base::{Confidence, Finding, Place, Role, Step, When};
use frames::{Frame, frames, inside_file, own_place};
use symbols::Program;
use words::reading;

/// Links of a chain that are kept.
const MOST_LINKS: usize = 16;

/// What a report needs to know besides the hit.
pub struct Context<'a> {
    /// Names and lines.
    pub program: &'a Program,
    /// When something in the stream happened, for people.
    pub when: &'a dyn Fn(Stamp) -> Option<When>,
}

impl Context<'_> {
    fn at(&self, stamp: Option<Stamp>) -> Option<When> {
        stamp.and_then(self.when)
    }

    /// The calls of a stack, the innermost of them at a time.
    fn stack(&self, before: &str, role: Role, pcs: &[u64], stamp: Option<Stamp>) -> Vec<Step> {
        let mut steps = frames::steps(before, role, &frames(pcs, self.program), self.program);
        if let Some(first) = steps.first_mut() {
            first.when = self.at(stamp);
        }
        steps
    }
}

/// A hit as a finding, which does not say how often it happened.
#[must_use]
pub fn finding(hit: &Hit, context: &Context<'_>) -> Finding {
    let hit = &named(hit, context.program);
    let mut evidence = vec![Step::new(reading(hit, context.program))];
    let lost = is_lost(hit);
    if !lost {
        evidence.extend(context.stack("", Role::Call, &hit.stack, None));
    }
    if let Some(block) = &hit.block {
        evidence.extend(block_steps(block, context));
    }
    if let Subject::Unwritten { read, .. } = hit.subject
        && Some(&read) != hit.stack.first()
        && let Some(place) = own_place(&frames(&[read], context.program))
    {
        evidence.push(Step::new("it was read").at(place));
    }
    if let Subject::Descriptor { opened, closed, .. } = &hit.subject {
        evidence.extend(context.stack("opened: ", Role::Opened, opened, None));
        evidence.extend(context.stack("closed: ", Role::Closed, closed, None));
    }
    evidence.extend(chains(hit, context));
    if hit.guessed {
        evidence.push(Step::new(
            "older pointers are taken to be of the blocks that they pointed into before",
        ));
    }
    let stamp = hit.position.map(|position| Stamp { position, thread: hit.thread });
    Finding {
        kind: hit.rule.clone(),
        title: hit.title.clone(),
        confidence: if hit.guessed { Confidence::High } else { Confidence::Certain },
        place: own_place(&frames(origin(hit), context.program)),
        when: None,
        evidence,
    }
    .at_time(context.at(stamp))
}

/// A hit whose block is called what its variable is.
fn named(hit: &Hit, program: &Program) -> Hit {
    let mut hit = hit.clone();
    if let Some(block) = &mut hit.block {
        block.name = variable::name(block, program);
    }
    hit
}

/// Whether it is about what was left over: then whoever made that is to blame, not whoever ended.
#[must_use]
pub fn is_lost(hit: &Hit) -> bool {
    match &hit.subject {
        Subject::End | Subject::Call(_) => {
            hit.block.as_ref().is_some_and(|block| !block.allocated.is_empty())
        }
        Subject::Descriptor { open: true, opened, .. } => !opened.is_empty(),
        _ => false,
    }
}

/// The calls that a finding is put down to, innermost first.
#[must_use]
pub fn origin(hit: &Hit) -> &[u64] {
    match (&hit.subject, &hit.block) {
        (Subject::Descriptor { opened, .. }, _) if is_lost(hit) => opened,
        (_, Some(block)) if is_lost(hit) => &block.allocated,
        _ => &hit.stack,
    }
}

/// How often something happened, if more than once: by how many ways, and in how many processes.
#[must_use]
pub fn times(count: u64, paths: usize, processes: usize) -> Option<Step> {
    let mut text = match count {
        0 | 1 => return None,
        _ => format!("this happened {count} times"),
    };
    if paths > 1 {
        text += &format!(", from {paths} call paths");
    }
    if processes > 1 {
        text += &format!(", in {processes} processes");
    }
    Some(Step::new(text).as_a(Role::Times))
}

fn block_steps(block: &BlockHistory, context: &Context<'_>) -> Vec<Step> {
    let (made, shown) = match block.heap {
        true => ("allocated: ", block.allocated.len()),
        false => ("its function: ", 1),
    };
    let shown = &block.allocated[..shown.min(block.allocated.len())];
    let mut steps = context.stack(made, Role::Allocated, shown, block.allocated_at);
    if let Some(freed) = &block.freed {
        steps.extend(context.stack("freed: ", Role::Freed, freed, block.freed_at));
    }
    steps
}

/// All chains of a hit. What a later one has in common with the first, down to where the value was made, is
/// told once.
fn chains(hit: &Hit, context: &Context<'_>) -> Vec<Step> {
    let mut all: Vec<Step> = Vec::new();
    let mut first: Vec<(Option<String>, Option<u32>)> = Vec::new();
    for chain in &hit.chains {
        let mut steps = chain_steps(chain, hit, context);
        let lines: Vec<_> = steps.iter().map(line_of).collect();
        let common = first.iter().rev().zip(lines.iter().rev()).take_while(|(a, b)| a == b).count();
        steps.truncate(steps.len() - common);
        if all.is_empty() {
            first = lines;
        }
        all.extend(steps);
    }
    all
}

fn line_of(step: &Step) -> (Option<String>, Option<u32>) {
    step.place.as_ref().map(|place| (place.file.clone(), place.line)).unwrap_or_default()
}

/// A chain in source terms. Copies on one line of source are one step; those that the C library and the
/// loader make on the way are none of the program's.
fn chain_steps(chain: &Chain, hit: &Hit, context: &Context<'_>) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let name = match (chain.variable.as_str(), &hit.subject) {
        ("r", Subject::Access { .. } | Subject::Library { .. } | Subject::Release { .. }) => {
            "the pointer"
        }
        ("r1", _) => "the pointer that freed it",
        (other, _) => other,
    };
    let own = chain.links.iter().filter_map(|link| Some((link, copied_at(link, context)?)));
    for (link, place) in own.take(MOST_LINKS) {
        let how = if link.made { "made" } else { "copied" };
        let text = format!("{name} was {how}{}", inside_file(&place, context.program));
        let again = steps.last().and_then(|last| last.place.as_ref()).is_some_and(|last| {
            last.line.is_some() && (&last.file, last.line) == (&place.file, place.line)
        });
        if again {
            // The older of the two says more: the value was made on this line.
            steps.pop();
        }
        let when = context.at(link.when);
        steps.push(Step::new(text).as_a(Role::Copied).at(place).at_time(when));
    }
    if chain.cut {
        steps.push(Step::new(format!("{name} is older than what was followed")));
    }
    steps
}

/// Where a value was copied, unless a library did it.
fn copied_at(link: &Link, context: &Context<'_>) -> Option<Place> {
    let frames = frames(&[link.pc], context.program);
    let innermost = frames.first().filter(|frame| !frame.is_runtime())?;
    // A statement of a header of the language's own says less than the one that it was inlined into.
    let own = frames.iter().find(|frame| Frame::is_own(frame));
    Some(own.unwrap_or(innermost).place.clone())
}
