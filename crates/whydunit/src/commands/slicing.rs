//! What `slice` and `why` share: an execution to ask about, questions from arguments, and how
//! statements are shown.

pub mod asking;
pub mod dot;
pub mod execution;
pub mod instructions;
pub mod late;
pub mod pager;
pub mod recursion;
pub mod save;
pub mod source;
pub mod text;
pub mod windows;
pub mod without;
