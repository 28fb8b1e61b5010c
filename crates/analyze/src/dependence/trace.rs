//! The consumer that keeps a window of execution, and the way to read it backwards.
//!
//! Records are written anew into chunks, in a form that can be read from any chunk on:
//!
//! ```text
//! exit      u32 number + FIRST_EXIT, then the fields of the stream's record
//! THREAD    u32 kind, u32 thread, u64 FS base, u64 GS base (also at the head of every chunk)
//! SYSCALL   u32 kind, u64 number, 6 × u64 arguments, i64 answer
//! WROTE     u32 kind, u32 count, (u64 address, u64 bytes) …: what the last system call wrote
//! ACCESS    u32 kind, u32 count, (u8 write, u64 address, u32 bytes) …: of the next exit's
//!           instruction
//! UNWOUND   u32 kind, u32 count, u64 …: frames that were left without returning, innermost first
//! HANDLER   u32 kind: a signal handler is entered
//! RESUMED   u32 kind: a signal handler returned to what it interrupted
//! ```

use super::block::{Blocks, Exit};
use super::calls::Calls;
use super::system_calls;
use crate::semantics::Form;
use events::Consumer;
use events::decode::{Bases, Decoder, Path, Record};
use events::record::{self, Cursor};
use events::shape::{Access, Segment, Source};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::ControlFlow;

const FIRST_EXIT: u32 = 16;
const THREAD: u32 = 1;
const SYSCALL: u32 = 2;
const WROTE: u32 = 3;
const ACCESS: u32 = 4;
const UNWOUND: u32 = 5;
const HANDLER: u32 = 6;
const RESUMED: u32 = 7;

/// Bytes of a chunk, about.
const CHUNK: usize = 1 << 20;
const MASK_48: u64 = (1 << 48) - 1;
const RT_SIGRETURN: u64 = 15;

/// A moment of the window: how many instructions of all threads have executed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(pub u64);

/// Part of the window.
struct Chunk {
    bytes: Box<[u8]>,
    /// Instructions executed before it, and in it.
    before: u64,
    executed: u64,
}

/// A window of execution.
#[derive(Default)]
pub struct Trace {
    /// Static facts.
    pub blocks: Blocks,
    chunks: Vec<Chunk>,
    /// How often each exit was taken.
    pub taken: Vec<u64>,
    /// Indirect jumps (by instruction) and where they went.
    pub jumps: FxHashSet<(u32, u64)>,
    /// Where calls went.
    pub called: FxHashSet<u64>,
    /// Whether the stream was not what it should be; the rest of it is missing.
    pub broken: bool,
    writer: Writer,
    decoder: Decoder,
}

/// What is known while the stream comes in.
#[derive(Default)]
struct Writer {
    open: Vec<u8>,
    executed: u64,
    open_before: u64,
    thread: u32,
    bases: Bases,
    /// Accesses of the next exit's instruction.
    explicit: Vec<u8>,
    /// What the next system call wrote, if the stream tells.
    buffers: Option<Vec<(u64, u64)>>,
    threads: FxHashMap<u32, ThreadWriter>,
    current: ThreadWriter,
    /// Where the indirect jump or call of each exit last went.
    last_target: Vec<u64>,
}

/// What is known of one thread.
#[derive(Default)]
struct ThreadWriter {
    calls: Calls,
    /// The exit by which it left its last superblock.
    last: Option<u32>,
}

impl Consumer for Trace {
    fn records(&mut self, bytes: &[u8]) {
        if self.broken {
            return;
        }
        let mut decoder = std::mem::take(&mut self.decoder);
        let done = decoder.records(bytes, |record| self.record(record));
        self.decoder = decoder;
        self.broken |= done.is_err();
    }

    fn end(&mut self) {
        self.close();
    }
}

