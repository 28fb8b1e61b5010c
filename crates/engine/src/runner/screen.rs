//! The **shadow** of the guest's memory, and the close look at accesses that may not pass it.
//!
//! The table is an anonymous file, mapped here at a fixed place and open to the host under a fixed
//! descriptor. Its pages come into being when they are first looked at. Translated code
//! ([`super::translate::filter`]) tests whole granules; what an instruction touches exactly is
//! worked out here, and only that becomes an event.

use super::cpu::{Registers, cpu};
use super::engine::{Engine, decode_one, engine};
use super::explicit;
use super::heap::{self, Look};
use super::layout::{SHADOW, SHADOW_BASE, USER_END};
use super::sys::{self, syscall};
use super::syscall::files;
use super::thread::Thread;
use super::translate::accesses::{self, Accesses};
use events::plan::{Filter, GRANULE, Paint};
use events::record;
use iced_x86::{Instruction, InstructionInfoFactory};

/// Every byte of the table that is not zero has this bit, for translated code to find; the plan has
/// the other seven.
pub const PAINTED: u8 = 0x80;

const PAGE: u64 = 4096;
/// Bytes of the table from which on clearing them means giving pages back.
const LARGE: usize = 16 << 12;

/// The table.
pub struct Shadow;

impl Shadow {
    /// Maps a table in which everything passes. A forked child gets a copy of its parent's.
    pub fn new(copied: bool) -> Result<Self, i32> {
        let bytes = SHADOW.end - SHADOW.start;
        // SAFETY: a file of our own, mapped where nothing else is, or an older table that this
        // one takes the place of.
        unsafe {
            let file = syscall!(libc::SYS_memfd_create, c"shadow".as_ptr(), libc::MFD_CLOEXEC);
            if file < 0 {
                return Err(-file as i32);
            }
            let file = file as i32;
            let sized = syscall!(libc::SYS_ftruncate, file, bytes);
            if sized < 0 {
                return Err(-sized as i32);
            }
            if copied {
                copy_data(files::SHADOW, file);
            }
            sys::with_lifted_limit(|| {
                syscall!(libc::SYS_dup3, file, files::SHADOW, libc::O_CLOEXEC)
            });
            syscall!(libc::SYS_close, file);
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
            sys::map_fixed(SHADOW.start, bytes, protection, flags, files::SHADOW, 0)?;
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

    /// Clears a large part of the table: whole pages go back to the kernel.
    fn clear(&mut self, start: u64, end: u64) {
        let (first, last) = (start.next_multiple_of(PAGE), end & !(PAGE - 1));
        // SAFETY: as in `paint`.
        unsafe {
            std::ptr::write_bytes(start as *mut u8, 0, (first - start) as usize);
            syscall!(libc::SYS_madvise, first, last - first, libc::MADV_REMOVE);
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

/// Bits of a plan as the table has them.
pub fn stored(bits: u8) -> u8 {
    if bits & !PAINTED == 0 { 0 } else { bits | PAINTED }
}

/// Copies what has been written of a table; the rest is zero in both.
///
/// # Safety
/// `from` must be the file that is mapped at [`SHADOW`].
unsafe fn copy_data(from: i32, to: i32) {
    let mut at = 0;
    loop {
        // SAFETY: descriptor calls, and a write from the mapped table.
        unsafe {
            let data = syscall!(libc::SYS_lseek, from, at, libc::SEEK_DATA);
            if data < 0 {
                return;
            }
            let end = syscall!(libc::SYS_lseek, from, data, libc::SEEK_HOLE);
            let (mut data, end) = (data as u64, end.max(data) as u64);
            while data < end {
                let length = (end - data).min(1 << 30);
                let done = syscall!(libc::SYS_pwrite64, to, SHADOW.start + data, length, data);
                if done <= 0 {
                    return;
                }
                data += done as u64;
            }
            at = end;
        }
    }
}

/// The accesses of the instruction that is next, except a repeated one's: what does not pass
/// becomes an event.
pub fn look(thread: &Thread) {
    let registers = &cpu().registers;
    let instruction = decode_one(registers.pc);
    if !is_repeated(&instruction) {
        let mut put = |write, address, size| engine().test(registers.pc, write, address, size);
        explicit::each(&instruction, registers, &thread.vector, &mut put);
    }
}

fn is_repeated(instruction: &Instruction) -> bool {
    let mut factory = InstructionInfoFactory::new();
    matches!(accesses::of(instruction, &mut factory), Accesses::Repeat { .. })
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
        let library =
            || self.memory.find(pc).is_some_and(|(_, mapping)| heap::is_c_library(mapping));
        let looked = Look { address, size, write };
        if let (Some(heap), Some(shadow)) = (&mut self.heap, &mut self.shadow)
            && !heap.suspects(looked, shadow, library)
        {
            return;
        }
        let mut bytes = record::SUSPECT.to_le_bytes().to_vec();
        bytes.extend(pc.to_le_bytes());
        bytes.extend(address.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend([u8::from(write), bits]);
        self.record(&bytes);
    }
}
