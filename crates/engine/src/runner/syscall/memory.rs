//! Calls that arrange the address space. The engine chooses every address and keeps the map.

use super::Outcome;
use crate::layout;
use crate::runner::engine::Engine;
use crate::runner::memory::Mapping;
use crate::runner::screens::TABLES_ARE_TAKEN;
use crate::runner::{procfs, record, report};
use crate::sys::{self, syscall};
use std::ops::Range;
use std::rc::Rc;

const PAGE: u64 = 4096;
const PROT_GROWSDOWN: u64 = 0x0100_0000;
const MAP_32BIT_TOP: u64 = layout::ENGINE.start;
const MAP_32BIT_BOTTOM: u64 = 0x4000_0000;

fn pages(length: u64) -> Option<u64> {
    length.checked_next_multiple_of(PAGE)
}

/// Protection that the kernel is given: what can be executed must be readable for us.
fn readable(protection: u64) -> u64 {
    let execute_only = protection & 7 == libc::PROT_EXEC as u64;
    if execute_only { protection | libc::PROT_READ as u64 } else { protection }
}

/// `mmap`.
pub fn mmap(engine: &mut Engine, a: [u64; 6]) -> Outcome {
    let [hint, length, protection, flags, descriptor, offset] = a;
    let flags = flags as i32;
    let Some(length) = pages(length).filter(|length| *length > 0) else {
        return Outcome::error(if length == 0 { libc::EINVAL } else { libc::ENOMEM });
    };
    let fixed = flags & (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE) != 0;
    let place = if fixed {
        match check_fixed(engine, (hint, length), protection, flags) {
            Ok(place) => place,
            Err(error) => return Outcome::error(error),
        }
    } else {
        match choose(engine, hint, length, flags) {
            Some(place) => place,
            None => return Outcome::error(libc::ENOMEM),
        }
    };
    let real_flags = flags & !(libc::MAP_FIXED_NOREPLACE | libc::MAP_32BIT) | libc::MAP_FIXED;
    if layout::belongs_to_engine(&(place..place + length)) {
        return Outcome::Answer(close(engine, place..place + length, real_flags));
    }
    // SAFETY: the engine chose the place or checked that it is the guest's.
    let answer = unsafe {
        syscall!(
            libc::SYS_mmap,
            place,
            length,
            readable(protection),
            real_flags,
            descriptor,
            offset
        )
    };
    if answer == place as i64 {
        engine.code_changes(place, place + length);
        let anonymous = flags & libc::MAP_ANONYMOUS != 0;
        let file = if anonymous { None } else { descriptor_path(descriptor) };
        let shared = flags & libc::MAP_SHARED != 0;
        let protection = protection as i32 & 7;
        let identity = if shared && !anonymous { identity(descriptor) } else { None };
        let mapping = Mapping { protection, shared, file, offset, identity, view: None };
        engine.process.memory.insert(place..place + length, mapping);
    }
    Outcome::Answer(answer)
}

fn check_fixed(
    engine: &Engine,
    (place, length): (u64, u64),
    protection: u64,
    flags: i32,
) -> Result<u64, i32> {
    let end = place.checked_add(length).filter(|end| *end <= layout::USER_END);
    let Some(end) = end else { return Err(libc::ENOMEM) };
    if !place.is_multiple_of(PAGE) {
        return Err(libc::EINVAL);
    }
    if layout::belongs_to_engine(&(place..end)) && !closes(protection, flags) {
        if own_tables_are_wanted(&(place..end)) {
            report::unfit(TABLES_ARE_TAKEN);
        }
        return Err(if flags & libc::MAP_FIXED_NOREPLACE != 0 {
            libc::EEXIST
        } else {
            libc::ENOMEM
        });
    }
    if flags & libc::MAP_FIXED_NOREPLACE != 0 && !engine.process.memory.is_free(&(place..end)) {
        return Err(libc::EEXIST);
    }
    Ok(place)
}

/// Whether a mapping is there only so that nothing else is, as sanitizers fill the gaps between their
/// tables. Over what is ours such a wish is granted without being carried out.
fn closes(protection: u64, flags: i32) -> bool {
    protection & 7 == 0
        && flags & libc::MAP_ANONYMOUS != 0
        && flags & libc::MAP_FIXED_NOREPLACE == 0
}

/// Maps what of a range is not ours so that nothing can be accessed there; the answer of `mmap`.
fn close(engine: &mut Engine, range: Range<u64>, flags: i32) -> i64 {
    for part in layout::without_own(range.clone()) {
        let length = part.end - part.start;
        // SAFETY: a part of what the guest asked for, and not ours.
        let placed = unsafe { sys::map_fixed(part.start, length, 0, flags, -1, 0) };
        if let Err(error) = placed {
            return -i64::from(error);
        }
        engine.code_changes(part.start, part.end);
        engine.process.memory.insert(part, Mapping::default());
    }
    range.start as i64
}

