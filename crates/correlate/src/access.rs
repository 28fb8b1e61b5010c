//! The accesses of one function, as the second pass finds them.

use crate::members::MemberId;
use crate::names::Name;
use crate::types::{FileId, StructId, Type};
use std::ops::{BitOr, BitOrAssign};

/// How a variable is accessed: a set of ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind(u8);

impl Kind {
    /// None at all.
    pub const NONE: Self = Self(0);
    /// Its value is used.
    pub const READ: Self = Self(1);
    /// It gets a value.
    pub const WRITE: Self = Self(2);
    /// Its address is taken; what happens through it is not known.
    pub const ADDRESS: Self = Self(4);

    /// Whether any way of `other` is among these.
    pub fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The bits, for compact storage.
    pub fn bits(self) -> u8 {
        self.0
    }
}

impl BitOr for Kind {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Kind {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// What a variable belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// A field of a struct of the tree.
    Struct(StructId),
    /// A field of a struct known by name.
    Opaque(Name),
    /// A global variable.
    Global,
    /// A global variable that only this file sees.
    Static(FileId),
    /// A field of a struct of the tree where it is a member of another; see `members`.
    Member(MemberId),
}

/// One access.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// What the variable belongs to.
    pub owner: Owner,
    /// Its name there.
    pub field: Name,
    /// How it is accessed.
    pub kind: Kind,
    /// Line.
    pub line: u32,
    /// Number of the statement in the function.
    pub statement: u32,
    /// Hash of the expression that names the object, 0 for a global.
    pub base: u32,
    /// The member of another struct that the object is, if it is one (`s->name.len`: that of `name`).
    pub within: Option<(Owner, Name)>,
    /// Number of the chain of fields (`a->b.c`) that it is part of.
    pub chain: u32,
    /// If it is a step on the way to another field: the struct that it leads to.
    pub step: Option<Type>,
    /// The constant that is written, if it is one.
    pub value: Option<Name>,
    /// Whether only some of its bits change (`|=`, `&=`, `^=`).
    pub is_bits: bool,
    /// Whether a parameter is written to it as it is.
    pub is_given: bool,
    /// Whether the object is a local that is written and never read: its state cannot matter.
    pub is_dead: bool,
    /// Whether a value that the function took from it before is given back.
    pub is_restored: bool,
    /// Where the object comes from.
    pub origin: Origin,
    /// The branch of the function, in [`Function::branches`].
    pub branch: u32,
    /// Whether the owner was guessed from the name of the field.
    pub is_guess: bool,
}

impl Access {
    /// The statement and its branch.
    pub fn place(&self) -> (u32, u32) {
        (self.statement, self.branch)
    }
}

/// Where the object that a variable is a field of comes from, as far as the function itself shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Not to be seen.
    Unknown,
    /// The function makes it: a local, or fresh memory. With the hash of the name of that local.
    New(u32),
    /// It was there before.
    Existing,
    /// It is a global variable, or part of one.
    Global,
}

/// A piece of a function that is executed on a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The branch around it.
    pub parent: u32,
    /// The statement that chooses it; of those that the same one chooses only one is executed.
    pub choice: u32,
    /// The last statement in it.
    pub last: u32,
    /// Whether the function returns at its end.
    pub returns: bool,
}

/// A label at the end of a function that only a `goto` leads to, as the way out after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Landing {
    /// The first statement behind the label.
    pub at: u32,
    /// The last statement that jumps there, or to a label before it that falls through.
    pub from: u32,
}

/// One call.
#[derive(Clone, Debug)]
pub struct Call {
    /// Name of the function or macro.
    pub name: Name,
    /// Class of the object that a method is called on.
    pub class: Option<Name>,
    /// Line.
    pub line: u32,
    /// Number of the statement.
    pub statement: u32,
    /// The branch of the calling function, in [`Function::branches`].
    pub branch: u32,
    /// What it is called with.
    pub arguments: Box<[Argument]>,
    /// The object that its result is assigned to.
    pub result: Argument,
}

/// An object that is handed to a call or comes out of it.
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    /// Hash of the expression that names the object: `s` for `&s`, as in the accesses to its fields.
    pub base: u32,
    /// Its struct.
    pub of: Type,
}

impl Argument {
    /// Nothing that has fields.
    pub const NONE: Self = Self { base: 0, of: Type::Unknown };
    /// The base of what a function returns.
    pub const RETURNED: u32 = u32::MAX;
}

