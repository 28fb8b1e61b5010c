//! Where things lie in the address space that runner and guest share.
//!
//! The guest gets the places that the kernel would give it with randomisation off; the runner
//! keeps to the ranges below, which no ELF loader, sanitizer or garbage collector needs, and which
//! text that is taken for a pointer hardly leads to. What an access of the guest's meets
//! there is decided by [`crate::runner::own`]. docs/internals/engine.md, "Address space", draws the map.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// The runner's image, its tables and the code cache: below 2 GiB, so that the code cache reaches
/// the engine's state with 32-bit displacements and absolute addresses. At either end is room that
/// nothing is mapped in, as for [`ARENA`].
pub const ENGINE: Range<u64> = 0x6fff_0000..0x7fff_0000;

/// Translated code. It is mapped as it grows: small programs have theirs below 0x7420_0000, which no
/// text leads to.
pub const CODE_CACHE: Range<u64> = 0x7400_0000..0x7800_0000;

/// What translated code hardly ever needs, kept apart so that the rest lies close together. Mapped as it
/// grows.
pub const FAR_CODE: Range<u64> = 0x7800_0000..0x7900_0000;

/// The last word before a stretch of [`NOTHING`], whose addresses stand for suspicion.
pub const LAST_WORD: u64 = NOTHING.start - 8;

/// Where nothing can be read: as far behind [`LAST_WORD`] as two bytes of shadow reach, times eight.
pub const NOTHING: Range<u64> = 0x7f00_1000..0x7f00_1000 + (8 << 16);

/// The table of [memory tags](crate::runner::screens::provenance).
pub const TAGS: Range<u64> = 0x7900_0000..0x7900_0000 + (32 << 20);

/// The table that takes some bits of a guest pc to the translation it probably has. It and
/// [`RETURN_TABLE`] are the highest of the runner's mappings here: see [`BEYOND_TABLES`].
pub const INDIRECT_TABLE: u64 = 0x7f80_0000;

/// Number of entries of [`INDIRECT_TABLE`]: with four bytes each, one huge page.
pub const INDIRECT_ENTRIES: usize = 1 << 19;

const INDIRECT_BYTES: u64 = 4 * INDIRECT_ENTRIES as u64;

/// The table that takes some bits of a return address to the pad of the call that pushed it last.
pub const RETURN_TABLE: u64 = INDIRECT_TABLE + 3 * INDIRECT_BYTES;

/// Number of entries of [`RETURN_TABLE`].
pub const RETURN_ENTRIES: usize = 1 << 16;

/// The bits of a target that index each table: some low ones, and above them all that are zero in
/// addresses of user space.
pub const INDIRECT_MASK: u64 = INDIRECT_LOW | !0 << USER_BITS;
/// See [`INDIRECT_MASK`].
pub const RETURN_MASK: u64 = RETURN_LOW | !0 << USER_BITS;

/// The low ones alone, for a guest that has something in [`BEYOND_TABLES`] itself, and for code
/// that all translations share: a fault there would be no instruction's.
pub const INDIRECT_LOW: u64 = INDIRECT_ENTRIES as u64 - 1;
/// See [`INDIRECT_LOW`].
pub const RETURN_LOW: u64 = RETURN_ENTRIES as u64 - 1;

/// Bits of an address of the guest's: also where more could be had, programs are not given more
/// unless they ask for it, and here they are not given it then.
pub const USER_BITS: u32 = 47;

/// The index of a target in the kernel's half is this, above the low bits.
const KERNEL_HALF: u64 = u64::MAX >> USER_BITS;

/// Where the masks lead for targets outside of user space. Nothing may be there but the tables
/// themselves: their entries are all of one form, so whoever meets the wrong one only misses.
pub const BEYOND_TABLES: Range<u64> =
    INDIRECT_TABLE + INDIRECT_BYTES..INDIRECT_TABLE + INDIRECT_BYTES * (KERNEL_HALF + 1);

/// The table for those whose entry there another pc has taken: minus the pc, and the body.
pub const SECOND_TABLE: u64 = 0x7f60_0000;

/// Number of entries of [`SECOND_TABLE`].
pub const SECOND_ENTRIES: usize = 1 << 16;

/// The runner's heap, stacks, event buffers and lines. It lies where the layouts of the sanitizers have a gap
/// (which they map, so that nobody else does: [`without_own`]) and Go's race detector has none of its
/// tables. No second byte of an address in what is always there is a character of ASCII.
pub const ARENA: Range<u64> = 0x4080_0000_0000..0x4400_0000_0000 + SLACK;

/// Tables as large as the guest's address space. They are ours as soon as accesses are tested
/// ([`claim_tables`]), and before that the guest's: shadows of sanitizers lie there.
pub const TABLES: Range<u64> = SHADOW.start - SLACK..BLANK.end + SLACK;

