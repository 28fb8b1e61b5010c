//! Analyses of an execution: each consumes events, one folder an analysis. None knows the engine.
#![forbid(unsafe_code)]

pub mod rules;
