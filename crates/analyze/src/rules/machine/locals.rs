//! Local variables, as blocks of their own inside a frame: what debug information says of their
//! bounds.
//!
//! Where nothing was optimised, an address in a frame is that of the variable that it lies in. Optimising
//! compilers fold constants into addresses: the beginning of one variable may be another one plus or minus
//! a constant. There a pointer counts as one to a variable if it was made from its very beginning, and if
//! that is an array or has 16 bytes; what else it may have been made from is **doubt** that an access has the benefit of:
//!
//! - a variable that ends where it begins (a pointer past the end, from which a loop counts down);
//! - if there is an index, any other variable of the frame.

use crate::model::variables::SMALLEST;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// A variable in a frame: how far below the frame's upper end it begins, and its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Local {
    /// Below 0.
    pub offset: i64,
    /// Bytes.
    pub size: u64,
    /// Whether it is an array.
    pub array: bool,
    /// The code in which it is there; none if that is all of its function.
    pub scope: Vec<Range<u64>>,
    /// Of optimised code, what certainly lies behind or before that.
    pub left: Vec<Range<u64>>,
}

impl Local {
    fn end(&self) -> i64 {
        self.offset.saturating_add_unsigned(self.size)
    }

    fn has(&self, offset: i64) -> bool {
        (self.offset..self.end()).contains(&offset)
    }

    fn is_visible(&self, pc: u64) -> bool {
        self.scope.is_empty() || self.scope.iter().any(|code| code.contains(&pc))
    }
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

/// The variables of one function.
#[derive(Clone, Debug)]
struct Layout {
    /// By offset.
    all: Vec<Local>,
    optimised: bool,
    code: Range<u64>,
    /// The number of the first of them.
    first: u32,
}

impl Layout {
    /// Which variable an address is of that the instruction at `pc` makes.
    fn find(&self, offset: i64, pc: u64) -> Option<usize> {
        let at = |local: &Local| match self.optimised {
            // Temporaries have no names, and share their place with small variables.
            true => local.offset == offset && (local.array || local.size >= SMALLEST),
            false => local.has(offset),
        };
        // Of variables that share a place the one that is there now, else the largest; of others that
        // an address is in, the one that begins last.
        let rank = |local: &Local| (local.is_visible(pc), local.offset, local.size);
        let found = self.all.iter().enumerate().filter(|(_, local)| at(local));
        found.max_by_key(|(_, local)| rank(local)).map(|(index, _)| index)
    }

    /// Whether a pointer that was taken for one to a variable may be to another, which has all of an access.
    /// `at`: where the function waits for the call that makes the access, if that is so; a pointer to a variable that is
    /// not there then would be wrong, too.
    fn is_doubtful(
        &self,
        index: usize,
        access: Range<i64>,
        (indexed, at): (bool, Option<u64>),
    ) -> bool {
        let own = &self.all[index];
        let is_there = |other: &Local| at.is_none_or(|at| other.is_visible(at));
        let may_be = |(number, other): (usize, &Local)| {
            let before = other.offset < own.offset && other.end() >= own.offset && is_there(other);
            number != index
                && (indexed || before)
                && other.offset <= access.start
                && access.end <= other.end()
        };
        self.optimised && self.all.iter().enumerate().any(may_be)
    }
}

/// A variable that an address is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VariableAt {
    /// Its number, for [`Locals`].
    pub number: u32,
    /// From the frame's upper end.
    pub offset: i64,
    /// Bytes.
    pub size: u64,
}

/// Set in the number of a variable whose address has an index added.
const INDEXED: u32 = 1 << 30;
/// The largest number of a variable; larger ones are no local variables.
pub const LARGEST: u32 = INDEXED | (INDEXED - 1);

