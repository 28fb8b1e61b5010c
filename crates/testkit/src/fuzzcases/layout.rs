//! The fixed addresses that the generator and the runtime share. All lie below 2 GiB and clear of
//! where loaders and engines put things, so that absolute, RIP-relative and 32-bit addressing
//! reach them.

/// Where the code of the cases starts: first the exits, then the cases.
pub const CODE: u64 = 0x1000_0000;
/// How many ways out of a case there are: fallen through, branch taken.
pub const EXITS: u64 = 2;
/// Bytes between two exits.
pub const EXIT_SIZE: u64 = 16;

/// The memory that cases read and write, with unmapped pages on both sides.
pub const SCRATCH: u64 = 0x2000_1000;
/// Its size: two pages, so that an operand can straddle them.
pub const SCRATCH_SIZE: u64 = 0x2000;
/// A page that can only be read.
pub const READ_ONLY: u64 = 0x2000_4000;
/// A page mapped past the end of its file: any access raises SIGBUS.
pub const PAST_FILE: u64 = 0x2000_6000;
/// The FS base that the runtime sets.
pub const FS_BASE: u64 = SCRATCH + 0x800;
/// Nothing is mapped here.
pub const UNMAPPED: u64 = 0x2800_0000;

/// What a case starts from.
pub const STATE_IN: u64 = 0x2100_0000;
/// What it leaves behind.
pub const STATE_OUT: u64 = STATE_IN + 0x1000;
/// Offset of RFLAGS in a state; the general registers come before it, by their numbers.
pub const STATE_FLAGS: u64 = 128;
/// Offset of the FXSAVE image.
pub const STATE_FX: u64 = 256;
/// Offset of ymm0.
pub const STATE_YMM: u64 = 768;

/// Flag of a case that may change the FS or GS base.
pub const CASE_BASES: u32 = 1;

/// The same addresses for the runtime's C and assembly.
pub fn header() -> String {
    let definitions = [
        ("SCRATCH", SCRATCH),
        ("SCRATCH_SIZE", SCRATCH_SIZE),
        ("READ_ONLY", READ_ONLY),
        ("PAST_FILE", PAST_FILE),
        ("FS_BASE", FS_BASE),
        ("STATE_IN", STATE_IN),
        ("STATE_OUT", STATE_OUT),
        ("STATE_FLAGS", STATE_FLAGS),
        ("STATE_FX", STATE_FX),
        ("STATE_YMM", STATE_YMM),
        ("CASE_BASES", u64::from(CASE_BASES)),
    ];
    definitions.iter().map(|(name, value)| format!("#define {name} {value:#x}\n")).collect()
}
