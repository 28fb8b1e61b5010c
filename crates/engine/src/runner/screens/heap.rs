//! The **heap** screen: accesses against the blocks of the guest's heap, which are painted into the
//! [shadow](super::shadow) as they come and go.
//!
//! The host would be too late: it hears of an allocation when a buffer is full. So the functions that the
//! plan lists are followed here, where they are entered and where they return. While a thread is inside one
//! it tests against a blank table: allocators live between blocks and in freed ones.
//!
//! What a granule cannot tell is looked up: which bytes of a block's last granule are its own, and whether a
//! vector of the C library's string functions, which read past ends on purpose, touches a block at all.
//! Accesses that land in another live block show nothing in the shadow: [`super::provenance`] is for those.

mod arrange;
mod inline;
mod library;
mod look;

pub use arrange::{Heap, shadow_of};
pub use inline::{are_tested_apart, cover, is_whole, shorten};
pub use library::{LibraryCall, USED, checks as library_checks};

/// Shadow of memory that was freed.
const FREED: u8 = 1;
/// Shadow of the granules before and behind a block.
const BESIDE: u8 = 2;
/// Shadow of a granule of which only the first bytes belong to a block.
const TAIL: u8 = 4;