/// The variables of the functions that were met.
#[derive(Clone, Default)]
pub struct Locals {
    finder: Option<Finder>,
    layouts: Vec<Layout>,
    /// Functions by first address: where they end, and their layout.
    functions: BTreeMap<u64, (u64, u32)>,
    /// Variables so far.
    count: u32,
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
        let Function { code, optimised, locals: mut all } = function;
        all.sort_by_key(|local| (local.offset, local.size));
        let first = self.count + 1;
        self.count = (self.count + all.len() as u32).min(INDEXED / 2);
        self.layouts.push(Layout { all, optimised, code: code.clone(), first });
        let number = self.layouts.len() as u32;
        self.functions.insert(code.start, (code.end, number));
        number
    }

    fn layout(&self, function: u32) -> Option<&Layout> {
        self.layouts.get(function.checked_sub(1)? as usize)
    }

    /// Whether the compiler has not optimised a function.
    #[must_use]
    pub fn is_plain(&self, function: u32) -> bool {
        self.layout(function).is_some_and(|layout| !layout.optimised)
    }

    /// The variable that an address is of, so far from the upper end of a function's frame, which the
    /// instruction at `pc` makes. `indexed`: the address is one of several that an index is added to.
    #[must_use]
    pub fn find(&self, function: u32, offset: i64, pc: u64, indexed: bool) -> Option<VariableAt> {
        let layout = self.layout(function)?;
        let index = layout.find(offset, pc)?;
        let Local { offset, size, .. } = layout.all[index];
        let doubt = if indexed && layout.optimised { INDEXED } else { 0 };
        Some(VariableAt { number: (layout.first + index as u32) | doubt, offset, size })
    }

    /// The variable that has the byte so far from the upper end of a function's frame, where the function is
    /// at `pc`.
    #[must_use]
    pub fn around(&self, function: u32, offset: i64, pc: u64) -> Option<VariableAt> {
        let layout = self.layout(function)?;
        let has = |(_, local): &(usize, &Local)| local.has(offset) && local.is_visible(pc);
        let (index, local) = layout.all.iter().enumerate().rfind(has)?;
        let number = layout.first + index as u32;
        Some(VariableAt { number, offset: local.offset, size: local.size })
    }

    /// The variable of a number, and its function.
    fn variable(&self, number: u32) -> Option<(&Layout, usize)> {
        let number = number & !INDEXED;
        let after = self.layouts.partition_point(|layout| layout.first <= number);
        let layout = self.layouts.get(after.checked_sub(1)?)?;
        let index = (number - layout.first) as usize;
        (index < layout.all.len()).then_some((layout, index))
    }

    /// Where a variable begins, from the upper end of its frame.
    #[must_use]
    pub fn offset(&self, number: u32) -> Option<i64> {
        self.variable(number).map(|(layout, index)| layout.all[index].offset)
    }

    /// Whether an access that leaves a variable may be to another one that its pointer was made from.
    /// `from` is where it begins, counted from the beginning of the variable.
    #[must_use]
    /// `at`: where its function waits for a call, if it does.
    pub fn is_doubtful(&self, number: u32, from: i64, size: u64, at: Option<u64>) -> bool {
        let Some((layout, index)) = self.variable(number) else { return false };
        let begin = layout.all[index].offset.saturating_add(from);
        let access = begin..begin.saturating_add_unsigned(size);
        layout.is_doubtful(index, access, (number & INDEXED != 0, at))
    }

    /// Whether a variable has a block of its own that may be left.
    #[must_use]
    pub fn has_scope(&self, number: u32) -> bool {
        self.variable(number).is_some_and(|(layout, index)| {
            let local = &layout.all[index];
            !if layout.optimised { &local.left } else { &local.scope }.is_empty()
        })
    }

    /// Whether the block of a variable has been left where its function is at `pc`; `calls`: waiting for a call. Of
    /// other instructions optimising compilers do not say where they belong, as they move them about.
    #[must_use]
    pub fn is_left(&self, number: u32, pc: u64, calls: bool) -> bool {
        self.variable(number).is_some_and(|(layout, index)| {
            let local = &layout.all[index];
            match layout.optimised {
                true => calls && local.left.iter().any(|code| code.contains(&pc)),
                false => layout.code.contains(&pc) && !local.is_visible(pc),
            }
        })
    }

    /// Whether an instruction is in the function of a variable.
    #[must_use]
    pub fn is_in_function(&self, number: u32, pc: u64) -> bool {
        self.variable(number).is_some_and(|(layout, _)| layout.code.contains(&pc))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locals() -> Locals {
        let local = |offset, size| Local { offset, size, ..Local::default() };
        let mut locals = Locals::default();
        locals.ask(Arc::new(move |pc| {
            let mut all = vec![local(-80, 16), local(-64, 32), local(-40, 8), local(-16, 16)];
            all.push(Local { array: true, ..local(-24, 8) });
            let left = vec![265..270, 270..280];
            all.push(Local { scope: vec![120..130, 220..230], left, ..local(-128, 24) });
            all.push(Local { scope: vec![140..150, 240..250], ..local(-128, 40) });
            let (code, optimised) = if pc < 200 { (100..200, false) } else { (200..300, true) };
            code.contains(&pc).then_some(Function { code, optimised, locals: all })
        }));
        locals
    }

    #[test]
    fn an_address_is_of_the_variable_that_it_is_in() {
        let mut locals = locals();
        let (plain, optimised) = (locals.function(150), locals.function(250));
        assert_eq!((locals.function(199), locals.function(300)), (plain, UNKNOWN));
        assert!(locals.is_plain(plain) && !locals.is_plain(optimised) && !locals.is_plain(UNKNOWN));
        let find = |function, offset, pc| {
            locals.find(function, offset, pc, false).map(|found| (found.offset, found.size))
        };
        assert_eq!(find(plain, -64, 150), Some((-64, 32)));
        assert_eq!(find(plain, -60, 150), Some((-64, 32)));
        assert_eq!(find(plain, -32, 150), None, "nothing is there");
        assert_eq!(find(optimised, -64, 250), Some((-64, 32)));
        assert_eq!(find(optimised, -60, 250), None, "it may be another one plus a constant");
        assert_eq!(find(UNKNOWN, -64, 150), None);
        assert_eq!(find(plain, -40, 150), Some((-40, 8)));
        assert_eq!(find(optimised, -40, 250), None, "a temporary may be there, too");
        // Two blocks share a place.
        assert_eq!(find(plain, -128, 125), Some((-128, 24)));
        assert_eq!(find(plain, -128, 145), Some((-128, 40)));
        assert_eq!(find(plain, -96, 145), Some((-128, 40)));
    }

    #[test]
    fn where_code_is_optimised_an_access_has_the_benefit_of_the_doubt() {
        let mut locals = locals();
        let (plain, optimised) = (locals.function(150), locals.function(250));
        let doubtful = |function, offset, indexed, from, size| {
            let found = locals.find(function, offset, 260, indexed).expect("one begins there");
            locals.is_doubtful(found.number, from, size, None)
        };
        assert!(doubtful(optimised, -64, false, -4, 4), "one that ends there");
        assert!(!doubtful(optimised, -64, false, -17, 4), "it leaves that too");
        assert!(!doubtful(optimised, -64, false, 40, 4), "a large one is meant itself");
        assert!(!doubtful(optimised, -24, false, 8, 4), "so is a small array");
        assert!(!doubtful(optimised, -24, false, -40, 4));
        assert!(doubtful(optimised, -24, true, -40, 4), "an index could come from anywhere");
        assert!(!doubtful(optimised, -24, true, 24, 4), "there is nothing");
        assert!(!doubtful(plain, -64, false, -4, 4) && !doubtful(plain, -24, true, 8, 4));
    }

    #[test]
    fn a_block_is_left_where_its_function_goes_on_elsewhere() {
        let mut locals = locals();
        let plain = locals.function(150);
        let inner = locals.find(plain, -128, 125, false).expect("it is there").number;
        let outer = locals.find(plain, -64, 125, false).expect("it is there").number;
        assert_eq!(locals.offset(inner), Some(-128));
        assert!(locals.has_scope(inner) && !locals.has_scope(outer));
        assert!(!locals.is_left(inner, 125, true) && locals.is_left(inner, 160, false));
        assert!(!locals.is_left(inner, 400, true), "that is another function");
        assert!(!locals.is_left(outer, 160, true));
        let optimised = locals.function(250);
        let inner = locals.find(optimised, -128, 225, false).expect("it is there").number;
        assert!(!locals.is_left(inner, 260, true), "calls that are alike may have become one");
        assert!(!locals.is_left(inner, 270, false), "an instruction may have been moved");
        assert!(locals.is_left(inner, 270, true), "a call was not");
    }
}