/// Whether something is to be mapped where accesses are tested against tables.
fn own_tables_are_wanted(range: &Range<u64>) -> bool {
    layout::is_in_tables(range) && layout::belongs_to_engine(&layout::TABLES)
}

fn choose(engine: &Engine, hint: u64, length: u64, flags: i32) -> Option<u64> {
    if flags & libc::MAP_32BIT != 0 {
        return engine.process.memory.place_below(length, MAP_32BIT_TOP, MAP_32BIT_BOTTOM);
    }
    engine.process.memory.place(hint, length)
}

fn descriptor_path(descriptor: u64) -> Option<Rc<str>> {
    Some(procfs::link(descriptor)?.to_string_lossy().into())
}

/// What tells whether two mappings show the same file.
fn identity(descriptor: u64) -> Option<(u64, u64)> {
    record::identity(descriptor)
}

/// `munmap`.
pub fn munmap(engine: &mut Engine, a: [u64; 6]) -> Outcome {
    let Some(length) = pages(a[1]).filter(|length| *length > 0 && a[0].is_multiple_of(PAGE)) else {
        return Outcome::error(libc::EINVAL);
    };
    let Some(end) = a[0].checked_add(length) else { return Outcome::error(libc::EINVAL) };
    for part in layout::without_own(a[0]..end) {
        // SAFETY: the range is the guest's.
        let answer = unsafe { syscall!(libc::SYS_munmap, part.start, part.end - part.start) };
        if answer != 0 {
            return Outcome::Answer(answer);
        }
        engine.code_changes(part.start, part.end);
        engine.process.memory.remove(part);
    }
    Outcome::Answer(0)
}

/// `mprotect`.
pub fn mprotect(engine: &mut Engine, a: [u64; 6]) -> Outcome {
    let Some(length) = pages(a[1]) else { return Outcome::error(libc::ENOMEM) };
    let Some(end) = a[0].checked_add(length) else { return Outcome::error(libc::ENOMEM) };
    if layout::belongs_to_engine(&(a[0]..end)) {
        return Outcome::error(libc::ENOMEM);
    }
    // Of a stack all that is below changes too, and all that it grows to.
    let down = a[2] & PROT_GROWSDOWN != 0;
    let stack = engine.process.memory.find(a[0]).filter(|_| down);
    let begin = stack.map_or(a[0], |(range, _)| range.start);
    if down {
        // A page that is guarded would be the end of the mapping to the kernel.
        engine.unguard(begin, end);
    }
    let (start, length, protection) = match &engine.log.replayer {
        // It is all there already, and does not grow.
        Some(_) => (begin, end - begin, a[2] & 7),
        None => (a[0], length, a[2]),
    };
    // SAFETY: the range is the guest's.
    let answer = unsafe { syscall!(libc::SYS_mprotect, start, length, readable(protection)) };
    if answer == 0 {
        if engine.process.memory.has_code(begin..end) || a[2] & libc::PROT_EXEC as u64 != 0 {
            engine.code_changes(begin, end);
        }
        engine.process.memory.protect(begin..end, a[2] as i32 & 7);
    }
    Outcome::Answer(answer)
}

/// `mremap`.
pub fn mremap(engine: &mut Engine, a: [u64; 6]) -> Outcome {
    let [old, old_length, new_length, flags, new, _] = a;
    let (Some(old_length), Some(new_length)) = (pages(old_length), pages(new_length)) else {
        return Outcome::error(libc::EINVAL);
    };
    let flags = flags as i32;
    let Some((range, mapping)) = engine.process.memory.find(old) else {
        return Outcome::error(libc::EFAULT);
    };
    let mut mapping = mapping.clone();
    mapping.offset += old - range.start;
    if flags & libc::MREMAP_FIXED != 0 {
        if layout::belongs_to_engine(&(new..new.saturating_add(new_length))) {
            return Outcome::error(libc::ENOMEM);
        }
        return moved(engine, [old, old_length, new_length, a[3], new], mapping);
    }
    let end = old + old_length;
    let grows = new_length > old_length;
    let stays = flags & libc::MREMAP_DONTUNMAP == 0;
    if stays && !grows
        || stays && range.end == end && engine.process.memory.is_free(&(end..old + new_length))
    {
        // SAFETY: the range is the guest's; it shrinks, or grows where nothing is.
        let answer = unsafe { syscall!(libc::SYS_mremap, old, old_length, new_length, 0) };
        if answer == old as i64 {
            engine.code_changes(old, old + old_length.max(new_length));
            engine.process.memory.remove(old..end);
            engine.process.memory.insert(old..old + new_length, mapping);
            return Outcome::Answer(answer);
        }
    }
    if flags & libc::MREMAP_MAYMOVE == 0 {
        return Outcome::error(libc::ENOMEM);
    }
    let Some(place) = engine.process.memory.place(0, new_length) else {
        return Outcome::error(libc::ENOMEM);
    };
    let flags = (flags | libc::MREMAP_FIXED) as u64;
    moved(engine, [old, old_length, new_length, flags, place], mapping)
}

