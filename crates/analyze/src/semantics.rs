//! What an instruction does to data: which register parts and memory it defines, from which it
//! makes them, and which definitions are mere copies.
//!
//! The unit of memory is the byte; that of registers a **part** ([`Parts`]): general registers
//! are cut where instructions cut them (bytes 0, 1, 2–3, 4–7), vectors into lanes of four bytes,
//! flags are single, the x87 stack is one. iced-x86 tells what an instruction touches; the tables
//! here tell how its results hang on its operands, which that is too coarse for.
//!
//! Three conventions that everything built on this shares:
//! - **The stack pointer is a position, not data.** RSP is in no set, so addresses of locals and
//!   pushes do not hang on every push before them, and `mov rbp, rsp` makes a frame pointer out
//!   of nothing.
//! - Results that do not hang on their operands (`xor r,r`, `sbb` apart from its carry) use none.
//! - Where the processor leaves a result undefined it is taken to be made from the operands.
//!
//! Parts: [`parts`] (sets of register parts), [`meaning`] (the description of one instruction and
//! the general rule that makes it), `copies`, `vectors` and `implicit` (the tables).

mod builder;
mod copies;
mod implicit;
pub mod meaning;
pub mod parts;
mod vectors;

pub use meaning::{Flow, Form, How, Meaning, Operand, Shuttle, Side, Span, StringOp, Uses};
pub use parts::{Parts, general_bits, general_bytes};
