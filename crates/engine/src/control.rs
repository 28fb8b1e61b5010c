//! What host and replaying runner say to each other: the host asks for a moment, a window or a
//! checkpoint, and the runner answers when it is there. One JSON text a message, over a socket that
//! keeps messages apart; a checkpoint's answer carries the socket to speak to it.

use events::Plan;
use events::condition::Condition;
use recording::log::{Ending, ThreadData};
use serde::{Deserialize, Serialize};
use std::ops::Range;

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
        /// Not later than at this moment.
        until: Option<Instant>,
        /// Executions of an instruction count only where one of its conditions holds, if it has any.
        conditions: Vec<(u64, Condition)>,
    },
    /// Behind the next instruction of a thread, wherever that leads: into a handler, through a system call, over a
    /// wait for others. Also where the thread has ended.
    Step {
        /// Which thread.
        thread: i32,
        /// Goes on as long as the thread is about to execute one of these addresses.
        within: Range<u64>,
        /// But not past these.
        stops: Vec<u64>,
        /// Not later than at this moment.
        until: Option<Instant>,
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
    /// Leaves the replay: goes on by itself, altered, until the goal, or it ends or its budget is used up. A
    /// diversion that has come to its goal can be told to go on: then only patches for all executions still count.
    Divert {
        /// What is altered; only patches are taken of it.
        plan: Box<Plan>,
        /// Where to stop.
        to: Goal,
        /// How long.
        budget: Budget,
    },
    /// Tells where the process is.
    Where,
    /// Tells of all threads.
    Threads,
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
    /// All threads that live, with their registers.
    Threads(Vec<ThreadData>),
    /// A diversion is over; what it wrote to standard output and error comes with it.
    Diverted(Box<Diverted>),
}

/// How much a diversion may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Ticks from where it began.
    pub ticks: u64,
    /// Milliseconds of time.
    pub milliseconds: u64,
    /// Bytes of memory that it may map in addition to what there was.
    pub memory: u64,
}

/// How a diversion ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DiversionEnd {
    /// It has come to its goal, and can go on.
    Reached,
    /// The program ended.
    Ended(Ending),
    /// It became another program.
    Executed(String),
    /// All threads wait, and nobody is left to wake them.
    Stuck,
    /// It did not end within its budget.
    Unfinished,
    /// It could not be followed any further.
    Lost(String),
}

/// What came of a diversion.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Diverted {
    /// How it ended.
    pub end: DiversionEnd,
    /// Ticks of the process then.
    pub time: u64,
    /// The thread that ran last, and its registers.
    pub thread: ThreadData,
    /// Files in memory.
    pub modules: Vec<crate::report::ModuleMap>,
    /// Outputs of the recorded process before the diversion began.
    pub outputs_before: u64,
    /// Whether more was written than is kept.
    pub output_cut: bool,
    /// System calls that were answered as recorded.
    pub answered: u64,
    /// What was not done or made up, in words, and how often.
    pub refused: Vec<(String, u64)>,
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
    /// How often an instruction of a [`Goal::Hit`] was met on the way, how many were executed for a [`Goal::Step`].
    pub hits: u64,
    /// Whether the log ended here.
    pub ended: bool,
    /// How the process ended, if it did here.
    pub ending: Option<Ending>,
    /// Where the replay went another way than the recording, if it did.
    pub divergence: Option<crate::report::Divergence>,
    /// Files in memory.
    pub modules: Vec<crate::report::ModuleMap>,
    /// At the end, all threads that there are, without their vector registers; [`MOST_THREADS`] at most.
    #[serde(default)]
    pub threads: Vec<ThreadData>,
}

/// Threads that are told of at the end: a message has to fit into the socket.
pub const MOST_THREADS: usize = 64;
