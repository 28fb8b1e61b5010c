//! Which code and data are the program's own, and which functions' calls are told: plain data that whoever
//! drives a learner supplies.

use base::allocator::Allocator;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// What a function takes and returns in general registers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Bytes of each argument.
    pub arguments: Vec<u8>,
    /// Bytes of its result, if it has one.
    pub result: Option<u8>,
    /// Whether it is the program's own, so that its entry is a point.
    pub own: bool,
}

/// Code and data.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// The program's own code, sorted.
    pub code: Vec<Range<u64>>,
    /// Its static data.
    pub data: Vec<Range<u64>>,
    /// All that its files and those of its libraries occupy, sorted.
    pub files: Vec<Range<u64>>,
    /// Functions whose calls are told.
    pub functions: FxHashMap<u64, Function>,
    /// Those of them that allocate and free.
    pub allocators: FxHashMap<u64, Allocator>,
}

fn within(ranges: &[Range<u64>], address: u64) -> bool {
    let end = ranges.partition_point(|range| range.start <= address);
    end > 0 && ranges[end - 1].contains(&address)
}

impl Layout {
    /// Whether code is the program's own.
    #[must_use]
    pub fn is_own(&self, pc: u64) -> bool {
        within(&self.code, pc)
    }

    /// Whether an address is in a file of the program or of a library.
    #[must_use]
    pub fn is_in_file(&self, address: u64) -> bool {
        within(&self.files, address)
    }
}
