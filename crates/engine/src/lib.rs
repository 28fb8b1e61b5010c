//! The engine: runs an unmodified x86-64 Linux program from a code cache and sees everything.
//!
//! Two processes take part. The **host** ([`host`]) is an ordinary process that starts, observes
//! and outlives the guest. The **runner** ([`runner`]) is the same executable, started again; it
//! loads the guest into its own address space and runs translations of its code.
//!
//! A binary that uses this crate becomes a runner before its `main` when the environment asks for
//! it, and so has the runner's heap as its allocator: it cannot be left out by mistake.
//!
//! This crate knows nothing of analyses or symbols.

pub mod config;
pub mod control;
pub mod host;
pub mod image;
pub mod layout;
pub mod listen;
pub mod log_listen;
pub mod log_ring;
pub mod processor;
pub mod report;
pub mod ring;
pub mod runner;
pub mod sys;

pub use runner::emulate::is_emulated;

#[global_allocator]
static ALLOCATOR: runner::arena::Allocator = runner::arena::Allocator;
