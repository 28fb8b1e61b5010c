//! From a hit to a finding: addresses become places, and what happened becomes a sentence.

use super::hit::{BlockHistory, Chain, Hit, Subject};
use base::allocator::family_name;
use base::{Address, Confidence, Finding, Place, Step};
use std::path::Path;
use symbols::Program;

/// Frames of a stack that are shown.
const MOST_FRAMES: usize = 8;
/// Links of a chain that are shown.
const MOST_LINKS: usize = 16;

/// A hit as a finding, which does not say how often it happened.
#[must_use]
pub fn finding(hit: &Hit, program: &Program) -> Finding {
    let mut evidence = vec![Step::new(reading(hit))];
    evidence.extend(stack("", &hit.stack, program));
    if let Some(block) = &hit.block {
        evidence.extend(block_steps(block, program));
    }
    if let Subject::Unwritten { read, .. } = hit.subject
        && Some(&read) != hit.stack.first()
    {
        evidence.push(Step::new("it was read").at(place(program, read)));
    }
    if let Subject::Descriptor { opened, closed, .. } = &hit.subject {
        evidence.extend(stack("opened: ", opened, program));
        evidence.extend(stack("closed: ", closed, program));
    }
    for chain in &hit.chains {
        evidence.extend(chain_steps(chain, hit, program));
    }
    if hit.guessed {
        evidence.push(Step::new(
            "older pointers are taken to be of the blocks that they pointed into before",
        ));
    }
    Finding {
        kind: hit.rule.clone(),
        title: hit.title.clone(),
        confidence: if hit.guessed { Confidence::High } else { Confidence::Certain },
        place: own_place(&hit.stack, program),
        when: None,
        evidence,
    }
}

/// How often something happened, if more than once, and in how many processes, if in more than one.
#[must_use]
pub fn times(count: u64, processes: usize) -> Option<Step> {
    let text = match (count, processes) {
        (0 | 1, _) => return None,
        (_, 0 | 1) => format!("this happened {count} times"),
        _ => format!("this happened {count} times, in {processes} processes"),
    };
    Some(Step::new(text))
}

/// The innermost place of the program's own code, if there is one with a line: a library is not to blame
/// for what it was given.
fn own_place(stack: &[u64], program: &Program) -> Option<Place> {
    let places: Vec<(Place, bool)> = stack
        .iter()
        .map(|pc| {
            let module = program.symbolise(Address(*pc)).module;
            (place(program, *pc), module.is_some_and(|path| is_runtime(&path)))
        })
        .collect();
    let lined = |(place, _): &&(Place, bool)| place.line.is_some();
    let mut own = places.iter().filter(|(_, runtime)| !runtime);
    let chosen = own.clone().find(lined).or_else(|| own.next());
    chosen.or_else(|| places.iter().find(lined)).or(places.first()).map(|(place, _)| place.clone())
}

/// Whether a file is part of a language's runtime.
fn is_runtime(path: &Path) -> bool {
    const RUNTIMES: [&str; 7] =
        ["libc.", "libc-", "ld-", "libm.", "libstdc++.", "libgcc_s.", "libpthread"];
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    RUNTIMES.iter().any(|start| name.starts_with(start))
}

fn place(program: &Program, pc: u64) -> Place {
    let code = program.symbolise(Address(pc));
    let mut place = code.place();
    if place.function.is_none() {
        place.function = code.symbol.map(|(name, _)| name);
    }
    place
}

/// Where in its file code lies of which no line is known.
fn inside_file(place: &Place, program: &Program) -> String {
    let Some(address) = place.address.filter(|_| place.line.is_none()) else {
        return String::new();
    };
    let Some((module, _)) = program.locate(address) else { return String::new() };
    let name = module.loaded().path.file_name().unwrap_or_default();
    format!(" in {}+{:#x}", name.display(), address.0.wrapping_sub(module.bias()))
}

fn stack(before: &str, pcs: &[u64], program: &Program) -> Vec<Step> {
    let shown = pcs.iter().take(MOST_FRAMES).enumerate();
    let step = |(number, pc): (usize, &u64)| {
        let place = place(program, *pc);
        let function = place.function.clone().unwrap_or_else(|| format!("{pc:#x}"));
        let inside = inside_file(&place, program);
        Step::new(format!("{before}#{number} {function}{inside}")).at(place)
    };
    shown.map(step).collect()
}

