//! Slices for a reader: statements and dependences as text, a graph, a list of instructions, or pages to
//! walk through.

pub mod dot;
pub mod instructions;
pub mod pager;
pub mod text;
