//! The **provenance** screen: an address that is made from a pointer into one block of the heap must not be
//! in another, be the other alive or not; the [shadow](super::shadow) shows nothing there. It is part of the
//! [heap](super::heap) screen, which knows the blocks.
//!
//! Blocks have small numbers, their **memory tags**. Translated code compares the tag of an address with
//! that of the pointer it was made from; where they differ, the look asks the heap whether the blocks do.

pub mod addresses;
mod arrange;
mod inline;
mod look;

pub use addresses::VECTOR;
pub use arrange::{differ, map, mask, settle, tag, untag};
pub use inline::Unlike;
