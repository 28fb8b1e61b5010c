//! Oracles for the engine, for tests only: slow and obvious references to compare it with.
//!
//! - [`singlestep`] runs a program one instruction at a time with ptrace and tells what each
//!   instruction did. The engine's event stream must say the same.
//! - [`fuzzcases`] makes programs of random instruction cases. Run natively and under the engine
//!   they must print the same bytes.
//! - [`syscallwrites`] finds out what each system call of a program wrote into its memory. The
//!   engine's table must have said so.
//!
//! Nothing here is linked into the tool, and nothing here knows how the engine works.
#![forbid(unsafe_code)]

pub mod fuzzcases;
pub mod programs;
pub mod random;
pub mod singlestep;
pub mod syscallwrites;
