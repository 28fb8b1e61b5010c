//! The tables that translated code looks indirect branches and returns up in.

use crate::runner::layout;
use crate::runner::sys;

/// Maps them.
pub fn map() -> Result<(), i32> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let indirect = layout::INDIRECT_ENTRIES as u64 * 4;
    let returns = layout::RETURN_ENTRIES as u64 * 4;
    let second = layout::SECOND_ENTRIES as u64 * 16;
    // SAFETY: ranges of the engine's own (layout), mapped once, here.
    unsafe {
        sys::map_fixed(layout::INDIRECT_TABLE, indirect, protection, flags, -1, 0)?;
        sys::map_fixed(layout::RETURN_TABLE, returns, protection, flags, -1, 0)?;
        sys::map_fixed(layout::SECOND_TABLE, second, protection, flags, -1, 0)?;
        // Large programs jump all over the cache: page tables are what they wait for.
        let huge = libc::MADV_HUGEPAGE;
        sys::syscall!(libc::SYS_madvise, layout::INDIRECT_TABLE, indirect, huge);
    }
    Ok(())
}

/// The table of indirect branches: where the translation begins that a target probably has.
pub fn indirect() -> &'static mut [u32] {
    // SAFETY: mapped by `map`, never unmapped, and only touched by the baton's holder.
    unsafe {
        std::slice::from_raw_parts_mut(layout::INDIRECT_TABLE as *mut u32, layout::INDIRECT_ENTRIES)
    }
}

/// The entry of a target.
pub fn indirect_entry(pc: u64) -> &'static mut u32 {
    &mut indirect()[pc as usize & (layout::INDIRECT_ENTRIES - 1)]
}

/// The table of returns, which translated calls write to.
pub fn returns() -> &'static mut [u32] {
    // SAFETY: as above.
    unsafe {
        std::slice::from_raw_parts_mut(layout::RETURN_TABLE as *mut u32, layout::RETURN_ENTRIES)
    }
}

/// The entry of a return address.
pub fn return_entry(back: u64) -> &'static mut u32 {
    &mut returns()[back as usize & (layout::RETURN_ENTRIES - 1)]
}

/// The table of those whose entry another target has taken: minus the target, and its translation.
pub fn second() -> &'static mut [[u64; 2]] {
    // SAFETY: as above.
    unsafe {
        std::slice::from_raw_parts_mut(
            layout::SECOND_TABLE as *mut [u64; 2],
            layout::SECOND_ENTRIES,
        )
    }
}

/// The entry of a target there; neighbouring functions are at least four bytes apart.
pub fn second_entry(pc: u64) -> &'static mut [u64; 2] {
    &mut second()[(pc >> 2) as usize & (layout::SECOND_ENTRIES - 1)]
}
