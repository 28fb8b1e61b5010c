//! Where the local variables of a function stand in its frame: those that stand at one place all the
//! while, which is where arrays and whatever has its address taken are.

use crate::address::FileAddress;
use crate::debug_info::DebugInfo;
use crate::module::Module;
use crate::scope::Function;
use crate::types::TypeRef;
use crate::units::{EntryId, LoadedUnit};
use gimli::{Operation, constants as dw};
use std::ops::Range;

/// The frame pointer, and how far below the frame's upper end it points once it is set up.
const FRAME_POINTER: u16 = 6;
const BELOW_UPPER_END: i64 = 16;

/// A variable in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLocal {
    /// From the frame's upper end, which is where its caller's stack pointer was: below 0.
    pub offset: i64,
    /// Bytes.
    pub size: u64,
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
        let locals = locals(debug, &function).unwrap_or_default();
        Some(FrameLayout { code: start..end, optimised: !is_plain(&unit), locals })
    }
}

/// Whether the compiler says that it optimised nothing. gcc lists its options; of others nothing is
/// known.
fn is_plain(unit: &LoadedUnit) -> bool {
    let producer = || {
        let mut entries = unit.unit.entries();
        let root = entries.next_dfs().ok()??;
        unit.string(root.attr_value(dw::DW_AT_producer)?)
    };
    producer().is_some_and(|text| {
        let last = text.split_whitespace().rfind(|word| word.starts_with("-O"));
        text.starts_with("GNU ") && last.is_none_or(|option| option == "-O0")
    })
}

fn locals(debug: &DebugInfo, function: &Function) -> Option<Vec<FrameLocal>> {
    let base = match single(debug, function.entry, dw::DW_AT_frame_base)? {
        Operation::CallFrameCFA => 0,
        Operation::Register { register } if register.0 == FRAME_POINTER => -BELOW_UPPER_END,
        _ => return None,
    };
    let scope = debug.scope(function.entry)?;
    let all = scope.all().into_iter().flat_map(|scope| &scope.variables);
    let local = |entry: EntryId| {
        let Operation::FrameOffset { offset } = single(debug, entry, dw::DW_AT_location)? else {
            return None;
        };
        let TypeRef::Entry(ty) = debug.type_of(entry) else { return None };
        let size = debug.size_of_entry(ty).filter(|size| *size > 0)?;
        Some(FrameLocal { offset: base + offset, size })
    };
    Some(all.filter_map(|variable| local(variable.entry)).collect())
}

/// The one operation that an attribute's expression has.
fn single(
    debug: &DebugInfo,
    entry: EntryId,
    attribute: gimli::DwAt,
) -> Option<Operation<crate::debug_info::Reader>> {
    let (unit, value): (std::sync::Arc<LoadedUnit>, _) = debug.attribute(entry, &[attribute])?;
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
        assert_eq!(sizes, [4, 4, 4, 20, 24, 40], "{locals:?}");
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