impl Trace {
    /// Instructions in the window.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.writer.executed
    }

    /// Whether nothing executed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes kept for the records.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.bytes.len() as u64).sum()
    }

    fn record(&mut self, record: Record<'_, '_>) {
        match record {
            Record::Path(path) => self.path(&path),
            Record::Thread(thread, bases) => self.switch(thread, bases),
            Record::Syscall(number, arguments, answer) => self.syscall(number, arguments, answer),
            Record::Accesses(list) => {
                self.writer.explicit.clear();
                let mut rest = list;
                while let Some(write) = rest.u8() {
                    let (Some(address), Some(bytes)) = (rest.u64(), rest.u32()) else { break };
                    self.writer.explicit.push(write & 1);
                    self.writer.explicit.extend(address.to_le_bytes());
                    self.writer.explicit.extend(bytes.to_le_bytes());
                }
            }
            // What was not completed defines nothing that anyone could rely on.
            Record::Cut(..) => self.writer.explicit.clear(),
            Record::Buffers(buffers) => {
                let written = buffers.flatten().filter(|buffer| buffer.write && buffer.length > 0);
                let ranges = written.map(|buffer| (buffer.address, buffer.length)).collect();
                self.writer.buffers = Some(ranges);
            }
            Record::Single(_) | Record::Probe(..) => {}
        }
    }

    fn switch(&mut self, thread: u32, bases: Bases) {
        let writer = &mut self.writer;
        if thread != writer.thread {
            let next = writer.threads.remove(&thread).unwrap_or_default();
            let last = std::mem::replace(&mut writer.current, next);
            writer.threads.insert(writer.thread, last);
        }
        (writer.thread, writer.bases) = (thread, bases);
        writer.thread_record();
    }

    fn syscall(&mut self, number: u64, arguments: [u64; 6], answer: i64) {
        let writer = &mut self.writer;
        writer.word(SYSCALL);
        for value in [number].iter().chain(&arguments) {
            writer.open.extend(value.to_le_bytes());
        }
        writer.open.extend(answer.to_le_bytes());
        let ranges = match writer.buffers.take() {
            Some(mut told) => {
                told.extend(system_calls::mapped(number, &arguments, answer));
                told
            }
            None => system_calls::written(number, &arguments, answer),
        };
        if !ranges.is_empty() {
            writer.word(WROTE);
            writer.word(ranges.len() as u32);
            for (address, bytes) in ranges {
                writer.open.extend(address.to_le_bytes());
                writer.open.extend(bytes.to_le_bytes());
            }
        }
        if number == RT_SIGRETURN {
            writer.resume();
        }
    }

    fn path(&mut self, path: &Path<'_, '_>) {
        let way = (path.executed, path.interrupted, path.taken);
        let id = self.blocks.exit(path.number, path.shape, way, path.payload.len() as u16);
        if id as usize >= self.taken.len() {
            self.taken.resize(id as usize + 1, 0);
            self.writer.last_target.resize(id as usize + 1, 0);
        }
        self.taken[id as usize] += 1;
        self.arrive(path.shape.instructions.first().map_or(0, |instruction| instruction.pc));
        let writer = &mut self.writer;
        if !writer.explicit.is_empty() {
            let list = std::mem::take(&mut writer.explicit);
            writer.word(ACCESS);
            writer.word((list.len() / 13) as u32);
            writer.open.extend(&list);
        }
        let exit = &self.blocks.exits[id as usize];
        if exit.crossings > 0 {
            let block = &self.blocks.blocks[exit.block as usize];
            for crossing in &block.crossings[..exit.crossings.into()] {
                let access = &block.accesses[usize::from(crossing.access)];
                let Some(slot) = address(access, path.payload, writer.bases) else { continue };
                let calls = &mut writer.current.calls;
                let left = if crossing.call { calls.call(slot) } else { calls.returns(slot) };
                if !left.is_empty() {
                    writer.unwound(&left);
                }
            }
        }
        writer.word(id + FIRST_EXIT);
        writer.open.extend(path.payload);
        writer.executed += u64::from(path.executed);
        writer.current.last = Some(id);
        if writer.open.len() >= CHUNK {
            self.close();
        }
    }

    /// Control of the thread arrives at an address: was it sent there?
    fn arrive(&mut self, pc: u64) {
        let Some(last) = self.writer.current.last else { return };
        let exit = &self.blocks.exits[last as usize];
        if exit.next == pc {
            return;
        }
        if exit.next == 0 {
            if self.writer.last_target[last as usize] != pc {
                self.writer.last_target[last as usize] = pc;
                self.note_target(last, pc);
            }
            return;
        }
        let ends_in_call = self.last_form(exit) == Some(Form::Syscall);
        if ends_in_call && self.writer.current.calls.in_handler() {
            self.writer.resume();
        } else {
            self.writer.current.calls.handler();
            self.writer.word(HANDLER);
        }
    }

    fn note_target(&mut self, exit: u32, pc: u64) {
        let exit = &self.blocks.exits[exit as usize];
        match self.last_form(exit) {
            Some(Form::IndirectCall) => {
                self.called.insert(pc);
            }
            Some(Form::IndirectJump) => {
                let block = &self.blocks.blocks[exit.block as usize];
                let jump = block.instructions[usize::from(exit.executed) - 1];
                self.jumps.insert((jump, pc));
            }
            _ => {}
        }
    }

    fn last_form(&self, exit: &Exit) -> Option<Form> {
        let block = &self.blocks.blocks[exit.block as usize];
        let last = block.instructions.get(usize::from(exit.executed).checked_sub(1)?)?;
        Some(self.blocks.statics[*last as usize].meaning.form)
    }

    fn close(&mut self) {
        let writer = &mut self.writer;
        if writer.open.is_empty() {
            return;
        }
        let mut bytes = std::mem::replace(&mut writer.open, Vec::with_capacity(CHUNK + 4096));
        bytes.shrink_to_fit();
        let (before, executed) = (writer.open_before, writer.executed - writer.open_before);
        self.chunks.push(Chunk { bytes: bytes.into(), before, executed });
        writer.open_before = writer.executed;
        writer.thread_record();
    }

    /// Reads the window from its end.
    #[must_use]
    pub fn backward(&self) -> Backward<'_> {
        Backward {
            trace: self,
            chunk: self.chunks.len(),
            index: Vec::new(),
            switches: Vec::new(),
            at: 0,
            when: When::default(),
        }
    }

    /// Goes through the window from its start.
    pub fn forward(&self, mut each: impl FnMut(When, Item<'_>)) {
        self.forward_from(Moment(0), |when, item| {
            each(when, item);
            ControlFlow::Continue(())
        });
    }

    /// Goes through the window from some way before a moment on, as long as it is told to.
    pub fn forward_from(
        &self,
        from: Moment,
        mut each: impl FnMut(When, Item<'_>) -> ControlFlow<()>,
    ) {
        let first = self.chunks.partition_point(|chunk| chunk.before + chunk.executed < from.0);
        for chunk in &self.chunks[first..] {
            let mut when = When { moment: Moment(chunk.before), ..When::default() };
            let mut cursor = Cursor::new(&chunk.bytes);
            let mut explicit: &[u8] = &[];
            while !cursor.is_empty() {
                let Some(raw) = self.read(&mut cursor) else { return };
                match raw {
                    Raw::Thread(thread, bases) => (when.thread, when.bases) = (thread, bases),
                    Raw::Access(list) => explicit = list,
                    Raw::Item(item) => {
                        let item = item.with(std::mem::take(&mut explicit));
                        let executed = self.executed(&item);
                        if each(when, item).is_break() {
                            return;
                        }
                        when.moment.0 += executed;
                    }
                }
            }
        }
    }

    fn executed(&self, item: &Item<'_>) -> u64 {
        match item {
            Item::Path { exit, .. } => self.blocks.exits[*exit as usize].executed.into(),
            _ => 0,
        }
    }

    fn read<'a>(&self, cursor: &mut Cursor<'a>) -> Option<Raw<'a>> {
        let kind = cursor.u32()?;
        Some(match kind {
            THREAD => {
                let thread = cursor.u32()?;
                Raw::Thread(thread, Bases { fs: cursor.u64()?, gs: cursor.u64()? })
            }
            SYSCALL => {
                let number = cursor.u64()?;
                let mut arguments = [0; 6];
                for argument in &mut arguments {
                    *argument = cursor.u64()?;
                }
                Raw::Item(Item::Syscall { number, arguments, answer: cursor.u64()? as i64 })
            }
            WROTE => {
                let count = cursor.u32()? as usize;
                Raw::Item(Item::Wrote(cursor.take(count * 16)?))
            }
            ACCESS => {
                let count = cursor.u32()? as usize;
                Raw::Access(cursor.take(count * 13)?)
            }
            UNWOUND => {
                let count = cursor.u32()? as usize;
                Raw::Item(Item::Unwound(cursor.take(count * 8)?))
            }
            HANDLER => Raw::Item(Item::Handler),
            RESUMED => Raw::Item(Item::Resumed),
            _ => {
                let exit = kind - FIRST_EXIT;
                let payload = cursor.take(self.blocks.exits[exit as usize].payload.into())?;
                Raw::Item(Item::Path { exit, payload, explicit: &[] })
            }
        })
    }
}

