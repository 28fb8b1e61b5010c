//! Writes an execution slice: goes through the run from one kept stretch to the next, and writes down
//! how what is left out changed the state.

use super::stretches::{Found, Gap, LINE, Stretch};
use super::{Kept, SaveError, Saved};
use crate::extract::finish;
use crate::keep::Keeper;
use crate::session::Session;
use crate::timeline::{StoppedProcess, Timeline};
use engine::control::{Goal, Instant};
use engine::host::RunError;
use engine::log_listen::LogSink;
use engine::report::LogOrigin;
use recording::log::{Entry, MappingData, Position, Skip, entries, write_head};
use recording::{Meta, Region, Writer};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant as Clock;

/// Saves what is kept of a process as a recording of its own.
pub fn save(
    session: &Session,
    line: &mut Timeline,
    kept: Kept,
    path: &Path,
    replace: bool,
) -> Result<Saved, SaveError> {
    let begun = Clock::now();
    let about = kept.about.clone();
    let found = super::find(line, kept)?;
    let Some(first) = found.stretches.first() else { return Err(SaveError::Nothing) };
    let region = Region { from: format!("@{}", first.start.time), to: None };
    let old = session.recording().meta().clone();
    let meta = Meta { region: Some(region), slice: Some(about), ..old };
    let image = image(line, first.start)?;
    let writer = if replace { Writer::replace(path, &meta)? } else { Writer::create(path, &meta)? };
    let keeper = Keeper::new(writer, meta.command.clone());
    let mut out = Out { sink: keeper.begin(1, LogOrigin::Start), saved: Saved::default() };
    for (entry, payload) in image {
        out.put(&entry, &payload);
    }
    stretches(line, &found, &mut out)?;
    let Out { mut sink, mut saved } = out;
    sink.end();
    drop(sink);
    saved.size = finish(&keeper, session, begun).map_err(SaveError::Record)?;
    Ok(saved)
}

/// Where entries go.
struct Out {
    sink: Box<dyn LogSink>,
    saved: Saved,
}

impl Out {
    fn put(&mut self, entry: &Entry, payload: &[u8]) {
        let mut frame = Vec::new();
        write_head(entry, payload.len() as u32, &mut frame);
        frame.extend_from_slice(payload);
        // That it cannot be written is told when the file is finished.
        self.sink.bytes(&frame);
    }
}

/// A log in memory.
#[derive(Clone, Default)]
struct Bytes(Arc<Mutex<Vec<u8>>>);

impl LogSink for Bytes {
    fn bytes(&mut self, bytes: &[u8]) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        true
    }

    fn end(&mut self) {}
}

/// The process as it is at a moment. All of its memory can be written to: what is left out may have
/// done so under other protections.
fn image(line: &mut Timeline, at: Instant) -> Result<Vec<(Entry, Vec<u8>)>, RunError> {
    let log = Bytes::default();
    line.extract(at, Goal::At(at), Box::new(log.clone()))?;
    let log = std::mem::take(&mut *log.0.lock().unwrap_or_else(PoisonError::into_inner));
    let mut image: Vec<(Entry, Vec<u8>)> = entries(&log[..])
        .filter(|(entry, _)| matches!(entry, Entry::Image(_) | Entry::Pages { .. }))
        .collect();
    for (entry, _) in &mut image {
        if let Entry::Image(image) = entry {
            image.mappings.iter_mut().for_each(|mapping| mapping.protection |= READ_WRITE);
        }
    }
    Ok(image)
}

fn stretches(line: &mut Timeline, found: &Found, out: &mut Out) -> Result<(), RunError> {
    let mut process = line.seek(found.stretches[0].start)?;
    let afters = found.stretches.iter().skip(1).map(|next| (&next.before, Some(next)));
    let afters = afters.chain([(&found.after, None)]);
    for (stretch, (gap, next)) in found.stretches.iter().zip(afters) {
        is_there(&process, stretch.start, stretch)?;
        line.go_on(&mut process, Some(stretch.end))?;
        is_there(&process, stretch.end, stretch)?;
        let at = position(&process);
        let areas = areas(gap);
        let before: Vec<Vec<u8>> = areas.iter().map(|area| read(&process, *area)).collect();
        let mut frames = Vec::new();
        let pc = process.at.thread.pc;
        let handler = stretch.arrival.filter(|arrival| arrival.pc != Some(pc));
        for handler in handler.iter().chain(&gap.handlers) {
            line.go_on(&mut process, Some(*handler))?;
            frames.push(process.at.thread.general[4]);
        }
        line.go_on(&mut process, next.map_or(found.end, |next| Some(next.start)))?;
        let mut changes = Changes::default();
        for (area, before) in areas.iter().zip(before) {
            changes.compare(area.0, &before, &read(&process, *area));
        }
        let mapped = gap.mapped.iter().map(|mapped| mapping(&process, mapped)).collect();
        for (start, end, _, _) in gap.mapped.iter().filter(|mapped| mapped.3) {
            changes.whole(&process, (*start, end - start));
        }
        for frame in frames {
            changes.whole(&process, (frame, FRAME));
        }
        let Changes { writes, bytes } = changes;
        let (time, thread) = (process.at.time, process.at.thread.clone());
        let instructions = gap.instructions;
        let skip = Skip { at, time, instructions, thread, mapped, writes };
        out.put(&Entry::Skip(Box::new(skip)), &bytes);
        out.saved.stretches += 1;
        out.saved.kept += stretch.instructions;
        out.saved.skipped += gap.instructions;
        out.saved.injected += bytes.len() as u64;
    }
    out.put(&Entry::Stop(position(&process)), &[]);
    Ok(())
}

