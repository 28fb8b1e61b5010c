//! The file that a **recording** is.

#![forbid(unsafe_code)]

pub mod log;
