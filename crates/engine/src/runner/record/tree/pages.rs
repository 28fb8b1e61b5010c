//! Shared pages as this process last knew them, and how it finds out which of them are not so any
//! more: from the kernel those that it has written itself, from the others theirs. Where that is not
//! known every page that is in memory is compared.

use super::journal::{self, Reader};
use super::views::Views;
use super::watch::Watch;
use crate::runner::guest::Checked;
use crate::runner::memory::Memory;
use crate::runner::signal::frame::GuestMemory;
use crate::sys::syscall;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// Pages of a file that are read at once.
const AT_ONCE: usize = 64;

/// What is reported of pages that have changed: where, and what is there now.
pub type Changed<'a> = &'a mut dyn FnMut(u64, &[u8]);

/// The shared pages of this process.
pub struct Pages {
    copies: BTreeMap<u64, Box<[u8]>>,
    /// Pages that may have changed while the process could not read them.
    hidden: BTreeSet<u64>,
    /// Files that are only read.
    pub views: Views,
    watch: Option<Watch>,
    /// Whether it makes sense to start a watch.
    can_watch: bool,
    reader: Reader,
}

/// Which of its pages a process looks at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    All,
    /// Those of files, which the kernel does not watch.
    Files,
}

impl Pages {
    /// Knows none.
    pub fn new() -> Self {
        let (copies, hidden) = (BTreeMap::new(), BTreeSet::new());
        Self {
            copies,
            hidden,
            views: Views::default(),
            watch: None,
            can_watch: true,
            reader: Reader::default(),
        }
    }

    /// Takes what is there for known.
    pub fn begin(&mut self, memory: &Memory) {
        self.reader = Reader::at_end();
        self.is_watched(memory);
        self.scan(memory, Which::All, &mut |_, _| {});
    }

    /// In a new child, which knows what its parent knew.
    pub fn forked(&mut self, memory: &Memory) {
        self.watch = None;
        self.is_watched(memory);
    }

    /// Notes what this process has written itself, and tells the others.
    pub fn settle(&mut self, memory: &Memory) {
        let written = if self.is_watched(memory) { self.written() } else { None };
        let mut changed = Vec::new();
        let mut note = |page: u64, _: &[u8]| changed.push(page & !(PAGE - 1));
        match written {
            Some(pages) => {
                for page in pages {
                    if memory.is_readable(page, PAGE) {
                        self.compare(page, false, &mut note);
                    } else {
                        self.copies.remove(&page);
                        note(page, &[]);
                    }
                }
                self.scan(memory, Which::Files, &mut |_, _| {});
            }
            None => self.scan(memory, Which::All, &mut note),
        }
        self.report(&changed);
    }

    /// Tells the others of pages; of those with a file they find out themselves.
    fn report(&self, pages: &[u64]) {
        let Some(watch) = &self.watch else {
            if !pages.is_empty() {
                journal::report_unknown();
            }
            return;
        };
        for page in pages {
            match watch.page(*page) {
                Some(name) => journal::report(name),
                None if watch.touches(&(*page..*page + 1)) => journal::report_unknown(),
                None => {}
            }
        }
    }

    /// Gives a watch up that was about other memory. What was written there cannot be found out any
    /// more, though others may have it yet.
    fn give_up(&mut self) {
        self.watch = None;
        journal::report_unknown();
    }

    /// Looks for what others have written.
    pub fn look(&mut self, memory: &Memory, changed: Changed) {
        let reported = self.reader.read();
        let watched = self.is_watched(memory);
        let Some(reported) = reported.filter(|_| watched) else {
            return self.scan(memory, Which::All, changed);
        };
        let mut places = std::mem::take(&mut self.hidden);
        if let Some(watch) = &self.watch {
            places.extend(reported.into_iter().flat_map(|page| watch.places(page)));
        }
        for page in places {
            if memory.is_readable(page, PAGE) {
                self.compare(page, false, changed);
            } else {
                self.hidden.insert(page);
            }
        }
        self.scan(memory, Which::Files, changed);
    }

    /// Takes every page for changed.
    pub fn take_all(&mut self, memory: &Memory, changed: Changed) {
        self.copies.clear();
        self.reader = Reader::at_end();
        self.is_watched(memory);
        self.scan(memory, Which::All, changed);
    }

    /// The kernel has changed pages in a way that it does not watch.
    pub fn invalidate(&mut self) {
        self.watch = None;
    }

    /// Other memory is there now.
    pub fn forget(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        if self.watch.as_ref().is_some_and(|watch| watch.touches(&range)) {
            self.give_up();
        }
        if !self.copies.is_empty() {
            self.copies.retain(|page, _| !range.contains(page));
        }
        self.hidden.retain(|page| !range.contains(page));
        self.views.forget(&range);
    }

    /// Which pages of a range can be read again and may have changed meanwhile.
    pub fn appear(&mut self, memory: &Memory, range: Range<u64>) -> Vec<u64> {
        let here = self.hidden.range(range).copied();
        let here: Vec<u64> = here.filter(|page| memory.is_readable(*page, PAGE)).collect();
        for page in &here {
            self.hidden.remove(page);
            self.compare(*page, false, &mut |_, _| {});
        }
        here
    }