impl Writer {
    fn word(&mut self, word: u32) {
        self.open.extend(word.to_le_bytes());
    }

    fn thread_record(&mut self) {
        self.word(THREAD);
        self.word(self.thread);
        let (fs, gs) = (self.bases.fs, self.bases.gs);
        self.open.extend(fs.to_le_bytes());
        self.open.extend(gs.to_le_bytes());
    }

    fn unwound(&mut self, left: &[u64]) {
        self.word(UNWOUND);
        self.word(left.len() as u32);
        for slot in left {
            self.open.extend(slot.to_le_bytes());
        }
    }

    fn resume(&mut self) {
        self.current.calls.handler_returns();
        self.current.last = None;
        self.word(RESUMED);
    }
}

/// The address of an access that has one of its own, from the fields of a record.
#[must_use]
#[inline]
pub fn address(access: &Access, payload: &[u8], bases: Bases) -> Option<u64> {
    let base = match access.segment {
        Segment::Flat => 0,
        Segment::Fs => bases.fs,
        Segment::Gs => bases.gs,
    };
    match access.source {
        Source::Constant(address) => Some(address.wrapping_add(base)),
        Source::Field { field, offset } => {
            let value = record::field(payload, field.into())?;
            Some(value.wrapping_add_signed(offset).wrapping_add(base) & MASK_48)
        }
        Source::Repeat { .. } | Source::Explicit => None,
    }
}

