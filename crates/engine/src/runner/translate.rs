//! From guest code to translated code: decode a superblock, then lower it to machine code for
//! the cache.
//!
//! * [`superblock`] decides which guest instructions one translation covers;
//! * [`facts`] says what an instruction reads, writes and where it goes;
//! * [`lower`] writes the translation; [`emit`] is its assembler;
//! * [`accesses`] says which memory an instruction touches, [`observe`] emits records of it;
//! * [`instrument`] is what a plan asks of a translation; what [screens](super::screens) emit is theirs,
//!   [`places`] tells them which accesses belong together;
//! * [`map`] takes an address in the translation back to the guest's state there.
//!
//! Nothing here knows about threads, signals or system calls.

pub mod accesses;
pub mod emit;
pub mod facts;
pub mod instrument;
pub mod lower;
pub mod map;
pub mod observe;
pub mod places;
pub mod superblock;
