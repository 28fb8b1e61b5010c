//! A run, or a window of one, that can be read forwards and backwards.
//!
//! What is kept is what the event stream holds, in chunks (`format`). A run that is longer than
//! memory allows comes in windows (`windows`): all of it is gone through once, so that every
//! execution has its number, but only the chunks of the last windows are kept. Those of the others
//! are made again from the recording when someone comes by.
//!
//! Parts: `format` (records), `writer` (from the stream to records), `jump` (in which frame a jump
//! landed), `backward` (reading from the end), `windows` (what is kept, what is made again).

mod backward;
mod format;
mod non_local_jump;
mod windows;
mod writer;

pub use backward::Backward;
pub use format::{Item, Unwinding, When, address, ranges, slots};
pub use windows::Past;

use super::block::{Blocks, Exit};
use crate::semantics::Form;
use base::{StepCount, Tick};
use events::Consumer;
use events::decode::{Decoder, Event, Path, Record};
use format::Raw;
use rustc_hash::FxHashSet;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};
use windows::{Chunk, Windows};
use writer::{Landed, Writer};

/// What was executed.
#[derive(Default)]
pub struct Trace {
    /// Static facts.
    pub blocks: Blocks,
    /// How often each exit was taken.
    pub taken: Vec<u64>,
    /// Indirect jumps (by instruction) and where they went.
    pub jumps: FxHashSet<(u32, u64)>,
    /// Calls that were left by a jump out of them (by instruction) and where that landed.
    pub non_local_jumps: FxHashSet<(u32, u64)>,
    /// Jumps that left frames.
    pub unwinders: FxHashSet<u32>,
    /// Where calls went.
    pub called: FxHashSet<u64>,
    /// Whether it begins in the middle of a run, so that executions can only be counted from its end.
    pub is_tail: bool,
    /// Whether the stream was not what it should be; the rest of it is missing.
    pub broken: bool,
    windows: Windows,
    writer: Writer,
    decoder: Decoder,
    /// Where the indirect jump or call of each exit last went.
    last_target: Vec<u64>,
    /// Moments of pops that do not restore what their frame saved, as far as that has come out.
    not_restores: Mutex<FxHashSet<u64>>,
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
        self.end_window();
    }
}

impl Trace {
    /// A run of which at most so many bytes are kept; the rest comes from the past again.
    #[must_use]
    pub fn windowed(most_bytes: u64, past: Box<dyn Past>) -> Self {
        Self { windows: Windows::new(most_bytes, past), ..Self::default() }
    }

    /// Says at which tick the run begins, before anything of it has come.
    pub fn begin_at(&mut self, tick: Tick) {
        self.writer.begin_at(tick);
        self.windows.begin_at(tick);
    }

    /// The tick at the end of the run.
    #[must_use]
    pub fn tick(&self) -> Tick {
        self.writer.tick
    }

