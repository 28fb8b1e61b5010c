//! Slices for a reader: statements and dependences as text, a graph, a list of instructions.

pub mod dot;
pub mod instructions;
pub mod text;
