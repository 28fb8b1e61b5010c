//! Calls of functions that allocate and free, as far as all screens that follow them agree.

use crate::runner::address_map::AddressMap;
use crate::runner::guest;
use crate::runner::memory::Mapping;
use events::plan::{HeapFunction, HeapRole, ORDINARY_SIZES};
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of an allocator's code that may lie before the first function that others call.
const BEFORE: u64 = 16 << 10;

/// A function that is followed.
#[derive(Clone, Copy)]
pub struct Followed {
    /// What it does.
    pub role: HeapRole,
    /// Whose it is.
    pub family: u8,
    /// Whether it hands out blocks of zeros.
    pub zeroed: bool,
}

impl Followed {
    /// Whether it frees its first argument.
    pub fn frees(&self) -> bool {
        matches!(self.role, HeapRole::Free | HeapRole::Resize(..))
    }

    /// Whether a call is invalid, that frees a live block of this family.
    pub fn is_invalid_call(&self, arguments: &[u64; 6], freed: Option<u8>) -> bool {
        let size = match self.role {
            HeapRole::Allocate(size, count) | HeapRole::Resize(size, count) => {
                bytes(arguments, size, count)
            }
            HeapRole::AllocateTo(size) => bytes(arguments, size, None),
            HeapRole::AllocateFixed(_) | HeapRole::Free | HeapRole::Measure | HeapRole::Tend => 0,
        };
        let frees = self.frees() && arguments[0] != 0;
        !ORDINARY_SIZES.contains(&size) || frees && freed != Some(self.family)
    }

    /// What a call has done that has returned this.
    pub fn outcome(&self, arguments: &[u64; 6], value: u64) -> Outcome {
        let block = |begin, size| Outcome::Block { begin, size };
        match self.role {
            HeapRole::Allocate(size, count) => block(value, bytes(arguments, size, count)),
            HeapRole::AllocateFixed(size) => block(value, size),
            HeapRole::Resize(size, count) => match bytes(arguments, size, count) {
                wanted if value == 0 && wanted > 0 => Outcome::Failed,
                wanted => block(value, wanted),
            },
            HeapRole::AllocateTo(size) if value == 0 => {
                let stored = guest::read_u64(arguments[0]).unwrap_or(0);
                block(stored, bytes(arguments, size, None))
            }
            HeapRole::Measure => Outcome::Measured { begin: arguments[0], usable: value },
            HeapRole::AllocateTo(_) | HeapRole::Free | HeapRole::Tend => Outcome::Nothing,
        }
    }
}

/// What a call has done to the heap, besides freeing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing.
    Nothing,
    /// There is a block, unless it begins at zero.
    Block {
        /// Where.
        begin: u64,
        /// Bytes.
        size: u64,
    },
    /// A block could not be resized: everything is as it was.
    Failed,
    /// So many bytes of a block may be used.
    Measured {
        /// Where it begins.
        begin: u64,
        /// How many.
        usable: u64,
    },
}

/// The bytes that a call asks for.
fn bytes(arguments: &[u64; 6], size: u8, count: Option<u8>) -> u64 {
    let count = count.map_or(1, |count| arguments[usize::from(count % 6)]);
    arguments[usize::from(size % 6)].saturating_mul(count)
}

/// A live block.
#[derive(Clone, Copy)]
pub struct HeapBlock {
    /// Bytes.
    pub size: u64,
    /// What may free it.
    pub family: u8,
}

impl HeapBlock {
    /// Where one ends that begins there.
    pub fn end(&self, begin: u64) -> u64 {
        begin + self.size
    }
}

/// The call of an allocator that a thread is in.
#[derive(Clone, Copy)]
pub struct Call {
    /// The function.
    pub followed: Followed,
    /// Where its return address stands.
    pub stack: u64,
    /// Its return address.
    pub back: u64,
    /// Its arguments.
    pub arguments: [u64; 6],
    /// The block that it frees.
    pub freed: Option<HeapBlock>,
}

impl Call {
    /// Whether one that begins now is made inside of it. One further up the stack than this is not:
    /// this one was left by a jump.
    pub fn holds(&self, stack: u64, back: u64) -> bool {
        // One that goes through the heap may allocate as anybody does.
        self.followed.role != HeapRole::Tend && is_inside((stack, back), (self.stack, self.back))
    }
}

/// Whether a call is made inside of another, by where their return addresses stand and what they are: at the
/// same height, to return to the same place, it is a tail call.
pub fn is_inside(inner: (u64, u64), outer: (u64, u64)) -> bool {
    inner.0 < outer.0 || inner == outer
}

/// The functions that a screen follows.
#[derive(Default)]
pub struct Allocators {
    names: BTreeMap<String, HeapFunction>,
    functions: AddressMap<Followed>,
}

impl Allocators {
    /// The functions that a plan lists.
    pub fn arrange(&mut self, functions: &[HeapFunction]) {
        self.names = functions.iter().map(|one| (one.name.clone(), one.clone())).collect();
        for function in functions {
            for address in function.at.iter().flatten() {
                self.add(*address, &function.name);
            }
        }
    }

    /// A function has been found: what it is, if it is followed.
    pub fn add(&mut self, address: u64, name: &str) -> Option<Followed> {
        let HeapFunction { role, family, zeroed, .. } = self.names.get(name)?;
        let followed = Followed { role: *role, family: *family, zeroed: *zeroed };
        self.functions.insert(address, followed);
        Some(followed)
    }

    /// What is at an address.
    pub fn get(&self, function: u64) -> Option<Followed> {
        self.functions.get(&function).copied()
    }

    /// All that have been found.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Followed)> {
        self.functions.iter().map(|(function, followed)| (*function, *followed))
    }

    /// Whether code of the C library is the allocator's: it lies between functions that are followed, or not
    /// far before them. What the library does when a thread ends it does there, though nobody has called these.
    pub fn is_own(&self, pc: u64, library: &Range<u64>) -> bool {
        let inside = || self.functions.keys().filter(|function| library.contains(function));
        inside().any(|function| *function <= pc + BEFORE) && inside().any(|function| *function > pc)
    }
}

/// Whether code is the C library's, whose string functions read past ends on purpose.
pub fn is_c_library(mapping: &Mapping) -> bool {
    let path = mapping.file.as_deref();
    path.is_some_and(|path| base::ModuleKind::of(path).is_c_library())
}
