//! The **allocations** screen: calls of allocators against a table of all blocks, for rules that only
//! invalid calls can break. The table has of every block its size, its family, who allocated it and who
//! freed it.
//!
//! Ordinary calls are not reported. They are not even looked at here: translated code enters them in the
//! table by itself. Whatever is not quite ordinary comes here by way of [`crate::runner::follow`]. A call
//! that is invalid is reported with all that is known of the block that it frees, as if that block was all that
//! there ever was: so whoever reads the stream needs no history.

mod arrange;
mod inline;
mod look;

pub use arrange::{Allocations, Asked, Deed, Line, UnderWay};
pub use look::{Call, put_aside, stack_of};