/// Something in the window.
#[derive(Clone, Copy, Debug)]
pub enum Item<'a> {
    /// A superblock was executed.
    Path {
        /// By this exit.
        exit: u32,
        /// Its fields.
        payload: &'a [u8],
        /// Accesses that stood in a record of their own: 13 bytes each.
        explicit: &'a [u8],
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
    /// The last system call wrote these ranges, 16 bytes each.
    Wrote(&'a [u8]),
    /// Frames were left without returning, innermost first: 8 bytes each.
    Unwound(&'a [u8]),
    /// A signal handler is entered.
    Handler,
    /// A signal handler returned to what it interrupted.
    Resumed,
}

impl<'a> Item<'a> {
    fn with(self, list: &'a [u8]) -> Self {
        match self {
            Self::Path { exit, payload, .. } => Self::Path { exit, payload, explicit: list },
            other => other,
        }
    }
}

enum Raw<'a> {
    Thread(u32, Bases),
    Access(&'a [u8]),
    Item(Item<'a>),
}

/// When and where an item happened.
#[derive(Clone, Copy, Debug, Default)]
pub struct When {
    /// The thread.
    pub thread: u32,
    /// Its segments.
    pub bases: Bases,
    /// Instructions executed before it.
    pub moment: Moment,
}

/// Reads a window from its end to its start.
pub struct Backward<'a> {
    trace: &'a Trace,
    /// The chunk being read.
    chunk: usize,
    /// Where its records start; those from `at` on have been read.
    index: Vec<u32>,
    /// Records that switch threads: index, thread, bases.
    switches: Vec<(u32, u32, Bases)>,
    at: usize,
    when: When,
}

impl<'a> Backward<'a> {
    /// The item before the one read last.
    pub fn previous(&mut self) -> Option<(When, Item<'a>)> {
        loop {
            if self.at == 0 {
                self.open_previous()?;
                continue;
            }
            self.at -= 1;
            let bytes = &self.trace.chunks[self.chunk].bytes;
            let mut cursor = Cursor::new(&bytes[self.index[self.at] as usize..]);
            match self.trace.read(&mut cursor)? {
                Raw::Thread(..) => {
                    self.switches.pop();
                    if let Some((_, thread, bases)) = self.switches.last() {
                        (self.when.thread, self.when.bases) = (*thread, *bases);
                    }
                }
                Raw::Access(_) => {}
                Raw::Item(item) => {
                    self.when.moment.0 -= self.trace.executed(&item);
                    return Some((self.when, self.completed(item)));
                }
            }
        }
    }

    /// An item with the accesses that stand before it in a record of their own.
    fn completed(&self, item: Item<'a>) -> Item<'a> {
        let Item::Path { exit, .. } = item else { return item };
        let exit = &self.trace.blocks.exits[exit as usize];
        if !self.trace.blocks.blocks[exit.block as usize].irregular || self.at == 0 {
            return item;
        }
        let bytes = &self.trace.chunks[self.chunk].bytes;
        for before in (0..self.at).rev().take(3) {
            let mut cursor = Cursor::new(&bytes[self.index[before] as usize..]);
            match self.trace.read(&mut cursor) {
                Some(Raw::Access(list)) => return item.with(list),
                Some(Raw::Item(Item::Path { .. })) | None => break,
                _ => {}
            }
        }
        item
    }

    fn open_previous(&mut self) -> Option<()> {
        self.chunk = self.chunk.checked_sub(1)?;
        let chunk = &self.trace.chunks[self.chunk];
        self.index.clear();
        self.switches.clear();
        let exits = &self.trace.blocks.exits;
        let mut at = 0usize;
        while at + 4 <= chunk.bytes.len() {
            let kind = u32::from_le_bytes(chunk.bytes[at..at + 4].try_into().ok()?);
            if kind == THREAD
                && let Raw::Thread(thread, bases) =
                    self.trace.read(&mut Cursor::new(&chunk.bytes[at..]))?
            {
                self.switches.push((self.index.len() as u32, thread, bases));
            }
            let count = |each: usize| {
                let bytes = chunk.bytes.get(at + 4..at + 8).and_then(|b| b.try_into().ok());
                8 + each * bytes.map_or(0, u32::from_le_bytes) as usize
            };
            let length = match kind {
                THREAD => 24,
                SYSCALL => 68,
                WROTE => count(16),
                ACCESS => count(13),
                UNWOUND => count(8),
                HANDLER | RESUMED => 4,
                _ => 4 + usize::from(exits[(kind - FIRST_EXIT) as usize].payload),
            };
            self.index.push(at as u32);
            at += length;
        }
        self.at = self.index.len();
        let (thread, bases) = self.switches.last().map_or_else(Default::default, |s| (s.1, s.2));
        self.when = When { thread, bases, moment: Moment(chunk.before + chunk.executed) };
        Some(())
    }
}
