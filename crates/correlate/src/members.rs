//! Splits what is **popular**: the fields of a small struct that is a member of many others, such as a
//! string with its length.
//!
//! Such a field is accessed everywhere, goes with everything, and is left out of the mining. But where the
//! struct is a member of another (`s->name.len`), the member says whose string it is, and its fields are
//! variables like any others: who clears `s->name.data` clears `s->name.len`.

use crate::access::{Function, Owner};
use crate::names::Name;
use crate::types::StructId;
use rustc_hash::{FxHashMap, FxHashSet};

/// A member in a [`Members`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemberId(pub u32);

/// A struct that is a member of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    /// The struct around it.
    pub outer: StructId,
    /// Its name there.
    pub name: Name,
    /// The struct that it is.
    pub inner: StructId,
}

/// The members whose fields are variables of their own.
#[derive(Clone, Debug, Default)]
pub struct Members {
    all: Vec<Member>,
    numbers: FxHashMap<Member, MemberId>,
}

impl Members {
    /// A member.
    pub fn get(&self, id: MemberId) -> Member {
        self.all[id.0 as usize]
    }

    fn number(&mut self, member: Member) -> MemberId {
        *self.numbers.entry(member).or_insert_with(|| {
            self.all.push(member);
            MemberId(self.all.len() as u32 - 1)
        })
    }

    /// Gives the fields that more than `most` functions access to the members that they are reached
    /// through, and all others to their structs.
    pub fn split(&mut self, functions: &mut [Function], most: u32) {
        let popular = self.popular(functions, most as usize);
        let accesses = functions.iter_mut().flat_map(|function| &mut function.accesses);
        for access in accesses {
            let Some((Owner::Struct(outer), name)) = access.within else { continue };
            let Some(inner) = self.inner(access.owner) else { continue };
            access.owner = match popular.contains(&(inner, access.field)) {
                true => Owner::Member(self.number(Member { outer, name, inner })),
                false => Owner::Struct(inner),
            };
        }
    }

    /// The struct that really holds a field.
    fn inner(&self, owner: Owner) -> Option<StructId> {
        match owner {
            Owner::Struct(id) => Some(id),
            Owner::Member(id) => Some(self.get(id).inner),
            _ => None,
        }
    }

    fn popular(&self, functions: &[Function], most: usize) -> FxHashSet<(StructId, Name)> {
        let mut counts: FxHashMap<(StructId, Name), (usize, u32)> = FxHashMap::default();
        for (number, function) in functions.iter().enumerate() {
            for access in &function.accesses {
                let Some(inner) = self.inner(access.owner) else { continue };
                let (last, count) = counts.entry((inner, access.field)).or_insert((usize::MAX, 0));
                if *last != number {
                    (*last, *count) = (number, *count + 1);
                }
            }
        }
        let popular = counts.into_iter().filter(|(_, (_, count))| *count as usize > most);
        popular.map(|(field, _)| field).collect()
    }
}
