//! Which pages of shared memory this process has written to, as the kernel knows it: a descriptor of
//! `userfaultfd` protects them against writing in a way that nobody notices but `PAGEMAP_SCAN`
//! (Linux 6.7). Where the kernel has neither there is no watch, and every page is looked at.
//!
//! Only memory without a file is watched: a file can also be written by a descriptor, which changes no
//! page table.

use crate::runner::memory::Memory;
use crate::runner::procfs;
use crate::runner::syscall::files::{PAGES, WATCH};
use crate::sys::{self, syscall};
use std::ops::Range;
use std::os::fd::IntoRawFd;

const PAGE: u64 = 4096;

/// Memory that a process shares, whichever place it has there: its number and page in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Page(pub u64);

/// A part of the address space that shows shared memory.
struct Part {
    range: Range<u64>,
    /// The kernel's number of the memory behind it.
    memory: u64,
    /// Page in that memory of the first one here.
    first: u64,
}

/// The kernel watches.
pub struct Watch {
    ranges: Vec<Range<u64>>,
    parts: Vec<Part>,
}

/// The kernel does not, or not here.
pub struct Blind;

impl Watch {
    /// Watches all memory without a file that this process shares, as if nothing had been written.
    pub fn start(memory: &Memory) -> Result<Self, Blind> {
        let ranges = shared_ranges(memory);
        if !ranges.is_empty() {
            sys::with_lifted_limit(open)?;
        }
        for range in &ranges {
            register(range)?;
        }
        let parts = parts(&ranges);
        Ok(Self { ranges, parts })
    }

    /// Whether the process still has the memory that it had when the watch began.
    pub fn is_about(&self, memory: &Memory) -> bool {
        shared_ranges(memory) == self.ranges
    }

    /// Whether a range has any memory that is watched.
    pub fn touches(&self, range: &Range<u64>) -> bool {
        self.ranges.iter().any(|part| part.start < range.end && range.start < part.end)
    }

    /// Every page that was written to since this was asked last, and perhaps some that were not.
    pub fn written(&self) -> Result<Vec<u64>, Blind> {
        let mut pages = Vec::new();
        for range in &self.ranges {
            scan(range, Asked::Written, &mut pages)?;
            // What was written and then taken out of the page table has left no trace in it; what
            // was not written has.
            scan(range, Asked::Gone, &mut pages)?;
        }
        Ok(pages)
    }

    /// The name of a page that all processes know.
    pub fn page(&self, address: u64) -> Option<Page> {
        let part = self.parts.iter().find(|part| part.range.contains(&address))?;
        let number = part.first + (address - part.range.start) / PAGE;
        Some(Page(part.memory << 32 | number & 0xffff_ffff))
    }

    /// Where this process has a page.
    pub fn places(&self, page: Page) -> impl Iterator<Item = u64> {
        let (memory, number) = (page.0 >> 32, page.0 & 0xffff_ffff);
        self.parts.iter().filter(move |part| part.memory & 0xffff_ffff == memory).filter_map(
            move |part| {
                let place = part.range.start + number.checked_sub(part.first)? * PAGE;
                (place < part.range.end).then_some(place)
            },
        )
    }
}

/// Memory without a file that this process shares, in parts that do not touch.
fn shared_ranges(memory: &Memory) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for (range, _) in memory.iter().filter(|(_, mapping)| mapping.shared && mapping.file.is_none())
    {
        match ranges.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => ranges.push(range),
        }
    }
    ranges
}

/// What the kernel calls the memory in these ranges. Two that have the same number by chance only
/// cost a look too many.
fn parts(ranges: &[Range<u64>]) -> Vec<Part> {
    let maps = procfs::text("maps");
    maps.lines()
        .filter_map(part)
        .filter(|part| ranges.iter().any(|range| range.contains(&part.range.start)))
        .collect()
}

/// From a line like `7f00-8f00 rw-s 00001000 00:01 42 /dev/zero (deleted)`.
fn part(line: &str) -> Option<Part> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
    let range = hexadecimal(start)?..hexadecimal(end)?;
    let first = hexadecimal(words.nth(1)?)? / PAGE;
    let memory = words.nth(1)?.parse().ok()?;
    Some(Part { range, memory, first })
}

const UFFDIO_API: u64 = 0xc018_aa3f;
const UFFDIO_REGISTER: u64 = 0xc020_aa00;
const UFFDIO_WRITEPROTECT: u64 = 0xc018_aa06;
const PAGEMAP_SCAN: u64 = 0xc060_6610;

