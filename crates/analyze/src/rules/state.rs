//! The abstract machine as rules see it. The detector's machine and the reference interpreter of
//! the tests both implement [`State`]; evaluation knows neither.

use super::model::{EventKind, Set};

pub use crate::model::blocks::{BlockFacts, BlockId};

/// A pointer: where it points, and which block it was made from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Pointer {
    /// Where it points.
    pub address: u64,
    /// The block it was made from.
    pub block: Option<BlockId>,
}

/// A value of the language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A pointer.
    Pointer(Pointer),
    /// A block.
    Block(BlockId),
    /// A number or a time.
    Number(i128),
    /// A function.
    Function(String),
    /// Where a value came from; compared as text.
    Origin(String),
}

/// An answer that may not be to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<T> {
    /// This.
    Is(T),
    /// There is no such thing: comparisons with it do not hold.
    Nothing,
    /// It was not observed: what depends on it cannot be decided.
    NotKnown,
}

/// An event of the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    /// When.
    pub time: u64,
    /// Its arguments, as [`EventKind::ALL`] lists them.
    pub arguments: Vec<Value>,
}

/// What a visitor wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    /// The next one.
    More,
    /// No more.
    Enough,
}

/// The abstract machine at a detection point.
pub trait State {
    /// What is known of a block.
    fn facts(&self, block: BlockId) -> Option<BlockFacts>;

    /// What stands in memory at an address, in this many bytes.
    fn contents(&self, address: u64, size: u64) -> Answer<i128>;

    /// The bytes of the access at this point.
    fn width(&self) -> u64;

    /// The family of the function that frees at this point.
    fn releaser(&self) -> base::allocator::Family;

    /// Goes through a set. With a key, pointers into other blocks may be left out.
    fn each(&self, set: Set, key: Option<&Value>, visit: &mut dyn FnMut(Value) -> Visit);

    /// Goes through the events of a kind, oldest first or newest first. With a key, events whose
    /// key argument ([`EventKind::key_argument`]) differs may be left out.
    fn events(
        &self,
        kind: EventKind,
        key: Option<&Value>,
        newest_first: bool,
        visit: &mut dyn FnMut(&TraceEvent) -> Visit,
    );
}

/// The page at address zero, which nothing is ever mapped to: a pointer into it was made from NULL.
pub const NULL_PAGE: u64 = 4096;

impl Pointer {
    /// Whether it is NULL or a small step from it.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.block.is_none() && self.address < NULL_PAGE
    }
}
