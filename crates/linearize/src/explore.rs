//! The refutation: real interleavings of a few operations on a real heap, each history checked
//! exactly.
//!
//! [`machine`] executes sub-operations ([`kinds`] tells which touch what), [`search`] walks the
//! interleavings, [`monitor`] knows whether some sequential order of the same operations gives the
//! same results, where the sequential behaviour is the specification's own or that of an object
//! ([`meaning`]); [`history`] is what is reported when there is none. [`survey`] runs operations
//! one after the other and tells what is odd about them even then.

mod fingerprint;
pub mod history;
pub mod kinds;
pub mod machine;
pub mod meaning;
pub mod monitor;
pub mod search;
pub mod survey;