fn moved(engine: &mut Engine, a: [u64; 5], mapping: Mapping) -> Outcome {
    let [old, old_length, new_length, flags, new] = a;
    // SAFETY: source and destination are the guest's.
    let answer = unsafe { syscall!(libc::SYS_mremap, old, old_length, new_length, flags, new) };
    if answer == new as i64 {
        engine.code_changes(old, old + old_length);
        engine.code_changes(new, new + new_length);
        if flags as i32 & libc::MREMAP_DONTUNMAP == 0 && old_length > 0 {
            engine.process.memory.remove(old..old + old_length);
        }
        engine.process.memory.insert(new..new + new_length, mapping);
    }
    Outcome::Answer(answer)
}

/// `brk`, in an arena of its own behind the executable.
pub fn brk(engine: &mut Engine, a: [u64; 6]) -> Outcome {
    let heap = engine.process.memory.heap.clone();
    let wanted = a[0];
    if wanted < heap.start {
        return Outcome::Answer(heap.end as i64);
    }
    let (old, new) = (heap.end.next_multiple_of(PAGE), wanted.next_multiple_of(PAGE));
    if new > old {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        if !engine.process.memory.is_free(&(old..new)) {
            return Outcome::Answer(heap.end as i64);
        }
        // SAFETY: nothing is there.
        let answer =
            unsafe { syscall!(libc::SYS_mmap, old, new - old, protection, flags, -1i64, 0) };
        if answer != old as i64 {
            return Outcome::Answer(heap.end as i64);
        }
        let mapping = Mapping { protection, ..Mapping::default() };
        engine.process.memory.insert(old..new, mapping);
    } else if new < old {
        engine.code_changes(new, old);
        // SAFETY: the end of the guest's own heap.
        unsafe { syscall!(libc::SYS_munmap, new, old - new) };
        engine.process.memory.remove(new..old);
    }
    engine.process.memory.heap.end = wanted;
    Outcome::Answer(wanted as i64)
}

/// `shmat`: the engine chooses the place.
pub fn shmat(engine: &mut Engine, a: [u64; 6]) -> Outcome {
    const IPC_STAT: i32 = 2;
    const SHM_RDONLY: u64 = 0o10000;
    let mut status = [0u64; 14];
    // SAFETY: the kernel writes one `shmid_ds`, 112 bytes.
    let answer = unsafe { syscall!(libc::SYS_shmctl, a[0], IPC_STAT, status.as_mut_ptr()) };
    if answer < 0 {
        return Outcome::Answer(answer);
    }
    let length = status[6].next_multiple_of(PAGE);
    let place = if a[1] != 0 {
        a[1] & !(PAGE - 1)
    } else {
        engine.process.memory.place(0, length).unwrap_or(0)
    };
    if place == 0 || layout::belongs_to_engine(&(place..place + length)) {
        return Outcome::error(libc::ENOMEM);
    }
    // SAFETY: the place is free or the guest's own choice.
    let answer = unsafe { syscall!(libc::SYS_shmat, a[0], place, a[2]) };
    if answer == place as i64 {
        let write = if a[2] & SHM_RDONLY == 0 { libc::PROT_WRITE } else { 0 };
        let mapping =
            Mapping { protection: libc::PROT_READ | write, shared: true, ..Mapping::default() };
        engine.process.memory.insert(place..place + length, mapping);
    }
    Outcome::Answer(answer)
}

/// `shmdt`.
pub fn shmdt(engine: &mut Engine, a: [u64; 6]) -> Outcome {
    let range = engine.process.memory.find(a[0]).map(|(range, _)| range);
    // SAFETY: the kernel checks that a segment is attached there.
    let answer = unsafe { syscall!(libc::SYS_shmdt, a[0]) };
    if let (0, Some(range)) = (answer, range) {
        engine.process.memory.remove(range);
    }
    Outcome::Answer(answer)
}

/// `io_setup` has succeeded: the kernel has mapped a ring where it liked, and its address is the
/// number of the context. The place is not ours to hand out any more.
pub fn ring_appeared(engine: &mut Engine, context: u64) {
    use crate::runner::guest;
    let Some(start) = guest::read_u64(context) else { return };
    let begins = format!("{start:x}-");
    let maps = procfs::text("maps");
    let range = maps.lines().find_map(|line| line.strip_prefix(&begins)?.split(' ').next());
    let Some(end) = range.and_then(|end| u64::from_str_radix(end, 16).ok()) else { return };
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let mapping = Mapping { protection, shared: true, ..Mapping::default() };
    engine.process.memory.insert(start..end, mapping);
}

/// `io_destroy` has succeeded: the ring is gone.
pub fn ring_disappeared(engine: &mut Engine, context: u64) {
    if let Some((range, _)) = engine.process.memory.find(context) {
        engine.process.memory.remove(range);
    }
}
