//! The tables that translated code looks indirect branches and returns up in.

use crate::layout;
use crate::sys;

/// The tables. The cache has the only one, so that no reference into them is alive while translated
/// code runs.
pub struct Tables(());

impl Tables {
    /// Maps them; to be done once.
    pub fn map() -> Result<Self, i32> {
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
        Ok(Self(()))
    }

    /// The table of indirect branches: where the translation begins that a target probably has.
    pub fn indirect(&mut self) -> &mut [u32] {
        let start = layout::INDIRECT_TABLE as *mut u32;
        // SAFETY: mapped by `map`, never unmapped; the only handle is borrowed.
        unsafe { std::slice::from_raw_parts_mut(start, layout::INDIRECT_ENTRIES) }
    }

    /// The entry of a target.
    pub fn indirect_entry(&mut self, pc: u64) -> &mut u32 {
        &mut self.indirect()[pc as usize & (layout::INDIRECT_ENTRIES - 1)]
    }

    /// The table of returns, which translated calls write to.
    pub fn returns(&mut self) -> &mut [u32] {
        let start = layout::RETURN_TABLE as *mut u32;
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(start, layout::RETURN_ENTRIES) }
    }

    /// The entry of a return address.
    pub fn return_entry(&mut self, back: u64) -> &mut u32 {
        &mut self.returns()[back as usize & (layout::RETURN_ENTRIES - 1)]
    }

    /// The table of those whose entry another target has taken: minus the target, and its translation.
    pub fn second(&mut self) -> &mut [[u64; 2]] {
        let start = layout::SECOND_TABLE as *mut [u64; 2];
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(start, layout::SECOND_ENTRIES) }
    }

    /// The entry of a target there; neighbouring functions are at least four bytes apart.
    pub fn second_entry(&mut self, pc: u64) -> &mut [u64; 2] {
        &mut self.second()[(pc >> 2) as usize & (layout::SECOND_ENTRIES - 1)]
    }
}
