//! What the host wants of a runner, handed over in an anonymous file.

use crate::runner::syscall::seccomp::Filter;
use events::Plan;
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
    /// Load the guest, stop, and run it natively: the reference for tests.
    pub native: bool,
    /// What `personality` answers: the runner's own has no address randomisation.
    pub personality: u32,
    /// Filters that the guest has put on its system calls.
    pub filters: Vec<Filter>,
    /// Descriptor for messages to the host.
    pub channel: i32,
    /// The runner's own executable, open: inside a `chroot` there is no path to it.
    pub executable: i32,
    /// Read end of a pipe whose write end only the host holds.
    pub lifeline: i32,
}
