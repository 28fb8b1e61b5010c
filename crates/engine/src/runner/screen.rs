//! The **shadow** of the guest's memory, and the close look at accesses that may not pass it.
//!
//! The table is private memory at a fixed place; the host writes to it by way of `/proc`. As long as
//! nothing is painted there, all of it is the kernel's one page of zeros: a test against it costs no
//! place in the processor's caches (huge pages would, and were slower). Translated code
//! ([`super::translate::filter`]) tests whole granules; what an instruction touches exactly is
//! worked out here, and only that becomes an event.

use super::clock;
use super::cpu::{Registers, cpu};
use super::engine::{Engine, decode_one, engine};
use super::explicit;
use super::heap::{self, Look};
use super::layout::{NOTHING, SHADOW, SHADOW_BASE, USER_END};
use super::owners;
use super::sys::{self, syscall};
use super::thread::Thread;
use super::translate::accesses::{self, Accesses, Form};
use super::translate::strays;
use events::plan::{Filter, GRANULE, Paint, STRAY};
use events::record;
use iced_x86::InstructionInfoFactory;
use std::ops::Range;

/// Every byte of the table that is not zero has this bit, for translated code to find; the plan has
/// the other seven.
pub const PAINTED: u8 = 0x80;

const PAGE: u64 = 4096;
/// Bytes of the table from which on clearing them means giving pages back.
const LARGE: usize = 16 << 12;

/// The table.
pub struct Shadow;

impl Shadow {
    /// Maps a table in which everything passes. A forked child has a copy of its parent's.
    pub fn new() -> Result<Self, i32> {
        let bytes = SHADOW.end - SHADOW.start;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: mapped where nothing else is, or an older table that this one takes the place of.
        unsafe {
            sys::map_fixed(SHADOW.start, bytes, protection, flags, -1, 0)?;
            let (nothing, page) = (NOTHING.end - NOTHING.start, 4096);
            sys::map_fixed(NOTHING.start - page, page, libc::PROT_READ, flags, -1, 0)?;
            sys::map_fixed(NOTHING.start, nothing, libc::PROT_NONE, flags, -1, 0)?;
            syscall!(libc::SYS_madvise, SHADOW.start, bytes, libc::MADV_DONTDUMP);
        }
        Ok(Self)
    }

    /// Gives a range its bits.
    pub fn paint(&mut self, paint: &Paint) {
        let end = paint.range.end.min(USER_END);
        if paint.range.start >= end {
            return;
        }
        let (first, last) = (paint.range.start / GRANULE, (end - 1) / GRANULE);
        let count = (last - first + 1) as usize;
        if paint.bits == 0 && count >= LARGE {
            return self.clear(first + SHADOW_BASE, last + 1 + SHADOW_BASE);
        }
        // SAFETY: inside the table, which only the guest's own accesses through us and the host
        // look at, byte by byte.
        unsafe {
            std::ptr::write_bytes((first + SHADOW_BASE) as *mut u8, stored(paint.bits), count)
        };
    }

    /// Gives bits to those granules of a range that have none.
    pub fn paint_blank(&mut self, range: Range<u64>, bits: u8) {
        let end = range.end.min(USER_END);
        if range.start >= end {
            return;
        }
        let (first, last) = (range.start / GRANULE, (end - 1) / GRANULE);
        // SAFETY: as in `paint`.
        let table = unsafe {
            let start = (first + SHADOW_BASE) as *mut u8;
            std::slice::from_raw_parts_mut(start, (last - first + 1) as usize)
        };
        for byte in table.iter_mut().filter(|byte| **byte == 0) {
            *byte = stored(bits);
        }
    }

    /// Clears a large part of the table: whole pages go back to the kernel.
    fn clear(&mut self, start: u64, end: u64) {
        let (first, last) = (start.next_multiple_of(PAGE), end & !(PAGE - 1));
        // SAFETY: as in `paint`.
        unsafe {
            std::ptr::write_bytes(start as *mut u8, 0, (first - start) as usize);
            syscall!(libc::SYS_madvise, first, last - first, libc::MADV_DONTNEED);
            std::ptr::write_bytes(last as *mut u8, 0, (end - last) as usize);
        }
    }

    /// The bits of a range, all together, as the plan knows them.
    pub fn bits(&self, address: u64, size: u32) -> u8 {
        let Some(last) = address.checked_add(u64::from(size.max(1)) - 1) else { return 0 };
        if last >= USER_END {
            return 0;
        }
        let (first, last) = (address / GRANULE, last / GRANULE);
        // SAFETY: inside the table.
        (first..=last)
            .fold(0, |bits, granule| bits | unsafe { *((granule + SHADOW_BASE) as *const u8) })
            & !PAINTED
    }
}

impl Shadow {
    /// Whether any byte of a range has bits.
    fn has_any(&self, address: u64, bytes: u64) -> bool {
        let Some(end) = address.checked_add(bytes).filter(|end| *end <= USER_END) else {
            return true;
        };
        let (first, last) = (address / GRANULE, end.div_ceil(GRANULE));
        // SAFETY: inside the table.
        let table = unsafe {
            std::slice::from_raw_parts((first + SHADOW_BASE) as *const u8, (last - first) as usize)
        };
        table.iter().any(|byte| *byte != 0)
    }
}

/// Bits of a plan as the table has them.
pub fn stored(bits: u8) -> u8 {
    if bits & !PAINTED == 0 { 0 } else { bits | PAINTED }
}

