//! Random differential tests per instruction form: makes, from a seed, a static ELF program of
//! many small **cases**. A case loads every register, the flags, MXCSR, the x87 state, ymm0-15
//! and some memory with random values, executes one instruction (often between a few harmless
//! neighbours), and digests everything it left behind, a signal's frame included.
//!
//! The program prints one record a case; run natively and under an engine, the two outputs must
//! be the same bytes. Parts:
//! - `layout`: the fixed addresses that generator and runtime share;
//! - `forms`: which instruction forms are drawn from;
//! - `builder`: the state of a case under construction;
//! - `operands`: random operands for a form;
//! - `special`: what single instructions need beyond operands;
//! - `case`: puts one case together;
//! - `program`: lays cases out and builds the ELF from them and `runtime/`;
//! - `compare`: runs a program natively and under a tool and finds the disagreements.

mod builder;
mod case;
pub mod compare;
pub mod forms;
mod layout;
mod operands;
pub mod program;
mod special;

pub use case::Case;
pub use compare::{Comparison, Disagreement, Tool};
pub use forms::Forms;
pub use program::Program;

use std::ops::Range;

/// The memory that cases read and write.
pub const SCRATCH: Range<u64> = layout::SCRATCH..layout::SCRATCH + layout::SCRATCH_SIZE;
/// Where a case goes when it is done.
pub const EXITS: Range<u64> = layout::CODE..layout::CODE + layout::EXITS * layout::EXIT_SIZE;