fn block_steps(block: &BlockHistory, program: &Program) -> Vec<Step> {
    let made = if block.heap { "allocated: " } else { "its function: " };
    let mut steps = stack(made, &block.allocated, program);
    if let Some(freed) = &block.freed {
        steps.extend(stack("freed: ", freed, program));
    }
    steps
}

/// A chain in source terms. Copies on one line of source are one step.
fn chain_steps(chain: &Chain, hit: &Hit, program: &Program) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let name = match (chain.variable.as_str(), &hit.subject) {
        ("r", Subject::Access { .. } | Subject::Release { .. }) => "the pointer",
        ("r1", _) => "the pointer that freed it",
        (other, _) => other,
    };
    for link in chain.links.iter().take(MOST_LINKS) {
        let place = place(program, link.pc);
        let how = if link.made { "made" } else { "copied" };
        let text = format!("{name} was {how}{}", inside_file(&place, program));
        let again = steps.last().and_then(|last| last.place.as_ref()).is_some_and(|last| {
            last.line.is_some() && (&last.file, last.line) == (&place.file, place.line)
        });
        if again {
            // The older of the two says more: the value was made on this line.
            steps.pop();
        }
        steps.push(Step::new(text).at(place));
    }
    if chain.cut {
        steps.push(Step::new(format!("{name} is older than what was followed")));
    }
    steps
}

/// One sentence that says what happened.
#[must_use]
pub fn reading(hit: &Hit) -> String {
    let about = hit.block.as_ref();
    match &hit.subject {
        Subject::Access { address, size, write } => {
            let verb = if *write { "written" } else { "read" };
            format!("{} {verb} {}", bytes(u64::from(*size)), where_is(*address, about))
        }
        Subject::Unwritten { address, size, .. } => {
            let place = where_is(*address, about);
            format!(
                "a branch, an address or an output depends on {} {place}",
                bytes(u64::from(*size))
            )
        }
        Subject::Release { address } => match about {
            Some(block) if block.freed.is_some() => {
                format!("{address:#x} was already freed: {}", describe(block))
            }
            Some(block) if block.global => format!("{address:#x} is {}", inside(*address, block)),
            Some(block) if block.begin != *address => {
                format!("{address:#x} is {}", inside(*address, block))
            }
            Some(block) => {
                format!("{} comes from {}", describe(block), family_name(block.family))
            }
            None => format!("{address:#x} was never allocated"),
        },
        Subject::Allocation { size } => {
            format!("{} bytes were asked for, as a signed number {}", size, *size as i64)
        }
        Subject::Call(function) => match about {
            Some(block) => format!("when {function} returns, {} is left", describe(block)),
            None => format!("at a call of {function}"),
        },
        Subject::Descriptor { number, open: true, .. } => {
            format!("descriptor {number} is still open")
        }
        Subject::Descriptor { number, .. } => format!("descriptor {number} is not open"),
        Subject::End => match about {
            Some(block) => format!("{} is lost at the end", describe(block)),
            None => "at the end of the program".to_owned(),
        },
    }
}

fn bytes(count: u64) -> String {
    if count == 1 { "1 byte".to_owned() } else { format!("{count} bytes") }
}

fn describe(block: &BlockHistory) -> String {
    if block.heap {
        format!("a block of {}", bytes(block.size))
    } else if block.global {
        format!("a variable of {}", bytes(block.size))
    } else if block.local {
        format!("a local variable of {}", bytes(block.size))
    } else {
        "a stack frame".to_owned()
    }
}

fn where_is(address: u64, block: Option<&BlockHistory>) -> String {
    match block {
        None => format!("at {address:#x}"),
        Some(block) if block.heap || block.global || block.local => {
            format!("at {address:#x}, {}", inside(address, block))
        }
        Some(block) => format!("at {address:#x}, from {}", describe(block)),
    }
}

fn inside(address: u64, block: &BlockHistory) -> String {
    let (end, what) = (block.begin.saturating_add(block.size), describe(block));
    let freed = if block.freed.is_some() { " that was freed" } else { "" };
    if address < block.begin {
        format!("{} before {what}{freed}", bytes(block.begin - address))
    } else if address >= end {
        format!("{} past the end of {what}{freed}", bytes(address - end))
    } else {
        format!("{} into {what}{freed}", bytes(address - block.begin))
    }
}
