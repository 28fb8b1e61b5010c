//! Proves or refutes that a concurrent data structure, written as sequences of atomic
//! sub-operations, is linearizable.
#![forbid(unsafe_code)]

pub mod language;
pub mod model;
