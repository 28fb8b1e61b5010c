//! **Screens**: inline tests that let the ordinary pass.
//!
//! Each kind has a variant of [`Screen`] that holds all it needs, and is refused with those kinds that it
//! cannot share the engine's tables with ([`super::Conflict`]). What they stop is a
//! [`Suspicion`](crate::Suspicion).

use serde::{Deserialize, Serialize};
use std::ops::{Range, RangeInclusive};

/// One kind of screen, and what it is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Screen {
    /// Accesses against a shadow of memory that the host paints.
    Shadow(Shadow),
    /// Accesses, and addresses that are made from pointers, against the blocks of the heap.
    Heap(Heap),
    /// Calls of allocators against a table of all blocks.
    Allocations(Allocations),
    /// What is compared, or handed to the kernel, against what poisoned memory holds.
    Poison(Poison),
}

/// The **shadow** of an address: one byte for each eight of the guest's. All of it is zero at first, and
/// zero lets an access pass. Seven bits are the plan's to use, not 0x80.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Shadow {
    /// Bits that make a read a suspicion.
    pub reads: u8,
    /// Bits that make a write a suspicion.
    pub writes: u8,
    /// What is painted before the guest starts.
    pub paint: Vec<Paint>,
}

/// Bytes of the guest that share one byte of the shadow.
pub const GRANULE: u64 = 8;

/// Shadow bits of a range of the guest's memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paint {
    /// Which memory; every granule that it touches is painted.
    pub range: Range<u64>,
    /// Its shadow from now on.
    pub bits: u8,
}

/// The runner paints the blocks of the heap into a shadow where and when they come and go: an access next
/// to a block or to a freed one is a suspicion, and so is an **invalid call** of an allocator. What
/// allocators do themselves is not tested.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Heap {
    /// Functions that allocate and free.
    pub functions: Vec<HeapFunction>,
    /// Whether an address that is made from a pointer into one block must not lie in another.
    pub provenance: bool,
}

/// Invalid calls of allocators alone: something is freed that is not the beginning of a live block of the
/// same family, or a size is not one of [`ORDINARY_SIZES`]. Translated code keeps a table of all blocks, so
/// that ordinary calls cost next to nothing, and an invalid one is reported with the history of its block.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Allocations {
    /// Functions that allocate and free.
    pub functions: Vec<HeapFunction>,
}

/// Memory that these functions hand out, and that a function makes room for on its stack, holds [`POISON`]
/// until it is written; who compares that, or gives it to the kernel, is a suspicion. For replays alone:
/// they go on though registers, stack and data are not what they were, and differ from the recording as
/// soon as what nobody wrote has made a difference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Poison {
    /// Functions that allocate and free.
    pub functions: Vec<HeapFunction>,
}

/// What poisoned memory holds, in every four bytes of it. A large number whatever its size, and no address;
/// no byte of it is zero.
pub const POISON: u32 = 0x5ca1_ab1e;

/// Sizes that nobody wonders about.
pub const ORDINARY_SIZES: RangeInclusive<u64> = 0..=1 << 46;

/// A function that allocates or frees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeapFunction {
    /// As the linker knows it.
    pub name: String,
    /// What it does.
    pub role: HeapRole,
    /// What one family allocates only it may free.
    #[serde(default)]
    pub family: u8,
    /// Whether it hands out blocks of zeros.
    #[serde(default)]
    pub zeroed: bool,
    /// Where it is, if that is known beforehand; else the host looks for its name in every module.
    #[serde(default)]
    pub at: Option<Vec<u64>>,
}

/// What a function does to the heap.
pub use base::allocator::Role as HeapRole;

impl HeapFunction {
    /// A function of an allocator, wherever it may be.
    #[must_use]
    pub fn new(name: &str, allocator: base::allocator::Allocator) -> Self {
        let base::allocator::Allocator { role, family, zeroed } = allocator;
        Self { name: name.to_owned(), role, family, zeroed, at: None }
    }
}

impl Screen {
    /// Its name, for messages.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Shadow(_) => "shadow",
            Self::Heap(_) => "heap",
            Self::Allocations(_) => "allocations",
            Self::Poison(_) => "poison",
        }
    }

    /// Functions whose calls it follows. They are not written to the stream for that.
    #[must_use]
    pub fn functions(&self) -> &[HeapFunction] {
        match self {
            Self::Shadow(_) => &[],
            Self::Heap(Heap { functions, .. })
            | Self::Allocations(Allocations { functions })
            | Self::Poison(Poison { functions }) => functions,
        }
    }

    /// Whether every access is tested, as far as the scope goes.
    #[must_use]
    pub fn tests_accesses(&self) -> bool {
        matches!(self, Self::Shadow(_) | Self::Heap(_))
    }

    /// Forgets what is about addresses of one program.
    pub(super) fn forget_addresses(&mut self) {
        match self {
            Self::Shadow(shadow) => shadow.paint.clear(),
            Self::Heap(Heap { functions, .. })
            | Self::Allocations(Allocations { functions })
            | Self::Poison(Poison { functions }) => {
                functions.retain(|function| function.at.is_none());
            }
        }
    }
}