    /// Instructions in the run.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.writer.executed
    }

    /// Whether nothing executed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of all records, kept or not.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.windows.bytes()
    }

    /// Bytes of the records that are in memory.
    #[must_use]
    pub fn kept(&self) -> u64 {
        self.windows.kept()
    }

    /// How many windows had to be made again.
    #[must_use]
    pub fn made_again(&self) -> u64 {
        self.windows.made_again()
    }

    /// Why a part of the run could not be made again; what was asked of it is not complete.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.windows.failure()
    }

    /// Moments of pops that turned out not to restore what their frame saved: whoever goes back is
    /// spared to find out again.
    #[must_use]
    pub fn not_restores(&self) -> FxHashSet<u64> {
        self.not_restores.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes such moments.
    pub fn note_not_restores(&self, moments: &[u64]) {
        self.not_restores.lock().unwrap_or_else(PoisonError::into_inner).extend(moments);
    }

    /// A window has ended. The stream of the next one begins anew.
    pub fn end_window(&mut self) {
        self.close();
        self.windows.end_window(&self.writer);
        self.decoder = Decoder::default();
        self.blocks.begin_stream();
    }

    fn record(&mut self, record: Record<'_, '_>) {
        match record {
            Record::Path(path) => self.path(&path),
            Record::Single(Event::Handler { pc, stack, frame }) => {
                self.arrive(pc);
                self.writer.handler(&self.blocks, stack, frame);
                self.note_landed();
            }
            other => self.writer.other(other),
        }
    }

    fn path(&mut self, path: &Path<'_, '_>) {
        let way = (path.executed, path.interrupted, path.taken);
        let id = self.blocks.exit(path.number, path.shape, way, path.payload.len() as u16);
        if id as usize >= self.taken.len() {
            self.taken.resize(id as usize + 1, 0);
            self.last_target.resize(id as usize + 1, 0);
        }
        self.taken[id as usize] += 1;
        let pc = path.shape.instructions.first().map_or(0, |instruction| instruction.pc);
        self.arrive(pc);
        self.writer.path(&self.blocks, id, path.payload);
        self.note_landed();
        if self.writer.is_full() {
            self.close();
        }
    }

    fn arrive(&mut self, pc: u64) {
        if let Some(last) = self.writer.arrive(&self.blocks, pc)
            && self.last_target[last as usize] != pc
        {
            self.last_target[last as usize] = pc;
            self.note_target(last, pc);
        }
    }

    fn note_landed(&mut self) {
        while let Some(Landed { exit, target, unwinding }) = self.writer.landed() {
            match unwinding {
                None if target == 0 => {}
                None => self.note_target(exit, target),
                Some(by) => {
                    let exit = &self.blocks.exits[exit as usize];
                    self.unwinders.extend(self.blocks.last_instruction(exit));
                    if let Unwinding::Call(call) = by {
                        self.non_local_jumps.insert((call, target));
                    }
                }
            }
        }
    }

    fn note_target(&mut self, exit: u32, pc: u64) {
        let exit = &self.blocks.exits[exit as usize];
        match self.blocks.last_form(exit) {
            Some(Form::IndirectCall) => {
                self.called.insert(pc);
            }
            Some(Form::IndirectJump) => {
                let jump = self.blocks.last_instruction(exit);
                self.jumps.extend(jump.map(|jump| (jump, pc)));
            }
            _ => {}
        }
    }

    fn close(&mut self) {
        let closed = self.writer.close(&self.blocks);
        closed.into_iter().for_each(|closed| self.windows.push(closed));
        self.note_landed();
    }

    /// Reads the run from its end.
    #[must_use]
    pub fn backward(&self) -> Backward<'_> {
        Backward::new(self)
    }

    /// Reads the run from a moment back, or some way behind it.
    #[must_use]
    pub fn backward_from(&self, moment: StepCount) -> Backward<'_> {
        let chunks = self.windows.chunks();
        let last = chunks.partition_point(|chunk| chunk.before <= moment.0);
        Backward::before(self, last)
    }

    /// A moment at or before a tick from which it is not far to there.
    #[must_use]
    pub(super) fn chunk_at(&self, tick: Tick) -> StepCount {
        let chunks = self.windows.chunks();
        // A tick may begin at the very end of the chunk before the one that has its first instruction.
        let after = chunks.partition_point(|chunk| chunk.tick < tick);
        chunks
            .get(after.saturating_sub(1))
            .map_or(StepCount(0), |chunk| StepCount(chunk.before + 1))
    }

    /// Goes through the run from its start.
    pub fn forward(&self, mut each: impl FnMut(When, Item<'_>)) {
        self.forward_from(StepCount(0), |when, item| {
            each(when, item);
            ControlFlow::Continue(())
        });
    }

    /// Goes through the run from some way before a moment on, as long as it is told to.
    pub fn forward_from(
        &self,
        from: StepCount,
        mut each: impl FnMut(When, Item<'_>) -> ControlFlow<()>,
    ) {
        let chunks = self.windows.chunks();
        let first = chunks.partition_point(|chunk| chunk.before + chunk.executed < from.0);
        for (number, chunk) in chunks.iter().enumerate().skip(first) {
            let Some(bytes) = self.windows.read(number, &self.blocks) else { return };
            if self.through(chunk, &bytes, &mut each).is_none_or(|flow| flow.is_break()) {
                return;
            }
        }
    }

    fn through(
        &self,
        chunk: &Chunk,
        bytes: &[u8],
        each: &mut impl FnMut(When, Item<'_>) -> ControlFlow<()>,
    ) -> Option<ControlFlow<()>> {
        let (moment, tick) = (StepCount(chunk.before), chunk.tick);
        let mut when = When { moment, tick, ..When::default() };
        let mut cursor = events::record::Cursor::new(bytes);
        let mut explicit: &[u8] = &[];
        while !cursor.is_empty() {
            match format::read(&self.blocks.extents, &mut cursor)? {
                Raw::Thread(thread, bases) => (when.thread, when.bases) = (thread, bases),
                Raw::Access(list) => explicit = list,
                Raw::Item(item) => {
                    let item = item.with(std::mem::take(&mut explicit));
                    let (executed, ticks) = self.extent(&item);
                    if each(when, item).is_break() {
                        return Some(ControlFlow::Break(()));
                    }
                    when.moment.0 += executed;
                    when.tick.0 += ticks;
                }
            }
        }
        Some(ControlFlow::Continue(()))
    }

    /// Instructions and ticks of an item.
    fn extent(&self, item: &Item<'_>) -> (u64, u64) {
        let Item::Path { exit, .. } = item else { return (0, 0) };
        let extent = &self.blocks.extents[*exit as usize];
        (extent.executed.into(), extent.ticks.into())
    }
}

impl Blocks {
    /// What the last instruction of an exit is to control.
    pub(super) fn last_form(&self, exit: &Exit) -> Option<Form> {
        let last = self.last_instruction(exit)?;
        Some(self.statics[last as usize].meaning.form)
    }

    /// The last instruction of an exit.
    fn last_instruction(&self, exit: &Exit) -> Option<u32> {
        let block = &self.blocks[exit.block as usize];
        block.instructions.get(usize::from(exit.executed).checked_sub(1)?).copied()
    }
}