/// Opens the two descriptors, in place of those of an earlier watch, which ends with them.
fn open() -> Result<(), Blind> {
    const UFFD_USER_MODE_ONLY: i32 = 1;
    const UFFD_API: u64 = 0xaa;
    const WP_HUGETLBFS_SHMEM: u64 = 1 << 12;
    const WP_ASYNC: u64 = 1 << 15;
    let flags = libc::O_CLOEXEC | UFFD_USER_MODE_ONLY;
    // SAFETY: makes a descriptor.
    moved(unsafe { syscall!(libc::SYS_userfaultfd, flags) }, WATCH)?;
    let features = [UFFD_API, WP_HUGETLBFS_SHMEM | WP_ASYNC, 0];
    ask(WATCH, UFFDIO_API, &mut { features })?;
    moved(procfs::open("pagemap").map_or(-1, |file| i64::from(file.into_raw_fd())), PAGES)
}

fn moved(descriptor: i64, number: i32) -> Result<(), Blind> {
    if move_to(descriptor, number) { Ok(()) } else { Err(Blind) }
}

/// Gives a new descriptor, if it is one, a number of the engine's.
pub fn move_to(descriptor: i64, number: i32) -> bool {
    // SAFETY: descriptors of ours.
    descriptor >= 0
        && unsafe {
            let moved = syscall!(libc::SYS_dup3, descriptor, number, libc::O_CLOEXEC);
            syscall!(libc::SYS_close, descriptor);
            moved >= 0
        }
}

/// Has the kernel read and write some words.
fn ask<const N: usize>(descriptor: i32, what: u64, words: &mut [u64; N]) -> Result<(), Blind> {
    // SAFETY: each request is given as many words as it is about; ranges are of memory whose
    // contents are not changed.
    let answer = unsafe { syscall!(libc::SYS_ioctl, descriptor, what, words.as_mut_ptr()) };
    if answer < 0 { Err(Blind) } else { Ok(()) }
}

fn register(range: &Range<u64>) -> Result<(), Blind> {
    const REGISTER_MODE_WP: u64 = 2;
    const WRITEPROTECT_MODE_WP: u64 = 1;
    let (start, length) = (range.start, range.end - range.start);
    ask(WATCH, UFFDIO_REGISTER, &mut [start, length, REGISTER_MODE_WP, 0])?;
    ask(WATCH, UFFDIO_WRITEPROTECT, &mut [start, length, WRITEPROTECT_MODE_WP])
}

/// Pages that are asked for.
#[derive(Clone, Copy)]
enum Asked {
    Written,
    Gone,
}

/// Adds the pages of a range that are as asked for, which the kernel then takes for not written.
fn scan(range: &Range<u64>, asked: Asked, pages: &mut Vec<u64>) -> Result<(), Blind> {
    const REGIONS: usize = 256;
    const WP_MATCHING: u64 = 1;
    const CHECK_WPASYNC: u64 = 2;
    const WRITTEN: u64 = 1 << 1;
    const PRESENT: u64 = 1 << 3;
    const SWAPPED: u64 = 1 << 4;
    let (inverted, mask) = match asked {
        Asked::Written => (0, WRITTEN),
        Asked::Gone => (PRESENT | SWAPPED, PRESENT | SWAPPED),
    };
    let mut regions = [[0u64; 3]; REGIONS];
    let mut start = range.start;
    while start < range.end {
        let room = regions.as_mut_ptr() as u64;
        let mut words = [
            12 * 8, // bytes of the request
            WP_MATCHING | CHECK_WPASYNC,
            start,
            range.end,
            0, // where the kernel stopped
            room,
            REGIONS as u64,
            0, // as many pages as there are
            inverted,
            mask,
            0,
            mask,
        ];
        // SAFETY: the kernel writes at most as many regions as there is room for.
        let found = unsafe { syscall!(libc::SYS_ioctl, PAGES, PAGEMAP_SCAN, words.as_mut_ptr()) };
        let found = usize::try_from(found).map_err(|_| Blind)?;
        for [from, to, _] in &regions[..found.min(REGIONS)] {
            pages.extend((*from..*to).step_by(PAGE as usize));
        }
        if words[4] <= start {
            return Err(Blind);
        }
        start = words[4];
    }
    Ok(())
}
