//! Records of one thing, each with its writer and its reader.

use super::{Cursor, Kind};
use crate::suspicion::Suspicion;
use contracts::{Deed, Touched};

/// A record that stands for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// From here on this thread runs, with these segments.
    Thread {
        /// The thread.
        thread: u32,
        /// Where its segments start.
        bases: Bases,
    },
    /// A system call has returned.
    Syscall {
        /// Its number.
        number: u64,
        /// Its arguments.
        arguments: [u64; 6],
        /// Its answer.
        answer: i64,
    },
    /// Exit numbers start anew.
    Flush,
    /// The instruction whose accesses were listed did not complete.
    Cut {
        /// Its address.
        pc: u64,
        /// How many of the accesses it made.
        made: u32,
    },
    /// Something did not pass a screen.
    Suspect {
        /// The instruction.
        pc: u64,
        /// When, in ticks, if they are counted.
        time: u64,
        /// Which screen, and what it saw.
        suspicion: Suspicion,
    },
    /// A probed function has been called.
    Enter {
        /// Its address.
        function: u64,
        /// Where it will return to.
        back: u64,
        /// Stack pointer at its entry.
        stack: u64,
        /// rdi, rsi, rdx, rcx, r8, r9.
        arguments: [u64; 6],
    },
    /// The guest is where a probed function may return to.
    Back {
        /// Where that is.
        pc: u64,
        /// The stack pointer.
        stack: u64,
        /// rax.
        value: u64,
    },
    /// From here on the plan of this number is in force.
    Plan(u32),
    /// A child of this number has been made; 0: from here on this is that child.
    Fork(u32),
    /// A signal handler comes next.
    Handler {
        /// Where the thread was.
        pc: u64,
        /// Its stack pointer there.
        stack: u64,
        /// Stack pointer at the handler's entry.
        frame: u64,
    },
    /// A function of the C library has been entered, and will touch memory.
    Touch(Touch),
}

/// Bytes that a function of the C library is about to touch, by its contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// The function's address.
    pub function: u64,
    /// Which bytes, and what it will do.
    pub touched: Touched,
}

impl Touch {
    fn write(&self, out: &mut Vec<u8>) {
        let Touched { argument, deed, address, length } = self.touched;
        out.extend(self.function.to_le_bytes());
        out.extend([argument, deed as u8]);
        out.extend(address.to_le_bytes());
        out.extend(length.to_le_bytes());
    }

    fn read(cursor: &mut Cursor<'_>) -> Option<Self> {
        let (function, argument, number) = (cursor.u64()?, cursor.u8()?, cursor.u8()?);
        let deed = Deed::ALL.into_iter().find(|deed| *deed as u8 == number)?;
        let (address, length) = (cursor.u64()?, cursor.u64()?);
        Some(Self { function, touched: Touched { argument, deed, address, length } })
    }
}

/// Where the segments of the running thread start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bases {
    /// Of FS.
    pub fs: u64,
    /// Of GS.
    pub gs: u64,
}

impl Entry {
    /// The record.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        // The longest but for what screens saw.
        let mut out = Vec::with_capacity(super::ENTER_BYTES);
        self.write(&mut out);
        out
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Thread { .. } => Kind::Thread,
            Self::Syscall { .. } => Kind::Syscall,
            Self::Flush => Kind::Flush,
            Self::Cut { .. } => Kind::Cut,
            Self::Suspect { .. } => Kind::Suspect,
            Self::Enter { .. } => Kind::Enter,
            Self::Back { .. } => Kind::Back,
            Self::Plan(_) => Kind::Plan,
            Self::Fork(_) => Kind::Fork,
            Self::Handler { .. } => Kind::Handler,
            Self::Touch(_) => Kind::Touch,
        }
    }

    /// Writes the record.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.kind().bytes());
        let mut words =
            |words: &[u64]| out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        match *self {
            Self::Thread { thread, bases } => {
                out.extend(thread.to_le_bytes());
                out.extend(bases.fs.to_le_bytes());
                out.extend(bases.gs.to_le_bytes());
            }
            Self::Syscall { number, arguments, answer } => {
                words(&[number]);
                words(&arguments);
                words(&[answer as u64]);
            }
            Self::Flush => {}
            Self::Cut { pc, made } => {
                words(&[pc]);
                out.extend(made.to_le_bytes());
            }
            Self::Suspect { pc, time, suspicion } => {
                words(&[pc, time]);
                suspicion.write(out);
            }
            Self::Enter { function, back, stack, arguments } => {
                words(&[function, back, stack]);
                words(&arguments);
            }
            Self::Back { pc, stack, value } => words(&[pc, stack, value]),
            Self::Plan(number) | Self::Fork(number) => out.extend(number.to_le_bytes()),
            Self::Handler { pc, stack, frame } => words(&[pc, stack, frame]),
            Self::Touch(touch) => touch.write(out),
        }
    }

    /// Reads what follows the kind of a record; `None` if the bytes are not that, or the kind is of a
    /// record that lists things.
    #[inline]
    pub fn read(kind: Kind, cursor: &mut Cursor<'_>) -> Option<Self> {
        Some(match kind {
            Kind::Thread => {
                let thread = cursor.u32()?;
                Self::Thread { thread, bases: Bases { fs: cursor.u64()?, gs: cursor.u64()? } }
            }
            Kind::Syscall => Self::Syscall {
                number: cursor.u64()?,
                arguments: arguments(cursor)?,
                answer: cursor.u64()? as i64,
            },
            Kind::Flush => Self::Flush,
            Kind::Cut => Self::Cut { pc: cursor.u64()?, made: cursor.u32()? },
            Kind::Suspect => Self::Suspect {
                pc: cursor.u64()?,
                time: cursor.u64()?,
                suspicion: Suspicion::read(cursor)?,
            },
            Kind::Enter => Self::Enter {
                function: cursor.u64()?,
                back: cursor.u64()?,
                stack: cursor.u64()?,
                arguments: arguments(cursor)?,
            },
            Kind::Back => {
                Self::Back { pc: cursor.u64()?, stack: cursor.u64()?, value: cursor.u64()? }
            }
            Kind::Plan => Self::Plan(cursor.u32()?),
            Kind::Fork => Self::Fork(cursor.u32()?),
            Kind::Handler => {
                Self::Handler { pc: cursor.u64()?, stack: cursor.u64()?, frame: cursor.u64()? }
            }
            Kind::Touch => Self::Touch(Touch::read(cursor)?),
            Kind::Define | Kind::Partial | Kind::Access | Kind::Probe | Kind::Buffers => {
                return None;
            }
        })
    }
}

fn arguments(cursor: &mut Cursor<'_>) -> Option<[u64; 6]> {
    let mut arguments = [0; 6];
    for argument in &mut arguments {
        *argument = cursor.u64()?;
    }
    Some(arguments)
}