/// Room at either end of what is ours that nothing is mapped in: an access that runs from the guest's
/// memory towards ours faults there. Wide enough for a page of [`SHADOW`] to end inside.
const SLACK: u64 = 1 << 20;

/// What is always there does not begin at a round address, and has bytes that are no characters. Blocks of
/// [stacks](crate::runner::stack) are aligned to their size.
const NOT_ROUND: u64 = 0x8d90_0000;

/// The heap behind the global allocator.
pub const HEAP: Range<u64> = 0x4080_0000_0000 + NOT_ROUND..0x40a0_0000_0000;

/// Stacks of the runner's kernel threads.
pub const STACKS: Range<u64> = 0x40a0_0000_0000 + NOT_ROUND..0x40c0_0000_0000;

/// Event buffers shared with the host.
pub const EVENT_BUFFERS: Range<u64> = 0x40c0_0000_0000 + NOT_ROUND..0x40d0_0000_0000;

/// Buffers of the log that is shared with the host.
pub const LOG_BUFFERS: Range<u64> = 0x40d0_0000_0000 + NOT_ROUND..0x40e0_0000_0000;

/// What the processes of one recording share.
pub const RECORDING_TABLE: Range<u64> = 0x40e0_0000_0000 + NOT_ROUND..0x40f0_0000_0000;

/// The lines of blocks of the guest's heap.
pub const LINES: Range<u64> = 0x4100_0000_0000 + NOT_ROUND..0x4400_0000_0000;

/// The shadow of the guest's memory: one byte for eight. Wherever it is mapped, accesses are tested
/// against it, and so never reach it.
pub const SHADOW: Range<u64> = 0x2000_0000_0000..0x3000_0000_0000;

/// The shadow of an address is at `(address >> 3) + SHADOW_BASE`. Its low bits are also the shift
/// count.
pub const SHADOW_BASE: u64 = SHADOW.start + 3;

/// A table like [`SHADOW`] in which everything passes, for a thread that is inside an allocator.
pub const BLANK: Range<u64> = 0x3000_0000_0000..0x4000_0000_0000;

/// See [`SHADOW_BASE`].
pub const BLANK_BASE: u64 = BLANK.start + 3;

/// Where a position-independent executable goes, as under the kernel without randomisation.
pub const PIE_BASE: u64 = 0x5555_5555_4000;

/// The guest's mappings are placed downwards from here.
pub const MAPPINGS_TOP: u64 = 0x7fff_f7ff_f000;

/// The end of what user space can address.
pub const USER_END: u64 = 0x7fff_ffff_f000;

/// Lowest address that a mapping may be placed at when the guest leaves the choice to us.
pub const MAPPINGS_BOTTOM: u64 = 0x1_0000;

/// Descriptors of the engine live at and above this number, out of the guest's sight.
pub const DESCRIPTORS: i32 = 1000;

/// What is the runner's, by rising address, with the tables that tests of accesses need and without.
const OWN: [Range<u64>; 3] = [ENGINE, TABLES, ARENA];
const OWN_UNTESTED: [Range<u64>; 2] = [ENGINE, ARENA];

static HAS_TABLES: AtomicBool = AtomicBool::new(false);

/// From now on [`TABLES`] are the runner's.
pub fn claim_tables() {
    HAS_TABLES.store(true, Ordering::Relaxed);
}

/// Whether any byte of the range is where [`TABLES`] lie or would lie.
pub fn is_in_tables(range: &Range<u64>) -> bool {
    range.start < TABLES.end && TABLES.start < range.end
}

/// What is the runner's, by rising address.
pub fn own() -> &'static [Range<u64>] {
    if HAS_TABLES.load(Ordering::Relaxed) { &OWN } else { &OWN_UNTESTED }
}

/// Whether any byte of the range belongs to the runner.
pub fn belongs_to_engine(range: &Range<u64>) -> bool {
    own().iter().any(|own| range.start < own.end && own.start < range.end)
}

/// The parts of a range that are not the runner's.
pub fn without_own(range: Range<u64>) -> Vec<Range<u64>> {
    let (mut parts, mut start) = (Vec::new(), range.start);
    for own in own().iter().filter(|own| range.start < own.end && own.start < range.end) {
        parts.push(start..own.start.max(start));
        start = own.end;
    }
    parts.push(start..range.end.max(start));
    parts.retain(|part| !part.is_empty());
    parts
}

/// Every byte of the shadow that is not zero has this bit, for translated code to find; the plan has the
/// other seven.
pub const PAINTED: u8 = 0x80;

/// Bits of a plan as the shadow has them.
pub fn stored(bits: u8) -> u8 {
    if bits & !PAINTED == 0 { 0 } else { bits | PAINTED }
}
