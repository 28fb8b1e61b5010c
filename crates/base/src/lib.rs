//! The vocabulary that every other crate speaks: addresses, the one model of a **finding** that all
//! analyses report in, and what is known of every program: its allocators ([`allocator`]), and whose
//! code a file holds ([`module_kind`]).
//!
//! This crate does no I/O and knows nothing of how programs are run, recorded or analysed.
#![forbid(unsafe_code)]

pub mod address;
pub mod allocator;
pub mod finding;
pub mod module_kind;

pub use address::{Address, Range};
pub use finding::{Confidence, Finding, Place, Step};
pub use module_kind::ModuleKind;
