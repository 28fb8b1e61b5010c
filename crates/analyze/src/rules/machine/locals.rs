//! Local variables, as blocks of their own inside a frame: what debug information says of their
//! bounds.
//!
//! A pointer counts as one to a variable if it was made from the very beginning of one. Optimising
//! compilers fold constants into addresses: the beginning of one may be another one plus a constant.
//! There only large variables count that no other one reaches, and elements of arrays, whose
//! addresses have an index as well, belong to the frame as before.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// A variable in a frame: how far below the frame's upper end it begins, and its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Local {
    /// Below 0.
    pub offset: i64,
    /// Bytes.
    pub size: u64,
}

/// What is known of a function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its code, or a piece of it.
    pub code: Range<u64>,
    /// Whether the compiler may have folded constants into addresses.
    pub optimised: bool,
    /// The variables in its frame.
    pub locals: Vec<Local>,
}

/// Finds the function at an address.
pub type Finder = Arc<dyn Fn(u64) -> Option<Function> + Send + Sync>;

/// Smaller ones are not told from what a larger one plus a constant is, where code is optimised.
const SMALLEST: u64 = 16;

/// The variables of one function.
#[derive(Clone, Debug, Default)]
struct Layout {
    /// By offset, the largest of those that begin there.
    all: Vec<Local>,
    optimised: bool,
}

impl Layout {
    fn new(function: Function) -> Self {
        let Function { locals: mut all, optimised, .. } = function;
        all.sort_unstable_by_key(|local| (local.offset, std::cmp::Reverse(local.size)));
        all.dedup_by_key(|local| local.offset);
        Self { all, optimised }
    }

    fn find(&self, offset: i64, indexed: bool) -> Option<u64> {
        let index = self.all.binary_search_by_key(&offset, |local| local.offset).ok()?;
        let found = self.all[index];
        let reaches = |other: &Local| other.offset.saturating_add_unsigned(other.size) >= offset;
        let doubtful = || indexed || found.size < SMALLEST || self.all[..index].iter().any(reaches);
        (!self.optimised || !doubtful()).then_some(found.size)
    }
}

/// The variables of the functions that were met.
#[derive(Clone, Default)]
pub struct Locals {
    finder: Option<Finder>,
    layouts: Vec<Layout>,
    /// Functions by first address: where they end, and their layout.
    functions: BTreeMap<u64, (u64, u32)>,
}

/// Stands for a function of which nothing is known.
pub const UNKNOWN: u32 = 0;

impl Locals {
    /// From here on functions are looked up.
    pub fn ask(&mut self, finder: Finder) {
        self.finder = Some(finder);
    }

    /// A number for the function at an address.
    pub fn function(&mut self, pc: u64) -> u32 {
        if let Some((_, (end, number))) = self.functions.range(..=pc).next_back()
            && pc < *end
        {
            return *number;
        }
        let Some(function) = self.finder.as_ref().and_then(|find| find(pc)) else {
            return UNKNOWN;
        };
        let code = function.code.clone();
        let number = if function.locals.is_empty() {
            UNKNOWN
        } else {
            self.layouts.push(Layout::new(function));
            self.layouts.len() as u32
        };
        self.functions.insert(code.start, (code.end, number));
        number
    }

    /// The bytes of the variable that begins so far from the upper end of a function's frame.
    /// `indexed`: the address is one of several that an index is added to.
    #[must_use]
    pub fn find(&self, function: u32, offset: i64, indexed: bool) -> Option<u64> {
        self.layouts.get(function.checked_sub(1)? as usize)?.find(offset, indexed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_code_is_optimised_what_may_be_the_address_of_another_variable_does_not_count() {
        let local = |offset, size| Local { offset, size };
        let mut locals = Locals::default();
        locals.ask(Arc::new(move |pc| {
            let all = vec![local(-80, 16), local(-64, 32), local(-24, 8), local(-16, 16)];
            let (code, optimised) = if pc < 200 { (100..200, false) } else { (200..300, true) };
            code.contains(&pc).then_some(Function { code, optimised, locals: all })
        }));
        let (plain, optimised) = (locals.function(150), locals.function(250));
        assert_eq!((locals.function(199), locals.function(300)), (plain, UNKNOWN));
        let find = |function, offset| locals.find(function, offset, false);
        assert_eq!(find(plain, -64), Some(32));
        assert_eq!(find(plain, -60), None, "it does not begin there");
        assert_eq!(find(plain, -24), Some(8));
        assert_eq!(find(optimised, -80), Some(16));
        assert_eq!(find(optimised, -64), None, "another one ends there");
        assert_eq!(find(optimised, -24), None, "too small");
        assert_eq!(locals.find(optimised, -80, true), None, "an index could come from elsewhere");
        assert_eq!(locals.find(plain, -80, true), Some(16));
        assert_eq!(find(UNKNOWN, -64), None);
    }
}
