//! The process as it is: what a log begins with, so that a replay needs nothing else.

use super::{Recorder, files};
use crate::runner::cpu;
use crate::runner::engine::Engine;
use crate::runner::memory::Mapping;
use crate::runner::thread::{Thread, VECTOR_USED};
use crate::runner::{clock, procfs, signal};
use recording::log::{Entry, FileView, Image, MappingData, ThreadData};
use std::ops::Range;

const PAGE: u64 = 4096;
/// No payload is longer.
const PIECE: u64 = 1 << 20;

/// Writes down the whole process; `thread` runs, and its registers are put away.
pub fn write(engine: &mut Engine, thread: &Thread) {
    let Some(mut recorder) = engine.log.recorder.take() else { return };
    show_files(engine, &mut recorder);
    let (image, ranges) = of(engine, threads(engine, thread), thread.tid());
    recorder.put(&Entry::Image(Box::new(image)), 0);
    for (range, kind) in ranges {
        pages(range, kind, &mut |start, bytes| {
            recorder.put(&Entry::Pages { start }, bytes.len() as u32);
            recorder.log.append(bytes);
        });
    }
    recorder.running = thread.tid();
    engine.log.recorder = Some(recorder);
}

/// Finds out what the mapped files contain.
fn show_files(engine: &mut Engine, recorder: &mut Recorder) {
    let mappings: Vec<(Range<u64>, Mapping)> =
        engine.process.memory.iter().map(|(range, mapping)| (range, mapping.clone())).collect();
    for (range, mut mapping) in mappings {
        let Some(path) = mapping.file.clone() else { continue };
        let length = range.end - range.start;
        mapping.view = files::view_of(recorder, &path, mapping.offset, length);
        engine.process.memory.insert(range, mapping);
    }
}

/// Which pages of a range are to be kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// Those that are the process's own, not a file's.
    Own,
    /// All that are in memory: other processes may have written them.
    Shared,
}

/// The process but for the contents of its memory, and where those are to be looked for.
pub fn of(
    engine: &Engine,
    threads: Vec<ThreadData>,
    running: i32,
) -> (Image, Vec<(Range<u64>, Contents)>) {
    let mapping = |(range, mapping): (Range<u64>, &Mapping)| MappingData {
        start: range.start,
        end: range.end,
        protection: mapping.protection,
        shared: mapping.shared,
        path: mapping.file.as_ref().map(ToString::to_string),
        offset: mapping.offset,
        view: mapping.view.map(|view| FileView { offset: mapping.offset, ..view }),
    };
    let image = Image {
        time: clock::now(&engine.cpu),
        executable: engine.process.executable.to_string_lossy().into_owned(),
        mappings: engine.process.memory.iter().map(mapping).collect(),
        heap: (engine.process.memory.heap.start, engine.process.memory.heap.end),
        stack_room: engine.process.memory.stack_room,
        actions: (1..=signal::MAX as i32)
            .map(|number| engine.process.actions.get(number).words())
            .collect(),
        threads,
        running,
        filters: serde_json::to_vec(&engine.config.filters).unwrap_or_default(),
    };
    let readable = |(_, mapping): &(_, &Mapping)| mapping.protection & libc::PROT_READ != 0;
    let contents = |(range, mapping): (_, &Mapping)| {
        let written = mapping.view.is_none() || mapping.protection & libc::PROT_WRITE != 0;
        let shared = mapping.shared && written;
        (range, if shared { Contents::Shared } else { Contents::Own })
    };
    let ranges = engine.process.memory.iter().filter(readable).map(contents).collect();
    (image, ranges)
}

