//! What a recording says of the run: who, when, how, how it ended. Kept as JSON, so that a later
//! version can add a field and an earlier one passes over it.

use crate::text::Text;
use serde::{Deserialize, Serialize};

/// What is known when recording begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Meta {
    /// The version of the tool that recorded.
    pub tool: String,
    /// When, in seconds since 1970, UTC.
    pub recorded: u64,
    /// The command line, the program first.
    pub command: Vec<Text>,
    /// The folder it was started in.
    pub directory: Text,
    /// What the processor must be able to do for a replay, by the names of `/proc/cpuinfo`.
    pub features: Vec<String>,
    /// The processor, in its maker's words.
    pub processor: String,
    /// How it behaves where processors differ; not known of recordings before version 0.2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quirks: Option<Quirks>,
    /// The kernel's release.
    pub kernel: String,
    /// The schedule, as given: `fair`, `random:SEED`, `pct:DEPTH,SEED`.
    pub schedule: String,
    /// Whether threads were also switched inside of blocks (`--cut`).
    pub cut: bool,
    /// Which part of the run was recorded, if not all.
    pub region: Option<Region>,
    /// If it holds only the stretches that a value was made in: which value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slice: Option<String>,
}

/// What processors of one instruction set do differently, and a program can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quirks {
    /// Bits of an address: 48 where paging has four levels, 57 where it has five.
    pub address_bits: u32,
    /// Bits of what can be the base of a segment: what the processor could do with five levels.
    pub base_bits: u32,
    /// Whether a call to what is no address has pushed its return address when it faults.
    pub call_pushes: bool,
}

/// A part of a run, as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// Where it begins: a moment, or a number of skipped instructions.
    pub from: String,
    /// Where it ends: a moment, or a number of instructions; the end of the run if there is none.
    pub to: Option<String>,
}

/// A process, when its log begins. Processes have numbers of their own, from 0 in the order of
/// their beginning; the kernel's can come twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessStart {
    /// Its number.
    pub process: u32,
    /// The process that made it.
    pub parent: Option<u32>,
    /// The kernel's number for it.
    pub pid: i32,
    /// What the process that made it calls it, where that is another number: in a PID namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<i32>,
    /// How it came about.
    pub origin: Origin,
    /// Its command line; of a fork, its parent's.
    #[serde(default)]
    pub command: Vec<Text>,
    /// Nanoseconds since recording began.
    #[serde(default)]
    pub time: u64,
}

/// How a process came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A program was loaded: the first one, or by `execve`, which ends the log of the process
    /// that called it.
    Exec,
    /// A copy of its parent.
    Fork {
        /// How much of the parent's log was written when it was made.
        position: u64,
    },
}

/// What is known when recording ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// Nanoseconds from the first process's start to the end.
    pub duration: u64,
    /// How each process ended.
    pub processes: Vec<ProcessEnd>,
    /// Why the recording ended before the program did, if so: the disk was full, the region over.
    pub stopped: Option<String>,
    /// Anything else that a person should know.
    pub notes: Vec<String>,
    /// Events at which the schedule decided; none if it decides by ticks alone.
    #[serde(skip_serializing_if = "is_zero")]
    pub events: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A process, when its log ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessEnd {
    /// Its number.
    pub process: u32,
    /// How it ended.
    pub end: End,
    /// Threads it had in all.
    pub threads: u64,
    /// System calls it made.
    pub system_calls: u64,
    /// Signals delivered to it.
    pub signals: u64,
    /// Times that another thread went on.
    pub switches: u64,
    /// Instructions it executed, where they were counted.
    pub instructions: Option<u64>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// It was still running, or nobody knows.
    #[default]
    Unknown,
    /// It called `exit`.
    Exited(i32),
    /// A signal ended it.
    Killed(i32),
    /// It loaded another program, which has a number of its own.
    Replaced,
}
