//! Analyses of what a guest did: one folder each. They consume events and static facts of the
//! program, and know neither the engine nor how their answers are shown.
#![forbid(unsafe_code)]

pub mod dependence;
pub mod hijack;
pub mod leaks;
pub mod model;
pub mod races;
pub mod rules;
pub mod semantics;
pub mod slice;