    /// Whether the kernel has watched all of this process's memory; from now on it does, if it can.
    fn is_watched(&mut self, memory: &Memory) -> bool {
        match &self.watch {
            Some(watch) if watch.is_about(memory) => return true,
            Some(_) => self.give_up(),
            None => {}
        }
        if self.can_watch {
            self.watch = Watch::start(memory).ok();
            self.can_watch = self.watch.is_some();
        }
        false
    }

    /// What the kernel says this process has written.
    fn written(&mut self) -> Option<Vec<u64>> {
        let pages = self.watch.as_ref()?.written().ok();
        if pages.is_none() {
            self.watch = None;
        }
        pages
    }

    /// Looks for pages that are not as they were last known.
    fn scan(&mut self, memory: &Memory, which: Which, changed: Changed) {
        let mut known = self.copies.keys().copied().peekable();
        let mut pages = Vec::new();
        for (range, mapping) in memory.iter().filter(|(_, mapping)| mapping.shared) {
            let file = mapping.file.is_some();
            let known_already =
                if file { self.views.is_unchanged(&range, mapping) } else { which == Which::Files };
            if known_already {
                continue;
            }
            let mut there = resident(range.clone());
            while let Some(page) = known.next_if(|page| *page < range.end) {
                // Emptied, perhaps, and so not in memory any more.
                if page >= range.start {
                    there.push(page..page + PAGE);
                }
            }
            let first = pages.len();
            let readable = mapping.protection & libc::PROT_READ != 0;
            for page in there.into_iter().flat_map(|part| part.step_by(PAGE as usize)) {
                if readable {
                    pages.push((page, file));
                } else if !file {
                    self.hidden.insert(page);
                }
            }
            pages[first..].sort_unstable();
        }
        drop(known);
        pages.dedup();
        let mut rest = &pages[..];
        while let Some((page, file)) = rest.first() {
            let follows =
                |index: usize, other: &(u64, bool)| *other == (*page + index as u64 * PAGE, true);
            let run = rest.iter().enumerate().take_while(|(index, other)| follows(*index, other));
            let count = run.take(AT_ONCE).count().max(1);
            if *file {
                self.compare_file(*page, count, changed);
            } else {
                self.compare(*page, false, changed);
            }
            rest = &rest[count..];
        }
    }

    /// Looks at pages of a file that follow each other, with one question to the kernel if they are all there.
    fn compare_file(&mut self, first: u64, count: usize, changed: Changed) {
        let mut now = vec![0; count * PAGE as usize];
        let pages = (first..).step_by(PAGE as usize).take(count);
        if Checked.read(first, &mut now) {
            let contents = now.chunks(PAGE as usize);
            pages.zip(contents).for_each(|(page, now)| self.compare_with(page, now, changed));
        } else {
            pages.for_each(|page| self.compare(page, true, changed));
        }
    }

    /// Looks at one page, which the guest has and may read.
    fn compare(&mut self, page: u64, file: bool, changed: Changed) {
        let mut buffer;
        let now = if file {
            buffer = [0; PAGE as usize];
            // A file may be cut short by anyone.
            if !Checked.read(page, &mut buffer) {
                return;
            }
            &buffer[..]
        } else {
            // SAFETY: the guest has this page and may read it; nobody can take it away.
            unsafe { std::slice::from_raw_parts(page as *const u8, PAGE as usize) }
        };
        self.compare_with(page, now, changed);
    }

    fn compare_with(&mut self, page: u64, now: &[u8], changed: Changed) {
        match self.copies.get_mut(&page) {
            Some(copy) if **copy == *now => {}
            Some(copy) => {
                let differs = |(old, new): (&u8, &u8)| old != new;
                let first = copy.iter().zip(now).position(differs).unwrap_or(0);
                let last = copy.iter().zip(now).rposition(differs).unwrap_or(0);
                changed(page + first as u64, &now[first..=last]);
                copy.copy_from_slice(now);
            }
            None => {
                changed(page, now);
                self.copies.insert(page, now.into());
            }
        }
    }
}

/// The parts of a shared mapping that are in memory, whoever has put them there.
pub fn resident(range: Range<u64>) -> Vec<Range<u64>> {
    let pages = (range.end - range.start) / PAGE;
    let mut there = vec![0u8; pages as usize];
    // SAFETY: the kernel writes a byte for each page.
    let answer = unsafe {
        syscall!(libc::SYS_mincore, range.start, range.end - range.start, there.as_mut_ptr())
    };
    if answer < 0 {
        return vec![range];
    }
    let mut parts: Vec<Range<u64>> = Vec::new();
    for (index, _) in there.iter().enumerate().filter(|(_, byte)| **byte & 1 != 0) {
        let page = range.start + index as u64 * PAGE;
        match parts.last_mut() {
            Some(last) if last.end == page => last.end += PAGE,
            _ => parts.push(page..page + PAGE),
        }
    }
    parts
}
