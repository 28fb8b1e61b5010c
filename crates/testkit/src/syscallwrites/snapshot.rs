//! A copy of a process's writable memory, and the difference of two.

use crate::singlestep::Process;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

pub const PAGE: u64 = 0x1000;
/// Of larger address spaces even the page tables take long to read.
const MOST_MAPPED: u64 = 8 << 30;
/// The most pieces that one read takes.
const PIECES: usize = 1024;

/// A writable private mapping.
#[derive(Clone, Debug)]
pub struct Area {
    pub range: Range<u64>,
    /// Backed by nothing, so that a page that is not there yet reads as zeros.
    anonymous: bool,
    /// What `/proc` calls it.
    name: String,
}

/// The mappings of a process that may be written, private and shared.
#[derive(Clone, Debug, Default)]
pub struct Areas {
    pub private: Vec<Area>,
    shared: Vec<Range<u64>>,
}

impl Areas {
    /// Reads them from `/proc`.
    pub fn of(process: &Process) -> std::io::Result<Self> {
        let text = std::fs::read_to_string(format!("/proc/{}/maps", process.pid))?;
        let mut areas = Self::default();
        for line in text.lines() {
            areas.add(line);
        }
        Ok(areas)
    }

    fn add(&mut self, line: &str) -> Option<()> {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let range = u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?;
        let rights = words.next()?.as_bytes();
        let inode = words.nth(2)?;
        let name = words.next().unwrap_or("memory without a name").to_owned();
        if !rights.starts_with(b"rw") {
            return None;
        }
        if rights[3] == b'p' {
            self.private.push(Area { range, anonymous: inode == "0", name });
        } else {
            self.shared.push(range);
        }
        Some(())
    }

    /// How many bytes of private memory are mapped, whether they are there or not.
    fn size(&self) -> u64 {
        self.private.iter().map(|area| area.range.end - area.range.start).sum()
    }

    /// Whether all of these bytes may be written.
    pub fn hold(&self, range: Range<u64>) -> bool {
        let mut at = range.start;
        while at < range.end {
            let private = self.private.iter().map(|area| &area.range);
            match private.chain(&self.shared).find(|area| area.contains(&at)) {
                Some(area) => at = area.end,
                None => return false,
            }
        }
        true
    }

    /// What the memory at an address is.
    pub fn name(&self, address: u64) -> &str {
        self.at(address).map_or("no private memory", |area| &area.name)
    }

    fn at(&self, address: u64) -> Option<&Area> {
        self.private.iter().find(|area| area.range.contains(&address))
    }
}

/// Writable memory at one moment.
#[derive(Debug, Default)]
pub struct Snapshot {
    pub areas: Areas,
    /// Runs of pages, in order, and where in `bytes` each starts.
    runs: Vec<(Range<u64>, usize)>,
    bytes: Vec<u8>,
}

