//! The **excuses** of functions that lack the right side of a rule.

use crate::access::How;
use std::fmt;

/// Why a function that lacks the right side of a rule does not break it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Both sides come out of the same callee, which counts itself.
    Copied,
    /// Both sides are there, but in branches of which only one is executed.
    Alternatives,
    /// It zeroes the whole struct.
    Zeroed,
    /// It assigns the whole struct.
    Assigned,
    /// It ends the life of the struct.
    Freed,
    /// Only a function that it calls has the left side.
    Indirect,
    /// It reads the variable where the rule wants a write.
    Checks,
    /// It accesses the variable, but too many statements away.
    Far,
    /// It accesses parts of the variable, which is a struct itself.
    Part,
    /// It is the body of a macro.
    Macro,
    /// The object is a local that nobody reads.
    Dead,
    /// It sets another member of the union that the variable is in.
    Variant,
    /// All that it does is to set the first variable to what it is given.
    Setter,
    /// It gives the first variable back the value that it had before.
    Restores,
    /// A function that it hands the object to, or got it from, sets the variable in it.
    SetByCallee,
    /// All functions that call it set the variable in the object that they hand over.
    SetByCallers,
    /// A function that it calls takes care of the variable.
    Callees,
    /// A function that calls it takes care of the variable.
    Callers,
}

impl Reason {
    /// Whether a function with this excuse counts among those with the left side. One that sets the
    /// whole struct says nothing about which fields belong together, nor does one whose object has
    /// the right side set by others, or need not have it.
    pub fn is_counted(self) -> bool {
        matches!(self, Self::Indirect | Self::Checks | Self::Far | Self::Callees | Self::Callers)
    }

    /// All, in the order in which they are looked for.
    pub(crate) const ORDER: [Self; 16] = [
        Self::Indirect,
        Self::Macro,
        Self::Checks,
        Self::Far,
        Self::Part,
        Self::Zeroed,
        Self::Assigned,
        Self::Freed,
        Self::Dead,
        Self::Variant,
        Self::Setter,
        Self::Restores,
        Self::SetByCallee,
        Self::SetByCallers,
        Self::Callees,
        Self::Callers,
    ];

    /// What excuses a single write of a function that obeys elsewhere.
    pub(crate) const OF_A_WRITE: [Self; 11] = [
        Self::Part,
        Self::Zeroed,
        Self::Assigned,
        Self::Freed,
        Self::Dead,
        Self::Variant,
        Self::Restores,
        Self::SetByCallee,
        Self::SetByCallers,
        Self::Callees,
        Self::Callers,
    ];

    /// Excuses that may be void.
    pub(crate) const VOIDABLE: [Self; 3] = [Self::Zeroed, Self::Callees, Self::Callers];

    /// The excuse of a function that does this to the whole struct.
    pub(crate) fn of_whole(how: How) -> Self {
        match how {
            How::Zeroed => Self::Zeroed,
            How::Assigned => Self::Assigned,
            How::Freed => Self::Freed,
        }
    }

    /// Whether the excuse is void for a rule that functions with it obey all the same.
    pub(crate) fn can_be_void(self) -> bool {
        Self::VOIDABLE.contains(&self)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Copied => "gets both from one function that it calls",
            Self::Alternatives => "accesses one or the other, never both",
            Self::Zeroed => "zeroes the whole struct",
            Self::Assigned => "assigns the whole struct",
            Self::Freed => "frees the struct",
            Self::Indirect => "has the left side only through a call",
            Self::Checks => "checks it instead of updating it",
            Self::Far => "accesses it further away than --max-distance",
            Self::Part => "accesses a part of it",
            Self::Macro => "the body of a macro",
            Self::Dead => "a local object that nobody reads",
            Self::Variant => "sets another member of the union",
            Self::Setter => "only sets what it is given",
            Self::Restores => "restores the value that it had before",
            Self::SetByCallee => "a function that it calls sets it in the same object",
            Self::SetByCallers => "all functions that call it set it in the same object",
            Self::Callees => "a function that it calls accesses it",
            Self::Callers => "a function that calls it accesses it",
        })
    }
}