fn position(process: &StoppedProcess) -> Position {
    let at = &process.at;
    Position { time: at.time, pc: at.thread.pc, check: at.check }
}

/// Whether the replay is where the run was.
fn is_there(process: &StoppedProcess, at: Instant, stretch: &Stretch) -> Result<(), RunError> {
    let (pc, thread) = (process.at.thread.pc, process.at.thread.number);
    let expected = (at.time, at.pc.unwrap_or(pc), stretch.thread as i32);
    if (process.at.time, pc, thread) == expected {
        return Ok(());
    }
    let what = format!(
        "a stretch at tick {} of thread {} is not found again: thread {thread} is at tick {}",
        at.time, stretch.thread, process.at.time
    );
    Err(RunError::Fault { what, pc })
}

fn mapping(process: &StoppedProcess, mapped: &(u64, u64, i32, bool)) -> MappingData {
    let (start, end, protection, _) = *mapped;
    let module =
        process.at.modules.iter().find(|module| (module.start..module.end).contains(&start));
    MappingData {
        start,
        end,
        protection: protection & 7 | READ_WRITE,
        shared: false,
        path: module.map(|module| module.path.clone()),
        offset: module.map_or(0, |module| module.offset + (start - module.start)),
        view: None,
    }
}

/// The memory that a gap may have changed, in parts that are in one page each.
fn areas(gap: &Gap) -> Vec<(u64, u64)> {
    let mut areas: Vec<(u64, u64)> = Vec::new();
    for line in &gap.lines {
        let start = line * LINE;
        match areas.last_mut() {
            Some((first, length)) if *first + *length == start && !start.is_multiple_of(PAGE) => {
                *length += LINE;
            }
            _ => areas.push((start, LINE)),
        }
    }
    for range in &gap.ranges {
        areas.extend(pages(*range));
    }
    areas
}

/// A range in parts that are in one page each.
fn pages((start, length): (u64, u64)) -> impl Iterator<Item = (u64, u64)> {
    let end = start.saturating_add(length);
    let mut at = start;
    std::iter::from_fn(move || {
        let next = (at / PAGE + 1).saturating_mul(PAGE).min(end);
        let part = (at < end).then_some((at, next - at));
        at = next;
        part
    })
}

/// What is in memory there; less if some of it is not.
fn read(process: &StoppedProcess, (address, length): (u64, u64)) -> Vec<u8> {
    let mut bytes = vec![0; length as usize];
    let got = process.read(address, &mut bytes);
    bytes.truncate(got);
    bytes
}

/// Memory that is put in place.
#[derive(Default)]
struct Changes {
    writes: Vec<(u64, u64)>,
    bytes: Vec<u8>,
}

impl Changes {
    /// Notes where two states differ. What was not there before is zero.
    fn compare(&mut self, address: u64, before: &[u8], after: &[u8]) {
        for (at, byte) in (address..).zip(after) {
            let old = before.get((at - address) as usize).copied().unwrap_or(0);
            if old == *byte {
                continue;
            }
            match self.writes.last_mut() {
                Some((start, length)) if *start + *length == at => *length += 1,
                _ => self.writes.push((at, 1)),
            }
            self.bytes.push(*byte);
        }
    }

    /// Notes all that is there, but for pages of zeros.
    fn whole(&mut self, process: &StoppedProcess, range: (u64, u64)) {
        for page in pages(range) {
            let bytes = read(process, page);
            if bytes.iter().any(|byte| *byte != 0) {
                self.writes.push((page.0, bytes.len() as u64));
                self.bytes.extend(bytes);
            }
        }
    }
}

const PAGE: u64 = 4096;
/// `PROT_READ | PROT_WRITE`.
const READ_WRITE: i32 = 3;
/// More than a signal's frame takes.
const FRAME: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_lie_in_one_page_each() {
        let gap =
            Gap { lines: vec![0, 1, 2, 63, 64, 66], ranges: vec![(8000, 5000)], ..Gap::default() };
        let expected = [
            (0, 192),
            (63 * 64, 64),
            (4096, 64),
            (66 * 64, 64),
            (8000, 192),
            (8192, 4096),
            (12288, 712),
        ];
        assert_eq!(areas(&gap), expected);
        assert_eq!(pages((u64::MAX - 1, 9)).collect::<Vec<_>>(), [(u64::MAX - 1, 1)]);
    }

    #[test]
    fn only_what_differs_is_put_in_place() {
        let mut changes = Changes::default();
        changes.compare(100, b"abcdef", b"aXXdeY");
        changes.compare(200, b"", b"\0z");
        assert_eq!(changes.writes, [(101, 2), (105, 1), (201, 1)]);
        assert_eq!(changes.bytes, b"XXYz");
    }
}
