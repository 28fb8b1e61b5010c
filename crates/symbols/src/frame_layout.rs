//! Where the local variables of a function stand in its frame: those that stand at one place all the
//! while, which is where arrays and whatever has its address taken are.

use crate::address::FileAddress;
use crate::debug_info::DebugInfo;
use crate::lines::LineRow;
use crate::module::Module;
use crate::scope::{Function, Scope, ScopeKind, within};
use crate::types::{Shape, TypeRef};
use crate::units::{EntryId, LoadedUnit};
use gimli::{Operation, constants as dw};
use std::ops::Range;
use std::sync::Arc;

/// The stack pointer, from which clang counts where it keeps no frame pointer.
const STACK_POINTER: u16 = 7;
/// The frame pointer, and how far below the frame's upper end it points once it is set up.
const FRAME_POINTER: u16 = 6;
const BELOW_UPPER_END: i64 = 16;

/// A variable in a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameLocal {
    /// From the frame's upper end, which is where its caller's stack pointer was: below 0.
    pub offset: i64,
    /// Bytes.
    pub size: u64,
    /// Whether it is an array.
    pub array: bool,
    /// The code of the block that it is declared in, as addresses of the file; none if that is all of the
    /// function, or not known well enough to say that it has been left.
    pub scope: Vec<(u64, u64)>,
    /// Code of the same function in which that block has certainly been left: where it was optimised, and the compiler
    /// says so of each instruction, what belongs to a block around it and to one line.
    pub left: Vec<(u64, u64)>,
    /// The function, or what was inlined, that declares it.
    pub(crate) function: EntryId,
    pub(crate) entry: EntryId,
}

impl FrameLocal {
    /// Whether it can be seen from an address of the file.
    #[must_use]
    pub fn is_visible(&self, address: u64) -> bool {
        self.scope.is_empty() || within(&self.scope, FileAddress(address))
    }
}

/// What is known of the frame of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameLayout {
    /// A piece of the function's code, as addresses of the file.
    pub code: Range<u64>,
    /// Whether the compiler may have folded constants into addresses of variables.
    pub optimised: bool,
    /// The variables that have a fixed place, those of all blocks and of what was inlined.
    pub locals: Vec<FrameLocal>,
}

impl Module {
    /// The frame of the function at an address.
    #[must_use]
    pub fn frame_layout(&self, address: FileAddress) -> Option<FrameLayout> {
        let debug = self.debug()?;
        let (unit, function) = debug.function_at(address)?;
        let covers = |(start, end): &&(u64, u64)| (*start..*end).contains(&address.0);
        let (start, end) = *function.ranges.iter().find(covers)?;
        let optimised = !is_plain(debug, &unit, &function);
        let height = || self.call_frames().stack_height(address);
        let scopes = match (is_c(&unit), optimised) {
            (false, _) => Scopes::None,
            (true, false) => Scopes::Blocks,
            (true, true) => Scopes::Inlined,
        };
        let mut locals = locals(debug, &function, scopes, height).unwrap_or_default();
        if optimised && !is_clang(&unit) {
            // gcc makes one of calls that are alike, and says it is in the block of either.
            locals.iter_mut().for_each(|local| local.left.clear());
        }
        if locals.iter().any(|local| !local.left.is_empty()) {
            let vague = debug.vague_code(&unit, (start, end));
            locals.iter_mut().for_each(|local| local.left = without(&local.left, &vague));
        }
        Some(FrameLayout { code: start..end, optimised, locals })
    }
}

/// Whose variables have a scope of their own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scopes {
    /// Nobody's.
    None,
    /// Those of blocks.
    Blocks,
    /// Those of inlined functions, too.
    Inlined,
}

impl Scopes {
    fn has(self, scope: &Scope) -> bool {
        let kind = match scope.kind {
            ScopeKind::Function => false,
            ScopeKind::Block => self != Self::None,
            ScopeKind::Inlined => self == Self::Inlined,
        };
        kind && !scope.ranges.is_empty()
    }
}

fn is_clang(unit: &LoadedUnit) -> bool {
    let producer = root(unit, dw::DW_AT_producer).and_then(|value| unit.string(value));
    producer.is_some_and(|text| text.contains("clang version"))
}