impl Snapshot {
    /// Which pages there are to be copied; an error also where so much is mapped that finding out
    /// would take long.
    pub fn plan(process: &Process) -> std::io::Result<Self> {
        let areas = Areas::of(process)?;
        if areas.size() > MOST_MAPPED {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        let pagemap = File::open(format!("/proc/{}/pagemap", process.pid))?;
        let mut snapshot = Self { areas, ..Self::default() };
        let mut runs = Vec::new();
        for area in &snapshot.areas.private {
            if area.anonymous {
                present(&pagemap, &area.range, &mut runs);
            } else {
                runs.push(area.range.clone());
            }
        }
        let mut at = 0;
        for run in runs {
            let length = (run.end - run.start) as usize;
            snapshot.runs.push((run, at));
            at += length;
        }
        Ok(snapshot)
    }

    /// How many bytes there are to copy.
    pub fn size(&self) -> u64 {
        self.runs.iter().map(|(run, _)| run.end - run.start).sum()
    }

    /// Copies them. A run that cannot be read to its end, as behind the end of a mapped file, is cut.
    pub fn copy(&mut self, process: &Process) {
        self.bytes.resize(self.size() as usize, 0);
        let mut first = 0;
        while first < self.runs.len() {
            let last = self.runs.len().min(first + PIECES);
            let pieces: Vec<(u64, usize)> = self.runs[first..last]
                .iter()
                .map(|(run, _)| (run.start, (run.end - run.start) as usize))
                .collect();
            let from = self.runs[first].1;
            let mut read = process.read(&pieces, &mut self.bytes[from..]) as u64;
            let mut done = 0;
            for (run, _) in &mut self.runs[first..last] {
                let length = (run.end - run.start).min(read);
                let whole = length == run.end - run.start;
                run.end = run.start + length / PAGE * PAGE;
                read -= length;
                done += 1;
                if !whole {
                    break;
                }
            }
            first += done;
        }
    }

    /// The bytes of a page, if it was copied.
    fn page(&self, address: u64) -> Option<&[u8]> {
        let after = self.runs.partition_point(|(run, _)| run.start <= address);
        let (run, at) = self.runs.get(after.checked_sub(1)?)?;
        if !run.contains(&address) {
            return None;
        }
        let at = at + (address - run.start) as usize;
        self.bytes.get(at..at + PAGE as usize)
    }

    /// Where `later` differs, as runs of bytes. What was not mapped in both is not compared.
    pub fn changes(&self, later: &Self) -> Vec<Range<u64>> {
        const ZEROS: [u8; PAGE as usize] = [0; PAGE as usize];
        let mut changes = Vec::new();
        for (run, _) in &later.runs {
            for address in run.clone().step_by(PAGE as usize) {
                let Some(now) = later.page(address) else { continue };
                let fresh = || self.areas.at(address)?.anonymous.then_some(&ZEROS[..]);
                let Some(then) = self.page(address).or_else(fresh) else { continue };
                if now != then {
                    differences(address, then, now, &mut changes);
                }
            }
        }
        changes
    }
}

/// Appends runs of pages that are in memory or swapped out.
fn present(pagemap: &File, range: &Range<u64>, runs: &mut Vec<Range<u64>>) {
    const PRESENT: u64 = 0b11 << 62;
    let mut entries = [0; 8 * 512];
    let mut at = range.start;
    while at < range.end {
        let count = ((range.end - at) / PAGE).min(512) as usize;
        let wanted = &mut entries[..8 * count];
        if pagemap.read_exact_at(wanted, at / PAGE * 8).is_err() {
            return;
        }
        for entry in wanted.chunks_exact(8) {
            let bits = entry.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
            if bits & PRESENT != 0 {
                match runs.last_mut() {
                    Some(run) if run.end == at => run.end += PAGE,
                    _ => runs.push(at..at + PAGE),
                }
            }
            at += PAGE;
        }
    }
}

/// Appends the runs of bytes in which two pages differ.
fn differences(address: u64, then: &[u8], now: &[u8], changes: &mut Vec<Range<u64>>) {
    for (at, (then, now)) in (address..).zip(then.iter().zip(now)) {
        if then == now {
            continue;
        }
        match changes.last_mut() {
            Some(run) if run.end == at => run.end += 1,
            _ => changes.push(at..at + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_told_apart() {
        let mut areas = Areas::default();
        areas.add("1000-3000 rw-p 00000000 00:00 0 [heap]");
        areas.add("3000-4000 rw-p 00001000 fe:00 12 /lib/x.so");
        areas.add("5000-6000 rw-s 00000000 00:01 7 /dev/zero (deleted)");
        areas.add("7000-8000 r--p 00000000 fe:00 12 /lib/x.so");
        assert_eq!(areas.private.len(), 2);
        assert!(areas.private[0].anonymous && !areas.private[1].anonymous);
        assert!(areas.hold(0x1ff0..0x4000) && areas.hold(0x5000..0x5001));
        assert!(!areas.hold(0x3ff0..0x4001) && !areas.hold(0x7000..0x7001));
    }

    #[test]
    fn differences_are_runs_of_bytes() {
        let (then, mut now) = ([0; 8], [0; 8]);
        now[2..4].fill(1);
        now[7] = 1;
        let mut changes = Vec::new();
        differences(0x1000, &then, &now, &mut changes);
        assert_eq!(changes, [0x1002..0x1004, 0x1007..0x1008]);
    }
}
