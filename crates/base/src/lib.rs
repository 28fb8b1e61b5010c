//! The vocabulary that every other crate speaks: addresses, threads, ticks, and the one model of
//! a **finding** that all analyses report in.
//!
//! This crate does no I/O and knows nothing of how programs are run, recorded or analysed.
#![forbid(unsafe_code)]

pub mod address;
pub mod finding;

pub use address::{Address, Range};
pub use finding::{Confidence, Finding, Place, Step};
