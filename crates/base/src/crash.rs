//! A process at the moment of a fatal signal, as the engine reports it and everybody may explain it: plain
//! data, without a word or a name.

use crate::module::ModuleMap;
use serde::{Deserialize, Serialize};

/// The guest at the moment of a fatal signal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CrashReport {
    /// Process.
    pub process: i32,
    /// The process that started it.
    pub parent: i32,
    /// Thread.
    pub thread: i32,
    /// Name of the thread, as the kernel has it.
    pub name: String,
    /// The program.
    pub program: String,
    /// Signal number.
    pub signal: i32,
    /// `si_code`.
    pub code: i32,
    /// `si_addr`, where the processor raised the signal.
    pub address: u64,
    /// `si_pid`, where a process sent the signal.
    pub sender: i32,
    /// Trap number of the processor, where it raised the signal.
    pub trap: u64,
    /// Error code of that trap.
    pub error: u64,
    /// Program counter.
    pub pc: u64,
    /// RFLAGS.
    pub flags: u64,
    /// General registers in hardware order: rax rcx rdx rbx rsp rbp rsi rdi r8 … r15.
    pub general: [u64; 16],
    /// Base of FS.
    pub fs: u64,
    /// Files in memory.
    pub modules: Vec<ModuleMap>,
    /// What is mapped at `address`.
    pub at_address: Option<Region>,
    /// What is mapped at the stack pointer, or else next above it.
    pub at_stack: Option<Region>,
    /// Memory from the stack pointer upwards, around the code, and where registers lead to.
    pub memory: Vec<Chunk>,
}

/// A stretch of the guest's memory, as it was.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Chunk {
    /// Address of the first byte.
    pub start: u64,
    /// What was there.
    pub bytes: Vec<u8>,
}

/// A mapping of the guest's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// First address.
    pub start: u64,
    /// First address past the end.
    pub end: u64,
    /// `PROT_*` bits as the guest set them.
    pub protection: i32,
    /// The file behind it.
    pub file: Option<String>,
}
