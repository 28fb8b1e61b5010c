//! From guest code to translated code: decode a superblock, then lower it to machine code for
//! the cache.
//!
//! * [`superblock`] decides which guest instructions one translation covers;
//! * [`facts`] says what an instruction reads, writes and where it goes;
//! * [`lower`] writes the translation; [`emit`] is its assembler;
//! * [`accesses`] says which memory an instruction touches, [`observe`] weaves that in;
//! * [`filter`] weaves in tests of accesses, [`strays`] those of the addresses that are made;
//! * [`map`] takes an address in the translation back to the guest's state there.
//!
//! Nothing here knows about threads, signals or system calls.

pub mod accesses;
pub mod emit;
pub mod facts;
pub mod filter;
pub mod lower;
pub mod map;
pub mod observe;
pub mod strays;
pub mod superblock;
