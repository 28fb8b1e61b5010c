//! What is in the **log** of a process: everything that its replay cannot work out by itself.
//!
//! A log is a sequence of frames:
//! ```text
//! u32 bytes of the head, u32 bytes of the payload, head (an [`Entry`], postcard), payload
//! ```
//! The payload is memory as it was: what a system call wrote, pages of an image. It stands outside
//! the entry so that it goes from and to the guest's memory without a copy in between.
//!
//! Time in a log is the process's count of **ticks** (taken backward branches, returns, indirect
//! branches), over all threads. Between two ticks no address is executed twice, so a time and a pc
//! are an exact [`Position`], whatever else is observed meanwhile.

pub use base::Ending;
use serde::{Deserialize, Serialize};
use std::io::Read;

/// Where a thread was, in time and code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Ticks of the process.
    pub time: u64,
    /// Address of the next instruction.
    pub pc: u64,
    /// Digest of registers and of the top of the stack.
    pub check: u32,
}

/// Names the contents of a file: a digest of device, inode, size and times.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct FileKey(pub u64);

/// One thing that happened to a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entry {
    /// The process as it was when its log begins.
    Image(Box<Image>),
    /// Contents of memory, part of an image; the payload.
    Pages {
        /// First address.
        start: u64,
    },
    /// Another thread runs from here on.
    Switch {
        /// Its number.
        thread: i32,
        /// When.
        time: u64,
    },
    /// A system call has returned. The payload is what the kernel wrote.
    Call(Call),
    /// What the mapping shows that the call before has made.
    Mapped {
        /// The file.
        path: String,
        /// Its contents.
        view: FileView,
    },
    /// The running thread was stopped, for others to run.
    Stop(Position),
    /// A signal came to the running thread, which has a handler for it.
    Signal {
        /// Where it was.
        at: Position,
        /// The signal.
        info: SignalData,
    },
    /// An instruction whose answer is not the program's own: registers that it changed.
    Answer {
        /// Number and new value of each.
        registers: Vec<(u8, u64)>,
        /// Flags after it.
        flags: u64,
    },
    /// The process that this log belongs to began here, as a copy of its parent.
    Forked {
        /// Number of its one thread.
        thread: i32,
    },
    /// The running thread is about to become another program. If a call follows, that failed.
    Exec,
    /// The process ended.
    End(Ending),
    /// Other processes have written into memory that this one shares with them: the payload.
    Others {
        /// Where the running thread was when it let them; if nowhere, it was in a system call, or
        /// had stopped, and what follows in the log comes after the writes.
        at: Option<Position>,
        /// Address and length of each piece of the payload.
        writes: Vec<(u64, u64)>,
    },
    /// A segment of memory was attached by the call before. The payload is what is in it.
    Attached {
        /// Its bytes.
        length: u64,
        /// `PROT_*`.
        protection: i32,
        /// Address and length of each piece of the payload.
        writes: Vec<(u64, u64)>,
    },
    /// What happened meanwhile is left out. The payload is memory that changed.
    Skip(Box<Skip>),
    /// The call that follows has made a file shorter that is mapped.
    Cut {
        /// Which file, as in [`FileView::identity`].
        identity: u64,
        /// Its bytes from now on.
        size: u64,
    },
}

/// A stretch of execution that was left out of a log, and what it changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skip {
    /// Where the running thread was when it began.
    pub at: Position,
    /// Ticks of the process when it ended.
    pub time: u64,
    /// Instructions of all threads that were left out.
    pub instructions: u64,
    /// The thread that runs then, and its registers.
    pub thread: ThreadData,
    /// What was mapped meanwhile; nothing but zeros is in it until it is written to.
    pub mapped: Vec<MappingData>,
    /// Memory that changed: address and length of each piece of the payload.
    pub writes: Vec<(u64, u64)>,
}

/// A system call that has returned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Which.
    pub number: u64,
    /// When its answer came.
    pub time: u64,
    /// What the kernel answered.
    pub answer: i64,
    /// Digest of arguments, registers and the top of the stack before the call.
    pub check: u32,
    /// What the kernel wrote: address and length of each piece of the payload.
    pub writes: Vec<(u64, u64)>,
    /// If it wrote to the standard output or error that the tool itself has.
    pub output: Option<Output>,
}

/// That a call wrote where whoever started the tool sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// 1 or 2.
    pub stream: u8,
    /// Which output of the whole recording it was.
    pub order: u64,
}

/// A part of a file that is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileView {
    /// Whose contents.
    pub key: FileKey,
    /// Which file: the same for all its views, whatever it contained.
    pub identity: u64,
    /// Size of the file: behind it there is nothing but the rest of a page.
    pub size: u64,
    /// Offset of the first byte.
    pub offset: u64,
}