/// A thread, whose registers are where it runs.
pub fn thread_data(thread: &Thread) -> ThreadData {
    let registers = &thread.registers;
    ThreadData {
        number: thread.tid(),
        general: registers.general,
        flags: registers.flags,
        pc: registers.pc,
        bases: [registers.fs, cpu::gs_base()],
        vector: thread.vector.0[..VECTOR_USED].to_vec(),
        mask: thread.signals.mask.0,
        signal_stack: thread.signals.stack,
        clear_tid: thread.kernel.clear_tid,
        robust_list: thread.kernel.robust_list,
        call: thread.kernel.in_call.map(|(number, arguments)| (number, arguments, 0)),
    }
}

/// All threads that have not ended.
fn threads(engine: &Engine, running: &Thread) -> Vec<ThreadData> {
    let all = [engine.threads.first].into_iter().chain(engine.threads.list.iter().copied());
    let mut data = vec![thread_data(running)];
    for thread in all.filter(|thread| !thread.is_null() && !std::ptr::eq(*thread, running)) {
        // SAFETY: threads in the list, and the first until it ends, have not been freed.
        let thread = unsafe { &*thread };
        if thread.tid() > 0 && !thread.foreign {
            // Only a kernel thread itself knows its GS.
            let mut other = thread_data(thread);
            other.bases[1] = 0;
            data.push(other);
        }
    }
    data
}

/// Hands on the pages of a range that are to be kept.
pub fn pages(range: Range<u64>, contents: Contents, put: &mut dyn FnMut(u64, &[u8])) {
    let mut start = None;
    let mut run = |range: Range<u64>| {
        for start in range.clone().step_by(PIECE as usize) {
            let length = (range.end - start).min(PIECE) as usize;
            // SAFETY: the kernel has pages there that the guest may read; the baton is ours.
            put(start, unsafe { std::slice::from_raw_parts(start as *const u8, length) });
        }
    };
    if contents == Contents::Shared {
        return super::tree::resident(range).into_iter().for_each(run);
    }
    for (page, changed) in changed_pages(range.clone()) {
        match (start, changed) {
            (None, true) => start = Some(page),
            (Some(first), false) => {
                run(first..page);
                start = None;
            }
            _ => {}
        }
    }
    if let Some(first) = start {
        run(first..range.end);
    }
}

/// For each page that the kernel knows of, whether it has contents of its own: in memory or
/// swapped out, and not a page of a file.
fn changed_pages(range: Range<u64>) -> impl Iterator<Item = (u64, bool)> {
    use std::os::unix::fs::FileExt;
    const PRESENT: u64 = 1 << 63;
    const SWAPPED: u64 = 1 << 62;
    const OF_FILE: u64 = 1 << 61;
    const AT_ONCE: u64 = 8192;
    let file = procfs::open("pagemap");
    let grown = range.start.max(first_mapped(&range))..range.end;
    let chunks = (grown.start..grown.end).step_by((AT_ONCE * PAGE) as usize);
    chunks.flat_map(move |first| {
        let count = ((grown.end - first) / PAGE).min(AT_ONCE) as usize;
        let mut words = vec![0; count * 8];
        if let Some(file) = &file {
            // What cannot be read counts as not there.
            let _ = file.read_exact_at(&mut words, first / PAGE * 8);
        }
        let changed = words
            .chunks(8)
            .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
            .map(|word| word & (PRESENT | SWAPPED) != 0 && word & OF_FILE == 0)
            .collect::<Vec<bool>>();
        changed
            .into_iter()
            .enumerate()
            .map(move |(index, changed)| (first + index as u64 * PAGE, changed))
    })
}

/// Where the kernel's own mapping begins: the main stack is reserved far beyond what it has grown to.
fn first_mapped(range: &Range<u64>) -> u64 {
    let maps = procfs::text("maps");
    maps.lines()
        .filter_map(|line| {
            let (start, end) = line.split_once(' ')?.0.split_once('-')?;
            let start = u64::from_str_radix(start, 16).ok()?;
            let end = u64::from_str_radix(end, 16).ok()?;
            (end > range.start).then_some(start)
        })
        .next()
        .map_or(range.end, |start| start.clamp(range.start, range.end))
}
