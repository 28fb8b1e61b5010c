//! What the host wants of a runner, handed over in an anonymous file.

use crate::runner::syscall::seccomp::Filter;
use events::Plan;
use recording::Quirks;
use serde::{Deserialize, Serialize};

/// Name of the environment variable that makes a process a runner: its value is the descriptor
/// of the configuration.
pub const VARIABLE: &str = "WHYDUNIT_RUNNER";

/// What to do about children of the guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Children {
    /// They run under the engine too.
    #[default]
    Follow,
    /// They run natively from their `execve` on.
    Native,
}

/// Which thread runs next, and for how long, while a recording is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Schedule {
    /// Equal slices, first come first served.
    #[default]
    Fair,
    /// Slices of any length, and whoever comes out of a hat.
    Random {
        /// Where the dice start.
        seed: u64,
    },
    /// Random priorities that change at a few random moments.
    Pct {
        /// Ordering constraints that are to be violated: one more than there are changes.
        depth: u32,
        /// Where the dice start.
        seed: u64,
    },
}

/// Where a region begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Point {
    /// Before an instruction is executed for the N-th time.
    Place {
        /// Its address.
        pc: u64,
        /// Which time.
        count: u64,
    },
    /// After so many ticks.
    Ticks(u64),
}

/// How a runner records.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Recording {
    /// Who runs.
    pub schedule: Schedule,
    /// Whether threads are stopped inside blocks too.
    pub cut: bool,
    /// Descriptor of what the processes of the recording share.
    pub shared: i32,
    /// Device and inode of the tool's own standard output and error.
    pub outputs: [Option<(u64, u64)>; 2],
    /// Whether the process was another program before.
    pub executed: bool,
    /// Where the region begins; with the program if nowhere.
    pub from: Option<Point>,
    /// Where it ends, counted from its beginning; with the program if nowhere.
    pub to: Option<Point>,
}

/// How a runner replays.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Replaying {
    /// Descriptor of the recording.
    pub file: i32,
    /// Which processes to become, one after the other: the one whose log begins with an image
    /// first, then its child, that one's child, and so on.
    pub processes: Vec<u32>,
    /// Whether the children of the last one are replayed as well, and theirs.
    pub tree: bool,
    /// Where the guest's output goes: descriptors for its streams 1 and 2. If both are the same,
    /// every output has a head there: its number in the recording, then its stream in the highest
    /// byte of its length.
    pub outputs: Option<[i32; 2]>,
    /// Socket through which the host asks for moments; without one, all of the log is replayed.
    pub control: Option<i32>,
}

/// The configuration of a runner.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Config {
    /// Program to load, as given.
    pub program: Vec<u8>,
    /// Children of the guest.
    pub children: Children,
    /// What to observe.
    pub plan: Plan,
    /// Whether the host may change the plan while the guest runs.
    pub controlled: bool,
    /// Most instructions of a superblock.
    pub superblock_limit: usize,
    /// How the processor behaves where processors differ.
    pub quirks: Quirks,
    /// Load the guest, stop, and run it natively: the reference for tests.
    pub native: bool,
    /// What `personality` answers: the runner's own has no address randomisation.
    pub personality: u32,
    /// Filters that the guest has put on its system calls.
    pub filters: Vec<Filter>,
    /// Whether and how to record.
    pub recording: Option<Recording>,
    /// Whether and what to replay.
    pub replaying: Option<Replaying>,
    /// Descriptor for messages to the host.
    pub channel: i32,
    /// The runner's own executable, open: inside a `chroot` there is no path to it.
    pub executable: i32,
    /// The host's `/proc`, open: the guest may have none, or that of a namespace.
    pub proc: i32,
    /// Read end of a pipe whose write end only the host holds.
    pub lifeline: i32,
    /// File of the event rings; negative if nothing is observed.
    pub rings: i32,
}
