//! What the host wants of a runner, handed over in an anonymous file.

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
    /// Slices of any length; the next thread is chosen at random.
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
        /// Events among which the changes are drawn; zero if nobody knows how many there are.
        events: u64,
    },
    /// Threads run from one of the places that the host has named to the next. Nobody passes one while another can
    /// still come to one; who then does is chosen at random.
    Walk {
        /// Where the dice start.
        seed: u64,
    },
}

impl Schedule {
    /// Whether threads may be stopped at events, besides the ends of their slices.
    pub fn minds_events(self) -> bool {
        self != Self::Fair
    }
}

/// A place where a schedule decides, besides those that it finds by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchPoint {
    /// The address of the instruction before which the thread may be stopped.
    pub pc: u64,
    /// Whether it is held there, so that others do what they do first.
    pub holds: bool,
}

/// Where the parts of a program go, within what a kernel that randomises addresses does: how many bytes
/// each lies away from where it is without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// A program that can be loaded anywhere lies further up.
    pub program: u64,
    /// The heap that `brk` moves begins behind the program.
    pub heap: u64,
    /// Mappings are placed further down.
    pub mappings: u64,
    /// The stack begins further down.
    pub stack: u64,
}

impl Layout {
    const PAGE: u64 = 4096;
    /// Pages that programs and mappings are moved by at most, and the heap: as Linux does.
    const FAR: u64 = 1 << 28;
    const HEAP: u64 = 1 << 13;
    /// The stack is moved by at most so many times sixteen bytes: it is not as large as its distances
    /// natively are, where all of it moves.
    const STACK: u64 = 1 << 12;

    /// One of many, the same for the same seed.
    #[must_use]
    pub fn of_seed(seed: u64) -> Self {
        let mut state = seed;
        let mut below = |limit: u64| {
            // splitmix64
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            (mixed ^ mixed >> 31) % limit
        };
        Self {
            program: below(Self::FAR) * Self::PAGE,
            heap: below(Self::HEAP) * Self::PAGE,
            mappings: below(Self::FAR) * Self::PAGE,
            stack: below(Self::STACK) * 16,
        }
    }
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
    /// Places where threads may be stopped.
    pub switch_points: Vec<SwitchPoint>,
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
    /// Where the parts of the program go.
    pub layout: Layout,
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

impl Config {
    /// Nothing to run, observe or record yet, and no descriptors.
    pub fn new(quirks: Quirks) -> Self {
        Self {
            program: Vec::new(),
            children: Children::Native,
            plan: Plan::default(),
            controlled: false,
            superblock_limit: usize::MAX,
            quirks,
            layout: Layout::default(),
            native: false,
            personality: 0,
            filters: Vec::new(),
            recording: None,
            replaying: None,
            channel: -1,
            executable: -1,
            proc: -1,
            lifeline: -1,
            rings: -1,
        }
    }
}

/// One instruction of classic BPF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterStep {
    /// What it does.
    pub code: u16,
    /// Instructions to pass over if its test holds.
    pub jump_true: u8,
    /// The same if it does not.
    pub jump_false: u8,
    /// Its operand.
    pub value: u32,
}

/// A filter on system calls that has been checked.
pub type Filter = Vec<FilterStep>;
