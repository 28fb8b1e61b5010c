//! Bug rules: detectors and root-cause chains from a few lines of logic.
//!
//! A rule `<detection point; bug condition; locator>` ([`language`], [`model`]) speaks of an
//! abstract machine: a heap of blocks that are never the same twice, pointers that remember the
//! block they were made from, and a trace of what happened ([`state`]). It is compiled: what must
//! be observed for it ([`needs`]), in which situations of an access it can hold at all
//! ([`screen`], [`ordinary`]), and a condition whose searches through the trace are index lookups
//! ([`evaluate`]).

pub mod detector;
pub mod evaluate;
pub mod hit;
pub mod language;
pub mod machine;
pub mod model;
pub mod needs;
pub mod ordinary;
pub mod report;
pub mod screen;
pub mod shipped;
pub mod state;
pub mod stream;
pub mod suppress;
