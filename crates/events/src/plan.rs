//! An **observation plan**: what an analysis wants to see of a guest, and what it wants altered.
//!
//! Every item stands for itself: whoever wants only the calls of `malloc` pays only for those. A
//! plan is plain data; the engine turns it into code. [`crate::record`] says what each item
//! becomes in the stream.

use crate::patch::Patch;
use serde::{Deserialize, Serialize};
use std::ops::{Range, RangeInclusive};

/// What to observe. Nothing by default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Plan {
    /// Which blocks were executed, and by which exit they were left.
    pub blocks: bool,
    /// The address of every memory access; implies `blocks`.
    pub memory: bool,
    /// What was read and written: values before reads and after writes, of up to 32 bytes; implies
    /// `memory`. Repeated string instructions, gathers and masked moves have none.
    pub values: bool,
    /// Ticks are counted, as recording needs it.
    pub ticks: bool,
    /// System calls, with what they read and wrote.
    pub syscalls: Syscalls,
    /// Forks, so that who follows the parent can go on with each child from where it was made.
    pub forks: bool,
    /// Accesses are tested, and only those that fail the test become events.
    pub filter: Option<Filter>,
    /// Places where registers are wanted.
    pub probes: Vec<Probe>,
    /// Functions whose entries and returns are wanted, by address.
    pub functions: Vec<u64>,
    /// The same by name, in whatever module they turn up; the host looks them up.
    pub names: Vec<String>,
    /// Only instructions in these ranges are observed by `blocks`, `memory` and `filter`; all if
    /// there are none.
    pub code: Vec<Range<u64>>,
    /// Only these threads are observed so; all if there are none.
    pub threads: Vec<u32>,
    /// What is altered.
    pub patches: Vec<Patch>,
    /// Functions that allocate and free, which must be among `names`, or be known
    /// by address and among `functions`. With a filter their blocks are
    /// painted into its shadow where and when they come and go, and what these functions do themselves
    /// is not tested.
    pub heap: Vec<HeapFunction>,
    /// Calls of those functions are not events but where they are **unusual**: something is freed that
    /// is not the beginning of a live block of the same family, or a size is not one of
    /// [`ORDINARY_SIZES`]. Each such call is a suspicion; without a filter it is told, as an event
    /// that is [`UNUSUAL`] says.
    pub quiet: bool,
    /// Memory that those functions hand out, and that a function makes room for on its stack, holds
    /// [`SCRAMBLED`] until it is written; who compares that, or gives it to the kernel, is a suspicion. For
    /// replays alone: they go on though registers, stack and data are not what they were, and differ from
    /// the recording as soon as what nobody wrote has made a difference.
    pub scramble: bool,
}

/// What scrambled memory holds, in every four bytes of it. A large number whatever its size, and no address;
/// no byte of it is zero.
pub const SCRAMBLED: u32 = 0x5ca1_ab1e;

/// Sizes that nobody wonders about.
pub const ORDINARY_SIZES: RangeInclusive<u64> = 0..=1 << 46;

/// A function that allocates or frees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeapFunction {
    /// As the linker knows it.
    pub name: String,
    /// What it does.
    pub role: HeapRole,
    /// What one family allocates only it may free.
    #[serde(default)]
    pub family: u8,
    /// Whether it hands out blocks of zeros.
    #[serde(default)]
    pub zeroed: bool,
    /// Where it is, as far as that is known beforehand.
    #[serde(default)]
    pub at: Vec<u64>,
}

/// What a function does to the heap.
pub use base::allocator::Role as HeapRole;

impl HeapFunction {
    /// A function of an allocator, wherever it may be.
    #[must_use]
    pub fn new(name: &str, allocator: base::allocator::Allocator) -> Self {
        let base::allocator::Allocator { role, family, zeroed } = allocator;
        Self { name: name.to_owned(), role, family, zeroed, at: Vec::new() }
    }
}

/// Shadow of memory that was freed.
pub const FREED: u8 = 1;
/// Shadow of the granules before and behind a block.
pub const BETWEEN: u8 = 2;
/// Shadow of a granule of which only the first bytes belong to a block.
pub const TAIL: u8 = 4;
/// Not a shadow: the suspicion is an unusual call of an allocator.
pub const CALL: u8 = 8;
/// Not a shadow: an unusual call of an allocator comes next; before it calls that made, and maybe freed, the
/// block that it is given. Of other blocks nothing is known any more.
pub const UNUSUAL: u8 = 64;
/// Not a shadow: an address lies in another block than the pointer that it was made from.
pub const STRAY: u8 = 16;
/// Not a shadow: something that nobody wrote is compared, or handed to the kernel.
pub const UNWRITTEN: u8 = 32;

/// What of system calls is written to the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Syscalls {
    /// Number, arguments and answer, where anything is written at all.
    #[default]
    Answers,
    /// Also the ranges of memory that the kernel read and wrote; of what it read, buffers and texts,
    /// not structures of parameters.
    Ranges,
    /// Also the bytes that were in them.
    Bytes,
}

/// An inline test of every access against a table that runner and host share; an event only where
/// it fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Filter {
    /// The **shadow** of an address: one byte for each eight of the guest's. All of it is zero at
    /// first, and zero lets an access pass. Seven bits are the plan's to use, not 0x80.
    Shadow {
        /// Bits that make a read an event.
        reads: u8,
        /// Bits that make a write an event.
        writes: u8,
        /// What is painted before the guest starts.
        paint: Vec<Paint>,
    },
}

