//! What happened, as a sentence.

use super::called;
use crate::rules::hit::{BlockHistory, Hit, Subject};
use base::Address;
use base::allocator::family_name;
use symbols::Program;

/// One sentence that says what happened.
#[must_use]
pub fn reading(hit: &Hit, program: &Program) -> String {
    let about = hit.block.as_ref();
    match &hit.subject {
        Subject::Access { address, size, write } => {
            let verb = if *write { "written" } else { "read" };
            let (size, place) = (u64::from(*size), where_is(*address, about));
            let place = about.and_then(|block| across(*address, size, block)).unwrap_or(place);
            format!("{} {verb} {place}", bytes(size))
        }
        Subject::Library { function, address, length, write } => {
            let verb = if *write { "writes" } else { "reads" };
            let called = hit.stack.first().and_then(|call| called::name(*call, program));
            let function = called.as_ref().unwrap_or(function);
            let place = where_is(*address, about);
            if let below_zero @ ..0 = *length as i64 {
                let deed = if *write { "write" } else { "read" };
                return format!(
                    "{function} is to {deed} {below_zero} bytes (as a number without a sign {length}) {place}"
                );
            }
            let end = address.saturating_add(*length);
            let past =
                about.map(|block| end.saturating_sub(block.begin.saturating_add(block.size)));
            let past = match past.filter(|past| (1..*length).contains(past)) {
                Some(past) => format!(", and so {} past its end", bytes(past)),
                None => String::new(),
            };
            format!("{function} {verb} {} {place}{past}", bytes(*length))
        }
        Subject::Absent { call, address, length, from } => {
            let missing = address.saturating_add(*length).saturating_sub(*from);
            let which = if from == address {
                "which cannot be accessed".to_owned()
            } else if missing == 1 {
                "the last of which cannot be accessed".to_owned()
            } else {
                format!("the last {missing} of which cannot be accessed")
            };
            format!("the system call {call} is given {} at {address:#x}, {which}", bytes(*length))
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
                format!("{} was already freed: {}", pointer(*address), describe(block))
            }
            Some(block) if block.global => format!("{address:#x} is {}", inside(*address, block)),
            Some(block) if block.begin != *address => {
                format!("{address:#x} is {}", inside(*address, block))
            }
            Some(block) => {
                format!("{} comes from {}", describe(block), family_name(block.family))
            }
            None => format!("{} was never allocated", pointer(*address)),
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

fn pointer(address: u64) -> String {
    Address(address).with_text()
}

pub(super) fn bytes(count: u64) -> String {
    if count == 1 { "1 byte".to_owned() } else { format!("{count} bytes") }
}

/// Where an access is that begins inside of its block and ends outside, or the other way round.
fn across(address: u64, size: u64, block: &BlockHistory) -> Option<String> {
    let (end, after) = (block.begin.saturating_add(block.size), address.saturating_add(size));
    let bounded = block.heap || block.global || block.local;
    let what = || {
        let freed = if block.freed.is_some() { " that was freed" } else { "" };
        format!("{}{freed}", describe(block))
    };
    if !bounded || size < 2 {
        None
    } else if address < end && end < after && address >= block.begin {
        Some(format!("at {}, {} of them past the end of {}", pointer(address), after - end, what()))
    } else if address < block.begin && block.begin < after {
        let before = block.begin - address;
        Some(format!("at {address:#x}, {before} of them before {}", what()))
    } else {
        None
    }
}

fn describe(block: &BlockHistory) -> String {
    if let Some(name) = &block.name {
        name.clone()
    } else if block.heap {
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
        None => format!("at {}", pointer(address)),
        Some(block) if block.heap || block.global || block.local => {
            format!("at {}, {}", pointer(address), inside(address, block))
        }
        Some(block) => format!("at {}, from {}", pointer(address), describe(block)),
    }
}

fn inside(address: u64, block: &BlockHistory) -> String {
    let (end, what) = (block.begin.saturating_add(block.size), describe(block));
    let freed = if block.freed.is_some() { " that was freed" } else { "" };
    if address < block.begin {
        format!("{} before {what}{freed}", bytes(block.begin - address))
    } else if address >= end {
        match address - end {
            0 => format!("right behind {what}{freed}"),
            past => format!("{} past the end of {what}{freed}", bytes(past)),
        }
    } else {
        match address - block.begin {
            0 => format!("the beginning of {what}{freed}"),
            into => format!("{} into {what}{freed}", bytes(into)),
        }
    }
}
