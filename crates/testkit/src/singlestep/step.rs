//! What one executed instruction did, as plain data.

use iced_x86::Code;
use serde::Serialize;

/// Whether an access reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessKind {
    /// The value is that before the instruction.
    Read,
    /// The value is that after the instruction.
    Write,
}

/// One access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Access {
    /// First byte.
    pub address: u64,
    /// Number of bytes.
    pub size: u32,
    /// Read or write.
    pub kind: AccessKind,
    /// Where in the step's values its bytes start.
    #[serde(skip)]
    pub(super) at: u32,
}

/// A system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SystemCall {
    /// RAX before.
    pub number: u64,
    /// RDI, RSI, RDX, R10, R8, R9 before.
    pub arguments: [u64; 6],
    /// RAX after; none if the call did not come back.
    pub result: Option<i64>,
}

/// Where execution went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Flow {
    /// To the next instruction.
    Next,
    /// A conditional branch, JRCXZ or LOOP; `target` is where it goes if taken.
    Branch {
        /// Whether it was taken.
        taken: bool,
        /// Where it leads.
        target: u64,
    },
    /// An unconditional jump.
    Jump {
        /// Where it went.
        target: u64,
        /// Whether through a register or memory.
        indirect: bool,
    },
    /// A call.
    Call {
        /// Where it went.
        target: u64,
        /// Whether through a register or memory.
        indirect: bool,
    },
    /// A return.
    Return {
        /// Where it went.
        target: u64,
    },
    /// A system call.
    System(SystemCall),
}

/// One executed instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its address.
    pub pc: u64,
    /// Its bytes; `length` of them.
    pub bytes: [u8; 15],
    /// Its length.
    pub length: u8,
    /// Its form.
    pub code: Code,
    /// False if it raised a signal instead.
    pub completed: bool,
    /// The signal whose handler was entered just before it.
    pub entered_handler_of: Option<i32>,
    /// Where it went.
    pub flow: Flow,
    /// What it read and wrote.
    pub accesses: Vec<Access>,
    pub(super) values: Vec<u8>,
}

impl Default for Step {
    fn default() -> Self {
        Self {
            pc: 0,
            bytes: [0; 15],
            length: 0,
            code: Code::INVALID,
            completed: false,
            entered_handler_of: None,
            flow: Flow::Next,
            accesses: Vec::new(),
            values: Vec::new(),
        }
    }
}

impl Step {
    /// The bytes that an access of this step read or wrote.
    #[must_use]
    pub fn value(&self, access: &Access) -> &[u8] {
        &self.values[access.at as usize..(access.at + access.size) as usize]
    }

    /// The instruction's bytes.
    #[must_use]
    pub fn instruction(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Whether the step is a tick.
    #[must_use]
    pub fn is_tick(&self) -> bool {
        self.completed
            && match self.flow {
                Flow::Next | Flow::System(_) => false,
                Flow::Branch { taken, target } => taken && target <= self.pc,
                Flow::Jump { target, indirect } | Flow::Call { target, indirect } => {
                    indirect || target <= self.pc
                }
                Flow::Return { .. } => true,
            }
    }
}

/// How much was executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Completed instructions.
    pub instructions: u64,
    /// Conditional branches.
    pub branches: u64,
    /// Of them, taken.
    pub taken: u64,
    /// Reads of memory.
    pub loads: u64,
    /// Writes to memory.
    pub stores: u64,
    /// System calls.
    pub syscalls: u64,
    /// Calls.
    pub calls: u64,
    /// Returns.
    pub returns: u64,
    /// Ticks.
    pub ticks: u64,
}

impl Counts {
    /// Adds one step.
    pub fn add(&mut self, step: &Step) {
        for access in &step.accesses {
            match access.kind {
                AccessKind::Read => self.loads += 1,
                AccessKind::Write => self.stores += 1,
            }
        }
        if !step.completed {
            return;
        }
        self.instructions += 1;
        self.ticks += u64::from(step.is_tick());
        match step.flow {
            Flow::Branch { taken, .. } => {
                self.branches += 1;
                self.taken += u64::from(taken);
            }
            Flow::Call { .. } => self.calls += 1,
            Flow::Return { .. } => self.returns += 1,
            Flow::System(_) => self.syscalls += 1,
            Flow::Next | Flow::Jump { .. } => {}
        }
    }
}