/// What happens to a struct as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum How {
    /// All its bytes become zero.
    Zeroed,
    /// All its fields get a value, by assignment or a list.
    Assigned,
    /// Its life ends.
    Freed,
}

/// A struct that is set, zeroed or freed as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole {
    /// The struct.
    pub of: Type,
    /// What happens to it.
    pub how: How,
    /// Hash of the expression that names the object.
    pub base: u32,
}

/// All that the second pass knows of a function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Name, without its class.
    pub name: Name,
    /// Class of a method.
    pub class: Option<Name>,
    /// File that holds it.
    pub file: FileId,
    /// First line.
    pub line: u32,
    /// Whether other files cannot call it.
    pub is_static: bool,
    /// Whether it is a macro body.
    pub is_macro: bool,
    /// Hash of its text without blanks: copies have the same.
    pub hash: u64,
    /// Accesses in order.
    pub accesses: Vec<Access>,
    /// Calls in order.
    pub calls: Vec<Call>,
    /// Structs that it sets, zeroes or frees as a whole.
    pub wholes: Vec<Whole>,
    /// Hashes of the names of its parameters, in order.
    pub parameters: Box<[u32]>,
    /// Hashes of the objects that it returns.
    pub returned: Box<[u32]>,
    /// Hashes of two expressions for one object, as an assignment made it.
    pub aliases: Box<[(u32, u32)]>,
    /// Structs inside others whose fields it accesses.
    pub parts: Box<[(Owner, Name)]>,
    /// Its branches, from 1; what stands on no condition is in branch 0.
    pub branches: Box<[Branch]>,
    /// Its labels that only jumps lead to, in order.
    pub landings: Box<[Landing]>,
}

impl Function {
    /// Whether all that it does is to set one variable to what it is given.
    pub fn is_setter(&self) -> bool {
        let [only] = &self.accesses[..] else { return false };
        only.kind == Kind::WRITE && only.is_given && self.calls.is_empty()
    }

    /// Whether two expressions may name one object.
    pub fn may_be_one(&self, one: u32, other: u32) -> bool {
        one == other || self.aliases.iter().any(|it| *it == (one, other) || *it == (other, one))
    }

    /// Whether of two statements, each with its branch, only one is executed in a pass.
    pub fn are_alternatives(&self, one: (u32, u32), other: (u32, u32)) -> bool {
        let ((early, before), (late, after)) =
            if one <= other { (one, other) } else { (other, one) };
        // Who was there before the last jump may be followed by what stands behind the label; who
        // came after it has returned.
        let landing = self.landings.iter().rev().find(|it| it.at <= late);
        if landing.is_some_and(|it| it.from < early && early < it.at) {
            return true;
        }
        if before == after || before == 0 && after == 0 {
            return false;
        }
        let around_after: Vec<u32> = self.around(after).collect();
        // A branch that returns is an alternative to all that follows it.
        let mut left = self.around(before).take_while(|it| !around_after.contains(it));
        let returns = |it: u32| {
            let branch = &self.branches[it as usize - 1];
            branch.returns && early <= branch.last && branch.last < late
        };
        if left.any(returns) {
            return true;
        }
        let choices =
            |from: u32| self.around(from).map(|it| (it, self.branches[it as usize - 1].choice));
        choices(before).any(|(it, choice)| {
            choices(after).any(|(other, other_choice)| it != other && choice == other_choice)
        })
    }

    /// Whether whatever is executed in the branch `inner` comes with what is executed in `outer`.
    pub fn is_around(&self, outer: u32, inner: u32) -> bool {
        outer == 0 || self.around(inner).any(|it| it == outer)
    }

    /// A branch and those around it.
    fn around(&self, branch: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(branch), |it| {
            self.branches.get((*it).wrapping_sub(1) as usize).map(|it| it.parent)
        })
        .take_while(|it| *it != 0)
    }
}

/// How accesses to fields were attributed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Resolution {
    /// By the type of the base expression.
    pub resolved: u64,
    /// By the name of the field alone.
    pub guessed: u64,
    /// Not at all.
    pub dropped: u64,
}

impl Resolution {
    /// Adds the counts of another part.
    pub fn add(&mut self, other: Self) {
        self.resolved += other.resolved;
        self.guessed += other.guessed;
        self.dropped += other.dropped;
    }

    /// Share of accesses that were resolved, in percent.
    pub fn percent(&self) -> f64 {
        let all = self.resolved + self.guessed + self.dropped;
        if all == 0 { 100.0 } else { 100.0 * self.resolved as f64 / all as f64 }
    }
}