/// Bytes of the guest that share one byte of the shadow.
pub const GRANULE: u64 = 8;

/// Shadow bits of a range of the guest's memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paint {
    /// Which memory; every granule that it touches is painted.
    pub range: Range<u64>,
    /// Its shadow from now on.
    pub bits: u8,
}

/// Registers wanted whenever the instruction at a place is about to execute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// Address of the instruction.
    pub pc: u64,
    /// Which registers: bit N for the general register that the processor numbers N (rax, rcx,
    /// rdx, rbx, rsp, rbp, rsi, rdi, r8 …), bit 16 for the flags.
    pub registers: u32,
}

/// All general registers and the flags.
pub const ALL_REGISTERS: u32 = 0x1_ffff;

/// The allocation functions of C and C++ as the symbol tables of x86-64 spell them.
pub const ALLOCATION_FUNCTIONS: [&str; 38] = [
    "malloc",
    "free",
    "calloc",
    "realloc",
    "reallocarray",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "valloc",
    "pvalloc",
    "_Znwm",
    "_ZnwmRKSt9nothrow_t",
    "_ZnwmSt11align_val_t",
    "_ZnwmSt11align_val_tRKSt9nothrow_t",
    "_Znam",
    "_ZnamRKSt9nothrow_t",
    "_ZnamSt11align_val_t",
    "_ZnamSt11align_val_tRKSt9nothrow_t",
    "_ZdlPv",
    "_ZdlPvm",
    "_ZdlPvRKSt9nothrow_t",
    "_ZdlPvSt11align_val_t",
    "_ZdlPvmSt11align_val_t",
    "_ZdlPvSt11align_val_tRKSt9nothrow_t",
    "_ZdaPv",
    "_ZdaPvm",
    "_ZdaPvRKSt9nothrow_t",
    "_ZdaPvSt11align_val_t",
    "_ZdaPvmSt11align_val_t",
    "_ZdaPvSt11align_val_tRKSt9nothrow_t",
    "strdup",
    "strndup",
    "__strdup",
    "__strndup",
    "asprintf",
    "vasprintf",
    "getline",
    "getdelim",
];

impl Plan {
    /// Every instruction with the addresses of its accesses.
    pub fn everything() -> Self {
        Self { blocks: true, memory: true, ..Self::default() }
    }

    /// Whether anything is written to the event stream.
    pub fn emits(&self) -> bool {
        self.weaves()
            || self.filter.is_some()
            || self.scramble
            || self.syscalls != Syscalls::Answers
            || !(self.probes.is_empty() && self.functions.is_empty() && self.names.is_empty())
    }

    /// Whether translated code itself writes records.
    pub fn weaves(&self) -> bool {
        self.blocks || self.observes_accesses()
    }

    /// Whether translations need to know the accesses of instructions.
    pub fn needs_accesses(&self) -> bool {
        self.observes_accesses() || self.filter.is_some() || self.scramble
    }

    /// Whether accesses are written to the stream, passed or not.
    pub fn observes_accesses(&self) -> bool {
        self.memory || self.values
    }

    /// Whether blocks of the heap are only looked up when an unusual call is told.
    pub fn has_ledger(&self) -> bool {
        let observes = self.needs_accesses() || self.blocks || self.scramble;
        self.quiet && !self.heap.is_empty() && !observes
    }

    /// Whether an instruction is in the code that is observed.
    pub fn covers(&self, pc: u64) -> bool {
        self.code.is_empty() || self.code.iter().any(|range| range.contains(&pc))
    }

    /// Whether a thread is observed.
    pub fn covers_thread(&self, thread: u32) -> bool {
        self.threads.is_empty() || self.threads.contains(&thread)
    }

    /// What of the plan holds for another program: nothing that is about addresses of this one.
    #[must_use]
    pub fn for_another_program(&self) -> Self {
        let mut plan = if self.code.is_empty() { self.clone() } else { self.outside() };
        (plan.probes, plan.functions) = (Vec::new(), Vec::new());
        (plan.code, plan.patches) = (Vec::new(), Vec::new());
        if let Some(Filter::Shadow { paint, .. }) = &mut plan.filter {
            paint.clear();
        }
        plan
    }

    /// What is left of the plan where code or thread are not observed.
    #[must_use]
    pub fn outside(&self) -> Self {
        Self { blocks: false, memory: false, values: false, filter: None, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_of_an_older_host_is_understood() {
        let plan: Plan = serde_json::from_str(r#"{"blocks":true}"#).expect("a plan");
        assert_eq!(plan, Plan { blocks: true, ..Plan::default() });
        assert!(plan.emits() && !plan.memory);
    }

    #[test]
    fn ranges_and_threads_restrict() {
        let mut plan = Plan::everything();
        assert!(plan.covers(5) && plan.covers_thread(7));
        plan.code = vec![10..20, 30..40];
        plan.threads = vec![3];
        assert!(plan.covers(19) && !plan.covers(20) && plan.covers(30));
        assert!(plan.covers_thread(3) && !plan.covers_thread(7));
        assert!(!plan.outside().weaves());
        assert!(!plan.for_another_program().emits());
        assert!(Plan::everything().for_another_program().memory);
    }
}