/// Ranges less others.
fn without(ranges: &[(u64, u64)], others: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut rest = ranges.to_vec();
    for (start, end) in others {
        let cut = |(from, to): (u64, u64)| [(from, to.min(*start)), (from.max(*end), to)];
        rest = rest.into_iter().flat_map(cut).filter(|(from, to)| from < to).collect();
    }
    rest
}

/// The code of all scopes below one that have a scope of their own, the outermost of each.
fn inner_code(scope: &Scope, scopes: Scopes, depth: usize) -> Vec<(u64, u64)> {
    let inner = scope.children.iter().filter(|_| depth < DEEPEST);
    let code = |child: &Scope| match scopes.has(child) {
        true => child.ranges.clone(),
        false => inner_code(child, scopes, depth + 1),
    };
    inner.flat_map(code).collect()
}

impl DebugInfo {
    /// Code of which the compiler does not say which line and column it is of.
    fn vague_code(&self, unit: &Arc<LoadedUnit>, (start, end): (u64, u64)) -> Vec<(u64, u64)> {
        let lines = self.lines(unit);
        let vague = |row: &&LineRow| row.line == 0 || row.column == 0;
        lines.rows_in(start, end).iter().filter(vague).map(|row| (row.address, row.end)).collect()
    }
}

/// Whether the compiler optimised nothing. gcc lists its options. clang describes calls only where it
/// optimises, and keeps a frame pointer where it does not. Of others nothing is known.
fn is_plain(debug: &DebugInfo, unit: &LoadedUnit, function: &Function) -> bool {
    let Some(text) = root(unit, dw::DW_AT_producer).and_then(|value| unit.string(value)) else {
        return false;
    };
    if text.starts_with("GNU ") {
        let last = text.split_whitespace().rfind(|word| word.starts_with("-O"));
        return last.is_none_or(|option| option == "-O0");
    }
    let calls = [dw::DW_AT_call_all_calls, dw::DW_AT_GNU_all_call_sites];
    let keeps_pointer = || {
        matches!(single(debug, function.entry, dw::DW_AT_frame_base),
            Some(Operation::Register { register }) if register.0 == FRAME_POINTER)
    };
    text.contains("clang version")
        && debug.attribute(function.entry, &calls).is_none()
        && keeps_pointer()
}

/// Whether a unit is written in C: where exceptions are thrown, what tidies up a block lies outside of it.
fn is_c(unit: &LoadedUnit) -> bool {
    const C: [gimli::DwLang; 5] =
        [dw::DW_LANG_C, dw::DW_LANG_C89, dw::DW_LANG_C99, dw::DW_LANG_C11, dw::DW_LANG_C17];
    match root(unit, dw::DW_AT_language) {
        Some(gimli::AttributeValue::Language(language)) => C.contains(&language),
        _ => false,
    }
}

fn root(unit: &LoadedUnit, name: gimli::DwAt) -> Option<crate::debug_info::Attribute> {
    let mut entries = unit.unit.entries();
    entries.next_dfs().ok()??.attr_value(name)
}

/// Blocks nested deeper than this are taken for the one around them.
const DEEPEST: usize = 64;

