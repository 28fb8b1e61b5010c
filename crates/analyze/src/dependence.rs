//! A window of execution, prepared so that dependences can be followed through it backwards.
//!
//! What is kept is the event stream itself, not a graph: a record says by which exit a superblock
//! was left and holds the few addresses that cannot be derived, so an instruction costs a byte or
//! two. Everything that is the same for all executions of a superblock (which register parts each
//! of its instructions defines and uses, which of its accesses write) is worked out once, when it
//! is first seen. Going backwards over the records is then cheap: most are passed after one look
//! at the parts that their exit defines and at the addresses that it stores to.
//!
//! Parts: [`block`] (static facts of superblocks), [`compact`] (those of simple instructions, for
//! quick use), [`trace`] (the consumer, and reading backwards), [`control`] (control dependence),
//! [`query`] (finding moments), [`active`] (calls that have not returned), `calls` (what the stack
//! of calls does that plain calls and returns do not tell), [`stack`] (what instructions do to the
//! stack pointer), [`system_calls`] (what the kernel defines), [`wanted`] (sets of bytes).

pub mod active;
pub mod block;
pub mod calls;
pub mod compact;
pub mod control;
pub mod query;
pub mod stack;
pub mod system_calls;
pub mod trace;
pub mod wanted;

pub use block::{Exit, Static, Superblock};
pub use trace::Trace;
