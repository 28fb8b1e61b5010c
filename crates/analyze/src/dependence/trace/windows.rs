//! What is kept of a run that may be longer than memory.
//!
//! Chunks belong to windows. When there is more than may be kept, the oldest windows are dropped;
//! where one of them is needed again its stream comes from the [`Past`], and is written as it was
//! before: the state that the writer had where the window begins is kept, and superblocks are known
//! by what is in them. The last window that was made again is kept as well.

use super::writer::Writer;
use crate::dependence::block::Blocks;
use base::Tick;
use events::Decoder;
use events::decode::{Event, Record};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Where a window can be had from again.
pub trait Past: Send {
    /// The stream of a window, from its beginning; or why it cannot be had.
    fn again(&mut self, window: usize) -> Result<Vec<Vec<u8>>, String>;
}

/// A chunk that has just been written.
pub struct Closed {
    pub bytes: Arc<[u8]>,
    pub before: u64,
    pub executed: u64,
    pub tick: Tick,
    pub ticks: u64,
}

/// Part of a run.
pub struct Chunk {
    /// Nothing if they were dropped.
    bytes: Option<Arc<[u8]>>,
    size: u64,
    window: usize,
    /// Instructions executed before it, and in it.
    pub before: u64,
    pub executed: u64,
    /// Ticks before it, and in it.
    pub tick: Tick,
    pub ticks: u64,
}

/// A stretch of the run that can be had again.
struct Window {
    chunks: Range<usize>,
    /// The writer where it begins.
    start: Writer,
    kept: bool,
}

/// The chunks of a run, by window.
#[derive(Default)]
pub struct Windows {
    chunks: Vec<Chunk>,
    windows: Vec<Window>,
    /// The writer where the window that is being written begins.
    start: Writer,
    most_bytes: Option<u64>,
    kept: u64,
    again: Mutex<Again>,
}

/// What has been made again.
#[derive(Default)]
struct Again {
    past: Option<Box<dyn Past>>,
    last: Option<(usize, Vec<Arc<[u8]>>)>,
    count: u64,
    failure: Option<String>,
}

impl Windows {
    /// Keeps at most so many bytes.
    pub fn new(most_bytes: u64, past: Box<dyn Past>) -> Self {
        let again = Mutex::new(Again { past: Some(past), ..Again::default() });
        Self { most_bytes: Some(most_bytes), again, ..Self::default() }
    }

    /// The run begins at this tick.
    pub fn begin_at(&mut self, tick: Tick) {
        self.start.begin_at(tick);
    }

    /// All chunks, in order.
    pub fn chunks(&self) -> &[Chunk] {
        &self.chunks
    }

    /// Bytes of all chunks.
    pub fn bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.size).sum()
    }

    /// Bytes of those that are kept.
    pub fn kept(&self) -> u64 {
        self.kept
    }

    /// How many windows had to be made again.
    pub fn made_again(&self) -> u64 {
        self.lock().count
    }

    /// Why a window could not be made again.
    pub fn failure(&self) -> Option<String> {
        self.lock().failure.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Again> {
        self.again.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a chunk to the window that is being written.
    pub fn push(&mut self, closed: Closed) {
        let Closed { bytes, before, executed, tick, ticks } = closed;
        let (size, window) = (bytes.len() as u64, self.windows.len());
        self.kept += size;
        self.chunks.push(Chunk { bytes: Some(bytes), size, window, before, executed, tick, ticks });
    }

    /// Ends a window, and drops old ones if there is too much.
    pub fn end_window(&mut self, writer: &Writer) {
        let first = self.windows.last().map_or(0, |window| window.chunks.end);
        let start = std::mem::replace(&mut self.start, writer.clone());
        self.windows.push(Window { chunks: first..self.chunks.len(), start, kept: true });
        let Some(most) = self.most_bytes else { return };
        for window in self.windows.iter_mut().filter(|window| window.kept) {
            if self.kept <= most {
                break;
            }
            window.kept = false;
            for chunk in &mut self.chunks[window.chunks.clone()] {
                self.kept -= chunk.size;
                chunk.bytes = None;
            }
        }
    }

    /// The bytes of a chunk, made again if need be; none if that fails.
    pub fn read(&self, number: usize, blocks: &Blocks) -> Option<Arc<[u8]>> {
        let chunk = self.chunks.get(number)?;
        if let Some(bytes) = &chunk.bytes {
            return Some(bytes.clone());
        }
        let window = &self.windows[chunk.window];
        let mut again = self.lock();
        if again.failure.is_some() {
            return None;
        }
        if again.last.as_ref().is_none_or(|(last, _)| *last != chunk.window) {
            again.last = None;
            match again.make(chunk.window, window, &self.chunks, blocks) {
                Ok(chunks) => again.last = Some((chunk.window, chunks)),
                Err(why) => again.failure = Some(why),
            }
        }
        let (_, chunks) = again.last.as_ref()?;
        chunks.get(number - window.chunks.start).cloned()
    }
}

impl Again {
    fn make(
        &mut self,
        number: usize,
        window: &Window,
        chunks: &[Chunk],
        blocks: &Blocks,
    ) -> Result<Vec<Arc<[u8]>>, String> {
        self.count += 1;
        let past = self.past.as_mut().ok_or("it was not recorded")?;
        let stream = past.again(number)?;
        let written = write(window.start.clone(), &stream, blocks)?;
        let same = |(new, old): (&Closed, &Chunk)| {
            (new.bytes.len() as u64, new.before, new.executed, new.tick, new.ticks)
                == (old.size, old.before, old.executed, old.tick, old.ticks)
        };
        let old = &chunks[window.chunks.clone()];
        if written.len() != old.len() || !written.iter().zip(old).all(same) {
            return Err("it went another way the second time".into());
        }
        Ok(written.into_iter().map(|chunk| chunk.bytes).collect())
    }
}

/// Writes the chunks of a window whose superblocks are all known.
fn write(mut writer: Writer, stream: &[Vec<u8>], blocks: &Blocks) -> Result<Vec<Closed>, String> {
    let (mut decoder, mut numbers) = (Decoder::default(), Vec::new());
    let (mut closed, mut unknown) = (Vec::new(), false);
    for bytes in stream {
        let read = decoder.records(bytes, |record| {
            let path = match record {
                Record::Path(path) => path,
                Record::Single(Event::Handler { pc, stack, frame }) => {
                    writer.arrive(blocks, pc);
                    return writer.handler(blocks, stack, frame);
                }
                other => return writer.other(other),
            };
            let way = (path.executed, path.interrupted, path.taken);
            let length = path.payload.len() as u16;
            let Some(id) = blocks.find_exit(&mut numbers, path.number, path.shape, way, length)
            else {
                unknown = true;
                return;
            };
            let pc = path.shape.instructions.first().map_or(0, |instruction| instruction.pc);
            writer.arrive(blocks, pc);
            writer.path(blocks, id, path.payload);
            if writer.is_full() {
                closed.extend(writer.close(blocks));
            }
            while writer.landed().is_some() {}
        });
        if read.is_err() || unknown {
            return Err("its code was another the second time".into());
        }
    }
    closed.extend(writer.close(blocks));
    Ok(closed)
}
