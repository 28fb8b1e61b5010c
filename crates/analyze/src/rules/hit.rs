//! What a rule found, in addresses: everything that a report needs and that the machine would
//! forget.

use super::machine::chains::{Link, Stamp};
use base::Position;
use rustc_hash::FxHashMap;

/// What a hit is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// An access.
    Access {
        /// Where.
        address: u64,
        /// Bytes.
        size: u32,
        /// Whether it writes.
        write: bool,
    },
    /// What a function of the C library is about to do.
    Library {
        /// Its name.
        function: String,
        /// Where the bytes begin.
        address: u64,
        /// How many they are.
        length: u64,
        /// Whether it writes them.
        write: bool,
    },
    /// Memory that a system call is given and that cannot be accessed.
    Absent {
        /// The call.
        call: String,
        /// Where what it is given begins.
        address: u64,
        /// How many bytes that is.
        length: u64,
        /// The first of them that cannot be accessed.
        from: u64,
    },
    /// A use of a value that nobody wrote.
    Unwritten {
        /// Where the value was.
        address: u64,
        /// Bytes.
        size: u32,
        /// The instruction that read it.
        read: u64,
    },
    /// A release.
    Release {
        /// What was given to the function.
        address: u64,
    },
    /// An allocation.
    Allocation {
        /// The bytes that were asked for.
        size: u64,
    },
    /// A call or return of a function.
    Call(String),
    /// A descriptor.
    Descriptor {
        /// Its number.
        number: i64,
        /// By which calls it was opened.
        opened: Vec<u64>,
        /// By which calls it was closed.
        closed: Vec<u64>,
        /// Whether it is open.
        open: bool,
    },
    /// The end of the program.
    End,
}

/// Which variable a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    /// One in a frame of the function that the block was made by: so far from the frame's upper end.
    Local {
        /// Below 0.
        offset: i64,
    },
    /// Room that was made in a frame while its function ran: `alloca`, an array of variable length.
    Dynamic,
    /// One with static storage.
    Static,
    /// A thread's own.
    ThreadLocal {
        /// Bytes below the thread pointer.
        below: u64,
    },
}

/// What became of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockHistory {
    /// Its number.
    pub id: u32,
    /// First address.
    pub begin: u64,
    /// Bytes.
    pub size: u64,
    /// Family.
    pub family: base::allocator::Family,
    /// Whether it is one of the heap's.
    pub heap: bool,
    /// Whether it is a variable with static storage.
    pub global: bool,
    /// Whether it is memory that cannot be accessed.
    pub absent: bool,
    /// Whether it is a variable in a frame; else, if it is no other, a whole frame.
    pub local: bool,
    /// Which variable it is.
    pub variable: Option<Variable>,
    /// What it is called, once somebody has looked.
    pub name: Option<String>,
    /// By which calls it was made, innermost first: of a block in a frame, from the function itself on.
    pub allocated: Vec<u64>,
    /// By which calls it was freed.
    pub freed: Option<Vec<u64>>,
    /// When it was allocated, where ticks are counted.
    pub allocated_at: Option<Stamp>,
    /// When it was freed.
    pub freed_at: Option<Stamp>,
}

/// The chain of one pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// The rule's name for it.
    pub variable: String,
    /// From the newest copy to where it was made.
    pub links: Vec<Link>,
    /// Whether it goes back to before what was followed.
    pub cut: bool,
}

/// What a rule found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The rule.
    pub rule: String,
    /// What it calls its findings.
    pub title: String,
    /// Where, and by which calls, innermost first.
    pub stack: Vec<u64>,
    /// What about.
    pub subject: Subject,
    /// The block.
    pub block: Option<BlockHistory>,
    /// The chains that the rule asks for.
    pub chains: Vec<Chain>,
    /// Instructions executed before.
    pub time: u64,
    /// When exactly, if that is known.
    pub position: Option<Position>,
    /// The thread, as the kernel numbers it.
    pub thread: u32,
    /// How often.
    pub count: u64,
    /// All memory that it accessed, each time: from the lowest address to past the highest.
    pub extent: Option<(u64, u64)>,
    /// Whether what pointers were made from was guessed.
    pub guessed: bool,
}

impl Hit {
    /// The memory that it accesses: first address, and the first past it.
    #[must_use]
    pub fn touched(&self) -> Option<(u64, u64)> {
        match self.subject {
            Subject::Access { address, size, .. } => {
                Some((address, address.saturating_add(size.into())))
            }
            Subject::Library { address, length, .. } | Subject::Absent { address, length, .. } => {
                Some((address, address.saturating_add(length)))
            }
            _ => None,
        }
    }

    /// Whether it puts something where it does not belong.
    #[must_use]
    pub fn corrupts(&self) -> bool {
        matches!(
            self.subject,
            Subject::Access { write: true, .. }
                | Subject::Library { write: true, .. }
                | Subject::Release { .. }
        )
    }
}

/// Frames that make two hits the same.
const SAME_FRAMES: usize = 6;
/// Different hits that are kept; a program that scribbles everywhere has no use for more.
const MOST_HITS: usize = 10_000;

/// What two hits have in common if they are the same one again.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    rule: String,
    stack: Vec<u64>,
    allocated: Vec<u64>,
    descriptor: Option<i64>,
}

/// All hits, each once.
#[derive(Clone, Default)]
pub struct Hits {
    all: Vec<Hit>,
    known: FxHashMap<Key, usize>,
    /// Hits beyond what is kept.
    pub dropped: u64,
}

impl Hits {
    /// Adds a hit, or counts it. `inner` of its innermost frames make no difference.
    pub fn add(&mut self, hit: Hit, inner: usize) {
        let key = Key {
            rule: hit.rule.clone(),
            stack: hit.stack.iter().skip(inner).take(SAME_FRAMES).copied().collect(),
            allocated: match (&hit.subject, &hit.block) {
                // Lost blocks differ by who allocated them.
                (Subject::End | Subject::Call(_), Some(block)) => block.allocated.clone(),
                _ => Vec::new(),
            },
            descriptor: match hit.subject {
                Subject::Descriptor { number, .. } => Some(number),
                _ => None,
            },
        };
        if let Some(&index) = self.known.get(&key) {
            let known = &mut self.all[index];
            known.count += 1;
            known.extent = union(known.extent, hit.extent);
        } else if self.all.len() < MOST_HITS {
            self.known.insert(key, self.all.len());
            self.all.push(hit);
        } else {
            self.dropped += 1;
        }
    }

    /// All of them, in the order of the first of each.
    #[must_use]
    pub fn all(&self) -> &[Hit] {
        &self.all
    }
}

/// The smallest range that has both in it.
#[must_use]
pub fn union(one: Option<(u64, u64)>, other: Option<(u64, u64)>) -> Option<(u64, u64)> {
    match (one, other) {
        (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
        (one, other) => one.or(other),
    }
}
