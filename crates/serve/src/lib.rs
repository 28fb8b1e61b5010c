//! Front ends over [`investigate::debugging`], each a thin folder that speaks somebody else's protocol: [`gdb`], [`dap`] for
//! editors, [`mcp`] for agents. [`commands`] are what goes beyond their own, as lines of text.

#![forbid(unsafe_code)]

pub mod commands;
pub mod dap;
pub mod gdb;
pub mod mcp;
mod recorder;
