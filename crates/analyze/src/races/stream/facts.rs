//! What is known of a program before its stream is looked at.

use crate::races::channels::Writes;
use crate::races::shared::SharedLines;
use crate::races::sync::{Role, Success};
use base::allocator::Allocator;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// What is known of atomic accesses beforehand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Atomics {
    /// Words, each with the number of allocations before it came about.
    pub words: FxHashSet<(u64, u32)>,
    /// Instructions that access atomic variables by plain moves.
    pub instructions: FxHashSet<u64>,
}

/// What a locked instruction does to a lock that is nothing but an atomic word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockWord {
    /// Takes it if nobody has it; whoever does not get it here waits for it.
    Lock,
    /// Takes it if nobody has it.
    Try,
    /// Gives it back.
    Unlock,
}

/// What the analysis is told about the program.
#[derive(Clone, Default)]
pub struct Facts {
    /// Functions of the thread library.
    pub functions: FxHashMap<u64, Role>,
    /// When those have worked, where that is not by returning 0.
    pub successes: FxHashMap<u64, Success>,
    /// Functions of allocators.
    pub allocators: FxHashMap<u64, Allocator>,
    /// Code whose accesses do not count: the dynamic loader's.
    pub excused_code: Vec<Range<u64>>,
    /// Code of runtimes that synchronise by plain moves: its accesses order threads, as atomic ones do.
    pub runtime_code: Vec<Range<u64>>,
    /// Memory whose accesses do not count: the C library's own variables.
    pub excused_memory: Vec<Range<u64>>,
    /// File descriptors of pipes and pairs of sockets, and a number for those that belong together.
    pub channels: FxHashMap<i32, u64>,
    /// Writes through those from which somebody was back before the writer was.
    pub writes: Writes,
    /// Atomic accesses.
    pub atomics: Atomics,
    /// Instructions that take and give locks which are atomic words.
    pub lock_words: FxHashMap<u64, LockWord>,
    /// Memory that threads share, if that is known: accesses elsewhere do not matter.
    pub shared: Option<SharedLines>,
}