/// The accesses of the instruction that is next, except a repeated one's: what does not pass
/// becomes an event.
pub fn look(thread: &Thread) {
    let registers = &cpu().registers;
    let instruction = decode_one(registers.pc);
    let accesses = accesses::of(&instruction, &mut InstructionInfoFactory::new());
    if !matches!(accesses, Accesses::Repeat { .. }) {
        let mut put = |write, address, size| engine().test(registers.pc, write, address, size);
        explicit::each(&instruction, registers, &thread.vector, &mut put);
        if engine().config.plan.scramble {
            engine().suspect_compared(thread, registers.pc);
        }
        engine().compare(&strays::forms(&instruction, &accesses));
    }
}

/// A string instruction has repeated from what registers were `before` to what they are now.
pub fn look_back(before: &Registers) {
    let instruction = decode_one(before.pc);
    let mut factory = InstructionInfoFactory::new();
    let Accesses::Repeat { size, source, compares, writes, narrow, segment } =
        accesses::of(&instruction, &mut factory)
    else {
        return;
    };
    let mask = if narrow { 0xffff_ffff } else { u64::MAX };
    let after = &cpu().registers;
    let done = before.general[1].wrapping_sub(after.general[1]) & mask;
    let down = before.flags & DIRECTION != 0;
    let base = match segment {
        events::shape::Segment::Flat => 0,
        events::shape::Segment::Fs => before.fs,
        events::shape::Segment::Gs => super::cpu::gs_base(),
    };
    let engine = engine();
    let reaches =
        [(source, before.general[6].wrapping_add(base)), (compares || writes, before.general[7])];
    if !narrow
        && !reaches.iter().any(|(there, at)| *there && engine.is_painted(*at, done, size, down))
    {
        return;
    }
    for step in 0..done {
        let distance = step.wrapping_mul(u64::from(size));
        let moved = |start: u64| {
            let at = if down { start.wrapping_sub(distance) } else { start.wrapping_add(distance) };
            at & mask
        };
        let from = moved(before.general[6]).wrapping_add(base);
        let to = moved(before.general[7]);
        for (there, write, address) in
            [(source, false, from), (compares, false, to), (writes, true, to)]
        {
            if there {
                engine.test(before.pc, write, address, u32::from(size));
            }
        }
    }
}

/// Set while string instructions go downwards.
const DIRECTION: u64 = 0x400;

impl Engine {
    /// Whether anything may be painted where so many elements are.
    fn is_painted(&self, at: u64, elements: u64, size: u16, down: bool) -> bool {
        let Some(shadow) = &self.shadow else { return false };
        let bytes = elements.wrapping_mul(u64::from(size));
        let start = if down { at.wrapping_add(u64::from(size)).wrapping_sub(bytes) } else { at };
        shadow.has_any(start, bytes)
    }

    /// Tests one access exactly.
    fn test(&mut self, pc: u64, write: bool, address: u64, size: u32) {
        let (Some(shadow), Some(Filter::Shadow { reads, writes, .. })) =
            (&self.shadow, &self.config.plan.filter)
        else {
            return;
        };
        if heap::is_blank() {
            return;
        }
        let bits = shadow.bits(address, size);
        if bits & if write { *writes } else { *reads } == 0 {
            return;
        }
        let library = self.library(pc);
        if let (Some(heap), Some(library)) = (&self.heap, &library)
            && heap.is_own(pc, library)
        {
            return;
        }
        let reads_ahead =
            || library.is_some() && decode_one(pc).op0_register().is_vector_register();
        let looked = Look { address, size, write };
        if let (Some(heap), Some(shadow)) = (&mut self.heap, &mut self.shadow)
            && !heap.suspects(looked, shadow, reads_ahead)
        {
            return;
        }
        self.record_suspect(pc, looked, bits);
    }

    /// The code of the C library that an instruction is part of.
    pub fn library(&self, pc: u64) -> Option<Range<u64>> {
        let (range, mapping) = self.memory.find(pc)?;
        heap::is_c_library(mapping).then_some(range)
    }

    /// Compares addresses that the next instruction makes with the pointers that it makes them from.
    fn compare(&mut self, forms: &[Form]) {
        let (registers, Some(heap)) = (&cpu().registers, &self.heap) else { return };
        if cpu().owner_mask == 0 {
            return;
        }
        let value = |register: u8| registers.general[register as usize];
        let strays = |form: &Form| {
            let (pointer, other, by) = match *form {
                Form::Base(base, by) => (value(base), None, by as u64),
                Form::Sum(Some(base), index, scale, by) => {
                    let scaled = value(index).wrapping_mul(u64::from(scale));
                    let other = (scale == 1).then(|| value(index));
                    (value(base), other, scaled.wrapping_add_signed(i64::from(by)))
                }
                _ => return None,
            };
            let address = pointer.wrapping_add(by);
            // Of two pointers, one may be the distance of another block from the other.
            let astray = heap.strays(pointer, address)
                && !other.is_some_and(|other| heap.shares(other, address));
            astray.then_some(address)
        };
        // String functions of the C library go on past ends.
        let library = || self.library(registers.pc).is_some();
        if let Some(address) = forms.iter().find_map(strays).filter(|_| !library()) {
            self.record_suspect(registers.pc, Look { address, size: 0, write: false }, STRAY);
            owners::settle(true);
            cpu().owner_mask = owners::mask(false);
        }
    }

    /// Tells of a suspicion.
    pub fn record_suspect(&mut self, pc: u64, look: Look, bits: u8) {
        let Look { address, size, write } = look;
        let mut bytes = record::SUSPECT.to_le_bytes().to_vec();
        bytes.extend(pc.to_le_bytes());
        bytes.extend(address.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend([u8::from(write), bits]);
        let time = if self.config.plan.ticks { clock::now() } else { 0 };
        bytes.extend(time.to_le_bytes());
        self.record(&bytes);
    }
}
