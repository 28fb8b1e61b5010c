//! How a program ended, and who decided that: the question that `why` asks about an end that no faulting
//! instruction explains.
//!
//! - [`words`]: what the program said last, and what that means.
//! - [`message`]: what to ask about that.
//! - [`decided`]: the calls that were active, and the decision that led into the one that ended the program.
//! - [`handled`]: a fault that the program handled itself before it ended.
//! - [`hang`]: a program that did not end by itself: what each thread was doing; [`looping`]: the loop
//!   that one was in.

pub mod decided;
pub mod handled;
pub mod hang;
pub mod looping;
pub mod message;
pub mod words;

use serde::Serialize;

/// What kind of end it was: stable words for scripts, and for telling reports apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Memory that was freed is used.
    UseAfterFree,
    /// A block is freed twice.
    DoubleFree,
    /// What was not allocated is freed.
    InvalidFree,
    /// An access leaves its block or variable.
    OutOfBounds,
    /// A value that nobody wrote decides.
    Uninitialised,
    /// A pointer that is zero, or a member of one.
    NullPointer,
    /// A pointer to where nothing is, or to what may not be used so.
    WildPointer,
    /// A jump, call or return to where no code is.
    WildJump,
    /// A division by zero.
    Division,
    /// The stack is full.
    StackOverflow,
    /// An instruction that must not be executed.
    IllegalInstruction,
    /// An assertion failed.
    Assertion,
    /// The C library found its heap damaged.
    HeapCorruption,
    /// A function found its frame overwritten, or a checked function its buffer too small.
    BufferOverflow,
    /// `abort` was called.
    Abort,
    /// A C++ exception that nobody caught.
    UncaughtException,
    /// A Rust panic.
    RustPanic,
    /// A Go panic.
    GoPanic,
    /// There was no more memory.
    OutOfMemory,
    /// An exit code other than 0.
    ExitCode,
    /// It ended well.
    Success,
    /// A loop that does not end.
    EndlessLoop,
    /// Threads that wait for each other.
    Deadlock,
    /// It waited for something that did not come.
    Waiting,
    /// A signal from outside.
    Killed,
    /// The program sent itself a signal.
    RaisedSignal,
    /// The recording was cut.
    Cut,
}

impl Class {
    /// As scripts and readers see it.
    pub fn name(self) -> &'static str {
        match self {
            Self::UseAfterFree => "use-after-free",
            Self::DoubleFree => "double-free",
            Self::InvalidFree => "invalid-free",
            Self::OutOfBounds => "out-of-bounds",
            Self::Uninitialised => "uninitialised",
            Self::NullPointer => "null-pointer",
            Self::WildPointer => "wild-pointer",
            Self::WildJump => "wild-jump",
            Self::Division => "division",
            Self::StackOverflow => "stack-overflow",
            Self::IllegalInstruction => "illegal-instruction",
            Self::Assertion => "assertion",
            Self::HeapCorruption => "heap-corruption",
            Self::BufferOverflow => "buffer-overflow",
            Self::Abort => "abort",
            Self::UncaughtException => "uncaught-exception",
            Self::RustPanic => "rust-panic",
            Self::GoPanic => "go-panic",
            Self::OutOfMemory => "out-of-memory",
            Self::ExitCode => "exit-code",
            Self::Success => "success",
            Self::EndlessLoop => "endless-loop",
            Self::Deadlock => "deadlock",
            Self::Waiting => "waiting",
            Self::Killed => "killed",
            Self::RaisedSignal => "raised-signal",
            Self::Cut => "cut",
        }
    }

    /// Whether it is a failure of the program whatever its exit code says: what `run` tells of, too.
    pub fn is_failure(self) -> bool {
        matches!(
            self,
            Self::RustPanic | Self::GoPanic | Self::UncaughtException | Self::OutOfMemory
        )
    }
}
