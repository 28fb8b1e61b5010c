//! A **patch**: a place where the guest is made to do something else, once or always.
//!
//! ```text
//! PLACE[#N]: flip | skip | jump ADDRESS | return | set $register=VALUE | set [ADDRESS,SIZE]=VALUE
//! ```
//! Here a place is an address (`0x401136` or `*0x401136`); whoever has symbols turns other places
//! into addresses first.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What to do where and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patch {
    /// Address of the instruction, which has not executed yet when the patch applies.
    pub pc: u64,
    /// At which execution of the place, counted from one over all threads; at all if `None`.
    pub execution: Option<u64>,
    /// What to do.
    pub action: Action,
}

/// What a patch does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// The conditional branch at the place goes the other way.
    Flip,
    /// The instruction at the place is not executed.
    Skip,
    /// The guest goes on at another instruction of the same function.
    Jump {
        /// Its address.
        to: u64,
    },
    /// The function that begins at the place returns 0 at once.
    Return,
    /// A general register gets a value before the instruction executes.
    SetRegister {
        /// By the processor's number: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 …
        register: u8,
        /// Its value.
        value: u64,
    },
    /// Memory gets a value before the instruction executes.
    SetMemory {
        /// Where.
        address: u64,
        /// Bytes, at most eight.
        size: u8,
        /// Its value, little end first.
        value: u64,
    },
}

/// General registers by number.
pub const REGISTERS: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15",
];

/// The patch could not be understood: what was found and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPatch(pub String);

impl fmt::Display for BadPatch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{}; a patch is `PLACE[#N]: ACTION` with an action `flip`, `skip`, `jump 0x401136`, `return`, \
             `set $rax=1` or `set [0x4000,8]=1`",
            self.0
        )
    }
}

impl std::error::Error for BadPatch {}

impl Patch {
    /// Reads a patch whose place `resolve` can turn into an address.
    pub fn parse(
        text: &str,
        resolve: impl FnOnce(&str) -> Result<u64, String>,
    ) -> Result<Self, BadPatch> {
        let bad = |what: String| BadPatch(what);
        let (head, action) = split_action(text)
            .ok_or_else(|| bad(format!("`{text}` has no `: ` between place and action")))?;
        let (place, execution) = match head.rsplit_once('#') {
            None => (head, None),
            Some((place, count)) => match number(count) {
                Some(0) | None => {
                    return Err(bad(format!("`{count}` is not the number of an execution")));
                }
                count => (place, count),
            },
        };
        let pc = resolve(place.trim()).map_err(bad)?;
        Ok(Self { pc, execution, action: action.parse()? })
    }
}

/// Places may have colons of their own (`file.c:12`): the action starts behind the last one that a
/// space follows.
fn split_action(text: &str) -> Option<(&str, &str)> {
    let (place, action) = text.rsplit_once(": ")?;
    Some((place.trim(), action.trim()))
}

/// An address as a place: `0x401136` or `*0x401136`.
pub fn address(place: &str) -> Result<u64, String> {
    let digits = place.strip_prefix('*').unwrap_or(place);
    number(digits).ok_or_else(|| format!("`{place}` is not an address"))
}

fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok();
    }
    if text.starts_with('-') {
        return text.parse::<i64>().ok().map(|value| value as u64);
    }
    text.parse().ok()
}

impl FromStr for Action {
    type Err = BadPatch;

    fn from_str(text: &str) -> Result<Self, BadPatch> {
        match text {
            "flip" => return Ok(Self::Flip),
            "skip" => return Ok(Self::Skip),
            "return" => return Ok(Self::Return),
            _ => {}
        }
        if let Some(to) = text.strip_prefix("jump ") {
            return Ok(Self::Jump { to: address(to.trim()).map_err(BadPatch)? });
        }
        let unknown = || BadPatch(format!("`{text}` is not an action"));
        let assignment = text.strip_prefix("set ").ok_or_else(unknown)?;
        let (target, value) = assignment.split_once('=').ok_or_else(unknown)?;
        let value =
            number(value).ok_or_else(|| BadPatch(format!("`{}` is not a number", value.trim())))?;
        set(target.trim(), value)
    }
}

fn set(target: &str, value: u64) -> Result<Action, BadPatch> {
    if let Some(name) = target.strip_prefix('$') {
        let register = REGISTERS.iter().position(|register| *register == name);
        let register =
            register.ok_or_else(|| BadPatch(format!("`${name}` is not a general register")))?;
        return Ok(Action::SetRegister { register: register as u8, value });
    }
    let wrong = || BadPatch(format!("`{target}` is neither a $register nor [ADDRESS,SIZE]"));
    let inside = target.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let (place, size) = inside.and_then(|inside| inside.split_once(',')).ok_or_else(wrong)?;
    let (place, size) = (number(place).ok_or_else(wrong)?, number(size).ok_or_else(wrong)?);
    if !matches!(size, 1 | 2 | 4 | 8) {
        return Err(BadPatch(format!("{size} bytes cannot be set at once, but 1, 2, 4 or 8")));
    }
    Ok(Action::SetMemory { address: place, size: size as u8, value })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Patch, BadPatch> {
        Patch::parse(text, address)
    }

    #[test]
    fn patches_are_read() {
        let row = |pc, execution, action| Ok(Patch { pc, execution, action });
        let set = |register, value| Action::SetRegister { register, value };
        assert_eq!(parse("0x401136: flip"), row(0x40_1136, None, Action::Flip));
        assert_eq!(parse("*0x401136#3: skip"), row(0x40_1136, Some(3), Action::Skip));
        assert_eq!(parse("0x401136#1: return"), row(0x40_1136, Some(1), Action::Return));
        let jump = Action::Jump { to: 0x40_1140 };
        assert_eq!(parse("0x401136: jump 0x401140"), row(0x40_1136, None, jump));
        assert_eq!(parse("16#1: set $rdi=-1"), row(16, Some(1), set(7, u64::MAX)));
        let memory = Action::SetMemory { address: 0x4000, size: 4, value: 7 };
        assert_eq!(parse("0x10: set [0x4000,4]=7"), row(16, None, memory));
    }

    #[test]
    fn wrong_ones_say_what_would_be_right() {
        for (text, expected) in [
            ("0x10 flip", "has no `: `"),
            ("0x10#0: flip", "`0` is not the number of an execution"),
            ("main: flip", "`main` is not an address"),
            ("0x10: jump", "`jump` is not an action"),
            ("0x10: set $eax=1", "`$eax` is not a general register"),
            ("0x10: set [0x10,3]=1", "3 bytes cannot be set"),
            ("0x10: set $rax=x", "`x` is not a number"),
            ("0x10: set x=1", "`x` is neither"),
        ] {
            let message = parse(text).expect_err(text).to_string();
            assert!(message.contains(expected) && message.contains("a patch is"), "{message}");
        }
    }
}