/// A signal with everything that the kernel said of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalData {
    /// `siginfo_t`, without the zeros at its end.
    pub raw: Vec<u8>,
    /// Trap number and error code of the processor.
    pub trap: (u64, u64),
    /// Faulting address of the processor.
    pub cr2: u64,
}

/// A process as it is at one moment, but for the contents of its memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Ticks so far.
    pub time: u64,
    /// Path of the executable.
    pub executable: String,
    /// What is mapped.
    pub mappings: Vec<MappingData>,
    /// First and current end of the heap that `brk` moves.
    pub heap: (u64, u64),
    /// What the main stack may grow to.
    pub stack_room: u64,
    /// For each signal from 1 on: handler, flags, restorer, mask.
    pub actions: Vec<[u64; 4]>,
    /// The threads.
    pub threads: Vec<ThreadData>,
    /// Which of them runs.
    pub running: i32,
    /// Filters on system calls, as the engine writes them.
    pub filters: Vec<u8>,
}

/// A mapping.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappingData {
    /// First address.
    pub start: u64,
    /// Address behind it.
    pub end: u64,
    /// `PROT_*`.
    pub protection: i32,
    /// Whether writes are seen outside the process.
    pub shared: bool,
    /// Path of the file behind it.
    pub path: Option<String>,
    /// Offset in that file.
    pub offset: u64,
    /// What is there before pages of the image are put over it.
    pub view: Option<FileView>,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadData {
    /// Its number.
    pub number: i32,
    /// General registers by hardware number.
    pub general: [u64; 16],
    /// Flags.
    pub flags: u64,
    /// Next instruction.
    pub pc: u64,
    /// Bases of FS and GS.
    pub bases: [u64; 2],
    /// Vector registers, as XSAVE stores them.
    pub vector: Vec<u8>,
    /// Blocked signals.
    pub mask: u64,
    /// Alternate signal stack: start, flags, size.
    pub signal_stack: (u64, i32, u64),
    /// Word to clear when the thread ends.
    pub clear_tid: u64,
    /// Head of the list of robust futexes.
    pub robust_list: u64,
    /// If it is in a system call: number, arguments, and the check of that call.
    pub call: Option<(u64, [u64; 6], u32)>,
}

/// Bytes of a frame before the head.
pub const FRAME: usize = 8;

/// A head longer than that is not one of ours.
pub const LONGEST_HEAD: u32 = 64 << 20;

/// Writes a frame's beginning: lengths and head. The payload follows.
pub fn write_head(entry: &Entry, payload: u32, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend([0; FRAME]);
    let mut body = std::mem::take(out);
    body = postcard::to_extend(entry, body).unwrap_or_default();
    *out = body;
    let head = (out.len() - start - FRAME) as u32;
    out[start..start + 4].copy_from_slice(&head.to_le_bytes());
    out[start + 4..start + 8].copy_from_slice(&payload.to_le_bytes());
}

/// The lengths of head and payload, if they can be true.
pub fn lengths(frame: [u8; FRAME]) -> Option<(u32, u32)> {
    let [a, b, c, d, e, f, g, h] = frame;
    let head = u32::from_le_bytes([a, b, c, d]);
    (head <= LONGEST_HEAD).then_some((head, u32::from_le_bytes([e, f, g, h])))
}

/// Reads a head; `None` if it is not one.
pub fn read_head(bytes: &[u8]) -> Option<Entry> {
    postcard::from_bytes(bytes).ok()
}

/// The entries of a log, one after the other, each with its payload; stops where the log is cut.
pub fn entries(mut log: impl Read) -> impl Iterator<Item = (Entry, Vec<u8>)> {
    std::iter::from_fn(move || {
        let mut frame = [0; FRAME];
        log.read_exact(&mut frame).ok()?;
        let (head, payload) = lengths(frame)?;
        let mut part = |length: u32| {
            let mut bytes = Vec::new();
            let got = log.by_ref().take(u64::from(length)).read_to_end(&mut bytes).ok()?;
            (got == length as usize).then_some(bytes)
        };
        let (head, payload) = (part(head)?, part(payload)?);
        Some((read_head(&head)?, payload))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_as_written() {
        let call =
            Call { number: 1, answer: -4, check: 7, writes: vec![(1, 2)], ..Call::default() };
        let skip = Entry::Skip(Box::default());
        for entry in [Entry::Call(call), Entry::Exec, Entry::Image(Box::default()), skip] {
            let mut bytes = vec![9];
            write_head(&entry, 5, &mut bytes);
            let (head, payload) = lengths(bytes[1..9].try_into().expect("eight")).expect("true");
            assert_eq!((head as usize, payload), (bytes.len() - 9, 5));
            assert_eq!(read_head(&bytes[9..]), Some(entry));
        }
    }
}
