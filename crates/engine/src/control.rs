//! What host and replaying runner say to each other: the host asks for a moment, a window or a
//! checkpoint, and the runner answers when it is there. One JSON text a message, over a socket that
//! keeps messages apart; a checkpoint's answer carries the socket to speak to it.

use events::Plan;
use recording::log::{Ending, ThreadData};
use serde::{Deserialize, Serialize};

/// A moment of a process: ticks so far, and the address of the next instruction. Without an
/// address, the first instruction at that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Instant {
    /// Ticks.
    pub time: u64,
    /// Next instruction.
    pub pc: Option<u64>,
}

/// Where a run is to stop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Goal {
    /// At a moment.
    At(Instant),
    /// Before one of these instructions is executed for the N-th time in all from here on.
    Hit {
        /// Their addresses, rising.
        pcs: Vec<u64>,
        /// Only executions of this thread count.
        thread: Option<i32>,
        /// Which time; never if zero.
        count: u64,
    },
    /// At the end of the log.
    End,
}

/// What the host asks for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Command {
    /// Goes on until the goal, with this plan in force on the way.
    Run {
        /// Where to stop.
        to: Goal,
        /// What to observe; nothing if there is none.
        plan: Option<Box<Plan>>,
    },
    /// Goes on until the goal; the process as it is now and all that happens go to a new log.
    Extract {
        /// Where to stop.
        to: Goal,
    },
    /// Leaves a copy of the process as it is now; the answer carries a socket to speak to it.
    Checkpoint,
    /// Tells where the process is.
    Where,
}

/// What the runner answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Reply {
    /// The process stands still.
    Stopped(Box<Stopped>),
    /// A copy has been made.
    Checkpoint {
        /// Its number.
        process: i32,
    },
}

/// Where a process stands still.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stopped {
    /// The kernel's number of the runner: its memory is the guest's.
    pub process: i32,
    /// When.
    pub time: u64,
    /// The thread that runs, and its registers.
    pub thread: ThreadData,
    /// Digest of its registers and of the top of its stack, as a log has it.
    pub check: u32,
    /// How often an instruction of a [`Goal::Hit`] was met on the way.
    pub hits: u64,
    /// Whether the log ended here.
    pub ended: bool,
    /// How the process ended, if it did here.
    pub ending: Option<Ending>,
    /// Where the replay went another way than the recording, if it did.
    pub divergence: Option<crate::report::Divergence>,
    /// Files in memory.
    pub modules: Vec<crate::report::ModuleMap>,
}
