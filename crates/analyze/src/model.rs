//! A model of the process that events come from: what every analysis has to know before it can say
//! anything.
//!
//! - [`threads`]: who runs, under small numbers that are the same in every replay;
//! - [`calls`]: the active calls of a thread; [`stacks`]: those worth keeping;
//! - [`blocks`]: blocks of memory and what became of each; [`heap`]: what allocators do to them;
//! - [`mappings`]: the table of mapped memory;
//! - [`variables`]: variables with static storage;
//! - [`process`]: all of it, following a stream by itself.
//!
//! Each part is told what happened and asked what is so, knows none of the analyses, and little of the
//! other parts. An analysis that needs more of a frame, a thread or a block than the part keeps gives the
//! part a type of its own to carry along. [`process::Process`] puts the parts together for whoever just
//! wants to know: it takes events and nothing else. Rules, which must ask *before* something happens and
//! follow values besides, and slices, which keep a trace, drive the parts themselves.

pub mod blocks;
pub mod calls;
pub mod heap;
pub mod mappings;
pub mod process;
pub mod stacks;
pub mod threads;
pub mod variables;
