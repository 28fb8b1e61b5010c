//! What a rule found, in addresses: everything that a report needs and that the machine would
//! forget.

use super::machine::chains::Link;
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
    /// Whether it is a variable in a frame; else, if it is no other, a whole frame.
    pub local: bool,
    /// By which calls it was made, innermost first.
    pub allocated: Vec<u64>,
    /// By which calls it was freed.
    pub freed: Option<Vec<u64>>,
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
    /// Whether what pointers were made from was guessed.
    pub guessed: bool,
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
            self.all[index].count += 1;
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