fn locals(
    debug: &DebugInfo,
    function: &Function,
    scopes: Scopes,
    height: impl Fn() -> Option<u64>,
) -> Option<Vec<FrameLocal>> {
    let base = match single(debug, function.entry, dw::DW_AT_frame_base)? {
        Operation::CallFrameCFA => 0,
        Operation::Register { register } if register.0 == FRAME_POINTER => -BELOW_UPPER_END,
        Operation::Register { register } if register.0 == STACK_POINTER => {
            -i64::try_from(height()?).ok()?
        }
        _ => return None,
    };
    let root = debug.scope(function.entry)?;
    let mut all = Vec::new();
    let own = |scope, code: &[(u64, u64)]| match scopes {
        Scopes::Inlined => without(code, &inner_code(scope, scopes, 0)),
        _ => Vec::new(),
    };
    let outermost = own(&*root, &function.ranges);
    let mut open = vec![(&*root, Vec::new(), Vec::new(), outermost, function.entry, 0)];
    while let Some((scope, around, outside, mut reach, owner, depth)) = open.pop() {
        // `outside`: the code of what is around the block; `reach`: the same and its own.
        let (code, left) = match scopes.has(scope) {
            true => {
                let outside = reach;
                reach = [outside.clone(), own(scope, &scope.ranges)].concat();
                (scope.ranges.clone(), outside)
            }
            false => (around, outside),
        };
        let owner = if scope.kind == ScopeKind::Inlined { scope.entry } else { owner };
        for variable in &scope.variables {
            let Some((offset, ty, size)) = place(debug, variable.entry) else { continue };
            let (entry, function, offset) = (variable.entry, owner, base + offset);
            let array = matches!(debug.entry_type(ty).shape, Shape::Array { .. });
            let (scope, left) = match variable.parameter {
                true => Default::default(),
                false => (code.clone(), left.clone()),
            };
            all.push(FrameLocal { offset, size, array, scope, left, function, entry });
        }
        if depth < DEEPEST {
            let inner = scope.children.iter();
            let child =
                |child| (child, code.clone(), left.clone(), reach.clone(), owner, depth + 1);
            open.extend(inner.map(child));
        }
    }
    Some(all)
}

/// Where a variable stands in the frame, if it is there all the while, its type and its bytes.
fn place(debug: &DebugInfo, entry: EntryId) -> Option<(i64, EntryId, u64)> {
    let Operation::FrameOffset { offset } = single(debug, entry, dw::DW_AT_location)? else {
        return None;
    };
    let TypeRef::Entry(ty) = debug.type_of(entry) else { return None };
    Some((offset, ty, debug.size_of_entry(ty).filter(|size| *size > 0)?))
}

/// The one operation that an attribute's expression has.
fn single(
    debug: &DebugInfo,
    entry: EntryId,
    attribute: gimli::DwAt,
) -> Option<Operation<crate::debug_info::Reader>> {
    let (unit, value): (Arc<LoadedUnit>, _) = debug.attribute(entry, &[attribute])?;
    let mut operations = value.exprloc_value()?.operations(unit.unit.encoding());
    let first = operations.next().ok()??;
    operations.next().ok()?.is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DebugFiles;
    use std::process::Command;

    #[test]
    fn arrays_stand_where_the_compiler_put_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let source = folder.path().join("a.c");
        let text = "int f(int n) { char name[24]; long many[5]; int one = n; \
                    char wide[200], wider[40000]; __builtin_memset(wide, n, n), __builtin_memset(wider, n, n); \
                    for (int i = 0; i < n; i++) { short inner[10]; inner[i] = i; many[i % 5] += inner[i]; } \
                    __builtin_snprintf(name, 24, \"%d\", one); return name[0] + many[1]; }\n\
                    int main(int c, char **v) { return f(c); }\n";
        std::fs::write(&source, text).expect("a file");
        let binary = folder.path().join("a");
        let built =
            Command::new("gcc").args(["-g", "-O0", "-o"]).arg(&binary).arg(&source).status();
        assert!(built.expect("gcc").success());
        let module = Module::open(&binary, &DebugFiles::default()).expect("a module");
        let symbols = module.symbols();
        let start = symbols.iter().find(|symbol| symbol.name == "f").expect("it is there").address;
        let layout = module.frame_layout(start).expect("debug information");
        assert!(layout.code.contains(&start.0) && !layout.optimised);
        let locals = layout.locals;
        let mut sizes: Vec<u64> = locals.iter().map(|local| local.size).collect();
        sizes.sort_unstable();
        assert_eq!(sizes, [4, 4, 4, 20, 24, 40, 200, 40000], "{locals:?}");
        for (index, one) in locals.iter().enumerate() {
            assert!(one.offset + one.size as i64 <= -BELOW_UPPER_END, "below the saved registers");
            for other in &locals[index + 1..] {
                let apart = one.offset + one.size as i64 <= other.offset
                    || other.offset + other.size as i64 <= one.offset;
                assert!(apart, "{locals:?}");
            }
        }
    }
}
